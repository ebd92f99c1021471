"""SubgraphRAG under the contract of all retrievers, by hand, by its fields, and as a person edits what it scores."""

from __future__ import annotations

import math
from typing import Any

import networkx as nx
import numpy as np
import pytest
from built_methods import TINY, Facts, drawn_model, indexed, scores, triples
from films_and_claims import BY, FILMS, GENRE, WRITTEN
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers import (
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    SubgraphRAGRetriever,
    TripleScorer,
    build_workflow,
)
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import InvalidArgumentError, ModelMismatchError
from kg_retrievers.methods.subgraph_rag.model import TripleScorerConfig
from kg_retrievers.testing import RetrieverContract, tiny_graph

EMBEDDINGS = HashedEmbeddings()

MODEL = drawn_model("subgraph-rag")
OTHER = drawn_model("subgraph-rag", HashedEmbeddings(64))


class TestSubgraphRAG(RetrieverContract):
    retriever_class = SubgraphRAGRetriever
    takes_llm = False

    def make_retriever(self, index: GraphIndex, **fields: Any) -> BaseKGRetriever:
        return super().make_retriever(index, **({"model": MODEL} | fields))


def subgraph_rag(facts: Facts | KnowledgeGraph | GraphIndex, **fields: Any) -> SubgraphRAGRetriever:
    """Return a retriever on facts, with drawn weights."""
    return SubgraphRAGRetriever.from_index(indexed(facts), **({"model": MODEL} | fields))


def valued(facts: Facts | KnowledgeGraph | GraphIndex, values: dict[str, float]) -> TripleScorer:
    """Return a model by which the logit of a triple is the value of its relation."""
    vectors = indexed(facts).relation_vectors.astype(np.float64)
    names = list(indexed(facts).graph.relations)
    of = TripleScorerConfig(dimension=vectors.shape[1], hidden=len(names), rounds=0, hops=0)
    weights = {name: np.zeros(shape, np.float32) for name, shape in of.shapes.items()}
    weights["relation"] = np.linalg.pinv(vectors)  # a unit of its own for each relation
    weights["output"] = np.array([values[name] for name in names])
    return TripleScorer(of, weights, probe=MODEL.probe, embeddings="hashed")


def given_triples(*rows: Any, truncated: Any = False) -> dict[str, Any]:
    return {"scored_triples": {"triples": [list(row) for row in rows], "truncated": truncated}}


# --- by hand ----------------------------------------------------------------------------------------------------------

HER, DRAMA, ADAPTATION, KAUFMAN = FILMS
#: Shares of 4/11, 2/11, 4/11 and 1/11.
VALUES = {BY: math.log(4), GENRE: math.log(2), WRITTEN: 0.0}


def by_hand(facts: Facts = FILMS, values: dict[str, float] = VALUES, **fields: Any) -> SubgraphRAGRetriever:
    return subgraph_rag(facts, model=valued(facts, values), **fields)


def test_triples_by_hand() -> None:
    """Best first; of equal ones, that which the graph holds first."""
    documents = by_hand().invoke("Who directed Her?")
    assert triples(documents) == [[HER], [ADAPTATION], [DRAMA], [KAUFMAN]]
    assert scores(documents) == pytest.approx([4 / 11, 4 / 11, 2 / 11, 1 / 11], abs=1e-6)
    assert [document.page_content for document in documents][:2] == [
        "Her -> directed by -> Spike Jonze",
        "Adaptation -> directed by -> Spike Jonze",
    ]
    assert documents[0].metadata["details"] == {"entities": [["Her", "Her"]]}
    assert all(document.metadata["answers"] == [] for document in documents)
    assert triples(by_hand(max_hops=1).invoke("Who directed Her?")) == [[HER], [DRAMA]]
    assert scores(by_hand(max_hops=1).invoke("Who directed Her?")) == pytest.approx([2 / 3, 1 / 3], abs=1e-6)


# --- whatever the graph -----------------------------------------------------------------------------------------------


