"""What an answerer writes is judged answer by answer: SubgraphRAG's score and its table of truth-grounded answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, LLMCitedAnswerer, Question, evaluate
from kg_retrievers.chains import llm_answerer
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.evaluation import Report
from kg_retrievers.evaluation.metrics import truth_score
from kg_retrievers.evaluation.records import WrittenAnswer
from kg_retrievers.evaluation.written import judge_answers, label_in_evidence, says, score_written
from kg_retrievers.methods.registry import METHODS, find_method
from kg_retrievers.testing import ScriptedChatModel

FACTS = [
    ("San Francisco Giants", "championships", "2010 World Series"),
    ("San Francisco Giants", "championships", "2012 World Series"),
    ("San Francisco Giants", "mascot", "Lou Seal"),
]
INDEX = GraphIndex.build(KnowledgeGraph.from_triples(FACTS), HashedEmbeddings())
WON = Question(
    "What did the San Francisco Giants win?",
    seed_entities=("San Francisco Giants",),
    answers=("2010 World Series", "2012 World Series"),
)
OWNER = Question("Who owns the San Francisco Giants?", seed_entities=("San Francisco Giants",), answerable=False)
EVIDENCE = Document("Her -> year -> 2013", metadata={"labels": {"Q1": "Her", "2013": "2013"}, "answers": []})


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("2014 (2014 World Series)", "2014 World Series", True),
        ("Its moons are Amélie and AMELIE.", "amelie", True),
        ("in 1982", "2", False),
        ("Japanese", "Japan", False),
        ("World 2014 Series", "2014 World Series", False),
        ("directed by", "directed_by", True),
        ("宮崎駿", "宮崎駿", True),
        ("?", "?", True),
        ("?!", "?", False),
        ("anything", "", False),
        ("", "", False),
    ],
)
def test_an_answer_says_a_name(text: str, name: str, expected: bool) -> None:
    assert says(text, name) is expected


def plain_score(answers: Sequence[tuple[bool, bool]], answerable: bool) -> float:
    """Return Score_h of a question as appendix C says it: each answer is right or wrong, retrieved or not."""
    if not answers:
        return 0.0 if answerable else 1.0
    total = 0.0
    for right, retrieved in answers:
        if answerable:
            total += 1 if right else -1
        else:
            total += -1 if retrieved else -1.5
    return total / len(answers)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=6), st.booleans())
def test_the_score_equals_a_plain_rendering(answers: list[tuple[bool, bool]], answerable: bool) -> None:
    written = [WrittenAnswer(answer="x", right=right, in_evidence=known) for right, known in answers]
    score = score_written(written, answerable)
    assert score == pytest.approx((plain_score(answers, answerable) + 1.5) / 2.5)
    assert 0 <= score <= 1


def test_scores_by_hand() -> None:
    assert truth_score(3, right=2, in_evidence=0, answerable=True) == pytest.approx((1 / 3 + 1.5) / 2.5)
    assert truth_score(0, right=0, in_evidence=0, answerable=False) == 1
    assert truth_score(1, right=0, in_evidence=1, answerable=False) == pytest.approx(0.2)
    assert truth_score(1, right=0, in_evidence=0, answerable=False) == 0


def test_answers_are_judged_one_by_one() -> None:
    judged = judge_answers(["Her", "It is 2013", "2014", "Amy"], ["her", "Amy"], [EVIDENCE])
    assert [(one["right"], one["in_evidence"]) for one in judged] == [
        (True, True),
        (False, True),
        (False, False),
        (True, False),
    ]


def test_the_result_of_an_operation_is_in_the_evidence() -> None:
    count = Document("Result of count: 6", metadata={"labels": {}, "answers": [], "value": 6})
    assert judge_answers(["6"], ["6"], [count]) == [{"answer": "6", "right": True, "in_evidence": True}]


def test_a_label_in_the_evidence() -> None:
    texts = [Document("Her -> directed by -> Spike Jonze")]
    assert label_in_evidence(["Amy Adams", "spike jonze"], texts) == 1
    assert label_in_evidence(["Spike", "Jon"], texts) == 1  # one of them is enough, as whole words
    assert label_in_evidence(["Jon"], texts) == label_in_evidence(["Her"], []) == label_in_evidence([], texts) == 0


def retriever_with_the_prompt_of(name: str) -> BaseKGRetriever:
    fields = find_method(name).load_retriever().model_fields
    prompt = {key: fields[key].default for key in ("answer_prompt", "parse_answers")}
    return find_method("neighborhood").load_retriever().from_index(INDEX, **prompt)


#: What each method's prompt makes a model reply: two answers, and none.
SEPARATORS = {"gnn-rag": "\n", "rog": "\n", "subgraph-rag": "\nans: "}
NOTHING = {"gnn-rag": "not available", "rog": "not available", "subgraph-rag": "ans: not available"}


@pytest.mark.parametrize("name", [method.name for method in METHODS])
def test_the_answers_of_every_prompt_are_judged(name: str) -> None:
    answers = SEPARATORS.get(name, "; ").join(["2010 (2010 World Series)", "2016 World Series"])
    reply = ("ans: " if name == "subgraph-rag" else "") + answers
    llm = ScriptedChatModel(replies=[reply, NOTHING.get(name, "The facts do not say.")])
    retriever = retriever_with_the_prompt_of(name)
    report = evaluate(retriever, [WON, OWNER], answerer=llm_answerer(retriever.answer_prompt, llm))
    won, owner = report.records
    assert won["written"] == [
        {"answer": "2010 (2010 World Series)", "right": True, "in_evidence": True},
        {"answer": "2016 World Series", "right": False, "in_evidence": False},
    ]
    assert owner["written"] == []
    assert (won["metrics"]["score_h"], owner["metrics"]["score_h"]) == (0.6, 1)
    assert report.metrics["score_h"] == 0.8
    assert report.metrics["text_hit"] == report.metrics["text_hits@1"] == 1
    assert report.metrics["text_f1"] == report.metrics["text_f1_micro"] == 0.5


def test_truth_grounded_answers_are_counted(tmp_path: Path) -> None:
    replies = iter([["2010 World Series", "2016 World Series"], ["Lou Seal", "Bill Neukom", "Willie Mays"]])
    answerer = RunnableLambda(lambda _: next(replies))
    silent = Question("What did Lou Seal win?", seed_entities=("Lou Seal",), answers=("2012 World Series",))
    replies_and_none = RunnableLambda(lambda given: [] if "Lou" in given["question"] else answerer.invoke(given))
    retriever = find_method("neighborhood").load_retriever().from_index(INDEX)
    path = tmp_path / "records.jsonl"
    report = evaluate(retriever, [WON, silent, OWNER], answerer=replies_and_none, records=path)
    assert report.written == {
        "answerable": {
            "questions": 2,
            "refused": 1 / 2,
            "answers": 2,
            "wrong": 1 / 2,
            "right_not_in_evidence": 0,
            "wrong_not_in_evidence": 1,
        },
        "unanswerable": {
            "questions": 1,
            "refused": 0,
            "answers": 3,
            "wrong": 1,
            "right_not_in_evidence": None,
            "wrong_not_in_evidence": pytest.approx(2 / 3),
        },
    }
    assert report.metrics["score_h"] == pytest.approx(((0 + 0 - 4 / 3) / 3 + 1.5) / 2.5)
    assert report.metrics["text_precision_micro"] == 1 / 2  # one of two
    assert report.metrics["text_recall_micro"] == 1 / 3  # one of two, and none of one
    assert Report.read(path).written == report.written
    assert evaluate(retriever, [WON]).written == {}


def test_an_error_is_no_refusal() -> None:
    answerer = LLMCitedAnswerer(ScriptedChatModel(replies=["no JSON"] * 4))
    retriever = find_method("neighborhood").load_retriever().from_index(INDEX)
    report = evaluate(retriever, [OWNER, WON], answerer=answerer)
    assert [record["metrics"]["score_h"] for record in report.records] == [0.6, 0.6]
    assert report.written == {}
