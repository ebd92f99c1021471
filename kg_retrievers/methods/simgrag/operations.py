"""The operation of a pattern, over all bindings of the nearest subgraphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple, Protocol

import numpy as np

from kg_retrievers.algorithms.bindings import Edge, joined_bindings
from kg_retrievers.errors import SearchBudgetError
from kg_retrievers.graph import KnowledgeGraph, Pattern, Term, Unknown
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.operations import Operation
from kg_retrievers.index import GraphIndex
from kg_retrievers.methods.simgrag.matching import Match
from kg_retrievers.questions.operations import (
    SHOWN,
    OperationResult,
    compared,
    operation_result,
    part_of,
    shown_details,
)

#: An operation is over all of so many equally near subgraphs, as of namesakes.
MAX_MATCHES = 64

#: Matches whose distances differ by less are equally near.
SAME_DISTANCE = 1e-6


class FindMatches(Protocol):
    """Finds the `MAX_MATCHES` nearest matches of a pattern without operation, the nearest first."""

    def __call__(self, part: Pattern, only: Mapping[str, Array] | None = None) -> list[Match]:
        """Find them; `only` gives the ids of the entities that some unknowns may be, by name."""


class MatchRules(NamedTuple):
    """How the matches were found.

    Attributes:
        directed: Whether the directions of the triples count.
        all_different: Whether all nodes are different entities.
        max_bindings: The most entities of one unknown in one match.
    """

    directed: bool
    all_different: bool
    max_bindings: int


@dataclass(frozen=True)
class Operated:
    """What an operation gives, with the matches that show it.

    Attributes:
        value: What it gives; see `Evidence.value`.
        answers: The ids of the entities that answer, the best first.
        matches: What shows it, of a sample of the targets where there are many: patterns without operation, each with a
            match.
        truncated: Whether a count may be higher.
        details: Of how many targets the facts are shown, and what else is to be said.
    """

    value: Any
    answers: tuple[int, ...]
    matches: list[tuple[Pattern, Match]]
    truncated: bool
    details: dict[str, Any]


def operate(pattern: Pattern, index: GraphIndex, find: FindMatches, rules: MatchRules) -> Operated | None:
    """Apply the operation of a pattern; None where nothing in the graph says what it gives.

    Args:
        pattern: The pattern.
        index: The graph and its values.
        find: Finds the matches of a pattern.
        rules: How it finds them.

    Raises:
        SearchBudgetError: If a budget cut the matches, so that only a count is known, as "at least".
    """
    operation = pattern.operation
    assert operation is not None
    plain = replace(pattern, operation=None)
    if operation.kind == "compare":
        return _compare(plain, operation, index, find, rules)
    matches = nearest_matches(find(plain))
    truncated = _is_truncated(matches)
    if operation.kind == "exists":
        shown = [(plain, match) for match in matches[:1]]
        return Operated(bool(matches), (), shown, False, {})
    if truncated and operation.kind != "count":
        raise _cut(operation.kind, matches, index.graph, rules)
    result = _result(plain, operation, matches, index, rules)
    if operation.kind != "count" and not result.answers:
        return None
    return _shown(plain, result, matches, find, truncated)


def nearest_matches(matches: Sequence[Match]) -> list[Match]:
    """Return the matches that are as near as the nearest, of some in order of their distance."""
    return [match for match in matches if match.distance < matches[0].distance + SAME_DISTANCE]


def _is_truncated(matches: Sequence[Match]) -> bool:
    return len(matches) >= MAX_MATCHES or any(match.truncated for match in matches)


def _cut(kind: str, matches: Sequence[Match], graph: KnowledgeGraph, rules: MatchRules) -> SearchBudgetError:
    """Return the error of an operation that knows a part of the matches, with the limit that left out the others."""
    lost = f"so that {kind!r} of all is not known."
    if max(len(ids) for match in matches for ids in match.entities) >= rules.max_bindings:
        enough = f"max_bindings={len(graph.entities)}"
        return SearchBudgetError(
            f"SimGRAGRetriever: more than max_bindings={rules.max_bindings} entities fit one place of the pattern, "
            f"{lost}",
            hint_python=f"Raise it, or narrow the pattern: {enough} is enough for any pattern.",
            hint_shell=f"Raise it, or narrow the question: --field {enough} is enough for any question.",
        )
    if len(matches) >= MAX_MATCHES:
        return SearchBudgetError(
            f"SimGRAGRetriever: the pattern fits the graph equally well in {MAX_MATCHES} ways or more, {lost}",
            hint_python="Name more in the pattern.",
            hint_shell="Name more in the question.",
        )
    return SearchBudgetError(
        f"SimGRAGRetriever: the search ended at max_scans or max_seconds, {lost}",
        hint_python="Raise both, or narrow the pattern.",
        hint_shell="Raise both, or narrow the question: --field max_scans=N --field max_seconds=N",
    )


def _result(
    pattern: Pattern, operation: Operation, matches: Sequence[Match], index: GraphIndex, rules: MatchRules
) -> OperationResult:
    wanted = [_position(pattern, name) for name in (str(pattern.target), *operation.by)]
    bindings: set[tuple[int, ...]] = set()
    for match in matches:
        if operation.by:
            bindings |= _bindings(pattern, match, wanted, index.graph, rules)
        else:
            bindings |= {(entity,) for entity in match.entities[wanted[0]].tolist()}
    return operation_result(operation, bindings, index.graph)


def _bindings(
    pattern: Pattern, match: Match, wanted: Sequence[int], graph: KnowledgeGraph, rules: MatchRules
) -> set[tuple[int, ...]]:
    """Return what some nodes are together in a match."""
    nodes = pattern.nodes
    position: dict[Term, int] = {node: at for at, node in enumerate(nodes)}
    edges = []
    relations = [triple.relation for triple in pattern.triples]  # unknown ones are numbered behind the nodes
    for (head, relation, tail), triples in zip(pattern.triples, match.triples, strict=True):
        ends = position[head], position[tail]
        entities = [set(match.entities[end].tolist()) for end in ends]
        rows = _oriented(graph.edges[triples].tolist(), *entities, directed=rules.directed)
        if isinstance(relation, Unknown):
            edges.append(Edge((*ends, len(nodes) + relations.index(relation)), list(rows)))
        else:
            edges.append(Edge(ends, [row[:2] for row in rows]))
    different = [(position[one], position[other]) for one, other in pattern.different]
    if rules.all_different:
        different = list(combinations(range(len(nodes)), 2))
    return joined_bindings(_of_component(edges, wanted, different), wanted, different)


def _oriented(
    facts: Iterable[list[int]], heads: set[int], tails: set[int], *, directed: bool
) -> Iterable[tuple[int, ...]]:
    """Yield head, tail and relation of facts as those of an edge; both ways round where both fit."""
    for one, relation, other in facts:
        if one in heads and other in tails:
            yield one, other, relation
        if not directed and other in heads and one in tails:
            yield other, one, relation


def _of_component(edges: Sequence[Edge], wanted: Sequence[int], different: Sequence[tuple[int, int]]) -> list[Edge]:
    """Return the edges that are joined to some nodes, or that must differ from those that are."""
    links = [*(edge.unknowns for edge in edges), *different]
    reached, before = set(wanted), 0
    while len(reached) > before:
        before = len(reached)
        reached.update(*(link for link in links if reached & {*link}))
    return [edge for edge in edges if reached & {*edge.unknowns}]


def _shown(
    pattern: Pattern,
    result: OperationResult,
    matches: Sequence[Match],
    find: FindMatches,
    truncated: bool,
) -> Operated:
    """Return the result with the facts of some of the targets that it rests on."""
    support = result.support[:SHOWN]
    at = _position(pattern, str(pattern.target))
    if len(support) < len(result.support) or any(not {*match.entities[at].tolist()} <= {*support} for match in matches):
        only = {str(pattern.target): np.unique(np.array(support, np.int32))}
        matches = nearest_matches(find(pattern, only)) if support else []
    shown = [(pattern, match) for match in matches]
    details = shown_details(result, truncated=truncated)
    return Operated(result.value, tuple(result.answers), shown, truncated, details)


def _position(pattern: Pattern, name: str) -> int:
    """Return the position of an unknown among the nodes of a pattern."""
    return next(at for at, node in enumerate(pattern.nodes) if isinstance(node, Unknown) and node.name == name)


def _compare(
    pattern: Pattern, operation: Operation, index: GraphIndex, find: FindMatches, rules: MatchRules
) -> Operated | None:
    """Compare what two unknowns are, each found by the part of the pattern that it stands in."""
    shown: list[tuple[Pattern, Match]] = []
    sides: list[list[int]] = []
    for name in operation.by:
        part = part_of(pattern, name)
        matches = nearest_matches(find(part))
        if _is_truncated(matches):
            raise _cut(operation.kind, matches, index.graph, rules)
        at = _position(part, name)
        sides.append([entity for match in matches for entity in match.entities[at].tolist()])
        shown += [(part, match) for match in matches]
    truth, support = compared(operation, sides, index.graph)
    if truth is None:
        return None
    return Operated(truth, (), shown, False, {"shown": len(support), "of": len(support)})
