"""KGRetriever under the contract of all retrievers, and what it promises beside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from built_methods import drawn_model
from graph_reader import GraphReader, names_in_memory
from langchain_core.documents import Document

import kg_retrievers.methods.kg.retriever
from kg_retrievers import (
    GraphIndex,
    HashedEmbeddings,
    KGRetriever,
    KnowledgeGraph,
    NeighborhoodRetriever,
    Pattern,
    Question,
    SimGRAGRetriever,
    SubgraphRAGRetriever,
    Unknown,
    answer_chain,
    build_workflow,
    default_embeddings,
)
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError
from kg_retrievers.graph.verbalize import approximate_tokens
from kg_retrievers.sample import load_graph
from kg_retrievers.testing import RetrieverContract


class TestKGRetriever(RetrieverContract):
    retriever_class = KGRetriever


@pytest.fixture(scope="module")
def index() -> GraphIndex:
    return GraphIndex.build(load_graph(), default_embeddings())


def parts(documents: Sequence[Document]) -> list[str]:
    """Return what found the further facts."""
    return [part for one in documents for part in one.metadata["details"].get("parts", ())]


def test_the_sure_answer_comes_first_as_simgrag_finds_it(index: GraphIndex) -> None:
    question = "Who directed Her?"
    answer, further = KGRetriever.from_index(index).invoke(question)
    alone = SimGRAGRetriever.from_index(index).invoke(question)[0]
    kept = ("triples", "answers", "confidence", "score", "value")
    assert [answer.metadata[name] for name in kept] == [alone.metadata[name] for name in kept]
    assert further.metadata["answers"] == []
    assert not {tuple(row) for row in further.metadata["triples"]} & {tuple(row) for row in answer.metadata["triples"]}


@pytest.mark.parametrize("most", [20, 50, 150, 500])
@pytest.mark.parametrize("granularity", ["subgraph", "triple"])
@pytest.mark.parametrize("style", ["triples", "grouped"])
@pytest.mark.parametrize("question", ["Who directed Her?", "List all films.", "Who starred in films by Spike Jonze?"])
def test_the_budget_holds(index: GraphIndex, question: str, style: Any, granularity: Any, most: int) -> None:
    retriever = KGRetriever.from_index(index, max_tokens=most, style=style, granularity=granularity)
    documents = retriever.invoke(question)
    assert documents
    assert sum(approximate_tokens(one.page_content) for one in documents) <= most


def test_entities_of_one_name_each_give_an_answer(index: GraphIndex) -> None:
    """Two films are called Dune; neither is silently preferred."""
    retriever = KGRetriever.from_index(index)
    *answers, further = retriever.invoke("Who directed Dune?")
    assert [one.metadata["answers"] for one in answers] == [["David Lynch"], ["Denis Villeneuve"]]
    assert further.metadata["answers"] == []
    (chosen, _) = retriever.invoke("Who directed Dune?", seed_entities=["Dune (2021)"])
    assert chosen.metadata["answers"] == ["Denis Villeneuve"]
    for most in (8, 16, 30):
        documents = KGRetriever.from_index(index, max_tokens=most).invoke("Who directed Dune?")
        assert len(documents) == 1 or sum(approximate_tokens(one.page_content) for one in documents) <= most


def test_a_counter_of_your_own_counts(index: GraphIndex) -> None:
    documents = KGRetriever.from_index(index, count_tokens=len, max_tokens=100).invoke("Who directed Her?")
    assert len(documents) == 2
    assert sum(len(one.page_content) for one in documents) <= 100


def test_a_budget_below_one_fact_shows_one(index: GraphIndex) -> None:
    (document,) = KGRetriever.from_index(index, max_tokens=4).invoke("How much did Her cost?")
    assert len(document.metadata["triples"]) == 1


def test_no_fact_is_shown_twice() -> None:
    facts = [(f"Film {number}", "directed by", "Ann Lee") for number in range(300)]
    facts += [(f"Film {number}", "made in", f"Town {number % 50}") for number in range(300)]
    retriever = KGRetriever.from_index(
        GraphIndex.build(KnowledgeGraph.from_triples(facts), default_embeddings()), max_tokens=20_000
    )
    documents = retriever.invoke("Which films were directed by Ann Lee?")
    shown = [tuple(row) for one in documents for row in one.metadata["triples"]]
    assert len(documents[0].metadata["answers"]) == 300
    assert len(shown) == len(set(shown))


def test_a_large_answer_is_complete_though_its_facts_are_cut(index: GraphIndex) -> None:
    question = "Which films were made in the United States?"
    whole = SimGRAGRetriever.from_index(index).invoke(question)[0].metadata
    (cut,) = KGRetriever.from_index(index, max_tokens=60, k=1).invoke(question)
    assert cut.metadata["answers"] == whole["answers"]
    assert cut.metadata["truncated"]
    assert len(cut.metadata["triples"]) < len(whole["triples"])


def test_what_is_not_understood_gives_evidence_without_answers(index: GraphIndex) -> None:
    documents = KGRetriever.from_index(index).invoke("How much did the tickets of Her cost?")
    assert [one.metadata["answers"] for one in documents] == [[]]
    assert documents[0].metadata["confidence"] < 0.5
    assert "Her" in documents[0].page_content
    assert "no relation fits" in documents[0].metadata["details"]["why"]
    told = answer_chain(KGRetriever.from_index(index)).invoke("How much did the tickets of Her cost?")
    assert "Not sure what" in told


def test_a_description_without_an_entity_finds_the_nearest_facts() -> None:
    facts = [(f"Hut {number}", "lies above", f"Lake {number}") for number in range(30)]
    graph = KnowledgeGraph.from_triples([*facts, ("Old mill", "grinds", "rye flour")])
    retriever = KGRetriever.from_index(GraphIndex.build(graph, default_embeddings()))
    documents = retriever.invoke("where is rye ground to flour in a mill")
    assert documents[0].metadata["triples"][0] == ["Old mill", "grinds", "rye flour"]
    assert documents[0].metadata["details"]["why"]
    assert not any(one.metadata["answers"] for one in documents)


def test_names_near_to_a_description_stand_for_the_facts_of_a_large_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kg_retrievers.methods.kg.retriever, "EMBEDDED", 10)
    facts = [(f"Hut {number}", "lies above", f"Lake {number}") for number in range(30)]
    graph = KnowledgeGraph.from_triples([*facts, ("rye mill", "grinds", "flour")])
    retriever = KGRetriever.from_index(GraphIndex.build(graph, default_embeddings()))
    (document,) = retriever.invoke("rye milling")
    assert document.metadata["triples"] == [["rye mill", "grinds", "flour"]]
    assert parts([document]) == ["around"]
    assert retriever.invoke("hello there") == []


def test_a_graph_that_says_nothing_refuses(index: GraphIndex) -> None:
    with pytest.raises(EntityLinkingError):
        KGRetriever.from_index(index).invoke("hello there", on_refusal="raise")


def test_parts_name_what_found_each_fact(index: GraphIndex) -> None:
    documents = KGRetriever.from_index(index).invoke("Who directed Her?")
    assert len(parts(documents)) == len(documents[1].metadata["triples"])
    assert set(parts(documents)) <= {"reading 1", "reading 2", "reading 3", "reading 4", "around", "text"}


def test_the_same_answer_over_a_graph_that_stays_in_its_database() -> None:
    steps = ["founded by", "married to", "studied at", "lies in", "belongs to"]
    names = ["Acme", "Carl Berg", "Dora Lind", "Oslo School", "Oslo", "Norway"]
    whole = KnowledgeGraph.from_triples(zip(names, steps, names[1:], strict=False))
    embeddings = HashedEmbeddings()
    connected = GraphIndex.connect(GraphReader(whole), embeddings, names_in_memory(whole, embeddings))
    question = "Where did the spouse of the founder of Acme study?"
    answer = KGRetriever.from_index(connected).invoke(question)[0].metadata
    alone = SimGRAGRetriever.from_index(connected).invoke(question)[0].metadata
    kept = ("triples", "answers", "confidence", "truncated")
    assert [answer[name] for name in kept] == [alone[name] for name in kept]
    assert answer["answers"] == ["Oslo School"]


def test_parts_of_another_graph_are_refused(index: GraphIndex) -> None:
    other = GraphIndex.build(KnowledgeGraph.from_triples([("a", "b", "c")]), default_embeddings())
    with pytest.raises(InvalidArgumentError, match="its SimGRAGRetriever is on another graph or view"):
        KGRetriever.from_index(index, matcher=SimGRAGRetriever.from_index(other))
    single = SimGRAGRetriever.from_index(index, granularity="triple")
    with pytest.raises(InvalidArgumentError, match="its matcher needs granularity"):
        KGRetriever.from_index(index, matcher=single)


def test_an_unsure_result_goes_on_to_the_fallback_and_tells_an_agent_why(index: GraphIndex) -> None:
    question, retriever = "How much did the tickets of Her cost?", KGRetriever.from_index(index)
    assert retriever.as_tool().invoke(question).startswith("Not sure what")
    workflow = build_workflow(retriever, fallback=NeighborhoodRetriever.from_index(index))
    assert workflow.invoke({"question": question})["documents"][0].metadata["retriever"] == "NeighborhoodRetriever"
    refused = build_workflow(retriever, fallback=SimGRAGRetriever.from_index(index)).invoke({"question": question})
    assert refused["retriever"] == "KGRetriever"
    assert refused["reason"].startswith("Not sure what")
    sure = workflow.invoke({"question": "Who directed Her?"})["documents"]
    assert sure[0].metadata["retriever"] == "KGRetriever"


@pytest.mark.parametrize("readings", [5, "x", {"triples": []}])
def test_readings_are_a_list(index: GraphIndex, readings: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="readings is a list of patterns"):
        KGRetriever.from_index(index).invoke("?", readings=readings)


def test_readings_that_a_person_gives_are_carried_out(index: GraphIndex) -> None:
    pattern = Pattern.of(("Her", "starring", Unknown("who")), target="who")
    answer = KGRetriever.from_index(index).invoke("?", readings=[pattern])[0]
    assert "Amy Adams" in answer.metadata["answers"]
    assert answer.metadata["confidence"] is None


def test_a_trained_model_joins_in(index: GraphIndex, tmp_path: Any) -> None:
    model = drawn_model("subgraph-rag", index.embeddings)
    model.save_pretrained(tmp_path)
    for given in (model, tmp_path, str(tmp_path)):
        retriever = KGRetriever.from_index(index, model=given)
        assert isinstance(retriever.trained, SubgraphRAGRetriever)
        documents = retriever.with_fields({"max_tokens": 5_000}).invoke("How much did the tickets of Her cost?")
        assert "model" in parts(documents)
    with pytest.raises(InvalidArgumentError, match="wanted a trained model of gnn-rag or subgraph-rag"):
        KGRetriever.from_index(index, model=7)


def test_examples_with_answers_alone_teach_words(index: GraphIndex) -> None:
    examples = [
        Question("Who was at the helm of Alien?", answers=("Ridley Scott",)),
        Question("Who was at the helm of Titanic?", answers=("James Cameron",)),
    ]
    question = "Who was at the helm of Her?"
    assert KGRetriever.from_index(index).invoke(question)[0].metadata["answers"] == []
    taught = KGRetriever.from_index(index, examples=examples).invoke(question)[0].metadata
    assert taught["answers"] == ["Spike Jonze"]
    with pytest.raises(InvalidArgumentError, match="none of 1 examples has a pattern"):
        KGRetriever.from_index(index, examples=[Question("Who is it?", answers=("Nobody",))])


def test_views_show_nothing_else() -> None:
    facts = [("Ann", "works for", "Acme", {"tenant": "a"}), ("Bob", "works for", "Acme", {"tenant": "b"})]
    whole = GraphIndex.build(KnowledgeGraph.from_triples(facts), default_embeddings())
    retriever: BaseKGRetriever = KGRetriever.from_index(whole.view({"tenant": "a"}))
    cut = GraphIndex.build(KnowledgeGraph.from_triples(facts[:1]), default_embeddings())
    for question in ("Who works for Acme?", "Where does Bob work?", "Tell me about Acme", "How old is Ann?"):
        there = [one.page_content for one in KGRetriever.from_index(cut).invoke(question)]
        assert [one.page_content for one in retriever.invoke(question)] == there


def test_more_entities_of_one_name_than_are_shown_are_flagged() -> None:
    facts = [(f"d{number}", "directed by", f"p{number}") for number in range(5)]
    graph = KnowledgeGraph.from_triples(facts, labels={head: "Dune" for head, _, _ in facts})
    *answers, _ = KGRetriever.from_index(GraphIndex.build(graph)).invoke("Who directed Dune?")
    assert len(answers) == 3
    assert all(one.metadata["truncated"] for one in answers)
