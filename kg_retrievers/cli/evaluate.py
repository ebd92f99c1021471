"""The commands `evaluate` and `compare`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import kg_retrievers
from kg_retrievers.cli import options, sources
from kg_retrievers.cli.options import option
from kg_retrievers.cli.show import message, note, on_terminal, show_comparison, status
from kg_retrievers.cli.sources import Source
from kg_retrievers.errors import FileFormatError, InvalidArgumentError, KGRetrieversError, MissingExtraError
from kg_retrievers.file_writing import raise_write_errors, write_file
from kg_retrievers.methods import registry
from kg_retrievers.methods.registry import GRAPH_PROMPT, Method
from kg_retrievers.serving.loading import SavedModel, build_retriever, load_llm, model_of

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable

    from kg_retrievers.core.retriever import BaseKGRetriever
    from kg_retrievers.database.executor import Executor
    from kg_retrievers.datasets import Question
    from kg_retrievers.evaluation import Comparison, Report
    from kg_retrievers.index import GraphIndex

#: The exit code if no gold answer is an entity of the graph or a value.
UNMATCHED = 1

#: Stands for every method that can be built from the options.
ALL = "all"

By = Annotated[
    Literal["hops", "kind", "seed_entities", "answers"],
    option("FIELD", "hops, kind, seed_entities or answers.", panel=options.ADVANCED),
]
Output = Annotated[str | None, option("FILE", "Write the figures as JSON.", parser=options.new_file)]


@dataclass(frozen=True, kw_only=True)
class Task:
    """The questions of a measurement, their graph, and the settings that methods get."""

    asked: options.QuestionSet
    given: options.Given
    unanswerable: Annotated[int | None, option("N", "Add questions without an answer.", min=1)] = None
    topic: Annotated[
        Literal["given", "linked"], option("WHICH", "Are question entities given?", panel=options.ADVANCED)
    ] = "given"
    k: options.K = None
    field: options.Field = field(default_factory=list)
    embedding_cache: options.EmbeddingCache = None
    workers: options.Workers = None
    reading: options.Reading
    connection: options.Connection
    embeddings: options.Embeddings = None

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the retrievers."""
        fields = options.field_values(self.field, "max_tokens=150", options.TAKEN_FIELDS)
        return fields if self.k is None else fields | {"k": self.k}

    @property
    def source(self) -> Source:
        """The graph, if the questions have one graph."""
        return Source(str(self.asked.graph), self.reading, self.embeddings, self.connection)


def evaluate(
    data: Annotated[str, option("FILE_OR_FOLDER", "The questions.")],
    task: Task,
    method: options.Method = None,
    records: Annotated[str | None, option("FILE", "Keep the results, or go on.", parser=options.new_file)] = None,
    by: By = "hops",
    output: Output = None,
    as_json: options.Json = False,
) -> int:
    """Measure a method on questions whose answers are known.

    Example: kg-retrievers evaluate --graph films.csv --data asked.jsonl
    """
    fields = task.fields
    chosen, model, prompt = sources.load_models(task.given.model, method)
    sources.check_database(chosen, task.given.database)
    with ExitStack() as at_end:
        models = {} if model is None else {chosen.name: model}
        measurement = _read(data, task, models, prompt, at_end)
        report = measurement.run(chosen, measurement.build(chosen, fields), records)
    _write(report.to_dict(), kg_retrievers.compare([report], failures=0, by=by), output, as_json)
    return _code([report])


