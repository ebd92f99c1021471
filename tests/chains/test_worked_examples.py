"""Examples of a user's own in the prompts for answers and verdicts, and the paper's rule for verdicts."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from langchain_core.prompts import PromptTemplate

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, Question, SimGRAGRetriever, answer_chain
from kg_retrievers.chains import (
    FactVerifier,
    fact_verification_chain,
    llm_answerer,
    with_answer_shots,
    with_verdict_shots,
)
from kg_retrievers.chains.prompts import CITED_ANSWER_PROMPT, CLOSED_VERIFICATION_PROMPT, VERIFICATION_PROMPT
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.evaluation import evaluate
from kg_retrievers.graph import Pattern, Unknown
from kg_retrievers.graph.operations import Operation
from kg_retrievers.testing import ScriptedChatModel

FACTS = [(f"Film {number}", "directed_by", f"Person {number}") for number in range(14)]
INDEX = GraphIndex.build(KnowledgeGraph.from_triples(FACTS), HashedEmbeddings())
QUESTIONS = [
    Question(
        f"Who directed Film {number}?",
        answers=(f"Person {number}",),
        pattern=Pattern.of((f"Film {number}", "directed_by", Unknown("x")), target="x"),
    )
    for number in range(14)
]
#: Of the even ones each holds, of the odd ones none.
CLAIMS = [
    Question(
        f"Person {number - number % 2} directed Film {number}.",
        pattern=Pattern.of((f"Film {number}", "directed_by", Unknown("x"))),
        value=number % 2 == 0,
        kind="one-hop" if number < 7 else "existence",
    )
    for number in range(14)
]


@pytest.fixture
def retriever() -> SimGRAGRetriever:
    return SimGRAGRetriever.from_index(INDEX, preset="paper", k=1)


def shots_in(prompt: Any) -> list[str]:
    text: str = prompt.format(question="?", evidence="none")
    shown = text.split("Examples\n\n", 1)[1].split("\n\nNow the", 1)[0]
    return re.split(r"\n\n(?=Question: |Claim: )", shown)


# --- shots ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shots", [4, 8, 12])
def test_the_answer_prompt_shows_as_many_examples_of_the_user_as_wanted(
    retriever: SimGRAGRetriever, shots: int
) -> None:
    shown = shots_in(with_answer_shots(retriever, QUESTIONS, shots=shots))
    assert len(shown) == shots
    assert shown[3] == (
        "Question: Who directed Film 3?\nEvidence:\n<facts>\n[1]\nFilm 3 -> directed by -> Person 3\n</facts>\n"
        "Reason: So says [1].\nAnswer: Person 3"
    )


def test_hits_at_1_of_a_written_answer_with_shots(retriever: SimGRAGRetriever) -> None:
    replies = ["Reason: So says [1].\nAnswer: Person 0", "Reason: So says [1].\nAnswer: Person 7"]
    llm = ScriptedChatModel(replies=replies)
    answerer = llm_answerer(with_answer_shots(retriever, QUESTIONS[2:]), llm)
    report = evaluate(retriever, QUESTIONS[:2], answerer=answerer)
    assert [record["metrics"]["text_hits@1"] for record in report.records] == [1.0, 0.0]
    assert llm.prompts[0][0].text.count("Question: ") == 13


def test_several_documents_and_gold_answers_that_they_lack() -> None:
    facts = [("A", "by", "P"), ("A", "by", "Q"), ("B", "by", "Q")]
    index = GraphIndex.build(KnowledgeGraph.from_triples(facts, labels={"P": "Pat"}), HashedEmbeddings())
    retriever = SimGRAGRetriever.from_index(index, preset="paper", k=2)
    pattern = Pattern.of(("A", "by", Unknown("x")), target="x")
    examples = [
        Question("By whom is A?", answers=("P", "Q"), pattern=pattern),
        Question("Who likes A?", answers=("B",), pattern=pattern),
    ]
    both, neither = shots_in(with_answer_shots(retriever, examples))
    assert both.endswith("Reason: So say [1] and [2].\nAnswer: Pat; Q")
    assert neither.endswith("Answer: The evidence does not say.")


def test_examples_without_evidence_are_passed_over(retriever: SimGRAGRetriever) -> None:
    strange = Question("Zzz qqq?", answers=("Person 1",))
    assert len(shots_in(with_answer_shots(retriever, [strange, *QUESTIONS[:3]], shots=2))) == 2
    with pytest.raises(InvalidArgumentError, match="no example"):
        with_answer_shots(retriever, [strange])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda one: with_answer_shots(one, QUESTIONS, shots=0), "shots must be"),
        (lambda one: with_verdict_shots(one, QUESTIONS), "has no value"),
        (lambda one: with_answer_shots(one, ["Who?"]), "wanted a list of Question"),
        (lambda one: with_verdict_shots(one, CLAIMS, prompt=CITED_ANSWER_PROMPT), "no place for examples"),
    ],
)
def test_wrong_arguments(retriever: SimGRAGRetriever, call: Any, words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        call(retriever)


def test_braces_in_names_stay(retriever: SimGRAGRetriever) -> None:
    question = Question("Who directed {x} Film 1?", answers=("Person 1",), pattern=QUESTIONS[1].pattern)
    assert "Question: Who directed {x} Film 1?" in shots_in(with_answer_shots(retriever, [question]))[0]


def test_the_verdict_prompt_shows_claims_of_the_user(retriever: SimGRAGRetriever) -> None:
    shown = shots_in(with_verdict_shots(retriever, CLAIMS))
    assert len(shown) == 12
    assert shown[0].splitlines()[:4] == [
        "Claim: Person 0 directed Film 0.",
        "Facts:",
        "<facts>",
        "[1] Film 0 -> directed by -> Person 0",
    ]
    verdicts = [json.loads(text.split("JSON: ")[1]) for text in shown]
    assert [one["verdict"] for one in verdicts] == ["supported", "refuted"] * 6
    assert [one["citations"] for one in verdicts[:2]] == [[1], []]


def test_answer_chains_take_the_prompt(retriever: SimGRAGRetriever) -> None:
    retriever.answer_prompt = with_answer_shots(retriever, QUESTIONS)
    llm = ScriptedChatModel(replies=["Answer: Person 5"])
    assert answer_chain(retriever, llm).invoke("Who directed Film 5?") == "Person 5"


# --- otherwise false --------------------------------------------------------------------------------------------------


def said(verdict: str, *citations: int) -> str:
    return json.dumps({"explanation": "So it is.", "verdict": verdict, "citations": list(citations)})


def plain_rule(verdict: str) -> str:
    """Render table 13, note 1: evidence that completely supports the statement makes it true, else it is false."""
    return "supported" if verdict == "supported" else "refuted"


@pytest.mark.parametrize("verdict", ["supported", "refuted", "not enough evidence"])
@pytest.mark.parametrize("citations", [(1,), ()])
def test_what_is_not_supported_is_refuted(
    retriever: SimGRAGRetriever, verdict: str, citations: tuple[int, ...]
) -> None:
    verifier = FactVerifier(ScriptedChatModel(replies=[said(verdict, *citations)]), otherwise="refuted")
    found = fact_verification_chain(retriever, verifier).invoke("Person 5 directed Film 5.")
    assert found["verdict"] == plain_rule(verdict)


def test_without_evidence_a_claim_is_refuted_and_no_model_is_asked(retriever: SimGRAGRetriever) -> None:
    llm = ScriptedChatModel(replies=[])
    found = fact_verification_chain(retriever, FactVerifier(llm, otherwise="refuted")).invoke("Zzz qqq.")
    assert found["verdict"] == "refuted"
    assert found["explanation"]
    assert not llm.prompts


def test_an_operation_that_tells_the_contrary_refutes() -> None:
    pattern = Pattern.of(("Film 1", "directed_by", "Person 2"), operation=Operation("exists"))
    documents = SimGRAGRetriever.from_index(INDEX).invoke("Person 2 directed Film 1.", pattern=pattern)
    verifier = FactVerifier(ScriptedChatModel(replies=[said("supported", 1)]), otherwise="refuted")
    assert documents[0].metadata["value"] is False
    assert verifier.invoke({"question": "Person 2 directed Film 1.", "documents": documents})["verdict"] == "refuted"


def test_prompts_of_both_rules() -> None:
    llm = ScriptedChatModel(replies=[])
    assert FactVerifier(llm).prompts["answer"] is VERIFICATION_PROMPT
    assert FactVerifier(llm, otherwise="refuted").prompts["answer"] is CLOSED_VERIFICATION_PROMPT
    own = PromptTemplate.from_template("{question} {evidence}")
    assert FactVerifier(llm, prompt=own, otherwise="refuted").prompts["answer"] is own
    asked = CLOSED_VERIFICATION_PROMPT.format(question="?", evidence="none")
    assert "not enough evidence" not in asked
    with pytest.raises(InvalidArgumentError, match="otherwise is"):
        FactVerifier(llm, otherwise="false")  # type: ignore[arg-type]


# --- accuracy ---------------------------------------------------------------------------------------------------------


def test_accuracy_of_verdicts(retriever: SimGRAGRetriever) -> None:
    claims = [CLAIMS[0], CLAIMS[1], CLAIMS[8], Question("Zzz qqq.", value=False, kind="existence")]
    replies = [said("supported", 1), said("supported", 1), said("supported")]
    report = evaluate(retriever, claims, answerer=FactVerifier(ScriptedChatModel(replies=replies), otherwise="refuted"))
    assert [record["value"] for record in report.records] == [True, True, True, False]
    assert [record["metrics"]["exact_value"] for record in report.records] == [1.0, 0.0, 1.0, 1.0]
    assert report.metrics["exact_value"] == 0.75
    assert [record["kind"] for record in report.records] == ["one-hop", "one-hop", "existence", "existence"]
    assert not any(record["refused"] for record in report.records)


def test_an_abstention_is_no_verdict(retriever: SimGRAGRetriever) -> None:
    claims = [CLAIMS[1], Question("Zzz qqq.", value=False)]
    verifier = FactVerifier(ScriptedChatModel(replies=[said("not enough evidence", 1)]))
    report = evaluate(retriever, claims, answerer=verifier)
    assert report.metrics["exact_value"] == 0.0
    assert [record["value"] for record in report.records] == [None, None]
    assert all(record["refused"] for record in report.records)
