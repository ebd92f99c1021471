"""PCST under the contract of all retrievers, by hand, by its fields, and as a person edits what it ranks."""

from __future__ import annotations

import csv
import io
import json
import random
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.prompts import PromptTemplate
from langgraph.checkpoint.memory import InMemorySaver

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, PCSTRetriever, Question, build_workflow
from kg_retrievers.core.prompts import check_placeholders
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.datasets import read_metaqa
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError
from kg_retrievers.evaluation import evaluate
from kg_retrievers.graph import Triple
from kg_retrievers.graph.verbalize import as_data, table_lines
from kg_retrievers.methods.g_retriever.prizes import prize_edges, prize_nodes
from kg_retrievers.methods.g_retriever.prompts import ANSWER_PROMPT
from kg_retrievers.methods.g_retriever.relation_walk import walk_triples
from kg_retrievers.methods.g_retriever.retriever import LONGEST_WALK, PREFERENCE
from kg_retrievers.sample import load_graph, load_questions
from kg_retrievers.testing import RetrieverContract, ScriptedChatModel, tiny_graph

EMBEDDINGS = HashedEmbeddings()
SAMPLE = GraphIndex.build(load_graph(), EMBEDDINGS)
TINY = GraphIndex.build(tiny_graph(), EMBEDDINGS)

Facts = list[tuple[str, str, str]]


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
    if not isinstance(facts, GraphIndex):
        graph = facts if isinstance(facts, KnowledgeGraph) else KnowledgeGraph.from_triples(facts)
        facts = GraphIndex.build(graph, EMBEDDINGS)
    return PCSTRetriever.from_index(facts, **({"edge_cost": 0.5} | fields))


def ranks(entities: list[str], relations: list[str], seeds: list[str] | None = None) -> dict[str, Any]:
    """What the first stage writes, for `invoke`; the first entity is the seed unless others are given."""
    return {
        "seed_entities": entities[:1] if seeds is None else seeds,
        "ranked_entities": [[key, 1.0] for key in entities],
        "ranked_relations": [[name, 1.0] for name in relations],
    }


def triples(documents: list[Document]) -> list[list[tuple[str, str, str]]]:
    return [[tuple(triple) for triple in document.metadata["triples"]] for document in documents]


def scores(documents: list[Document]) -> list[float]:
    return [document.metadata["score"] for document in documents]


def is_connected(facts: list[tuple[str, str, str]]) -> bool:
    return bool(nx.is_connected(nx.Graph([(head, tail) for head, _, tail in facts])))


# --- by hand ---

BY, GENRE, WRITTEN = "directed_by", "has_genre", "written_by"
FILMS: Facts = [
    ("Her", BY, "Spike Jonze"),
    ("Her", GENRE, "Drama"),
    ("Adaptation", BY, "Spike Jonze"),
    ("Adaptation", WRITTEN, "Charlie Kaufman"),
]
HER, DRAMA, ADAPTATION, KAUFMAN = FILMS
IN_ORDER = [BY, GENRE, WRITTEN]


def test_paths_by_hand() -> None:
    """The walk takes them 0.8, 0.2, 0.4 and 0.04 times, see `test_films_by_hand`: prizes of 5, 1.25, 2.5 and 0.25.

    The last is below the cost, and nothing is behind it: 3 for Her + 8.75 - 3 * 0.5. The walk takes it, though, so it
    comes next, at a cost that has fallen as the highest prize, by 5 / 0.25.
    """
    documents = pcst(FILMS).invoke("?", k=9, **ranks(["Her"], IN_ORDER))
    assert triples(documents) == [[HER, ADAPTATION, DRAMA], [KAUFMAN]]
    assert scores(documents) == pytest.approx([10.25, 0.25 - 0.025])
    first, second = (document.metadata["details"] for document in documents)
    assert first == {"prizes": 11.75, "edge_cost": 0.5, "entities": [["Her", "Her"]]}
    assert (second["prizes"], second["edge_cost"], second["entities"]) == (
        pytest.approx(0.25),
        pytest.approx(0.025),
        [],
    )


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
    ("fields", "found", "worth"),
    [
        # 2 for each triple by the first relation, 1 for the one by the second: 3 + 5 - 3 * 0.5.
        ({"k_relations": 2}, [[HER, ADAPTATION, DRAMA]], [6.5]),
        ({"k_relations": 3}, [[HER, ADAPTATION, DRAMA, KAUFMAN]], [3 + 3 + 3 + 2 + 1 - 2]),
        ({"k_relations": 1}, [[HER, ADAPTATION]], [3 + 2 - 1]),
        # Where an edge costs as much as the highest prize, none pays, and an entity alone is no fact.
        ({"k_relations": 2, "edge_cost": 2}, [], []),
    ],
)  # fmt: skip
def test_paper_by_hand(fields: dict[str, Any], found: list[Facts], worth: list[float]) -> None:
    documents = pcst(FILMS, prizes="paper", **fields).invoke("?", k=9, **ranks(["Her"], IN_ORDER))
    assert triples(documents) == found
    assert scores(documents) == pytest.approx(worth)


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


