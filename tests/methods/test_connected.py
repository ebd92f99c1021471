"""Every method over a graph that stays in its database, under the contract of all retrievers."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from built_methods import drawn_model
from films_and_claims import TINY_EXAMPLES
from graph_reader import GraphReader, names_in_memory

from kg_retrievers import (
    CypherRetriever,
    GNNRAGRetriever,
    GraphIndex,
    HashedEmbeddings,
    KGRetriever,
    KnowledgeGraph,
    NeighborhoodRetriever,
    PCSTRetriever,
    RelationPathRetriever,
    SimGRAGRetriever,
    SubgraphRAGRetriever,
    TripleSimilarityRetriever,
)
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.testing import RetrieverContract

pytest.importorskip("ladybug")

from kg_retrievers.database.ladybug import LadybugExecutor

EMBEDDINGS = HashedEmbeddings()
REASONER, SCORER = drawn_model("gnn-rag"), drawn_model("subgraph-rag")


class Connected:
    """The contract, where the names are in a vector store."""

    def make_index(self, graph: KnowledgeGraph) -> GraphIndex:
        return GraphIndex.connect(GraphReader(graph), EMBEDDINGS, names_in_memory(graph, EMBEDDINGS))


class TestSimGRAG(Connected, RetrieverContract):
    retriever_class = SimGRAGRetriever
    exact_k_fields: ClassVar[dict[str, Any]] = {"ties": "break"}


class TestKGRetriever(Connected, RetrieverContract):
    retriever_class = KGRetriever


@pytest.mark.heavy
class TestNeighborhood(Connected, RetrieverContract):
    retriever_class = NeighborhoodRetriever
    exact_k_fields: ClassVar[dict[str, Any]] = {"granularity": "triple", "max_hops": 2}
    takes_llm = False


@pytest.mark.heavy
class TestPCST(Connected, RetrieverContract):
    retriever_class = PCSTRetriever
    takes_llm = False


@pytest.mark.heavy
class TestTripleSimilarity(Connected, RetrieverContract):
    retriever_class = TripleSimilarityRetriever
    exact_k_fields: ClassVar[dict[str, Any]] = {}
    takes_llm = False


@pytest.mark.heavy
class TestRelationPaths(Connected, RetrieverContract):
    retriever_class = RelationPathRetriever

    def make_retriever(self, index: GraphIndex, **fields: Any) -> BaseKGRetriever:
        return super().make_retriever(index, **({} if "llm" in fields else {"examples": TINY_EXAMPLES}) | fields)


@pytest.mark.heavy
class TestGNNRAG(Connected, RetrieverContract):
    retriever_class = GNNRAGRetriever
    takes_llm = False

    def make_retriever(self, index: GraphIndex, **fields: Any) -> BaseKGRetriever:
        return super().make_retriever(index, **{"model": REASONER, "threshold": 1} | fields)


@pytest.mark.heavy
class TestSubgraphRAG(Connected, RetrieverContract):
    retriever_class = SubgraphRAGRetriever
    takes_llm = False

    def make_retriever(self, index: GraphIndex, **fields: Any) -> BaseKGRetriever:
        return super().make_retriever(index, **{"model": SCORER} | fields)


_READERS: dict[str, GraphReader] = {}


class LadybugReader(GraphReader):
    """Reads parts in memory, and runs queries in an embedded database; it opens anew where it is unpickled."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        super().__init__(graph)
        self.executor = LadybugExecutor.from_graph(graph)
        self.dialect, self.schema = self.executor.dialect, self.executor.schema
        self.run = self.executor.run


class TestCypher(Connected, RetrieverContract):
    """Queries run where the graph is."""

    retriever_class = CypherRetriever
    exact_k_fields: ClassVar[dict[str, Any]] = {"ties": "break"}
    pickles = False

    def make_index(self, graph: KnowledgeGraph) -> GraphIndex:
        if graph.fingerprint not in _READERS:  # one database for all tests on a graph
            _READERS[graph.fingerprint] = LadybugReader(graph)
        return GraphIndex.connect(_READERS[graph.fingerprint], EMBEDDINGS, names_in_memory(graph, EMBEDDINGS))

    def make_retriever(self, index: GraphIndex, **fields: Any) -> BaseKGRetriever:
        return super().make_retriever(index, **({} if "llm" in fields else {"examples": TINY_EXAMPLES}) | fields)
