"""A reader of parts over a graph in memory, and connected indexes on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from kg_retrievers.graph import GraphBuilder, KnowledgeGraph, Triple
from kg_retrievers.graph.parts import MOST_FACTS, MOST_OF_NAME, TIMEOUT, EntityPage, Facts, StoredEntity
from kg_retrievers.index import VectorStoreSearch
from kg_retrievers.index.server_names import ServerNames, StoredName


class GraphReader:
    """Reads parts of a graph in memory, and counts its queries and rows.

    Args:
        graph: The graph.
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        """Read nothing yet."""
        self.graph = graph
        self.queries: list[str] = []
        self.rows = 0

    def relations(self, *, refresh: bool = False, timeout: float = TIMEOUT) -> list[str]:
        """See `PartReader`, as for all that follows."""
        return sorted(self.graph.relations)

    def count_facts(self, *, timeout: float = TIMEOUT) -> int | None:
        return len(self.graph)

    def facts_of(
        self,
        keys: Sequence[str],
        *,
        relations: Sequence[str] | None = None,
        limit: int = MOST_FACTS,
        timeout: float = TIMEOUT,
    ) -> Facts:
        names = (None,) if relations is None else tuple(relations)
        known = [key for key in keys if key in self.graph.entities]
        found = {triple for key in known for name in names for triple in self.graph.triples(key, name)}
        found |= {triple for key in known for name in names for triple in self.graph.triples(None, name, key)}
        return self._read("facts_of", found, limit, keys)

    def facts_between(self, keys: Sequence[str], *, limit: int = MOST_FACTS, timeout: float = TIMEOUT) -> Facts:
        among = set(keys).intersection(self.graph.entities)
        found = (triple for key in among for triple in self.graph.triples(key) if triple.tail in among)
        return self._read("facts_between", found, limit, keys)

    def describe(self, keys: Sequence[str], *, timeout: float = TIMEOUT) -> list[StoredEntity]:
        found = self._entities(keys)
        self._count("describe", len(found))
        return found

    def _entities(self, keys: Sequence[str]) -> list[StoredEntity]:
        graph = self.graph
        known = sorted(key for key in set(keys) if key in graph.entities)
        return [StoredEntity(key, graph.label(key), graph.aliases(key), graph.types_of(key)) for key in known]

    def entities_named(
        self, names: Sequence[str], *, limit: int = MOST_OF_NAME, timeout: float = TIMEOUT
    ) -> dict[str, list[str]]:
        graph = self.graph
        found = {
            name: sorted({*graph.entities_named(name), *([name] if name in graph.entities else [])})[:limit]
            for name in names
        }
        self._count("entities_named", sum(map(len, found.values())))
        return found

    def sample_facts(self, relations: Sequence[str], count: int, *, timeout: float = TIMEOUT) -> Facts:
        rows = [sorted(set(self.graph.triples(None, relation))) for relation in relations]
        found = [triple for row in rows for triple in row[:count]]
        self._count("sample_facts", len(found))
        return Facts(sorted(found), any(len(row) > count for row in rows))

    def entities_after(self, position: str, page_size: int, *, timeout: float = TIMEOUT) -> EntityPage:
        keys = sorted(key for key in self.graph.entities if key > position or not position)
        page = self.describe(keys[:page_size])
        return EntityPage(page, page[-1].key if len(keys) > page_size else None)

    def _read(self, what: str, triples: Iterable[Triple], limit: int, keys: Sequence[str]) -> Facts:
        found = sorted(set(triples))
        self._count(what, len(found[:limit]))
        return Facts(found[:limit], len(found) > limit, self._entities(keys))

    def _count(self, what: str, rows: int) -> None:
        self.queries.append(what)
        self.rows += rows


def in_order(graph: KnowledgeGraph) -> KnowledgeGraph:
    """Return a graph with its entities by key and its relations by name, as parts of connected graphs have them."""
    builder = GraphBuilder()
    for name in sorted(graph.relations):
        builder.relation(name)
    for key in sorted(graph.entities):
        builder.entity(key)
        label = graph.label(key)
        builder.describe(key, None if label == key else label, graph.aliases(key), graph.types_of(key))
        if datatype := graph.datatype(key):
            builder.set_datatype(key, datatype)
    for triple in sorted(graph.triples()):
        for attributes in graph.attributes(triple) or [{}]:
            builder.add(*triple, attributes)
    return KnowledgeGraph(builder.columns()[0])


def names_in_memory(graph: KnowledgeGraph, embeddings: Embeddings) -> VectorStoreSearch:
    """Return a store in memory that holds the names of a graph."""
    store = VectorStoreSearch(InMemoryVectorStore(embeddings), "cosine_similarity")
    keys: dict[str, set[str]] = {}
    for key in graph.entities:
        for name in (graph.label(key), *graph.aliases(key)):
            keys.setdefault(name, set()).add(key)
    names = ServerNames(store, embeddings)
    names.add(StoredName(name, tuple(sorted(of))) for name, of in sorted(keys.items()))
    return store