@pytest.mark.parametrize(
    ("pruning", "found"), [("strong", [("A", "r", "B"), ("B", "r", "C")]), ("gw", [("A", "r", "B"), ("B", "r", "C")])]
)
def test_pruning_leaves_out_what_costs_more_than_it_is_worth(pruning: str, found: Facts) -> None:
    line = [("A", "r", "B"), ("B", "r", "C"), ("C", "s", "D"), ("C", "s", "E")]
    retriever = pcst(line, prizes="paper", k_relations=1, pruning=pruning)
    assert triples(retriever.invoke("?", **ranks(["A"], ["r"]))) == [found]


def test_edge_cost_bounds_a_subgraph() -> None:
    sizes = [
        len(triples(pcst(FILMS, edge_cost=cost).invoke("?", **ranks(["Her"], IN_ORDER)))[0])
        for cost in (0.01, 0.5, 2, 3)
    ]
    assert sizes == [4, 3, 2, 1]


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


@given(cases(), st.integers(1, 5))
@settings(max_examples=60)
def test_a_shorter_list_is_the_beginning(case: tuple[PCSTRetriever, dict[str, Any]], k: int) -> None:
    retriever, given = case
    assert retriever.invoke("?", k=k, **given) == retriever.invoke("?", k=100, **given)[:k]


def test_k_larger_than_the_graph() -> None:
    """Every fact in reach once, then no more."""
    around = [
        triple for triple in tiny_graph().triples() if {triple.head, triple.tail} & {"Amélie", "Alien Resurrection"}
    ]
    for question in ("Who starred in Amélie?", "Which films did Jean-Pierre Jeunet direct?"):
        documents = pcst(TINY, granularity="triple", k=1000).invoke(question)
        assert sorted(fact for (fact,) in triples(documents)) == sorted(around)
        TestPCST().check_documents(pcst(TINY), documents)


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


def test_threads() -> None:
    questions = [question.text for question in load_questions()][:24]
    expected = [triples(documents) for documents in map(pcst(SAMPLE, k=3).invoke, questions)]
    with ThreadPoolExecutor(8) as threads:
        assert [triples(documents) for documents in threads.map(pcst(SAMPLE, k=3).invoke, questions)] == expected


# --- which entities ---


def test_the_question_names_them() -> None:
    (document,) = pcst(SAMPLE).invoke("Who directed Inception?")
    assert triples([document])[0][0] == ("Inception", "directed_by", "Christopher Nolan")
    assert ["Inception", "Inception"] in document.metadata["details"]["entities"]
    assert document.metadata["answers"] == []


def test_seeds_of_one_label() -> None:
    """Both films called "Dune" are meant, unless one is given."""
    documents = pcst(TINY, k=9).invoke("Who directed Dune?")
    assert {fact for facts in triples(documents) for fact in facts} == {
        ("Dune (1984)", BY, "David Lynch"),
        ("Dune (2021)", BY, "Denis Villeneuve"),
    }
    assert documents[0].page_content.splitlines()[1] == "0,Dune"
    (given,) = pcst(TINY, k=9).invoke("Who directed Dune?", seed_entities=["Dune (2021)"])
    assert triples([given]) == [[("Dune (2021)", BY, "Denis Villeneuve")]]


