"""A retriever is asked many questions: what is measured, kept, continued and told."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest
from langchain_core.language_models import BaseLanguageModel
from langchain_core.prompts import BasePromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableLambda
from pydantic import Field

from kg_retrievers import (
    Evidence,
    ExtractiveAnswerer,
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    LLMCitedAnswerer,
    LLMPatternGenerator,
    Pattern,
    Question,
    SimGRAGRetriever,
    Triple,
    Unknown,
    compare,
    evaluate,
    llm_answerer,
)
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.core.stages import RetrievalState, Stage
from kg_retrievers.errors import (
    BudgetError,
    EntityLinkingError,
    FileFormatError,
    InvalidArgumentError,
    MissingExtraError,
    SearchBudgetError,
)
from kg_retrievers.evaluation import Report
from kg_retrievers.evaluation.records import read_records
from kg_retrievers.testing import ScriptedChatModel, tiny_graph

INDEX = GraphIndex.build(tiny_graph(), HashedEmbeddings())
SHORT = PromptTemplate.from_template("{question}\n{evidence}")
BY = Triple("Her", "directed_by", "Spike Jonze")
WRITTEN = Triple("Her", "written_by", "Spike Jonze")
OTHER = Triple("Adaptation", "directed_by", "Spike Jonze")
MIYAZAKI = Triple("Q155653", "directed_by", "Q55400")

Outcome = Sequence[Evidence] | Exception


class Scripted(BaseKGRetriever):
    """Finds what a script says, by the text of the question."""

    state_class: ClassVar[type] = RetrievalState
    script: dict[str, Any]
    calls_model: bool = False
    asked: list[dict[str, Any]] = Field(default_factory=list)

    @classmethod
    def from_index(
        cls,
        index: GraphIndex,
        *,
        llm: BaseLanguageModel[Any] | None = None,
        examples: Sequence[Question] | None = None,
        model: Any = None,
        **fields: Any,
    ) -> Self:
        return cls(index=index, **fields)

    @property
    def stages(self) -> tuple[Stage, ...]:
        return (Stage("look_up", RunnableLambda(self._look_up), ("answers", "documents"), self.calls_model),)

    @property
    def prompts(self) -> dict[str, BasePromptTemplate[Any]]:
        return {"answer": SHORT}

    @property
    def answer_prompt(self) -> BasePromptTemplate[Any]:
        return SHORT

    def _look_up(self, state: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(state)
        outcome = self.script[state["question"]]
        if isinstance(outcome, BaseException):
            raise outcome
        return {"answers": [], "documents": self.documents_from(outcome, state["k"])}


def scripted(script: Mapping[str, Any], **fields: Any) -> Scripted:
    return Scripted.from_index(INDEX, script=dict(script), **fields)


def found(*triples: Triple, answers: Sequence[str] = ("Spike Jonze",)) -> Evidence:
    return Evidence(triples, 1.0, tuple(answers))


HER = Question("Who directed Her?", seed_entities=("Her",), answers=("Spike Jonze",), triples=(BY,), kind="directors")
SPIRITED = Question("Who made Spirited Away?", answers=("Q55400",))
LOST = Question("Who made it?", answers=("David Lynch",))
NOBODY = Question("Who directed Xyzzy?", kind="absent entity", answerable=False)
COLOUR = Question("Which colour has Her?", answerable=False)
QUESTIONS = [HER, SPIRITED, LOST, NOBODY, COLOUR]
SCRIPT: dict[str, Outcome] = {
    HER.text: [found(BY, WRITTEN), found(OTHER)],
    SPIRITED.text: [found(MIYAZAKI, answers=("Q55400", "Q155653"))],
    LOST.text: SearchBudgetError("the search was cut short"),
    NOBODY.text: EntityLinkingError("no entity was found"),
    COLOUR.text: [found(BY)],
}


# --- what is measured -------------------------------------------------------------------------------------------------


def test_a_record_says_what_was_measured() -> None:
    retriever = scripted(SCRIPT, k=2)
    report = evaluate(retriever, QUESTIONS, method="scripted", seed=3, settings={"note": ("a", 1)})
    her, spirited, lost, nobody, colour = report.records
    assert her | {"latency_ms": 0} == {
        "id": "1",
        "question": HER.text,
        "hops": 1,
        "kind": "directors",
        "answerable": True,
        "gold": ["Spike Jonze"],
        "gold_value": None,
        "answers": ["Spike Jonze"],
        "value": None,
        "labels": {},
        "seed_entities": ["Her"],
        "triples": 3,
        "nodes": 3,
        "tokens": 17 + 10,  # two lines of 33 and 32 letters, one of 40
        "pattern": None,
        "prediction": None,
        "llm_calls": 0,
        "input_tokens": 0,
        "output_tokens": 0,
        "latency_ms": 0,
        "refused": False,
        "reason": None,
        "error": None,
        "metrics": her["metrics"],
    }
    assert her["metrics"]["hit"] == her["metrics"]["exact_match"] == her["metrics"]["triple_recall"] == 1
    assert spirited["labels"] == {"Q55400": "宮崎駿", "Q155653": "千と千尋の神隠し"}
    assert spirited["metrics"]["hits@1"] == 0.5
    assert (lost["error"], lost["refused"]) == ("SearchBudgetError: the search was cut short", False)
    assert lost["metrics"]["hit"] == 0
    assert (nobody["error"], nobody["refused"], nobody["reason"]) == (None, True, "no entity was found")
    assert (colour["refused"], colour["answers"], colour["metrics"]["hit"]) == (False, ["Spike Jonze"], None)
    assert all(record["latency_ms"] > 0 for record in report.records)
    assert (report.method, report.seed) == ("scripted", 3)
    assert report.settings["note"] == ["a", 1]
    assert report.settings["topic"] == "given"
    assert report.settings["retriever"] == "Scripted"
    assert report.settings["fields"]["k"] == 2
    assert report.metrics["abstention"] == 0.5
    assert report.metrics["false_refusals"] == 0
    assert report.metrics["errors"] == 0.2
    assert report.metrics["llm_calls_mean"] == 0
    assert list(report.by_hops) == ["1", "unknown"]
    json.dumps(report.to_dict(), allow_nan=False)


def test_topics_are_given_or_linked() -> None:
    for topic, expected in (("given", ["Her"]), ("linked", None)):
        retriever = scripted(SCRIPT)
        evaluate(retriever, [HER], topic=topic)  # type: ignore[arg-type]
        assert {json.dumps(state.get("seed_entities")) for state in retriever.asked} == {json.dumps(expected)}


def test_the_clock_runs_after_a_question_with_evidence() -> None:
    retriever = scripted(SCRIPT)
    evaluate(retriever, [NOBODY, LOST, HER, SPIRITED])
    asked = [state["question"] for state in retriever.asked]
    assert asked == [one.text for one in (NOBODY, LOST, HER, NOBODY, LOST, HER, SPIRITED)]
    costly = scripted(SCRIPT, calls_model=True)
    evaluate(costly, [HER, SPIRITED])
    assert len(costly.asked) == 2


def test_the_top_group_answers() -> None:
    """Documents of equal score are equally good, whichever comes first."""
    both = replace(SPIRITED, answers=("Q55400", "Her"))
    worse = Evidence((OTHER,), 0.5, ("Adaptation",))
    script = {both.text: [found(MIYAZAKI, answers=["Q55400"]), found(BY, answers=["Her", "Q55400"]), worse]}
    (record,) = evaluate(scripted(script, k=3), [both]).records
    assert record["answers"] == ["Q55400", "Her"]
    assert (record["metrics"]["exact_match"], record["triples"]) == (1, 3)
    (record,) = evaluate(scripted(script), [both]).records
    assert (record["answers"], record["metrics"]["recall"]) == (["Q55400"], 0.5)
    film = Question("What did Spike Jonze direct?", answers=("Adaptation", "Her"))
    for fields in ({"ties": "break"}, {"granularity": "triple"}):
        retriever = SimGRAGRetriever.from_index(INDEX, k=2, **fields)
        assert len({document.metadata["score"] for document in retriever.invoke(film.text)}) == 1
        assert evaluate(retriever, [film]).metrics["exact_match"] == 1


class Evidential(Scripted):
    """Proposes no answers."""

    proposes_answers: ClassVar[bool] = False


@pytest.mark.parametrize("kind", [Scripted, Evidential])
def test_a_retriever_says_whether_it_proposes_answers(kind: type[Scripted], tmp_path: Path) -> None:
    """The data cannot tell: here none proposes any, and there is evidence, or there is none."""
    for evidence in ([found(BY, answers=[])], []):
        path = tmp_path / f"{len(evidence)}.jsonl"
        report = evaluate(kind.from_index(INDEX, script={HER.text: evidence}), [HER], records=path)
        assert report.metrics["hit"] == (0 if kind is Scripted else None)
        assert report.metrics["answer_recall"] == len(evidence)
        assert report == Report.read(path)
        assert lines(path)[0]["proposes_answers"] == (kind is Scripted)


# --- answers in words -------------------------------------------------------------------------------------------------


def test_an_answerer_adds_figures_of_its_text() -> None:
    llm = ScriptedChatModel(replies=["It was Spike Jonze,\nI think.", "Nobody\nknows", " "])
    retriever = scripted(SCRIPT)
    report = evaluate(retriever, QUESTIONS, answerer=llm_answerer(SHORT, llm))
    predictions = [record["prediction"] for record in report.records]
    assert predictions == ["It was Spike Jonze,\nI think.", "Nobody\nknows", [], [], " "]
    assert [record["llm_calls"] for record in report.records] == [1, 1, 0, 0, 1]
    assert [record["refused"] for record in report.records] == [False, False, False, True, True]
    figures = {name: value for name, value in report.metrics.items() if name.startswith("text_")}
    assert figures == pytest.approx(
        {
            "text_accuracy": 1 / 3,
            "text_hit": 1 / 3,
            "text_hits@1": 1 / 3,
            "text_f1": 2 / 9,
            "text_precision": 1 / 6,
            "text_recall": 1 / 3,
        }
    )
    assert report.metrics["hit"] == 2 / 3
    assert report.metrics["abstention"] == 1
    assert report.metrics["llm_calls_mean"] == 3 / 5
    assert "Spike Jonze" in llm.prompts[0][0].text


def test_a_reply_with_a_list_of_answers_can_refuse() -> None:
    replies = [
        '{"explanation": "", "answers": ["宮崎駿", "Her"], "citations": [1]}',
        '{"answers": [], "explanation": "", "citations": []}',
    ]
    report = evaluate(
        scripted(SCRIPT), [SPIRITED, COLOUR], answerer=LLMCitedAnswerer(ScriptedChatModel(replies=[*replies]))
    )
    assert [record["prediction"] for record in report.records] == [["宮崎駿", "Her"], []]
    assert report.metrics["text_hit"] == 1  # by label, as a person reads it
    assert report.metrics["text_precision"] == 0.5
    assert report.metrics["abstention"] == 1
    assert report.settings["answerer"] == "LLMCitedAnswerer"


def test_an_answerer_may_fail_at_a_question() -> None:
    answerer = LLMCitedAnswerer(ScriptedChatModel(replies=["no JSON", "nor here"]))
    (record,) = evaluate(scripted(SCRIPT), [HER], answerer=answerer).records
    assert record["error"] is not None
    assert record["error"].startswith("AnswerParseError: ")
    assert (record["answers"], record["metrics"]["hit"]) == (["Spike Jonze"], 1)  # the retriever did its part
    assert (record["prediction"], record["metrics"]["text_hit"]) == ([], 0)


# --- records ----------------------------------------------------------------------------------------------------------


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_run_that_broke_off_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    questions = [HER, LOST, SPIRITED, NOBODY]
    broken = scripted({**SCRIPT, SPIRITED.text: ConnectionError("no network")})
    with pytest.raises(ConnectionError):
        evaluate(broken, questions, records=path)
    assert [line.get("id") for line in lines(path)] == [None, "1", "2"]
    path.write_bytes(path.read_bytes() + b'{"id": "3", "quest')  # as if it had been killed while it wrote
    assert len(Report.read(path).records) == 2
    corrected = scripted(SCRIPT)
    report = evaluate(corrected, questions, records=path)
    asked = [state["question"] for state in corrected.asked]
    assert asked == [SPIRITED.text, SPIRITED.text, NOBODY.text]
    assert [line.get("id") for line in lines(path)] == [None, "1", "2", "3", "4"]
    assert report == Report.read(path)
    whole = evaluate(scripted(SCRIPT), questions)
    for one, other in zip(report.records, whole.records, strict=True):
        assert one | {"latency_ms": 0} == other | {"latency_ms": 0}
    before = path.read_bytes()
    done = scripted(SCRIPT)
    assert evaluate(done, questions, records=path) == report
    assert (done.asked, path.read_bytes()) == ([], before)


@pytest.mark.parametrize("content", ["", '{"format": "kg-retr'])
def test_a_file_without_a_whole_first_line_is_begun_again(tmp_path: Path, content: str) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(content, "utf-8")
    evaluate(scripted(SCRIPT), [HER], records=path)
    assert [line.get("id") for line in lines(path)] == [None, "1"]


@pytest.mark.parametrize(
    ("questions", "fields", "arguments", "told"),
    [
        ([HER, SPIRITED], {}, {}, "settings.questions was '"),
        ([replace(HER, answers=("Her",))], {}, {}, "settings.questions was '"),
        ([HER], {"k": 2}, {}, "settings.fields.k was 1, and is 2"),
        ([HER], {}, {"topic": "linked"}, "settings.topic was 'given', and is 'linked'"),
        ([HER], {}, {"seed": 1}, "seed was 0, and is 1"),
        ([HER], {}, {"method": "other"}, "method was 'Scripted', and is 'other'"),
        ([HER], {}, {"settings": {"llm": "a:b"}}, "settings.llm was None, and is 'a:b'"),
        ([HER], {}, {"answerer": ExtractiveAnswerer()}, "settings.answerer was None, and is 'ExtractiveAnswerer'"),
    ],
)
def test_records_of_other_settings_are_refused(
    tmp_path: Path, questions: list[Question], fields: dict[str, Any], arguments: dict[str, Any], told: str
) -> None:
    path = tmp_path / "records.jsonl"
    evaluate(scripted(SCRIPT), [HER], records=path)
    before = path.read_bytes()
    with pytest.raises(InvalidArgumentError, match="a run with other settings") as caught:
        evaluate(scripted(SCRIPT, **fields), questions, records=path, **arguments)
    assert told in str(caught.value)
    assert "Name another file" in str(caught.value)
    assert path.read_bytes() == before


class Named(ScriptedChatModel):
    """A chat model with a name, and a key that no file may hold."""

    model_name: str
    key: str = "secret"


def labelled(text: str) -> list[Question]:
    return [Question(text, pattern=Pattern.of(("Her", "directed_by", Unknown("x")), target="x"))]


def by_llm(name: str) -> BaseKGRetriever:
    return SimGRAGRetriever.from_index(
        INDEX, pattern_generator=LLMPatternGenerator(Named(model_name=name, replies=lambda _: "{}"))
    )


def with_prompt(text: str) -> LLMCitedAnswerer:
    return LLMCitedAnswerer(Named(model_name="m", replies=[]), prompt=PromptTemplate.from_template(text))


def by_examples(text: str) -> BaseKGRetriever:
    return SimGRAGRetriever.from_index(INDEX, examples=labelled(text))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda which: (by_examples(f"{which} directed Her?"), None), "pattern_generator"),
        (lambda which: (by_llm(which), None), "pattern_generator"),
        (lambda which: (scripted(SCRIPT), LLMCitedAnswerer(Named(model_name=which, replies=[]))), "answerer"),
        (lambda which: (scripted(SCRIPT), llm_answerer(SHORT, Named(model_name=which, replies=[]))), "answerer"),
        (lambda which: (scripted(SCRIPT), with_prompt(which + " {question}{evidence}")), "answerer"),
        (lambda which: (scripted(SCRIPT), RunnableLambda(lambda _: which)), "answerer"),
    ],
)
def test_records_of_another_model_or_other_examples_are_refused(
    tmp_path: Path, make: Callable[[str], tuple[BaseKGRetriever, Any]], told: str
) -> None:
    path = tmp_path / "records.jsonl"
    for _ in range(2):
        retriever, answerer = make("who")
        evaluate(retriever, [NOBODY], answerer=answerer, records=path)
    evaluate(retriever, [NOBODY], answerer=answerer, records=path)  # also after it was used
    retriever, answerer = make("whoever")
    with pytest.raises(InvalidArgumentError, match=f"settings.parts.{told} was '"):
        evaluate(retriever, [NOBODY], answerer=answerer, records=path)
    assert b"secret" not in path.read_bytes()


@pytest.mark.parametrize(
    ("content", "line", "told"),
    [
        (b"my notes\n", None, "this is no file of records"),
        (b"my notes", None, "this is no file of records"),
        (b'{"format": "kg-retrievers records 0", "method": "m", "seed": 0, "settings": {}}\n', None, "no file of"),
        (b'{"question": "mine"}\n', None, "this is no file of records"),
        (b"\xff\xfe\n", None, "this is no file of records"),
        (b"[" * 100_000 + b"\n", None, "this is no file of records"),
        (b'HEADER\n{"id": "1"}\n', 2, "wanted the record of question 1, but got b'{"),
        (b"HEADER\nRECORD\nRECORD\n", 3, "wanted the record of question 2"),
        (b"HEADER\nRECORD\nhalf\nRECORD\n", 3, "wanted the record of question 2, but got b'half'"),
    ],
)
def test_another_file_is_left_alone(tmp_path: Path, content: bytes, line: int | None, told: str) -> None:
    path = tmp_path / "records.jsonl"
    evaluate(scripted(SCRIPT), [HER], records=path)
    header, record = path.read_bytes().splitlines()
    path.write_bytes(before := content.replace(b"HEADER", header).replace(b"RECORD", record))
    for read in (lambda: Report.read(path), lambda: evaluate(scripted(SCRIPT), [HER, SPIRITED], records=path)):
        with pytest.raises(FileFormatError, match="records") as caught:
            read()
        assert told in str(caught.value)
        assert caught.value.line == line
    assert path.read_bytes() == before


def test_records_that_cannot_be_kept(tmp_path: Path) -> None:
    for path, told in ((tmp_path, "cannot be read"), (tmp_path / "no folder" / "r.jsonl", "cannot be written")):
        with pytest.raises(FileFormatError, match=told):
            evaluate(scripted(SCRIPT), [HER], records=path)
    with pytest.raises(FileFormatError, match="No such file"):
        read_records(tmp_path / "none.jsonl")


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("questions", "arguments", "told"),
    [
        ([], {}, "a list of one Question or more, but got []"),
        (["Who?"], {}, "a list of one Question or more"),
        ("Who?", {}, "a list of one Question or more"),
        ([HER], {"topic": "Her"}, 'topic is "given" or "linked", but got \'Her\''),
        ([HER], {"settings": {"path": Path()}}, "the settings must be JSON-safe"),
        ([HER], {"answerer": 7}, "wanted an answerer or None"),
        ([HER], {"seed": -1}, "seed must be an integer of 0 or more, but got -1"),
        ([HER], {"seed": 1.5}, "seed must be an integer of 0 or more, but got 1.5"),
        ([HER], {"workers": 3}, "workers must be LocalWorkers(n), RayWorkers() or None, but got 3"),
        ([HER], {"method": 3}, "method must be a name or None, but got 3"),
        ([HER], {"settings": [1]}, "settings must be a mapping or None, but got [1]"),
        ([HER], {"records": 3}, "records must be a path or None, but got 3"),
        ([HER], {"embedding_cache": 3}, "embedding_cache must be a path or None, but got 3"),
    ],
)
def test_mistakes_are_reported_before_the_first_question(questions: Any, arguments: dict[str, Any], told: str) -> None:
    unasked = scripted({HER.text: ZeroDivisionError("asked")})
    with pytest.raises(InvalidArgumentError) as caught:
        evaluate(unasked, questions, **arguments)
    assert str(caught.value).startswith("evaluate: ")
    assert told in str(caught.value)


def test_a_reply_of_an_answerer_that_is_no_answer() -> None:
    with pytest.raises(InvalidArgumentError, match=r"^evaluate: the answerer must return a text"):
        evaluate(scripted(SCRIPT), [HER], answerer=RunnableLambda(lambda _: 7))


@pytest.mark.parametrize(
    "error",
    [InvalidArgumentError("misspelt"), MissingExtraError("x", "y"), BudgetError("used up"), ZeroDivisionError("bug")],
)
def test_what_is_wrong_with_the_run_ends_it(error: Exception) -> None:
    with pytest.raises(type(error)):
        evaluate(scripted({HER.text: error}), [HER])
    with pytest.raises(type(error)):
        evaluate(scripted(SCRIPT), [HER], answerer=RunnableLambda(lambda _: (_ for _ in ()).throw(error)))


# --- side by side -----------------------------------------------------------------------------------------------------


def test_runs_side_by_side() -> None:
    asked = [HER, SPIRITED, LOST, NOBODY, COLOUR]
    good = evaluate(scripted(SCRIPT), asked, method="good")
    refusing = scripted(dict.fromkeys(SCRIPT, EntityLinkingError("nothing")))
    silent = evaluate(refusing, asked, method="silent|*")
    found = compare([good, silent])
    assert found.columns[:5] == ("method", "hops", "n", "asked", "hit")
    assert "text hit" not in found.columns
    assert "LLM calls" not in found.columns
    cells = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
    assert [(row["method"], row["hops"], row["n"], row["asked"]) for row in cells] == [
        ("good", "all", "3", "5"),
        ("silent|*", "all", "3", "5"),
        ("good", "1", "1", "1"),
        ("silent|*", "1", "1", "1"),
        ("good", "unknown", "2", "4"),
        ("silent|*", "unknown", "2", "4"),
    ]
    assert "asked" not in compare([evaluate(scripted(SCRIPT), [HER])]).columns
    assert (cells[0]["hit"], cells[1]["hit"], cells[1]["±"]) == ("0.667", "0.000", "0.000")
    low, high = good.intervals["hit"] or (0, 0)
    assert cells[0]["±"] == f"{(high - low) / 2:.3f}" != "0.000"
    assert [row["abstention"] for row in cells] == ["0.500", "1.000", "-", "-", "0.500", "1.000"]
    assert cells[0]["triples"] == "0.8"
    assert found.failures["good"] == (
        '"Who made it?" Wanted: David Lynch. Got: an error: SearchBudgetError: the search was cut short.',
        '"Which colour has Her?" Wanted: no answer (unanswerable). Got: Spike Jonze.',
    )
    told = '"Who made Spirited Away?" Wanted: 宮崎駿. Got: a refusal: nothing.'
    assert found.failures["silent|*"][1] == told
    shown = str(found)
    assert shown == found._repr_markdown_()
    assert shown.splitlines()[1] == "|---" * len(found.columns) + "|"
    assert "| silent\\|\\* | all |" in shown
    assert "Failures of silent\\|\\*:" in shown
    assert "Failures of good:" in shown
    assert compare([good], failures=0).failures == {}
    assert str(compare([evaluate(scripted(SCRIPT), [HER])])).endswith("\n\nNo failures of Scripted.")


def test_failures_are_told_from_all_parts_of_a_run() -> None:
    questions = [Question(f"q{number}", answers=("Her",)) for number in range(100)]
    report = evaluate(scripted({one.text: [found(BY)] for one in questions}), questions)
    told = compare([report], failures=4).failures["Scripted"]
    assert [text.split()[0] for text in told] == ['"q0"', '"q25"', '"q50"', '"q75"']
    assert len(compare([report]).failures["Scripted"]) == 10
    assert len(compare([report], failures=1000).failures["Scripted"]) == 100


def test_a_failure_says_what_is_known() -> None:
    many = Question("Who?", answers=("Her", "Amélie", "Q55400", "Adaptation"))
    pattern = Pattern.of(("Her", "directed by", Unknown("x")), (Unknown("x"), Unknown("r"), "Q1"), target="x")
    details = {"pattern": pattern.to_dict()}
    evidence = Evidence((BY,), 1.0, ("Spike Jonze", "Q155653", "David Lynch", "Western"), details=details)
    bare = Question("What?", answers=("Adaptation",))
    script = {many.text: [evidence], bare.text: [found(BY, answers=[])], COLOUR.text: []}
    report = evaluate(scripted(script), [many, bare, replace(COLOUR, answerable=True, answers=("Her",))])
    first, second, third = compare([report]).failures["Scripted"]
    assert first == (
        '"Who?" Wanted: Her; Amélie; 宮崎駿 and 1 more. Got: Spike Jonze; 千と千尋の神隠し; David Lynch and 1 more. '
        "Pattern (given): Her -> directed by -> ?x; ?x -> ?r -> Q1."
    )
    assert second == '"What?" Wanted: Adaptation. Got: no answers, in evidence of 1 triple.'
    assert "Got: a refusal: Scripted: nothing in the graph fits the question" in third


def test_runs_that_cannot_be_compared() -> None:
    one, two = (evaluate(scripted(SCRIPT), [question], method=question.text) for question in (HER, SPIRITED))
    for reports, told in (
        ([], "wanted a list of one Report or more, but got []"),
        ([one, 3], "wanted a list of one Report or more, but got [Report("),
        ([one, one], "do not tell the runs apart"),
        ([one, two], "was asked 1 questions and Who made Spirited Away? 1, not the same ones"),
        ([one, replace(one, method="half", records=())], "Let both finish"),
    ):
        with pytest.raises(InvalidArgumentError, match="compare: ") as caught:
            compare(reports)
        assert told in str(caught.value)
    with pytest.raises(InvalidArgumentError, match="compare: failures must be an integer of 0 or more, but got -1"):
        compare([one], failures=-1)


# --- the published data -----------------------------------------------------------------------------------------------


def test_gold_answers_may_be_labels_and_counts() -> None:
    facts = [("p1", "directed", "f1"), ("p1", "directed", "f2"), ("f3", "running time", "2")]
    labels = {"p1": "Spike Jonze", "f1": "Her", "f2": "Adaptation", "f3": "Heat"}
    types = {"f1": ["film"], "f2": ["film"], "f3": ["film"]}
    index = GraphIndex.build(KnowledgeGraph.from_triples(facts, labels=labels, types=types))
    questions = [
        Question("Who directed Her?", answers=("Spike Jonze",)),
        Question("How many films did Spike Jonze direct?", answers=("2",)),  # "2" is an entity, too
        Question("Did Spike Jonze direct Her?", answers=("yes",)),
    ]
    report = evaluate(SimGRAGRetriever.from_index(index), questions)
    assert (report.metrics["hit"], report.metrics["exact_value"], report.unmatched) == (1.0, 1.0, {})


def test_gold_answers_that_match_nothing_are_counted() -> None:
    questions = [Question("Who directed Her?", answers=("Spike Jonze",)), Question("What?", answers=("Atlantis",))]
    with pytest.warns(UserWarning, match=r"^evaluate: 1 of 2 gold answers .*: 'Atlantis' \(of 'What\?'"):
        report = evaluate(SimGRAGRetriever.from_index(INDEX), questions)
    assert (report.unmatched["unmatched"], report.unmatched["gold_answers"]) == (1, 2)
    assert "Atlantis" in report.to_dict()["settings"]["unmatched"]["told"]
