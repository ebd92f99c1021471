"""Answers and verdicts with citations: numbers are mapped back to triples, and what was not shown is rejected."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda

from kg_retrievers import (
    GraphIndex,
    HashedEmbeddings,
    SimGRAGRetriever,
    answer_chain,
    cited_answer_chain,
    fact_verification_chain,
)
from kg_retrievers.chains import (
    NOT_UNDERSTOOD,
    AnswerInput,
    ExtractiveCitedAnswerer,
    FactVerifier,
    LLMCitedAnswerer,
    show_evidence,
)
from kg_retrievers.chains.prompts import AnswerReply, VerdictReply
from kg_retrievers.core.replies import parse_object
from kg_retrievers.errors import AnswerParseError, InvalidArgumentError, RefusalError
from kg_retrievers.graph.verbalize import approximate_tokens
from kg_retrievers.testing import ScriptedChatModel, tiny_graph

QUESTION = "Who starred in Amélie?"
CAST = ["Audrey Tautou", "Mathieu Kassovitz", "Dominique Pinon"]
TRIPLES = [["Amélie", "starring", name] for name in CAST]


@pytest.fixture(scope="module")
def retriever() -> SimGRAGRetriever:
    return SimGRAGRetriever.from_index(GraphIndex.build(tiny_graph(), HashedEmbeddings()), on_refusal="empty")


def document(*triples: tuple[str, str, str], text: str = "", answers: tuple[str, ...] = (), **labels: str) -> Document:
    keys = {key: key for head, _, tail in triples for key in (head, tail)} | {key: key for key in answers}
    metadata = {"triples": [list(triple) for triple in triples], "labels": keys | labels, "answers": list(answers)}
    return Document(text, metadata=metadata)


def reply(*citations: Any, answers: Any = ("Audrey Tautou",), explanation: str = "So it says.") -> str:
    return json.dumps({"explanation": explanation, "answers": answers, "citations": list(citations)})


def verdict(word: str, *citations: Any) -> str:
    return json.dumps({"explanation": "So it says.", "verdict": word, "citations": list(citations)})


# --- what is shown ----------------------------------------------------------------------------------------------------


def test_numbered_evidence_shows_each_triple_once_under_its_label() -> None:
    documents = [
        document(("Q1", "directed_by", "Q2"), ("Q1", "genre", "Drama"), Q1="Her", Q2="Spike Jonze"),
        document(("Q1", "directed_by", "Q2"), ("Q3", "directed_by", "Q2"), Q1="Her", Q2="Spike Jonze", Q3="Adaptation"),
    ]
    shown = show_evidence(documents, "numbered")
    assert shown.text.splitlines() == [
        "[1] Her -> directed by -> Spike Jonze",
        "[2] Her -> genre -> Drama",
        "[3] Adaptation -> directed by -> Spike Jonze",
    ]
    assert shown.citable == [["Q1", "directed_by", "Q2"], ["Q1", "genre", "Drama"], ["Q3", "directed_by", "Q2"]]


names = st.text(min_size=1, max_size=30)
facts = st.lists(st.lists(st.tuples(names, names, names), min_size=1, max_size=4), min_size=1, max_size=4)


@given(facts, st.integers(1, 200), st.sampled_from(["documents", "numbered"]))
def test_the_budget_holds(groups: list[list[tuple[str, str, str]]], budget: int, style: Any) -> None:
    documents = [document(*dict.fromkeys(group), text="; ".join(map(" ".join, group))) for group in groups]
    try:
        shown = show_evidence(documents, style, max_tokens=budget)
    except InvalidArgumentError:
        # not even the first triple fits, with the line that tells what was left out
        one = show_evidence([document(groups[0][0])], "numbered").text
        more = sum(len(group) for group in groups) - 1
        assert approximate_tokens(f"{one}\n\n({more} more facts left out)") > budget - 3
    else:
        assert approximate_tokens(shown.text) <= budget
        everything = show_evidence(documents, style)
        assert shown.citable == everything.citable[: len(shown.citable)]
        if shown.text != everything.text:
            assert "left out)" in shown.text
        if style == "numbered":  # a line is a fact: none is cut
            lines = shown.text.split("\n")
            assert lines[: len(shown.citable)] == everything.text.split("\n")[: len(shown.citable)]


def test_documents_are_cut_at_a_triple() -> None:
    first, second = "first " * 20, "second " * 20
    two = [document(("A", "r", "B"), ("A", "r", "C"), text=first), document(("D", "r", "E"), text=second)]
    shown = {budget: show_evidence(two, max_tokens=budget, count_tokens=len).text for budget in (300, 280, 150, 41, 40)}
    assert shown == {
        300: f"[1]\n{first}\n\n[2]\n{second}",
        280: f"[1]\n{first}\n\n[2]\n{second}",
        150: f"[1]\n{first}\n\n(1 more fact left out)",
        41: "[1]\nA -> r -> B\n\n(2 more facts left out)",
        40: "[1]\nA -> r -> B\n\n(2 more facts left out)",
    }
    with pytest.raises(InvalidArgumentError, match="max_tokens=39 has no room"):
        show_evidence(two, max_tokens=39, count_tokens=len)


def test_unknown_style_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="style"):
        show_evidence([], "table")  # type: ignore[arg-type]


async def test_chains_keep_to_the_budget(retriever: SimGRAGRetriever) -> None:
    llm = ScriptedChatModel(replies=["Audrey Tautou.", reply(1), reply(2)])
    prompt = PromptTemplate.from_template("{question}|{evidence}")
    short = retriever.model_copy(update={"answer_prompt": prompt})
    answer_chain(short, llm, max_tokens=17, count_tokens=lambda text: -(-len(text) // 4)).invoke(QUESTION)
    evidence = llm.prompts[0][0].text.split("|")[1]
    assert evidence == "[1]\nAmélie -> starring -> Audrey Tautou\n\n(2 more facts left out)"
    citing = LLMCitedAnswerer(llm, prompt=prompt)
    got = cited_answer_chain(retriever, citing, max_tokens=24).invoke(QUESTION)
    assert llm.prompts[1][0].text.endswith("|[1] Amélie -> starring -> Audrey Tautou\n(2 more facts left out)")
    assert [citation["triple"] for citation in got["citations"]] == TRIPLES[:1]
    # the second fact exists, but was not shown
    got = await cited_answer_chain(retriever, citing, max_tokens=24).ainvoke(QUESTION)
    assert got["citations"] == []
    assert got["rejected_citations"] == 1
    with pytest.raises(InvalidArgumentError, match="max_tokens=3 has no room"):
        cited_answer_chain(retriever, llm, max_tokens=3).invoke(QUESTION)


# --- reading replies --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "answers", "citations"),
    [
        (reply(1, 2), ["Audrey Tautou"], [1, 2]),
        (reply("[3]", "2"), ["Audrey Tautou"], [3, 2]),
        (reply(answers="One"), ["One"], []),
        (reply(answers=None), [], []),
        (reply(answers=["", " "]), [], []),
        (reply(answers=[1999, "x"]), ["1999", "x"], []),
        ('{"explanation": "", "answers": [], "citations": 4}', [], [4]),
    ],
)
def test_replies_that_are_read(text: str, answers: list[str], citations: list[int]) -> None:
    got = parse_object(text, AnswerReply)
    assert (got.answers, got.citations) == (answers, citations)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"answers": ["x"]}', "explanation"),
        (reply("one"), "citations"),
        (reply(True), "citations"),
        (reply(1, answers=[{"name": "x"}]), "answers"),
    ],
)
def test_replies_that_are_refused(text: str, reason: str) -> None:
    with pytest.raises(AnswerParseError, match=reason) as caught:
        parse_object(text, AnswerReply)
    assert caught.value.reply == text


@pytest.mark.parametrize(
    ("word", "read"),
    [
        ("supported", "supported"),
        ("SUPPORTED.", "supported"),
        ("True", "supported"),
        ("false", "refuted"),
        ("NOT_ENOUGH_EVIDENCE", "not enough evidence"),
        ("not enough info", "not enough evidence"),
    ],
)
def test_words_for_verdicts(word: str, read: str) -> None:
    assert parse_object(verdict(word), VerdictReply).verdict == read
    with pytest.raises(AnswerParseError, match="verdict"):
        parse_object(verdict("perhaps"), VerdictReply)


# --- cited answers ----------------------------------------------------------------------------------------------------


async def test_without_a_model_the_best_evidence_is_cited(retriever: SimGRAGRetriever) -> None:
    chain = cited_answer_chain(retriever)
    got = chain.invoke(QUESTION)
    assert got == await chain.ainvoke(QUESTION)
    assert got["answers"] == CAST
    assert got["answer"] == "; ".join(CAST)
    assert [citation["triple"] for citation in got["citations"]] == TRIPLES
    assert got["citations"][1] == {"number": 2, "triple": TRIPLES[1], "text": "Amélie -> starring -> Mathieu Kassovitz"}
    assert json.loads(json.dumps(got)) == got


def test_only_facts_of_the_best_evidence_are_cited_without_a_model() -> None:
    best = document(("Her", "directed_by", "Spike Jonze"), answers=("Spike Jonze",))
    other = document(("Dune", "directed_by", "David Lynch"), answers=("David Lynch",))
    got = ExtractiveCitedAnswerer().invoke({"question": "?", "documents": [best, other]})
    assert [citation["number"] for citation in got["citations"]] == [1]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_citations_are_mapped_back(retriever: SimGRAGRetriever, asynchronous: bool) -> None:
    said = reply(2, 1, 2, 9, 0, explanation="As [1] and [9] say.", answers=["Mathieu Kassovitz", "Audrey Tautou"])
    chain = cited_answer_chain(retriever, ScriptedChatModel(replies=[said]))
    got = await chain.ainvoke(QUESTION) if asynchronous else chain.invoke(QUESTION)
    assert [(citation["number"], citation["triple"]) for citation in got["citations"]] == [
        (2, TRIPLES[1]),
        (1, TRIPLES[0]),
    ]
    assert got["rejected_citations"] == 2  # 9 and 0
    assert got["explanation"] == "As [1] and say."
    assert got["answer"] == "Mathieu Kassovitz; Audrey Tautou"


async def test_one_repair_then_the_evidence_answers_with_the_reason(retriever: SimGRAGRetriever) -> None:
    llm = ScriptedChatModel(replies=["Audrey {Tautou}, I think.", reply(1)])
    assert cited_answer_chain(retriever, llm).invoke(QUESTION)["citations"][0]["triple"] == TRIPLES[0]
    first, second = (messages[0].text for messages in llm.prompts)
    assert "[3] Amélie -> starring -> Dominique Pinon" in first
    assert "Audrey {Tautou}, I think." in second
    assert "no complete JSON object" in second
    assert "[3] Amélie -> starring -> Dominique Pinon" in second
    said = cited_answer_chain(retriever).invoke(QUESTION)
    llm = ScriptedChatModel(replies=["garbage", "more garbage"] * 2)
    chain = cited_answer_chain(retriever, llm)
    got = chain.invoke(QUESTION)
    assert got == await chain.ainvoke(QUESTION)
    assert got["explanation"].startswith(said["explanation"])
    assert "The reply was: 'more garbage'" in got["explanation"]
    assert {**got, "explanation": ""} == {**said, "explanation": ""}
    assert len(llm.prompts) == 4


async def test_a_verdict_that_cannot_be_read_is_none_unless_an_operation_told_it(retriever: SimGRAGRetriever) -> None:
    for otherwise in ("not enough evidence", "refuted"):
        verifier = FactVerifier(ScriptedChatModel(replies=["garbage"] * 4), otherwise=otherwise)  # type: ignore[arg-type]
        chain = fact_verification_chain(retriever, verifier)
        got = chain.invoke(QUESTION)
        assert got == await chain.ainvoke(QUESTION)
        assert (got["verdict"], got["citations"]) == (otherwise, [])
        assert "The reply was: 'garbage'" in got["explanation"]
    claim = "Did Audrey Tautou star in Amélie?"
    got = fact_verification_chain(retriever, ScriptedChatModel(replies=["garbage"] * 2)).invoke(claim)
    assert (got["verdict"], got["value"]) == ("supported", True)
    assert [one["triple"] for one in got["citations"]] == [TRIPLES[0]]


async def test_an_unreadable_reply_is_a_typed_refusal_if_refusals_raise(retriever: SimGRAGRetriever) -> None:
    strict = retriever.with_fields({"on_refusal": "raise"})
    for chain in (cited_answer_chain, fact_verification_chain):
        built: Any = chain(strict, ScriptedChatModel(replies=["garbage"] * 4))
        with pytest.raises(AnswerParseError, match="garbage") as caught:
            built.invoke(QUESTION)
        assert isinstance(caught.value, RefusalError)
        with pytest.raises(AnswerParseError):
            await built.ainvoke(QUESTION)


async def test_no_model_is_called_without_evidence(retriever: SimGRAGRetriever) -> None:
    llm = ScriptedChatModel(replies=[])
    nothing = "Who directed Davd Lunch?"
    reason = "No entity of the graph was found in 'Who directed Davd Lunch?'. Did you mean: 'David Lynch'"
    for on_refusal in ("empty", "raise"):
        refusing = retriever.model_copy(update={"on_refusal": on_refusal})
        got = cited_answer_chain(refusing, llm).invoke(nothing)
        assert got == await cited_answer_chain(refusing).ainvoke(nothing)
        assert (got["answer"], got["answers"], got["citations"]) == (NOT_UNDERSTOOD, [], [])
        assert got["explanation"].startswith(reason)
        verdict = fact_verification_chain(refusing, llm).invoke(nothing)
        assert verdict == await fact_verification_chain(refusing, llm).ainvoke(nothing)
        assert (verdict["verdict"], verdict["citations"]) == ("not enough evidence", [])
        assert verdict["explanation"] == got["explanation"]
    assert llm.prompts == []


async def test_a_model_that_raises_raises(retriever: SimGRAGRetriever) -> None:
    llm = ScriptedChatModel(replies=[TimeoutError("late")] * 4)
    for chain in (cited_answer_chain(retriever, llm), fact_verification_chain(retriever, llm)):
        with pytest.raises(TimeoutError, match="late"):
            chain.invoke(QUESTION)
        with pytest.raises(TimeoutError, match="late"):
            await chain.ainvoke(QUESTION)


def test_any_answerer_that_cites(retriever: SimGRAGRetriever) -> None:
    def cite_last(value: AnswerInput) -> dict[str, Any]:
        assert value["evidence"].startswith("[1] Amélie")
        last = value["citable"][-1]
        invented = {"number": 1, "triple": ["Her", "directed_by", "Nobody"], "text": "Nobody directed Her"}
        own = {"number": 77, "triple": tuple(last), "text": "something else"}
        return {"answers": [f"{last[2]} [3, 99]"], "citations": [invented, own], "explanation": "See [1-2], [98-99]."}

    got: Any = cited_answer_chain(retriever, RunnableLambda(cite_last)).invoke(QUESTION)
    assert got["answers"] == ["Dominique Pinon [3]"]
    assert got["citations"] == [{"number": 3, "triple": TRIPLES[2], "text": "Amélie -> starring -> Dominique Pinon"}]
    assert got["explanation"] == "See [1-2],."
    assert got["rejected_citations"] == 3  # one invented; 98 and 99
    text: Any = cited_answer_chain(retriever, RunnableLambda(lambda value: "Tautou [1], as [99] says.")).invoke(
        QUESTION
    )
    assert (text["answer"], text["answers"]) == ("Tautou [1], as says.", ["Tautou [1], as says."])
    assert [citation["triple"] for citation in text["citations"]] == TRIPLES[:1]
    bare = RunnableLambda(lambda value: {"answer": "All of them [1, 96].", "answers": [], "citations": []})
    unlisted: Any = cited_answer_chain(retriever, bare).invoke(QUESTION)  # type: ignore[arg-type]
    assert (unlisted["answer"], unlisted["rejected_citations"]) == ("All of them [1].", 1)
    wrong: Any
    for wrong in (3, {"answers": ["x"]}, {"answers": ["x"], "citations": [1]}):
        with pytest.raises(InvalidArgumentError, match="an answerer gives a text or a CitedAnswer"):
            cited_answer_chain(retriever, RunnableLambda(lambda value, wrong=wrong: wrong)).invoke(QUESTION)


def test_what_stands_in_brackets_in_a_name_is_no_mark() -> None:
    """Evidence and answers show it in parentheses."""
    shown = show_evidence([document(("Dune [1984]", "directed_by", "David Lynch"))], "numbered")
    assert shown.read_marks("Dune [1984] is of [1] and [1985].") == ("Dune (1984) is of [1] and.", [1], [1985])


@pytest.mark.parametrize("model", ["openai:gpt-4.1-mini", 3])
def test_the_name_of_a_model_is_refused(retriever: SimGRAGRetriever, model: Any) -> None:
    for chain in (cited_answer_chain, answer_chain):
        with pytest.raises(InvalidArgumentError, match="load_chat_model"):
            chain(retriever, model)
    with pytest.raises(InvalidArgumentError, match="language model"):
        fact_verification_chain(retriever, model)


def test_a_text_chain_refuses_an_answerer_that_cites(retriever: SimGRAGRetriever) -> None:
    with pytest.raises(InvalidArgumentError, match="Use cited_answer_chain"):
        answer_chain(retriever, LLMCitedAnswerer(ScriptedChatModel(replies=[])))  # type: ignore[arg-type]


@pytest.mark.parametrize("chain", [answer_chain, cited_answer_chain])
def test_what_chains_refuse(retriever: SimGRAGRetriever, chain: Any) -> None:
    for arguments, message in (
        (("films.tsv",), f"{chain.__name__}: retriever must be a BaseKGRetriever"),
        ((retriever.index,), r"must be a BaseKGRetriever, .*KGRetriever\.from_file\(path\)"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            chain(*arguments)
    for options, message in (
        ({"max_tokens": "10"}, f"{chain.__name__}: max_tokens must be"),
        ({"max_tokens": -5}, f"{chain.__name__}: max_tokens must be"),
        ({"count_tokens": "words"}, "count_tokens must be callable"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            chain(retriever, **options)


def test_prompts_and_structured_output_are_checked() -> None:
    with pytest.raises(InvalidArgumentError, match=r"wanted a prompt template.*from_template"):
        LLMCitedAnswerer(ScriptedChatModel(replies=[]), prompt="{question} {evidence}")  # type: ignore[arg-type]
    llm = ScriptedChatModel(replies=[])
    with pytest.raises(InvalidArgumentError, match="LLMCitedAnswerer: prompt"):
        LLMCitedAnswerer(llm, prompt=PromptTemplate.from_template("{question}"))
    with pytest.raises(InvalidArgumentError, match="FactVerifier: prompt"):
        FactVerifier(llm, prompt=PromptTemplate.from_template("{question}"))
    with pytest.raises(InvalidArgumentError, match="no structured output"):
        LLMCitedAnswerer(llm, structured=True)


# --- verdicts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "expected", "cited"),
    [
        (verdict("supported", 1), "supported", 1),
        (verdict("refuted", 1, 2), "refuted", 2),
        (verdict("not enough evidence", 1), "not enough evidence", 1),
        (verdict("supported"), "not enough evidence", 0),
        (verdict("refuted", 77), "not enough evidence", 0),
    ],
)
async def test_verdicts(retriever: SimGRAGRetriever, said: str, expected: str, cited: int) -> None:
    surely_found = retriever.model_copy(update={"min_confidence": 0.0})
    chain = fact_verification_chain(surely_found, ScriptedChatModel(replies=[said, said]))
    claim = "Three people are starring in Amélie."
    got = chain.invoke(claim)
    assert got == await chain.ainvoke(claim)
    assert (got["verdict"], len(got["citations"])) == (expected, cited)


def test_a_claim_is_looked_up_and_shown(retriever: SimGRAGRetriever) -> None:
    llm = ScriptedChatModel(replies=[verdict("supported", 1)])
    got = fact_verification_chain(retriever, FactVerifier(llm)).invoke("Spike Jonze directed Her {really}.")
    prompt = llm.prompts[0][0].text
    assert "Claim: Spike Jonze directed Her {really}." in prompt
    assert got["citations"][0]["triple"] == ["Her", "directed_by", "Spike Jonze"]