def test_several_seeds() -> None:
    """The way between them is found: they share an actor."""
    seeds = ["Audrey Tautou", "Alien Resurrection"]
    (document,) = pcst(TINY).invoke("What do they share?", seed_entities=seeds)
    assert {key for _, key in document.metadata["details"]["entities"]} >= set(seeds)
    assert {("Amélie", "starring", "Audrey Tautou")} < set(triples([document])[0])
    assert is_connected(triples([document])[0])


def test_seeds_all_get_a_prize() -> None:
    """However few `k_nodes` are, the entities of the question count."""
    (document,) = pcst([("A", "r", "B")], k_nodes=1).invoke("?", **ranks(["A", "B"], ["r"], ["A", "B"]))
    assert document.metadata["details"]["prizes"] == 1 + 1 + 5


def test_link() -> None:
    """The question without its entities is what ranks relations."""
    assert pcst(TINY).link("Did Spike Jonze direct Her?") == (["Spike Jonze", "Her"], "Did _ direct _?")
    assert pcst(TINY).link("Did Spike Jonze direct Her?", ["Her"]) == (["Her"], "Did Spike Jonze direct _?")
    assert pcst(TINY, scope="graph").link("Did he direct Her?") == ([], "Did he direct Her?")
    assert pcst(TINY, scope="graph").link("Did he direct Her?", ["Her"]) == (["Her"], "Did he direct _?")


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


def test_loops_and_parallel_relations() -> None:
    (document,) = pcst(TINY).invoke("What does Synecdoche, New York contain?")
    assert triples([document])[0][0] == ("Synecdoche, New York", "contains", "Synecdoche, New York")
    (document,) = pcst(TINY).invoke("Who directed and wrote Her?")
    assert {("Her", BY, "Spike Jonze"), ("Her", WRITTEN, "Spike Jonze")} <= set(triples([document])[0])
    loop = [("Her", "contains", "Her")]
    assert triples(pcst(loop).invoke("?", k=3, **ranks(["Her"], ["contains"]))) == [loop]


# --- what is shown ---


def tables(text: str) -> tuple[list[str], set[tuple[str, str, str]]]:
    """Read the names of the first table, by number, and the rows of the second, by these names."""
    rows = list(csv.reader(io.StringIO(text, newline="")))
    between = rows.index([])
    assert (rows[0], rows[between + 1]) == (["node_id", "node_attr"], ["src", "edge_attr", "dst"])
    assert [number for number, _ in rows[1:between]] == [str(number) for number in range(between - 1)]
    names = [name for _, name in rows[1:between]]
    return names, {(names[int(head)], relation, names[int(tail)]) for head, relation, tail in rows[between + 2 :]}


def test_names_of_any_kind() -> None:
    """Commas, quotes, line breaks, blanks, emoji and tables in keys and labels; each row stays one line."""
    keys = ["a,b", 'say "hi"', "two\nlines", " blank ", "🎬,🎭", "src,edge_attr,dst", "node_id", "r\rn", "tab\there"]
    labels = {"a,b": 'label, of "a"', "two\nlines": "千と千尋\n\n0,1", "🎬,🎭": "👩‍🚀", "node_id": "0"}
    facts = [(here, "next,to", there) for here, there in pairwise(keys)]
    graph = KnowledgeGraph.from_triples(facts, labels=labels)
    retriever = pcst(graph, max_hops=None)
    (document,) = retriever.invoke("What now?", seed_entities=["src,edge_attr,dst", "two\nlines", "🎬,🎭"], k=1)
    found = triples([document])[0]
    names, rows = tables(document.page_content)
    assert names == list(dict.fromkeys(as_data(graph.label(key)) for head, _, tail in found for key in (head, tail)))
    assert rows == {(as_data(graph.label(head)), "next,to", as_data(graph.label(tail))) for head, _, tail in found}
    assert {as_data(graph.label(key)) for key in ("two\nlines", "🎬,🎭", "src,edge_attr,dst")} <= set(names)
    everything = retriever.invoke("What now?", seed_entities=["src,edge_attr,dst"], k=99)
    assert {fact for facts in triples(everything) for fact in facts} >= set(facts[2:8])
    TestPCST().check_documents(retriever, everything)


