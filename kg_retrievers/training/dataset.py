"""Prepare questions with their answers for the training of models.

Questions with a graph each are trained on side by side in one graph, as parts that nothing joins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

import numpy as np

from kg_retrievers.algorithms.neighborhood import hops_from
from kg_retrievers.datasets import GraphQuestion, Question
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph, Triple
from kg_retrievers.index import GraphIndex, link_question, linker_of
from kg_retrievers.index.question_indexes import QuestionIndexes
from kg_retrievers.index.question_keys import with_keys

#: Why a question is left out, by the names of the counts of `TrainingQuestions`.
_Reason = Literal["without_entities", "without_answers", "unreachable"]


@dataclass(frozen=True)
class LinkedQuestion(Question):
    """A question whose entities are all given. None are looked for in it.

    Attributes:
        masked: The text with `MASK` in place of its entities.
    """

    masked: str = ""


@dataclass(frozen=True)
class TrainingQuestion:
    """A question whose answers can be reached from its entities.

    Attributes:
        text: The question, by default with `MASK` in place of its entities.
        seeds: The ids of the entities that it is about.
        answers: The ids of its answers in the graph.
        missing: How many of its answers are not in the graph.
        triples: The ids of its gold triples in the graph.
    """

    text: str
    seeds: tuple[int, ...]
    answers: tuple[int, ...]
    missing: int
    triples: tuple[int, ...] = ()


@dataclass(frozen=True)
class TrainingQuestions:
    """Questions to train on, and the numbers of skipped ones.

    Attributes:
        usable: The questions to train on, in order.
        without_entities: The number of others without an entity of the graph, given or named.
        without_answers: The number of others without an answer in the graph.
        unreachable: The number of others without an answer within `max_hops` of an entity other than the answer.
    """

    usable: list[TrainingQuestion]
    without_entities: int
    without_answers: int
    unreachable: int

    def __str__(self) -> str:
        """Say how many questions there are, and why others are left out."""
        reasons = {
            "name no entity of the graph": self.without_entities,
            "have no answer that is a key of the graph": self.without_answers,
            "have no answer near their entities": self.unreachable,
        }
        left_out = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
        count = len(self.usable)
        return f"{count:,} question{'s' * (count != 1)}" + (f"; not used: {left_out}" if left_out else "")


def training_questions(
    index: GraphIndex,
    questions: Sequence[Question],
    max_hops: int,
    *,
    own_entities: bool = False,
    mask_entities: bool = True,
) -> TrainingQuestions:
    """Find the entities of questions, and keep the questions that a model can learn from.

    Args:
        index: The indexed graph.
        questions: With answers. Entities that are not given are linked in the text.
        max_hops: The largest distance of an answer from the question's entities.
        own_entities: Whether an answer that is an entity of the question itself counts at its own position.
        mask_entities: Whether the text has `MASK` in place of the question's entities.

    Raises:
        InvalidArgumentError: If `max_hops` is less than 0.
    """
    least = 0 if own_entities else 1
    found = [_found(index, question, max_hops, least, mask_entities) for question in questions]
    reasons = Counter(one for one in found if isinstance(one, str))
    usable = [one for one in found if isinstance(one, TrainingQuestion)]
    return TrainingQuestions(usable, reasons["without_entities"], reasons["without_answers"], reasons["unreachable"])


def _found(
    index: GraphIndex, question: Question, max_hops: int, least: int, mask_entities: bool
) -> TrainingQuestion | _Reason:
    """Return the question as a model learns it, or why it is left out."""
    entities = index.graph.entities
    keys, masked = link_training_question(index, question)
    seeds = tuple(entities.find(key) for key in keys)
    wanted = dict.fromkeys(question.answers)
    answers = np.array([entities.find(key) for key in wanted if key in entities], np.int64)
    if not seeds:
        return "without_entities"
    if not len(answers):
        return "without_answers"
    if not any((hops_from(index.graph.adjacency, [seed], max_hops)[answers] >= least).any() for seed in seeds):
        return "unreachable"
    text = masked if mask_entities else question.text
    missing = len(wanted) - len(answers)
    return TrainingQuestion(text, seeds, tuple(answers.tolist()), missing, _gold_triples(index.graph, question))


def _gold_triples(graph: KnowledgeGraph, question: Question) -> tuple[int, ...]:
    """Return the ids of a question's gold triples in the graph."""
    ids: list[int] = []
    for head, relation, tail in question.triples:
        parts = graph.entities.find(head), graph.relations.find(relation), graph.entities.find(tail)
        if -1 not in parts:
            ids += graph.edges.find(*parts).tolist()
    return tuple(ids)


