"""GNN-RAG under the contract of all retrievers, by hand, against brute force, and as a person edits its candidates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from built_methods import TINY, Facts, answers, drawn_model, indexed, scores, triples
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from kg_retrievers import (
    GNNRAGRetriever,
    GraphIndex,
    GraphReasoner,
    HashedEmbeddings,
    KnowledgeGraph,
    Question,
    answer_chain,
    train_graph_reasoner,
)
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.testing import RetrieverContract

EMBEDDINGS = HashedEmbeddings()

MODEL = drawn_model("gnn-rag", seed=38)


class TestGNNRAG(RetrieverContract):
    """Single triples of all candidates; the network prefers an actor."""

    retriever_class = GNNRAGRetriever
    takes_llm = False

    def make_retriever(self, index: GraphIndex, **fields: Any) -> BaseKGRetriever:
        return super().make_retriever(index, **({"model": MODEL, "threshold": 1} | fields))


@pytest.mark.heavy
class TestGNNRAGAsSubgraphs(TestGNNRAG):
    """All paths with the same relations together, which is the default."""

    exact_k_fields = {"granularity": "subgraph"}  # noqa: RUF012


class Told(GraphReasoner):
    """A model whose probabilities are told, by entity; those of all others are 0."""

    def __init__(self, values: Mapping[str, float], training: Mapping[str, Any] | None = None) -> None:
        super().__init__(MODEL.config, MODEL.weights, probe=MODEL.probe, embeddings="hashed", training=training)
        self.values = values

    def on(self, index: GraphIndex) -> Any:
        return ToldOnGraph(self.values, index)


class ToldOnGraph:
    def __init__(self, values: Mapping[str, float], index: GraphIndex) -> None:
        self.values, self.entities = values, index.graph.entities

    def score(self, question: str, nodes: Sequence[int], seeds: Sequence[int]) -> np.ndarray[Any, Any]:
        return np.array([self.values.get(self.entities[node], 0.0) for node in nodes])


def gnn_rag(facts: Facts | KnowledgeGraph | GraphIndex = TINY, **fields: Any) -> GNNRAGRetriever:
    """Return a retriever on facts, with drawn weights."""
    return GNNRAGRetriever.from_index(indexed(facts), **({"model": MODEL} | fields))


def told(facts: Facts | KnowledgeGraph | GraphIndex, values: Mapping[str, float], **fields: Any) -> GNNRAGRetriever:
    """Return a retriever on facts, with probabilities that are told."""
    return gnn_rag(facts, model=Told(values), **fields)


def texts(documents: list[Document]) -> list[str]:
    return [document.page_content for document in documents]


def details(documents: list[Document], name: str) -> list[Any]:
    return [document.metadata["details"][name] for document in documents]


def counts(documents: list[Document]) -> list[int]:
    """Return how many paths each Document shows."""
    return [len(rows) for rows in details(documents, "paths")]


def given_candidates(*rows: Any, truncated: Any = False) -> dict[str, Any]:
    return {"candidates": {"entities": [list(row) for row in rows], "truncated": truncated}}


def scored(retriever: GNNRAGRetriever, *seeds: str) -> dict[str, float]:
    """Return the candidates, likeliest first."""
    state = {"question": "?", "masked_question": "?", "seed_entities": list(seeds)}
    return dict(retriever.stages[1].run.invoke(state)["candidates"]["entities"])


# --- by hand ----------------------------------------------------------------------------------------------------------

BY, STAR = "directed_by", "starring"
FILMS: Facts = [
    ("Her", BY, "Spike Jonze"),
    ("Her", STAR, "Amy Adams"),
    ("Her", STAR, "Rooney Mara"),
    ("Adaptation", BY, "Spike Jonze"),
    ("Adaptation", STAR, "Nicolas Cage"),
]
CAST = {"Amy Adams": 0.5, "Rooney Mara": 0.25, "Nicolas Cage": 0.125, "Spike Jonze": 0.0625}
WHO = "Who starred in Her?"


def test_relation_paths_are_merged_by_hand() -> None:
    documents = told(FILMS, CAST, threshold=0.9).invoke(WHO)
    assert triples(documents) == [FILMS[1:3], [FILMS[0], *FILMS[3:]], FILMS[:1]]
    assert texts(documents)[1:] == [
        "Her -> directed by -> Spike Jonze <- directed by <- Adaptation -> starring -> Nicolas Cage",
        "Her -> directed by -> Spike Jonze",
    ]
    assert scores(documents) == [0.5, 0.125, 0.0625]
    assert answers(documents) == [["Amy Adams", "Rooney Mara"], ["Nicolas Cage"], ["Spike Jonze"]]
    assert documents[0].metadata["details"] == {
        "entities": [["Her", "Her"]],
        "candidates": 4,
        "unreachable": [],
        "unreachable_from": {},
        "more_paths": [],
        "relation_path": [[STAR, "forward"]],
        "paths": [["Her", [0]], ["Her", [1]]],
    }
    assert details(documents, "relation_path")[1] == [[BY, "forward"], [BY, "backward"], [STAR, "forward"]]
    assert not any(document.metadata["truncated"] for document in documents)


def test_single_paths_and_triples_by_hand() -> None:
    """Each with the score and answers of the best that it stands in."""
    paths = told(FILMS, CAST, granularity="path").invoke(WHO)
    assert answers(paths) == [["Amy Adams"], ["Rooney Mara"], ["Nicolas Cage"], ["Spike Jonze"]]
    assert scores(paths) == [0.5, 0.25, 0.125, 0.0625]
    assert details(paths, "paths") == [[["Her", [0]]], [["Her", [0]]], [["Her", [0, 1, 2]]], [["Her", [0]]]]
    single = told(FILMS, CAST, granularity="triple").invoke(WHO)
    assert triples(single) == [[FILMS[place]] for place in (1, 2, 0, 3, 4)]
    assert scores(single) == [0.5, 0.5, 0.125, 0.125, 0.125]
    assert answers(single)[:3] == [["Amy Adams", "Rooney Mara"], ["Amy Adams", "Rooney Mara"], ["Nicolas Cage"]]
    assert not any("paths" in document.metadata["details"] for document in single)


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"threshold": 0.4}, 1),
        ({"threshold": 0.5}, 1),  # which is reached, not crossed
        ({"threshold": 0.51}, 2),
        ({"threshold": 0.75}, 2),
        ({"threshold": 0.8}, 3),
        ({}, 4),
        ({"threshold": 1}, 4),
        ({"max_candidates": 3}, 3),
        ({"threshold": 0.51, "max_candidates": 1}, 1),
    ],
    ids=str,
)
def test_candidates_by_hand(fields: dict[str, Any], count: int) -> None:
    assert list(scored(told(FILMS, CAST, **fields), "Her").items()) == list(CAST.items())[:count]


def test_equal_candidates_are_in_or_out_together() -> None:
    """However many there are, and whatever their numbers."""
    facts = [("film", STAR, f"actor {number}") for number in range(40)]
    values = {f"actor {number}": 1 / 40 for number in range(40)}
    (document,) = told(facts, values).invoke("Who was in it?", seed_entities=["film"])
    assert sorted(document.metadata["answers"]) == sorted(values)
    some = values | {f"actor {number}": 0.2 for number in (3, 17, 30)}
    assert list(scored(told(facts, some, threshold=0.3), "film")) == ["actor 3", "actor 17", "actor 30"]


def test_max_candidates() -> None:
    """What is left out is said."""
    for most, cut in ((1, True), (3, True), (4, False), (200, False)):
        documents = told(FILMS, CAST, max_candidates=most).invoke(WHO)
        assert {one.metadata["truncated"] for one in documents} == {cut}
        assert set(details(documents, "candidates")) == {min(most, 4)}
    equal = dict.fromkeys(CAST, 0.25)
    documents = told(FILMS, equal, max_candidates=3, threshold=0.1).invoke(WHO)
    assert set(details(documents, "candidates")) == {3}
    assert documents[0].metadata["truncated"] is True


# --- against brute force ----------------------------------------------------------------------------------------------


@st.composite
def cases(draw: st.DrawFn) -> tuple[Facts, dict[str, float], list[str]]:
    """Facts with loops, parallel relations and lonely entities; probabilities, many of them equal; and seeds."""
    key = st.integers(0, 6).map("e{}".format)
    facts = draw(st.lists(st.tuples(key, st.sampled_from(["r", "s"]), key), max_size=14, unique=True))
    values = draw(st.dictionaries(key, st.sampled_from([0.5, 0.25, 0.125]), max_size=5))
    return facts, values, draw(st.lists(key, min_size=1, max_size=3, unique=True))


def graph_of(facts: Facts) -> KnowledgeGraph:
    return KnowledgeGraph.from_triples(facts, labels={f"e{number}": f"label {number}" for number in range(7)})


def walks(facts: Facts, seed: str, target: str, max_hops: int) -> list[list[tuple[str, str, str]]]:
    """Return all shortest paths from one entity to another, or back to itself, as their triples."""
    if seed == target:
        loops = [[fact] for fact in facts if fact[0] == seed == fact[2]]
        near = [fact for fact in facts if seed in (fact[0], fact[2])]
        back = [[one, other] for one in near for other in near if {one[0], one[2]} == {other[0], other[2]}]
        found = loops or [path for path in back if path[0] != path[1]] or back
        return [path for path in found if len(path) <= max_hops]
    network: nx.Graph[str] = nx.Graph((head, tail) for head, _, tail in facts)
    if seed not in network or target not in network or not nx.has_path(network, seed, target):
        return []
    found = []
    for nodes in nx.all_shortest_paths(network, seed, target):
        if len(nodes) - 1 <= max_hops:
            paths: list[list[tuple[str, str, str]]] = [[]]
            for here, there in pairwise(nodes):
                between = [fact for fact in facts if {fact[0], fact[2]} == {here, there}]
                paths = [[*path, fact] for path in paths for fact in between]
            found += paths
    return found


@given(cases(), st.sampled_from([1, 2, 3, None]))
@settings(max_examples=100)
def test_all_shortest_paths_are_found(case: tuple[Facts, dict[str, float], list[str]], max_hops: int | None) -> None:
    facts, values, seeds = case
    retriever = told(graph_of(facts), values, granularity="path", max_hops=max_hops, threshold=1, k=10_000)
    documents = retriever.invoke("?", seed_entities=seeds)
    TestGNNRAG().check_documents(retriever, documents)
    rows = [[key, value] for key, value in scored(retriever, *seeds).items()]
    expected = {
        (json.dumps(path), key, value)
        for key, value in rows
        for seed in seeds
        for path in walks(facts, seed, key, max_hops or 99)
    }
    found = []
    for one in documents:
        ((start, places),) = one.metadata["details"]["paths"]
        assert start in seeds
        path = [one.metadata["triples"][place] for place in places]
        found.append((json.dumps(path), *one.metadata["answers"], one.metadata["score"]))
    assert set(found) == expected
    assert len(found) == sum(len(walks(facts, seed, key, max_hops or 99)) for key, _ in rows for seed in seeds)
    reached = {key for _, key, _ in expected}
    far = {seed: [key for key, _ in rows if not walks(facts, seed, key, max_hops or 99)] for seed in seeds}
    partly = {seed: [key for key in keys if key in reached] for seed, keys in far.items()}
    for one in documents:
        assert one.metadata["details"]["unreachable"] == [key for key, _ in rows if key not in reached]
        assert one.metadata["details"]["unreachable_from"] == {seed: keys for seed, keys in partly.items() if keys}
    merged = told(graph_of(facts), values, max_hops=max_hops, threshold=1, k=10_000).invoke("?", seed_entities=seeds)
    assert {key for keys in answers(merged) for key in keys} == reached
    assert sum(counts(merged)) == len(found)


# --- what bounds it ---------------------------------------------------------------------------------------------------


def layered(width: int) -> Facts:
    """Return facts with width ** 2 shortest paths from "start" to "end"."""
    first, second = [f"a{number}" for number in range(width)], [f"b{number}" for number in range(width)]
    facts = [("start", "r", one) for one in first] + [(one, "r", "end") for one in second]
    return facts + [(one, "s", other) for one in first for other in second]


@pytest.mark.parametrize("max_paths", [3, 1_000])
def test_a_few_of_very_many_shortest_paths_are_found(max_paths: int) -> None:
    """There are 20 ** 30 of them, more than recursion would like."""
    rows = [["start"], *([f"{row} {place}" for place in range(20)] for row in range(30)), ["end"]]
    facts = [(here, "r", there) for row, after in pairwise(rows) for here in row for there in after]
    (document,) = told(facts, {"end": 1.0}, max_paths=max_paths, max_hops=31).invoke("?", seed_entities=["start"])
    assert (counts([document]), document.metadata["answers"]) == ([max_paths], ["end"])
    assert document.metadata["truncated"] is True
    assert document.metadata["details"]["more_paths"] == ["end"]


def test_max_paths_are_shared_alike() -> None:
    """One each at least; those with more are named."""
    facts, values = layered(4), {"end": 0.5, "b2": 0.3, "a1": 0.1}
    for most, end, more in ((1, 1, ["end", "b2"]), (12, 4, ["end"]), (48, 16, [])):
        documents = told(facts, values, max_paths=most).invoke("?", seed_entities=["start"])
        assert answers(documents) == [["end"], ["b2"], ["a1"]]
        assert counts(documents) == [end, min(end, 4), 1]
        assert details(documents, "more_paths") == [more] * 3
        assert [document.metadata["truncated"] for document in documents] == [bool(more)] * 3
    documents = told(facts, values, max_paths=48, granularity="path", k=99).invoke("?", seed_entities=["start", "a0"])
    assert sum(key == ["end"] for key in answers(documents)) == 8 + 4  # 48 for six pairs


# --- the model --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask_seeds", [True, False])
def test_what_is_trained_answers(mask_seeds: bool, tmp_path: Path) -> None:
    """Questions that it has seen, and one that it has not; with its folder too."""
    pairs = [("Amélie", "Jean-Pierre Jeunet"), ("Alien Resurrection", "Jean-Pierre Jeunet"), ("Her", "Spike Jonze")]
    taught = [Question(f"Who directed {film}?", answers=(director,)) for film, director in pairs]
    taught.append(Question("Who starred in Alien Resurrection?", answers=("Dominique Pinon",)))
    trained = train_graph_reasoner(
        TINY, taught, taught, output=tmp_path / "m", num_examples=320, width=16, mask_seeds=mask_seeds
    )
    for model in (trained.model, tmp_path / "m"):
        retriever = GNNRAGRetriever.from_index(TINY, model=model)
        found = retriever.invoke("Who directed Her?")[0].metadata
        assert found["answers"] == ["Spike Jonze"]
        assert [*found["triples"][0]] == ["Her", BY, "Spike Jonze"]
        assert retriever.invoke("Who directed 千と千尋の神隠し?")[0].metadata["answers"] == ["Q55400"]
        assert answer_chain(retriever).invoke("Who directed Adaptation?") == "Spike Jonze"


# --- what a person edits ----------------------------------------------------------------------------------------------


def test_candidates_that_are_supplied() -> None:
    """Nothing is scored; they count by their probabilities, whole numbers too, in any order."""
    edited = given_candidates(("Nicolas Cage", 0.25), ("Spike Jonze", 1), truncated=True)
    documents = told(FILMS, CAST).invoke(WHO, **edited)
    assert answers(documents) == [["Spike Jonze"], ["Nicolas Cage"]]
    assert scores(documents) == [1.0, 0.25]
    assert [type(score) for score in scores(documents)] == [float, float]
    assert all(document.metadata["truncated"] is True for document in documents)
    assert told(FILMS, CAST).invoke(WHO, **given_candidates()) == []
    assert told(FILMS, CAST).invoke(WHO, candidates=None) == told(FILMS, CAST).invoke(WHO)
    tuples = {"entities": (("Amy Adams", 0.5), ("Spike Jonze", 0.5)), "truncated": False}
    assert answers(told(FILMS, CAST).invoke(WHO, candidates=tuples)) == [["Amy Adams"], ["Spike Jonze"]]