def test_styles() -> None:
    given = ranks(["Her"], IN_ORDER)
    (document,) = pcst(FILMS).invoke("?", **given)
    names, rows = tables(document.page_content)
    assert names == ["Her", "Spike Jonze", "Adaptation", "Drama"]
    assert ("Her", "directed by", "Spike Jonze") in rows
    (document,) = pcst(FILMS, style="triples").invoke("?", **given)
    assert document.page_content.splitlines()[0] == "Her -> directed by -> Spike Jonze"


def test_prompt() -> None:
    check_placeholders(ANSWER_PROMPT, ["question", "evidence"], "answer")
    assert pcst(TINY).prompts == {"answer": ANSWER_PROMPT}
    own = PromptTemplate.from_template("{question} {evidence}")
    assert pcst(TINY, answer_prompt=own).answer_prompt == own
    for bad in (PromptTemplate.from_template("{question}"), "{question} {evidence}"):
        with pytest.raises(InvalidArgumentError, match=r"answer_prompt: (the|wanted a) prompt"):
            pcst(TINY, answer_prompt=bad)


def test_the_example_of_the_prompt_is_written_as_tables() -> None:
    facts = [
        Triple("Rusalka", "composed_by", "Antonín Dvořák"),
        Triple("Antonín Dvořák", "birth_place", "Nelahozeves, Bohemia"),
    ]
    assert "\n".join(table_lines(facts)) in ANSWER_PROMPT.format(question="", evidence="")


# --- what bounds it ---

LINE: Facts = [(f"n{place}", "r", f"n{place + 1}") for place in range(8)]


@pytest.mark.parametrize(("hops", "reached"), [(1, 1), (2, 2), (5, 5), (None, 8)])
@pytest.mark.parametrize("prizes", ["paths", "paper", "published"])
def test_max_hops(hops: int | None, reached: int, prizes: str) -> None:
    documents = pcst(LINE, max_hops=hops, prizes=prizes, granularity="triple").invoke("?", k=99, **ranks(["n0"], ["r"]))
    assert sorted(fact for (fact,) in triples(documents)) == LINE[:reached]


def test_max_nodes() -> None:
    star = [("hub", "r", f"leaf {leaf}") for leaf in range(9)]
    for most, cut in ((1, True), (2, True), (4, True), (10, False), (None, False)):
        documents = pcst(star, max_nodes=most).invoke("?", k=99, **ranks(["hub"], ["r"]))
        assert sum(len(facts) for facts in triples(documents)) == (9 if most is None else most - 1)
        assert all(document.metadata["truncated"] is cut for document in documents)


@pytest.mark.parametrize(("most", "found"), [(1, [HER]), (2, [HER, ADAPTATION]), (3, [HER, ADAPTATION, DRAMA])])
def test_max_triples(most: int, found: Facts) -> None:
    """Those with the highest prizes stay; the score is that of the whole subgraph."""
    (document,) = pcst(FILMS, max_triples=most).invoke("?", **ranks(["Her"], IN_ORDER))
    assert triples([document]) == [found]
    assert document.metadata["truncated"] is (most < 3)
    assert document.metadata["score"] == pytest.approx(10.25)


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


@pytest.mark.parametrize(
    "field",
    [
        {"k_nodes": 0}, {"k_relations": 0}, {"edge_cost": 0}, {"edge_cost": -1}, {"edge_cost": float("inf")},
        {"edge_cost": float("nan")}, {"max_triples": 0}, {"max_hops": 0}, {"max_nodes": 0}, {"prizes": "all"},
        {"pruning": "none"}, {"scope": "world"}, {"granularity": "path"}, {"style": "numbered"}, {"on_refusal": "no"},
    ],
    ids=str,
)  # fmt: skip
def test_fields_are_checked(field: dict[str, Any]) -> None:
    (name,) = field
    with pytest.raises(InvalidArgumentError, match=name):
        pcst(TINY, **field)
    retriever = pcst(TINY)
    with pytest.raises(InvalidArgumentError, match=name):
        setattr(retriever, name, field[name])


