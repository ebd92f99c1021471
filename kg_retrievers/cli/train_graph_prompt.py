"""The training of a graph prompt."""

from __future__ import annotations

import argparse
import inspect
import json
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_args

import kg_retrievers
from kg_retrievers.cli.connection import load_chosen_embeddings
from kg_retrievers.cli.database import QueryDatabase
from kg_retrievers.cli.graph_prompt import quiet, refuse_prompts
from kg_retrievers.cli.load import read_index, read_training_questions
from kg_retrievers.cli.own_graphs import ENTITY_FORMATS, GRAPH_FORMATS, check_no_graph_options
from kg_retrievers.cli.show import note, status
from kg_retrievers.errors import InvalidArgumentError, did_you_mean
from kg_retrievers.file_writing import write_file
from kg_retrievers.methods import registry
from kg_retrievers.methods.registry import GRAPH_PROMPT, Method
from kg_retrievers.serving.loading import (
    RECORD,
    SavedModel,
    build_retriever,
    choose_methods,
    read_models,
)

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from kg_retrievers.core.retriever import BaseKGRetriever
    from kg_retrievers.datasets import GraphQuestion, Question
    from kg_retrievers.graph import KnowledgeGraph
    from kg_retrievers.index import GraphIndex
    from kg_retrievers.methods.g_retriever.graph_prompt import CausalLM, GraphPromptExample, GraphPromptTraining

#: What `--field` does not set in a training: other options do, or the graph.
NAMED_IN_TRAINING = (
    *("index", "questions", "validation", "output", "visits", "num_examples", "seed", "progress", "workers"),
    "embedding_cache",
    *("dimension", "llm", "embeddings", "examples", "setting", "model", "retrievers", "executor", "preset"),
)

#: The settings of the paper, first the one that is trained where none is named.
SETTINGS = ("frozen", "prompt-tuning", "lora")

#: The scope of a retriever over the small graph of one question.
WHOLE = "graph"

#: The note on a training that did no good.
NO_BETTER = "no round was better than the untrained model; are there enough questions, and are they right?"


def check_training(options: argparse.Namespace) -> None:
    """Check that the options of a training are for its method, and for questions as these are written.

    Raises:
        InvalidArgumentError: If not.
    """
    own = options.format in GRAPH_FORMATS
    is_prompt = options.method == GRAPH_PROMPT.name
    if not is_prompt:
        _check_no_prompt_options(options)
    if is_prompt and options.llm is None:
        raise InvalidArgumentError(
            f"{options.method} needs a causal language model of Hugging Face: --llm NAME_OR_FOLDER"
        )
    if is_prompt and options.num_examples is not None:
        raise InvalidArgumentError(
            f"--num-examples is not for {options.method}. Say how often it sees a question: --field epochs=N"
        )
    if is_prompt and options.preset:
        raise InvalidArgumentError(f"the training of {options.method} has no preset. Leave out --preset.")
    if own:
        check_no_graph_options(options)
    if options.graph is None and not own:
        raise InvalidArgumentError(
            "--graph must name the graph that the questions are about. See: kg-retrievers train --help"
        )


def _check_no_prompt_options(options: argparse.Namespace) -> None:
    own = options.format in GRAPH_FORMATS and options.format not in ENTITY_FORMATS
    given = {"--llm": options.llm, "--setting": options.setting, "--method": options.retriever}
    given |= {"--model": options.model, f"--format {options.format}": own}
    if flags := [flag for flag, value in given.items() if value]:
        raise InvalidArgumentError(
            f"{flags[0]} is for {GRAPH_PROMPT.name}, but trained is {options.method}. Leave it out."
        )


def unknown_field(method: str, name: str, known: Collection[str], also: str = "") -> InvalidArgumentError:
    """Return the error for a field that a training does not know; `also` says which other fields there are."""
    near = did_you_mean(name, known)
    suggestion = f"; {near}" if near else "."
    fields = ", ".join(sorted(known))
    return InvalidArgumentError(
        f"the training of {method} has no field {name!r}{suggestion} There are: {fields}{also}."
    )


