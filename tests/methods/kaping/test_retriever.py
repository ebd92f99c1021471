"""Triple similarity under the contract of all retrievers, in both scopes, and on graphs that trip it up."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from built_methods import scores
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, build_router
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError
from kg_retrievers.graph.verbalize import readable
from kg_retrievers.index.graph_search import SIMILARITY_DECIMALS
from kg_retrievers.methods.kaping.retriever import TripleSimilarityRetriever
from kg_retrievers.testing import RetrieverContract

EMOJI = "🎬 The End\n(of it)"
ODD = [
    ("Her", "directed_by", "Spike Jonze"),
    ("Her", "written_by", "Spike Jonze"),
    ("Her", "directedBy", "Spike Jonze"),  # in words it is the first triple
    ("Synecdoche, New York", "contains", "Synecdoche, New York"),
    ('The "Dark" Knight', "directed_by", "Christopher Nolan"),
    (EMOJI, "directed_by", 'Bobby "Bob", Jr.'),
    ("Adaptation", "directed_by", "Spike Jonze"),
]


class TestTripleSimilarity(RetrieverContract):
    retriever_class = TripleSimilarityRetriever
    exact_k_fields = {}  # noqa: RUF012
    takes_llm = False


@pytest.mark.heavy
class TestTripleSimilarityInTheWholeGraph(RetrieverContract):
    retriever_class = TripleSimilarityRetriever
    exact_k_fields = {}  # noqa: RUF012
    takes_llm = False
    links_entities = False

    def make_retriever(self, index: GraphIndex, **fields: Any) -> BaseKGRetriever:
        return TripleSimilarityRetriever.from_index(index, scope="graph", **fields)


def similar(graph: KnowledgeGraph | None = None, **fields: Any) -> TripleSimilarityRetriever:
    """Return a retriever on a graph; on the odd triples by default."""
    graph = KnowledgeGraph.from_triples(ODD) if graph is None else graph
    return TripleSimilarityRetriever.from_index(GraphIndex.build(graph, HashedEmbeddings()), **fields)


def test_whole_graphs_are_embedded_with_a_warning_or_refused(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    graph = KnowledgeGraph.from_triples(ODD)
    for warned, most, number in ((len(ODD) + 1, 99, 0), (len(ODD), len(ODD), 1)):
        monkeypatch.setattr("kg_retrievers.methods.kaping.retriever.WARNED_TRIPLES", warned)
        monkeypatch.setattr("kg_retrievers.methods.kaping.retriever.MAX_EMBEDDED_TRIPLES", most)
        similar(graph, scope="graph")
        assert [record.message for record in caplog.records] == [
            f'scope="graph": the first question embeds all {len(graph)} triples; see GraphIndex.build.'
        ] * number
    monkeypatch.setattr("kg_retrievers.methods.kaping.retriever.WARNED_TRIPLES", 1)
    monkeypatch.setattr("kg_retrievers.methods.kaping.retriever.MAX_EMBEDDED_TRIPLES", 1)
    with pytest.raises(InvalidArgumentError, match=r"compares all \d+ triples.*at most 1 are embedded") as error:
        similar(graph, scope="graph")
    assert str(error.value).count("TripleSimilarityRetriever: ") == 1
    assert error.value.on_shell.endswith("or index the triples: kg-retrievers index ... --triples")
    assert "fields: " not in str(error.value)
    similar(graph)
    index = GraphIndex.build(graph, HashedEmbeddings(), triples=True)
    TripleSimilarityRetriever.from_index(index, scope="graph")
    assert len(caplog.records) == 1


def triples(documents: list[Document]) -> list[tuple[str, ...]]:
    assert all(len(document.metadata["triples"]) == 1 for document in documents)
    return [tuple(document.metadata["triples"][0]) for document in documents]


def ranked(graph: KnowledgeGraph, question: str) -> list[tuple[tuple[str, ...], float]]:
    """Return all triples by falling cosine, computed from the embeddings alone, and their cosines."""
    texts = [" ".join(map(readable, (graph.label(h), r, graph.label(t)))) for h, r, t in graph.triples()]
    vectors = np.array(HashedEmbeddings().embed_documents([question, *texts]), np.float32).astype(np.float64)
    cosines = (vectors[1:] @ vectors[0]).round(SIMILARITY_DECIMALS).astype(np.float32).tolist()
    order = sorted(range(len(texts)), key=lambda number: (-cosines[number], number))
    return [(tuple(graph.triple(number)), cosines[number]) for number in order]


# --- the order --------------------------------------------------------------------------------------------------------


def test_only_what_is_around_the_entities_of_the_question() -> None:
    """Of two hops by default, between neighbours too; the whole question is what is compared."""
    graph = KnowledgeGraph.from_triples([*ODD, ("Spike Jonze", "married_to", "Sofia"), ("Sofia", "likes", "Her")])
    question = "Who directed Her?"
    whole = ranked(graph, question)
    near = {("Spike Jonze", "married_to", "Sofia"), ("Sofia", "likes", "Her"), *ODD[:3]}
    assert triples(similar(graph, max_hops=1).invoke(question)) == [triple for triple, _ in whole if triple in near]
    further = {*near, ODD[6]}
    documents = similar(graph).invoke(question)
    assert list(zip(triples(documents), scores(documents), strict=True)) == [
        (triple, score) for triple, score in whole if triple in further
    ]
    assert set(triples(similar(graph, max_hops=None).invoke(question))) == further
    assert triples(similar(graph, scope="graph").invoke(question)) == [triple for triple, _ in whole]


def test_one_document_is_one_triple() -> None:
    document = similar().invoke("Who wrote Her?")[0]
    assert document.page_content == "Her -> written by -> Spike Jonze"
    assert document.metadata["answers"] == []
    assert document.metadata["details"] == {"entities": [["Her", "Her"]]}
    assert -1 <= document.metadata["score"] <= 1
    table = similar(style="tables").invoke("Who wrote Her?")[0].page_content
    assert table.splitlines()[-1] == "0,written by,1"


def test_equal_scores_by_number() -> None:
    """Two relations that are the same words, and two entities of one label."""
    documents = similar().invoke("Who directed Her?")
    assert triples(documents)[:2] == [ODD[0], ODD[2]]
    assert scores(documents)[0] == scores(documents)[1] > scores(documents)[2]
    facts = [(key, "directed_by", "x") for key in ("d9", "d1", "d5")]
    graph = KnowledgeGraph.from_triples(facts, labels={"d9": "Dune", "d1": "Dune", "d5": "Dune"})
    for k in (1, 2, 3):
        assert triples(similar(graph, k=k).invoke("Who directed Dune?")) == facts[:k]


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("What does Synecdoche, New York contain?", ODD[3]),
        ('Who directed The "Dark" Knight?', ODD[4]),
        (f"Who directed {EMOJI}?", ODD[5]),
        ('What did Bobby "Bob", Jr. direct?', ODD[5]),
    ],
    ids=["comma, self-loop", "quotes", "emoji, line break", "comma and quotes"],
)
def test_odd_names(question: str, first: tuple[str, ...]) -> None:
    for fields in ({}, {"scope": "graph"}):
        documents = similar(**fields).invoke(question)
        assert triples(documents)[0] == first
        assert "\n" not in documents[0].page_content
        assert json.loads(json.dumps(documents[0].metadata)) == documents[0].metadata
    assert triples(similar().invoke(question)) == [first]


def test_several_entities_and_given_ones() -> None:
    near = similar(max_hops=1)
    both = near.invoke('Who directed Adaptation and The "Dark" Knight?')
    assert set(triples(both)) == {ODD[4], ODD[6]}
    given = near.invoke("Who directed it?", seed_entities=["Adaptation"])
    assert triples(given) == [ODD[6]]
    for nothing in ([], None):
        assert similar().invoke("Who directed Her?", seed_entities=nothing) == similar().invoke("Who directed Her?")
        with pytest.raises(EntityLinkingError):
            similar().invoke("Who directed it?", seed_entities=nothing, on_refusal="raise")
    anywhere = similar(scope="graph").invoke("Who directed it?", seed_entities=["Adaptation"])
    assert anywhere == similar(scope="graph").invoke("Who directed it?")


# --- small graphs -----------------------------------------------------------------------------------------------------


def test_entity_without_triples() -> None:
    """It is found, and there is nothing to say of it."""
    graph = KnowledgeGraph.from_triples(ODD, labels={"Western": "Western"})
    retriever = similar(graph)
    assert retriever.invoke("What is a Western?") == []
    assert len(retriever.invoke("Who directed the Western Her?")) == 4
    assert len(similar(graph, scope="graph").invoke("What is a Western?")) == len(ODD)


# --- where the vectors come from --------------------------------------------------------------------------------------

ENTITY = st.sampled_from(["Her", "Spike Jonze", "A, B", 'the "C"', "🎬", "Dune 1", "Dune 2"])
FACTS = st.lists(
    st.tuples(ENTITY, st.sampled_from(["directed_by", "written_by", "in"]), ENTITY), min_size=1, max_size=9
)
ASKED = st.lists(st.tuples(ENTITY, st.sampled_from(["{}", "Who directed {}?", "in {} {}"])), min_size=1, max_size=3)


@settings(max_examples=40)
@given(FACTS, ASKED)
def test_stored_or_not_is_the_same(facts: list[tuple[str, str, str]], asked: list[tuple[str, str]]) -> None:
    graph = KnowledgeGraph.from_triples(facts, labels={"Dune 1": "Dune", "Dune 2": "Dune"})
    stored = GraphIndex.build(graph, HashedEmbeddings(), triples=True)
    made = GraphIndex.build(graph, HashedEmbeddings())
    for name, words in asked:
        question = words.format(name, name)
        for scope in ("neighborhood", "graph"):
            one, other = (
                TripleSimilarityRetriever.from_index(index, scope=scope, on_refusal="empty", k=4).invoke(question)
                for index in (stored, made)
            )
            assert one == other
            wanted = [pair for pair in ranked(graph, question) if scope == "graph" or pair[0] in triples(one)]
            assert list(zip(triples(one), scores(one), strict=True)) == wanted[:4]


# --- building ---------------------------------------------------------------------------------------------------------


# --- answering --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "asked", "found"),
    [("Describe Her", "around", 4), ("Who directed anything?", "anywhere", len(ODD))],
    ids=["open", "no entity"],
)
def test_suits(question: str, asked: str, found: int) -> None:
    """Where no entity is found, the neighbourhood has nothing to offer, and the next method is asked."""
    retrievers = {"around": similar(), "anywhere": similar(scope="graph")}
    output = build_router(retrievers).invoke({"question": question})
    assert (output["retriever"], len(output["documents"])) == (asked, found)
