"""Finds the k best combinations of a plan, among the nearest candidates first, and completes each in time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from kg_retrievers.errors import Hints, SearchBudgetError
from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.columns import Array
from kg_retrievers.methods.simgrag.matching import tally
from kg_retrievers.methods.simgrag.matching.complete import grouped
from kg_retrievers.methods.simgrag.matching.plan import (
    INFINITE,
    SCALE,
    Match,
    Plan,
    least_costs,
    most_candidates,
    restricted,
    sorted_by_id,
)
from kg_retrievers.methods.simgrag.matching.pointers import ProgressOf, Scratch, State, borrowed_scratch
from kg_retrievers.methods.simgrag.matching.search import run


@contextmanager
def stopped_after(seconds: float | None, stop: Array) -> Iterator[None]:
    """Set `stop` to 1 after so many seconds inside of the block. None for never.

    Example:
        >>> import numpy as np
        >>> stop = np.zeros(1, np.int64)
        >>> with stopped_after(0.001, stop):
        ...     while not stop[0]:
        ...         pass
    """
    if seconds is None:
        yield
        return
    timer = threading.Timer(seconds, stop.fill, (1,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


#: A node has so many candidates in the first round, and so many times as many in each further one.
FIRST_ROUND, WIDENING = 64, 8

#: A round may look at this share of the adjacency entries that the candidates have, and at so many in any case. If a
#: round finds nothing, nothing bounds it. A search among all candidates is better then.
ROUND_SHARE, LEAST_SCANS = 0.25, 10_000

#: How many items the buffers of a search take at first.
FIRST_CAPACITY = 1 << 15

#: The types of the adjacency arrays for which the search is compiled.
_COMPILED: set[tuple[np.dtype[Any], ...]] = set()

#: No combinations that are known before a search.
_NOTHING = np.zeros((0, 1), np.int64)


class Limits(NamedTuple):
    """The limits of a search's results and costs.

    Attributes:
        matches: How many matches.
        cost: Matches at this cost or above are left out.
        bindings: The most entities of one unknown node in one match.
        scans: The most adjacency entries to look at.
        seconds: The most seconds of wall-clock time.
    """

    matches: int
    cost: int
    bindings: int
    scans: int
    seconds: float | None = None


def double_budgets(scans: int, seconds: float | None) -> Hints:
    """Return the advice to double the budgets of a search. None knows which value is enough before a search."""
    doubled = [f"max_scans={2 * scans}", *([] if seconds is None else [f"max_seconds={2 * seconds:g}"])]
    return {
        "hint_python": f"Try twice as much, {', '.join(doubled)}, or name more in the pattern.",
        "hint_shell": "Try twice as much, or name more in the question: "
        + " ".join(f"--field {budget}" for budget in doubled),
    }


class _Round(NamedTuple):
    """A search among some of the candidates.

    Attributes:
        plan: The pattern, with these candidates.
        certain_below: Matches below this cost are the best of all.
        scans: The most adjacency entries to look at.
        given: Combinations that are known already: int64, costs and keys.
    """

    plan: Plan
    certain_below: int
    scans: int
    given: Array


def find_matches(adjacency: Adjacency, plan: Plan, limits: Limits, stop: Array) -> list[Match]:
    """Find the k best combinations and complete each.

    Many candidates are searched in rounds: the 64 nearest of each node first, then 8 times as many. The matches of a
    round bound the next one: a candidate that costs too much in addition to the cheapest ones of everything else is
    left out. The search ends once the best are certain. So the result, with its order, equals the result of a search
    among all candidates.

    Args:
        adjacency: The graph.
        plan: The pattern.
        limits: The limits of results and costs.
        stop: int64, shape (1). The search for the best ends soon after it is set to 1.

    Returns:
        The matches, ascending by distance.

    Raises:
        SearchBudgetError: If a budget ends the search before anything is found.
    """
    with borrowed_scratch() as scratch:
        width, left, given = FIRST_ROUND, limits, _NOTHING
        while True:
            around = _next_round(adjacency, plan, left, width, given)
            state, found = _search(adjacency, around, left, limits.scans, stop, scratch)
            if state.counts[tally.COMPLETED]:
                break
            given = np.column_stack([state.best_costs[:found], state.keys.reshape(limits.matches, -1)[:found]])
            if found == limits.matches:
                left = left._replace(cost=int(state.best_costs[found - 1]) + 1)
            left = left._replace(scans=max(left.scans - int(state.counts[tally.SCANS]), 1))
            width = INFINITE if state.counts[tally.STOPPED] else width * WIDENING
        matches = _matches(adjacency, around.plan, state, found)
    if state.counts[tally.STOPPED] and not matches:
        raise SearchBudgetError(
            f"match_pattern: a budget of {limits.scans:,} steps, or of time, ended the search before anything was "
            "found.",
            **double_budgets(limits.scans, limits.seconds),
        )
    return matches


def compile_search(adjacency: Adjacency, plan: Plan) -> None:
    """Compile the search for such arrays, unless it is compiled, by one that may look at nothing."""
    kinds = tuple(column.dtype for column in adjacency)
    if kinds in _COMPILED:
        return
    with borrowed_scratch() as scratch:
        around = _Round(sorted_by_id(plan), 0, 0, _NOTHING)
        _search(adjacency, around, Limits(1, 1, 1, 1), 1, np.zeros(1, np.int64), scratch)
    _COMPILED.add(kinds)


def _next_round(adjacency: Adjacency, plan: Plan, limits: Limits, width: int, given: Array) -> _Round:
    """Return a search among so many candidates of each node, if they cost little enough to be in a match."""
    if limits.cost >= INFINITE and most_candidates(plan) <= 2 * width:
        return _Round(sorted_by_id(plan), 2 * INFINITE, limits.scans, given)
    least = least_costs(plan)
    total = int(least[0].sum() + least[1][plan.term[plan.term >= 0]].sum())
    room = limits.cost - total
    if limits.cost < INFINITE:
        plan = restricted(plan, least[0] + room, least[1] + room)
    if most_candidates(plan) <= 2 * width:
        return _Round(sorted_by_id(plan), 2 * INFINITE, limits.scans, given)
    counts = np.diff(plan.starts)
    most, certain_below = least[0] + room, limits.cost
    for v in np.flatnonzero(counts > width).tolist():
        costs = plan.candidate_costs[plan.starts[v] : plan.starts[v + 1]]
        most[v], beyond = np.partition(costs, width)[[width - 1, width]] + np.array([1, 0])
        if beyond >= most[v]:
            certain_below = min(certain_below, total + int(beyond - least[0][v]))
        else:  # what costs the same is in, too
            certain_below = min(certain_below, total + int(most[v] - least[0][v]))
    scans = min(max(int(ROUND_SHARE * _entries_of(adjacency, plan.candidates)), LEAST_SCANS), limits.scans)
    return _Round(sorted_by_id(restricted(plan, most, least[1] + room)), certain_below, scans, given)


def _entries_of(adjacency: Adjacency, candidates: Array) -> int:
    """Return roughly how many adjacency entries some entities have, by counting the entries of a thousand of them."""
    some = candidates[:: max(len(candidates) // 1000, 1)]
    counted = int((adjacency.indptr[some + 1] - adjacency.indptr[some]).sum())
    return counted * len(candidates) // len(some)


def _search(
    adjacency: Adjacency, around: _Round, limits: Limits, scans_of_each: int, stop: Array, scratch: Scratch
) -> tuple[State, int]:
    """Run a search, in larger buffers if it outgrows them. Return its last state and how many it found."""
    capacity = FIRST_CAPACITY
    while True:
        state = _fresh_state(adjacency, around, limits, scans_of_each, stop, scratch, capacity)
        found = run(adjacency, around.plan, state)
        scratch.stamp = int(state.counts[tally.STAMP])
        if not state.counts[tally.FULL]:
            return state, found
        capacity *= 8


def _edge_steps(plan: Plan) -> list[int]:
    steps: list[int] = plan.edge.argsort(kind="stable")[plan.edge.tolist().count(-1) :].tolist()
    return steps


def _fresh_state(
    adjacency: Adjacency,
    around: _Round,
    limits: Limits,
    scans_of_each: int,
    stop: Array,
    scratch: Scratch,
    capacity: int,
) -> State:
    """Return the state in which a search begins. The arguments are as in `_search`."""
    plan, k = around.plan, limits.matches
    steps, nodes, size = plan.steps, plan.nodes, len(adjacency.indptr) - 1
    rows = sum((plan.closes if plan.eager else plan.informs).tolist())
    arrays = scratch.arrays(capacity, size, rows, nodes)
    counts = np.zeros(tally.COUNTS, np.int64)
    counts[tally.STAMP], counts[tally.MATCH], counts[tally.CAPACITY] = scratch.stamp, -1, scratch.capacity
    counts[tally.MAX_SCANS], counts[tally.SCANS_OF_EACH] = around.scans, scans_of_each
    counts[tally.MAX_BINDINGS], counts[tally.EDGES] = limits.bindings, steps - plan.edge.tolist().count(-1)
    counts[tally.CERTAIN_BELOW], counts[tally.GIVEN] = around.certain_below, len(around.given)
    of_steps, of_nodes = np.zeros((7, steps + 1), np.int64), np.zeros((10, nodes), np.int64)
    of_steps[1] = of_nodes[1] = -1  # free to choose
    keys, costs = np.empty(k * (steps + nodes), np.int64), np.empty(k + 1, np.int64)
    keys.fill(-1)
    costs.fill(limits.cost)
    slots = np.empty(plan.relations * max(plan.level_count, 1), np.int64)
    key_at_hand, best_costs, truncated = np.empty(steps + nodes, np.int64), np.empty(k, np.int64), np.zeros(k, np.int64)
    of_matches = (keys, costs, key_at_hand, best_costs, truncated, around.given.reshape(-1))
    sets = np.zeros((2, (steps + 1) * nodes), np.int64)
    parts: tuple[Any, ...] = (*of_steps, *of_nodes, *sets, *of_matches, counts, stop, slots, *arrays, k)
    return ProgressOf(*parts)


def _matches(adjacency: Adjacency, plan: Plan, state: State, found: int) -> list[Match]:
    """Read the matches from the state in which a search ended."""
    edge_steps, nodes, counts = _edge_steps(plan), plan.nodes, state.counts
    edges = len(edge_steps)
    entities = grouped(state.bindings[: counts[tally.BINDINGS]], found * nodes, len(adjacency.indptr) - 1)
    facts = grouped(state.facts[: counts[tally.FACTS]], found * edges, len(adjacency.backward_triples))
    keys = state.keys.reshape(len(state.best_costs), -1)
    matches, cut = [], bool(state.truncated[:found].any())
    for i, (cost, key) in enumerate(zip(state.best_costs[:found].tolist(), keys[:found].tolist(), strict=True)):
        of_nodes = tuple(entities[i * nodes : (i + 1) * nodes])
        of_edges = tuple(facts[i * edges : (i + 1) * edges])
        if all(map(len, of_nodes)):  # else the budget ended before anything was bound
            chosen = tuple(key[s] for s in edge_steps)
            matches.append(Match(cost / SCALE, of_nodes, of_edges, chosen, cut))
    return matches