def compare(
    task: Task,
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="[RECORDS]...", help="Files of records that `evaluate` wrote.")
    ] = None,
    data: Annotated[str | None, option("FILE_OR_FOLDER", "The questions.")] = None,
    method: Annotated[list[str], option("NAME", "all, or as `evaluate`. Repeatable.")] = [],
    records: Annotated[str | None, option("FOLDER", "Keep the results, or go on.")] = None,
    failures: Annotated[int, option("N", "Failures to show (default: 10).", min=0)] = 10,
    by: By = "hops",
    output: Output = None,
    as_json: options.Json = False,
) -> int:
    """Put several methods, or earlier runs, side by side.

    Example: kg-retrievers compare one.jsonl two.jsonl
    """
    try:
        earlier = [kg_retrievers.Report.read(path) for path in runs or ()]
    except FileFormatError as error:
        error.hint_shell = "To run methods: --graph GRAPH --data FILE_OR_FOLDER --method NAME."
        raise
    measured: list[Report] = []
    if method:
        if data is None:
            raise InvalidArgumentError("to run methods, --data must be given. See: kg-retrievers compare --help")
        every = registry.METHODS
        chosen = [one for name in method for one in (every if name == ALL else [registry.find_method(name)])]
        if records is not None:
            with raise_write_errors(records):
                Path(records).mkdir(parents=True, exist_ok=True)
        models, prompt = sources.read_trained(task.given.model)
        with ExitStack() as at_end:
            measurement = _read(data, task, models, prompt, at_end)
            for one, retriever in _build_all(measurement, list(dict.fromkeys(chosen))):
                measured.append(measurement.run(one, retriever, records and f"{records}/{one.name}.jsonl"))
    elif not earlier:
        raise InvalidArgumentError("name files of records, or methods to run: --method ... --method ...")
    names = Counter(report.method for report in (*earlier, *measured))
    reports = [
        replace(report, method=f"{report.method} ({path})") if names[report.method] > 1 else report
        for report, path in zip(earlier, runs or (), strict=True)
    ] + measured
    found = kg_retrievers.compare(reports, failures=failures, by=by)
    texts = {name: list(failed) for name, failed in found.failures.items()}
    _write({"runs": [report.to_dict() for report in reports], "failures": texts}, found, output, as_json)
    return _code(measured)


def _code(reports: Sequence[Report]) -> int:
    """Return 1 if no gold answer could be matched with the graph, so that the figures say nothing."""
    lost = [one.unmatched for one in reports if one.unmatched]
    return UNMATCHED if any(one["unmatched"] == one["gold_answers"] for one in lost) else 0


def _write(figures: dict[str, Any], found: Comparison, output: str | None, as_json: bool) -> None:
    """Write the figures to a file, and print them as JSON or as a table."""
    text = json.dumps(figures, indent=2)
    if output is not None:
        write_file(output, text + "\n")
    if as_json:
        print(text, flush=True)
    else:
        show_comparison(found)


# --- the methods of a comparison --------------------------------------------------------------------------------------


def _build_all(measurement: Measurement, chosen: Sequence[Method]) -> list[tuple[Method, BaseKGRetriever]]:
    """Build the retrievers before the first is measured, and note which methods cannot be built.

    Raises:
        InvalidArgumentError: If none of them can be built, or
        MissingExtraError: if what is missing is an optional package.
    """
    compared = {method.name for method in chosen}
    for name, saved in measurement.models.items():
        if name not in compared:
            note(f"the model in {saved.folder} is left out: {name} is not compared")
    built: list[tuple[Method, BaseKGRetriever]] = []
    refused: dict[str, Exception] = {}
    for method in chosen:
        try:
            built.append((method, measurement.build(method, measurement.task.fields)))
        except (InvalidArgumentError, MissingExtraError) as error:
            refused[method.name] = error
    if not built:
        raise next(iter(refused.values()))
    for name, reason in refused.items():
        note(f"{name} is left out: {message(reason)}")
    return built


# --- one measurement --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measurement:
    """Questions over a graph, and the objects that methods are built from.

    Attributes:
        task: The options.
        index: The indexed graph.
        questions: The questions with known answers.
        examples: The labelled questions, if some are given.
        llm: The language model, if one is given.
        executor: Returns the database for queries; None if each question has a graph of its own.
        kept: The settings that records keep.
        models: The trained models of methods, by the names of these.
        prompt: The graph prompt, if one is given, and what answers with it.
    """

    task: Task
    index: GraphIndex
    questions: Sequence[Question]
    examples: Sequence[Question] | None
    llm: BaseChatModel | None
    executor: Callable[[], Executor] | None
    kept: dict[str, Any]
    models: Mapping[str, SavedModel]
    prompt: tuple[SavedModel, Runnable[Any, Any]] | None

    def build(self, method: Method, fields: Mapping[str, Any]) -> BaseKGRetriever:
        """Build the retriever of a method."""
        return build_retriever(
            method,
            self.index,
            fields,
            llm=self.llm,
            examples=self.examples if method.labels else None,
            model=model_of(method, self.models),
            executor=self.executor,
            preset=self.task.given.preset,
        )

    def run(self, method: Method, retriever: BaseKGRetriever, records: str | Path | None) -> Report:
        """Ask a method all questions."""
        begun = records is not None and Path(records).is_file()
        try:
            with options.open_workers(self.task.workers) as workers:
                report = kg_retrievers.evaluate(
                    retriever,
                    self.questions,
                    answerer=self._answerer(),
                    topic=self.task.topic,
                    method=method.name,
                    seed=self.task.asked.seed,
                    settings=self.kept | self._kept_of(method),
                    records=records,
                    embedding_cache=self.task.embedding_cache,
                    progress=on_terminal(),
                    workers=workers,
                )
        except BaseException as error:
            if records and Path(records).is_file() and not isinstance(error, KGRetrieversError):
                note(f"what was measured is in {records}; the same command goes on from there")
            raise
        if begun:
            note(f"what was measured before was taken from {records}")
        return report

    def _kept_of(self, method: Method) -> dict[str, Any]:
        """Return the settings of a method that records keep."""
        saved = model_of(method, self.models)
        model: Any = saved.weights if saved else None
        if self.prompt is not None:
            model = ({method.name: model} if model else {}) | {GRAPH_PROMPT.name: self.prompt[0].weights}
        return {
            "examples": self.kept["examples"] if method.labels else None,
            "model": model,
            "database": self.kept["database"] if method.runs_queries else None,
        }

    def _answerer(self) -> Runnable[Any, Any] | None:
        """Return what answers from the evidence; None if nothing does."""
        if self.prompt is not None:
            return self.prompt[1]
        return None if self.llm is None else kg_retrievers.LLMCitedAnswerer(self.llm)


