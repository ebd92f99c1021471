"""The baseline without evidence: its prompts, and how chains, evaluations and unions treat it."""

from __future__ import annotations

from pathlib import Path

import pytest
from langchain_core.prompts import PromptTemplate

from kg_retrievers import (
    ClosedBookRetriever,
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    Question,
    UnionRetriever,
    answer_chain,
    build_router,
    build_workflow,
    cited_answer_chain,
    evaluate,
    fact_verification_chain,
    llm_answerer,
)
from kg_retrievers.chains import NO_ANSWER
from kg_retrievers.core.facts_prompt import ANSWER_PROMPT as ANSWER
from kg_retrievers.core.prompts import check_placeholders
from kg_retrievers.core.replies import last_line_answers
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.methods.baselines.prompts import ANSWER_PROMPT, CHAIN_OF_THOUGHT_PROMPT
from kg_retrievers.testing import ScriptedChatModel

FACTS = [("Her", "directed_by", "Spike Jonze"), ("Her", "starring", "Amy Adams")]
INDEX = GraphIndex.build(KnowledgeGraph.from_triples(FACTS), HashedEmbeddings())
HER = "Who directed Her?"


@pytest.mark.parametrize("name", ["answer", "chain_of_thought"])
def test_prompt_snapshots(name: str) -> None:
    """A change of words shows here: bump `VERSION`, then delete the snapshot and run the test again."""
    prompt = {"answer": ANSWER_PROMPT, "chain_of_thought": CHAIN_OF_THOUGHT_PROMPT}[name]
    check_placeholders(prompt, ["question"], name)
    snapshot = Path(__file__).parents[2] / "snapshots" / f"closed_book_{name}_prompt.txt"
    text = prompt.format(question="who directed {Her}?") + "\n"
    if not snapshot.exists():
        snapshot.write_text(text, encoding="utf-8")
        pytest.fail(f"{snapshot.name} was missing and has been written; look at it and run again.")
    assert text == snapshot.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("reply", "answers"),
    [
        ("It is a film.\nAnswer: Spike Jonze\n\n", ["Spike Jonze"]),
        ("Answer: maybe Coppola\nNo, later.\n**Answer:** Spike Jonze; Amy Adams", ["Spike Jonze", "Amy Adams"]),
        ("It is a film.\nSpike Jonze", ["Spike Jonze"]),
        ("I do not recall it.\nAnswer: not available", []),
        ("<think>Answer: x</think>Answer: y", ["y"]),
        (" \n", []),
    ],
)
def test_the_last_line_is_read(reply: str, answers: list[str]) -> None:
    assert last_line_answers(reply) == answers


def test_a_chain_asks_the_model_alone(caplog: pytest.LogCaptureFixture) -> None:
    retriever = ClosedBookRetriever.from_index(INDEX)
    model = ScriptedChatModel(replies=["Spike Jonze", "not available"])
    chain = answer_chain(retriever, model)
    assert (chain.invoke(HER), chain.invoke("Who is Xyzzyplugh?")) == ("Spike Jonze", NO_ANSWER)
    assert f"Human: {model.prompts[0][0].text}" == ANSWER_PROMPT.format(question=HER)
    assert retriever.invoke(HER, on_refusal="raise") == []
    assert not caplog.records


def test_a_chain_of_thought() -> None:
    retriever = ClosedBookRetriever.from_index(INDEX, chain_of_thought=True)
    model = ScriptedChatModel(replies=["Her is a film.\nAnswer: Spike Jonze"])
    assert answer_chain(retriever, model).invoke(HER) == "Spike Jonze"
    assert "step by step" in model.prompts[0][0].text
    own = ClosedBookRetriever.from_index(INDEX, chain_of_thought=True, answer_prompt=ANSWER_PROMPT)
    assert (own.answer_prompt, own.parse_answers) == (ANSWER_PROMPT, last_line_answers)


def test_a_chain_of_thought_without_its_prompt_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="chain_of_thought"):
        ClosedBookRetriever.from_index(INDEX, chain_of_thought=1)  # type: ignore[typeddict-item]
    with pytest.raises(InvalidArgumentError, match="frozen"):
        ClosedBookRetriever.from_index(INDEX).chain_of_thought = True


def test_an_evaluation_counts_the_answers_of_the_model() -> None:
    retriever = ClosedBookRetriever.from_index(INDEX)
    questions = [Question(HER, answers=("Spike Jonze",)), Question("Who stars in Her?", answers=("Amy Adams",))]
    model = ScriptedChatModel(replies=["Spike Jonze", "not available"])
    answerer = llm_answerer(retriever.answer_prompt, model, closed_book=True)
    report = evaluate(retriever, questions, answerer=answerer)
    assert [record["refused"] for record in report.records] == [False, True]
    metrics = report.metrics
    assert (metrics["text_hit"], metrics["triples_mean"], metrics["tokens_mean"]) == (0.5, 0, 0)
    assert (metrics["llm_calls_mean"], metrics["hit"]) == (1, None)


def test_the_prompt_holds_the_question_alone() -> None:
    retriever = ClosedBookRetriever.from_index(INDEX)
    assert set(retriever.answer_prompt.input_variables) == {"question"}
    with pytest.raises(InvalidArgumentError, match=r"remove \{evidence\}"):
        retriever.answer_prompt = PromptTemplate.from_template("{question} {evidence}")
    with pytest.raises(InvalidArgumentError, match=r"remove \{evidence\}"):
        llm_answerer(ANSWER, ScriptedChatModel(replies=[]), closed_book=True)


def test_what_needs_evidence_refuses_it() -> None:
    retriever, model = ClosedBookRetriever.from_index(INDEX), ScriptedChatModel(replies=[])
    for build in (cited_answer_chain, fact_verification_chain, build_workflow):
        with pytest.raises(InvalidArgumentError, match=r"nothing to cite.*answer_chain"):
            build(retriever, model)  # type: ignore[operator]
    with pytest.raises(InvalidArgumentError, match="'alone': ClosedBookRetriever finds no evidence"):
        build_router({"alone": retriever})
    with pytest.raises(InvalidArgumentError, match="could be fused"):
        UnionRetriever.of(retriever)
    with pytest.raises(InvalidArgumentError, match="a language model answers"):
        answer_chain(retriever)
    with pytest.raises(InvalidArgumentError, match="closed_book=True"):
        evaluate(retriever, [Question(HER, answers=("Spike Jonze",))])
    with pytest.raises(InvalidArgumentError, match="it is not trained"):
        ClosedBookRetriever.from_index(INDEX, model="folder")  # type: ignore[arg-type]
