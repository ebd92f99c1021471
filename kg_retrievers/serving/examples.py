"""Example questions: those that a graph asks of itself, and that a retriever answers."""

from __future__ import annotations

import re
from itertools import islice

from kg_retrievers.core.documents import documents_answers
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.datasets import Question
from kg_retrievers.errors import InvalidArgumentError, KGRetrieversError
from kg_retrievers.questions.self_questions.generate import generate_questions

#: How many questions are written for each that is wanted.
WRITTEN = 20

#: The longest question that is shown, in characters, and the most answers of one.
LONGEST, MOST_ANSWERS = 90, 10

#: The least confidence in the answer.
SURE = 0.8

#: A question as people write it: "Who directed Her?", but not "What has the genre Mystery?", "Who is Bob's skill?".
_NATURAL = re.compile(
    r"(?!.*\b(has|have|that|as)\b)(?!Who (is|are) .*'s )(?!.*\b(in|by|of|at|to|for|with)\?$)"
    r"(Who|Where|When|Which|What|How many) .*\?"
)


def example_questions(retriever: BaseKGRetriever, count: int) -> list[str]:
    """Return natural questions of one hop that a retriever answers rightly and surely, the same each time.

    There is one for each relation at first.

    Args:
        retriever: It is asked, so it should call no language model.
        count: How many; fewer where the graph has no more.
    """
    try:
        questions = generate_questions(retriever.index.whole.graph, WRITTEN * count, max_hops=1)
    except InvalidArgumentError:  # it has nothing that can be asked about
        return []
    natural = [one for one in questions if _is_natural(one)]
    first = {_relation(question): question for question in reversed(natural)}
    natural.sort(key=lambda question: question is not first[_relation(question)])  # new relations come first
    return list(islice((one.text for one in natural if _is_answered(retriever, one)), count))


def _is_natural(question: Question) -> bool:
    is_short = len(question.text) <= LONGEST and len(question.answers) <= MOST_ANSWERS
    return is_short and question.kind == "1-hop" and _NATURAL.fullmatch(question.text) is not None


def _relation(question: Question) -> str:
    return str(question.pattern.triples[0].relation) if question.pattern else ""


def _is_answered(retriever: BaseKGRetriever, question: Question) -> bool:
    try:
        documents = retriever.invoke(question.text, on_refusal="raise")
    except KGRetrieversError:
        return False
    confidence = documents[0].metadata["confidence"] if documents else 0.0
    is_sure = confidence is None or confidence >= SURE
    return is_sure and set(documents_answers(documents)) == set(question.answers)
