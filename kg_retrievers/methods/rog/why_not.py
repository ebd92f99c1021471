"""What keeps an entity from being where a walk along a relation path ends.

Either no relation path leads to it: nothing joins it with the question's entities ("not_linked"), the proposer would
name one that does only if it might name longer ("too_far") or more ("pruned", by `beam_width`), or the graph lacks
facts ("no_such_edge"). Or one does, and its walks are left out ("excluded", "pruned"; see `walk_obstacles`), or their
Document is not among the first k ("outscored").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from kg_retrievers.algorithms.neighborhood import Neighborhood, neighborhood
from kg_retrievers.core.neighborhood_retriever import MAX_HOPS, BaseNeighborhoodRetriever
from kg_retrievers.core.obstacles import Lift, Obstacle, shown_fact
from kg_retrievers.core.rank_obstacles import document_rank_obstacle
from kg_retrievers.errors import RefusalError
from kg_retrievers.graph import KnowledgeGraph, Triple
from kg_retrievers.graph.adjacency import is_backward, relation_of
from kg_retrievers.graph.revisits import excludes_named
from kg_retrievers.methods.rog.following import Row, path_labels, revisits_of, starts_of
from kg_retrievers.methods.rog.missing_facts import (
    Missing,
    ends_by_hop,
    missing_facts,
    shortest_walk,
    starts_by_hop,
)
from kg_retrievers.methods.rog.walk_obstacles import Found, reading, shown, walk_obstacle

#: The stage that proposes relation paths, and the one that follows them.
PROPOSE, FOLLOW = "propose_relation_paths", "follow_relation_paths"

#: The most relation paths that are asked for, to see whether one beyond the beam leads to an entity.
WIDEST_BEAM = 100


class Asked(NamedTuple):
    """What a retriever was asked, and how.

    Attributes:
        named: By their ids, what each name of the question may mean.
        beam_width: As the field.
        max_hops: As the field.
        max_paths: As the field.
        propose: From another `beam_width` and `max_hops` to relation paths; None where a language model would be asked.
        follow: The last stage.
    """

    named: list[list[int]]
    beam_width: int
    max_hops: int
    max_paths: int
    propose: Callable[[int, int], list[dict[str, Any]]] | None
    follow: Callable[[Any], dict[str, Any]]


def find_obstacle(
    retriever: BaseNeighborhoodRetriever, entity: str, state: Mapping[str, Any], asked: Asked
) -> Obstacle | None:
    """Return the first thing that keeps an entity from being the end of a walk.

    Args:
        retriever: The retriever.
        entity: The key of the entity.
        state: What its stages wrote.
        asked: What else it was asked.
    """
    graph, rows = retriever.graph, state["relation_paths"]
    end = graph.entities.find(entity)
    if leading := _leading(graph, rows, asked.named, end):
        found = Found(graph, state, asked.named, leading, end, FOLLOW)
        return walk_obstacle(found, asked.max_paths) or document_rank_obstacle(
            retriever, entity, state, FOLLOW, asked.follow
        )
    around = neighborhood(graph.adjacency, retriever.entity_ids(state["seed_entities"]).astype(np.int32))
    at = np.flatnonzero(around.nodes == end)
    if not len(at):
        return _not_linked(graph, state, asked.named, end)
    hops = int(around.hops[at[0]])
    beyond = _beyond(graph, state, asked, end, hops)
    return beyond or _no_such_edge(graph, state, asked, end, around)


def _leading(graph: KnowledgeGraph, rows: Sequence[Row], named: Sequence[Sequence[int]], end: int) -> list[Row]:
    """Return the relation paths along which walks end at an entity, if they may return and cross a fact twice."""
    return [row for row in rows if any(_leads(graph, row, start, end) for start in starts_of(row, named))]


def _leads(graph: KnowledgeGraph, row: Row, start: int, end: int) -> bool:
    return bool((ends_by_hop(graph.adjacency, start, path_labels(graph, row))[-1] == end).any())


def _not_linked(
    graph: KnowledgeGraph, state: Mapping[str, Any], named: Sequence[Sequence[int]], end: int
) -> Obstacle | None:
    """Return the obstacle where no chain of facts leads to an entity."""
    seeds = ", ".join(repr(graph.label(key)) for key in state["seed_entities"])
    text = f"No chain of facts joins {graph.label(graph.entities[end])!r} with what the question names: {seeds}."
    for row in state["relation_paths"]:
        starts = starts_by_hop(graph.adjacency, end, path_labels(graph, row))[0]
        if len(starts := starts[starts != end]):
            start = graph.entities[int(starts[0])]
            rows = [{name: value for name, value in row.items() if name != "entity"}]
            text += f" The walk that the question is read to ask for leads there from {graph.label(start)!r}."
            lift = Lift(inputs=reading(state, rows, [start]))
            return Obstacle("not_linked", FOLLOW, text, lift, {"seed": start})
    obstacle = _no_such_edge_of_best(graph, state, named, end) or _no_fact_at_all(graph, state, end)
    return obstacle and Obstacle("not_linked", FOLLOW, text, obstacle.lift, obstacle.details)


def _beyond(graph: KnowledgeGraph, state: Mapping[str, Any], asked: Asked, end: int, hops: int) -> Obstacle | None:
    """Return the obstacle where a relation path that is longer or beyond the beam leads to an entity."""
    label, beam = repr(graph.label(graph.entities[end])), asked.beam_width
    if asked.propose is None or _proposed(asked, beam, asked.max_hops) != state["relation_paths"]:
        return None  # a caller gave them
    if asked.max_hops < hops <= MAX_HOPS:
        longer = _leading(graph, _proposed(asked, beam, hops), asked.named, end)
        text = f"{label} is {hops} facts away; relation paths have at most {asked.max_hops} relations (max_hops)."
        lift, details = Lift(fields={"max_hops": hops}), {"hops": hops, "max_hops": asked.max_hops}
        return Obstacle("too_far", PROPOSE, text, lift, details) if longer else None
    wide = _proposed(asked, WIDEST_BEAM, asked.max_hops) if beam < WIDEST_BEAM else []
    leading = _leading(graph, wide, asked.named, end)
    if not leading:
        return None
    rank = wide.index(dict(leading[0])) + 1
    width = next(width for width in (rank, WIDEST_BEAM) if _is_led_to(graph, asked, width, end))
    text = (
        f"Of the relation paths for the question, number {rank} is the first that leads to {label}: "
        f"{shown(leading[0])}. Only {beam} are followed (beam_width)."
    )
    return Obstacle("pruned", PROPOSE, text, Lift(fields={"beam_width": width}), {"rank": rank, "beam_width": beam})


def _is_led_to(graph: KnowledgeGraph, asked: Asked, width: int, end: int) -> bool:
    rows = _proposed(asked, width, asked.max_hops)
    return bool(_leading(graph, rows, asked.named, end))


def _proposed(asked: Asked, beam_width: int, max_hops: int) -> list[dict[str, Any]]:
    try:
        return asked.propose(beam_width, max_hops) if asked.propose else []
    except RefusalError:
        return []


def _no_such_edge(
    graph: KnowledgeGraph, state: Mapping[str, Any], asked: Asked, end: int, around: Neighborhood
) -> Obstacle | None:
    """Return the obstacle where the graph lacks facts; another relation path lifts it where no fact can."""
    if (obstacle := _no_such_edge_of_best(graph, state, asked.named, end)) is not None:
        return obstacle
    start, path = shortest_walk(graph.adjacency, around, end)
    if not path:
        return _no_fact_at_all(graph, state, end)
    steps = [[graph.relations[relation_of(one)], "backward" if is_backward(one) else "forward"] for one in path]
    row = {"relations": steps, "revisits": True}
    label = graph.label(graph.entities[end])
    text = f"No relation path of the question leads to {label!r}; {shown(row)} does."
    fields = {"max_hops": len(path)} if len(path) > asked.max_hops else {}
    lift = Lift(fields, reading(state, [row], [graph.entities[start]]))
    return Obstacle("no_such_edge", FOLLOW, text, lift, {"relation_path": steps})


def _no_fact_at_all(graph: KnowledgeGraph, state: Mapping[str, Any], end: int) -> Obstacle | None:
    """Return the obstacle where there is neither a relation path nor a chain of facts: any fact lifts it."""
    if not len(graph.relations):
        return None
    relation, seed, entity = graph.relations[0], state["seed_entities"][0], graph.entities[end]
    row = {"relations": [[relation, "forward"]], "revisits": True}
    text = f"No relation path of the question leads to {graph.label(entity)!r}, and no fact joins it with anything."
    lift = Lift(inputs=reading(state, [row]), facts=(Triple(seed, relation, entity),))
    return Obstacle("no_such_edge", FOLLOW, text, lift)


def _no_such_edge_of_best(
    graph: KnowledgeGraph, state: Mapping[str, Any], named: Sequence[Sequence[int]], end: int
) -> Obstacle | None:
    rows = state["relation_paths"]
    if not rows:
        return None
    excluded = excludes_named(state["masked_question"])
    labels, allowed = path_labels(graph, rows[0]), revisits_of(graph, rows, excluded=excluded)[0].allowed
    missing = missing_facts(graph, starts_of(rows[0], named), end, labels, may_return=allowed)
    if missing is None:
        return None
    details = {
        "relation_path": rows[0]["relations"],
        "start": graph.entities[missing.start],
        "hops": missing.hops,
        "missing": [list(fact) for fact in missing.facts],
    }
    lift = Lift(inputs=reading(state), facts=missing.facts)
    return Obstacle("no_such_edge", FOLLOW, _lacking(graph, rows[0], missing), lift, details)


def _lacking(graph: KnowledgeGraph, row: Row, missing: Missing) -> str:
    facts = "; ".join(shown_fact(graph, fact) for fact in missing.facts)
    start = repr(graph.label(graph.entities[missing.start]))
    return (
        f"The question is read to ask for walks from {start} along {shown(row)}. The one that comes nearest follows "
        f"{missing.hops} of its {len(row['relations'])} relations, and lacks: {facts}."
    )
