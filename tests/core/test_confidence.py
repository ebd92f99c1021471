"""How sure a retriever is of what a question asks for, and the refusal where it is not sure enough."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda

from kg_retrievers import GraphIndex, HashedEmbeddings, SimGRAGRetriever, answer_chain
from kg_retrievers.chains import LESS_SURE, NOT_UNDERSTOOD, cited_answer_chain
from kg_retrievers.core.documents import flat_metadata
from kg_retrievers.errors import InvalidArgumentError, LowConfidenceError
from kg_retrievers.graph import Pattern, Unknown
from kg_retrievers.llama_index import as_llama_index
from kg_retrievers.testing import tiny_graph

INDEX = GraphIndex.build(tiny_graph(), HashedEmbeddings())
SALARY = "What salary has Spike Jonze?"
UNSURE = Pattern.of(
    (Unknown("x"), "directed_by", "Spike Jonze"),
    target="x",
    confidence=0.125,
    unplaced=["salary"],
    nearest=["directed_by", "written_by"],
)
FILMS = ["Her", "Adaptation"]
SAID = (
    "SimGRAGRetriever: not sure what 'What salary has Spike Jonze?' asks for (confidence 0.12, wanted 0.5): no "
    "relation fits 'salary'; the nearest relations are 'directed by', 'written by'."
)
TO_AGENTS = SAID.replace("SimGRAGRetriever: not", "Not")


def unsure(**fields: Any) -> SimGRAGRetriever:
    fields = {"min_confidence": 0.5, **fields}
    return SimGRAGRetriever.from_index(INDEX, pattern_generator=RunnableLambda(lambda _: UNSURE), **fields)


def test_a_refusal_says_what_was_not_understood_and_what_to_do() -> None:
    with pytest.raises(LowConfidenceError) as refusal:
        unsure().invoke(SALARY, on_refusal="raise")
    error = refusal.value
    assert error.message == SAID
    assert (error.confidence, error.unplaced, error.nearest) == (0.125, ["salary"], ["directed_by", "written_by"])
    assert "lower min_confidence, or give examples= or llm=" in str(error)
    assert "lower --min-confidence, or give --examples or --llm" in error.on_shell


def test_a_refusal_spells_words_as_the_question_does() -> None:
    with pytest.raises(LowConfidenceError) as refusal:
        unsure().invoke("What celary has Spike Jonze?", on_refusal="raise")
    assert refusal.value.unplaced == ["celary"]


def test_who_wants_more_than_there_is_hears_how_much_there_is() -> None:
    pattern = replace(UNSURE, confidence=0.93)
    generator = RunnableLambda(lambda _: pattern)
    sure = SimGRAGRetriever.from_index(INDEX, pattern_generator=generator, min_confidence=1)
    with pytest.raises(LowConfidenceError) as refusal:
        sure.invoke(SALARY, on_refusal="raise")
    said = (
        f"SimGRAGRetriever: the confidence of the answer to {SALARY!r} is 0.93; 1 is required. Did you mean: ?x -> "
        "directed_by -> Spike Jonze?"
    )
    assert refusal.value.message == said
    assert refusal.value.on_shell == f"{said} Lower --min-confidence to see it."
    assert answer_chain(sure).invoke(SALARY) == f"{LESS_SURE} {said} Lower min_confidence to see it."


async def test_a_call_may_want_less_or_more() -> None:
    retriever = unsure()
    documents = retriever.invoke(SALARY, min_confidence=0.125)
    assert documents == await retriever.ainvoke(SALARY, min_confidence=0) == unsure(min_confidence=0.1).invoke(SALARY)
    assert documents[0].metadata["confidence"] == 0.125
    assert documents[0].metadata["answers"] == FILMS
    assert unsure(min_confidence=0).invoke(SALARY, min_confidence=1) == []
    assert flat_metadata(documents[0]).metadata["confidence"] == 0.125


@pytest.mark.parametrize("wrong", [-0.1, 1.1, "0.5", True, float("nan")])
def test_the_least_confidence_is_a_share(wrong: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="min_confidence"):
        unsure(min_confidence=wrong)
    with pytest.raises(InvalidArgumentError, match="min_confidence"):
        unsure().invoke(SALARY, min_confidence=wrong)


def test_whoever_gives_a_pattern_is_sure_of_it() -> None:
    for given in (UNSURE, UNSURE.to_dict()):
        document = unsure().invoke(SALARY, pattern=given)[0]
        assert document.metadata["confidence"] is None
        assert "confidence" not in flat_metadata(document).metadata


# --- what answers -----------------------------------------------------------------------------------------------------


async def test_chains_and_engines_answer_with_the_reason() -> None:
    retriever = unsure()
    assert answer_chain(retriever).invoke(SALARY).startswith(f"{NOT_UNDERSTOOD} {SAID}")
    cited = await cited_answer_chain(retriever).ainvoke(SALARY)
    assert cited["answer"] == NOT_UNDERSTOOD
    assert cited["explanation"].startswith(SAID)
    assert retriever.as_tool().invoke({"query": SALARY}).startswith(TO_AGENTS)
    bridge = as_llama_index(retriever)
    assert bridge.retrieve(SALARY) == []
    assert str(bridge.as_tool().call(input=SALARY)).startswith(TO_AGENTS)
    assert as_llama_index(retriever, min_confidence=0).retrieve(SALARY)[0].metadata["confidence"] == 0.125
