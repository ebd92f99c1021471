"""Example questions: those that a graph asks of itself, and that a retriever answers."""

from __future__ import annotations

from itertools import islice

from kg_retrievers.core.documents import documents_answers
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.datasets import Question
from kg_retrievers.errors import InvalidArgumentError, KGRetrieversError
from kg_retrievers.questions.self_questions.generate import generate_questions

#: How many questions are tried for each that is wanted.
TRIED = 6

#: The longest question that is shown, in characters.
LONGEST = 200


def example_questions(retriever: BaseKGRetriever, count: int) -> list[str]:
    """Return questions that a retriever answers rightly, of different kinds and relations; the same each time.

    Args:
        retriever: It is asked, so it should call no language model.
        count: How many; fewer where the graph has no more.
    """
    graph = retriever.index.whole.graph
    try:
        questions = generate_questions(graph, TRIED * count)
    except InvalidArgumentError:  # it has nothing that can be asked about
        return []
    first = {_relations(question): question for question in reversed(questions)}
    questions.sort(key=lambda question: question is not first[_relations(question)])  # new relations come first
    answered = (one.text for one in questions if len(one.text) <= LONGEST and _is_answered(retriever, one))
    return list(islice(answered, count))


def _relations(question: Question) -> frozenset[str]:
    triples = question.pattern.triples if question.pattern else ()
    return frozenset(str(triple.relation) for triple in triples)


def _is_answered(retriever: BaseKGRetriever, question: Question) -> bool:
    try:
        documents = retriever.invoke(question.text, on_refusal="raise")
    except KGRetrieversError:
        return False
    answers = set(documents_answers(documents)) if documents else set()
    return bool(answers) and answers == set(question.answers)
