"""What keeps an entity from being a candidate of the graph network with a path in a Document.

No fact has it ("no_such_edge"), or none that the network looks at ("not_linked", "too_far", "pruned" by `max_nodes`).
The network never proposes an entity of the question ("excluded"), or others are likelier ("outscored", by `threshold`),
or too many are ("pruned", by `max_candidates`). No path of `max_hops` facts leads to the candidate ("too_far", or
"not_linked"). Or its Document is not among the first k ("outscored"). `max_paths` leaves no candidate without any path,
and no confidence is stated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from kg_retrievers.algorithms.neighborhood import Neighborhood
from kg_retrievers.core.neighborhood_retriever import BaseNeighborhoodRetriever
from kg_retrievers.core.obstacles import Lift, Obstacle
from kg_retrievers.core.rank_obstacles import document_rank_obstacle
from kg_retrievers.core.scope_obstacle import hops_to, scope_obstacle
from kg_retrievers.graph import Triple
from kg_retrievers.graph.columns import Array

#: The stage that scores candidates, and the one that extracts paths.
SCORE, EXTRACT = "score_candidates", "extract_paths"

#: What joins two entities in a graph without any fact.
ANY_RELATION = "related to"


class Cut(NamedTuple):
    """The fields that say how many of the likeliest entities are candidates."""

    threshold: float
    include_crossing: bool
    max_candidates: int


class Stages(NamedTuple):
    """The stages, to run them again.

    Attributes:
        score: From the state to the candidates.
        probabilities: From the state to the entities around those of the question, and how likely each is.
        extract: From the state to the Documents.
    """

    score: Callable[[Any], dict[str, Any]]
    probabilities: Callable[[Mapping[str, Any]], tuple[Neighborhood, Array]]
    extract: Callable[[Any], dict[str, Any]]


def find_obstacle(
    retriever: BaseNeighborhoodRetriever,
    entity: str,
    state: Mapping[str, Any],
    cut: Cut,
    stages: Stages,
    *,
    masks_seeds: bool,
) -> Obstacle | None:
    """Return the first thing that keeps an entity from being an answer.

    Args:
        retriever: The retriever.
        entity: The key of the entity.
        state: What its stages wrote.
        cut: How many candidates there are.
        stages: Its stages.
        masks_seeds: Whether the network never proposes an entity of the question.
    """
    if "candidates" not in state:
        return None
    if entity in dict(state["candidates"]["entities"]):
        without_path = _without_path(retriever, entity, state)
        return without_path or document_rank_obstacle(retriever, entity, state, EXTRACT, stages.extract)
    label = repr(retriever.graph.label(entity))
    if stages.score(state)["candidates"] != state["candidates"]:
        text = f"{label} is not among the candidates that were given."
        return Obstacle("outscored", SCORE, text, _as_candidate(state, entity))
    outside = scope_obstacle(retriever, entity, state["seed_entities"], SCORE, state["question"])
    if outside is not None:
        return replace(outside, lift=_linked(retriever, entity, state)) if outside.why == "not_linked" else outside
    near, probabilities = stages.probabilities(state)
    (node,) = retriever.entity_ids([entity])
    at = int(np.searchsorted(near.nodes, node))
    if masks_seeds and entity in state["seed_entities"] and not probabilities[at] > 0:
        text = f"{label} is an entity of the question, which the network was trained never to propose (mask_seeds)."
        return Obstacle("excluded", SCORE, text, _as_candidate(state, entity))
    return _outscored(label, entity, state, cut, probabilities, at)


def _outscored(label: str, entity: str, state: Mapping[str, Any], cut: Cut, probabilities: Array, at: int) -> Obstacle:
    """Return the obstacle where other entities are likelier."""
    order = np.argsort(-probabilities, kind="stable")
    falling, own = probabilities[order], float(probabilities[at])
    first, rank = int(np.count_nonzero(falling > own)), int(np.flatnonzero(order == at)[0]) + 1
    details = {"probability": own, "rank": rank, "entities": len(order)}
    likely = f"The network gives {label} the probability {own:.3g}, rank {rank} of {len(order)}"
    if not own > 0:
        text = f"{likely}, and proposes only what has any."
        return Obstacle("outscored", SCORE, text, _as_candidate(state, entity), details)
    sums = np.cumsum(falling[falling > 0])
    if not _is_in(sums, first, cut.threshold, cut.include_crossing):
        candidates = len(state["candidates"]["entities"])
        text = f"{likely}; the likeliest {candidates} are the candidates, by their sum (threshold {cut.threshold:g})."
        lift = _higher_threshold(sums, first, cut) or _as_candidate(state, entity)
        return Obstacle("outscored", SCORE, text, lift, details | {"threshold": cut.threshold})
    text = f"{likely}; at most {cut.max_candidates} are candidates (max_candidates)."
    lift = Lift(fields={"max_candidates": rank})
    return Obstacle("pruned", SCORE, text, lift, details | {"max_candidates": cut.max_candidates})


def _is_in(sums: Array, first: int, threshold: float, include_crossing: bool) -> bool:
    """Return whether an entity that `first` others are likelier than is a candidate, as `GNNRAGRetriever` counts.

    Args:
        sums: Of the likeliest 1, 2, 3, ... entities.
        first: How many entities are likelier.
        threshold: As the field.
        include_crossing: As the field.
    """
    return max(1, int(np.searchsorted(sums, threshold)) + include_crossing) > first


def _higher_threshold(sums: Array, first: int, cut: Cut) -> Lift | None:
    """Return the smallest threshold with which as many are candidates, at most 1; None where none is enough."""
    for include_crossing in dict.fromkeys((cut.include_crossing, True)):
        threshold = float(np.nextafter(sums[first - include_crossing], np.inf))
        fields = {"threshold": threshold} | (
            {} if include_crossing == cut.include_crossing else {"include_crossing": True}
        )
        if threshold <= 1 and _is_in(sums, first, threshold, include_crossing):
            return Lift(fields=fields)
    return None


def _as_candidate(state: Mapping[str, Any], entity: str) -> Lift:
    """Return the lift that makes an entity a candidate, the least likely one."""
    given = state["candidates"]
    least = min((probability for _, probability in given["entities"]), default=1.0)
    entities = [*map(list, given["entities"]), [entity, least]]
    return Lift(inputs=_as_read(state) | {"candidates": {**given, "entities": entities}})


def _as_read(state: Mapping[str, Any]) -> dict[str, Any]:
    return {"seed_entities": list(state["seed_entities"]), "masked_question": state["masked_question"]}


def _without_path(retriever: BaseNeighborhoodRetriever, entity: str, state: Mapping[str, Any]) -> Obstacle | None:
    """Return the obstacle where no path of `max_hops` facts leads to a candidate."""
    seeds, label, most = state["seed_entities"], repr(retriever.graph.label(entity)), retriever.max_hops
    hops, kept = _hops(retriever, seeds, entity), {"candidates": state["candidates"]}
    named = ", ".join(repr(retriever.graph.label(seed)) for seed in seeds)
    if hops is None:
        text = f"{label} is a candidate, but no chain of facts joins it with {named}."
        lift = _linked(retriever, entity, state)
        return Obstacle("not_linked", EXTRACT, text, replace(lift, inputs={**lift.inputs, **kept}))
    if most is None or hops <= most:
        return None
    text = f"{label} is a candidate, but the shortest path from {named} has {hops} facts; max_hops is {most}."
    lift = Lift({"max_hops": hops}, _as_read(state) | kept)
    return Obstacle("too_far", EXTRACT, text, lift, {"hops": hops})


def _hops(retriever: BaseNeighborhoodRetriever, seeds: Sequence[str], entity: str) -> int | None:
    """Return how many facts the shortest path to an entity has; from an entity of the question, back to itself."""
    hops = hops_to(retriever, seeds, entity)
    if hops != 0:
        return hops
    adjacency, node = retriever.graph.adjacency, retriever.graph.entities.find(entity)
    neighbors = adjacency.neighbors[adjacency.row(node)]
    back = None if not len(neighbors) else 1 if (neighbors == node).any() else 2
    others = [seed for seed in seeds if seed != entity]
    lengths = [back, _hops(retriever, others, entity) if others else None]
    return min((length for length in lengths if length is not None), default=None)


def _linked(retriever: BaseNeighborhoodRetriever, entity: str, state: Mapping[str, Any]) -> Lift:
    """Return the lift that names an entity beside the one asked for; a fact where there is none."""
    graph, seeds = retriever.graph, state["seed_entities"]
    facts = (*graph.triples(head=entity), *graph.triples(tail=entity))
    beside = next((end for head, _, tail in facts for end in (head, tail) if end != entity), None)
    if beside is not None:
        return Lift(inputs={"seed_entities": [*seeds, beside]})
    relation = graph.relations[0] if len(graph.relations) else ANY_RELATION
    fact = Triple(seeds[0], relation, entity)
    return Lift(inputs={"seed_entities": list(seeds)}, facts=(fact,))
