"""What the baselines find, by hand and by plain renderings of their formulas."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest

from kg_retrievers import (
    DenseSubgraphRetriever,
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    PageRankRetriever,
    PassageRetriever,
    Question,
    RandomTripleRetriever,
    evaluate,
)
from kg_retrievers.errors import InvalidArgumentError, NoEvidenceError
from kg_retrievers.methods.registry import BASELINES, Method

FACTS = [
    ("Alpha", "joins", "Beta"),
    ("Alpha", "joins", "Gamma"),
    ("Beta", "likes", "Gamma"),
    ("Gamma", "joins", "Delta"),
    ("Epsilon", "joins", "Delta"),
]
INDEX = GraphIndex.build(KnowledgeGraph.from_triples(FACTS), HashedEmbeddings())
QUESTION = "What is Alpha?"


def triples(documents: list[Any]) -> list[tuple[str, ...]]:
    return [tuple(triple) for document in documents for triple in document.metadata["triples"]]


# --- random -----------------------------------------------------------------------------------------------------------


def test_a_draw_depends_on_seed_and_question_and_not_on_the_order_of_the_graph() -> None:
    drawn = [
        triples(RandomTripleRetriever.from_index(INDEX, seed=seed).invoke(question))
        for seed in range(3)
        for question in (QUESTION, "What else is Alpha?")
    ]
    assert all(sorted(one) == sorted(FACTS) for one in drawn)
    assert len(set(map(tuple, drawn))) > 3
    backwards = GraphIndex.build(KnowledgeGraph.from_triples(FACTS[::-1]), HashedEmbeddings())
    assert triples(RandomTripleRetriever.from_index(backwards).invoke(QUESTION)) == drawn[0]


def test_each_triple_is_drawn_as_often() -> None:
    """Of 5 triples one is drawn 1,000 times: each about 200 times, give or take 4 standard deviations of 12.6."""
    retriever = RandomTripleRetriever.from_index(INDEX, scope="graph", k=1)
    first = [triples(retriever.invoke(f"question {number}"))[0] for number in range(1000)]
    assert {triple: 150 < first.count(triple) < 250 for triple in FACTS} == dict.fromkeys(FACTS, True)


def test_answers_are_left_out_after_the_draw() -> None:
    plain = triples(RandomTripleRetriever.from_index(INDEX, k=3).invoke(QUESTION))
    retriever = RandomTripleRetriever.from_index(INDEX, k=3, without_answers=True)
    kept = triples(retriever.invoke(QUESTION, left_out=["Gamma"]))
    assert kept == [triple for triple in plain if "Gamma" not in triple]
    with pytest.raises(NoEvidenceError):
        retriever.invoke(QUESTION, left_out=["Alpha", "Gamma", "Delta"], on_refusal="raise")
    with pytest.raises(InvalidArgumentError, match="left_out"):
        retriever.invoke(QUESTION)


def test_an_evaluation_hands_over_the_answers() -> None:
    question = Question(QUESTION, seed_entities=("Alpha",), answers=("Gamma",))
    found = [
        evaluate(RandomTripleRetriever.from_index(INDEX, without_answers=without), [question], topic=topic).records[0]
        for without in (False, True)
        for topic in ("given", "linked")
    ]
    assert [record["triples"] for record in found] == [5, 5, 2, 2]
    assert [record["metrics"]["answer_recall"] for record in found] == [1, 1, 0, 0]


# --- PageRank ---------------------------------------------------------------------------------------------------------


def test_scores_are_the_mean_pagerank_of_the_ends() -> None:
    """NetworkX's function, with the paper's default; parallel triples count each."""
    graph = networkx.MultiGraph([(head, tail) for head, _, tail in FACTS])
    plain = networkx.pagerank(graph, alpha=0.85, personalization={"Alpha": 1}, tol=1e-12)
    wanted = {triple: (plain[triple[0]] + plain[triple[2]]) / 2 for triple in FACTS}
    documents = PageRankRetriever.from_index(INDEX).invoke(QUESTION)
    found = dict(zip(triples(documents), [one.metadata["score"] for one in documents], strict=True))
    assert found == pytest.approx(wanted, abs=1e-5)
    assert triples(documents) == sorted(FACTS, key=lambda triple: -wanted[triple])
    with pytest.raises(InvalidArgumentError, match="restart"):
        PageRankRetriever.from_index(INDEX, restart=1)


# --- passages ---------------------------------------------------------------------------------------------------------


def test_passages_are_the_texts_of_entities_cut_between_sentences() -> None:
    documents = PassageRetriever.from_index(INDEX, k=99, max_words=6).invoke(QUESTION)
    texts = {document.page_content for document in documents}
    assert texts == {
        "Alpha joins Beta. Alpha joins Gamma.",
        "Alpha joins Beta. Beta likes Gamma.",
        "Alpha joins Gamma. Beta likes Gamma.",
        "Gamma joins Delta.",
        "Gamma joins Delta. Epsilon joins Delta.",
        "Epsilon joins Delta.",
    }
    words = [len(document.page_content.split()) for document in documents]
    assert words == [3 * len(document.metadata["triples"]) for document in documents]
    cut = PassageRetriever.from_index(INDEX, k=99, max_words=2).invoke(QUESTION)
    assert sorted(triples(cut)) == sorted(FACTS)


def test_passages_are_ranked_by_their_cosine() -> None:
    documents = PassageRetriever.from_index(INDEX, k=99).invoke(QUESTION)
    texts = [QUESTION, *(document.page_content for document in documents)]
    vectors = np.array(HashedEmbeddings().embed_documents(texts), np.float32)
    cosines = (vectors[1:] @ vectors[0]).tolist()
    assert [document.metadata["score"] for document in documents] == pytest.approx(cosines, abs=1e-5)


def test_passages_nearby() -> None:
    near = PassageRetriever.from_index(INDEX, scope="neighborhood", max_hops=1, k=99).invoke("What is Epsilon?")
    assert [document.page_content for document in near] == [
        "Epsilon joins Delta.",
        "Gamma joins Delta. Epsilon joins Delta.",
    ]


def test_a_large_graph_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kg_retrievers.methods.baselines.passages.MAX_TRIPLES", 4)
    with pytest.raises(InvalidArgumentError, match="all 5 triples; at most 4") as error:
        PassageRetriever.from_index(INDEX)
    assert error.value.on_shell.endswith("--field scope=neighborhood")
    assert PassageRetriever.from_index(INDEX, scope="neighborhood").invoke(QUESTION)


# --- the whole subgraph -----------------------------------------------------------------------------------------------


def test_the_subgraph_holds_what_lies_between_entities_at_the_rim() -> None:
    (document,) = DenseSubgraphRetriever.from_index(INDEX, max_hops=1).invoke(QUESTION)
    assert triples([document]) == FACTS[:3]
    assert (document.metadata["score"], document.metadata["truncated"]) == (1, False)
    (document,) = DenseSubgraphRetriever.from_index(INDEX, max_nodes=3).invoke(QUESTION)
    assert triples([document]) == FACTS[:3]
    assert document.metadata["truncated"]
    single = DenseSubgraphRetriever.from_index(INDEX, granularity="triple", k=9).invoke(QUESTION)
    assert [one.metadata["score"] for one in single] == [1, 1, 1 / 2, 1 / 2, 1 / 3]


def test_models_are_refused() -> None:
    for kind in (RandomTripleRetriever, PageRankRetriever, PassageRetriever, DenseSubgraphRetriever):
        with pytest.raises(InvalidArgumentError, match="it is not trained"):
            kind.from_index(INDEX, model="folder")  # type: ignore[attr-defined]


@pytest.mark.parametrize("method", BASELINES, ids=lambda method: method.name)
def test_a_baseline_moves_to_another_graph(method: Method) -> None:
    other = GraphIndex.build(KnowledgeGraph.from_triples([("Alpha", "sees", "Omega")]), HashedEmbeddings())
    kind = method.load_retriever()
    moved = kind.from_index(INDEX).with_index(other)
    assert moved.invoke(QUESTION) == kind.from_index(other).invoke(QUESTION)
