"""Find the exact top-k subgraphs by graph semantic distance (GSD) to a pattern.

Source: Y. Cai, Z. Guo, Y. Pei, W. Bian, W. Zheng: SimGRAG: Leveraging Similar Subgraphs for Knowledge Graphs Driven
Retrieval-Augmented Generation. Findings of ACL 2025, arXiv:2412.15272, sections 4.2, 4.3 and 5.

The paper's algorithm binds every pattern node to one entity at a time. Here an unknown node is carried as the *set* of
entities it may still be, so that all bindings of the unknowns that share one distance are one branch of the search and
come back as one match:

1. `layout`: the pattern is laid out as a tree from a known node. An edge that closes a cycle follows once both its ends
   are placed.
2. `bounds`: distances flow from the other known nodes towards the root (min-sum messages), an exact lower bound on
   trees.
3. `search`: branch and bound over the choices that cost something: the entity of a known node, the relation of an edge,
   and the type of a typed node. The cheapest bound comes first, cut at `bound >= k-th best`. Entities that lose their
   support leave their set, and the sets above. For each of the k best combinations the sets are then made
   arc-consistent (`complete`), which on a tree leaves exactly the bindings that occur in a match.
4. `solving`: if there are many candidates, all this is done among the nearest of them first.

An unknown node is bound to one entity at a time only if sets cannot be exact: at one end of an edge that closes a
cycle and at one end of an inequality between unknowns.
"""

from __future__ import annotations

import threading
from typing import Literal

import numpy as np

from kg_retrievers.algorithms.candidates import Candidates
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Adjacency
from kg_retrievers.methods.simgrag.matching.plan import INFINITE, SCALE, Match, MatchNode, MatchQuery, plan_query
from kg_retrievers.methods.simgrag.matching.solving import Limits, compile_search, find_matches, stopped_after

__all__ = ["MAX", "Candidates", "Match", "MatchNode", "MatchQuery", "match_pattern"]


#: The largest values of `k`, and of `max_bindings` and `max_scans`.
MAX_K, MAX = 1_000_000, 1 << 60


def match_pattern(
    adjacency: Adjacency,
    relations: int,
    query: MatchQuery,
    *,
    k: int = 1,
    distinct: Literal["known", "nodes", "none"] = "known",
    direction: Literal["ignore", "respect"] = "ignore",
    ties: Literal["merge", "break"] = "merge",
    max_distance: float = np.inf,
    max_bindings: int = 10_000,
    max_scans: int = 50_000_000,
    max_seconds: float | None = None,
) -> list[Match]:
    """Return the k matches with the smallest graph semantic distance, ascending.

    GSD = sum over known nodes of d(text, entity) + sum over known relations of d(text, relation) (equation 3 of the
    paper), plus, unlike in the paper, the distance of the type of each node that has one. Matches at equal distance
    come in the order of the search, which depends on the graph and the query alone.

    Cost: linear in the adjacency entries near the candidates for a pattern without cycles, and exponential in the
    number of unknown nodes on cycles. Compiled at the first call. Safe to call from any thread.

    Args:
        adjacency: The graph, both directions.
        relations: The number of its relations.
        query: The pattern by ids.
        k: How many matches, 1 or more.
        distinct: "known": no other node takes an entity that a known node takes. "nodes": all nodes take different
            entities (the paper's isomorphism). "none": walks may turn back. Stated inequalities always hold.
        direction: "ignore": a triple fits an edge either way (as in the paper). "respect": head to head, tail to tail.
        ties: "merge": all bindings of the unknowns that share their known entities, known relations and type distances
            are one match. "break": each binding is a match of its own (as in the paper).
        max_distance: Matches beyond are not returned.
        max_bindings: The most entities of one unknown node in one match. The lowest ids stay.
        max_scans: The most adjacency entries looked at, for finding the matches and again for completing each. This
            budget is deterministic.
        max_seconds: A budget of wall-clock time for finding the matches, not deterministic. None for no limit. Matches
            found by then are completed. Time to compile is not counted.

    Raises:
        InvalidArgumentError: If a value is out of range.
        SearchBudgetError: If a budget ends the search before anything is found.
    """
    for name, value, most in (("k", k, MAX_K), ("max_bindings", max_bindings, MAX), ("max_scans", max_scans, MAX)):
        if not 1 <= value <= most:
            raise InvalidArgumentError(f"match_pattern: {name} must be in 1 ... {most}, but got {value}.")
    if max_seconds is not None and not 0 < max_seconds <= threading.TIMEOUT_MAX:
        raise InvalidArgumentError(f"match_pattern: max_seconds must be above 0 and finite, but got {max_seconds}.")
    if not max_distance >= 0:
        raise InvalidArgumentError(f"match_pattern: max_distance must be 0 or more, but got {max_distance}.")
    empty = (node.entities is not None and not len(node.entities.ids) for node in query.nodes)
    if not len(adjacency.backward_triples) or any(empty):
        return []
    plan = plan_query(adjacency, relations, query, distinct, direction, ties)
    cost = int(min(max_distance * SCALE, INFINITE - 1)) + 1
    stop = np.zeros(1, np.int64)
    compile_search(adjacency, plan)  # takes long, and is not counted
    with stopped_after(max_seconds, stop):
        return find_matches(adjacency, plan, Limits(k, cost, max_bindings, max_scans, max_seconds), stop)
