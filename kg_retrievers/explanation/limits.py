"""The limits that may keep an entity out of the results of a retriever, and how they are lifted.

A limit is known by the name of a field or of an argument of `invoke` alone, so that a new method needs no code here.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.core.stages import MAX_K
from kg_retrievers.graph.verbalize import one_line

#: How the value of a limit is raised: by one hop at a time, by factors, by divisors, or to the values given.
Lifted = Literal["farther", "more", "less"] | tuple[Any, ...]

#: The factors for "more", and the divisors for "less", the mildest first.
FACTORS, DIVISORS = (2, 10, 100), (2, 10, 10_000)

#: How many hops farther "farther" looks.
MORE_HOPS = 3

#: The name of the field that holds the members of a retriever that asks others.
MEMBERS = "retrievers"


class Limit(NamedTuple):
    """A field or an argument of `invoke` that may keep an entity out.

    Attributes:
        name: Its name.
        lifted: How its value is raised.
        reason: How it keeps an entity out.
    """

    name: str
    lifted: Lifted
    reason: str


#: All limits, in the order in which they are lifted.
LIMITS = (
    Limit("min_confidence", (0.0,), "the question is not understood surely enough"),
    Limit("k", (MAX_K,), "others rank higher"),
    Limit("max_hops", "farther", "the entity is farther away"),
    Limit("member_k", (MAX_K,), "others rank higher among the results of a member"),
    Limit("max_nodes", "more", "too many entities are nearer"),
    Limit("max_triples", "more", "too many facts come first"),
    Limit("k_nodes", "more", "too few entities are considered"),
    Limit("k_relations", "more", "too few relations are considered"),
    Limit("k_types", "more", "too few types are considered"),
    Limit("edge_cost", "less", "the facts that lead there cost too much"),
    Limit("threshold", "less", "the model scores it lower"),
    Limit("max_candidates", "more", "too many candidates score higher"),
    Limit("beam_width", "more", "too few relation paths are proposed"),
    Limit("max_paths", "more", "too many paths come first"),
    Limit("max_rows", "more", "the query returns more rows"),
    Limit("max_bindings", "more", "too many bindings come first"),
    Limit("max_scans", "more", "the search ends before"),
    Limit("max_distance", (None,), "the facts fit the pattern too badly"),
    Limit("direction", ("ignore",), "facts point the other way"),
    Limit("node_types", ("ignore",), "the entity has another type"),
    Limit("distinct", ("known", "none"), "unknowns may not share an entity"),
    Limit("ties", ("merge",), "equals are cut off"),
    Limit("lone_entities", (True,), "entities without facts are left out"),
    Limit("granularity", ("subgraph",), "its facts stand in better evidence"),
)

#: Arguments of `invoke`, each with its option of `kg-retrievers ask`.
OPTIONS = {"k": "--k", "min_confidence": "--min-confidence", "seed_entities": "--entity"}


@dataclass(frozen=True)
class Change:
    """Another value for a field or for an argument of `invoke`.

    Attributes:
        name: The name of the field or argument.
        value: Its new value.
        reason: How the old value keeps an entity out.
        is_input: Whether it is an argument of `invoke`.
        member: The name of the member that has the field; None for the retriever itself.
    """

    name: str
    value: Any
    reason: str
    is_input: bool = False
    member: str | None = None

    @property
    def in_python(self) -> str:
        """The change in the words of Python."""
        written = f"{self.name}={one_line(repr(self.value))}"
        if self.is_input:
            return f"invoke(..., {written})"
        return f"the field {written}" if self.member is None else f"the field {written} of the {self.member}"

    @property
    def on_shell(self) -> str:
        """The options of `kg-retrievers ask`; the words of Python if there is none."""
        if self.member is not None or (self.is_input and self.name not in OPTIONS):
            return self.in_python
        if self.is_input:
            values = self.value if isinstance(self.value, list) else [self.value]
            return " ".join(f"{OPTIONS[self.name]} {shlex.quote(one_line(str(value)))}" for value in values)
        value = self.value if isinstance(self.value, str) else json.dumps(self.value)
        return f"--field {shlex.quote(f'{self.name}={value}')}"


def possible_changes(retriever: BaseKGRetriever, inputs: Mapping[str, Any]) -> Iterator[Change]:
    """Yield the changes that lift each limit of a retriever and of its members, the mildest of each limit first.

    Args:
        retriever: The retriever.
        inputs: The arguments of `invoke`.
    """
    arguments = {"k", "min_confidence"}
    for limit in LIMITS:
        if limit.name in arguments:
            for value in _values(limit, inputs.get(limit.name, getattr(retriever, limit.name))):
                yield Change(limit.name, value, limit.reason, is_input=True)
        elif limit.name in type(retriever).model_fields:
            yield from _of_field(limit, retriever)
    for name, member in members_of(retriever).items():
        for limit in LIMITS:
            if limit.name in type(member).model_fields and limit.name not in arguments:
                yield from _of_field(limit, member, name)


def members_of(retriever: BaseKGRetriever) -> dict[str, BaseKGRetriever]:
    """Return the retrievers that a retriever asks, by name."""
    members: dict[str, BaseKGRetriever] = getattr(retriever, "members", {})
    return members if MEMBERS in type(retriever).model_fields else {}


def with_change(
    retriever: BaseKGRetriever, inputs: Mapping[str, Any], change: Change
) -> tuple[BaseKGRetriever, dict[str, Any]]:
    """Return a retriever and its arguments of `invoke` with a change; those given stay as they are.

    Raises:
        InvalidArgumentError: If the retriever does not take the value.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, NeighborhoodRetriever, default_embeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "starring", "Amy Adams")])
        >>> retriever = NeighborhoodRetriever.from_index(GraphIndex.build(graph, default_embeddings()))
        >>> changed, inputs = with_change(retriever, {"k": 2}, Change("max_hops", 4, "too far"))
        >>> changed.max_hops, inputs
        (4, {'k': 2})
    """
    if change.is_input:
        return retriever, {**inputs, change.name: change.value}
    fields: dict[str, Any] = {change.name: change.value}
    if change.member is not None:
        members = members_of(retriever).items()
        fields = {MEMBERS: tuple(one.with_fields(fields) if name == change.member else one for name, one in members)}
    return retriever.with_fields(fields), dict(inputs)


def _of_field(limit: Limit, retriever: BaseKGRetriever, member: str | None = None) -> list[Change]:
    values = _values(limit, getattr(retriever, limit.name))
    highest = [most for one in type(retriever).model_fields[limit.name].metadata if (most := getattr(one, "le", None))]
    if highest and limit.lifted == "more":
        values = list(dict.fromkeys(min(value, *highest) for value in values))
    return [Change(limit.name, value, limit.reason, member=member) for value in values]


def _values(limit: Limit, present: Any) -> list[Any]:
    """Return the values that lift a limit, the mildest first; none if it does not limit anything."""
    if isinstance(limit.lifted, tuple):
        return [value for value in limit.lifted if value != present]
    if present is None:
        return []
    if limit.lifted == "farther":
        return [present + more for more in range(1, MORE_HOPS + 1)]
    if limit.lifted == "more":
        return [present * factor for factor in FACTORS]
    return [present / divisor for divisor in DIVISORS]
