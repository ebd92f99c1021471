"""The pattern that is carried out: its names checked, and triples turned that can only be meant the other way round.

A triple whose relation is known is turned if the graph shows that only the other direction can be meant. So a triple
stays as it is

- if the entities that its nodes may be, by name or type, have facts in the written direction, or in neither,
- if heads and tails of its relation are of one kind, as of "parent of": there may be no answer,
- if another triple might be turned instead,
- if one would be both present and absent, or
- if the pattern says whether directions count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from itertools import chain, combinations, product
from typing import Any, NamedTuple

import numpy as np

from kg_retrievers.errors import EntityLinkingError, LowConfidenceError
from kg_retrievers.graph import KnowledgeGraph, Known, Pattern, PatternTriple, Term, Unknown
from kg_retrievers.graph.adjacency import label_of
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.values import holds, read_value
from kg_retrievers.index import Candidates, GraphIndex, linker_of
from kg_retrievers.index.misspelt_names import FUZZY_SHARE
from kg_retrievers.index.names import likeness
from kg_retrievers.questions.fact_attributes import check_attributes
from kg_retrievers.questions.possible_entities import NAMES, nearest_named, nearest_only, possible_entities

#: A relation is meant within the first distance. Within the second it is meant if it is nearer than any other by the
#: third. Chosen by `benchmarks/known_texts.py` on 172 texts for relations of three graphs, and 78 for relations that
#: these lack: 49 % of the former pass, 3 % for a wrong relation, and 12 % of the latter. Within 1.1 alone, 58, 15 and
#: 24 % do, and within .9 alone, 34, 1 and 8 %.
SAME_RELATION, LIKELY_RELATION, RELATION_MARGIN = 0.9, 1.1, 0.2

#: How many names an error suggests.
SUGGESTED = 3

_DIGITS = re.compile(r"\d+")


#: Who takes the names of patterns from the graph, by `Pattern.source`.
READERS = frozenset({"examples", "question-forms", "zero-shot", "chosen"})


def check_known_texts(index: GraphIndex, pattern: Pattern, linked: Collection[str] = ()) -> None:
    """Check that a pattern names entities and relations of the graph, if anybody but a reader of ours wrote it.

    A reader takes its names from the graph, so a list of matches by one of the `READERS` is not checked.

    A name counts as one of the graph if it shares as many letters with a name of the graph as a misspelt one does, and
    all digits, or if it is short for one. The distance of embeddings says little: within .9, 56 % of names of MetaQA
    have another name, and 3 % have one with so many equal letters (`benchmarks/known_texts.py`).

    Args:
        index: The indexed graph.
        pattern: The pattern.
        linked: Texts whose entities are known.

    Raises:
        EntityLinkingError: If it has no entity of a name; the nearest are the suggestions.
        LowConfidenceError: If it has no relation that a text means, or several; the nearest are `nearest`.
    """
    if pattern.source in READERS and _is_list(pattern):
        return
    if not index.is_part:  # a part may lack what other facts have
        check_attributes(index.graph, pattern)
    names = [text for text in dict.fromkeys(_entity_texts(pattern)) if text not in linked]
    for text, nearest in zip(names, nearest_named(index, names), strict=True):
        if not _is_named(index, text, nearest):
            raise EntityLinkingError(
                f"The pattern names {text!r}, which the graph lacks.",
                _nearest_labels(index, text),
                hint_python="Name an entity of the graph.",
            )
    counts = pattern.typed or not _is_list(pattern)  # else a type is no more than a distance
    for kind in dict.fromkeys(node.type for node in pattern.nodes if node.type is not None and counts):
        if len(index.graph.types) and kind not in index.graph.types_below and not index.is_part:
            types = get_close_matches(kind, index.graph.types_below, SUGGESTED, 0.0)
            raise _lacks(f"type {kind!r}", kind, types, "Name a type of the graph, or leave the type out.")
    terms = dict.fromkeys(triple.relation for triple in (*pattern.triples, *pattern.absent))
    texts = [term.text for term in terms if isinstance(term, Known)]
    for text, found in zip(texts, index.nearest_relations(texts, SUGGESTED), strict=True):
        if not _is_relation(found):
            relations = [index.graph.relations[relation] for relation in found.ids.tolist()]
            raise _lacks(f"relation {text!r}", text, relations, "Name a relation of the graph.")


def _lacks(what: str, text: str, nearest: list[str], hint: str) -> LowConfidenceError:
    named = f"The pattern names the {what}, which the graph lacks. The nearest are {nearest}."
    return LowConfidenceError(named, 0.0, [text], nearest, hint_python=hint)


def _is_list(pattern: Pattern) -> bool:
    """Tell whether a pattern asks for no more than its matches."""
    is_list = pattern.operation is None or (pattern.operation.kind == "list" and not pattern.operation.by)
    return is_list and not pattern.conditions and not pattern.absent and not pattern.attributes


def _entity_texts(pattern: Pattern) -> Iterator[str]:
    """Yield the texts of the entities that a pattern names, and does not pin."""
    ends = (node for triple in (*pattern.triples, *pattern.absent) for node in (triple.head, triple.tail))
    yield from (node.text for node in (*pattern.alone, *ends) if isinstance(node, Known) and node.entity is None)
    for condition in pattern.conditions:
        is_value = condition.unknown in pattern.attribute_unknowns
        if condition.operator == "in" and isinstance(condition.value, tuple) and not is_value:
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


#: The most edges among which some are turned. If there are more, none is.
MAX_TURNED = 10

#: Ours. Heads and tails of a relation are of different kinds if at most these shares of the smaller and of the larger
#: of both sets are in both, as where names are keys and two of 23 genres are also the names of films, of 11,947. Of the
#: 237 relations of FB15k-237, 173 share no ends, 5 more are within the limits, and none of these joins things of one
#: kind.
SHARED_OF_FEWER, SHARED_OF_MORE = 0.1, 0.002

#: Of up to so many entities, each is asked for a label. Of more, all that have it are found.
MANY = 100_000


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
        """The graph. Of a connected graph, some facts of each relation."""
        return self.index.whole.graph

    def correct(
        self,
        edges: Sequence[Edge],
        entities: Mapping[Any, Sequence[int] | Array],
        allowed: Callable[[int, bool], bool] = lambda edge, turned: True,
        *,
        only: bool = False,
    ) -> list[bool]:
        """Return which edges must be turned so that all of them can be in the graph, as few as possible.

        They can be in the graph if, at each node, all ends of relations meet in some entity. If the node's own entities
        are known, it must be one of them. If nothing is wrong, or no choice is right, none is turned. An edge whose
        relation joins entities of one kind, as "parent of" does, is not turned for missing facts: there may be no
        answer.

        Args:
            edges: Edges with relations of the graph.
            entities: The ids of the entities that a node may be, where that is known.
            allowed: Whether an edge, by its position, may stand as it is, or turned.
            only: Whether none is turned where as few others might be turned instead.
        """
        positions = range(len(edges))
        choices = product([False, True], repeat=len(edges)) if len(edges) <= MAX_TURNED else [(False,) * len(edges)]

        def may_be(position: int, turned: bool) -> bool:
            free = (
                not turned or not allowed(position, False) or all(map(self._has_two_kinds, edges[position].relations))
            )
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

    def _has_two_kinds(self, relation: int) -> bool:
        """Tell whether the heads of a relation are of another kind than its tails."""
        known: dict[int, bool] = self.index.whole.derived.get("kinds of ends", (), dict)
        if relation not in known:
            heads, tails = (self._sources(label_of(relation, backward)) for backward in (False, True))
            shared = int(np.isin(heads, tails).sum())
            fewer, more = sorted([len(heads), len(tails)])
            known[relation] = shared <= SHARED_OF_FEWER * fewer and shared <= SHARED_OF_MORE * more
        return known[relation]

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
        if len(entities) > MANY:
            return np.isin(entities, graph.relation_samples.all_sources_of(label, adjacency))
        firsts, lasts = adjacency.ranges_with(entities, label)
        return np.asarray(firsts < lasts)

    def _sources(self, label: int) -> Array:
        """Return the entities that have an edge of a label, ascending."""
        return self.graph.relation_samples.all_sources_of(label, self.graph.adjacency)

    def _meets(self, one: int, other: int) -> bool:
        """Tell whether an entity has edges of both adjacency labels."""
        known: dict[tuple[int, int], bool] = self.index.whole.derived.get("meeting labels", (), dict)
        pair = (min(one, other), max(one, other))
        if pair not in known:
            samples = self.graph.relation_samples
            fewer, more = sorted(pair, key=lambda label: int(samples.sources[label]))
            meet = bool(self._having(self.graph, samples.sources_of(fewer), more).any())
            if not meet and not samples.has_all(fewer):
                meet = bool(np.isin(self._sources(fewer), self._sources(more)).any())
            known[pair] = meet
        return known[pair]


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
        """The details for the evidence: "turned", if triples are turned."""
        return {"turned": Pattern(self.turned).to_dict()["triples"]} if self.turned else {}


def carried_out(
    index: GraphIndex,
    pattern: Pattern,
    linked: Mapping[str, Sequence[str]] | None = None,
    *,
    check_names: bool = True,
) -> CarriedOut:
    """Return the pattern that is carried out: the same one without an operation, conditions and absent triples.

    Args:
        index: The indexed graph.
        pattern: The pattern.
        linked: The keys of the entities that are known for some texts.
        check_names: Whether a list of matches may name only what the graph has; see `check_known_texts`.

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
    linked = linked or {}
    if check_names or not _is_list(pattern):
        check_known_texts(index, pattern, linked)
    if pattern.directed is not None or (pattern.operation is None and _is_list(pattern)):
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
