"""Follow relation paths from the entities of a question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from kg_retrievers.algorithms.relation_paths import follow_relation_path, path_turns, spread
from kg_retrievers.core.path_evidence import ScoredPath
from kg_retrievers.graph import KnowledgeGraph, Path
from kg_retrievers.graph.adjacency import label_of
from kg_retrievers.graph.columns import Array, distinct
from kg_retrievers.graph.pattern import decide

#: The most walks at every hop. `max_paths` of them are shown.
MAX_WALKS = 100_000

#: How a triple is crossed: from head to tail, from tail to head, or either way. True stands for a label that is
#: backward.
DIRECTIONS: dict[str, tuple[bool, ...]] = {"forward": (False,), "backward": (True,), "either": (False, True)}

#: A relation path as the state holds it.
Row = Mapping[str, Any]


class Followed(NamedTuple):
    """The walks that relation paths lead to.

    Attributes:
        paths: The walks with the scores of their relation paths, the best relation path first.
        empty: The relation paths without a walk.
        truncated: Whether a limit left walks out.
        details: "joined" is "intersection" or "union" if the question has several entities, whose ends are joined so.
            "widened" is True if walks are found only because they may return.
    """

    paths: list[ScoredPath]
    empty: list[Any]
    truncated: bool
    details: dict[str, Any]


class Walked(NamedTuple):
    """The walks along one relation path, one entry each: its start, the triples that it crosses, and its end."""

    row: Row
    starts: Array
    triples: Array
    ends: Array
    truncated: bool


def follow_relation_paths(
    graph: KnowledgeGraph, rows: Sequence[Row], named: Sequence[Sequence[int]], *, excluded: bool, max_paths: int
) -> Followed:
    """Return the walks along relation paths from the entities of a question.

    If the question names several entities, only walks to ends that all of them lead to count. If there is no such end,
    all walks count. `kg_retrievers.graph.pattern` decides whether walks may return to their start.

    Args:
        graph: The graph.
        rows: The relation paths, best first. One with "entity" starts only from the name at this position of the
            question.
        named: The ids of the entities that each name of the question may mean, in the order of its text.
        excluded: Whether words of the question exclude the entities that it names.
        max_paths: The most walks that are returned.
    """
    turning = [path_turns(path_labels(graph, row)) for row in rows]
    decisions = [
        decide(row.get("revisits"), excluded=excluded, turning=turns) for row, turns in zip(rows, turning, strict=True)
    ]
    found = _follow(graph, rows, named, [decision.allowed for decision in decisions], max_paths)
    if found.paths or found.truncated or all(decision.certain for decision in decisions):
        return found
    wider = _follow(graph, rows, named, [decision.allowed or not decision.certain for decision in decisions], max_paths)
    return wider._replace(details=wider.details | {"widened": True}) if wider.paths else found


def path_labels(graph: KnowledgeGraph, row: Row) -> list[list[int]]:
    """Return the accepted labels for each hop of a relation path."""
    steps = [(graph.relations.find(name), DIRECTIONS[direction]) for name, direction in row["relations"]]
    return [[label_of(relation, backward) for backward in ways] for relation, ways in steps]


def _follow(
    graph: KnowledgeGraph, rows: Sequence[Row], named: Sequence[Sequence[int]], returns: Sequence[bool], max_paths: int
) -> Followed:
    walked: Iterable[Walked] = (walk(graph, row, named, may) for row, may in zip(rows, returns, strict=True))
    details: dict[str, Any] = {}
    common = None
    if len(named) > 1:
        walked = list(walked)
        ends = common_ends(walked, named)
        common = ends if len(ends) else None
        if any(len(one.ends) for one in walked):
            details["joined"] = "union" if common is None else "intersection"
    paths: list[ScoredPath] = []
    empty, truncated = [], False
    for position, one in enumerate(walked, 1):
        fits = np.arange(len(one.ends)) if common is None else np.flatnonzero(np.isin(one.ends, common))
        kept = fits[spread(one.ends[fits], max_paths - len(paths))]
        truncated |= one.truncated or len(kept) < len(fits)
        for start, crossed in zip(one.starts[kept].tolist(), one.triples[kept].tolist(), strict=True):
            path = Path.along(graph.entities[start], [graph.triple(triple) for triple in crossed])
            paths.append(ScoredPath(path, one.row["score"]))
        if not len(one.ends) and not one.truncated:
            empty.append(one.row["relations"])
        if len(paths) == max_paths and position < len(rows):  # the others are not followed
            truncated = True
            break
    return Followed(paths, empty, truncated, details)


def walk(graph: KnowledgeGraph, row: Row, named: Sequence[Sequence[int]], may_return: bool) -> Walked:
    """Return the walks along one relation path."""
    at = row.get("entity")
    groups = named if at is None or at >= len(named) else [named[at]]
    starts = list(dict.fromkeys(start for group in groups for start in group))
    labels = path_labels(graph, row)
    walks = [
        follow_relation_path(
            graph.adjacency, start, labels, max_walks=MAX_WALKS, may_return=may_return, may_repeat=may_return
        )
        for start in starts
    ]
    return Walked(
        row,
        np.repeat(starts, [len(found.ends) for found in walks]),
        np.concatenate([found.triples for found in walks]),
        np.concatenate([found.ends for found in walks]),
        any(found.truncated for found in walks),
    )


def common_ends(walked: Sequence[Walked], named: Sequence[Sequence[int]]) -> Array:
    """Return the entities to which walks from every name of the question lead."""
    common: Array | None = None
    for group in named if walked else ():
        ends = distinct(np.concatenate([one.ends[np.isin(one.starts, group)] for one in walked]))
        common = ends if common is None else np.intersect1d(common, ends, assume_unique=True)
    return np.empty(0, np.int64) if common is None else common
