"""The metrics of a question, the scores of a text, and the figures of many questions, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from kg_retrievers import Pattern, Question, Triple, Unknown
from kg_retrievers.evaluation.measuring import (
    answer_recall,
    exact_match,
    f1,
    hit,
    precision,
    question_metrics,
    recall,
    score_prediction,
    triple_recall,
)
from kg_retrievers.evaluation.records import Record
from kg_retrievers.evaluation.report import Report

FACTS = (Triple("a", "r", "b"), Triple("b", "r", "c"), Triple("c", "r", "d"))
X = Unknown("x")


# --- a question -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gold", "answers", "expected"),
    [  # hit, hits@1, exact match, precision, recall, F1
        ("ab", "ab", (1, 1, 1, 1, 1, 1)),
        ("ab", "ba", (1, 1, 1, 1, 1, 1)),
        ("ab", "a", (1, 1, 0, 1, 1 / 2, 2 / 3)),
        ("ab", "axyz", (1, 1 / 4, 0, 1 / 4, 1 / 2, 1 / 3)),
        ("ab", "xy", (0, 0, 0, 0, 0, 0)),
        ("ab", "", (0, 0, 0, 0, 0, 0)),
        ("aab", "abb", (1, 1, 1, 1, 1, 1)),  # said twice is said once
    ],
)
def test_answers_by_hand(gold: str, answers: str, expected: tuple[float, ...]) -> None:
    metrics = (hit, precision, exact_match, precision, recall, f1)
    assert tuple(metric([*gold], [*answers]) for metric in metrics) == pytest.approx(expected)


def test_evidence_by_hand() -> None:
    assert answer_recall(["a", "c", "x"], FACTS[:2]) == pytest.approx(2 / 3)  # heads and tails
    assert answer_recall(["a"], []) == 0
    assert triple_recall(FACTS[1:], FACTS[:2]) == 1 / 2
    assert triple_recall(FACTS[:1], []) == 0


def test_a_metric_without_what_it_compares_with_is_none() -> None:
    assert question_metrics(Question("q"), ["a"], FACTS) == dict.fromkeys(question_metrics(Question("q"), [], []))
    unanswerable = question_metrics(Question("q", answers=("a",), answerable=False), ["a"], [])
    assert unanswerable == dict.fromkeys(unanswerable)
    full = question_metrics(Question("q", answers=("b",), triples=FACTS[:1], value=6), ["b"], FACTS[:1], value=6.0)
    assert full == dict.fromkeys(full, 1.0)


# --- predictions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prediction", "gold", "expected"),
    [  # accuracy, hit, hits@1, F1, precision, recall
        (["Fukushima", "Okuma"], ["Japan", "Okuma"], (50, 100, 0, 50, 50, 50)),
        ("Fukushima\nOkuma", ["Japan", "Okuma"], (50, 100, 0, 50, 50, 50)),
        ("\n Okuma\n\nJapan \n", ["Japan", "Okuma"], (100, 100, 100, 80, 200 / 3, 100)),  # a blank line is a line
        ("Okuma; Japan", ["Japan", "Okuma"], (100, 100, 100, 400 / 3, 200, 100)),  # two on one line
        ("The answer is: JAPAN's.", ["a Japans"], (100, 100, 100, 100, 100, 100)),
        ("in 1982", ["2"], (100, 100, 100, 100, 100, 100)),  # contained is enough
        (["Nazi"], ["Nazi Germany"], (0, 0, 0, 0, 0, 0)),  # but only this way round
        (["Nazi", "Germany"], ["Nazi Germany"], (100, 100, 0, 200 / 3, 50, 100)),  # lines are joined
        (["Hard times"], ["Hard times", "Hard times"], (100, 100, 100, 400 / 3, 200, 100)),  # gold is not folded
        ("Anthem", ["an them"], (100, 100, 100, 100, 100, 100)),  # articles go as words, the rest is contained
        ("", ["Japan"], (0, 0, 0, 0, 0, 0)),
        ([], ["Japan"], (0, 0, 0, 0, 0, 0)),
        ([], ["The"], (0, 0, 0, 0, 0, 0)),
        ("Japan", ["The", "?"], (100, 100, 100, 400 / 3, 200, 100)),  # nothing is in everything
        ("SÃO PAULO!", ["são paulo"], (100, 100, 100, 100, 100, 100)),
        ("«Rio»", ["Rio—"], (0, 0, 0, 0, 0, 0)),  # only ASCII punctuation goes
    ],
)
def test_predictions_by_hand(prediction: str | list[str], gold: list[str], expected: tuple[float, ...]) -> None:
    scores = score_prediction(prediction, gold)
    assert list(scores) == ["accuracy", "hit", "hits@1", "f1", "precision", "recall"]
    assert [100 * score for score in scores.values()] == pytest.approx([*expected])


# --- many questions ---------------------------------------------------------------------------------------------------


def record(number: int, question: Question, answers: str = "", **more: Any) -> Record:
    """Return what would be measured where these answers are proposed."""
    failed = more.get("error") is not None
    fields: dict[str, Any] = {
        "id": str(number),
        "question": question.text,
        "hops": question.hops,
        "kind": question.kind,
        "answerable": question.answerable,
        "gold": [*question.answers],
        "answers": [*answers],
        "value": None,
        "labels": {},
        "seed_entities": [*question.seed_entities],
        "triples": len(answers),
        "nodes": 2 * len(answers),
        "tokens": 10 * len(answers),
        "pattern": None,
        "prediction": None,
        "llm_calls": 0,
        "input_tokens": 0,
        "output_tokens": 0,
        "latency_ms": float(number),
        "refused": not answers and not failed,
        "reason": None,
        "error": None,
        "metrics": question_metrics(question, answers, []),
    }
    return fields | more  # type: ignore[return-value]


def asked(number: int, gold: str, answers: str, count: int = 1, **more: Any) -> Record:
    """Return what would be measured at a question of so many hops."""
    pattern = Pattern.of(*[("Her", f"relation {number}", X) for number in range(count)])
    return record(number, Question("q", answers=(*gold,), triples=FACTS[:count], pattern=pattern), answers, **more)


RECORDS = [
    asked(1, "ab", "a", 2),
    asked(2, "c", "cx"),
    asked(3, "d", "", 2),
    asked(4, "e", "", error="SearchBudgetError: too much"),
    record(5, Question("q", kind="absent entity", answerable=False)),
    record(6, Question("q", kind="absent entity", answerable=False), "z", llm_calls=3),
    record(7, Question("nothing known"), "y"),
]


def test_figures_by_hand() -> None:
    report = Report.from_records("m", RECORDS)
    expected = {
        "compared": 4,
        "hit": 2 / 4,
        "hits@1": (1 + 1 / 2) / 4,
        "exact_match": 0,
        "precision_macro": (1 + 1 / 2) / 4,
        "recall_macro": (1 / 2 + 1) / 4,
        "f1_macro": (2 / 3 + 2 / 3) / 4,
        "abstention": 1 / 2,
        "false_refusals": 1 / 5,
        "errors": 1 / 7,
        "triples_mean": 5 / 7,
        "tokens_mean": 50 / 7,
        "triples_median": 1,
        "nodes_median": 2,
        "tokens_median": 10,
        "nodes_mean": 10 / 7,
        "first_hit": 2 / 4,
        "hits@10": 2 / 4,
        "coverage": 0,
        "llm_calls_mean": 3 / 7,
        "latency_ms_p50": 4,
        "latency_ms_p95": 6.7,
        "text_f1": None,
    }
    assert {name: report.metrics[name] for name in expected} == pytest.approx(expected)
    assert report.by("kind")["absent entity"]["abstention"] == 0.5
    assert list(report.by_hops) == ["1", "2", "unknown"]
    assert [part["questions"] for part in report.by_hops.values()] == [2, 2, 3]
    assert report.by_hops["1"]["hit"] == report.by_hops["2"]["hit"] == 0.5
    assert report.by_hops["unknown"]["hit"] is None
    assert report.by_hops["unknown"]["intervals"]["hit"] is None
    assert [one["id"] for one in report.failures] == ["3", "4", "6"]
    assert report.to_dict()["questions"] == 7


def test_a_method_without_answers_has_no_figures_of_answers() -> None:
    question = Question("q", answers=("a",), triples=FACTS[:1])
    evidence = {"triples": 1, "refused": False}
    found, missed = question_metrics(question, [], FACTS[:1]), question_metrics(question, [], FACTS[1:])
    records = [record(1, question, **evidence, metrics=found), record(2, question, **evidence, metrics=missed)]
    report = Report.from_records("m", records, proposes_answers=False)
    nothing = [name for name, value in report.metrics.items() if value is None]
    assert {"hit", "hits@1", "exact_match", "f1_macro", "recall_macro"} <= set(nothing)
    assert report.intervals["hit"] is None
    assert report.metrics["answer_recall"] == 0.5
    assert [one["id"] for one in report.failures] == ["2"]
    assert report.metrics["compared"] == 2
    assert Report.from_records("m", records).metrics["hit"] == 0  # it could have: that is not the same


def test_no_records_no_figures() -> None:
    report = Report.from_records("m", [])
    assert {**report.metrics, "compared": None} == dict.fromkeys(report.metrics)
    assert report.metrics["compared"] == 0
    assert set(report.intervals.values()) == {None}
    assert report.by_hops == {}


def test_intervals_hold_the_mean_and_hang_on_the_seed() -> None:
    records = [asked(number, "a", "a" if number % 3 else "x") for number in range(1, 61)]
    interval = Report.from_records("m", records).intervals["hit"]
    assert interval is not None
    low, high = interval
    assert low < 2 / 3 < high
    assert 0.2 < high - low < 0.28  # 2 * 1.96 * sqrt(2 / 9 / 60) = 0.24
    varied = [asked(number, "a", "abcdefg"[: 1 + number % 7]) for number in range(60)]
    first, again, other = (Report.from_records("m", varied, seed=seed).intervals["hits@1"] for seed in (1, 1, 2))
    assert first == again != other
    sure = Report.from_records("m", [asked(1, "a", "a")] * 3).intervals
    assert sure["hit"] == sure["exact_match"] == [1, 1]
