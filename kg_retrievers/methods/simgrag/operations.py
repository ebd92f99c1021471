"""The operation of a pattern, over all bindings of the nearest subgraphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from kg_retrievers.algorithms.bindings import Edge, joined_bindings
from kg_retrievers.errors import SearchBudgetError
from kg_retrievers.graph import KnowledgeGraph, Pattern, Term, Unknown
from kg_retrievers.graph.operations import Condition, Operation
from kg_retrievers.index import GraphIndex
from kg_retrievers.methods.simgrag.matching import Match
from kg_retrievers.patterns.allowed_entities import value_columns
from kg_retrievers.patterns.operation_parts import part_of
from kg_retrievers.patterns.operation_results import OperationResult, chosen_result, compared, count_result

#: From a pattern without operation to its matches, the nearest first.
FindMatches: TypeAlias = Callable[[Pattern], list[Match]]

#: Of how many targets the facts are shown.
SHOWN = 20

#: Matches whose distances differ by less are equally near.
SAME_DISTANCE = 1e-6


@dataclass(frozen=True)
class Operated:
    """What an operation gives, with the matches that show it.

    Attributes:
        value: What it gives; see `Evidence.value`.
        answers: The ids of the entities that answer, the best first.
        matches: What shows it, of a sample of the targets where there are many: patterns without operation, with a match.
        truncated: Whether a count may be higher.
        details: Of how many targets the facts are shown, and what else is to be said.
    """

    value: Any
    answers: tuple[int, ...]
    matches: list[tuple[Pattern, Match]]
    truncated: bool
    details: dict[str, Any]


def operate(pattern: Pattern, index: GraphIndex, find: FindMatches) -> Operated | None:
    """Apply the operation of a pattern; None where nothing in the graph says what it gives.

    Args:
        pattern: The pattern.
        index: The graph and its values.
        find: Finds the matches of a pattern.

    Raises:
        SearchBudgetError: If a budget cut the matches, so that only a count is known, as "at least".
    """
    operation = pattern.operation
    assert operation is not None
    plain = replace(pattern, operation=None)
    if operation.kind == "compare":
        return _compare(plain, operation, index, find)
    matches = _nearest(find(plain))
    truncated = any(match.truncated for match in matches)
    if operation.kind == "exists":
        shown = [(plain, match) for match in matches[:1]]
        return Operated(bool(matches), (), shown, False, {})
    if truncated and operation.kind != "count":
        raise SearchBudgetError(
            f"The search ended before all of {pattern.target!r} were found, so that {operation.kind!r} is not known. "
            "Raise max_bindings or max_scans."
        )
    result = _result(plain, operation, matches, index)
    if operation.kind != "count" and not result.answers:
        return None
    return _shown(plain, result, matches, index.graph, find, truncated)


def _nearest(matches: Sequence[Match]) -> list[Match]:
    return [match for match in matches if match.distance < matches[0].distance + SAME_DISTANCE]


def _result(pattern: Pattern, operation: Operation, matches: Sequence[Match], index: GraphIndex) -> OperationResult:
    nodes = [node.name if isinstance(node, Unknown) else "" for node in pattern.nodes]
    target = nodes.index(str(pattern.target))
    if not operation.by:
        found = (entity for match in matches for entity in match.entities[target].tolist())
        result = count_result(found)
        return result if operation.kind == "count" else result._replace(answers=result.support, value=None)
    by = nodes.index(operation.by[0])
    bindings = {row for match in matches for row in _bindings(pattern, match, [target, by], index.graph)}
    pairs = ((row[0], row[1]) for row in bindings)
    return chosen_result(operation, pairs, index.graph, value_columns(index))


def _bindings(pattern: Pattern, match: Match, wanted: Sequence[int], graph: KnowledgeGraph) -> set[tuple[int, ...]]:
    """Return what some nodes are together in a match."""
    position = {node: at for at, node in enumerate(pattern.nodes)}
    edges = []
    for (head, _, tail), triples in zip(pattern.triples, match.triples, strict=True):
        ends = [set(match.entities[position[node]].tolist()) for node in (head, tail)]
        facts = graph.edges[triples][:, [0, 2]].tolist()
        edges.append(Edge(position[head], position[tail], list(_oriented(facts, *ends))))
    different = [(position[one], position[other]) for one, other in pattern.different]
    return joined_bindings(_of_component(edges, wanted), wanted, different)


def _oriented(facts: Iterable[list[int]], heads: set[int], tails: set[int]) -> Iterable[tuple[int, int]]:
    """Yield the ends of facts as those of an edge; both ways round where both fit."""
    for one, other in facts:
        if one in heads and other in tails:
            yield one, other
        if other in heads and one in tails:
            yield other, one


def _of_component(edges: Sequence[Edge], wanted: Sequence[int]) -> list[Edge]:
    """Return the edges that are joined to some nodes."""
    reached, before = set(wanted), 0
    while len(reached) > before:
        before = len(reached)
        reached |= {node for edge in edges if reached & {edge.head, edge.tail} for node in (edge.head, edge.tail)}
    return [edge for edge in edges if edge.head in reached]


def _shown(
    pattern: Pattern,
    result: OperationResult,
    matches: Sequence[Match],
    graph: KnowledgeGraph,
    find: FindMatches,
    truncated: bool,
) -> Operated:
    """Return the result with the facts of some of the targets that it rests on."""
    support = result.support[:SHOWN]
    if len(support) < len(result.support) or _has_more(pattern, matches, support):
        keys = tuple(graph.entities[entity] for entity in support)
        condition = Condition(str(pattern.target), "in", keys)
        matches = _nearest(find(replace(pattern, conditions=(*pattern.conditions, condition)))) if keys else []
    details: dict[str, Any] = {"shown": len(support), "of": len(result.support)}
    details |= {"without_value": result.without} if result.without else {}
    details |= {"at_least": True} if truncated else {}
    shown = [(pattern, match) for match in matches]
    return Operated(result.value, tuple(result.answers), shown, truncated, details)


def _has_more(pattern: Pattern, matches: Sequence[Match], support: Sequence[int]) -> bool:
    """Return whether matches hold targets beside some."""
    target = next(at for at, node in enumerate(pattern.nodes) if _names(node, str(pattern.target)))
    return any(not {*match.entities[target].tolist()} <= {*support} for match in matches)


def _names(node: Term, name: str) -> bool:
    return isinstance(node, Unknown) and node.name == name


def _compare(pattern: Pattern, operation: Operation, index: GraphIndex, find: FindMatches) -> Operated | None:
    """Compare what two unknowns are, each found by the part of the pattern that it stands in."""
    shown: list[tuple[Pattern, Match]] = []
    sides: list[list[int]] = []
    for name in operation.by:
        part = part_of(pattern, name)
        matches = _nearest(find(part))
        if any(match.truncated for match in matches):
            raise SearchBudgetError(
                f"The search ended before all of {name!r} were found. Raise max_bindings or max_scans."
            )
        at = next(at for at, node in enumerate(part.nodes) if _names(node, name))
        sides.append([entity for match in matches for entity in match.entities[at].tolist()])
        shown += [(part, match) for match in matches]
    truth, support = compared(operation, sides, index.graph)
    if truth is None:
        return None
    return Operated(truth, (), shown, False, {"shown": len(support), "of": len(support)})