def test_from_index() -> None:
    """It asks no language model, learns from no examples, and is not trained."""
    retriever = pcst(TINY, llm=ScriptedChatModel(replies=[]), examples=load_questions())
    assert retriever.invoke("Who directed Her?") == pcst(TINY).invoke("Who directed Her?")
    assert [stage.calls_model for stage in retriever.stages] == [False, False]
    assert [stage.name for stage in retriever.stages] == ["rank_nodes_and_edges", "solve_pcst"]
    with pytest.raises(InvalidArgumentError, match="not trained"):
        pcst(TINY, model=object())


def test_it_is_measured_by_what_it_retrieves() -> None:
    """It proposes no answers, so that nothing is said about them."""
    report = evaluate(pcst(TINY), [Question("Who directed Her?", ("Her",), ("Spike Jonze",))], topic="linked")
    assert report.metrics["hit"] is None
    assert report.metrics["llm_calls_mean"] == 0.0


# --- what a person edits ---


def test_the_order_of_relations_changes_the_result() -> None:
    entities, relations = ["Amélie"], [BY, "starring"]
    retriever = pcst(TINY, granularity="triple", k=1)
    ((by,),) = triples(retriever.invoke("?", **ranks(entities, relations)))
    ((starring,),) = triples(retriever.invoke("?", **ranks(entities, relations[::-1])))
    assert (by[1], starring[1]) == (BY, "starring")


def test_the_order_of_entities_changes_the_result() -> None:
    """A prize of 2 is worth a way that one of 1 is not."""
    facts = [("A", "r", "B"), ("B", "s", "C"), ("B", "s", "D")]
    retriever = pcst(facts, prizes="paper", k_relations=1, edge_cost=1, k_nodes=3)
    for second, third in ("CD", "DC"):
        (document,) = retriever.invoke("?", **ranks(["A", second, third], ["r"]))
        keys = [key for _, key in document.metadata["details"]["entities"]]
        assert second in keys
        assert third not in keys


@pytest.mark.parametrize(("key", "name"), [("ranked_entities", "Her"), ("ranked_relations", BY)])
@pytest.mark.parametrize(
    "rows",
    [
        "{name}",
        5,
        {"{name}": 1.0},
        [None],
        ["{name}"],
        [["{name}"]],
        [["{name}", 1.0, 2.0]],
        [["{name}", "1.0"]],
        [["{name}", None]],
        [["{name}", True]],
        [[1.0, "{name}"]],
        [["Xyzzyplugh", 1.0]],
        [[["{name}"], 1.0]],
    ],
    ids=str,
)
def test_what_is_supplied_is_checked(key: str, name: str, rows: Any) -> None:
    given = ranks(["Her"], [BY]) | {key: json.loads(json.dumps(rows).replace("{name}", name))}
    with pytest.raises(InvalidArgumentError, match=rf"^PCSTRetriever: {key}\S* (must|is) "):
        pcst(TINY).invoke("?", **given)


def test_names_of_the_other_table_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="ranked_entities"):
        pcst(TINY).invoke("?", **ranks([BY], [BY], ["Her"]))
    with pytest.raises(InvalidArgumentError, match="ranked_relations"):
        pcst(TINY).invoke("?", **ranks(["Her"], ["Her"]))


async def test_edits_in_a_workflow() -> None:
    """A person stops the run before it solves, and puts another relation first."""
    question, config = "Who starred in Amélie?", {"configurable": {"thread_id": "1"}}
    retriever = pcst(TINY, granularity="triple", k=3)
    workflow = build_workflow(retriever, checkpointer=InMemorySaver(), interrupt_before=["solve_pcst"])
    workflow.invoke({"question": question}, config)
    state = workflow.get_state(config)
    assert state.next == ("solve_pcst",)
    relations = state.values["ranked_relations"]
    assert relations[0][0] == "starring"
    for bad in ("starring", [["starring"]], [["played_by", 1.0]], [["starring", "1"]]):
        with pytest.raises(InvalidArgumentError, match="ranked_relations"):
            workflow.update_state(config, {"ranked_relations": bad})
        with pytest.raises(InvalidArgumentError, match="ranked_relations"):
            await workflow.aupdate_state(config, {"ranked_relations": bad})
    with pytest.raises(InvalidArgumentError, match="ranked_entities"):
        workflow.update_state(config, {"ranked_entities": [["Xyzzyplugh", 1.0]]})
    edited = sorted(relations, key=lambda row: row[0] != BY)
    workflow.update_state(config, {"ranked_relations": edited})
    assert workflow.get_state(config).next == ("solve_pcst",)
    output = workflow.invoke(None, config)
    supplied = {key: state.values[key] for key in ("seed_entities", "ranked_entities")}
    assert output["documents"] == retriever.invoke(question, ranked_relations=edited, **supplied)
    assert triples(output["documents"])[0] == [("Amélie", BY, "Jean-Pierre Jeunet")]
    assert triples(retriever.invoke(question))[0][0][1] == "starring"


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