@st.composite
def cases(draw: st.DrawFn) -> tuple[SubgraphRAGRetriever, list[str]]:
    """A retriever on a graph with loops, parallel relations and lonely entities, and what is asked about."""
    key = st.integers(0, 6).map("e{}".format)
    facts = draw(st.lists(st.tuples(key, st.sampled_from(["r", "s", "t"]), key), max_size=12))
    graph = KnowledgeGraph.from_triples(facts, labels={f"e{i}": f"label {i}" for i in range(7)})
    config = draw(st.sampled_from([{}, {"hops": 0}, {"directed": True, "reverse_rounds": 2}, {"identifiers": ".*"}]))
    fields = {
        "model": drawn_model("subgraph-rag", seed=draw(st.integers(0, 3)), **config),
        "granularity": draw(st.sampled_from(["triple", "subgraph"])),
        "max_triples": draw(st.integers(1, 12)),
        "max_hops": draw(st.sampled_from([None, 1, 2, 3])),
        "max_nodes": draw(st.sampled_from([None, 2, 4])),
    }
    return subgraph_rag(graph, **fields), draw(st.lists(key, min_size=1, max_size=3, unique=True))


@given(cases())
@settings(max_examples=80)
def test_what_holds_for_every_list(case: tuple[SubgraphRAGRetriever, list[str]]) -> None:
    """The scores are the shares of all candidates, in order, of which the first are packed into components."""
    retriever, seeds = case
    documents = retriever.invoke("who is it ?", k=100, seed_entities=seeds)
    TestSubgraphRAG().check_documents(retriever, documents)
    graph = retriever.graph
    candidates, truncated = retriever.triples_in_scope(seeds)
    assert all(document.metadata["truncated"] is truncated for document in documents)
    numbers = np.array([graph.entities.find(seed) for seed in seeds])
    logits = retriever.model.on(retriever.index).score("who is it ?", candidates, numbers).astype(np.float64)
    order = sorted(range(len(candidates)), key=lambda place: (-logits[place], place))
    shares = np.exp(logits) / np.exp(logits).sum()
    ranked = [(tuple(graph.triple(int(candidates[place]))), float(shares[place])) for place in order]
    if retriever.granularity == "triple":
        assert triples(documents) == [[triple] for triple, _ in ranked]
        assert scores(documents) == pytest.approx([share for _, share in ranked])
        assert sum(scores(documents)) == pytest.approx(1 if ranked else 0)
        return
    first = dict(ranked[: retriever.max_triples])
    parts = list(nx.connected_components(nx.Graph([(head, tail) for head, _, tail in first])))
    expected = [[triple for triple in first if triple[0] in part] for part in parts]
    assert sorted(triples(documents)) == sorted(expected)
    for document, facts in zip(documents, triples(documents), strict=True):
        assert document.metadata["score"] == pytest.approx(sum(first[fact] for fact in facts))


# --- entities ---------------------------------------------------------------------------------------------------------


def test_the_masked_question_is_what_the_model_reads() -> None:
    """Not the question as it was asked."""
    retriever = subgraph_rag(TINY)
    scorer, graph = MODEL.on(TINY), TINY.graph
    (document,) = retriever.invoke("Who starred in Amélie?", k=1)
    candidates, _ = retriever.triples_in_scope(["Amélie"])
    logits = scorer.score("Who starred in _?", candidates, np.array([graph.entities.find("Amélie")]))
    assert triples([document]) == [[tuple(graph.triple(int(candidates[np.argmax(logits)])))]]
    others = retriever.invoke("Who starred in Amélie?", masked_question="千?", seed_entities=["Amélie"])
    assert scores(others) != scores(retriever.invoke("Who starred in Amélie?"))
    masked = retriever.invoke("Anything?", masked_question="Who starred in _?", seed_entities=["Amélie"])
    whole = retriever.invoke("Who starred in Amélie?")
    assert [(one.id, one.metadata["score"]) for one in masked] == [(one.id, one.metadata["score"]) for one in whole]


