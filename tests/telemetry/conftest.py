"""What the tests of this folder watch."""

from __future__ import annotations

import pytest
from kept_spans import Kept

from kg_retrievers import GraphIndex, HashedEmbeddings, SimGRAGRetriever
from kg_retrievers.testing import tiny_graph


@pytest.fixture(scope="session")
def index() -> GraphIndex:
    return GraphIndex.build(tiny_graph(), HashedEmbeddings())


@pytest.fixture
def retriever(index: GraphIndex) -> SimGRAGRetriever:
    return SimGRAGRetriever.from_index(index)


@pytest.fixture
def kept() -> Kept:
    return Kept()
