"""An entity that a method over a neighborhood never looks at: no fact has it, or it is too far away, or cut off."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kg_retrievers.algorithms.neighborhood import neighborhood
from kg_retrievers.core.neighborhood_retriever import BaseNeighborhoodRetriever
from kg_retrievers.core.obstacles import Lift, Obstacle
from kg_retrievers.graph import Triple


def scope_obstacle(
    retriever: BaseNeighborhoodRetriever, entity: str, seeds: Sequence[str], stage: str, question: str = ""
) -> Obstacle | None:
    """Return what keeps an entity out of the facts that a method looks at; None where one of them has it.

    Args:
        retriever: The retriever; with the scope of a whole graph, it looks at all facts.
        entity: Its key.
        seeds: The keys of the question's entities; one or more, unless the scope is the whole graph.
        stage: The stage that cuts out the neighborhood.
        question: The question; of an entity without facts, the relation nearest to it is the one that is lacking.

    Cost: one search of all that the seeds lead to.
    """
    (node,) = retriever.entity_ids([entity])
    row = retriever.graph.adjacency.row(int(node))
    if row.start == row.stop:
        return _without_facts(retriever, entity, seeds, stage, question)
    if retriever.scope == "graph":
        return None
    within = retriever.neighborhood(seeds)
    if (retriever.graph.edges[within.triples][:, [0, 2]] == node).any():
        return None
    hops = hops_to(retriever, seeds, entity)
    if hops is None:
        return _unconnected(retriever, entity, seeds, stage)
    if retriever.max_hops is not None and hops > retriever.max_hops:
        text = (
            f"{retriever.graph.label(entity)!r} is {hops} facts away from {_named(retriever, seeds)}; max_hops is "
            f"{retriever.max_hops}."
        )
        return Obstacle("too_far", stage, text, Lift(fields={"max_hops": hops}), {"hops": hops})
    return cut_off(retriever, entity, seeds, stage, hops)


def cut_off(retriever: BaseNeighborhoodRetriever, entity: str, seeds: Sequence[str], stage: str, hops: int) -> Obstacle:
    """Return the obstacle of an entity that is near enough, but cut off since there are too many."""
    text = (
        f"{retriever.graph.label(entity)!r} is within {hops} facts of {_named(retriever, seeds)}, but it, or what "
        f"joins it with them, is not among the {retriever.max_nodes} entities with the highest PageRank around them "
        "(max_nodes)."
    )
    details = {"hops": hops, "max_nodes": retriever.max_nodes}
    return Obstacle("pruned", stage, text, Lift(fields={"max_nodes": None}), details)


def _unconnected(retriever: BaseNeighborhoodRetriever, entity: str, seeds: Sequence[str], stage: str) -> Obstacle:
    facts = "facts that were fetched" if retriever.index.is_part else "facts"
    label = retriever.graph.label(entity)
    text = f"No chain of {facts} joins {label!r} with what the question is read to name: {_named(retriever, seeds)}."
    return Obstacle("not_linked", stage, text, Lift(inputs={"seed_entities": [*seeds, entity]}))


def _without_facts(
    retriever: BaseNeighborhoodRetriever, entity: str, seeds: Sequence[str], stage: str, question: str
) -> Obstacle | None:
    """Return the obstacle of an entity that no fact has; what lifts it is a fact with the first of the seeds."""
    graph = retriever.graph
    if not len(graph.relations):
        return None
    near = retriever.index.nearest_relations([question], 1)[0].ids if question else [0]
    fact = Triple(seeds[0] if seeds else entity, graph.relations[int(near[0])], entity)
    text = f"No fact of the graph has {graph.label(entity)!r}."
    return Obstacle("no_such_edge", stage, text, Lift(facts=(fact,)))


def _named(retriever: BaseNeighborhoodRetriever, seeds: Sequence[str]) -> str:
    return ", ".join(repr(retriever.graph.label(seed)) for seed in seeds)


def hops_to(retriever: BaseNeighborhoodRetriever, seeds: Sequence[str], entity: str) -> int | None:
    """Return how many facts an entity is away from the nearest of some; None where no chain of facts leads there."""
    around = neighborhood(retriever.graph.adjacency, retriever.entity_ids(seeds).astype(np.int32))
    at = np.flatnonzero(around.nodes == retriever.entity_ids([entity])[0])
    return int(around.hops[at[0]]) if len(at) else None