def link_training_question(index: GraphIndex, question: Question) -> tuple[list[str], str]:
    """Return the keys of a question's entities, and the question with `MASK` in place of them.

    There are none if the question names none, or if the given entities are not in the graph.
    """
    given = [key for key in question.seed_entities if key in index.graph.entities]
    if question.seed_entities and not given:
        return [], ""
    if isinstance(question, LinkedQuestion):
        return given, question.masked
    try:
        return link_question(linker_of(index), question.text, given)
    except EntityLinkingError:
        return [], ""


#: An index, the questions to train on over its graph, and the questions that decide when to stop, or None.
TrainingSet = tuple[GraphIndex, Sequence[Question], Sequence[Question] | None]


def over_one_graph(
    who: str,
    index: GraphIndex,
    questions: Sequence[Question],
    validation: Sequence[Question] | None,
    embedding_cache: str | Path | None = None,
) -> TrainingSet:
    """Return questions with a graph each as questions over one graph, and others with keys in place of names.

    The graphs stand side by side: the entity "a" of the first is "0/a", with its label, and nothing joins it to "1/a".
    So each question sees its own triples alone, and relations and names are embedded once. Entities are linked, and
    masked in the question, over the question's own graph, as when it is asked.

    Args:
        who: The function that was called, for messages.
        index: The index that was given. For questions with graphs, only its embeddings are used.
        questions: The questions to train on.
        validation: The questions that decide when to stop, or None.
        embedding_cache: A file that keeps the vectors of names, for questions with graphs.

    Raises:
        InvalidArgumentError: If some of the questions have a graph and others have none.
    """
    own = [isinstance(question, GraphQuestion) for question in (*questions, *(validation or ()))]
    if not any(own):
        matched = None if validation is None else with_keys(index, validation).questions
        return index, with_keys(index, questions).questions, matched
    if not all(own):
        raise InvalidArgumentError(
            f"{who}: {sum(own)} of {len(own)} questions have a graph of their own, the others have none. Train on "
            "questions of one kind."
        )
    indexes = QuestionIndexes(index.embeddings, embedding_cache)
    positions: dict[KnowledgeGraph, int] = {}
    placed = [_placed(part, indexes, positions) for part in (questions, validation or ())]
    joined = GraphIndex.build(_side_by_side(positions), index.embeddings, cache=indexes.cache)
    return joined, placed[0], None if validation is None else placed[1]


def _placed(
    questions: Iterable[Question], indexes: QuestionIndexes, positions: dict[KnowledgeGraph, int]
) -> list[Question]:
    """Return questions with the keys that their entities have in the joined graph."""
    placed: list[Question] = []
    for one in questions:
        assert isinstance(one, GraphQuestion)
        question = one.with_keys()
        position = positions.setdefault(question.graph, len(positions))
        seeds, masked = link_training_question(indexes.of(question.graph), question)
        placed.append(
            LinkedQuestion(
                question.text,
                seed_entities=tuple(_key(position, seed) for seed in seeds),
                answers=tuple(_key(position, answer) for answer in question.answers),
                triples=tuple(_placed_triple(position, triple) for triple in question.triples),
                masked=masked,
            )
        )
    return placed


def _side_by_side(positions: dict[KnowledgeGraph, int]) -> KnowledgeGraph:
    """Return the graphs as parts of one that nothing joins."""
    triples = (_placed_triple(position, triple) for graph, position in positions.items() for triple in graph.triples())
    labels = chain.from_iterable(
        ((_key(position, key), graph.label(key)) for key in graph.entities) for graph, position in positions.items()
    )
    return KnowledgeGraph.from_triples(triples, labels=dict(labels))


def _placed_triple(position: int, triple: Triple) -> Triple:
    return Triple(_key(position, triple.head), triple.relation, _key(position, triple.tail))


def _key(position: int, key: str) -> str:
    return f"{position}/{key}"
