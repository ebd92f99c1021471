"""Measurements: the questions, what the methods get, and each method built and asked."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import kg_retrievers
from kg_retrievers.cli.methods import load_answerer, share_examples
from kg_retrievers.cli.options import (
    ADVANCED,
    TAKEN_FIELDS,
    Connection,
    Embedded,
    EmbeddingCache,
    Field,
    Given,
    K,
    QuestionSet,
    Reading,
    Workers,
    field_values,
    open_workers,
    option,
    positive,
)
from kg_retrievers.cli.show import announce_compilation, note, on_terminal, status
from kg_retrievers.cli.sources import QueryDatabase, Source, embeddings_of, read_index
from kg_retrievers.errors import InvalidArgumentError, KGRetrieversError, did_you_mean
from kg_retrievers.methods import registry
from kg_retrievers.methods.registry import GRAPH_PROMPT, Method
from kg_retrievers.serving.loading import SavedModel, build_retriever, load_llm

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable

    from kg_retrievers.core.retriever import BaseKGRetriever
    from kg_retrievers.datasets import Question
    from kg_retrievers.evaluation import Report
    from kg_retrievers.index import GraphIndex

#: The sources that may follow the name of a method; without one, it gets all sources that are given.
SOURCES = ("plain", "examples", "llm")


@dataclass(frozen=True)
class Measured:
    """The options of a measurement."""

    questions: QuestionSet
    given: Given
    reading: Reading
    embedded: Embedded
    connection: Connection
    settings: MeasuredWith
    data: str

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the retrievers."""
        return field_values(self.settings.field, "max_distance=0.5", TAKEN_FIELDS)

    @property
    def source(self) -> Source:
        """The graph."""
        return Source(str(self.questions.graph), self.reading, self.embedded, self.connection)


@dataclass(frozen=True)
class MeasuredWith:
    """What a measurement counts, and what methods get in it."""

    unanswerable: Annotated[int | None, option("N", "Add questions without an answer.", parser=positive)] = None
    topic: Annotated[
        Literal["given", "linked"],
        option("WHICH", "Are question entities given?", panel=ADVANCED),
    ] = "given"
    k: K = None
    field: Field = field(default_factory=list)
    examples_split: Annotated[str | None, option("NAME", "The part of --examples.", panel=ADVANCED)] = None
    answers: Annotated[
        Literal["cited", "prompt", "verdict"] | None,
        option("FORM", "cited (default), prompt or verdict.", panel=ADVANCED),
    ] = None
    embedding_cache: EmbeddingCache = None
    workers: Workers = None


@dataclass(frozen=True)
class Choice:
    """A method, or several whose evidence is fused, and the one of `SOURCES` that it gets; by default all of them."""

    methods: tuple[Method, ...]
    source: str = ""

    @classmethod
    def of(cls, text: str) -> Self:
        """Read a name such as "simgrag+g-retriever:examples".

        Raises:
            InvalidArgumentError: If there is no such method or source.
        """
        names, colon, source = text.partition(":")
        if colon and source not in SOURCES:
            wanted = " or ".join(f":{name}" for name in SOURCES)
            near = did_you_mean(source, SOURCES) or f"wanted {wanted}."
            raise InvalidArgumentError(f"--method: a method is not given {source!r}, as in {text!r}; {near}")
        return cls(registry.find_methods(names), source)

    @property
    def name(self) -> str:
        """The name, as it was written."""
        return registry.joined_names(self.methods) + (f":{self.source}" if self.source else "")


@dataclass(frozen=True)
class BuiltMethod:
    """A retriever, and the objects that it was built from.

    Attributes:
        choice: The method and its source.
        retriever: The retriever.
        answerer: What answers from the evidence, if something does.
        settings: What records keep of it.
        made_of: What determines its results.
    """

    choice: Choice
    retriever: BaseKGRetriever
    answerer: Runnable[Any, Any] | None
    settings: dict[str, Any]
    made_of: tuple[object, ...]


