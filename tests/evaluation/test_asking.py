"""A reply in the form that a method's prompt demands is scored by its answers; an abstention is a refusal."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda

from kg_retrievers import GraphIndex, HashedEmbeddings, Question, SimGRAGRetriever, build_workflow, evaluate
from kg_retrievers.chains import NO_ANSWER, answer_chain, llm_answerer
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.graph import Pattern, Unknown
from kg_retrievers.methods.registry import METHODS, find_method
from kg_retrievers.testing import ScriptedChatModel, tiny_graph

CAST = ("Audrey Tautou", "Mathieu Kassovitz", "Dominique Pinon")
QUESTION = Question("Who starred in Amélie?", seed_entities=("Amélie",), answers=CAST)
UNANSWERABLE = Question("Who composed Amélie?", seed_entities=("Amélie",), answerable=False)

#: For each method, what its worked examples show: a reply with the cast, and one that finds nothing.
REPLIES = {
    "kg": (" [1]\nAnswer: {}", "\nAnswer: not available", "; "),
    "simgrag": (" The evidence names the cast [1].\nAnswer: {}", " Nobody.\nAnswer: The evidence does not say.", "; "),
    "g-retriever": (" The graph names the cast.\nAnswer: {}", " No composer.\nAnswer: The graph does not say.", "; "),
    "gnn-rag": ("\n{}", "\nnot available", "\n"),
    "subgraph-rag": (" Fact [1] names them.\nans: {}", " Its composer is missing.\nans: not available", "\nans: "),
    "sg-rag": (" {}", " The facts support no answer.", "; "),
    "rog": ("\n{}", "\nnot available", "\n"),
    "kaping": (" Facts [1] to [3] name them.\nAnswer: {}", " No composer.\nAnswer: The facts do not say.", "; "),
    "neighborhood": (" {}", " not available", "; "),
}


def retriever_with_the_prompt_of(name: str) -> BaseKGRetriever:
    """Return a retriever on a small graph that leaves refusals to the replies, with the prompt of a method."""
    fields = find_method(name).load_retriever().model_fields
    prompt: Any = {key: fields[key].default for key in ("answer_prompt", "parse_answers")}
    return SimGRAGRetriever.from_index(GraphIndex.build(tiny_graph(), HashedEmbeddings()), min_confidence=0, **prompt)


def replies(name: str) -> list[str]:
    answer, abstention, separator = REPLIES[name]
    return [answer.format(separator.join(CAST)), abstention]


def test_every_method_is_here() -> None:
    assert set(REPLIES) == {method.name for method in METHODS}


@pytest.mark.parametrize("parsed", [False, True], ids=["as it comes", "parsed"])
@pytest.mark.parametrize("name", REPLIES)
def test_replies_are_scored_by_their_answers(name: str, parsed: bool) -> None:
    retriever = retriever_with_the_prompt_of(name)
    llm = ScriptedChatModel(replies=[*replies(name)])
    answerer = llm_answerer(retriever.answer_prompt, llm, retriever.parse_answers if parsed else None)
    report = evaluate(retriever, [QUESTION, UNANSWERABLE], answerer=answerer)
    assert [record["refused"] for record in report.records] == [False, True]
    assert report.metrics["abstention"] == 1
    scores = ("text_hits@1", "text_hit", "text_precision", "text_recall", "text_f1")
    assert {score: report.metrics[score] for score in scores} == dict.fromkeys(scores, 1.0)
    assert len(llm.prompts) == 2


@pytest.mark.parametrize("name", REPLIES)
async def test_chains_and_workflows_read_the_same(name: str) -> None:
    retriever = retriever_with_the_prompt_of(name)
    llm = ScriptedChatModel(replies=replies(name) * 4)
    chain = answer_chain(retriever, llm)
    answered = ["; ".join(CAST), NO_ANSWER]
    assert [chain.invoke(QUESTION.text), chain.invoke(UNANSWERABLE.text)] == answered
    assert [await chain.ainvoke(QUESTION.text), await chain.ainvoke(UNANSWERABLE.text)] == answered
    workflow = build_workflow(retriever, llm_answerer(retriever.answer_prompt, llm))
    for _ in range(2):
        assert workflow.invoke({"question": QUESTION.text})["answers"] == [*CAST]
        assert (await workflow.ainvoke({"question": UNANSWERABLE.text}))["answers"] == []


@pytest.mark.parametrize("on_refusal", ["empty", "raise"])
def test_a_record_says_why_a_question_was_refused(on_refusal: str) -> None:
    fields: dict[str, Any] = {"on_refusal": on_refusal}
    retriever = SimGRAGRetriever.from_index(GraphIndex.build(tiny_graph(), HashedEmbeddings()), **fields)
    unknown = Question("Who directed Davd Lunch?", answerable=False)
    (record,) = evaluate(retriever, [unknown]).records
    assert (record["refused"], record["error"]) == (True, None)
    assert record["reason"] is not None
    assert record["reason"].startswith("No entity of the graph was found in 'Who directed Davd Lunch?'. Did you mean")
    pattern = Pattern.of(("Ameliee", "starring", Unknown("actor")), target="actor")
    far = retriever.model_copy(update={"max_distance": 0.01, "pattern_generator": RunnableLambda(lambda _: pattern)})
    (record,) = evaluate(far, [Question("Who stared in Ameliee?", answerable=False)]).records
    assert (record["refused"], record["error"]) == (True, None)
    assert record["reason"] == (
        "SimGRAGRetriever: nothing in the graph fits the question 'Who stared in Ameliee?', "
        "read as: Ameliee -> starring -> ?actor."
    )
