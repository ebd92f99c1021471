"""Questions whose words are hardly English, and what their refusal says."""

from __future__ import annotations

import pytest

from kg_retrievers import GraphIndex, KnowledgeGraph, SimGRAGRetriever, default_embeddings
from kg_retrievers.errors import EntityLinkingError, LowConfidenceError
from kg_retrievers.index.words import looks_english

GRAPH = KnowledgeGraph.from_triples([("Payments", "owned_by", "Team Ruby"), ("Team Ruby", "led_by", "Ann Miller")])


@pytest.fixture(scope="module")
def retriever() -> SimGRAGRetriever:
    return SimGRAGRetriever.from_index(GraphIndex.build(GRAPH, default_embeddings()), on_refusal="raise")


@pytest.mark.parametrize(
    "question",
    [
        "Hello",
        "ask me something",
        "Who invented drypoint?",
        "Which enzyme breaks down ramelodine?",
        "what salary does ann have",
        "Ann Miller manager",
        "Who mentored Elsie Munro's mentor?",
    ],
)
def test_english(question: str) -> None:
    assert looks_english(question)


@pytest.mark.parametrize(
    "question",
    [
        "Wer leitet Team Ruby?",
        "Was kostet das Produkt?",
        "Quels films a réalisé Spike Jonze ?",
        "Chi ha diretto Her?",
        "¿Quién dirige The Matrix?",
        "Vem leder teamet?",
        "Кто",
        "谁领导 Payments",
    ],
)
def test_other_languages(question: str) -> None:
    assert not looks_english(question)


def test_a_refusal_says_what_to_do_about_the_language(retriever: SimGRAGRetriever) -> None:
    for question, kind in (("Wer leitet Team Ruby?", LowConfidenceError), ("Quien dirige todo?", EntityLinkingError)):
        with pytest.raises(kind, match=r"Only English is understood by default: .* llm=") as refusal:
            retriever.invoke(question)
        assert "--llm" in refusal.value.on_shell
        assert "--embeddings local:MODEL" in refusal.value.on_shell


def test_a_text_that_names_nothing_says_what_to_ask(retriever: SimGRAGRetriever) -> None:
    with pytest.raises(EntityLinkingError, match=r"Ask about an entity of the graph .* generate_questions") as refusal:
        retriever.invoke("Hello")
    assert refusal.value.on_shell.endswith("kg-retrievers questions GRAPH --output FILE")
    with pytest.raises(EntityLinkingError, match=r"Did you mean: 'Payments'\?$"):
        retriever.invoke("Who owns Payyymentts?")
