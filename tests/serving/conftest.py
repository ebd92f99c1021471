"""Fixtures that the tests of servers share."""

from __future__ import annotations

import pytest

from kg_retrievers import GraphIndex, default_embeddings
from kg_retrievers.sample import load_graph
from kg_retrievers.serving.service import GraphService


@pytest.fixture(scope="module")
def index() -> GraphIndex:
    """Return the index of the sample graph."""
    return GraphIndex.build(load_graph(), default_embeddings())


@pytest.fixture(scope="module")
def service(index: GraphIndex) -> GraphService:
    """Return a service of the sample graph."""
    return GraphService(index)
