"""The measurement that `evaluate` and `compare` make: questions over a graph, asked of one method after the other."""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from os import W_OK, access
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import kg_retrievers
from kg_retrievers.cli.connection import is_connected
from kg_retrievers.cli.database import QueryDatabase
from kg_retrievers.cli.graph_prompt import make_answerer
from kg_retrievers.cli.load import read_index, share_examples
from kg_retrievers.cli.own_graphs import (
    GRAPH_FORMATS,
    all_have_graphs,
    check_no_graph_options,
    first_index,
    graphs_file,
)
from kg_retrievers.cli.show import announce_compilation, note, on_terminal, status
from kg_retrievers.cli.workers import open_workers
from kg_retrievers.errors import InvalidArgumentError, KGRetrieversError, did_you_mean
from kg_retrievers.file_writing import write_file
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

#: The fields that `--field` refuses: other options set them, or a shell cannot write their values.
NAMED_BY_OPTIONS = ("index", "llm", "examples", "model", "k", "retrievers", "executor", "preset")


@dataclass(frozen=True)
class MethodChoice:
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
            raise InvalidArgumentError(f"a method is not given {source!r}, as in {text!r}; {near}")
        return cls(registry.find_methods(names), source)

    @property
    def name(self) -> str:
        """The name, as reports have it."""
        names = registry.joined_names(self.methods)
        return f"{names}:{self.source}" if self.source else names


