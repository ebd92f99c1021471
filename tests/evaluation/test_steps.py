"""At which step a wrong question failed, and what groups questions are in."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda

from kg_retrievers import (
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    LLMCitedAnswerer,
    LLMPatternGenerator,
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
from kg_retrievers.evaluation.steps import STEPS, failed_step
from kg_retrievers.testing import ScriptedChatModel

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
STARRING = Pattern.of(("Her", "starring", X), target="x")
HER = Question("Who directed Her?", seed_entities=("Her",), answers=("Spike Jonze",), pattern=DIRECTED)


# --- steps ------------------------------------------------------------------------------------------------------------


def generating(pattern: Pattern) -> SimGRAGRetriever:
    generator: Any = RunnableLambda(lambda _: pattern)
    return SimGRAGRetriever.from_index(INDEX, pattern_generator=generator)


def step(retriever: Any, question: Question, **more: Any) -> str | None:
    report = evaluate(retriever, [question], **more)
    (record,) = report.records
    found = failed_step(record, report.metrics["hit"] is not None)
    assert report.steps == {name: int(name == found) for name in STEPS}
    assert [one["id"] for one in report.failures] == ([] if found is None else ["1"])
    return found


def writing(*answers: str) -> Any:
    return RunnableLambda(lambda _: [*answers])


def test_what_is_right_fails_nowhere() -> None:
    assert step(generating(DIRECTED), HER) is None
    assert step(generating(DIRECTED), HER, answerer=writing("Spike Jonze")) is None


def test_an_entity_is_not_linked() -> None:
    linking = NeighborhoodRetriever.from_index(INDEX, max_hops=1)
    adaptation = Question("Who made Adaptation?", seed_entities=("Her",), answers=("Amy Adams",))
    assert step(linking, adaptation, topic="linked", answerer=writing("Spike Jonze")) == "linking"
    assert evaluate(linking, [adaptation], topic="linked").records[0]["linked"] == ["Adaptation"]
    nobody = Question("Who made Xyzzyplugh?", answers=("Amy Adams",))
    assert step(linking, nobody, topic="linked") == "linking"
    given = evaluate(linking, [adaptation]).records[0]
    assert given["linked"] is None  # so nothing is said of linking


def test_a_question_is_not_understood() -> None:
    unsure = SimGRAGRetriever.from_index(INDEX, min_confidence=1.0)
    vague = Question("Would you call it green?", seed_entities=("Her",), answers=("Spike Jonze",))
    assert step(unsure, vague) == "pattern"
    unread = SimGRAGRetriever.from_index(INDEX, llm=ScriptedChatModel(replies=["no pattern"] * 4))
    unread = unread.model_copy(
        update={"pattern_generator": LLMPatternGenerator(ScriptedChatModel(replies=["no pattern"] * 4))}
    )
    assert step(unread, HER) == "pattern"


def test_a_pattern_without_evidence_is_kept() -> None:
    nowhere = generating(Pattern.of(("Her", "directed_by", X), (X, "composer", "Zzz"), target="x"))
    far = nowhere.model_copy(update={"max_distance": 0.01})
    assert step(far, HER) == "search"
    record = evaluate(far, [HER]).records[0]
    assert (record["triples"], record["pattern"] is not None) == (0, True)


def test_the_evidence_lacks_the_answer() -> None:
    question = Question("Who starred in Her?", seed_entities=("Her",), answers=("Arrival",), pattern=STARRING)
    assert step(generating(STARRING), question) == "search"
    assert step(generating(STARRING), question, answerer=writing("Amy Adams")) == "search"
    assert step(generating(STARRING), Question("Who?", answerable=False)) == "search"


def test_the_answer_is_wrong_though_the_evidence_holds_it() -> None:
    assert step(generating(DIRECTED), HER, answerer=writing("Amy Adams")) == "answer"
    assert step(generating(DIRECTED), HER, answerer=writing()) == "answer"
    assert step(generating(DIRECTED), Question("Who?", answerable=False), answerer=writing("Her")) == "answer"
    near = NeighborhoodRetriever.from_index(INDEX)
    assert (
        step(near, Question("Her", seed_entities=("Her",), answers=("Spike Jonze",)), answerer=writing("x")) == "answer"
    )
    unreadable = LLMCitedAnswerer(ScriptedChatModel(replies=["no JSON"] * 4))
    assert step(generating(STARRING), HER, answerer=unreadable) == "answer"
    verdict = Question("Is Her a film?", seed_entities=("Her",), answers=("true",))
    with pytest.warns(UserWarning, match="holds no gold answer"):
        assert step(near, verdict, answerer=writing("false")) == "answer"  # no entity of the graph says it


def test_compare_tells_steps_and_what_was_written() -> None:
    report = evaluate(generating(DIRECTED), [HER], answerer=writing("Amy Adams", "Her"), method="m")
    found = compare([report])
    assert found.failures["m"][0].endswith("Failed at: answer.")
    assert " Got: Spike Jonze. Written: Amy Adams; Her. " in found.failures["m"][0]
    assert "Failures of m (1 at answer):" in str(found)
    assert found.steps == {"m": {"linking": 0, "pattern": 0, "search": 0, "answer": 1}}


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


def test_a_table_by_groups_with_more_figures() -> None:
    report = evaluate(NeighborhoodRetriever.from_index(INDEX), [named(1, 2), named(2, 1)], method="m")
    found = compare([report], by="seed_entities", figures=["coverage", "tokens_median", "coverage", "answer_recall"])
    assert found.columns[:2] == ("method", "seed entities")
    assert found.columns[-2:] == ("coverage", "tokens median")  # the recall is there anyway
    assert [row[1] for row in found.rows] == ["all", "1", "2+"]
    assert found.rows[0][-2] == "1.000"
    with pytest.raises(InvalidArgumentError, match="compare: there is no figure 'coverge'; did you mean 'coverage'"):
        compare([report], figures=["coverge"])
    with pytest.raises(InvalidArgumentError, match="there is no figure 'q'; wanted one of compared, hit, "):
        compare([report], figures=["q"])


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
