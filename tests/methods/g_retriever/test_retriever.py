"""PCST under the contract of all retrievers, by hand, by its fields, and as a person edits what it ranks."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from built_methods import TINY, Facts, indexed, scores, triples
from films_and_claims import BY, FILMS, GENRE, WRITTEN
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, PCSTRetriever
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.datasets import read_metaqa
from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.graph import Triple
from kg_retrievers.methods.g_retriever.prizes import prize_edges, prize_nodes, walk_triples
from kg_retrievers.methods.g_retriever.retriever import LONGEST_WALK, PREFERENCE
from kg_retrievers.testing import RetrieverContract

EMBEDDINGS = HashedEmbeddings()


class TestPCST(RetrieverContract):
    retriever_class = PCSTRetriever
    takes_llm = False


class TestPCSTAsPublished(RetrieverContract):
    """The whole graph, and no entity need be named."""

    retriever_class = PCSTRetriever
    takes_llm = False
    links_entities = False

    def make_retriever(self, index: GraphIndex, **fields: Any) -> BaseKGRetriever:
        published = {"scope": "graph", "prizes": "published", "edge_cost": 0.5, "pruning": "gw"}
        return super().make_retriever(index, **(published | fields))


def pcst(facts: Facts | KnowledgeGraph | GraphIndex, **fields: Any) -> PCSTRetriever:
    """Return a retriever on facts; an edge costs 0.5."""
    return PCSTRetriever.from_index(indexed(facts), **({"edge_cost": 0.5} | fields))


def ranks(entities: list[str], relations: list[str], seeds: list[str] | None = None) -> dict[str, Any]:
    """What the first stage writes, for `invoke`; the first entity is the seed unless others are given."""
    return {
        "seed_entities": entities[:1] if seeds is None else seeds,
        "ranked_entities": [[key, 1.0] for key in entities],
        "ranked_relations": [[name, 1.0] for name in relations],
    }


def is_connected(facts: list[tuple[str, str, str]]) -> bool:
    return bool(nx.is_connected(nx.Graph([(head, tail) for head, _, tail in facts])))


# --- by hand ---

HER, DRAMA, ADAPTATION, KAUFMAN = FILMS
IN_ORDER = [BY, GENRE, WRITTEN]


def test_paths_by_hand() -> None:
    """The walk takes them 0.8, 0.2, 0.4 and 0.04 times: prizes of 5, 1.25, 2.5 and 0.25.

    Relations weigh 1, 1/4 and 1/9. From Her, the first step is 0.8 : 0.2; of the two films of Jonze one is where the
    walk came from; from Adaptation 0.9 would go straight back and 0.1 goes on.

    The last is below the cost, and nothing is behind it: 3 for Her + 8.75 - 3 * 0.5. The walk takes it, though, so it
    comes next, at a cost that has fallen as the highest prize, by 5 / 0.25.
    """
    documents = pcst(FILMS).invoke("?", k=9, **ranks(["Her"], IN_ORDER))
    assert triples(documents) == [[HER, ADAPTATION, DRAMA], [KAUFMAN]]
    assert scores(documents) == pytest.approx([10.25, 0.25 - 0.025])
    first, second = (document.metadata["details"] for document in documents)
    assert first == {"prizes": 11.75, "edge_cost": 0.5, "entities": [["Her", "Her"]]}
    assert second["prizes"] == pytest.approx(0.25)
    assert second["edge_cost"] == pytest.approx(0.025)
    assert second["entities"] == []


def test_a_prized_entity_is_worth_the_way() -> None:
    """2 for Charlie Kaufman pay for the edge to him: 3 + 2 + 9 - 4 * 0.5."""
    documents = pcst(FILMS).invoke("?", k=9, **ranks(["Her", "Charlie Kaufman"], IN_ORDER))
    assert triples(documents) == [[HER, ADAPTATION, DRAMA, KAUFMAN]]
    assert scores(documents) == pytest.approx([12])
    assert documents[0].metadata["details"]["entities"] == [["Her", "Her"], ["Charlie Kaufman", "Charlie Kaufman"]]
    (one,) = pcst(FILMS, k_nodes=1).invoke("?", **ranks(["Her", "Charlie Kaufman"], IN_ORDER))
    assert KAUFMAN not in triples([one])[0]  # only one entity gets a prize


def test_covered_triples_come_again_as_connectors_only() -> None:
    """Two dramas more: prizes of 5/12 each, below the cost, as is the 1/4 of the writer at the other end.

    The cost falls to 0.5 * 5/12 / 5 = 1/24, so that the way between is worth it: 5/12 + 5/12 + 1/4 - 6/24.
    """
    dramas = [("Capote", GENRE, "Drama"), ("Doubt", GENRE, "Drama")]
    documents = pcst(FILMS + dramas).invoke("?", k=9, **ranks(["Her"], IN_ORDER))
    assert triples(documents)[0] == [HER, ADAPTATION, DRAMA]
    assert set(triples(documents)[1]) == {*FILMS, *dramas}
    assert scores(documents) == pytest.approx([10.25, 5 / 6])
    assert documents[1].metadata["details"]["prizes"] == pytest.approx(13 / 12)
    alone = pcst(FILMS + dramas, granularity="triple").invoke("?", k=9, **ranks(["Her"], IN_ORDER))
    assert len(alone) == 6
    assert [triple for (triple,) in triples(alone)[:3]] == [HER, ADAPTATION, DRAMA]
    assert scores(alone) == pytest.approx([10.25] * 3 + [5 / 6] * 3)


@pytest.mark.parametrize(
    ("cost", "found", "worth", "costs"),
    [
        # 2 are shared by two, and the next is 1 % below: 3 + 1 + 1 + 0.99 - 3 * 0.5.
        (0.5, [[HER, ADAPTATION, DRAMA]], [4.49], [0.5]),
        # The cost is lowered to 0.5 % below the highest prize, then below the highest that is left.
        (2, [[HER, ADAPTATION], [DRAMA]], [3 + 2 * 0.005, 0.99 * 0.005], [0.995, 0.99 * 0.995]),
    ],
)
def test_published_by_hand(cost: float, found: list[Facts], worth: list[float], costs: list[float]) -> None:
    retriever = pcst(FILMS, prizes="published", k_relations=2, edge_cost=cost)
    documents = retriever.invoke("?", k=9, **ranks(["Her"], IN_ORDER))
    assert triples(documents) == found
    assert scores(documents) == pytest.approx(worth)
    assert [document.metadata["details"]["edge_cost"] for document in documents] == pytest.approx(costs)


# --- whatever the graph ---


@st.composite
def cases(draw: st.DrawFn) -> tuple[PCSTRetriever, dict[str, Any]]:
    """A retriever on a graph with loops, parallel relations and lonely entities, and ranks of all its relations."""
    size = draw(st.integers(1, 7))
    key = st.integers(0, size - 1).map("e{}".format)
    facts = draw(st.lists(st.tuples(key, st.sampled_from(["r", "s", "t"]), key), max_size=12))
    graph = KnowledgeGraph.from_triples(facts, labels={f"e{i}": f"label {i}" for i in range(size)})
    fields = {
        "prizes": draw(st.sampled_from(["paths", "paths", "paper", "published"])),
        "pruning": draw(st.sampled_from(["strong", "gw"])),
        "scope": draw(st.sampled_from(["neighborhood", "graph"])),
        "k_nodes": draw(st.integers(1, 4)),
        "k_relations": draw(st.integers(2, 5)),
        "edge_cost": draw(st.sampled_from([0.1, 0.5, 1.0, 1.5])),
        "max_hops": draw(st.sampled_from([None, 1, 2, 3])),
    }
    entities = draw(st.permutations(list(graph.entities)))[: draw(st.integers(1, 4))]
    seeds = entities[: draw(st.integers(1, 2))]
    return pcst(graph, **fields), ranks(list(entities), draw(st.permutations(list(graph.relations))), list(seeds))


def prizes_of(retriever: PCSTRetriever, given: dict[str, Any]) -> tuple[dict[str, float], dict[Triple, float]]:
    """The prizes of entities and of triples in scope."""
    graph = retriever.graph
    numbers, _ = retriever.triples_in_scope(given["seed_entities"])
    entities = np.array([graph.entities.find(key) for key, _ in given["ranked_entities"]])
    ranked = np.array([graph.relations.find(name) for name, _ in given["ranked_relations"]], np.int64)
    heads, relations, tails = graph.edges[numbers].T
    ranked = ranked[np.isin(ranked, relations)]
    if retriever.prizes == "paths":
        weights = np.full(len(graph.relations), (1.0 + len(ranked)) ** -PREFERENCE)
        weights[ranked] = (1.0 + np.arange(len(ranked))) ** -PREFERENCE
        seeds = np.array([graph.entities.find(key) for key in given["seed_entities"]])
        hops = retriever.max_hops or LONGEST_WALK
        taken = walk_triples(heads, relations, tails, seeds, weights, hops=hops, entities=len(graph.entities))
        of_edges = retriever.k_relations * taken / (taken.max(initial=0) or 1)
    else:
        of_edges = prize_edges(relations, ranked, retriever.k_relations, retriever.prizes)
    of_nodes = prize_nodes(entities, len(graph.entities), retriever.k_nodes)
    of_nodes[[graph.entities.find(key) for key in given["seed_entities"]]] = retriever.k_nodes
    return (
        {graph.entities[number]: prize for number, prize in enumerate(of_nodes.tolist()) if prize},
        {graph.triple(number): prize for number, prize in zip(numbers, of_edges.tolist(), strict=True) if prize},
    )


@given(cases())
@settings(max_examples=150)
def test_what_holds_for_every_list(case: tuple[PCSTRetriever, dict[str, Any]]) -> None:
    """Subgraphs are connected, their scores never rise, and each prize counts once."""
    retriever, given = case
    documents = retriever.invoke("?", k=100, **given)
    TestPCST().check_documents(retriever, documents)
    of_entities, of_triples = prizes_of(retriever, given)
    covered: set[Any] = set()
    for document, facts in zip(documents, triples(documents), strict=True):
        details = document.metadata["details"]
        assert is_connected(facts)
        assert len(set(facts)) == len(facts)
        keys = [key for _, key in details["entities"]]
        new = {*facts, *keys} & {*of_entities, *of_triples} - covered
        assert new
        in_order = [of_triples.get(Triple(*fact), 0) for fact in facts if fact in new]
        assert in_order == sorted(in_order, reverse=True)
        # An entity that was covered alone, which is no Document, does not count again.
        least = sum(of_triples.get(item, 0) for item in new)
        assert least - 1e-9 <= details["prizes"] <= least + sum(of_entities.get(item, 0) for item in new) + 1e-9
        worth = details["prizes"] - details["edge_cost"] * len(facts)  # below zero only where pruned by growth
        assert 0 <= document.metadata["score"] <= max(worth, 0) + 1e-9
        assert worth > 0 or retriever.pruning == "gw"
        assert document.metadata["truncated"] is False
        covered |= new
    assert all(later <= earlier for earlier, later in pairwise(scores(documents)))
    if retriever.prizes == "paths":
        assert set(of_triples) <= covered  # the cost falls, so that the best edge left pays


def test_the_order_of_facts_does_not_count() -> None:
    """Where no prizes are equal."""
    given = ranks(["Her", "Charlie Kaufman", "Drama"], IN_ORDER)
    rest = [("Drama", "part_of", "Art"), ("Adaptation", "based_on", "The Orchid Thief"), ("Her", "year", "2013")]
    expected = None
    for seed in range(10):
        facts = FILMS + rest
        random.Random(seed).shuffle(facts)
        documents = pcst(facts, k=9, edge_cost=1).invoke("?", **given)
        expected = expected or documents
        assert triples(documents) == triples(expected)
        assert scores(documents) == pytest.approx(scores(expected))


# --- which entities ---


def test_seeds_all_get_a_prize() -> None:
    """However few `k_nodes` are, the entities of the question count."""
    (document,) = pcst([("A", "r", "B")], k_nodes=1).invoke("?", **ranks(["A", "B"], ["r"], ["A", "B"]))
    assert document.metadata["details"]["prizes"] == 1 + 1 + 5


@pytest.mark.parametrize("scope", ["neighborhood", "graph"])
@pytest.mark.parametrize("prizes", ["paths", "paper", "published"])
def test_an_entity_without_facts(scope: str, prizes: str) -> None:
    """It is no evidence by itself."""
    fields = {"scope": scope, "prizes": prizes, "k_nodes": 1, "k": 3}
    lonely = KnowledgeGraph.from_triples([("Her", BY, "Spike Jonze")], labels={"Western": "Western"})
    facts = triples(pcst(lonely, **fields).invoke("What is a Western?", seed_entities=["Western"]))
    assert facts == ([] if scope == "neighborhood" or prizes == "paths" else [[HER]])
    alone = KnowledgeGraph.from_triples([], labels={"Western": "Western"})
    assert pcst(alone, **fields).invoke("What is a Western?", seed_entities=["Western"]) == []
    assert pcst([], **(fields | {"scope": "graph"})).invoke("What is a Western?") == []


# --- what bounds it ---


def test_the_whole_graph() -> None:
    """No entity need be named, and what a question names is not looked for."""
    retriever = pcst(TINY, scope="graph", k=3, k_nodes=1)
    assert retriever.invoke("Which films are there?")
    first, *_ = retriever.invoke("Who wrote Synecdoche, New York?")
    assert "Synecdoche, New York" in first.metadata["labels"]  # by its name, which is near
    (first, *_) = retriever.invoke("Which films are there?", seed_entities=["Q155653"])
    assert ("Q155653", BY, "Q55400") in triples([first])[0]
    with pytest.raises(EntityLinkingError):
        pcst(TINY, on_refusal="raise").invoke("Which films are there?")
    assert pcst(TINY, on_refusal="empty").invoke("Which films are there?") == []


# --- what a person edits ---


def test_the_order_of_entities_changes_the_result() -> None:
    """A prize of 2 is worth a way that one of 1 is not."""
    facts = [("A", "r", "B"), ("B", "s", "C"), ("B", "s", "D")]
    retriever = pcst(facts, prizes="paper", k_relations=1, edge_cost=1, k_nodes=3)
    for second, third in ("CD", "DC"):
        (document,) = retriever.invoke("?", **ranks(["A", second, third], ["r"]))
        keys = [key for _, key in document.metadata["details"]["entities"]]
        assert second in keys
        assert third not in keys


# --- on a real graph ---


@pytest.mark.real
@pytest.mark.parametrize("count", [8, pytest.param(30, marks=pytest.mark.heavy)])
def test_three_hops_on_metaqa(data_dir: Path, metaqa_graph: KnowledgeGraph, count: int) -> None:
    """Of some questions, the first 100 triples hold most answers, in connected subgraphs around the topic."""
    questions = random.Random(20261121).sample(read_metaqa(data_dir / "metaqa", 3), count)
    retriever = PCSTRetriever.from_index(GraphIndex.build(metaqa_graph, EMBEDDINGS), k=5)
    recalls = []
    for question in questions:
        documents = retriever.invoke(question.text)
        TestPCST().check_documents(retriever, documents)
        found = triples(documents)
        assert question.seed_entities[0] in documents[0].metadata["labels"]
        assert all(
            is_connected(facts) or document.metadata["truncated"]
            for facts, document in zip(found, documents, strict=True)
        )
        first = list(dict.fromkeys(fact for facts in found for fact in facts))[:100]
        entities = {key for head, _, tail in first for key in (head, tail)}
        recalls.append(len(entities & set(question.answers)) / len(question.answers))
    assert np.mean(recalls) >= 0.5


# --- what is supplied, and what is left for the next ---


def test_what_max_triples_leaves_out_comes_with_the_next() -> None:
    """What is new stands first, so that a cut does not show the connectors alone."""
    dramas = [("Capote", GENRE, "Drama"), ("Doubt", GENRE, "Drama")]
    for most in (1, 2, 3, 4):
        documents = pcst(FILMS + dramas, max_triples=most).invoke("?", k=99, **ranks(["Her"], IN_ORDER))
        assert {fact for facts in triples(documents) for fact in facts} == {*FILMS, *dramas}
        assert max(map(len, triples(documents))) <= most
        assert scores(documents) == sorted(scores(documents), reverse=True)
    joined = pcst(FILMS + dramas).invoke("?", k=2, **ranks(["Her"], IN_ORDER))[1]
    assert triples([joined])[0][:3] == [*dramas, KAUFMAN]


def test_ranks_are_those_of_the_relations_in_scope() -> None:
    """Better relations elsewhere take no place."""
    elsewhere = [("X", f"r{place}", "Y") for place in range(9)]
    names = [f"r{place}" for place in range(9)] + [BY, WRITTEN, GENRE]
    for prizes in ("paths", "paper", "published"):
        expected = pcst(FILMS, prizes=prizes, k_relations=2).invoke("?", k=9, **ranks(["Her"], names[9:]))
        found = pcst(FILMS + elsewhere, prizes=prizes, k_relations=2).invoke("?", k=9, **ranks(["Her"], names))
        assert triples(found) == triples(expected)
        assert scores(found) == pytest.approx(scores(expected))


@pytest.mark.parametrize("cost", [5, 10, 1e9])
def test_the_best_path_pays_whatever_an_edge_costs(cost: float) -> None:
    documents = pcst(FILMS, edge_cost=cost).invoke("?", k=9, **ranks(["Her"], IN_ORDER))
    assert triples(documents)[0] == [HER]
    assert {fact for facts in triples(documents) for fact in facts} == set(FILMS)
