"""ConnectedIndex: an index whose graph lives in a database, and whose names live in a vector store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings

from kg_retrievers.algorithms.candidates import Candidates
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph, Triple
from kg_retrievers.graph.cache import Cache, check_picklable
from kg_retrievers.graph.columns import Array, fingerprint
from kg_retrievers.graph.parts import PartReader
from kg_retrievers.graph.relation_samples import FACTS
from kg_retrievers.graph.verbalize import readable
from kg_retrievers.index.connected_graph import ConnectedGraph, GraphPart
from kg_retrievers.index.connected_names import ConnectedNames
from kg_retrievers.index.embeddings import embed, embedding_name
from kg_retrievers.index.graph_index import GraphIndex
from kg_retrievers.index.name_columns import name_columns
from kg_retrievers.index.name_table import NameTable
from kg_retrievers.index.nearest import ids_by_text, sorted_candidates
from kg_retrievers.index.part_at_hand import CURRENT, AtPart, PartAtHand, PartNames
from kg_retrievers.index.reach import Attempt, Reach
from kg_retrievers.index.server_names import Near, ServerNames
from kg_retrievers.index.text_vectors import TextVectors
from kg_retrievers.index.triple_vectors import TripleVectors
from kg_retrievers.index.vector_store import SLACK, ExactSearch, VectorStoreSearch

#: How often a part is made larger by what the work on it asked for.
ROUNDS = 6

#: The facts of how many entities are read for the outline of a graph, those of the relations' samples.
OUTLINE_ENTITIES = 2_000


class ConnectedIndex(GraphIndex):
    """Finds things in a graph that stays in its database; see `GraphIndex.connect`.

    `graph`, and what finds things in it, are those of the part that the work at hand looks at (`within`); outside of
    such work they hold the relations and no facts.

    Args:
        connected: Fetches parts of the graph.
        embeddings: What turns texts into vectors.
        store: Holds the names of the graph; None where there is none.
    """

    def __init__(
        self, connected: ConnectedGraph, embeddings: Embeddings, store: VectorStoreSearch | None = None
    ) -> None:
        """Embed the relations."""
        self.connected, self.embeddings, self.store = connected, embeddings, store
        names = None if store is None else ServerNames(store, embeddings)
        if names is not None:
            names.refresh()  # refuses those of other embeddings
        relations = embed(embeddings, [readable(name) for name in connected.relations] or [""], batch_size=1024)
        self.dimension = relations.shape[1]
        self.fingerprint = fingerprint({}, {"relations": connected.relations, "embeddings": embedding_name(embeddings)})
        self._relations = ExactSearch(relations[: len(connected.relations)])
        self._folder = self._linking = None
        self._texts = TextVectors(embeddings, self.dimension, lambda: self._held_texts)
        self._near = ConnectedNames(connected, names, self.embed)
        self._nothing = self._as_part(GraphPart(connected.graph_of([], []), False))
        self._made = Cache()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what reads the database and the store, if they can be."""
        hint = "Connect in the other process: GraphIndex.connect(executor, embeddings)."
        for part in (self.connected.reader, self.embeddings, self.store):
            check_picklable(part, "GraphIndex", hint)
        return ConnectedIndex, (self.connected, self.embeddings, self.store)

    def __repr__(self) -> str:
        """What reads the graph, and the embeddings."""
        return f"GraphIndex.connect({self.connected.reader!r}, {embedding_name(self.embeddings)})"

    # --- the part at hand -------------------------------------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        """True: the graph is in a database."""
        return True

    @property
    def finds_near_names(self) -> bool:
        """Whether there is a store of names."""
        return self.store is not None

    def has_graph_of(self, other: GraphIndex) -> bool:
        """Tell whether another index reads the same database."""
        return other is self or (isinstance(other, ConnectedIndex) and other.connected.reader is self.connected.reader)

    def attempts(self, reach: Reach, *, once: bool = False) -> Iterator[Attempt]:
        """Yield attempts at some work, each with a part of the graph at hand; see `GraphIndex.attempts`."""
        keys = self._keys(reach)
        for number in range(ROUNDS):
            attempt = AtPart(self, self._part(reach, keys), keys, reach, is_last=once or number == ROUNDS - 1)
            yield attempt
            if attempt.is_done:
                return
            keys, reach = keys | attempt.lacked, attempt.reach

    def lacks(self, keys: Iterable[str], facts: Iterable[Triple] = ()) -> bool:
        """Tell whether entities or facts are missing in the part at hand, and note them; see `GraphIndex.lacks`."""
        part, graph = self._current, self.graph
        missing = {key for key in keys if key not in graph.entities}
        unread = {triple for triple in facts if triple not in graph}
        part.missing.update(missing)
        part.facts.update(unread)
        return bool(missing or unread)

    def look_as_far_as(self, hops: int) -> None:
        """Note that the work looks so many facts far; see `GraphIndex.look_as_far_as`."""
        self._current.hops.add(hops)

    @property
    def reader(self) -> PartReader:
        """What reads the database."""
        return self.connected.reader

    @property
    def _current(self) -> PartAtHand:
        return CURRENT.get({}).get(id(self), self._nothing)

    def _keys(self, reach: Reach) -> frozenset[str]:
        """Return the entities that a reach begins from."""
        keys = set(reach.keys)
        if reach.question.strip():
            keys.update(self._near.in_question(reach.question))
        if reach.names:
            near = self._near.nearest(reach.names, reach.k)
            keys.update(key for one in chain.from_iterable(near) for key in one.name.keys)
        return frozenset(keys)

    def _part(self, reach: Reach, keys: frozenset[str]) -> PartAtHand:
        """Return the part within reach of some entities; one that was made lately is taken again."""
        kept: dict[Any, PartAtHand] = self.connected.parts.get_all([(keys, reach)])
        if not kept:
            kept = {(keys, reach): self._as_part(self.connected.part(keys, reach))}
            self.connected.parts.keep(kept)
        return replace(kept[keys, reach], missing=set(), facts=set(), hops=set())

    def _as_part(self, found: GraphPart) -> PartAtHand:
        graph = found.graph
        triples = TripleVectors(graph, self.dimension, self._embed_new, None)
        return PartAtHand(found, self._search_types(graph), PartNames(graph, self._embed_new), triples)

    def _search_types(self, graph: KnowledgeGraph) -> ExactSearch:
        return ExactSearch(self._embed_new([readable(name) for name in graph.types]))

    def _embed_new(self, texts: Sequence[str]) -> Array:
        """Embed some texts, or none, and keep none of them."""
        return self._texts.embed_new(texts) if texts else np.empty((0, self.dimension), np.float32)

    @property
    def is_cut(self) -> bool:
        """Whether facts within reach are missing in the part at hand."""
        return self._current.found.truncated

    @property
    def is_narrowed(self) -> bool:
        """Whether facts within reach of other relations are missing in the part at hand."""
        return self._current.found.narrowed

    @property
    def triple_count(self) -> int | None:
        """How many triples the whole graph has; None where the database does not count them."""
        return self.connected.triple_count

    @property
    def whole(self) -> GraphIndex:
        """An index that stands for the whole graph: of some facts of each relation; of all facts of a small graph."""
        return self._made.get("outline", (self.connected,), self._outline)

    def _outline(self) -> GraphIndex:
        """Read some facts of each relation and facts around these; all facts where a part may hold so many."""
        connected = self.connected
        count = connected.triple_count
        is_small = count is not None and count <= connected.max_facts
        most = max(count or 1, 1) if is_small else FACTS
        facts = set(connected.reader.sample_facts(connected.relations, most, timeout=connected.timeout).triples)
        if not is_small:
            facts.update(connected.part(self._ends_of_samples(facts), Reach(hops=1)).graph.triples())
        ends = {end for triple in facts for end in (triple.head, triple.tail)}
        graph = connected.graph_of(sorted(facts), sorted(ends))
        names = PartNames(graph, self._embed_new)
        return GraphIndex(graph, self.embeddings, self.dimension, names, self._relations, self._search_types(graph))

    def _ends_of_samples(self, facts: Collection[Triple]) -> set[str]:
        """Return the ends of some facts of each relation, about `OUTLINE_ENTITIES` in all."""
        each, counts = max(OUTLINE_ENTITIES // (2 * max(len(self.connected.relations), 1)), 1), Counter[str]()
        ends: set[str] = set()
        for head, relation, tail in sorted(facts):
            counts[relation] += 1
            if counts[relation] <= each:
                ends |= {head, tail}
        return ends

    # --- what GraphIndex holds, of the part at hand -----------------------------------------------------------------

    @property
    def graph(self) -> KnowledgeGraph:  # type: ignore[override]
        """The part of the graph at hand."""
        return self._current.found.graph

    @property
    def derived(self) -> Cache:  # type: ignore[override]
        """What is derived from the part at hand."""
        return self._current.derived

    @property
    def _names(self) -> PartNames:  # type: ignore[override]
        return self._current.names

    @property
    def _types(self) -> ExactSearch:  # type: ignore[override]
        return self._current.types

    @property
    def _triples(self) -> TripleVectors:  # type: ignore[override]
        return self._current.triples

    @property
    def name_table(self) -> NameTable:
        """The names of the part at hand."""
        graph = self.graph
        return self.derived.get("names", (), lambda: NameTable(graph, name_columns(graph)))

    @property
    def keeps_names(self) -> bool:
        """False: the vectors of names are in the store."""
        return False

    @property
    def _held_texts(self) -> dict[str, Array]:
        return self._made.get("texts", (self._relations,), lambda: dict(self._relation_texts()))

    def _relation_texts(self) -> Iterator[tuple[str, Array]]:
        return zip(map(readable, self.connected.relations), self._relations.vectors, strict=True)

    @property
    def _exact_types(self) -> dict[str, list[int]]:
        return ids_by_text(self.graph.types)

    def exact_entities(self, texts: Sequence[str]) -> list[Candidates]:
        """Find the entities that are called as each text, or have it as a key; see `GraphIndex.exact_entities`."""
        return [self._candidates([one for one in near if not one.distance]) for near in self._near.nearest(texts, 1)]

    def nearest_entities(self, texts: Sequence[str], k: int) -> list[Candidates]:
        """Find the entities whose names are nearest to each text; see `GraphIndex.nearest_entities`.

        Those that are not in the part at hand are noted, for the part to grow.
        """
        if isinstance(texts, str) or k < 1:
            raise InvalidArgumentError(f"GraphIndex: wanted a list of texts and k from 1, but got {texts!r} and {k}.")
        return [self._candidates(near) for near in self._near.nearest(texts, k)]

    def nearest_types(self, texts: Sequence[str], k: int) -> list[Candidates]:
        """Find those of the k types nearest to each text that the part at hand has; see `GraphIndex.nearest_types`."""
        found = super().nearest_types(texts, k)
        if not len(self.graph.types) or not texts:
            return found
        elsewhere = self.whole.nearest_types(texts, k)
        return [_nearer(own, other.distances, k) for own, other in zip(found, elsewhere, strict=True)]

    def _candidates(self, near: Sequence[Near]) -> Candidates:
        part, graph = self._current, self.graph
        distances: dict[int, float] = {}
        for key, distance in ((key, one.distance) for one in near for key in one.name.keys):
            id = graph.entities.find(key)
            if id >= 0:
                distances[id] = min(distance, distances.get(id, distance))
            else:
                part.missing.add(key)
        ids = np.fromiter(distances, np.int32, len(distances))
        return sorted_candidates(ids, np.fromiter(distances.values(), np.float32, len(distances)))


def _nearer(own: Candidates, elsewhere: Array, k: int) -> Candidates:
    """Return the types of a part that are among the k nearest of the whole graph, whose distances are given."""
    reached = elsewhere[k - 1] if len(elsewhere) >= k else np.inf
    kept = own.distances <= reached + SLACK
    return Candidates(own.ids[kept], own.distances[kept])


def connect(
    reader: PartReader,
    embeddings: Embeddings,
    vectors: VectorStoreSearch | None,
    *,
    max_facts: int,
    fresh_seconds: float,
    timeout: float,
) -> ConnectedIndex:
    """Connect to a graph that stays in its database; see `GraphIndex.connect`."""
    connected = ConnectedGraph(reader, max_facts=max_facts, fresh_seconds=fresh_seconds, timeout=timeout)
    return ConnectedIndex(connected, embeddings, vectors)
