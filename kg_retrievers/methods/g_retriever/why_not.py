"""What keeps an entity out of the subgraphs that collect the most prizes.

The reasons: "not_linked" and "too_far" (out of the neighborhood, or of the walk that gives the prizes), "no_such_edge"
(no fact has it), "pruned" (by `max_nodes` or `max_triples`), "outscored" (in a later subgraph, by `k`, or in
none of those that are looked at) and "excluded":
it stands alone (`lone_entities`), its relations get no prize (`k_relations`, or `ranked_relations` that a caller gave),
or one that is no more than an edge costs (`edge_cost`). The last two come with the paper's rules for prizes alone: with
`prizes="paths"` the best edge left always pays. The method states no confidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from kg_retrievers.core.neighborhood_retriever import BaseNeighborhoodRetriever
from kg_retrievers.core.obstacles import Lift, Obstacle
from kg_retrievers.core.scope_obstacle import hops_to, scope_obstacle
from kg_retrievers.graph import Evidence, Triple
from kg_retrievers.graph.facts import lone_entities_of
from kg_retrievers.graph.verbalize import readable
from kg_retrievers.methods.g_retriever.prizes import STEP

#: The stage that solves.
STAGE = "solve_pcst"

#: More triples than a graph has.
UNCUT = 1 << 62

#: How many subgraphs are looked at beyond the first k; of 130,000 triples, each takes 0.2 s to solve.
LOOKED_AT = 30


class Rules(NamedTuple):
    """The fields of the retriever that decide, and what they lead to.

    Attributes:
        k_nodes: How many named entities get a prize.
        k_relations: How many relations get one.
        edge_cost: What an edge costs.
        prizes: The rule for the prizes of edges.
        lone_entities: Whether an entity alone is evidence.
        longest_walk: How many triples the walk takes that gives prizes by paths.
        solve: Yields all subgraphs, best first, with some fields changed.
    """

    k_nodes: int
    k_relations: int
    edge_cost: float
    prizes: str
    lone_entities: bool
    longest_walk: int
    solve: Callable[[Mapping[str, Any]], Iterable[Evidence]]


class _Case(NamedTuple):
    retriever: BaseNeighborhoodRetriever
    entity: str
    state: Mapping[str, Any]
    rules: Rules

    @property
    def label(self) -> str:
        return self.retriever.graph.label(self.entity)

    @property
    def starts(self) -> list[str]:
        """The entities that get prizes and that the walk starts at."""
        named = [key for key, _ in self.state["ranked_entities"]][: self.rules.k_nodes]
        return list(self.state.get("seed_entities") or named)

    @property
    def looked_at(self) -> int:
        """How many subgraphs are looked at."""
        return int(self.state["k"]) + LOOKED_AT

    def first(self, fields: Mapping[str, Any]) -> list[Evidence]:
        """Return the subgraphs that are looked at, with some fields changed."""
        return list(islice(self.rules.solve(fields), self.looked_at))

    def rank(self, subgraphs: Sequence[Evidence]) -> int | None:
        """Return the rank of the first Document with the entity among all that some subgraphs give."""
        if self.retriever.granularity == "subgraph":
            ranks = (rank for rank, item in enumerate(subgraphs, 1) if self.entity in _entities(item))
            return next(ranks, None)
        seen: set[object] = set()
        for item in subgraphs:
            for part in item.triples or [tuple(lone_entities_of(item))]:
                seen.add(part)
                if self.entity in (part if not isinstance(part, Triple) else (part.head, part.tail)):
                    return len(seen)
        return None


def find_obstacle(
    retriever: BaseNeighborhoodRetriever, entity: str, state: Mapping[str, Any], rules: Rules
) -> Obstacle | None:
    """Return the first thing that keeps an entity out of the first `k` subgraphs or facts.

    Args:
        retriever: The retriever.
        entity: The key of the entity.
        state: What its stages wrote.
        rules: The fields that decide.

    Cost: as many solutions as `k` and `LOOKED_AT` say, up to three times.
    """
    case = _Case(retriever, entity, state, rules)
    scope = scope_obstacle(retriever, entity, case.starts, STAGE, state["question"])
    if scope is not None and (entity not in case.starts or scope.why == "pruned"):
        return scope
    found = case.first({})
    return _cut(case, found) or _later(case, found) or _alone(case) or scope or _without_prize(case)


def _entities(item: Evidence) -> set[str]:
    return {end for fact in item.triples for end in (fact.head, fact.tail)} | set(lone_entities_of(item))


def _cut(case: _Case, found: Sequence[Evidence]) -> Obstacle | None:
    """Return the obstacle of an entity that `max_triples` cuts off a subgraph."""
    if not any(item.truncated for item in found):
        return None
    whole = case.first({"max_triples": UNCUT})
    rank = case.rank(whole)
    if rank is None or (rank > case.state["k"] and case.rank(found) is not None):
        return None
    size = max(len(item.triples) for item in whole[:rank])
    text = (
        f"{case.label!r} is in subgraph number {rank}, but cut off: of the first {rank}, one has {size} facts, and "
        "those with the lowest prizes are left out (max_triples)."
    )
    return Obstacle("pruned", STAGE, text, Lift(fields={"max_triples": size}), {"subgraph": rank, "facts": size})


def _later(case: _Case, found: Sequence[Evidence]) -> Obstacle | None:
    """Return the obstacle of an entity that comes with a later subgraph, or with none of those that are looked at."""
    rank, k = case.rank(found), case.state["k"]
    if rank is None:
        return _not_among(case, found) if len(found) == case.looked_at else None
    number, item = next((number, item) for number, item in enumerate(found, 1) if case.entity in _entities(item))
    what = "subgraph" if case.retriever.granularity == "subgraph" else "fact"
    text = (
        f"{case.label!r} comes with subgraph number {number}, which is worth {item.score:.3g}; the first is worth "
        f"{found[0].score:.3g}. k is {k}, and it is in {what} number {rank}."
    )
    details = {"rank": rank, "subgraph": number, "considered": len(found), "score": item.score, "k": k}
    return Obstacle("outscored", STAGE, text, Lift(inputs={"k": rank}), {**details, "best_score": found[0].score})


def _not_among(case: _Case, found: Sequence[Evidence]) -> Obstacle:
    """Return the obstacle of an entity that is worth so little that no subgraph that is looked at has it."""
    first, last = found[0].score, found[-1].score
    text = (
        f"{case.label!r} is in none of the first {len(found)} subgraphs, which are worth {first:.3g} to {last:.3g}. "
        "As an entity of the question it would have a prize of its own."
    )
    details = {"considered": len(found), "best_score": first, "last_score": last}
    return Obstacle("outscored", STAGE, text, Lift(inputs={"seed_entities": [*case.starts, case.entity]}), details)


def _alone(case: _Case) -> Obstacle | None:
    """Return the obstacle of an entity with a prize that no edge at it is worth its cost to."""
    if case.rules.lone_entities or case.rank(case.first({"lone_entities": True})) is None:
        return None
    text = (
        f"{case.label!r} has a prize of its own, but no fact with it is worth what an edge costs; an entity alone is "
        "no evidence (lone_entities)."
    )
    return Obstacle("excluded", STAGE, text, Lift(fields={"lone_entities": True}))


def _without_prize(case: _Case) -> Obstacle | None:
    """Return the obstacle of an entity that no prize reaches."""
    return _unwalked(case) if case.rules.prizes == "paths" else _unprized(case)


def _unwalked(case: _Case) -> Obstacle | None:
    """Return the obstacle of an entity that the walk from the entities with prizes does not reach."""
    retriever, starts = case.retriever, case.starts
    hops = hops_to(retriever, starts, case.entity) if starts else None
    named = ", ".join(repr(retriever.graph.label(start)) for start in starts)
    if hops is None:
        text = f"No chain of facts joins {case.label!r} with the entities that resemble the question: {named}."
        seeds = [*(case.state.get("seed_entities") or ()), case.entity]
        return Obstacle("not_linked", STAGE, text, Lift(inputs={"seed_entities": seeds}))
    if hops <= case.rules.longest_walk:
        return None
    text = (
        f"{case.label!r} is {hops} facts away from {named}; the walk that gives the prizes takes "
        f"{case.rules.longest_walk} (max_hops)."
    )
    return Obstacle("too_far", STAGE, text, Lift(fields={"max_hops": hops}), {"hops": hops})


def _unprized(case: _Case) -> Obstacle | None:
    """Return the obstacle of an entity whose relations get no prize, or one that no edge is worth its cost for."""
    retriever, rules, graph = case.retriever, case.rules, case.retriever.graph
    scope, _ = retriever.triples_in_scope(case.state.get("seed_entities") or [])
    edges = graph.edges[scope]
    (node,) = retriever.entity_ids([case.entity])
    at_entity = {graph.relations[id] for id in np.unique(edges[(edges[:, [0, 2]] == node).any(1), 1]).tolist()}
    in_scope = {graph.relations[id] for id in np.unique(edges[:, 1]).tolist()}
    ranked = [name for name, _ in case.state["ranked_relations"] if name in in_scope]
    rank = next((rank for rank, name in enumerate(ranked, 1) if name in at_entity), None)
    if rank is None:
        return _unranked(case, at_entity)
    what = f"the relations of {case.label!r}, the one nearest to the question is {readable(ranked[rank - 1])!r}"
    details = {"relation": ranked[rank - 1], "rank": rank}
    if rank > rules.k_relations:
        text = f"Of {what}: number {rank}, and the first {rules.k_relations} get a prize (k_relations)."
        return Obstacle("excluded", STAGE, text, Lift(fields={"k_relations": rank}), details)
    prize = rules.k_relations - rank + 1
    if rules.prizes != "paper" or prize > rules.edge_cost:
        return None
    text = f"Of {what}: its prize is {prize}, and an edge costs {rules.edge_cost:g} (edge_cost)."
    lift = Lift(fields={"edge_cost": prize * (1 - STEP)})
    return Obstacle("excluded", STAGE, text, lift, {**details, "prize": prize, "edge_cost": rules.edge_cost})


def _unranked(case: _Case, at_entity: set[str]) -> Obstacle | None:
    """Return the obstacle of an entity none of whose relations is among those that are ranked."""
    index, graph = case.retriever.index, case.retriever.graph
    near = index.nearest_relations([case.state["question"]], len(graph.relations))[0]
    pairs = zip(near.ids.tolist(), near.distances.tolist(), strict=True)
    rows = [[graph.relations[id], 1 - distance**2 / 2] for id, distance in pairs if graph.relations[id] in at_entity]
    if not rows:
        return None
    given = case.state["ranked_relations"]
    text = (
        f"None of the relations of {case.label!r} is among the {len(given)} that are ranked for a prize "
        f"(ranked_relations); the nearest to the question is {readable(rows[0][0])!r}."
    )
    lift = Lift(inputs={"ranked_relations": [*given, rows[0]]})
    return Obstacle("excluded", STAGE, text, lift, {"relation": rows[0][0], "similarity": rows[0][1]})
