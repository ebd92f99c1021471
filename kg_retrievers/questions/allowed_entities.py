"""Which entities the unknowns of a pattern may be, by its conditions and by what it says to be absent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

import numpy as np

from kg_retrievers.deadline import check_deadline
from kg_retrievers.errors import PatternError
from kg_retrievers.graph import Known, Pattern, Term, Unknown
from kg_retrievers.graph.adjacency import entries_between, label_of, reversed_label
from kg_retrievers.graph.columns import Array, distinct
from kg_retrievers.graph.operations import Condition
from kg_retrievers.graph.pattern import PatternTriple
from kg_retrievers.index import Candidates, GraphIndex

#: How many names are looked at to find all of those that are equally near to a text.
NAMES = 16

#: How many names of a condition are looked up between two looks at the time that is left.
NAMES_AT_ONCE = 64

#: Entries with one of more labels are found by a look at all entries of the entities.
MANY_LABELS = 8


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

    Raises:
        PatternError: If absent triples form a cycle.
    """
    filters = _Filters(index, pattern.conditions, directed)
    nodes = {node.name: node for node in pattern.nodes if isinstance(node, Unknown)}
    limited = {condition.unknown for condition in pattern.conditions if condition.unknown in nodes}
    allowed = {name: filters.satisfying(name) for name in sorted(limited)}
    for group in pattern.absent_groups():
        ends = (node for triple in group for node in (triple.head, triple.tail))
        root = next(nodes[node.name] for node in ends if isinstance(node, Unknown) and node.name in nodes)
        whole = allowed.get(root.name, filters.everything)
        left = np.zeros(len(index.graph.entities), bool)
        left[whole] = True
        left[filters.reaching(root, group)] = False
        allowed[root.name] = np.flatnonzero(left).astype(np.int32)
    for name, entities in only.items():
        allowed[name] = np.intersect1d(allowed.get(name, entities), entities).astype(np.int32)
    return allowed


def absent_candidates(index: GraphIndex, pattern: Pattern) -> dict[Term, Array]:
    """Return the entities that each node of absent triples alone may be, if the pattern says something of it.

    Args:
        index: Finds the names nearest to texts.
        pattern: The pattern.

    Returns:
        int32 ids, ascending, by the node; known nodes are all there, whether or not other triples name them.
    """
    filters = _Filters(index, pattern.conditions, directed=False)
    limited = {condition.unknown for condition in pattern.conditions}
    ends = dict.fromkeys(node for triple in pattern.absent for node in (triple.head, triple.tail))
    said = (node for node in ends if isinstance(node, Known) or node.type is not None or node.name in limited)
    return {node: filters.candidates(node) for node in said if isinstance(node, Known) or node not in pattern.nodes}


def possible_entities(index: GraphIndex, node: Term) -> Array:
    """Return the ids of the entities that a node may be by its name and its type alone, ascending."""
    return _Filters(index, (), directed=True).candidates(node)


def nearest_only(candidates: Candidates) -> Candidates:
    """Return the candidates that are as near as the nearest."""
    nearest = candidates.distances <= candidates.distances.min(initial=np.inf)
    return Candidates(candidates.ids[nearest], candidates.distances[nearest])


