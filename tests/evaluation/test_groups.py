"""Wrong answers, and groups of questions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda

from kg_retrievers import (
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    NeighborhoodRetriever,
    Pattern,
    Question,
    SimGRAGRetriever,
    Triple,
    Unknown,
    compare,
    evaluate,
)
from kg_retrievers.errors import InvalidArgumentError

X = Unknown("x")
GRAPH = KnowledgeGraph.from_triples(
    [
        ("Her", "directed_by", "Spike Jonze"),
        ("Her", "starring", "Amy Adams"),
        ("Adaptation", "directed_by", "Spike Jonze"),
        ("Arrival", "starring", "Amy Adams"),
    ]
)
INDEX = GraphIndex.build(GRAPH, HashedEmbeddings())
DIRECTED = Pattern.of(("Her", "directed_by", X), target="x")
HER = Question("Who directed Her?", seed_entities=("Her",), answers=("Spike Jonze",), pattern=DIRECTED)


def generating(pattern: Pattern) -> SimGRAGRetriever:
    generator: Any = RunnableLambda(lambda _: pattern)
    return SimGRAGRetriever.from_index(INDEX, pattern_generator=generator)


def test_a_pattern_without_evidence_is_kept() -> None:
    nowhere = generating(Pattern.of(("Her", "directed_by", X), (X, "composer", "Zzz"), target="x"))
    record = evaluate(nowhere.model_copy(update={"max_distance": 0.01}), [HER]).records[0]
    assert (record["triples"], record["pattern"] is not None) == (0, True)


@pytest.mark.parametrize(
    ("written", "question", "is_right"),
    [
        (["Spike Jonze"], HER, True),
        (["Amy Adams"], HER, False),
        ([], HER, False),
        (["Her"], Question("Who?", answerable=False), False),
        ([], Question("Who?", answerable=False), True),
    ],
)
def test_the_words_of_an_answerer_decide(written: list[str], question: Question, is_right: bool) -> None:
    answerer: Any = RunnableLambda(lambda _: written)
    report = evaluate(generating(DIRECTED), [question], answerer=answerer)
    assert [one["id"] for one in report.failures] == ([] if is_right else ["1"])


def test_compare_tells_the_words_of_an_answerer() -> None:
    answerer: Any = RunnableLambda(lambda _: ["Amy Adams", "Her"])
    found = compare([evaluate(generating(DIRECTED), [HER], answerer=answerer, method="m")])
    assert " Got: Spike Jonze. Written: Amy Adams; Her." in found.failures["m"][0]
    assert "Failures of m:" in str(found)


# --- groups and sizes -------------------------------------------------------------------------------------------------


def named(number: int, gold: int, kind: str | None = None) -> Question:
    names = ("Her", "Adaptation", "Arrival")[:number]
    answers = ("Spike Jonze", *(f"person {position}" for position in range(gold)))[:gold]
    return Question(f"q {number} {gold}", seed_entities=names, answers=answers, kind=kind)


def test_questions_in_groups() -> None:
    retriever = NeighborhoodRetriever.from_index(INDEX)
    questions = [named(1, 12, "b"), named(2, 4, "a"), named(3, 1), named(1, 5, "b"), named(1, 2, "a"), named(1, 9)]
    report = evaluate(retriever, questions)

    def sizes(by: Any) -> dict[str, int]:
        return {name: part["questions"] for name, part in report.by(by).items()}

    assert sizes("seed_entities") == {"1": 4, "2+": 2}
    assert list(sizes("answers").items()) == [("1", 1), ("2-4", 2), ("5-9", 2), ("10+", 1)]
    assert list(sizes("kind").items()) == [("a", 2), ("b", 2), ("unknown", 2)]
    assert report.by("hops") == report.by_hops
    part = report.by("answers")["2-4"]
    assert part["answer_recall"] == pytest.approx((1 / 4 + 1 / 2) / 2)
    assert part["coverage"] == 1
    written = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert list(written["by"]) == ["kind", "seed_entities", "answers"]
    assert written["by"]["answers"]["2-4"] == part
    with pytest.raises(InvalidArgumentError, match="grouped: wanted one of hops, kind, seed_entities, answers, but"):
        report.by("topics")  # type: ignore[arg-type]


def test_a_table_by_groups() -> None:
    report = evaluate(NeighborhoodRetriever.from_index(INDEX), [named(1, 2), named(2, 1)], method="m")
    found = compare([report], by="seed_entities")
    assert found.columns[:2] == ("method", "seed entities")
    assert [row[1] for row in found.rows] == ["all", "1", "2+"]


def test_ranked_answers() -> None:
    many = [Triple("Her", "starring", f"person {number}") for number in range(12)]
    index = GraphIndex.build(KnowledgeGraph.from_triples(many), HashedEmbeddings())
    pattern = Pattern.of(("Her", "starring", X), target="x")
    generator: Any = RunnableLambda(lambda _: pattern)
    retriever = SimGRAGRetriever.from_index(index, pattern_generator=generator)
    (answers,) = (
        record["answers"] for record in evaluate(retriever, [Question("Who?", answers=("person 0",))]).records
    )
    assert len(answers) == 12
    for position, first, ten in ((0, 1, 1), (9, 0, 1), (10, 0, 0)):
        metrics = evaluate(retriever, [Question("Who?", answers=(answers[position],))]).metrics
        assert (metrics["first_hit"], metrics["hits@10"], metrics["hit"]) == (first, ten, 1)
