"""The operation of a pattern, over all bindings of its unknowns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from kg_retrievers.errors import Hints, SearchBudgetError
from kg_retrievers.graph import Pattern, Term
from kg_retrievers.graph.columns import Array, distinct
from kg_retrievers.index import GraphIndex
from kg_retrievers.methods.simgrag.matching import Match
from kg_retrievers.questions.fact_attributes import ValueIds, compared_with_values, result_with_values
from kg_retrievers.questions.operations import SHOWN, bound_by, part_of, whole_of

#: An operation shows the facts of so many equally near subgraphs, as of namesakes.
MAX_MATCHES = 64

#: Matches whose distances differ by less are equally near.
SAME_DISTANCE = 1e-6


class FindMatches(Protocol):
    """Finds the `MAX_MATCHES` nearest matches of a pattern without operation, the nearest first."""

    def __call__(self, part: Pattern, only: Mapping[str, Array] | None = None) -> list[Match]:
        """Find the matches. `only` gives the ids of the entities that some unknowns may be, by name."""


class Bind(Protocol):
    """Finds all bindings of some unknowns of a pattern."""

    def __call__(self, part: Pattern, wanted: Sequence[str], *, facts: bool = False) -> tuple[Array, bool]:
        """Return the combinations of some unknowns, by name, one row each, and whether a limit cut them.

        With `facts`, the ids of the facts of all triples follow in each row.
        """


class Search(NamedTuple):
    """How a retriever searches for a pattern without operation.

    Attributes:
        bind: Finds all bindings of some of its unknowns.
        find: Finds the facts around some of them.
        values: The ids of the values of attributes in these bindings.
        advice: The next step if a budget ends it.
    """

    bind: Bind
    find: FindMatches
    values: ValueIds
    advice: Hints


@dataclass(frozen=True)
class Operated:
    """The result of an operation, with the matches that show it.

    Attributes:
        value: Its result, see `Evidence.value`.
        answers: The ids of the entities that answer, the best first.
        matches: The matches that show it, of a sample of the targets if there are many: patterns without operation,
            each with a match.
        truncated: Whether a count may be higher.
        details: The number of targets whose facts are shown, and further details.
        alone: The ids of targets of a pattern without triples: they are evidence by themselves.
        facts: The ids of facts that show it, instead of matches, for a pattern with attributes.
    """

    value: Any
    answers: tuple[int, ...]
    matches: list[tuple[Pattern, Match]]
    details: dict[str, Any]
    truncated: bool = False
    alone: tuple[int, ...] = ()
    facts: tuple[int, ...] = ()


def operate(pattern: Pattern, index: GraphIndex, search: Search) -> Operated | None:
    """Apply the operation of a pattern, or return None if the graph does not hold its result.

    Args:
        pattern: The pattern.
        index: The graph and its values.
        search: Finds its bindings and their facts.

    Raises:
        SearchBudgetError: If its unknowns have too many combinations, or a limit ended the search, so that only a count
            is known, as "at least".
    """
    operation = pattern.operation
    assert operation is not None
    if operation.kind == "compare":
        return _compare(pattern, index, search)
    if operation.kind == "exists":
        rows, truncated = search.bind(pattern, [])
        exists = bool(len(rows))
        if truncated and not exists:
            raise _cut("exists", search.advice)
        if pattern.attributes:
            return Operated(exists, (), [], {}, facts=_facts(pattern, [], rows, search))
        matches = nearest_matches(search.find(_plain(pattern))) if exists and pattern.triples else []
        return Operated(exists, (), [(_plain(pattern), match) for match in matches], {})
    rows, truncated = search.bind(pattern, [*bound_by(pattern).values()])
    whole = None
    if operation.kind == "share":
        found, cut = search.bind(whole_of(pattern), [str(pattern.target)])
        whole, truncated = found[:, 0], truncated or cut
    if truncated and (operation.kind != "count" or operation.group or not len(rows)):
        raise _cut(operation.kind, search.advice)
    result = result_with_values(pattern, rows, search.values, whole)
    if result.value is None and not result.answers:
        return None
    support = np.unique(np.array(result.support[:SHOWN], np.int32))
    alone = tuple(support.tolist()) if pattern.alone else ()
    if pattern.attributes:
        facts = _facts(pattern, [bound_by(pattern)["target"]], support, search)
        details = result.shown_details(truncated=truncated)
        return Operated(result.value, tuple(result.answers), [], details, truncated, facts=facts)
    shown = _shown(pattern, bound_by(pattern)["target"], support, search) if len(support) and not alone else []
    details = result.shown_details(truncated=truncated)
    return Operated(result.value, tuple(result.answers), shown, details, truncated, alone)


def _cut(what: str, advice: Hints) -> SearchBudgetError:
    return SearchBudgetError(
        f"SimGRAGRetriever: a budget ended the search, so that {what!r} of all is not known.", **advice
    )


def _plain(pattern: Pattern) -> Pattern:
    return replace(pattern, operation=None)


def nearest_matches(matches: Sequence[Match]) -> list[Match]:
    """Return the matches that are as near as the nearest."""
    return [match for match in matches if match.distance <= matches[0].distance + SAME_DISTANCE]


def _shown(pattern: Pattern, name: str, entities: Array, search: Search) -> list[tuple[Pattern, Match]]:
    """Return the facts of some entities that an unknown may be, or none if a limit ends the search for them."""
    plain = _plain(pattern)
    try:
        return [(plain, match) for match in nearest_matches(search.find(plain, {name: entities}))]
    except SearchBudgetError:
        return []


def _facts(pattern: Pattern, names: Sequence[str], some: Array, search: Search) -> tuple[int, ...]:
    """Return the ids of the facts around some values of an unknown, in a pattern with attributes."""
    rows, _ = search.bind(_plain(pattern), names, facts=True)
    kept = np.isin(rows[:, 0], some) if names else slice(SHOWN)
    return tuple(dict.fromkeys(rows[kept, len(names) :].ravel().tolist()))


def _compare(pattern: Pattern, index: GraphIndex, search: Search) -> Operated | None:
    """Compare the values of two unknowns, each found by the part of the pattern that it stands in."""
    assert pattern.operation
    shown: list[tuple[Pattern, Match]] = []
    facts: tuple[int, ...] = ()
    sides: list[list[int]] = []
    for name in pattern.operation.by:
        part = part_of(pattern, name)
        found, truncated = search.bind(part, [name])
        if truncated:
            raise _cut("compare", search.advice)
        side = found[:, 0]
        sides.append(side.tolist())
        if part.attributes:
            facts += _facts(part, [name], side[:SHOWN], search)
        else:
            shown += _shown(part, name, side[:SHOWN].astype(np.int32), search) if len(side) else []
    truth, support = compared_with_values(pattern.operation, sides, search.values)
    if truth is None:
        return None
    return Operated(truth, (), shown, {"shown": len(support), "of": len(support)}, facts=facts)


def typed_by_matches(part: Pattern, find: FindMatches, advice: Hints) -> dict[Term, Array]:
    """Return the typed nodes' entities in a pattern's nearest matches, if no entity has the nearest types.

    Raises:
        SearchBudgetError: If a budget cut these matches.
    """
    matches = nearest_matches(find(_plain(part)))
    if any(match.truncated for match in matches) or len(matches) >= MAX_MATCHES:
        raise _cut(part.operation.kind if part.operation else "list", advice)
    found = dict[Term, Array]()
    for at, node in enumerate(part.nodes):
        if node.type is not None and matches:
            found[node] = distinct(np.concatenate([match.entities[at] for match in matches]))
    return found