@dataclass(frozen=True)
class Measurement:
    """Questions over a graph, and the objects that methods are built from.

    Attributes:
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


@dataclass(frozen=True)
class BuiltMethod:
    """A retriever, and the objects that it was built from.

    Attributes:
        choice: The method and its source.
        retriever: The retriever.
        llm: The language model that it got.
        examples: The labelled questions that it got.
        models: Its trained models by the names of their methods, with a graph prompt.
        answerer: Answers from evidence with the graph prompt.
    """

    choice: MethodChoice
    retriever: BaseKGRetriever
    llm: BaseChatModel | None
    examples: Sequence[Question] | None
    models: Mapping[str, SavedModel]
    answerer: Runnable[Any, list[str]] | None

    @property
    def answers_by(self) -> Runnable[Any, Any] | None:
        """The graph prompt, or else the language model, which answers from the evidence."""
        return self.llm if self.retriever.closed_book else self.answerer or self.llm

    def make_answerer(self, answers: str) -> Runnable[Any, Any] | None:
        """Return what answers from the evidence, or without it; None where nothing does.

        Args:
            answers: "cited" for answers with citations, "prompt" for those to the answer prompt of the method,
                "verdict" for whether a claim holds.
        """
        from kg_retrievers.chains import FactVerifier  # not at the front door

        closed_book = self.retriever.closed_book
        if self.llm is None or (self.answerer and not closed_book):
            return self.answerer
        if answers == "verdict" and not closed_book:
            return FactVerifier(self.llm, otherwise="refuted")
        if answers == "cited" and not closed_book:
            return kg_retrievers.LLMCitedAnswerer(self.llm)
        return kg_retrievers.llm_answerer(self.retriever.answer_prompt, self.llm, closed_book=closed_book)


def read_measurement(
    options: argparse.Namespace, models: Mapping[str, SavedModel], prompt: SavedModel | None
) -> Measurement:
    """Read the files and load the language model that the options name; the trained models were read before."""
    from kg_retrievers.evaluation.evaluate import describe_lost_answers

    own = options.format in GRAPH_FORMATS
    if own:
        check_no_graph_options(options)
    data = {"format": options.format, "only_hops": options.hops, **graphs_file(options)}
    drawn = {"limit": options.limit, "seed": options.seed}
    split = options.split or ("dev" if options.format == "metaqa" else None)
    with status(f"reading {options.data}"):
        questions = kg_retrievers.read_question_set(options.data, split=split, **data, **drawn)
        examples, dropped = _examples(options, questions, split, data)
    with status("loading the language model"):
        llm = load_llm(options.llm)
    index = first_index(options, questions, examples) if own or options.graph is None else read_index(options)
    if lost := describe_lost_answers(index, questions):
        note(lost)
    if options.unanswerable:
        if index.is_connected:
            raise InvalidArgumentError(
                "--unanswerable is for a graph that is read, but this one stays in its database. Leave it out."
            )
        with status("making unanswerable questions"):
            questions += kg_retrievers.unanswerable_questions(
                questions, index.graph, options.unanswerable, seed=options.seed
            )
    return Measurement(
        index=index,
        questions=questions,
        examples=examples,
        llm=llm,
        models=models,
        prompt=prompt,
        answerer=make_answerer(prompt, index) if prompt else None,
        database=QueryDatabase(options, index),
        settings=_settings(options, split, examples, dropped),
    )


def _settings(
    options: argparse.Namespace, split: str | None, examples: Sequence[Question] | None, dropped: int
) -> dict[str, Any]:
    """Return the settings that records keep."""
    settings = {
        "graph": options.graph,
        "data": options.data,
        "format": options.format,
        "split": split,
        "hops": options.hops,
        "limit": options.limit,
        "unanswerable": options.unanswerable,
        "llm": options.llm,
        "field": dict(options.field),
        "examples": None,
    }
    if options.preset:
        settings["preset"] = options.preset
    if is_connected(options):
        settings |= {"vectors": options.vectors, "max_facts": options.max_facts}
    if examples is not None:
        settings["examples"] = {
            "data": options.examples,
            "split": options.examples_split or split,
            "given": len(examples),
            "dropped": dropped,
            "digest": _digest(examples),
        }
    return settings


def _examples(
    options: argparse.Namespace, questions: Sequence[Question], split: str | None, data: dict[str, Any]
) -> tuple[list[Question] | None, int]:
    """Return the labelled questions without the measured ones, and how many were dropped."""
    if options.examples is None:
        if options.examples_split or options.examples_limit:
            flag = "--examples-split" if options.examples_split else "--examples-limit"
            raise InvalidArgumentError(f"{flag} says which part of --examples to take; give that, too.")
        return None, 0
    drawn = {"limit": options.examples_limit, "seed": options.seed}
    labelled = kg_retrievers.read_question_set(options.examples, split=options.examples_split or split, **data, **drawn)
    measured = {_folded(question.text) for question in questions}
    kept = [question for question in labelled if _folded(question.text) not in measured]
    if not kept:
        raise InvalidArgumentError(
            f"all of the {len(labelled)} examples are among the questions that are measured. Measure fewer with "
            "--limit, or name other examples: --examples-split."
        )
    return kept, len(labelled) - len(kept)


def _digest(questions: Sequence[Question]) -> str:
    """Return 32 hexadecimal digits that change with the questions."""
    rows = json.dumps([question.to_dict() for question in questions])
    return blake2b(rows.encode(), digest_size=16).hexdigest()


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def build_method(choice: MethodChoice, measurement: Measurement, options: argparse.Namespace) -> BuiltMethod:
    """Build a method, or the union of several, each from the sources that it can use."""
    if choice.source and choice.source not in measurement.sources:
        raise InvalidArgumentError(f"the method {choice.name!r} needs --{choice.source}.")
    llm = measurement.llm if choice.source in ("", "llm") else None
    examples = measurement.examples if choice.source in ("", "examples") else None
    shared = share_examples(choice.methods, examples)
    models = {
        method.name: measurement.models[method.name] for method in choice.methods if method.name in measurement.models
    }
    retriever = build_retriever(
        choice.methods,
        measurement.index,
        _fields_of(choice, options),
        llm=llm,
        examples=shared,
        models=models,
        executor=None if all_have_graphs(measurement.questions) else lambda: measurement.database.executor,
        preset=_preset_of(choice, options),
    )
    check_can_answer(retriever, llm)
    if measurement.prompt:
        models[GRAPH_PROMPT.name] = measurement.prompt
    return BuiltMethod(choice, retriever, llm, examples if shared else None, models, measurement.answerer)


def check_can_answer(retriever: BaseKGRetriever, llm: BaseChatModel | None) -> None:
    """Check that there is a language model where a retriever finds no evidence by design.

    Raises:
        InvalidArgumentError: If not.
    """
    if retriever.closed_book and llm is None:
        raise InvalidArgumentError(
            "the method none finds no evidence: a language model answers from what it knows.",
            hint_shell="Name one: --llm provider:model",
        )


def _fields_of(choice: MethodChoice, options: argparse.Namespace) -> dict[str, Any]:
    """Return the fields to set; `compare` drops those that other methods have and this one lacks."""
    fields = dict(options.field)
    if options.k is not None:
        fields["k"] = options.k
    if not fields or options.command != "compare":
        return fields
    of_others: set[str] = set()
    for method in (*registry.METHODS, *registry.BASELINES, registry.UNION):
        of_others |= method.load_retriever().model_fields.keys()
    own = registry.retriever_class(choice.methods).model_fields
    if missing := sorted(fields.keys() & of_others - own.keys()):
        note(f"{registry.joined_names(choice.methods)} has no field {', '.join(missing)}; it goes without")
    return {name: value for name, value in fields.items() if name not in missing}


def _preset_of(choice: MethodChoice, options: argparse.Namespace) -> str | None:
    """Return the preset to take; `compare` takes none for what lacks it."""
    preset: str | None = options.preset
    if preset is None or options.command != "compare":
        return preset
    lacking = [method.name for method in choice.methods if preset not in method.load_retriever().presets]
    if lacking:
        note(f"{', '.join(lacking)} has no preset {preset}; {choice.name} goes without")
    return None if lacking else preset


def run_method(
    built: BuiltMethod, measurement: Measurement, options: argparse.Namespace, records: str | Path | None
) -> Report:
    """Ask a method all questions."""
    runs_queries = any(method.runs_queries for method in built.choice.methods)
    used = {
        "llm": built.llm and measurement.settings["llm"],
        "examples": built.examples and measurement.settings["examples"],
        "model": _weights(built),
        "database": measurement.database.where if runs_queries else None,
    }
    begun = records and Path(records).is_file()
    try:
        with announce_compilation(), warnings.catch_warnings(), open_workers(options.workers) as workers:
            warnings.filterwarnings("ignore", "evaluate: the graph holds no gold answer")  # told when the data was read
            report = kg_retrievers.evaluate(
                built.retriever,
                measurement.questions,
                answerer=built.make_answerer(options.answers),
                topic=options.topic,
                method=built.choice.name,
                seed=options.seed,
                settings=measurement.settings | used,
                records=records,
                embedding_cache=options.embedding_cache,
                progress=on_terminal(),
                workers=workers,
            )
    except BaseException as error:
        if records and not isinstance(error, KGRetrieversError):
            note(f"what was measured is in {records}; the same command goes on from there")
        raise
    if begun:
        note(f"what was measured before was taken from {records}")
    return report


def _weights(built: BuiltMethod) -> str | dict[str, str] | None:
    """Return the digest of the trained model, which does not depend on its folder; several by method."""
    weights = {name: model.weights for name, model in built.models.items()}
    if not weights:
        return None
    several = len(built.choice.methods) > 1 or GRAPH_PROMPT.name in weights
    return weights if several else weights[built.choice.methods[0].name]


def check_output(path: str | None) -> None:
    """Check before the work begins that a file can be written after it."""
    if path is not None and path != "-":
        file = Path(path)
        if not file.parent.is_dir() or file.is_dir() or not access(file if file.exists() else file.parent, W_OK):
            raise InvalidArgumentError(f"{path} cannot be written: wanted a file name in a folder that is there.")


def check_figures(names: Sequence[str]) -> None:
    """Check before the work begins that there are such figures."""
    if names:
        from kg_retrievers.evaluation import comparison

        comparison.check_figures(names)


def write_output(path: str, text: str) -> None:
    """Write to a file, or to stdout if it is called "-"."""
    if path == "-":
        print(text, flush=True)
    else:
        write_file(path, text + "\n")
