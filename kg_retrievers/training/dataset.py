"""Questions with their answers, in the form in which models are trained on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kg_retrievers.algorithms.neighborhood import hops_from
from kg_retrievers.datasets import Question
from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import EntityLinker, GraphIndex, link_question, linker_of


@dataclass(frozen=True)
class TrainingQuestion:
    """A question whose answers can be reached from its entities.

    Attributes:
        text: The question, with `MASK` in place of its entities.
        seeds: The ids of the entities that it is about.
        answers: The ids of its answers, of those in the graph.
        missing: How many of its answers are not in the graph.
    """

    text: str
    seeds: tuple[int, ...]
    answers: tuple[int, ...]
    missing: int


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
    index: GraphIndex, questions: Sequence[Question], max_hops: int, *, own_entities: bool = False
) -> TrainingQuestions:
    """Find the entities of questions, and keep the questions that a model can learn from.

    Args:
        index: The indexed graph.
        questions: With answers. Entities that are not given are linked in the text.
        max_hops: The largest distance of an answer from the question's entities.
        own_entities: Whether an answer that is an entity of the question itself counts at its own position.

    Raises:
        InvalidArgumentError: If `max_hops` is less than 0.
    """
    entities, linker = index.graph.entities, linker_of(index)
    found = TrainingQuestions([], 0, 0, 0)
    for question in questions:
        text, seeds = _linked(linker, question)
        wanted = dict.fromkeys(question.answers)
        answers = np.array([entities.find(key) for key in wanted if key in entities], np.int64)
        if not seeds:
            found = replace(found, without_entities=found.without_entities + 1)
        elif not len(answers):
            found = replace(found, without_answers=found.without_answers + 1)
        elif not _reached(index, seeds, answers, max_hops, least=0 if own_entities else 1):
            found = replace(found, unreachable=found.unreachable + 1)
        else:
            missing = len(wanted) - len(answers)
            found.usable.append(TrainingQuestion(text, seeds, tuple(answers.tolist()), missing))
    return found


def _linked(linker: EntityLinker, question: Question) -> tuple[str, tuple[int, ...]]:
    """Return the masked question and the ids of its entities.

    There are none if the question names none, or if those that are given are not in the graph.
    """
    entities = linker.index.graph.entities
    given = [key for key in question.seed_entities if key in entities]
    if question.seed_entities and not given:
        return "", ()
    try:
        keys, text = link_question(linker, question.text, given)
    except EntityLinkingError:
        return "", ()
    return text, tuple(entities.find(key) for key in keys)


def _reached(index: GraphIndex, seeds: Sequence[int], answers: Array, max_hops: int, *, least: int) -> bool:
    """Tell whether an answer is from `least` to `max_hops` hops away from a seed."""
    adjacency = index.graph.adjacency
    return any((hops_from(adjacency, [seed], max_hops)[answers] >= least).any() for seed in seeds)