@dataclass(frozen=True)
class Part:
    """Questions with answers, and how many others were left out since they have none."""

    questions: list[Any]
    without_answers: int

    @classmethod
    def of(cls, questions: Sequence[Question], path: str) -> Self:
        """Leave out those without answers.

        Raises:
            InvalidArgumentError: If none has an answer.
        """
        answered = [question for question in questions if question.answers]
        if not answered:
            raise InvalidArgumentError(f"no question in {path} has an answer; there is nothing to learn from it.")
        return cls(answered, len(questions) - len(answered))

    def summary(self, used: int) -> str:
        """Return how many are used, and how many are not."""
        left_out = f"; not used: {self.without_answers:,} have no answer" if self.without_answers else ""
        return f"{used:,} question{'' if used == 1 else 's'}{left_out}"


@dataclass(frozen=True)
class RetrieverSpec:
    """The retriever that a graph prompt answers from; without `methods`, all of a question's graph is taken."""

    methods: tuple[Method, ...]
    fields: dict[str, Any]
    models: dict[str, SavedModel]

    @property
    def name(self) -> str | None:
        """The names of its methods."""
        return registry.joined_names(self.methods) or None

    def build(self, index: GraphIndex, database: QueryDatabase | None = None) -> BaseKGRetriever:
        """Build it over a graph."""
        methods = self.methods or registry.find_methods(GRAPH_PROMPT.default_method)
        executor = None if database is None else lambda: database.executor
        return build_retriever(methods, index, self.fields, models=self.models, executor=executor)

    def record(self) -> str:
        """Return what is kept beside the model, so that `ask` builds the same retriever."""
        folders = [str(Path(model.folder).resolve()) for model in self.models.values()]
        return json.dumps({"method": self.name, "fields": self.fields, "models": folders})


@dataclass(frozen=True)
class PromptTraining:
    """A training for which all is read and retrieved."""

    call: Callable[..., GraphPromptTraining]
    learned: Part
    validating: Part
    retriever: RetrieverSpec
    without_graph: int

    @classmethod
    def of(cls, options: argparse.Namespace) -> Self:
        """Read what the options name, which are checked, and retrieve the graphs."""
        with status(f"loading what trains {GRAPH_PROMPT.name}"), quiet():
            train = GRAPH_PROMPT.load_trainer()
        spec, given = _retriever_spec(options, train)
        questions, validation = read_training_questions(options)
        with ExitStack() as at_end:
            if options.format in GRAPH_FORMATS:
                embeddings = load_chosen_embeddings(options)
                to_examples = partial(_examples_of_graphs, spec, embeddings, options.embedding_cache)
            else:
                index = read_index(options)
                embeddings = index.embeddings
                database = at_end.enter_context(QueryDatabase(options, index))
                retriever = spec.build(index, database)
                to_examples = partial(kg_retrievers.graph_prompt_examples, retriever, label=index.graph.label)
            learned = Part.of(questions, options.questions)
            validating = Part([], 0) if validation is None else Part.of(validation, options.validation)
            llm = load_causal_lm(options.llm, given.get("precision"))
            with status("retrieving the graphs of the questions"):
                examples = to_examples([*learned.questions, *validating.questions])
        empty = _note_empty(examples)
        count = len(learned.questions)
        given["setting"] = options.setting or SETTINGS[0]
        call = partial(train, llm, embeddings, examples[:count], examples[count:] or None, **given)
        return cls(call, learned, validating, spec, empty)

    def train(self, output: Path, **more: Any) -> GraphPromptTraining:
        """Train, and say beside the model which retriever it had."""
        with quiet():
            trained = self.call(output=output, **more)
        write_file(output / RECORD, self.retriever.record())
        return trained

    def summary(self, trained: GraphPromptTraining) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        """Return the facts of a training, for programs and for people."""
        before, after, count = trained.history[0], trained.best, trained.examples + trained.validation
        if after >= before:
            note(NO_BETTER)
        facts = {
            "training": {"used": trained.examples, "without_answers": self.learned.without_answers},
            "validation": {"used": trained.validation, "without_answers": self.validating.without_answers},
            "without_graph": self.without_graph,
            "retriever": self.retriever.name,
            "loss_before": before,
            "loss_after": after,
            "history": trained.history,
            "trained_weights": trained.trained,
            "weights": trained.weights,
            "cut": trained.cut,
        }
        cut = f"cut for {trained.cut:,} of {count:,} questions" if trained.cut else "whole for all questions"
        if not trained.model.config.show_graph:
            cut = "not shown"
        return facts, [
            ("Trained on", self.learned.summary(trained.examples)),
            ("Validated with", self.validating.summary(trained.validation)),
            ("Loss of answers", f"{before:.3f} before the training, {after:.3f} after it"),
            ("Trained weights", f"{trained.trained:,} of {trained.weights:,}, {trained.share:.2%}"),
            ("Text of the graph", cut),
        ]