def _read(
    data: str, task: Task, models: Mapping[str, SavedModel], prompt: SavedModel | None, at_end: ExitStack
) -> Measurement:
    """Read the files, load the language model and open the database that the options name, until the end."""
    from kg_retrievers.evaluation.identity import digest

    asked, given, connection, source = task.asked, task.given, task.connection, task.source
    of_graph: dict[str, Any] = {"--database": given.database, "--connect": connection.connect}
    of_graph |= {"--vectors": connection.vectors, "--max-facts": connection.max_facts}
    asked.check_graph(task.reading, of_graph | {"--unanswerable": task.unanswerable})
    split = asked.split or ("dev" if asked.format == "metaqa" else None)
    with status(f"reading {data}"):
        questions = asked.read(data, split, asked.limit)
        examples, dropped = _examples(asked, given.examples, questions)
    with status("loading the language model"):
        llm = load_llm(given.llm)
    has_one_graph = asked.graph is not None and not asked.have_graphs
    if has_one_graph:
        index = sources.read_index(source, given.database)
    else:
        index = sources.index_of_graphs(asked, task.embeddings, task.embedding_cache, questions, examples)
    if task.unanswerable:
        if index.is_connected:
            raise InvalidArgumentError(
                "--unanswerable is for a graph that is read, but this one stays in its database. Leave it out."
            )
        with status("making unanswerable questions"):
            questions += kg_retrievers.unanswerable_questions(
                questions, index.graph, task.unanswerable, seed=asked.seed
            )
    kept = {
        **asdict(asked),
        "data": data,
        "split": split,
        "unanswerable": task.unanswerable,
        "llm": given.llm,
        "field": task.fields,
        "preset": given.preset,
        "vectors": connection.vectors,
        "max_facts": connection.max_facts,
        "database": sources.query_place(source, given.database),
        "examples": None,
    }
    if examples is not None:
        rows = [json.dumps(question.to_dict()) for question in examples]
        about = {"data": given.examples, "given": len(examples), "dropped": dropped}
        kept["examples"] = about | {"digest": digest(rows)}
    opening = sources.query_database(source, given.database, index) if has_one_graph else nullcontext()
    executor = at_end.enter_context(opening)
    by_prompt = None if prompt is None else (prompt, sources.load_answerer(prompt, index))
    return Measurement(task, index, questions, examples, llm, executor, kept, models, by_prompt)


def _examples(
    asked: options.QuestionSet, path: str | None, questions: Sequence[Question]
) -> tuple[list[Question] | None, int]:
    """Return the labelled questions without the measured ones, and how many were dropped."""
    if path is None:
        return None, 0
    labelled = asked.read_part(path, "train")
    measured = {_folded(question.text) for question in questions}
    kept = [question for question in labelled if _folded(question.text) not in measured]
    if not kept:
        raise InvalidArgumentError(
            f"all of the {len(labelled)} examples are among the questions that are measured. Measure fewer with "
            "--limit, or name other examples."
        )
    return kept, len(labelled) - len(kept)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
