"""The entities that the nodes of a pattern may be, and the joint bindings of its unknowns."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from types import MappingProxyType
from typing import Literal

import numpy as np

from kg_retrievers.algorithms.bindings import NO_LIMITS, Join, JoinEdge, Limits
from kg_retrievers.deadline import check_deadline
from kg_retrievers.graph import Known, Pattern, PatternTriple, Term, Unknown
from kg_retrievers.graph.columns import Array, distinct
from kg_retrievers.graph.kinds import kind_members
from kg_retrievers.graph.operations import Condition
from kg_retrievers.index import Candidates, GraphIndex
from kg_retrievers.questions.fact_attributes import ValueIds, attributed, values_of_rows

#: Which nodes must be different entities (see `match_pattern`).
Distinct = Literal["known", "nodes", "none"]

#: How many names are looked at to find all of those that are equally near to a text.
NAMES = 16

#: How many names of a condition are looked up between two looks at the time that is left.
NAMES_AT_ONCE = 64


def allowed_entities(
    index: GraphIndex, pattern: Pattern, *, directed: bool, only: Mapping[str, Array] = MappingProxyType({})
) -> dict[str, Array]:
    """Return the entities that each unknown may be of which conditions, absent triples or the caller say something.

    Names and relations in them mean the nearest ones of the graph alone. Ends at the deadline: see
    `kg_retrievers.deadline`.

    Args:
        index: Finds the names nearest to texts.
        pattern: The pattern.
        directed: Whether the directions of absent triples count.
        only: The ids of the entities that some unknowns may be, by name, besides what the pattern says.

    Returns:
        int32 ids, ascending, by the name of the unknown.

    """
    filters = _Filters(index, pattern.conditions, directed=directed, typed=pattern.typed)
    nodes = {node.name: node for node in pattern.nodes if isinstance(node, Unknown)}
    limited = {condition.unknown for condition in pattern.conditions if condition.unknown in nodes}
    allowed = {name: filters.satisfying(name) for name in sorted(limited)}
    for group in pattern.absent_groups():
        ends = (node for triple in group for node in (triple.head, triple.tail))
        root = next(nodes[node.name] for node in ends if isinstance(node, Unknown) and node.name in nodes)
        whole = allowed.get(root.name, filters.everything)
        left = np.zeros(len(index.graph.entities), bool)
        left[whole] = True
        left[filters.reaching(root, whole, group)] = False
        allowed[root.name] = np.flatnonzero(left).astype(np.int32)
    for name, entities in only.items():
        allowed[name] = np.intersect1d(allowed.get(name, entities), entities, assume_unique=True).astype(np.int32)
    return allowed


def absent_candidates(index: GraphIndex, pattern: Pattern) -> dict[Term, Array]:
    """Return the entities that each node of absent triples alone may be, if the pattern says something of it.

    Args:
        index: Finds the names nearest to texts.
        pattern: The pattern.

    Returns:
        int32 ids, ascending, by the node; known nodes are all there, whether or not other triples name them.
    """
    filters = _Filters(index, pattern.conditions, directed=False, typed=pattern.typed)
    limited = {condition.unknown for condition in pattern.conditions}
    ends = dict.fromkeys(node for triple in pattern.absent for node in (triple.head, triple.tail))
    said = (node for node in ends if isinstance(node, Known) or node.type is not None or node.name in limited)
    return {node: filters.candidates(node) for node in said if isinstance(node, Known) or node not in pattern.nodes}


def possible_entities(index: GraphIndex, node: Term) -> Array:
    """Return the ids of the entities that a node may be by its name and its type alone, ascending."""
    return _Filters(index).candidates(node)


def nearest_only(candidates: Candidates) -> Candidates:
    """Return the candidates that are as near as the nearest."""
    nearest = candidates.distances <= candidates.distances.min(initial=np.inf)
    return Candidates(candidates.ids[nearest], candidates.distances[nearest])


def nearest_named(index: GraphIndex, texts: Sequence[str], k: int = NAMES) -> list[Candidates]:
    """Return the entities with the name nearest to each text. Those of its very name need no search.

    Args:
        index: Finds the names nearest to texts.
        texts: The texts.
        k: How many names are looked at to find all of those that are equally near.
    """
    exact = zip(texts, index.exact_entities(texts), strict=True)
    found = {text: entities for text, entities in exact if len(entities.ids)}
    others = [text for text in dict.fromkeys(texts) if text not in found]
    for first in range(0, len(others), NAMES_AT_ONCE):
        check_deadline()
        some = others[first : first + NAMES_AT_ONCE]
        found |= zip(some, map(nearest_only, index.nearest_entities(some, k)), strict=True)
    return [found[text] for text in texts]


@dataclass(eq=False)
class _Filters:
    """Sets of entities, for one pattern."""

    index: GraphIndex
    conditions: Sequence[Condition] = ()
    directed: bool = True
    typed: bool | None = None

    @cached_property
    def everything(self) -> Array:
        """All entities."""
        return np.arange(len(self.index.graph.entities), dtype=np.int32)

    def satisfying(self, unknown: str) -> Array:
        """Return the entities that satisfy all conditions on an unknown."""
        entities = self.everything
        for condition in self.conditions:
            if condition.unknown == unknown:
                check_deadline()
                entities = entities[self._where(condition, entities)]
        return entities

    def _where(self, condition: Condition, entities: Array) -> Array:
        if condition.operator != "in":
            return self.index.graph.value_columns.where(condition, entities)
        return np.isin(entities, self._named([str(name) for name in condition.value]))  # type: ignore[union-attr]

    def _named(self, names: Sequence[str]) -> Array:
        """Return the entities with some keys, or else those whose names are nearest to them."""
        found = {name: self.index.graph.entities.find(name) for name in names}
        others = [name for name, entity in found.items() if entity < 0]
        keyed = np.array([entity for entity in found.values() if entity >= 0], np.int32)
        return np.concatenate([keyed, *(candidates.ids for candidates in nearest_named(self.index, others))])

    def reaching(self, node: Term, entities: Array, triples: Sequence[PatternTriple]) -> Array:
        """Return which of the entities that a node may be have all of some absent triples."""
        places = dict[Hashable, int]()
        edges, candidates = list[JoinEdge](), dict[int, Array]()
        for triple in triples:
            ends = [triple.head, triple.tail]
            for end in ends:  # a known text stands in each triple for any entity called so
                place = places.setdefault((end, triple if isinstance(end, Known) else None), len(places))
                limited = entities if end == node else self.candidates(end)
                candidates |= {} if limited is self.everything else {place: limited}
            head, tail = (places[end, triple if isinstance(end, Known) else None] for end in ends)
            edges.append(JoinEdge(head, tail, self.relations(triple.relation), directed=self.directed))
        return Join(self.index.graph.adjacency, edges, candidates).bindings([places[node, None]])[:, 0]

    def relations(self, relation: Term) -> Array | None:
        """Return the ids of the relations that a term means, or None for any."""
        if not isinstance(relation, Known):
            return None
        return nearest_only(self.index.nearest_relations([relation.text], NAMES)[0]).ids

    def candidates(self, node: Term) -> Array:
        """Return the entities that a node may be, by itself."""
        if isinstance(node, Unknown):
            named = self.satisfying(node.name)
        elif node.entity is None:
            named = nearest_named(self.index, [node.text])[0].ids
        else:
            entity = self.index.graph.entities.find(node.entity)
            named = np.array([entity] if entity >= 0 else [], np.int32)
        of_type = self._of_type(node)
        if named is self.everything or of_type is self.everything:
            return of_type if named is self.everything else named
        return np.intersect1d(named, of_type, assume_unique=True)

    def distance(self, pattern: Pattern) -> float:
        """Return how far the names and relations of a pattern are from the nearest ones of the graph, all together."""
        names = [node.text for node in pattern.nodes if isinstance(node, Known) and node.entity is None]
        relations = [triple.relation.text for triple in pattern.triples if isinstance(triple.relation, Known)]
        found = [*nearest_named(self.index, names), *self.index.nearest_relations(relations, 1)]
        return sum(float(one.distances.min(initial=np.inf)) for one in found)

    def _of_type(self, node: Term) -> Array:
        """Return the entities of the type nearest to that of a node, or of no type; all if it or the graph has none.

        If the pattern means this very type, they are those of the type and of the types below it.
        """
        graph = self.index.graph
        if node.type is None:
            return self.everything
        if not len(graph.types):
            members = kind_members(graph, node.type)
            return self.everything if members is None else members
        below = graph.types_below.get(node.type, ()) if self.typed else ()
        nearest = sorted(below) or nearest_only(self.index.nearest_types([node.type], 1)[0]).ids.tolist()
        of_types = [graph.type_entities(kind) for kind in nearest]
        return distinct(np.concatenate([*of_types, *([] if self.typed else [graph.untyped])]))


class PatternJoin:
    """Finds the joint bindings of a pattern's unknowns. Its names, relations and types mean the nearest ones.

    Args:
        index: The indexed graph.
        pattern: The pattern; its operation does not count.
        directed: Whether the directions of its triples count.
        only: The ids of the entities that some nodes may be, in place of those of their types.
        max_distance: How far its names and relations may be from those of the graph, all together; None for no limit.
        limits: When the search ends.
        values: Gives the values of attributes their ids.
    """

    def __init__(
        self,
        index: GraphIndex,
        pattern: Pattern,
        *,
        directed: bool,
        only: Mapping[Term, Array] = MappingProxyType({}),
        max_distance: float | None = None,
        limits: Limits = NO_LIMITS,
        values: ValueIds | None = None,
    ) -> None:
        """Find the entities that its nodes may be."""
        self._values = values or ValueIds(index.graph)
        filters = _Filters(index, pattern.conditions, directed=directed, typed=pattern.typed)
        allowed = allowed_entities(index, pattern, directed=directed)
        self._adjacency, self._pattern = index.graph.adjacency, pattern
        self._limits, self.truncated = limits, False
        self._nodes = {node: at for at, node in enumerate(pattern.nodes)}
        self._is_near = max_distance is None or filters.distance(pattern) <= max_distance
        self._candidates = dict[int, Array]()
        for node, at in self._nodes.items():
            entities = filters.candidates(node)
            if isinstance(node, Unknown) and node.name in allowed:
                entities = np.intersect1d(entities, allowed[node.name], assume_unique=True)
            entities = only.get(node, entities)
            if entities is not filters.everything or node in pattern.alone:
                self._candidates[at] = entities
        relations = [triple.relation for triple in pattern.triples]
        self._facts = len(self._nodes) + len(relations)
        self._edges = [
            JoinEdge(
                self._nodes[head],
                self._nodes[tail],
                filters.relations(relation),
                len(self._nodes) + relations.index(relation) if relations.count(relation) > 1 else None,
                directed,
            )
            for head, relation, tail in pattern.triples
        ]

    def bindings(self, wanted: Sequence[str], distinct: Distinct, *, facts: bool = False) -> Array:
        """Return the joint bindings of some unknowns, by name: int64 (rows, wanted), each row once.

        `truncated` says afterwards whether a limit ended the search.

        Args:
            wanted: The names of the unknowns.
            distinct: Which nodes must be different entities; see `match_pattern`.
            facts: Whether the id of the fact of each triple follows.
        """
        different = [(self._nodes[one], self._nodes[other]) for one, other in self._pattern.different]
        different += [
            (here, there)
            for (one, here), (other, there) in combinations(self._nodes.items(), 2)
            if distinct == "nodes" or (distinct == "known" and (isinstance(one, Known) or isinstance(other, Known)))
        ]
        if not self._is_near:
            return np.zeros((0, len(wanted)), np.int64)
        names = {node.name: at for node, at in self._nodes.items() if isinstance(node, Unknown)}
        pattern, nodes = self._pattern, [name for name in wanted if name in names]
        numbers = range(len(pattern.triples)) if facts else attributed(pattern)
        edges = [*self._edges]
        for number in numbers:
            edges[number] = edges[number]._replace(fact=self._facts + number)
        join = Join(self._adjacency, edges, self._candidates, different, self._limits)
        rows = join.bindings([*(names[name] for name in nodes), *(self._facts + number for number in numbers)])
        self.truncated |= join.truncated
        if not pattern.attributes:
            return rows
        columns = dict(zip((*nodes, *numbers), rows.T, strict=True))
        return values_of_rows(pattern, self._values, columns, wanted, facts=facts)
