"""A retriever and what it is asked, with what keeps an entity out lifted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kg_retrievers.core.ensemble import MEMBER_INPUTS, BaseEnsembleRetriever
from kg_retrievers.core.obstacles import Lift
from kg_retrievers.core.retriever import BaseKGRetriever


def lift(retriever: BaseKGRetriever, inputs: Mapping[str, Any], change: Lift) -> tuple[BaseKGRetriever, dict[str, Any]]:
    """Return a retriever and the arguments of `invoke` with something lifted; neither of those given is changed.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, NeighborhoodRetriever, default_embeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "starring", "Amy Adams")])
        >>> retriever = NeighborhoodRetriever.from_index(GraphIndex.build(graph, default_embeddings()))
        >>> lifted, inputs = lift(retriever, {}, Lift(fields={"max_hops": 4}, inputs={"k": 2}))
        >>> lifted.max_hops, inputs
        (4, {'k': 2})
    """
    if change.facts:
        retriever = retriever.with_index(retriever.index.with_changes(added=change.facts))
    inputs = merged(inputs, change.inputs)
    if change.members and isinstance(retriever, BaseEnsembleRetriever):
        retriever, inputs = _lift_members(retriever, inputs, change.members)
    if change.fields:
        retriever = retriever.with_fields(change.fields)
    return retriever, dict(inputs)


def _lift_members(
    retriever: BaseEnsembleRetriever, inputs: Mapping[str, Any], changes: Mapping[str, Lift]
) -> tuple[BaseEnsembleRetriever, Mapping[str, Any]]:
    own, members = inputs.get(MEMBER_INPUTS) or {}, retriever.members
    lifted = {name: lift(members[name], own.get(name, {}), change) for name, change in changes.items()}
    changed = {name: member for name, (member, _) in lifted.items() if member is not members[name]}
    given = {name: theirs for name, (_, theirs) in lifted.items() if theirs}
    inputs = merged(inputs, {MEMBER_INPUTS: given}) if given else inputs
    return retriever.with_members(changed) if changed else retriever, inputs


def merged(inputs: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of `invoke` with others in their place; those for members one by one."""
    both = {**inputs, **others}
    if (own := inputs.get(MEMBER_INPUTS)) and (theirs := others.get(MEMBER_INPUTS)):
        names = dict.fromkeys((*own, *theirs))
        both[MEMBER_INPUTS] = {name: merged(own.get(name, {}), theirs.get(name, {})) for name in names}
    return both


def combined(lifts: list[Lift]) -> Lift:
    """Return what lifts all of some obstacles; what a later one sets counts."""
    fields: dict[str, Any] = {}
    inputs: dict[str, Any] = {}
    for one in lifts:
        fields |= one.fields
        inputs = merged(inputs, one.inputs)
    names = dict.fromkeys(name for one in lifts for name in one.members)
    members = {name: combined([one.members[name] for one in lifts if name in one.members]) for name in names}
    return Lift(fields, inputs, tuple(dict.fromkeys(triple for one in lifts for triple in one.facts)), members)
