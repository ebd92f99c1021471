"""What refusals say to do next, by the language of the question."""

from __future__ import annotations

import pytest

from kg_retrievers import GraphIndex, KnowledgeGraph, SimGRAGRetriever, default_embeddings
from kg_retrievers.errors import EntityLinkingError, LowConfidenceError
from kg_retrievers.index.hints import ANOTHER_LANGUAGE, REPHRASE, hints_for, looks_foreign, tell_language

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
        "Who publishes Der Spiegel and Le Monde?",
        "When was Was ist los made?",
        "Is Der Spiegel from Germany?",
        "Where does La La Land play?",
        "Which actors star in Il Postino, Das Boot and El Norte?",
        "How long is Los Olvidados?",
        "2021",
    ],
)
def test_english(question: str) -> None:
    assert not looks_foreign(question)
    assert hints_for(question, REPHRASE) == REPHRASE


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("Wer leitet Team Ruby?", "German"),
        ("Welche Filme hat Spike Jonze gedreht?", "German"),
        ("Quels films a réalisé Spike Jonze ?", "French"),
        ("Où se trouve le siège de Payments ?", "French"),
        ("¿Quién dirige The Matrix?", "Spanish"),
        ("¿Cuántos empleados tiene Acme?", "Spanish"),
        ("Chi ha diretto Her?", "Italian"),
        ("Qual é a sede da Acme?", "Portuguese"),
        ("Wie leidt Team Ruby?", "in another language than English"),  # "wie" is German, too
        ("Vem leder teamet?", "Scandinavian"),
        ("Кто", "in Cyrillic script"),
        ("谁领导 Payments", "Chinese"),
        ("Paymentsを率いるのは誰ですか", "Japanese"),
        ("누가 Payments를 이끄나요", "Korean"),
        ("Ποιος", "Greek"),
        ("कौन", "in Devanagari script"),
        ("من يقود Payments؟", "in Arabic script"),
    ],
)
def test_other_languages(question: str, language: str) -> None:
    assert looks_foreign(question)
    assert tell_language(question) == f"The question seems to be {language}."
    hints = hints_for(question, REPHRASE)
    assert all(hints[name].endswith(hint) for name, hint in ANOTHER_LANGUAGE.items())
    assert hints["hint_agent"].endswith("Ask in English, with the names as they are.")


@pytest.mark.parametrize("name", ["Was ist los", "La La Land", "Der Spiegel", "七人の侍", "El Norte"])
@pytest.mark.parametrize("question", ["{} budget", "the revenue of {}", "Is {} expensive?"])
def test_the_name_of_an_entity_is_no_sign_of_a_language(name: str, question: str) -> None:
    graph = KnowledgeGraph.from_triples([(name, "made_by", "Ann Miller"), ("Ann Miller", "born_in", "Oslo")])
    retriever = SimGRAGRetriever.from_index(GraphIndex.build(graph, default_embeddings()), on_refusal="raise")
    with pytest.raises(LowConfidenceError) as refusal:
        retriever.invoke(question.format(name))
    assert "seems to be" not in str(refusal.value)


def test_a_refusal_says_what_to_do_about_the_language(retriever: SimGRAGRetriever) -> None:
    for question, kind in (("Wer leitet Team Ruby?", LowConfidenceError), ("Quien dirige todo?", EntityLinkingError)):
        with pytest.raises(kind, match=r"Only English is understood by default: .* llm=") as refusal:
            retriever.invoke(question)
        assert "The question seems to be" in str(refusal.value)
        assert "--llm" in refusal.value.on_shell
        assert "--embeddings local:MODEL" in refusal.value.on_shell


def test_a_text_that_names_nothing_says_what_to_ask(retriever: SimGRAGRetriever) -> None:
    with pytest.raises(EntityLinkingError, match=r"Ask about an entity of the graph .* generate_questions") as refusal:
        retriever.invoke("Hello")
    assert refusal.value.on_shell.endswith("kg-retrievers questions GRAPH --output FILE")
