"""What leaves out the walks that end at an entity, along relation paths that lead there.

They would return or cross a fact twice, or the question names several entities and not all lead there ("excluded"); or
they are more than `max_paths` or than are looked at ("pruned").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from kg_retrievers.core.obstacles import Lift, Obstacle
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.revisits import excludes_named
from kg_retrievers.methods.rog.following import (
    MAX_WALKS,
    Row,
    Walked,
    common_ends,
    follow_relation_paths,
    may_at_last,
    path_labels,
    revisits_of,
    starts_of,
    walk,
)
from kg_retrievers.methods.rog.missing_facts import ends_by_hop, starts_by_hop

#: What of a relation path its reader states, and whoever gives it does not.
_OF_READING = frozenset({"confidence", "unplaced", "nearest", "lacking"})


class Found(NamedTuple):
    """An entity to which relation paths lead.

    Attributes:
        graph: The graph.
        state: What the stages wrote.
        named: By their ids, what each name of the question may mean.
        leading: The relation paths that lead to the entity.
        end: The id of the entity.
        stage: The stage that follows relation paths.
    """

    graph: KnowledgeGraph
    state: Mapping[str, Any]
    named: Sequence[Sequence[int]]
    leading: Sequence[Row]
    end: int
    stage: str

    @property
    def label(self) -> str:
        """What the entity is called, in quotes."""
        return repr(self.graph.label(self.graph.entities[self.end]))


def reading(
    state: Mapping[str, Any], rows: Sequence[Row] | None = None, seeds: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the arguments of `invoke` by which a question is read as it was, or with other paths or entities."""
    rows = state["relation_paths"] if rows is None else rows
    return {
        "seed_entities": list(state["seed_entities"] if seeds is None else seeds),
        "masked_question": state["masked_question"],
        "relation_paths": [{name: value for name, value in row.items() if name not in _OF_READING} for row in rows],
    }


def shown(row: Row) -> str:
    """Return a relation path in words."""
    steps = row["relations"]
    return ", ".join(name if way == "forward" else f"{name} ({way})" for name, way in steps)


def walk_obstacle(found: Found, max_paths: int) -> Obstacle | None:
    """Return what leaves out the walks that end at an entity; None where nothing does.

    Args:
        found: The entity.
        max_paths: As the field.
    """
    walked = _walks_in_use(found, max_paths)
    ending = [one for one in walked if (one.ends == found.end).any()]
    if not ending:
        return _returning(found) or _too_many(found)
    common = common_ends(walked, found.named) if len(found.named) > 1 else np.empty(0, np.int32)
    if len(common) and found.end not in common:
        return _not_common(found, ending[0])
    return _beyond_max_paths(found, walked, common, max_paths)


def _walks_in_use(found: Found, max_paths: int) -> list[Walked]:
    """Return the walks along each relation path, as they are followed."""
    graph, rows = found.graph, found.state["relation_paths"]
    excluded = excludes_named(found.state["masked_question"])
    followed = follow_relation_paths(graph, rows, found.named, excluded=excluded, max_paths=max_paths)
    widened = followed.details.get("widened", False)
    decisions = revisits_of(graph, rows, excluded=excluded)
    may = [may_at_last(decision) if widened else decision.allowed for decision in decisions]
    return [walk(graph, row, found.named, allowed) for row, allowed in zip(rows, may, strict=True)]


def _returning(found: Found) -> Obstacle | None:
    """Return the obstacle where only walks that return or cross a fact twice end at the entity."""
    row = next((row for row in found.leading if _ends(found, row, may_return=True)), None)
    if row is None:
        return None
    rows = [{**one, "revisits": True} if one is row else one for one in found.state["relation_paths"]]
    text = (
        f"Along {shown(row)}, only walks that come back to where they start, or cross a fact twice, end at "
        f"{found.label}; they are left out, unless the relation path says otherwise (revisits)."
    )
    details = {"relation_path": row["relations"], "revisits": row.get("revisits")}
    return Obstacle("excluded", found.stage, text, Lift(inputs=reading(found.state, rows)), details)


