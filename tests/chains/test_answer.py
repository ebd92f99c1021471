"""From evidence to an answer: extractive, by a language model, and as a chain from the question."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda

from kg_retrievers import ExtractiveAnswerer, GraphIndex, HashedEmbeddings, SimGRAGRetriever, answer_chain
from kg_retrievers.chains import NO_ANSWER, NOT_UNDERSTOOD, llm_answerer, show_evidence
from kg_retrievers.core.replies import NO_TARGET, plain_answers
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Evidence, Pattern, Triple, Unknown, verbalize
from kg_retrievers.graph.verbalize import Style
from kg_retrievers.testing import ScriptedChatModel, tiny_graph

QUESTION = "Who starred in Amélie?"
ANSWER = "Audrey Tautou; Mathieu Kassovitz; Dominique Pinon"
UNKNOWN = "Who directed Davd Lunch?"
REFUSAL = (
    f"{NOT_UNDERSTOOD} No entity of the graph was found in 'Who directed Davd Lunch?'. Did you mean: 'David Lynch'?"
)
SHORT = PromptTemplate.from_template("{question}\n{evidence}")


@pytest.fixture(scope="module")
def retriever() -> SimGRAGRetriever:
    index = GraphIndex.build(tiny_graph(), HashedEmbeddings())
    return SimGRAGRetriever.from_index(index, on_refusal="empty", answer_prompt=SHORT)


def document(text: str, *answers: str, **labels: str) -> Document:
    metadata = {"answers": list(answers), "labels": {**{key: key for key in answers}, **labels}}
    return Document(text, metadata=metadata)


@pytest.mark.parametrize(
    ("documents", "answer"),
    [
        ([], NO_ANSWER),
        ([document("facts")], NO_TARGET),
        ([document("", "Her")], "Her"),
        ([document("", "Q1", "Q2", Q1="Dune", Q2="Arrival")], "Dune; Arrival"),
        ([document("", "Q1", "Q2", Q1="Dune", Q2="Dune")], "Dune"),
        ([document("", "Her"), document("", "Dune")], "Her"),
        ([document(""), document("", "Dune")], NO_TARGET),
    ],
    ids=["nothing", "no answers", "one", "two", "one label", "best group only", "best group is silent"],
)
async def test_extractive(documents: list[Document], answer: str) -> None:
    value: Any = {"question": QUESTION, "documents": documents}
    assert ExtractiveAnswerer().invoke(value) == answer
    assert await ExtractiveAnswerer().ainvoke(value) == answer


def everything(retriever: SimGRAGRetriever, **fields: Any) -> Document:
    """All facts of the graph as one Document."""
    (found,) = retriever.model_copy(update=fields).documents_from([Evidence(tuple(retriever.graph.triples()), 1.0)], 1)
    return found


@pytest.mark.parametrize("style", ["triples", "grouped", "tables", "paths"])
def test_documents_are_written_and_cut_in_the_style_of_their_retriever(
    retriever: SimGRAGRetriever, style: Style
) -> None:
    found, grouped = everything(retriever, style=style), everything(retriever)
    facts, label = [Triple(*triple) for triple in found.metadata["triples"]], retriever.graph.label
    assert found.page_content == verbalize(facts, style=style, label=label).text
    assert (found.metadata, found.id) == (grouped.metadata | {"style": style}, grouped.id)
    assert show_evidence([found]).text == f"[1]\n{found.page_content}"
    cut = verbalize(facts[:5], style=style, label=label).text
    cut = f"[1]\n{cut}\n\n({len(facts) - 5} more facts left out)"
    assert show_evidence([found], max_tokens=len(cut), count_tokens=len).text == cut
    assert show_evidence([found], "numbered") == show_evidence([grouped], "numbered")


PATHS = [
    Triple("Her", "directed_by", "Jonze"),
    Triple("Adaptation", "directed_by", "Jonze"),
    Triple("Her", "in", "the year two thousand and thirteen"),
]
ROWS = [["Her", [0, 1]], ["Her", [2]]]


def test_a_budget_cuts_between_paths(retriever: SimGRAGRetriever) -> None:
    evidence = Evidence(tuple(PATHS), 1.0, details={"paths": ROWS})
    (found,) = retriever.model_copy(update={"style": "paths"}).documents_from([evidence], 1)
    lines = [
        "Her -> directed by -> Jonze <- directed by <- Adaptation",
        "Her -> in -> the year two thousand and thirteen",
    ]
    assert found.page_content == "\n".join(lines)
    for cut in (
        f"[1]\n{lines[0]}\n\n(1 more fact left out)",
        "[1]\nHer -> directed by -> Jonze\n\n(2 more facts left out)",
    ):
        assert show_evidence([found], max_tokens=len(cut), count_tokens=len).text == cut


@pytest.mark.parametrize(
    "details", [None, {}, {"paths": None}, {"paths": 3}, {"paths": [["Her", [9, "x"]], 7]}], ids=str
)
def test_paths_that_are_none_are_not_shown(details: Any) -> None:
    """A person may have edited them."""
    labels = {key: key for triple in PATHS for key in triple}
    metadata = {"triples": [list(triple) for triple in PATHS], "labels": labels, "style": "paths", "details": details}
    text = "[1]\nHer -> directed by -> Jonze\n\n(2 more facts left out)"
    assert show_evidence([Document("?" * 999, metadata=metadata)], max_tokens=len(text), count_tokens=len).text == text


def test_documents_without_a_style_are_cut_to_groups(retriever: SimGRAGRetriever) -> None:
    found = everything(retriever)
    cut = show_evidence([found], max_tokens=50)
    del found.metadata["style"]
    assert show_evidence([found], max_tokens=50) == cut


def test_a_style_that_is_unknown_is_refused(retriever: SimGRAGRetriever) -> None:
    found = everything(retriever)
    found.metadata["style"] = "prose"
    with pytest.raises(InvalidArgumentError, match=r"style must be .* got 'prose'"):
        show_evidence([found], max_tokens=50)


def test_evidence_is_numbered() -> None:
    assert show_evidence([]).text == ""
    assert show_evidence([document("a\nb"), document("{c}")]).text == "[1]\na\nb\n\n[2]\n{c}"


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_llm(asynchronous: bool) -> None:
    llm = ScriptedChatModel(replies=["Spike Jonze."])
    answerer = llm_answerer(SHORT, llm)
    value: Any = {"question": "Who {made} Her?", "documents": [document("Her -> directed by -> Spike Jonze")]}
    assert (await answerer.ainvoke(value) if asynchronous else answerer.invoke(value)) == "Spike Jonze."
    (messages,) = llm.prompts
    assert messages[0].text == "Who {made} Her?\n[1]\nHer -> directed by -> Spike Jonze"


@pytest.mark.parametrize("template", ["{question}", "{question} {evidence} {tone}", "{question} {context}"])
def test_prompt_with_other_placeholders_is_refused(template: str) -> None:
    with pytest.raises(InvalidArgumentError, match="llm_answerer: prompt"):
        llm_answerer(PromptTemplate.from_template(template), ScriptedChatModel(replies=[]))


async def test_chain_without_a_model(retriever: SimGRAGRetriever) -> None:
    chain = answer_chain(retriever)
    assert chain.invoke(QUESTION) == ANSWER
    assert await chain.ainvoke(QUESTION) == ANSWER
    assert chain.batch([QUESTION, UNKNOWN]) == [ANSWER, REFUSAL]
    assert await chain.abatch(["Who directed 千と千尋の神隠し?"]) == ["宮崎駿"]
    assert list(chain.stream(QUESTION)) == [ANSWER]


async def test_chain_streams(retriever: SimGRAGRetriever) -> None:
    plain = retriever.model_copy(update={"parse_answers": plain_answers})
    chain = answer_chain(plain, ScriptedChatModel(replies=["one two three", "four five"]))
    assert [part for part in chain.stream(QUESTION) if part] == ["one", " two", " three"]
    assert [part async for part in chain.astream(QUESTION) if part] == ["four", " five"]
    assert list(chain.stream(UNKNOWN)) == [REFUSAL]


async def test_answers_that_are_read_come_in_one_chunk(retriever: SimGRAGRetriever) -> None:
    chain = answer_chain(retriever, ScriptedChatModel(replies=["Two [1].\nAnswer: one; two"] * 2))
    assert list(chain.stream(QUESTION)) == [part async for part in chain.astream(QUESTION)] == ["one; two"]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("They act in it [1].\nAnswer: Audrey Tautou; Dominique Pinon", "Audrey Tautou; Dominique Pinon"),
        ("<think>Answer: nobody</think>Answer: Audrey Tautou", "Audrey Tautou"),
        ("Audrey Tautou.", "Audrey Tautou."),
        ("No fact tells it.\nAnswer: The evidence does not say.", NO_ANSWER),
        ("", NO_ANSWER),
    ],
)
async def test_the_answers_of_a_reply_are_read(
    retriever: SimGRAGRetriever, reply: str, answer: str, asynchronous: bool
) -> None:
    chain = answer_chain(retriever, ScriptedChatModel(replies=[reply]))
    assert (await chain.ainvoke(QUESTION) if asynchronous else chain.invoke(QUESTION)) == answer


def test_what_cannot_read_answers_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="parse_answers must be a function"):
        llm_answerer(SHORT, ScriptedChatModel(replies=[]), "ans:")  # type: ignore[arg-type]


@pytest.mark.parametrize("on_refusal", ["empty", "raise"])
@pytest.mark.parametrize("model", [False, True], ids=["extractive", "model"])
async def test_a_refusal_is_answered_with_its_reason(retriever: SimGRAGRetriever, on_refusal: str, model: bool) -> None:
    refusing = retriever.model_copy(update={"on_refusal": on_refusal})
    llm = ScriptedChatModel(replies=[])
    chain = answer_chain(refusing, llm if model else None)
    assert chain.invoke(UNKNOWN) == await chain.ainvoke(UNKNOWN) == REFUSAL
    assert llm.prompts == []
    pattern = Pattern.of(("Ameliee", "starring", Unknown("actor")), target="actor")
    misspelt = {"max_distance": 0.01, "pattern_generator": RunnableLambda(lambda _: pattern)}
    far = refusing.model_copy(update=misspelt)
    nothing = "SimGRAGRetriever: nothing in the graph fits the question 'Who stared in Ameliee?', "
    nothing += "read as: Ameliee -> starring -> ?actor."
    assert answer_chain(far).invoke("Who stared in Ameliee?") == f"{NO_ANSWER} {nothing}"


async def test_everything_is_traced(retriever: SimGRAGRetriever) -> None:
    chain = answer_chain(retriever, ScriptedChatModel(replies=["one two"]))
    events = [event async for event in chain.astream_events(QUESTION, version="v2")]
    root = events[0]["run_id"]
    started = {event["name"]: event["parent_ids"] for event in events if event["event"].endswith("_start")}
    assert {"SimGRAGRetriever", "llm_answerer", "ScriptedChatModel"} <= set(started)
    assert all(parents[:1] == [root] for name, parents in started.items() if parents)
    tokens = [event["data"]["chunk"] for event in events if event["event"] == "on_chat_model_stream"]
    assert [token.text for token in tokens if isinstance(token, BaseMessage) and token.text] == ["one", " two"]