def nearest_named(index: GraphIndex, texts: Sequence[str], k: int = NAMES) -> list[Candidates]:
    """Return the entities with the name nearest to each text; those of its very name without a search.

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


class _Filters:
    """Sets of entities, for one pattern."""

    def __init__(self, index: GraphIndex, conditions: Sequence[Condition], directed: bool) -> None:
        self._index, self._graph = index, index.graph
        self._conditions, self._directed = conditions, directed

    @cached_property
    def everything(self) -> Array:
        """All entities."""
        return np.arange(len(self._graph.entities), dtype=np.int32)

    def satisfying(self, unknown: str) -> Array:
        """Return the entities that satisfy all conditions on an unknown."""
        entities = self.everything
        for condition in self._conditions:
            if condition.unknown == unknown:
                check_deadline()
                entities = entities[self._where(condition, entities)]
        return entities

    def _where(self, condition: Condition, entities: Array) -> Array:
        if condition.operator != "in":
            return self._graph.value_columns.where(condition, entities)
        return np.isin(entities, self._named([str(name) for name in condition.value]))  # type: ignore[union-attr]

    def _named(self, names: Sequence[str]) -> Array:
        """Return the entities with some keys, or else those whose names are nearest to them."""
        found = {name: self._graph.entities.find(name) for name in names}
        others = [name for name, entity in found.items() if entity < 0]
        keyed = np.array([entity for entity in found.values() if entity >= 0], np.int32)
        return np.concatenate([keyed, *(candidates.ids for candidates in nearest_named(self._index, others))])

    def _nearest(self, name: str) -> Array:
        return nearest_named(self._index, [name])[0].ids

    def reaching(self, node: Term, triples: Sequence[PatternTriple]) -> Array:
        """Return the entities from which all of some triples, a tree around a node, are found in the graph."""
        entities = self.candidates(node)
        for triple in triples:
            if node in (triple.head, triple.tail):
                rest = [other for other in triples if other is not triple]
                entities = self._both(entities, self._joined(node, triple, rest))
        return entities

    def _both(self, one: Array, other: Array) -> Array:
        """Return the entities that are in both of two sets."""
        if one is self.everything or other is self.everything:
            return other if one is self.everything else one
        return np.intersect1d(one, other)

    def _joined(self, node: Term, triple: PatternTriple, rest: Sequence[PatternTriple]) -> Array:
        check_deadline()
        head, relation, tail = triple
        relations = self._relations(relation)
        if head == tail:
            return self._loops(relations)
        there = tail if node == head else head
        reached = self.reaching(there, _component(there, node, rest))
        directions = [node == head] if self._directed else [True, False]
        return distinct(np.concatenate([self._led_to(reached, label_of(relations, way)) for way in directions]))

    def _relations(self, relation: Term) -> Array:
        """Return the ids of the relations that a term means."""
        if not isinstance(relation, Known):
            return np.arange(len(self._graph.relations))
        return nearest_only(self._index.nearest_relations([relation.text], NAMES)[0]).ids

    def _loops(self, relations: Array) -> Array:
        """Return the entities that some relations join with themselves."""
        found, adjacency = [np.empty(0, np.int64)], self._graph.adjacency
        for label in label_of(relations, False).tolist():
            entries, heads = adjacency.entries_labelled(label)
            found.append(heads[adjacency.neighbors[entries] == heads])
        return distinct(np.concatenate(found))

    def _led_to(self, entities: Array, labels: Array) -> Array:
        """Return the entities to which some labels lead from others."""
        graph = self._graph
        if len(labels) > MANY_LABELS:
            entries, _ = entries_between(graph.adjacency.indptr[entities], graph.adjacency.indptr[entities + 1])
            entries = entries[np.isin(graph.adjacency.labels[entries], labels)]
            return graph.adjacency.neighbors[entries]
        found = [np.empty(0, np.int32)]
        for label in labels.tolist():
            if entities is self.everything:
                found.append(graph.relation_samples.all_sources_of(int(reversed_label(label)), graph.adjacency))
            else:
                entries, _ = entries_between(*graph.adjacency.ranges_with(entities, label))
                found.append(graph.adjacency.neighbors[entries])
        return np.concatenate(found)

    def candidates(self, node: Term) -> Array:
        """Return the entities that a node may be, by itself."""
        if isinstance(node, Unknown):
            named = self.satisfying(node.name)
        else:
            named = self._nearest(node.text) if node.entity is None else self._pinned(node.entity)
        return self._both(named, self._typed(node))

    def _pinned(self, key: str) -> Array:
        entity = self._graph.entities.find(key)
        return np.array([entity] if entity >= 0 else [], np.int32)

    def _typed(self, node: Term) -> Array:
        """Return the entities of the type nearest to that of a node, or of no type; all if it or the graph has none."""
        if node.type is None or not len(self._graph.types):
            return self.everything
        nearest = nearest_only(self._index.nearest_types([node.type], 1)[0])
        members = [np.array(self._graph.type_entities(kind), np.int32) for kind in nearest.ids.tolist()]
        return np.unique(np.concatenate([self._graph.untyped, *members]))


def _component(node: Term, without: Term, triples: Sequence[PatternTriple]) -> list[PatternTriple]:
    """Return the triples that are joined to a node by unknowns, and not by way of another node.

    Raises:
        PatternError: If they come back to the other node.
    """
    found: list[PatternTriple] = []
    waiting, seen = [] if isinstance(node, Known) else [node], {node, without}
    while waiting:
        here = waiting.pop()
        for triple in triples:
            if triple in found or here not in (triple.head, triple.tail):
                continue
            found.append(triple)
            there = triple.tail if triple.head == here else triple.head
            if isinstance(there, Known) or there == here:
                continue
            if there in seen:
                raise PatternError(f"Pattern: the absent triples around {here} form a cycle; that is not supported.")
            seen.add(there)
            waiting.append(there)
    return found