def _ends(found: Found, row: Row, *, may_return: bool) -> bool:
    return bool((walk(found.graph, row, found.named, may_return).ends == found.end).any())


def _too_many(found: Found) -> Obstacle | None:
    """Return the obstacle where a relation path has more walks than are looked at; its last step has not."""
    graph, row = found.graph, found.leading[0]
    labels = path_labels(graph, row)
    start = next(one for one in starts_of(row, found.named) if _leads(found, one, row))
    ahead, behind = ends_by_hop(graph.adjacency, start, labels), starts_by_hop(graph.adjacency, found.end, labels)
    for hop in range(1, len(labels)):
        for entity in np.intersect1d(ahead[hop], behind[hop])[:10].tolist():
            last = {**{name: row[name] for name in row if name != "entity"}, "relations": row["relations"][hop:]}
            last["revisits"] = True
            if _ends(found._replace(named=[[entity]]), last, may_return=True):
                key = graph.entities[entity]
                text = (
                    f"Along {shown(row)} there are more than the {MAX_WALKS:,} walks that are looked at, and those to "
                    f"{found.label} come later. They are found from {graph.label(key)!r}, {hop} hops on."
                )
                lift = Lift(inputs=reading(found.state, [last], [key]))
                return Obstacle("pruned", found.stage, text, lift, {"max_walks": MAX_WALKS, "hops": hop})
    return None


def _leads(found: Found, start: int, row: Row) -> bool:
    ends = ends_by_hop(found.graph.adjacency, start, path_labels(found.graph, row))
    return bool((ends[-1] == found.end).any())


def _not_common(found: Found, one: Walked) -> Obstacle:
    """Return the obstacle where not every name of the question leads to the entity."""
    graph, find = found.graph, found.graph.entities.find
    start = int(one.starts[np.flatnonzero(one.ends == found.end)[0]])
    at = next(position for position, group in enumerate(found.named) if start in group)
    own: dict[str, dict[str, Any]] = {}
    for row in found.state["relation_paths"]:
        if start in starts_of(row, found.named):
            alone = {name: value for name, value in row.items() if name != "entity"}
            own.setdefault(str(row["relations"]), alone)
    others = [graph.label(key) for key in found.state["seed_entities"] if find(key) not in found.named[at]]
    key = graph.entities[start]
    text = (
        f"{graph.label(key)!r} leads to {found.label}, but the answers are what all entities of the question lead to: "
        f"also {', '.join(map(repr, others))}."
    )
    lift = Lift(inputs=reading(found.state, list(own.values()), [key]))
    return Obstacle("excluded", found.stage, text, lift, {"leads": key, "others": others, "joined": "intersection"})


def _beyond_max_paths(found: Found, walked: Sequence[Walked], common: Array, max_paths: int) -> Obstacle | None:
    """Return the obstacle where `max_paths` better walks leave those to the entity out."""
    before = 0
    for one in walked:
        fits = one.ends if not len(common) else one.ends[np.isin(one.ends, common)]
        at = np.flatnonzero(fits == found.end)
        if not len(at):
            before += len(fits)
            continue
        own = 1 + len(np.unique(fits[: at[0]]))  # each end gets its first walk before any gets a second
        if before + own <= max_paths:
            return None
        text = f"The first walk to {found.label} is number {before + own}; max_paths is {max_paths}."
        details = {"rank": before + own, "max_paths": max_paths}
        return Obstacle("pruned", found.stage, text, _more_paths(found, one, before + own), details)
    return None


def _more_paths(found: Found, one: Walked, rank: int) -> Lift:
    if rank <= MAX_WALKS:
        return Lift(fields={"max_paths": rank})
    return Lift(fields={"max_paths": MAX_WALKS}, inputs=reading(found.state, [one.row]))
