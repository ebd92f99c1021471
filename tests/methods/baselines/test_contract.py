"""The baselines under the contract of all retrievers."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from kg_retrievers import (
    ClosedBookRetriever,
    DenseSubgraphRetriever,
    GraphIndex,
    PageRankRetriever,
    PassageRetriever,
    RandomTripleRetriever,
)
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.testing import RetrieverContract

#: Tests that look at a Document, at an answer with citations, or for evidence in a prompt.
WANT_DOCUMENTS = {
    "test_k_constructor_param",
    "test_invoke_with_k_kwarg",
    "test_invoke_returns_documents",
    "test_ainvoke_returns_documents",
    "test_exactly_k_documents",
    "test_documents_are_as_documented",
    "test_same_list_of_a_copy",
    "test_as_tool",
    "test_workflow_gives_the_same_list",
    "test_workflow_starts_each_question_clean",
    "test_workflow_can_be_interrupted_before_every_stage",
    "test_workflow_passes_on_what_happens",
    "test_chains",
    "test_evaluation",
    "test_drawing",
    "test_empty_graph",
    "test_low_confidence_is_refused",
    "test_prompts",
    "test_answer_prompt_is_a_field",
    "test_answers_are_those_of_all_evidence_with_the_top_score",
}


class TestClosedBook(RetrieverContract):
    retriever_class = ClosedBookRetriever
    exact_k_fields: ClassVar[dict[str, Any]] = {}
    takes_llm = False
    links_entities = False

    @pytest.fixture(autouse=True)
    def _skip_what_wants_documents(self, request: pytest.FixtureRequest) -> None:
        if request.node.originalname in WANT_DOCUMENTS:
            pytest.skip("the method finds nothing by design")


class TestRandomTriples(RetrieverContract):
    retriever_class = RandomTripleRetriever
    exact_k_fields: ClassVar[dict[str, Any]] = {}
    takes_llm = False


class TestRandomTriplesOfTheWholeGraph(RetrieverContract):
    retriever_class = RandomTripleRetriever
    exact_k_fields: ClassVar[dict[str, Any]] = {}
    takes_llm = False
    links_entities = False

    def make_retriever(self, index: GraphIndex, **fields: Any) -> BaseKGRetriever:
        return RandomTripleRetriever.from_index(index, scope="graph", **fields)


class TestPageRank(RetrieverContract):
    retriever_class = PageRankRetriever
    exact_k_fields: ClassVar[dict[str, Any]] = {}
    takes_llm = False


class TestPassages(RetrieverContract):
    retriever_class = PassageRetriever
    exact_k_fields: ClassVar[dict[str, Any]] = {}
    takes_llm = False
    links_entities = False


class TestPassagesNearby(RetrieverContract):
    retriever_class = PassageRetriever
    exact_k_fields: ClassVar[dict[str, Any]] = {}
    takes_llm = False

    def make_retriever(self, index: GraphIndex, **fields: Any) -> BaseKGRetriever:
        return PassageRetriever.from_index(index, scope="neighborhood", **fields)


class TestDenseSubgraph(RetrieverContract):
    retriever_class = DenseSubgraphRetriever
    exact_k_fields: ClassVar[dict[str, Any]] = {"granularity": "triple"}
    takes_llm = False
