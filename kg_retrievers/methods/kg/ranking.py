"""Rank facts by how likely they hold the answer to a question, with a logistic regression over their origins."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

import numpy as np

from kg_retrievers.graph.columns import Array, distinct

#: The part that found a fact: a reading, a trained method, the search around the question's entities, or the search by
#: text anywhere in the graph.
Part = Literal["reading", "model", "around", "text"]

#: The features of a fact, in the order of the weights:
#:
#: - whether the likeliest reading has it, otherwise the second, third or fourth,
#: - whether it has an end that this reading proposes as an answer, and the logarithm of how many facts the reading has,
#: - 1 / rank among the facts that a trained method found,
#: - whether it is one step, or two, from the entities of the question,
#: - the cosines of the question without its entities and the relation, and of the question and the text of the fact
#:   (0 in graphs that are not compared as a whole).
FEATURES = (
    "reading 1", "reading 2", "reading 3", "reading 4", "answer", "log facts", "model", "one hop", "two hops",
    "relation", "text",
)  # fmt: skip

#: How many readings are looked at.
READINGS = 4


class FoundFacts(NamedTuple):
    """Facts that one part found.

    Attributes:
        part: The part.
        ids: The ids of the facts, int64, shape (n), the best first, each once.
        position: The position of a reading, from 1.
        holds: Whether each of its facts has an end that it proposes as an answer, shape (n).
        hops: How many steps each fact around the entities of the question is away from them, shape (n).
    """

    part: Part
    ids: Array
    position: int = 0
    holds: Array | bool = False
    hops: Array | None = None

    @property
    def name(self) -> str:
        """The name in the details of evidence."""
        return f"{self.part} {self.position}" if self.position else self.part


class Candidates(NamedTuple):
    """The facts to choose from.

    Attributes:
        ids: Their ids, int64, ascending, shape (n).
        features: float64, shape (n, `len(FEATURES)`).
        parts: The position of the part that found each first, shape (n).
    """

    ids: Array
    features: Array
    parts: Array


def gather(found: Sequence[FoundFacts]) -> Candidates:
    """Return all facts that were found, each once. The columns of the cosines are 0.

    Args:
        found: The facts of each part, the readings first, by position.

    Example:
        >>> reading = FoundFacts("reading", np.array([7]), position=1)
        >>> candidates = gather([reading, FoundFacts("around", np.array([3, 7]), hops=np.array([1, 1]))])
        >>> candidates.ids.tolist(), candidates.parts.tolist()
        ([3, 7], [1, 0])
    """
    ids = distinct(np.concatenate([np.empty(0, np.int64), *(one.ids for one in found)]))
    columns = {name: np.zeros(len(ids)) for name in FEATURES}
    parts = np.full(len(ids), len(found))
    for number, one in enumerate(found):
        rows = np.searchsorted(ids, one.ids)
        if one.part == "reading":
            new = parts[rows] == len(found)
            columns[f"reading {one.position}"][rows[new]] = 1
            columns["answer"][rows[new]] = np.broadcast_to(one.holds, len(rows))[new]
            columns["log facts"][rows[new]] = np.log(max(len(rows), 1))
        elif one.part == "model":
            columns["model"][rows] = 1 / np.arange(1, len(rows) + 1)
        elif one.hops is not None:
            columns["one hop"][rows], columns["two hops"][rows] = one.hops == 1, one.hops == 2
        parts[rows] = np.minimum(parts[rows], number)
    return Candidates(ids, np.stack([columns[name] for name in FEATURES], axis=1), parts)


def likelihoods(features: Array) -> Array:
    """Return how likely facts hold an answer, by a logistic regression, in (0, 1), shape (n).

    `python -m benchmarks.fact_ranker` chose the weights on the graphs of `benchmarks/own_graphs/fit`, none of which is
    measured. With `--model` it chose the weight of trained models.

    Args:
        features: As of `Candidates`.
    """
    weights = _weights()
    shares: Array = 0.5 * (1 + np.tanh((weights[0] + features @ weights[1:]) / 2))
    return shares


@cache
def _weights() -> Array:
    """Return the bias and the weights of `FEATURES`."""
    stored = json.loads(files(__package__).joinpath("weights.json").read_text())
    return np.array([stored["bias"], *(stored[name] for name in FEATURES)])
