"""What keeps an entity out of what a union makes of what its members found.

No member finds it, and the one that needs least tells its own story: the union has all reasons of its members. Or a
member does, and another carries out an operation, so that what this one gives counts alone ("excluded"); or the
Document is not among the first k of the union ("outscored").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kg_retrievers.core.obstacles import Lift, Obstacle, role_of
from kg_retrievers.core.rank_obstacles import document_rank_obstacle
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import RefusalError

#: The stage that asks the members, and the one that fuses what they find.
RETRIEVE, FUSE = "retrieve", "fuse"

#: A stage of a union.
Step = Callable[[Any], dict[str, Any]]


def find_obstacle(
    union: BaseKGRetriever, entity: str, state: Mapping[str, Any], retrieve: Step, fuse: Step
) -> Obstacle | None:
    """Return what keeps an entity out that a member found, or that was not among what was given as found.

    Args:
        union: The union.
        entity: The key of the entity.
        state: What its stages wrote.
        retrieve: Its first stage.
        fuse: Its last stage.

    Returns:
        None where no member found the entity.
    """
    if (found := state.get("found")) is None:
        return None
    holders = {name: rows for name, rows in found.items() if any(_holds(union, entity, row) for row in rows)}
    if not holders:
        return _given(union, entity, state, retrieve)
    without_values = {name: [row for row in rows if row.get("value") is None] for name, rows in found.items()}
    carried_out = [name for name, rows in found.items() if len(without_values[name]) < len(rows)]
    counting = [row for rows in found.values() for row in rows if not carried_out or row.get("value") is not None]
    if any(_holds(union, entity, row) for row in counting):
        return document_rank_obstacle(union, entity, state, FUSE, fuse)
    label = repr(union.graph.label(entity))
    text = (
        f"{' and '.join(holders)} found {label}, but {' and '.join(carried_out)} carried out an operation, whose "
        "result counts alone."
    )
    lift = Lift(inputs={"found": without_values})
    return Obstacle("excluded", FUSE, text, lift, {"found_by": list(holders), "carried_out_by": carried_out})


def _holds(union: BaseKGRetriever, entity: str, row: Mapping[str, Any]) -> bool:
    metadata = {"answers": (), "value": None, "details": {}, **row}
    return role_of(entity, metadata, as_answer=union.proposes_answers) is not None


def _given(union: BaseKGRetriever, entity: str, state: Mapping[str, Any], retrieve: Step) -> Obstacle | None:
    """Return the obstacle where a caller gave what the members found."""
    try:
        if retrieve(dict(state))["found"] == state["found"]:
            return None
    except RefusalError:
        pass
    text = f"What was given as found has nothing of {union.graph.label(entity)!r}; the members are not asked."
    return Obstacle("excluded", RETRIEVE, text, Lift(inputs={"found": None, "failed": None}))


def told_by(name: str, obstacle: Obstacle, state: Mapping[str, Any], member_k: int | None) -> Obstacle:
    """Return what keeps an entity out of what a member finds, as an obstacle of the union.

    Args:
        name: The name of the member.
        obstacle: What keeps the entity out there.
        state: What the stages of the union wrote.
        member_k: As the field.
    """
    inputs, fields = dict(obstacle.lift.inputs), dict[str, Any]()
    own = state.get("member_inputs", {}).get(name, {})
    if member_k is not None and "k" in inputs and "k" not in own:
        fields["member_k"] = inputs.pop("k")
    theirs = replace(obstacle.lift, inputs=inputs, facts=())
    members = {name: theirs} if theirs != Lift() else {}
    return Obstacle(
        obstacle.why,
        RETRIEVE,
        f"{name}: {obstacle.text}" + (f" It is asked for {member_k} (member_k)." if fields else ""),
        Lift(fields, facts=obstacle.lift.facts, members=members),
        {**obstacle.details, "member": name, "member_stage": obstacle.stage},
    )
