"""The operation of a pattern: which entities its unknowns may be, and its result, by one rule for every backend.

How an operation is carried out, in this order:

1. `carried_out` refuses names and relations that the graph lacks (`check_known_texts`), and turns triples that can only
   be meant the other way round (`Directions`).
2. `possible_entities` turns conditions and absent triples into the entities that unknowns may be.
3. The matcher (`methods/simgrag/operations.py`) or a database (`methods/sg_rag/operations.py`) finds all bindings; of
   "compare" those of each side, by the part of the pattern around it (`part_of`).
4. `operation_result` computes the value, the answers, and the targets on which they rest.
5. The matcher or the database shows the facts of the first `SHOWN` of these targets.

A triple whose relation is known is turned if the graph shows that only the other direction can be meant. So a triple
stays as it is

- if the entities that its nodes may be, by name or type, have facts in the written direction, or in neither;
- if heads and tails of its relation are of one kind, as of "parent of": there may be no answer;
- if another triple might be turned instead;
- if one would be both present and absent;
- if the pattern says whether directions count.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from itertools import chain, combinations, product
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from kg_retrievers.deadline import check_deadline
from kg_retrievers.errors import EntityLinkingError, LowConfidenceError, PatternError
from kg_retrievers.graph import KnowledgeGraph, Known, Pattern, PatternTriple, Term, Unknown
from kg_retrievers.graph.adjacency import label_of, reversed_label
from kg_retrievers.graph.columns import Array, distinct, entries_between
from kg_retrievers.graph.operations import Condition, Operation
from kg_retrievers.graph.value_columns import ranked_values
from kg_retrievers.graph.values import Comparison, Value, holds, read_value
from kg_retrievers.index import Candidates, GraphIndex, linker_of
from kg_retrievers.index.misspelt_names import FUZZY_SHARE
from kg_retrievers.index.names import likeness

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


def part_of(pattern: Pattern, name: str) -> Pattern:
    """Return the part of a pattern that is joined to an unknown, which becomes its target, without an operation.

    Example:
        >>> pattern = Pattern.of(("Eiger", "height", Unknown("a")), ("Jungfrau", "height", Unknown("b")))
        >>> part_of(pattern, "b").to_dict()
        {'triples': [['Jungfrau', 'height', {'unknown': 'b'}]], 'target': 'b'}
    """
    reached: set[Term] = {node for node in pattern.nodes if isinstance(node, Unknown) and node.name == name}
    before = 0
    while len(reached) > before:
        before = len(reached)
        reached |= {node for h, _, t in pattern.triples if reached & {h, t} for node in (h, t)}
    unknown = {node for node in reached if isinstance(node, Unknown)}
    absent = [group for group in pattern.absent_groups() if unknown & _ends(group)]
    inside = reached | {node for group in absent for node in _ends(group)}
    names = {node.name for node in inside if isinstance(node, Unknown)}
    return replace(
        pattern,
        triples=tuple(triple for triple in pattern.triples if triple.head in reached),
        target=name,
        different=tuple(pair for pair in pattern.different if reached >= {*pair}),
        absent=tuple(triple for group in absent for triple in group),
        conditions=tuple(condition for condition in pattern.conditions if condition.unknown in names),
        operation=None,
    )


def _ends(group: Iterable[tuple[Term, Term, Term]]) -> set[Term]:
    return {node for head, _, tail in group for node in (head, tail)}


#: A relation is meant within the first distance; within the second, if it is nearer than any other by the third. Chosen
#: by `benchmarks/known_texts.py` on 172 texts for relations of three graphs, and 78 for relations that these lack: 49 %
#: of the former pass, 3 % for a wrong relation, and 12 % of the latter. Within 1.1 alone, 58, 15 and 24 % do; within .9
#: alone, 34, 1 and 8 %.
SAME_RELATION, LIKELY_RELATION, RELATION_MARGIN = 0.9, 1.1, 0.2

#: How many names an error suggests.
SUGGESTED = 3

_DIGITS = re.compile(r"\d+")


def check_known_texts(index: GraphIndex, pattern: Pattern, linked: Collection[str] = ()) -> None:
    """Check that a pattern names entities and relations of the graph, if it asks for more than a list of matches.

    A name is one of the graph where as many letters of it are equal as of a misspelt one, and all digits, or where it
    is short for one. The distance of embeddings tells little: within .9, 56 % of names of MetaQA have another name, and
    3 % have one with so many equal letters (`benchmarks/known_texts.py`).

    Args:
        index: The indexed graph.
        pattern: The pattern.
        linked: Texts whose entities are known.

    Raises:
        EntityLinkingError: If it has no entity of a name; the nearest are the suggestions.
        LowConfidenceError: If it has no relation that a text means, or several; the nearest are `nearest`.
    """
    operation = pattern.operation
    is_list = operation is None or (operation.kind == "list" and not operation.by)
    if is_list and not pattern.conditions and not pattern.absent:
        return
    names = [text for text in dict.fromkeys(_entity_texts(pattern)) if text not in linked]
    for text, nearest in zip(names, nearest_named(index, names), strict=True):
        if not _is_named(index, text, nearest):
            raise EntityLinkingError(
                f"The pattern names {text!r}, which the graph lacks.",
                _nearest_labels(index, text),
                hint_python="Name an entity of the graph, or ask for a list without conditions.",
            )
    terms = dict.fromkeys(triple.relation for triple in (*pattern.triples, *pattern.absent))
    texts = [term.text for term in terms if isinstance(term, Known)]
    for text, found in zip(texts, index.nearest_relations(texts, SUGGESTED), strict=True):
        if not _is_relation(found):
            relations = [index.graph.relations[relation] for relation in found.ids.tolist()]
            raise LowConfidenceError(
                f"The pattern names the relation {text!r}, which the graph lacks. The nearest are {relations}.",
                0.0,
                [text],
                relations,
                hint_python="Name a relation of the graph, or ask for a list without conditions.",
            )


def _entity_texts(pattern: Pattern) -> Iterator[str]:
    """Yield the texts of the entities that a pattern names, and does not pin."""
    for head, _, tail in (*pattern.triples, *pattern.absent):
        yield from (node.text for node in (head, tail) if isinstance(node, Known) and node.entity is None)
    for condition in pattern.conditions:
        if condition.operator == "in" and isinstance(condition.value, tuple):
            yield from map(str, condition.value)


def _is_named(index: GraphIndex, text: str, nearest: Candidates) -> bool:
    if not nearest.distances.any() and len(nearest.ids):
        return True
    graph = index.graph
    keys = [graph.entities[entity] for entity in nearest.ids.tolist()]
    if any(_is_spelling(text, name) for key in keys for name in (graph.label(key), *graph.aliases(key))):
        return True
    return any(key in _short_for(index, text) for key in keys)


def _is_spelling(text: str, name: str) -> bool:
    """Return whether a text is a name, perhaps misspelt: of values, an equal one."""
    one, other = read_value(text), read_value(name)
    if one is not None or other is not None:
        return one is not None and other is not None and holds(one, "=", other) and holds(other, "=", one)
    return _DIGITS.findall(text) == _DIGITS.findall(name) and likeness(text, name, FUZZY_SHARE) > 0


def _short_for(index: GraphIndex, text: str) -> Sequence[str]:
    """Return the entity that a text is a short name of; none of several."""
    try:
        mentions = linker_of(index).link(text)
    except EntityLinkingError:
        return ()
    whole = [mention.candidates for mention in mentions if mention.text == text.strip()]
    return [one.entity for one in whole[0] if one.how == "short"] if whole and len(whole[0]) == 1 else ()


def _nearest_labels(index: GraphIndex, text: str) -> list[str]:
    graph, found = index.graph, index.nearest_entities([text], SUGGESTED)[0]
    labels = (graph.label(graph.entities[entity]) for entity in found.ids.tolist())
    return list(dict.fromkeys(labels))[:SUGGESTED]


def _is_relation(found: Candidates) -> bool:
    if not len(found.ids):
        return False
    nearest, rest = float(found.distances[0]), found.distances[found.distances > found.distances[0]]
    beyond = float(rest[0]) - nearest if len(rest) else float("inf")
    return nearest <= SAME_RELATION or (nearest <= LIKELY_RELATION and beyond >= RELATION_MARGIN)


#: The most edges among which some are turned; where there are more, none is.
MAX_TURNED = 10

#: Ours. Heads and tails of a relation are of different kinds if at most these shares of the smaller and of the larger
#: of both sets are in both, as where names are keys and two of 23 genres are also the names of films, of 11,947. Of the
#: 237 relations of FB15k-237, 173 share no ends, 5 more are within the limits, and none of these joins things of one
#: kind.
SHARED_OF_FEWER, SHARED_OF_MORE = 0.1, 0.002

#: Of up to so many entities, each is asked for a label; of more, all at once; of many, all that have it are found.
FEW, MANY = 100, 100_000


class Edge(NamedTuple):
    """One of some relations, given by id, joins the head to the tail."""

    head: Hashable
    relations: Collection[int]
    tail: Hashable


class Directions:
    """Tells which ends of relations meet in the graph of an index. The index keeps the compared pairs."""

    def __init__(self, index: GraphIndex) -> None:
        """Take the index of the graph."""
        self.index = index

    @property
    def graph(self) -> KnowledgeGraph:
        """The graph; of a connected one, some facts of each relation."""
        return self.index.whole.graph

    @property
    def _meet(self) -> dict[tuple[int, int], bool]:
        """The pairs of labels that were compared so far."""
        return self.index.whole.derived.get("meeting labels", (), dict)

    @property
    def _two_kinds(self) -> dict[int, bool]:
        """Of the relations that were looked at so far, whether heads and tails are of different kinds."""
        return self.index.whole.derived.get("kinds of ends", (), dict)

    def correct(
        self,
        edges: Sequence[Edge],
        entities: Mapping[Any, Sequence[int] | Array],
        allowed: Callable[[int, bool], bool] = lambda edge, turned: True,
        *,
        only: bool = False,
    ) -> list[bool]:
        """Return which edges must be turned so that all of them can be in the graph; as few as possible.

        They can be in the graph if, at each node, all ends of relations meet in some entity: in one of the node's own,
        where these are known. Where nothing is wrong, or no choice is right, none is turned. An edge whose relation
        joins entities of one kind, as "parent of" does, is not turned for missing facts: there may be no answer.

        Args:
            edges: Edges with relations of the graph.
            entities: The ids of the entities that a node may be, where that is known.
            allowed: Whether an edge, by its position, may stand as it is, or turned.
            only: Whether none is turned where as few others might be turned instead.
        """
        positions = range(len(edges))
        choices = product([False, True], repeat=len(edges)) if len(edges) <= MAX_TURNED else [(False,) * len(edges)]

        def may_be(position: int, turned: bool) -> bool:
            free = not turned or not allowed(position, False) or self._is_one_way(edges[position].relations)
            return free and allowed(position, turned)

        @cache
        def having(node: Hashable, label: int) -> Array:
            return self._having(self.index.graph, np.asarray(entities[node], np.int32), label)

        free = (turned for turned in sorted(choices, key=sum) if all(map(may_be, positions, turned)))
        fitting = (list(turned) for turned in free if self._fits(edges, turned, entities, having))
        first = next(fitting, none := [False] * len(edges))
        if only and any(first) and sum(next(fitting, none)) == sum(first):
            return none
        return first

    def _is_one_way(self, relations: Collection[int]) -> bool:
        """Tell whether the heads of each of the relations are of another kind than its tails."""
        return all(map(self._has_two_kinds, relations))

    def _has_two_kinds(self, relation: int) -> bool:
        if relation not in self._two_kinds:
            heads, tails = (self._sources(label_of(relation, backward)) for backward in (False, True))
            shared = int(np.isin(heads, tails).sum())
            fewer, more = sorted([len(heads), len(tails)])
            self._two_kinds[relation] = shared <= SHARED_OF_FEWER * fewer and shared <= SHARED_OF_MORE * more
        return self._two_kinds[relation]

    def _fits(
        self,
        edges: Sequence[Edge],
        turned: Sequence[bool],
        entities: Collection[Any],
        having: Callable[[Hashable, int], Array],
    ) -> bool:
        ends: dict[Hashable, list[list[int]]] = {}
        for (head, relations, tail), turn in zip(edges, turned, strict=True):
            ends.setdefault(head, []).append([label_of(relation, turn) for relation in relations])
            ends.setdefault(tail, []).append([label_of(relation, not turn) for relation in relations])
        for node, labels in ends.items():
            if node in entities:
                of_edges = [np.any([having(node, label) for label in choice], axis=0) for choice in labels]
                if not np.all(of_edges, axis=0).any():
                    return False
            elif not all(any(self._meets(*pair) for pair in product(*two)) for two in combinations(labels, 2)):
                return False
        return True

    def _having(self, graph: KnowledgeGraph, entities: Array, label: int) -> Array:
        """Return which of some entities of a graph have an edge of a label."""
        adjacency = graph.adjacency
        if len(entities) <= FEW:
            return np.array([adjacency.has_label(entity, label) for entity in entities.tolist()], bool)
        if len(entities) > MANY:
            return np.isin(entities, graph.relation_samples.all_sources_of(label, adjacency))
        firsts, lasts = adjacency.ranges_with(entities, label)
        having: Array = firsts < lasts
        return having

    def _sources(self, label: int) -> Array:
        """Return the entities that have an edge of a label, ascending."""
        return self.graph.relation_samples.all_sources_of(label, self.graph.adjacency)

    def _meets(self, one: int, other: int) -> bool:
        """Tell whether an entity has edges of both adjacency labels."""
        pair = (min(one, other), max(one, other))
        if pair not in self._meet:
            samples = self.graph.relation_samples
            fewer, more = sorted(pair, key=lambda label: int(samples.sources[label]))
            meet = bool(self._having(self.graph, samples.sources_of(fewer), more).any())
            if not meet and not samples.has_all(fewer):
                meet = bool(np.isin(self._sources(fewer), self._sources(more)).any())
            self._meet[pair] = meet
        return self._meet[pair]


class CarriedOut(NamedTuple):
    """A pattern as it is carried out.

    Attributes:
        pattern: The pattern.
        turned: Those of its triples that are turned, as they were written.
    """

    pattern: Pattern
    turned: tuple[PatternTriple, ...] = ()

    @property
    def details(self) -> dict[str, Any]:
        """What evidence says of it: "turned", if triples are turned."""
        return {"turned": Pattern(self.turned).to_dict()["triples"]} if self.turned else {}


def carried_out(index: GraphIndex, pattern: Pattern, linked: Mapping[str, Sequence[str]] | None = None) -> CarriedOut:
    """Return the pattern that is carried out: the same one without an operation, conditions and absent triples.

    Args:
        index: The indexed graph.
        pattern: The pattern.
        linked: The keys of the entities that are known for some texts.

    Raises:
        EntityLinkingError: If the graph lacks an entity that the pattern names; see `check_known_texts`.
        LowConfidenceError: If it lacks a relation.

    Example:
        >>> from kg_retrievers import KnowledgeGraph, default_embeddings
        >>> from kg_retrievers.graph.operations import Operation
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed by", "Jonze"), ("Tenet", "directed by", "Nolan")])
        >>> index = GraphIndex.build(graph, default_embeddings())
        >>> pattern = Pattern.of(("Nolan", "directed by", Unknown("x")), target="x", operation=Operation("count"))
        >>> carried_out(index, pattern).pattern.to_dict()["triples"]
        [[{'unknown': 'x'}, 'directed by', 'Nolan']]
    """
    if pattern.operation is None and not pattern.conditions and not pattern.absent:
        return CarriedOut(pattern)
    linked = linked or {}
    check_known_texts(index, pattern, linked)
    if pattern.directed is not None:
        return CarriedOut(pattern)
    turning = _Turning(index, pattern, linked)
    turned = {triple for group in _joined(pattern.triples) for triple in turning.among(group)}
    triples = _turn(pattern.triples, turned)
    for group in pattern.absent_groups():
        absent_ends = {node for triple in group for node in (triple.head, triple.tail) if isinstance(node, Unknown)}
        turned |= turning.among(group, [triple for triple in triples if absent_ends & {triple.head, triple.tail}])
    absent = _turn(pattern.absent, turned)
    if not turned or {*absent} & {*triples}:
        return CarriedOut(pattern)
    written = tuple(triple for triple in (*pattern.triples, *pattern.absent) if triple in turned)
    return CarriedOut(replace(pattern, triples=triples, absent=absent), written)


class _Turning:
    """Tells which triples of a pattern must be turned."""

    def __init__(self, index: GraphIndex, pattern: Pattern, linked: Mapping[str, Sequence[str]]) -> None:
        self._directions, self._absent = Directions(index), {*pattern.absent}
        triples = (*pattern.triples, *pattern.absent)
        texts = list(dict.fromkeys(triple.relation.text for triple in triples if isinstance(triple.relation, Known)))
        nearest = map(nearest_only, index.nearest_relations(texts, NAMES))
        self._relations = {text: found.ids.tolist() for text, found in zip(texts, nearest, strict=True)}
        nodes = dict.fromkeys(node for triple in triples for node in (triple.head, triple.tail))
        self._entities: dict[Term, Array] = {}
        for node in nodes:
            if isinstance(node, Known) and node.entity is None and node.text in linked:
                self._entities[node] = np.array([index.graph.entities.find(key) for key in linked[node.text]], np.int32)
            elif isinstance(node, Known) or node.type is not None:
                self._entities[node] = possible_entities(index, node)

    def among(self, group: Sequence[PatternTriple], settled: Sequence[PatternTriple] = ()) -> set[PatternTriple]:
        """Return which triples of a group are turned, if others are settled."""
        triples = [triple for triple in (*settled, *group) if isinstance(triple.relation, Known)]
        edges = [self._edge(triple) for triple in triples]
        free = [triple in group for triple in triples]
        entities = {
            place: self._entities[place[0]]
            for edge in edges
            for place in (edge.head, edge.tail)
            if isinstance(place, tuple) and place[0] in self._entities
        }
        turned = self._directions.correct(edges, entities, lambda position, turn: free[position] or not turn, only=True)
        return {triple for triple, turn in zip(triples, turned, strict=True) if turn}

    def _edge(self, triple: PatternTriple) -> Edge:
        """Return a triple as an edge; a known text in absent triples stands in each for any entity called so."""
        absent = triple if triple in self._absent else None

        def place(node: Term) -> Hashable:
            return node, absent if isinstance(node, Known) else None

        assert isinstance(triple.relation, Known)
        return Edge(place(triple.head), self._relations[triple.relation.text], place(triple.tail))


def _joined(triples: Iterable[PatternTriple]) -> list[list[PatternTriple]]:
    """Return the groups of triples that share nodes, such as the sides of a comparison."""
    groups: list[list[PatternTriple]] = []
    for triple in triples:
        linked = [group for group in groups if any({*triple[::2]} & {*one[::2]} for one in group)]
        groups = [group for group in groups if group not in linked]
        groups.append([*chain(*linked), triple])
    return groups


def _turn(triples: Iterable[PatternTriple], turned: set[PatternTriple]) -> tuple[PatternTriple, ...]:
    return tuple(PatternTriple(*triple[::-1]) if triple in turned else triple for triple in triples)


#: Of how many targets the facts are shown.
SHOWN = 20

#: How many of those that rest behind the greatest are kept as evidence: the runner-up.
RUNNERS_UP = 1


class OperationResult(NamedTuple):
    """What an operation gives.

    Attributes:
        value: A number, a truth value, or the values by which the answers were chosen; None where nothing can be said.
        answers: The ids of the entities that answer, the best first.
        support: The ids of the targets whose facts the result rests on, the answers first.
        without: How many targets were left out because they have no value to compare.
    """

    value: Any
    answers: list[int]
    support: list[int]
    without: int = 0


def operation_result(
    operation: Operation, bindings: Iterable[tuple[int, ...]], graph: KnowledgeGraph
) -> OperationResult:
    """Return what an operation gives, but "exists" and "compare".

    Args:
        operation: "list", "count", "max", "min" or "order".
        bindings: The ids of the targets, each with that of what it is compared by, or of what is counted for it, where
            the operation has a `by`.
        graph: Gives the labels and their values.
    """
    if operation.by:
        return _chosen(operation, bindings, graph)
    targets = sorted({row[0] for row in bindings})
    if operation.kind == "count":
        return OperationResult(len(targets), [], targets)
    return OperationResult(None, targets, targets)


def shown_details(result: OperationResult, *, truncated: bool) -> dict[str, Any]:
    """Return of how many targets the facts are shown, and what else is to be said of a result."""
    details: dict[str, Any] = {"shown": min(SHOWN, len(result.support)), "of": len(result.support)}
    details |= {"without_value": result.without} if result.without else {}
    return details | ({"at_least": True} if truncated else {})


def _chosen(operation: Operation, bindings: Iterable[tuple[int, ...]], graph: KnowledgeGraph) -> OperationResult:
    """Return the targets that an operation with one `by` chooses."""
    of_target: dict[int, set[int]] = defaultdict(set)
    for target, by in bindings:
        of_target[target].add(by)
    if operation.kind == "list":
        assert operation.comparison is not None
        wanted = Value("", number=operation.number)
        counts = {target: len(of_one) for target, of_one in of_target.items()}
        kept = sorted(
            target for target, n in counts.items() if holds(Value("", number=n), operation.comparison, wanted)
        )
        return OperationResult([counts[target] for target in kept], kept, kept)
    descending = operation.descending if operation.kind == "order" else operation.kind == "max"
    if operation.of == "count":
        keys: Mapping[int, Any] = {target: len(of_one) for target, of_one in of_target.items()}
        shown = dict(keys)
    else:
        keys, shown = _best_values(of_target, descending, graph)
    ranked = sorted(sorted(keys), key=keys.__getitem__, reverse=descending)
    without = len(of_target) - len(ranked)
    if operation.kind == "order":
        first = ranked[: operation.limit]
        return OperationResult([shown[target] for target in first], first, first, without)
    best = [target for target in ranked if keys[target] == keys[ranked[0]]]
    value = shown[best[0]] if best else None
    return OperationResult(value, best, [*best, *ranked[len(best) :][:RUNNERS_UP]], without)


def _best_values(
    of_target: Mapping[int, set[int]], descending: bool, graph: KnowledgeGraph
) -> tuple[dict[int, Any], dict[int, Any]]:
    """Return the key of the greatest or least value of each target that has one, and this value in plain."""
    entities = np.array(sorted(set().union(*of_target.values())), np.int64)
    ranked, rows = ranked_values(graph.lazy_values, entities)
    keys = {entity: tuple(key) for entity, key in zip(entities[ranked].tolist(), rows[ranked].tolist(), strict=True)}
    choose = max if descending else min
    best: dict[int, int] = {}
    for target, of_one in of_target.items():
        if known := sorted(entity for entity in of_one if entity in keys):
            best[target] = choose(known, key=lambda entity: keys[entity])
    shown = {target: plain_value(graph, entity) for target, entity in best.items()}
    return {target: keys[entity] for target, entity in best.items()}, shown


def plain_value(graph: KnowledgeGraph, entity: int) -> int | float | bool | str:
    """Return what the label of an entity says as a value, as JSON has it; else the label."""
    value = graph.entity_value(entity)
    return graph.names[int(graph.labels[entity])] if value is None else value.plain


def compared(
    operation: Operation, sides: Sequence[Iterable[int]], graph: KnowledgeGraph
) -> tuple[bool | None, list[int]]:
    """Return whether a comparison of two unknowns holds, and what it rests on; None where that is not certain.

    By "=" and "!=", sides without any values are compared as entities: they are equal if they are the same ones, and
    unequal if they share none.

    Args:
        operation: "compare".
        sides: What each of the two unknowns is.
        graph: Gives the labels.
    """
    one, other = (sorted(set(side)) for side in sides)
    comparison: Comparison = operation.comparison or "="
    if operation.of == "count":
        return holds(Value("", number=len(one)), comparison, Value("", number=len(other))), [*one, *other]
    values = [[(entity, graph.entity_value(entity)) for entity in side] for side in (one, other)]
    known = [[(entity, value) for entity, value in side if value is not None] for side in values]
    if one and other and comparison in ("=", "!=") and not known[0] and not known[1]:
        certain = one == other or set(one).isdisjoint(other)
        return ((one == other) == (comparison == "="), [*one, *other]) if certain else (None, [])
    if not known[0] or not known[1]:
        return None, []
    pairs = [(left, right) for left in known[0] for right in known[1]]
    truth = all(holds(left[1], comparison, right[1]) for left, right in pairs)
    opposite = _OPPOSITE[comparison]
    if not truth and not all(holds(left[1], opposite, right[1]) for left, right in pairs):
        return None, []  # dates that are not whole, units that differ, several values
    return truth, [entity for side in known for entity, _ in side]


_OPPOSITE: dict[Comparison, Comparison] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
