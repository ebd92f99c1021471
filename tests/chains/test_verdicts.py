"""Verdicts by the rule of the paper: what is not supported is refuted."""

from __future__ import annotations

import json

import pytest
from films_and_claims import CLAIMS, INDEX
from langchain_core.prompts import PromptTemplate

from kg_retrievers import Question, SimGRAGRetriever
from kg_retrievers.chains import FactVerifier, fact_verification_chain
from kg_retrievers.chains.prompts import CLOSED_VERIFICATION_PROMPT, VERIFICATION_PROMPT
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.evaluation import evaluate
from kg_retrievers.graph import Pattern
from kg_retrievers.graph.operations import Operation
from kg_retrievers.testing import ScriptedChatModel


@pytest.fixture
def retriever() -> SimGRAGRetriever:
    return SimGRAGRetriever.from_index(INDEX, preset="paper", k=1)


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
