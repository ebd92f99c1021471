"""An entity that a method over a neighborhood never looks at: too far from the question's entities, or cut off."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kg_retrievers.algorithms.neighborhood import Neighborhood, neighborhood
from kg_retrievers.core.neighborhood_retriever import BaseNeighborhoodRetriever
from kg_retrievers.core.obstacles import Lift, Obstacle


def scope_obstacle(
    retriever: BaseNeighborhoodRetriever, entity: str, seeds: Sequence[str], stage: str
) -> Obstacle | None:
    """Return what keeps an entity out of the neighborhood of the question's entities; None where it is in.

    Args:
        retriever: The retriever; with the scope of a whole graph, everything is in.
        entity: Its key.
        seeds: The keys of the question's entities, one or more.
        stage: The stage that cuts out the neighborhood.

    Cost: one search of all that the seeds lead to.
    """
    if retriever.scope == "graph":
        return None
    (node,) = retriever.entity_ids([entity])
    if node in retriever.neighborhood(seeds).nodes:
        return None
    ids, label = retriever.entity_ids(seeds).astype(np.int32), retriever.graph.label
    everything = neighborhood(retriever.graph.adjacency, ids)
    hops, named = _hops(everything, int(node)), ", ".join(repr(label(seed)) for seed in seeds)
    if hops is None:
        text = f"No chain of facts joins {label(entity)!r} with what the question is read to name: {named}."
        return Obstacle("not_linked", stage, text, Lift(inputs={"seed_entities": [*seeds, entity]}))
    if retriever.max_hops is not None and hops > retriever.max_hops:
        text = f"{label(entity)!r} is {hops} facts away from {named}; max_hops is {retriever.max_hops}."
        return Obstacle("too_far", stage, text, Lift(fields={"max_hops": hops}), {"hops": hops})
    text = (
        f"{label(entity)!r} is within {hops} facts of {named}, but not among the {retriever.max_nodes} entities with "
        "the highest PageRank around them (max_nodes)."
    )
    return Obstacle(
        "pruned", stage, text, Lift(fields={"max_nodes": None}), {"hops": hops, "max_nodes": retriever.max_nodes}
    )


def _hops(around: Neighborhood, node: int) -> int | None:
    at = np.flatnonzero(around.nodes == node)
    return int(around.hops[at[0]]) if len(at) else None