# --- what bounds it ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("granularity", ["triple", "subgraph"])
def test_max_nodes(granularity: str) -> None:
    star = [("hub", "r", f"leaf {leaf}") for leaf in range(9)]
    for most, cut in ((1, True), (2, True), (4, True), (10, False), (None, False)):
        retriever = subgraph_rag(star, max_nodes=most, granularity=granularity)
        documents = retriever.invoke("?", k=99, seed_entities=["hub"])
        assert sum(len(facts) for facts in triples(documents)) == (9 if most is None else most - 1)
        assert all(document.metadata["truncated"] is cut for document in documents)


# --- the model --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [None, 5, {}, HashedEmbeddings(8)], ids=lambda model: type(model).__name__)
def test_no_model(model: Any) -> None:
    """The message says how one is trained."""
    words = r"model=train_triple_scorer\(index, questions\)"
    with pytest.raises(InvalidArgumentError, match=words) as caught:
        SubgraphRAGRetriever.from_index(TINY, model=model)
    assert str(caught.value).startswith("SubgraphRAGRetriever: model: ")
    assert ("got none" in str(caught.value).lower()) is (model is None)
    retriever = subgraph_rag(TINY)
    with pytest.raises(InvalidArgumentError, match=words):
        retriever.model = model
    assert retriever.model is MODEL
    with pytest.raises(InvalidArgumentError, match="model"):
        SubgraphRAGRetriever(index=TINY)


async def test_a_model_of_other_embeddings() -> None:
    """Is refused, at once or with the next question, and named."""
    words = r"dimension=64.*64 numbers.*dimension=512"
    with pytest.raises(ModelMismatchError, match=words):
        subgraph_rag(TINY, model=OTHER)
    changed = subgraph_rag(TINY), subgraph_rag(TINY)
    changed[0].model = OTHER
    changed[1].index = GraphIndex.build(tiny_graph(), HashedEmbeddings(64))
    for retriever in changed:
        with pytest.raises(ModelMismatchError):
            retriever.invoke("Who directed Her?")
        with pytest.raises(ModelMismatchError):
            await retriever.ainvoke("Who directed Her?")
        with pytest.raises(ModelMismatchError):
            build_workflow(retriever).invoke({"question": "Who directed Her?"})
    changed[1].model = OTHER
    assert len(changed[1].invoke("Who directed Her?")) == 4


def test_the_limits_of_the_training() -> None:
    """They are those of the retriever, unless others are given."""
    model = TripleScorer(
        MODEL.config, MODEL.weights, probe=MODEL.probe, embeddings="", training={"max_hops": 1, "max_nodes": None}
    )
    retriever = SubgraphRAGRetriever.from_index(TINY, model=model)
    assert (retriever.max_hops, retriever.max_nodes) == (1, None)
    retriever = SubgraphRAGRetriever.from_index(TINY, model=model, max_hops=2, max_nodes=9)
    assert (retriever.max_hops, retriever.max_nodes) == (2, 9)


# --- what a person edits ----------------------------------------------------------------------------------------------


def test_scored_triples_that_are_supplied() -> None:
    """Nothing is scored; they come in the order of their scores, equal ones in theirs."""
    edited = given_triples((*KAUFMAN, 1), (*HER, 2.5), (*DRAMA, 1.0))
    documents = by_hand().invoke("Who directed Her?", **edited)
    assert triples(documents) == [[HER], [KAUFMAN], [DRAMA]]
    assert scores(documents) == [2.5, 1.0, 1.0]
    assert [type(score) for score in scores(documents)] == [float] * 3
    assert triples(by_hand(k=1).invoke("Who directed Her?", **edited)) == [[HER]]
    packed = by_hand(granularity="subgraph").invoke("Who directed Her?", **edited)
    assert triples(packed) == [[HER, DRAMA], [KAUFMAN]]
    assert scores(packed) == [3.5, 1.0]
    assert triples(by_hand(granularity="subgraph", max_triples=2).invoke("Who directed Her?", **edited)) == [
        [HER],
        [KAUFMAN],
    ]
