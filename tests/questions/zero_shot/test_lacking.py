"""What an entity lacks and others have is not answered by what comes nearest to it."""

from __future__ import annotations

import re

import pytest

from kg_retrievers import (
    CypherRetriever,
    GraphIndex,
    KnowledgeGraph,
    RelationPathRetriever,
    SimGRAGRetriever,
    default_embeddings,
)
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import LowConfidenceError, SearchBudgetError
from kg_retrievers.graph import Pattern
from kg_retrievers.questions.zero_shot.generator import ZeroShotPatternGenerator
from tests.graph_reader import GraphReader

FACTS = [
    ("Ida Brandt", "born in", "Velmark"),
    ("Ida Brandt", "birth date", "1961-04-02"),
    ("Ida Brandt", "works for", "Norrlicht"),
    ("Jon Aske", "born in", "Tessen"),
    ("Jon Aske", "works for", "Orvid"),
    ("Kaja Lund", "birth date", "1975-11-30"),
    ("Kaja Lund", "born in", "Velmark"),
    ("Kaja Lund", "married to", "Jon Aske"),
    ("Milo Rask", "birth date", "1980-01-15"),
    ("Milo Rask", "works for", "Norrlicht"),
    ("Norrlicht", "founded in", "1932"),
    ("Norrlicht", "founder", "Ida Brandt"),
    ("Norrlicht", "located in", "Velmark"),
    ("Norrlicht", "employees", "4120"),
    ("Orvid", "founder", "Kaja Lund"),
    ("Orvid", "located in", "Tessen"),
    ("Pelagor", "founded in", "1977"),
    ("Pelagor", "located in", "Tessen"),
    ("Velmark", "country", "Ostria"),
    ("Velmark", "mayor", "Jon Aske"),
    ("Tessen", "country", "Ostria"),
]


@pytest.fixture(scope="module")
def index() -> GraphIndex:
    """People, firms and towns, many of which lack a relation that others have."""
    return GraphIndex.build(KnowledgeGraph.from_triples(FACTS), default_embeddings())


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("When was Ida Brandt born?", "1961-04-02"),
        ("Where was Ida Brandt born?", "Velmark"),
        ("Where was Jon Aske born?", "Tessen"),
        ("Who does Jon Aske work for?", "Orvid"),
        ("When was Norrlicht founded?", "1932"),
        ("When was Pelagor founded?", "1977"),
        ("Who founded Norrlicht?", "Ida Brandt"),
        ("Who founded Orvid?", "Kaja Lund"),
        ("Who is the mayor of Velmark?", "Jon Aske"),
        ("In which country is Tessen?", "Ostria"),
        ("Who is Jon Aske married to?", "Kaja Lund"),
    ],
)
def test_what_an_entity_has_is_answered(index: GraphIndex, question: str, answer: str) -> None:
    (document,) = SimGRAGRetriever.from_index(index).invoke(question, on_refusal="raise")
    assert document.metadata["answers"] == [answer]


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("When was Jon Aske born?", "'Jon Aske' has no 'birth date' in this graph; it has 'born in'"),
        ("What is the date of birth of Jon Aske?", "'Jon Aske' has no 'birth date' in this graph; it has 'born in'"),
        ("Where was Milo Rask born?", "'Milo Rask' has no 'born in' in this graph; it has 'birth date'"),
        ("Who does Kaja Lund work for?", "'Kaja Lund' has no 'works for' in this graph"),
        ("Where does Kaja Lund work?", "'Kaja Lund' has no 'works for' in this graph"),
        ("When was Orvid founded?", "'Orvid' has no 'founded in' in this graph; it has 'founder'"),
        ("In which year was Orvid founded?", "'Orvid' has no 'founded in' in this graph; it has 'founder'"),
        ("Who founded Pelagor?", "'Pelagor' has no 'founder' in this graph; it has 'founded in'"),
        ("Who is the mayor of Tessen?", "'Tessen' has no 'mayor' in this graph; it has 'country'"),
        ("How many employees does Orvid have?", "'Orvid' has no 'employees' in this graph"),
    ],
)
def test_what_others_alone_have_is_refused_by_its_name(index: GraphIndex, question: str, why: str) -> None:
    with pytest.raises(LowConfidenceError, match=re.escape(why)) as refused:
        SimGRAGRetriever.from_index(index).invoke(question, on_refusal="raise")
    lacking = re.findall("'([^']+)' in this graph", why)
    assert refused.value.nearest[:1] == lacking
    assert "no relation fits" not in str(refused.value)