def test_what_is_supplied_alone_is_kept() -> None:
    retriever = pcst(TINY, granularity="triple")
    for name, relation in ((BY, BY), ("starring", "starring")):
        documents = retriever.invoke("Who starred in Amélie?", ranked_relations=[[name, 1.0]])
        assert triples(documents)[0][0][1] == relation
    documents = retriever.invoke("Who directed Her?", ranked_entities=[["Adaptation", 1.0]])
    prized = documents[0].metadata["details"]["entities"]
    assert sorted(prized) == [["Adaptation", "Adaptation"], ["Her", "Her"]]


def test_a_relation_that_is_ranked_alone_is_preferred() -> None:
    retriever = pcst(FILMS, granularity="triple")
    for name, fact in ((GENRE, ("Her", GENRE, "Drama")), (BY, HER)):
        assert triples(retriever.invoke("?", **ranks(["Her"], [name]))) == [[fact]]


@pytest.mark.parametrize("name", ["seed_entities", "ranked_entities", "ranked_relations"])
def test_none_is_as_if_left_out(name: str) -> None:
    question = "Who directed Her?"
    state = pcst(TINY).stages[0].run.invoke(pcst(TINY).initial_state(question))
    assert pcst(TINY).invoke(question, **(state | {name: None})) == pcst(TINY).invoke(question)


@pytest.mark.parametrize(("key", "name"), [("ranked_entities", "Her"), ("ranked_relations", BY)])
@pytest.mark.parametrize("numbers", [[1.0, 0.5], [float("nan")], [float("inf")]], ids=["twice", "nan", "inf"])
def test_names_are_distinct_and_similarities_finite(key: str, name: str, numbers: list[float]) -> None:
    given = ranks(["Her"], [BY]) | {key: [[name, number] for number in numbers]}
    with pytest.raises(InvalidArgumentError, match=rf"^PCSTRetriever: {key}\S* (must|is) "):
        pcst(TINY).invoke("?", **given)


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


def test_another_index_is_linked_anew() -> None:
    other = GraphIndex.build(KnowledgeGraph.from_triples([("New York", "in", "USA")]), HashedEmbeddings())
    retriever = pcst(TINY)
    retriever.invoke("Who directed Her?")
    retriever.index = other
    assert triples(retriever.invoke("Where is New York?")) == [[("New York", "in", "USA")]]


def test_seeds_within_each_other() -> None:
    graph = KnowledgeGraph.from_triples([("Synecdoche, New York", WRITTEN, "Kaufman"), ("New York", "in", "USA")])
    seeds = ["New York", "Synecdoche, New York"]
    assert pcst(graph).link("Who wrote Synecdoche, New York in 2008?", seeds) == (seeds, "Who wrote _ in 2008?")


def test_prompt_snapshot() -> None:
    """A change of words shows here: bump `VERSION`, then delete the snapshot and run the test again."""
    snapshot = Path(__file__).parents[2] / "snapshots" / "pcst_answer_prompt.txt"
    text = ANSWER_PROMPT.format(question="who directed {Her}?", evidence="[1]\n" + "\n".join(table_lines([]))) + "\n"
    if not snapshot.exists():
        snapshot.write_text(text, encoding="utf-8")
        pytest.fail(f"{snapshot.name} was missing and has been written; look at it and run again.")
    assert text == snapshot.read_text(encoding="utf-8")