def load_causal_lm(name: str, precision: str | None = None) -> CausalLM:
    """Load a causal language model by its name or folder, with weights of a type or as it was saved."""
    place = str(Path(name).resolve()) if Path(name).is_dir() else name
    with status(f"loading {place}"), quiet():
        return kg_retrievers.CausalLM.load(place, dtype=precision or "auto")


def _note_empty(examples: Sequence[GraphPromptExample]) -> int:
    """Return for how many questions no graph was found, and note it."""
    empty = [one.question for one in examples if not one.triples]
    if empty:
        note(f"for {len(empty):,} of {len(examples):,} questions no graph was found, as for {empty[0]!r:.200}")
    return len(empty)


def _retriever_spec(options: argparse.Namespace, train: Callable[..., Any]) -> tuple[RetrieverSpec, dict[str, Any]]:
    """Return the retriever that is named, with its fields, and the fields of the training and the model."""
    with status("reading the trained models"):
        models = read_models(options.model)
    refuse_prompts(models)
    own = options.format in GRAPH_FORMATS
    methods: tuple[Method, ...] = ()
    if options.retriever or models or not own:
        methods = choose_methods(options.retriever, models, GRAPH_PROMPT.default_method)
    of_retriever = registry.retriever_class(methods).model_fields if methods else {}
    known = _training_fields(train)
    given: dict[str, Any] = {}
    retrieving: dict[str, Any] = {}
    # A graph of one question is small, and is looked at whole, as in the paper.
    if own and "scope" in of_retriever and WHOLE in get_args(of_retriever["scope"].annotation):
        retrieving["scope"] = WHOLE
    for name, value in options.field:
        if name in known:
            given[name] = tuple(value) if isinstance(value, list) else value
        elif name in of_retriever:
            retrieving[name] = value
        else:
            also = f", and the fields of {registry.joined_names(methods)}" if methods else ""
            raise unknown_field(GRAPH_PROMPT.name, name, known, also)
    return RetrieverSpec(methods, retrieving, models), given


def _training_fields(train: Callable[..., Any]) -> set[str]:
    """Return the names of the fields of the training and the model."""
    from kg_retrievers.methods.g_retriever.graph_prompt import GraphPromptConfig  # loads torch, which the help need not

    known = {*inspect.signature(train).parameters, *(field.name for field in fields(GraphPromptConfig))}
    return known.difference(NAMED_IN_TRAINING, ["config"])


def _examples_of_graphs(
    spec: RetrieverSpec, embeddings: Embeddings, embedding_cache: str | None, questions: Sequence[GraphQuestion]
) -> list[GraphPromptExample]:
    """Return an example of each question, of all of its graph or of what is retrieved from it."""
    from kg_retrievers.index.question_indexes import QuestionIndexes  # loads numpy, which the help does not need

    of_graph = kg_retrievers.GraphPromptExample.of_graph
    if not spec.methods:
        return [of_graph(question) for question in questions]
    by_graph: dict[KnowledgeGraph, list[int]] = {}
    for position, question in enumerate(questions):
        by_graph.setdefault(question.graph, []).append(position)
    made: dict[int, GraphPromptExample] = {}
    indexes = QuestionIndexes(embeddings, embedding_cache)
    for graph, positions in by_graph.items():  # one index at a time
        retriever = spec.build(indexes.of(graph))
        for position in positions:
            made[position] = of_graph(questions[position], retriever)
    return [made[position] for position in range(len(questions))]
