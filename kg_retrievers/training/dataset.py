"""Questions with their answers, in the form in which models are trained on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np

from kg_retrievers.algorithms.neighborhood import hops_from
from kg_retrievers.bulk import Workers, map_batches
from kg_retrievers.datasets import Question
from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import EntityLinker, GraphIndex, link_question, linker_of

#: How many questions a worker is given at once.
SHARED_SIZE = 64

#: Why a question is left out; the names of the numbers of `TrainingQuestions`.
_Reason = Literal["without_entities", "without_answers", "unreachable"]


@dataclass(frozen=True)
class LinkedQuestion(Question):
    """A question whose entities are all given; none are looked for in it.

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
        answers: The ids of its answers, of those in the graph.
        missing: How many of its answers are not in the graph.
        triples: The ids of its gold triples, of those in the graph.
    """

    text: str
    seeds: tuple[int, ...]
    answers: tuple[int, ...]
    missing: int
    triples: tuple[int, ...] = ()


@dataclass(frozen=True)
class TrainingQuestions:
    """Questions to train on, and the numbers of those that are left out.

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
    workers: Workers | None = None,
) -> TrainingQuestions:
    """Find the entities of questions, and keep the questions that a model can learn from.

    Args:
        index: The indexed graph.
        questions: With answers. Entities that are not given are linked in the text.
        max_hops: The largest distance of an answer from the question's entities.
        own_entities: Whether an answer that is an entity of the question itself counts at its own position.
        mask_entities: Whether the text has `MASK` in place of the question's entities.
        workers: Processes that do this; this one by default.

    Raises:
        InvalidArgumentError: If `max_hops` is less than 0.
    """
    batches = (questions[first : first + SHARED_SIZE] for first in range(0, len(questions), SHARED_SIZE))
    made = map_batches(_Finding(index, max_hops, own_entities, mask_entities), batches, workers)
    found = list(chain.from_iterable(made))
    reasons = Counter(one for one in found if isinstance(one, str))
    usable = [one for one in found if isinstance(one, TrainingQuestion)]
    return TrainingQuestions(usable, reasons["without_entities"], reasons["without_answers"], reasons["unreachable"])


@dataclass(frozen=True)
class _Finding:
    """Finds what a model can learn from questions; for each of the others, why it is left out."""

    index: GraphIndex
    max_hops: int
    own_entities: bool
    mask_entities: bool

    def __call__(self, questions: Sequence[Question]) -> list[TrainingQuestion | _Reason]:
        """Return what is found for each question."""
        return [self._found(question) for question in questions]

    def _found(self, question: Question) -> TrainingQuestion | _Reason:
        entities, least = self.index.graph.entities, 0 if self.own_entities else 1
        masked, seeds = _linked(linker_of(self.index), question)
        wanted = dict.fromkeys(question.answers)
        answers = np.array([entities.find(key) for key in wanted if key in entities], np.int64)
        if not seeds:
            return "without_entities"
        if not len(answers):
            return "without_answers"
        if not _reached(self.index, seeds, answers, self.max_hops, least=least):
            return "unreachable"
        text = masked if self.mask_entities else question.text
        missing = len(wanted) - len(answers)
        return TrainingQuestion(
            text, seeds, tuple(answers.tolist()), missing, _gold_triples(self.index.graph, question)
        )


def _gold_triples(graph: KnowledgeGraph, question: Question) -> tuple[int, ...]:
    """Return the ids of a question's gold triples, of those in the graph."""
    ids: list[int] = []
    for head, relation, tail in question.triples:
        parts = graph.entities.find(head), graph.relations.find(relation), graph.entities.find(tail)
        if -1 not in parts:
            ids += graph.edges.find(*parts).tolist()
    return tuple(ids)


def _linked(linker: EntityLinker, question: Question) -> tuple[str, tuple[int, ...]]:
    """Return the masked question and the ids of its entities.

    There are none if the question names none, or if those that are given are not in the graph.
    """
    entities = linker.index.graph.entities
    given = [key for key in question.seed_entities if key in entities]
    if question.seed_entities and not given:
        return "", ()
    if isinstance(question, LinkedQuestion):
        return question.masked, tuple(entities.find(key) for key in given)
    try:
        keys, text = link_question(linker, question.text, given)
    except EntityLinkingError:
        return "", ()
    return text, tuple(entities.find(key) for key in keys)


def _reached(index: GraphIndex, seeds: Sequence[int], answers: Array, max_hops: int, *, least: int) -> bool:
    """Tell whether an answer is from `least` to `max_hops` hops away from a seed."""
    adjacency = index.graph.adjacency
    return any((hops_from(adjacency, [seed], max_hops)[answers] >= least).any() for seed in seeds)
