"""What the zero-shot generator makes of questions about graphs that it never saw."""

from __future__ import annotations

import random

import pytest

from kg_retrievers import GraphIndex, KnowledgeGraph, SimGRAGRetriever, default_embeddings
from kg_retrievers.errors import EntityLinkingError, LowConfidenceError
from kg_retrievers.graph import Known, Pattern
from kg_retrievers.patterns.zero_shot import ZeroShotPatternGenerator

FACTS = [
    ("Ann Lee", "reports_to", "Bob Hill"),
    ("Bob Hill", "reports_to", "Cleo Marsh"),
    ("Ann Lee", "works_in", "Radiology"),
    ("Bob Hill", "works_in", "Radiology"),
    ("Dan Wood", "works_in", "Surgery"),
    ("Ann Lee", "born_in", "Leeds"),
    ("Ann Lee", "date_of_birth", "1987-03-02"),
    ("Leeds", "located_in", "England"),
    ("Radiology", "part_of", "Northgate Hospital"),
    ("Northgate Hospital", "founded_in", "1921"),
    ("Ann Lee", "speaks", "French"),
    ("Dan Wood", "speaks", "French"),
    ("Cleo Marsh", "speaks", "Dutch"),
    ("Bob Hill", "speaks", "Dutch"),
]


def index_of(facts: list[tuple[str, str, str]]) -> GraphIndex:
    """Index facts with the default embeddings."""
    return GraphIndex.build(KnowledgeGraph.from_triples(facts), default_embeddings())


@pytest.fixture(scope="module")
def index() -> GraphIndex:
    """A hospital."""
    return index_of(FACTS)


def answers(index: GraphIndex, question: str) -> list[str]:
    """Return the answers of the default retriever, whatever its confidence."""
    documents = SimGRAGRetriever.from_index(index, min_confidence=0).invoke(question)
    return sorted(documents[0].metadata["answers"])


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who does Bob Hill report to?", ["Cleo Marsh"]),
        ("Who reports to Bob Hill?", ["Ann Lee"]),
        ("When was Ann Lee born?", ["1987-03-02"]),
        ("Where was Ann Lee born?", ["Leeds"]),
        ("Which languages does Cleo Marsh speak?", ["Dutch"]),
        ("who works in surgery", ["Dan Wood"]),
        ("Who works in Radiology and speaks Dutch?", ["Bob Hill"]),
        ("When was Northgate Hospital established?", ["1921"]),
    ],
)
def test_answers_what_is_asked(index: GraphIndex, question: str, expected: list[str]) -> None:
    assert answers(index, question) == expected


def test_order_of_facts_decides_nothing(index: GraphIndex) -> None:
    shuffled = FACTS.copy()
    random.Random(1).shuffle(shuffled)
    other = index_of(shuffled)
    for question in ("Where was Ann Lee born?", "Who reports to Bob Hill?", "What is Radiology part of?"):
        assert answers(other, question) == answers(index, question)


def test_pattern_says_how_sure_it_is(index: GraphIndex) -> None:
    pattern = ZeroShotPatternGenerator(index).invoke({"question": "Who reports to Bob Hill?"})
    assert pattern.source == "zero-shot"
    assert pattern.directed is True
    assert pattern.confidence is not None
    assert 0 <= pattern.confidence <= 1
    assert pattern.nearest[0] == "reports_to"
    assert pattern.unplaced == ()


def test_unknown_relation_is_less_sure_and_named(index: GraphIndex) -> None:
    generator = ZeroShotPatternGenerator(index)
    sure = generator.invoke({"question": "Who reports to Bob Hill?"})
    unsure = generator.invoke({"question": "What is the shoe size of Bob Hill?"})
    assert unsure.confidence < sure.confidence
    assert "shoe" in unsure.unplaced


def test_question_beyond_the_graph_is_refused(index: GraphIndex) -> None:
    retriever = SimGRAGRetriever.from_index(index, on_refusal="raise")
    with pytest.raises(LowConfidenceError) as refusal:
        retriever.invoke("What is the shoe size of Bob Hill?")
    assert "shoe" in refusal.value.unplaced
    assert refusal.value.nearest


def test_claim_is_the_fact_that_joins_its_entities(index: GraphIndex) -> None:
    pattern = ZeroShotPatternGenerator(index).invoke({"question": "Ann Lee is supervised by Bob Hill."})
    ann, bob = (Known(name, entity=name) for name in ("Ann Lee", "Bob Hill"))
    assert pattern == Pattern.of((ann, "reports_to", bob), directed=True)


def test_question_without_an_entity_is_refused(index: GraphIndex) -> None:
    with pytest.raises(EntityLinkingError):
        ZeroShotPatternGenerator(index).invoke({"question": "Why is the sky blue?"})


def test_same_question_same_pattern(index: GraphIndex) -> None:
    question = {"question": "Where was the subordinate of Bob Hill born?"}
    first = ZeroShotPatternGenerator(index).invoke(question)
    assert ZeroShotPatternGenerator(index_of(FACTS)).invoke(question).to_dict() == first.to_dict()