@dataclass(frozen=True)
class Measurement:
    """Questions over a graph, and the objects that methods are built from.

    Attributes:
        options: The options.
        index: The indexed graph.
        questions: The questions with known answers.
        examples: The labelled questions, if some are given.
        llm: The language model, if one is given.
        models: The trained models of methods, by the names of these.
        prompt: The graph prompt, if one is given.
        answerer: Answers from evidence with the graph prompt.
        database: The database for queries.
        settings: The settings that records keep.
    """

    options: Measured
    index: GraphIndex
    questions: Sequence[Question]
    examples: Sequence[Question] | None
    llm: BaseChatModel | None
    models: Mapping[str, SavedModel]
    prompt: SavedModel | None
    answerer: Runnable[Any, list[str]] | None
    database: QueryDatabase
    settings: dict[str, Any]

    @property
    def sources(self) -> list[str]:
        """The sources of `SOURCES` that are given."""
        given = {"plain": True, "examples": self.examples is not None, "llm": self.llm is not None}
        return [source for source in SOURCES if given[source]]

    def build(self, choice: Choice, fields: Mapping[str, Any], preset: str | None) -> BuiltMethod:
        """Build a method, or the union of several, each from the sources that it can use.

        Args:
            choice: The method.
            fields: The fields of its retriever.
            preset: The preset of its retriever.

        Raises:
            InvalidArgumentError: If it cannot be built from these, or its source is not given.
            MissingExtraError: If it needs a package that is not installed.
        """
        if choice.source and choice.source not in self.sources:
            raise InvalidArgumentError(f"the method {choice.name!r} needs --{choice.source}.")
        llm = self.llm if choice.source in ("", "llm") else None
        examples = self.examples if choice.source in ("", "examples") else None
        shared = share_examples(choice.methods, examples)
        models = {method.name: self.models[method.name] for method in choice.methods if method.name in self.models}
        retriever = build_retriever(
            choice.methods,
            self.index,
            fields,
            llm=llm,
            examples=shared,
            models=models,
            executor=None if _all_have_graphs(self.questions) else lambda: self.database.executor,
            preset=preset,
        )
        weights: dict[str, str] = {name: model.weights for name, model in models.items()}
        if self.prompt is not None:
            weights[GRAPH_PROMPT.name] = self.prompt.weights
        is_single = len(choice.methods) == 1 and self.prompt is None
        runs_queries = any(method.runs_queries for method in choice.methods)
        settings = {
            "llm": llm and self.settings["llm"],
            "examples": examples and shared and self.settings["examples"],
            "model": (weights.get(choice.methods[0].name) if is_single else weights) or None,
            "database": self.database.where if runs_queries else None,
        }
        answerer = self._answerer_of(retriever, llm)
        answers_by = self.answerer or llm
        return BuiltMethod(choice, retriever, answerer, settings, (type(retriever), dict(retriever), answers_by))

    def _answerer_of(self, retriever: BaseKGRetriever, llm: BaseChatModel | None) -> Runnable[Any, Any] | None:
        """Return what answers from the evidence, or without it; None if nothing does."""
        if llm is None or self.answerer is not None:
            return self.answerer
        answers = self.options.settings.answers or "cited"
        if answers == "cited":
            return kg_retrievers.LLMCitedAnswerer(llm)
        if answers == "verdict":
            from kg_retrievers.chains import FactVerifier  # not at the front door

            return FactVerifier(llm, otherwise="refuted")
        return kg_retrievers.llm_answerer(retriever.answer_prompt, llm)

    def run(self, built: BuiltMethod, records: str | Path | None) -> Report:
        """Ask a method all questions."""
        options = self.options
        begun = records is not None and Path(records).is_file()
        try:
            with announce_compilation(), warnings.catch_warnings(), open_workers(options.settings.workers) as workers:
                # This was noted when the data was read.
                warnings.filterwarnings("ignore", "evaluate: the graph holds no gold answer")
                report = kg_retrievers.evaluate(
                    built.retriever,
                    self.questions,
                    answerer=built.answerer,
                    topic=options.settings.topic,
                    method=built.choice.name,
                    seed=options.questions.seed,
                    settings=self.settings | built.settings,
                    records=records,
                    embedding_cache=options.settings.embedding_cache,
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


def read_measurement(options: Measured, models: Mapping[str, SavedModel], prompt: SavedModel | None) -> Measurement:
    """Read the files and load the language model that the options name; the trained models were read before."""
    from kg_retrievers.evaluation.evaluate import describe_lost_answers

    asked, given, settings, connection = options.questions, options.given, options.settings, options.connection
    if settings.answers and given.llm is None:
        raise InvalidArgumentError(
            "--answers says how --llm is asked. Name a language model, too: --llm provider:model, or leave it out."
        )
    of_graph: dict[str, Any] = {"--database": given.database, "--connect": connection.connect}
    of_graph |= {"--vectors": connection.vectors, "--max-facts": connection.max_facts}
    asked.check_graph(options.reading, of_graph | {"--unanswerable": settings.unanswerable})
    split = asked.split or ("dev" if asked.format == "metaqa" else None)
    with status(f"reading {options.data}"):
        questions = read_questions(options.data, asked, split, asked.limit)
        examples, dropped = _examples(options, questions, split)
    with status("loading the language model"):
        llm = load_llm(given.llm)
    source = None if asked.graph is None or asked.have_graphs else options.source
    if source is None:
        index = index_of_graphs(asked, options.embedded, settings.embedding_cache, questions, examples)
    else:
        index = read_index(source, given.database)
    if lost := describe_lost_answers(index, questions):
        note(lost)
    if settings.unanswerable:
        if index.is_connected:
            raise InvalidArgumentError(
                "--unanswerable is for a graph that is read, but this one stays in its database. Leave it out."
            )
        with status("making unanswerable questions"):
            questions += kg_retrievers.unanswerable_questions(
                questions, index.graph, settings.unanswerable, seed=asked.seed
            )
    return Measurement(
        options=options,
        index=index,
        questions=questions,
        examples=examples,
        llm=llm,
        models=models,
        prompt=prompt,
        answerer=load_answerer(prompt, index) if prompt else None,
        database=QueryDatabase(source, given.database, index),
        settings=_settings(options, source, split, examples, dropped),
    )


def read_questions(path: str, asked: QuestionSet, split: str | None, limit: int | None = None) -> list[Question]:
    """Read the questions of a file or folder."""
    return kg_retrievers.read_question_set(
        path, split=split, format=asked.format, only_hops=asked.hops, limit=limit, seed=asked.seed, **asked.graphs
    )


def _settings(
    options: Measured, source: Source | None, split: str | None, examples: Sequence[Question] | None, dropped: int
) -> dict[str, Any]:
    """Return the settings that records keep."""
    asked, given = options.questions, options.given
    settings: dict[str, Any] = {
        "graph": asked.graph,
        "data": options.data,
        "format": asked.format,
        "split": split,
        "hops": asked.hops,
        "limit": asked.limit,
        "unanswerable": options.settings.unanswerable,
        "llm": given.llm,
        "field": options.fields,
        "examples": None,
    }
    if given.preset:
        settings["preset"] = given.preset
    if source is not None and source.stays:
        settings |= {"vectors": options.connection.vectors, "max_facts": options.connection.max_facts}
    if examples is not None:
        rows = json.dumps([question.to_dict() for question in examples])
        settings["examples"] = {
            "data": given.examples,
            "split": options.settings.examples_split or split,
            "given": len(examples),
            "dropped": dropped,
            "digest": blake2b(rows.encode(), digest_size=16).hexdigest(),
        }
    return settings


def _examples(options: Measured, questions: Sequence[Question], split: str | None) -> tuple[list[Question] | None, int]:
    """Return the labelled questions without the measured ones, and how many were dropped."""
    path, settings = options.given.examples, options.settings
    if path is None:
        if settings.examples_split:
            raise InvalidArgumentError("--examples-split is a part of --examples. Give that, too.")
        return None, 0
    labelled = read_questions(path, options.questions, settings.examples_split or split)
    measured = {_folded(question.text) for question in questions}
    kept = [question for question in labelled if _folded(question.text) not in measured]
    if not kept:
        raise InvalidArgumentError(
            f"all of the {len(labelled)} examples are among the questions that are measured. Measure fewer with "
            "--limit, or name other examples: --examples-split."
        )
    return kept, len(labelled) - len(kept)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


# --- questions with a graph each --------------------------------------------------------------------------------------


def _all_have_graphs(questions: Iterable[Question]) -> bool:
    return all(isinstance(question, kg_retrievers.datasets.GraphQuestion) for question in questions)


def index_of_graphs(
    asked: QuestionSet,
    embedded: Embedded,
    cache: str | None,
    questions: Sequence[Any],
    examples: Sequence[Any] | None = None,
) -> GraphIndex:
    """Index the graph that a retriever is built on before it is moved to the graph of each question.

    That is the graph of the first question. If there are examples, it is all their graphs as one, from which they
    teach.

    Raises:
        InvalidArgumentError: If some question has no graph, so that one must be named.
    """
    if not questions or not _all_have_graphs(questions):
        raise InvalidArgumentError(f"--graph must name the graph that the questions of {asked.format} are about.")
    graph = kg_retrievers.datasets.join_graphs(examples) if examples else questions[0].graph
    return kg_retrievers.GraphIndex.build(
        graph, embeddings_of(embedded), cache=cache, progress=on_terminal() and bool(examples)
    )