def test_what_leads_to_an_entity_is_named_from_there(index: GraphIndex) -> None:
    with pytest.raises(LowConfidenceError, match="no 'works for' leads to 'Pelagor' in this graph"):
        SimGRAGRetriever.from_index(index).invoke("Who works for Pelagor?", on_refusal="raise")


@pytest.mark.parametrize("retriever", [CypherRetriever, RelationPathRetriever])
def test_other_retrievers_say_it_too(index: GraphIndex, retriever: type[BaseKGRetriever]) -> None:
    with pytest.raises(LowConfidenceError, match="'Jon Aske' has no 'birth date' in this graph"):
        retriever.from_index(index).invoke("When was Jon Aske born?", on_refusal="raise")


def test_a_word_of_no_relation_is_said_to_fit_none(index: GraphIndex) -> None:
    with pytest.raises(LowConfidenceError, match="no relation fits 'salary'") as refused:
        SimGRAGRetriever.from_index(index).invoke("What is the salary of Jon Aske?", on_refusal="raise")
    assert "in this graph" not in str(refused.value)


def test_patterns_keep_what_is_lacking(index: GraphIndex) -> None:
    pattern = ZeroShotPatternGenerator(index).invoke({"question": "When was Jon Aske born?"})
    assert pattern.lacking == ("'Jon Aske' has no 'birth date' in this graph; it has 'born in'",)
    assert Pattern.from_dict(pattern.to_dict()).lacking == pattern.lacking


@pytest.mark.parametrize("retriever", [SimGRAGRetriever, RelationPathRetriever])
def test_what_was_not_fetched_is_not_said_to_be_lacking(retriever: type[BaseKGRetriever]) -> None:
    small, large = (
        GraphIndex.connect(GraphReader(KnowledgeGraph.from_triples(FACTS)), default_embeddings(), max_facts=most)
        for most in (3, 100)
    )
    question = "Who founded Norrlicht?"
    with pytest.raises(SearchBudgetError, match="'Norrlicht' has no 'founder' among the facts that were") as refused:
        retriever.from_index(small).invoke(question, on_refusal="raise")
    assert "in this graph" not in str(refused.value)
    assert "there are more facts around" in str(refused.value)
    assert "Raise max_facts" in refused.value.hint_python
    (found,) = retriever.from_index(large).invoke(question, k=1, on_refusal="raise")
    assert found.metadata["answers"] == ["Ida Brandt"]
    assert retriever.from_index(small, min_confidence=0.0).invoke(question, k=1)[0].metadata["truncated"]
    with pytest.raises(LowConfidenceError, match="'Pelagor' has no 'founder' in this graph"):
        retriever.from_index(large).invoke("Who founded Pelagor?", on_refusal="raise")


def test_facts_of_a_new_relation_may_be_what_is_lacking() -> None:
    class OfBefore(GraphReader):
        def relations(self, *, refresh: bool = False, timeout: float = 1.0) -> list[str]:
            return sorted({relation for _, relation, _ in FACTS})

    graph = KnowledgeGraph.from_triples([*FACTS, ("Jon Aske", "studied at", "Ostria University")])
    retriever = SimGRAGRetriever.from_index(GraphIndex.connect(OfBefore(graph), default_embeddings()))
    with pytest.raises(SearchBudgetError, match="'Jon Aske' has no 'birth date' among the facts") as refused:
        retriever.invoke("When was Jon Aske born?", on_refusal="raise")
    assert "new in the database, connect again" in refused.value.hint_python
