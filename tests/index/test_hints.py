"""What refusals say to do next, by the language of the question."""

from __future__ import annotations

import pytest

from kg_retrievers import GraphIndex, KnowledgeGraph, SimGRAGRetriever, default_embeddings
from kg_retrievers.errors import EntityLinkingError, LowConfidenceError
from kg_retrievers.index.hints import ANOTHER_LANGUAGE, REPHRASE, hints_for, looks_foreign

GRAPH = KnowledgeGraph.from_triples([("Payments", "owned_by", "Team Ruby"), ("Team Ruby", "led_by", "Ann Miller")])


@pytest.fixture(scope="module")
def retriever() -> SimGRAGRetriever:
    return SimGRAGRetriever.from_index(GraphIndex.build(GRAPH, default_embeddings()), on_refusal="raise")


@pytest.mark.parametrize(
    "question",
    [
        "Hello",
        "",
        "Who invented drypoint?",
        "what salary does ann have",
        "Who mentored Elsie Munro's mentor?",
        "Beyoncé discography",
        "kubernetes namespaces payments-svc",
        "WHO LEADS ACME",
        "Who directed 七人の侍?",
        "who directed la la land",
        "2021",
    ],
)
def test_english(question: str) -> None:
    assert not looks_foreign(question)
    assert hints_for(question, REPHRASE) == REPHRASE


@pytest.mark.parametrize(
    "question",
    [
        "Wer leitet Team Ruby?",
        "Welche Filme hat Spike Jonze gedreht?",
        "Quels films a réalisé Spike Jonze ?",
        "Où se trouve le siège de Payments ?",
        "¿Quién dirige The Matrix?",
        "¿Cuántos empleados tiene Acme?",
        "Chi ha diretto Her?",
        "Qual é a sede da Acme?",
        "Wie leidt Team Ruby?",
        "Vem leder teamet?",
        "Кто",
        "谁领导 Payments",
        "من يقود Payments؟",
    ],
)
def test_other_languages(question: str) -> None:
    assert looks_foreign(question)
    hints = hints_for(question, REPHRASE)
    assert all(hint.endswith(ANOTHER_LANGUAGE[name]) for name, hint in hints.items())


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
