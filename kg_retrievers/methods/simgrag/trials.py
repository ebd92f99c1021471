"""Matches of a pattern with one entity in the place of its target, by the rules of a retriever or without some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, Self

import numpy as np
from langchain_core.documents import Document

from kg_retrievers.algorithms.candidates import Candidates
from kg_retrievers.errors import SearchBudgetError
from kg_retrievers.graph import Evidence, KnowledgeGraph, Pattern
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.revisits import decide_revisits
from kg_retrievers.index import GraphIndex
from kg_retrievers.methods.simgrag.match_query import NodeTypes
from kg_retrievers.methods.simgrag.matching import Match, MatchQuery
from kg_retrievers.methods.simgrag.widening import SAME_DISTANCE

#: The most names that are looked at as candidates for a text that is no name of the graph.
WIDE = 16_384

#: The most ranks that are looked at.
RANKS = 1 << 16

#: What a trial may use at least, so that no budget decides what it finds.
SCANS, SECONDS = 50_000_000, 10.0

#: Which nodes must be different entities.
Distinct = Literal["known", "nodes", "none"]


class Matcher(Protocol):
    """What is asked of the retriever."""

    @property
    def index(self) -> GraphIndex:
        """Its index."""

    @property
    def graph(self) -> KnowledgeGraph:
        """Its graph."""

    @property
    def k_nodes(self) -> int:
        """As its field."""

    @property
    def k_relations(self) -> int:
        """As its field."""

    @property
    def node_types(self) -> NodeTypes:
        """As its field."""

    @property
    def distinct(self) -> Literal["auto", "known", "nodes", "none"]:
        """As its field."""

    @property
    def granularity(self) -> Literal["subgraph", "path", "triple"]:
        """As its field."""

    @property
    def max_distance(self) -> float | None:
        """As its field."""

    @property
    def max_bindings(self) -> int:
        """As its field."""

    @property
    def max_scans(self) -> int:
        """As its field."""

    @property
    def max_seconds(self) -> float | None:
        """As its field."""

    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> Self:
        """Return it with other fields."""

    def respects_direction(self, pattern: Pattern) -> bool:
        """Tell whether directions count."""

    def query(self, pattern: Pattern, *, nearest: bool = ..., only: Mapping[str, Array] | None = ...) -> MatchQuery:
        """Return what is searched for."""

    def search(
        self,
        pattern: Pattern,
        query: MatchQuery,
        k: int,
        *,
        distinct: Distinct,
        ties: Literal["merge", "break"],
        max_distance: float,
    ) -> list[Match]:
        """Search for it."""

    def match(self, pattern: Pattern, k: int | None = None, *, question: str = ...) -> list[Evidence]:
        """Return the evidence for a pattern."""

    def documents_from(self, evidence: Sequence[Evidence], k: int, question: str = ...) -> list[Document]:
        """Return the Documents of evidence."""


@dataclass(frozen=True)
class Trial:
    """A pattern with an entity in the place of its target.

    Attributes:
        retriever: The retriever, with ample budgets.
        pattern: The pattern, without operation.
        entity: The key of the entity.
        question: The question.
        nearest: Whether names and relations mean the nearest ones alone.
        all_names: Whether a text that is no name of the graph may mean any of `WIDE` names.
        all_relations: Whether a text that is no relation of the graph may mean any relation.
        any_entities: Whether two nodes may be the same entity, whatever `distinct` says.
    """

    retriever: Matcher
    pattern: Pattern
    entity: str
    question: str
    nearest: bool
    all_names: bool = False
    all_relations: bool = False
    any_entities: bool = False

    def match(self) -> Match | None:
        """Return the nearest match that the rules let through."""
        if self.any_entities:
            return self.pinned("none")
        return self._strict() or self._widened()

    def pinned(self, distinct: Distinct, ties: Literal["merge", "break"] = "merge") -> Match | None:
        """Return the nearest match with the entity, if only some nodes must be different."""
        target = np.array([self.retriever.graph.entities.find(self.entity)], np.int32)
        query = self._query({str(self.pattern.target): target})
        return self._nearest(query, distinct, ties)

    def best(self) -> Match | None:
        """Return the nearest match with any entity by the stricter rule."""
        return self._nearest(self._query({}), self._rule, "merge")

    def rank(self, distance: float | None, most: int = RANKS) -> int | None:
        """Return the rank of the first Document whose answers have the entity, from 1.

        Args:
            distance: Documents with a larger distance are not looked at; None for no limit but that of the retriever.
            most: The most ranks to look at.
        """
        retriever, k = self.retriever, 16
        if distance is not None:
            own = retriever.max_distance
            limit = distance if own is None else min(distance, own)
            retriever = retriever.model_copy(update={"max_distance": limit})
        while True:
            k = min(k, most)
            found = retriever.match(self.pattern, k, question=self.question)
            documents = retriever.documents_from(found, k)
            ranks = (one.metadata["rank"] for one in documents if self.entity in one.metadata["answers"])
            if (rank := next(ranks, None)) is not None:
                return int(rank)
            if len(documents) < k or k == most:
                return None
            k *= 8

    def finds(self, k: int) -> bool:
        """Return whether the entity is in the first k Documents; not where a budget ends the search before."""
        try:
            return self.rank(None, most=k) is not None
        except SearchBudgetError:
            return False

    def with_fields(self, **fields: Any) -> Trial:
        """Return it with other fields of the retriever."""
        return replace(self, retriever=self.retriever.model_copy(update=fields))

    @property
    def _rule(self) -> Distinct:
        """The stricter rule of `find_widening`."""
        if self.retriever.distinct != "auto":
            return self.retriever.distinct
        return "none" if decide_revisits(self.pattern, self.question).allowed else "known"

    def _strict(self) -> Match | None:
        return self.pinned(self._rule)

    def _widened(self) -> Match | None:
        """Return the match that is found only because the rule is widened, as `find_widening` does."""
        if self.retriever.distinct != "auto" or decide_revisits(self.pattern, self.question).certain:
            return None
        match, best = self.pinned("none"), self.best()
        if match is None or (best is not None and match.distance >= best.distance - SAME_DISTANCE):
            return None
        return match

    def _nearest(self, query: MatchQuery, distinct: Distinct, ties: Literal["merge", "break"]) -> Match | None:
        found = self.retriever.search(self.pattern, query, 1, distinct=distinct, ties=ties, max_distance=float("inf"))
        return found[0] if found else None

    def _query(self, only: Mapping[str, Array]) -> MatchQuery:
        own = self.retriever.query(self.pattern, nearest=self.nearest, only=only)
        if not self.all_names and not self.all_relations:
            return own
        fields = {"k_nodes": WIDE} if self.all_names else {}
        fields |= {"k_relations": max(1, len(self.retriever.graph.relations))} if self.all_relations else {}
        wide = self.retriever.model_copy(update=fields).query(self.pattern, nearest=self.nearest, only=only)
        pairs = zip(own.nodes, wide.nodes, strict=True)
        nodes = [one._replace(entities=_unless_exact(one.entities, other.entities)) for one, other in pairs]
        relations = [_unless_exact(*pair) for pair in zip(own.relations, wide.relations, strict=True)]
        return replace(own, nodes=nodes, relations=relations)


def ample(retriever: Matcher) -> Matcher:
    """Return a retriever whose budgets decide nothing that they do not decide with the defaults, too."""
    seconds = None if retriever.max_seconds is None else max(retriever.max_seconds, SECONDS)
    return retriever.model_copy(update={"max_scans": max(retriever.max_scans, SCANS), "max_seconds": seconds})


def _unless_exact(own: Candidates | None, wide: Candidates | None) -> Candidates | None:
    """Return the wider candidates of a text, unless one of its own is exactly that."""
    if own is None or (len(own.ids) and own.distances.min() <= SAME_DISTANCE):
        return own
    return wide
