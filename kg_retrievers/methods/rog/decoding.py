"""Constrained decoding: a planner writes relation paths that walks of the graph follow, and no others.

As in Graph-Constrained Reasoning (L. Luo, Z. Zhao, C. Gong, G. Haffari, S. Pan, arXiv:2410.13080), which holds a
language model to a trie of the paths around an entity. Here the trie is of relation paths, and is made as far as the
search comes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol, Self

import numpy as np

from kg_retrievers.algorithms.relation_paths import follow_relation_path, path_turns
from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.adjacency import entries_between
from kg_retrievers.graph.columns import Array

#: The most walks, at every hop, that are looked at to see whether a relation path can be followed; one with more can.
WALKS_TRIED = 20_000

#: A relation path: the label of each hop.
Labels = tuple[int, ...]


#: How relation paths are compared; see `search`.
Score = Literal["walks", "sum", "mean"]


class Plan(NamedTuple):
    """A relation path.

    Attributes:
        labels: One a hop.
        score: At most 0; see `search`.
    """

    labels: Labels
    score: float


class ReadsOn(Protocol):
    """What a planner has read so far; see `Reading`."""

    @property
    def end(self) -> float:
        """Log p that the relation path ends here."""

    def then(self, tokens: Sequence[int]) -> Self:
        """Read further tokens."""

    def log_probabilities(self, continuations: Sequence[Sequence[int]]) -> list[float]:
        """Return log p of each continuation."""


class WalkTrie:
    """The relation paths that walks from some entities follow.

    A walk is one that `RelationPathRetriever` finds: it may return to where it starts, or cross a triple twice, unless
    it has both a forward and a backward step.

    Args:
        adjacency: The graph, both directions.
        seeds: The ids of the entities.
    """

    def __init__(self, adjacency: Adjacency, seeds: Sequence[int]) -> None:
        """Take the entities."""
        self._adjacency, self._seeds = adjacency, tuple(dict.fromkeys(seeds))
        self._ends: dict[Labels, list[Array]] = {}

    def steps(self, path: Labels) -> list[int]:
        """Return the labels, ascending, by which a relation path goes on, so that some walk follows it."""
        ends = np.unique(np.concatenate([*self._ends_of(path), np.empty(0, np.int64)]).astype(np.int64))
        entries, _ = entries_between(self._adjacency.indptr[ends], self._adjacency.indptr[ends + 1])
        labels = np.unique(self._adjacency.labels[entries]).tolist()
        return [label for label in labels if any(len(there) for there in self._ends_of((*path, label)))]

    def _ends_of(self, path: Labels) -> list[Array]:
        """Return where walks along a relation path end, for each entity."""
        if path not in self._ends:
            self._ends[path] = [self._follow(seed, path) for seed in self._seeds]
        return self._ends[path]

    def _follow(self, seed: int, path: Labels) -> Array:
        if not path:
            return np.array([seed], np.int64)
        steps = [[label] for label in path]
        may = not path_turns(steps)
        walks = follow_relation_path(
            self._adjacency, seed, steps, max_walks=WALKS_TRIED, may_return=may, may_repeat=may
        )
        return np.unique(walks.ends).astype(np.int64)


class _Prefix(NamedTuple):
    """The beginning of a relation path: its labels, log p of them, and what was read before the last of them."""

    labels: Labels
    total: float
    before: ReadsOn


def search(
    trie: WalkTrie,
    reading: ReadsOn,
    tokens_of: Callable[[int], Sequence[int]],
    *,
    beam_width: int,
    max_hops: int,
    score: Score = "walks",
) -> list[Plan]:
    """Return the relation paths of a trie that a planner finds best.

    A beam search over steps: each step that some walk allows is scored by all of its tokens. The end of a path is a
    step of its own, which a tuned planner has learned. The scores, for steps s and the end after them:

    - "walks": sum of log p(s | what is before it, and s is a step that some walk allows, or the end): the probability
      among the relation paths that exist, so that those of all of them sum to 1. At `max_hops`, the end is certain.
    - "sum": sum of log p(s | what is before it).
    - "mean": "sum" divided by the number of steps, the end included.

    Args:
        trie: The relation paths that exist.
        reading: What the planner was told.
        tokens_of: The tokens of a label.
        beam_width: How many are returned, at most; as many are gone on from at each hop.
        max_hops: The most steps.
        score: How they are compared.

    Returns:
        Best first, of equally good ones the shortest, then by label.
    """
    active, finished = [_Prefix((), 0.0, reading)], list[Plan]()
    for hop in range(max_hops + 1):
        further: list[_Prefix] = []
        for prefix in active:
            steps = trie.steps(prefix.labels) if hop < max_hops else []
            if not steps and score == "walks":  # the end is certain, and need not be read
                finished.extend([Plan(prefix.labels, prefix.total)] if hop else [])
                continue
            here = prefix.before.then(tokens_of(prefix.labels[-1])) if hop else reading
            logs = [*here.log_probabilities([tokens_of(step) for step in steps]), *([here.end] if hop else [])]
            if score == "walks":
                logs = (np.array(logs) - np.logaddexp.reduce(logs)).tolist()
            if hop:
                finished.append(Plan(prefix.labels, _scored(prefix.total + logs[-1], hop + 1, score)))
            paths = [(*prefix.labels, step) for step in steps]
            further += [_Prefix(path, prefix.total + log, here) for path, log in zip(paths, logs, strict=False)]
        finished = sorted(finished, key=lambda plan: (-plan.score, len(plan.labels), plan.labels))[:beam_width]
        active = sorted(further, key=lambda prefix: (-prefix.total, prefix.labels))[:beam_width]
        if score != "mean" and len(finished) == beam_width:  # a longer path is never likelier than its beginning
            active = [prefix for prefix in active if prefix.total > finished[-1].score]
    return finished


def _scored(total: float, steps: int, score: Score) -> float:
    return total / steps if score == "mean" else total
