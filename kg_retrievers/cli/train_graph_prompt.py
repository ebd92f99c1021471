"""The training of a graph prompt."""

from __future__ import annotations

import argparse
import inspect
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields
from functools import partial
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Self, get_args

import kg_retrievers
from kg_retrievers.cli.database import QueryDatabase
from kg_retrievers.cli.graph_prompt import IN_FRONT, quiet
from kg_retrievers.cli.load import (
    GRAPH_PROMPT,
    NAMED_IN_TRAINING,
    RECORD,
    TrainedModel,
    asked_method,
    build_retriever,
    make_embeddings,
    method_class,
    read_index,
    read_models,
    read_training_questions,
)
from kg_retrievers.cli.show import remark, working
from kg_retrievers.errors import InvalidArgumentError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    import kg_retrievers.methods.g_retriever.graph_prompt
    from kg_retrievers.core.retriever import BaseKGRetriever
    from kg_retrievers.datasets import GraphQuestion, Question
    from kg_retrievers.graph import KnowledgeGraph
    from kg_retrievers.index import GraphIndex
    from kg_retrievers.methods.g_retriever.graph_prompt import GraphPromptExample, GraphPromptTraining

#: The formats of questions with a graph each, and what reads them.
GRAPH_FORMATS = {"explagraphs": "read_explagraphs", "webqsp": "read_webqsp", "scene-graphs": "read_scene_graphs"}

#: That of these whose graphs are in a file of their own.
SCENE_GRAPHS = "scene-graphs"

#: The settings of the paper, first the one that is trained where none is named.
SETTINGS = ("frozen", "prompt-tuning", "lora")

#: The options of a training on questions about one graph.
OF_ONE_GRAPH = (
    *("split", "validation_split", "hops", "entities", "graph_format", "columns", "encoding", "on_error"),
    *("key", "database_name"),
)

#: The scope of a retriever over the small graph of one question.
WHOLE = "graph"

#: What is said where a training did no good.
NO_BETTER = "no round was better than the untrained model; are there enough questions, and are they right?"


def check_training(options: argparse.Namespace) -> None:
    """Check that the options of a training are for its method, and for questions as these are written.

    Raises:
        InvalidArgumentError: If not.
    """
    method, own = options.method, options.format in GRAPH_FORMATS
    if method != GRAPH_PROMPT:
        given = {"--llm": options.llm, "--setting": options.setting, "--method": options.retriever}
        given |= {"--model": options.model, f"--format {options.format}": own}
        if flags := [flag for flag, value in given.items() if value]:
            raise InvalidArgumentError(f"{flags[0]} is for {GRAPH_PROMPT}, but trained is {method}. Leave it out.")
    elif options.llm is None:
        raise InvalidArgumentError(f"{method} needs a causal language model of Hugging Face: --llm NAME_OR_FOLDER")
    elif options.visits is not None:
        raise InvalidArgumentError(f"--visits is not for {method}. Say how often it sees a question: --field epochs=N")
    if own:
        for name in ("graph", *OF_ONE_GRAPH):
            if getattr(options, name) and (name != "graph" or options.format != SCENE_GRAPHS):
                raise InvalidArgumentError(
                    f"--{name.replace('_', '-')} is for questions about one graph, and those of {options.format} have "
                    "a graph each. Leave it out."
                )
    if options.graph is None and (not own or options.format == SCENE_GRAPHS):
        what = "the file of scene graphs" if own else "the graph that the questions are about"
        raise InvalidArgumentError(f"--graph must name {what}. See: kg-retrievers train --help")


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

    def told(self, used: int) -> str:
        """Return how many are used, and how many are not."""
        left_out = f"; not used: {self.without_answers:,} have no answer" if self.without_answers else ""
        return f"{used:,} question{'' if used == 1 else 's'}{left_out}"


@dataclass(frozen=True)
class Front:
    """The retriever in front of a graph prompt; without a `method`, all of a question's graph is taken."""

    method: str | None
    fields: dict[str, Any]
    models: dict[str, TrainedModel]

    def build(self, index: GraphIndex, database: QueryDatabase | None = None) -> BaseKGRetriever:
        """Build it over a graph."""
        given: dict[str, Any] = {"llm": None, "examples": {}, "models": self.models, "database": database}
        return build_retriever(self.method or IN_FRONT, index, self.fields, **given)

    def record(self) -> str:
        """Return what is kept beside the model; see `_as_in_training`."""
        folders = [str(Path(model.folder).resolve()) for model in self.models.values()]
        return json.dumps({"method": self.method, "fields": self.fields, "models": folders})


@dataclass(frozen=True)
class PromptTraining:
    """A training for which all is read and retrieved."""

    call: Callable[..., GraphPromptTraining]
    learned: Part
    validating: Part
    front: Front
    without_graph: int

    @classmethod
    def of(cls, options: argparse.Namespace) -> Self:
        """Read what the options name, which are checked, and retrieve the graphs."""
        with working(f"loading what trains {GRAPH_PROMPT}"), quiet():
            train = kg_retrievers.train_graph_prompt
        front, given = _front(options)
        with ExitStack() as at_end:
            if options.format in GRAPH_FORMATS:
                questions, validation = _read_questions_with_graphs(options)
                embeddings = make_embeddings(options.embeddings or "hashed")
                to_examples = partial(_examples_of_graphs, front, embeddings)
            else:
                questions, validation = read_training_questions(options)
                index = read_index(options)
                embeddings = index.embeddings
                database = at_end.enter_context(QueryDatabase(options, index.graph))
                retriever = front.build(index, database)
                to_examples = partial(kg_retrievers.graph_prompt_examples, retriever, label=index.graph.label)
            learned = Part.of(questions, options.questions)
            validating = Part([], 0) if validation is None else Part.of(validation, options.validation)
            name = str(Path(options.llm).resolve()) if Path(options.llm).is_dir() else options.llm
            with working(f"loading {name}"), quiet():
                llm = kg_retrievers.CausalLM.load(name)
            with working("retrieving the graphs of the questions"):
                examples = to_examples([*learned.questions, *validating.questions])
        if empty := [one.question for one in examples if not one.triples]:
            remark(f"for {len(empty):,} of {len(examples):,} questions no graph was found, as for {empty[0]!r:.200}")
        count = len(learned.questions)
        given["setting"] = options.setting or SETTINGS[0]
        call = partial(train, llm, embeddings, examples[:count], examples[count:] or None, **given)
        return cls(call, learned, validating, front, len(empty))

    def train(self, output: Path, **more: Any) -> GraphPromptTraining:
        """Train, and say beside the model which retriever it had."""
        with quiet():
            trained = self.call(output=output, **more)
        (output / RECORD).write_text(self.front.record(), "utf-8")
        return trained

    def told(self, trained: GraphPromptTraining) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        """Return what is to be said of it, for programs and for people."""
        before, after, count = trained.history[0], trained.best, trained.examples + trained.validation
        if after >= before:
            remark(NO_BETTER)
        parts = ((self.learned, trained.examples), (self.validating, trained.validation))
        training, validation = ({"used": used, "without_answers": part.without_answers} for part, used in parts)
        facts = {
            "training": training,
            "validation": validation,
            "without_graph": self.without_graph,
            "retriever": self.front.method,
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
        learned, validated = (part.told(used) for part, used in parts)
        return facts, [
            ("Trained on", learned),
            ("Validated with", validated),
            ("Loss of answers", f"{before:.3f} before the training, {after:.3f} after it"),
            ("Trained weights", f"{trained.trained:,} of {trained.weights:,}, {trained.share:.2%}"),
            ("Text of the graph", cut),
        ]


def _front(options: argparse.Namespace) -> tuple[Front, dict[str, Any]]:
    """Return the retriever that is named, with its fields, and the fields of the training and the model."""
    models = read_models(options.model)
    if prompt := models.get(GRAPH_PROMPT):
        raise InvalidArgumentError(f"{prompt.folder} is a graph prompt itself; wanted the model of a retriever.")
    own = options.format in GRAPH_FORMATS
    method = asked_method(options.retriever, models, IN_FRONT) if options.retriever or models or not own else None
    config = kg_retrievers.methods.g_retriever.graph_prompt.GraphPromptConfig
    known = {*inspect.signature(kg_retrievers.train_graph_prompt).parameters, *(field.name for field in fields(config))}
    known = known.difference(NAMED_IN_TRAINING, ["config"])
    of_retriever = method_class(method).model_fields if method else {}
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
            also = f", and the fields of {method}" if method else ""
            raise InvalidArgumentError(
                f"the training of {GRAPH_PROMPT} has no field {name!r}. There are: {', '.join(sorted(known))}{also}."
            )
    return Front(method, retrieving, models), given


def _read_questions_with_graphs(options: argparse.Namespace) -> tuple[list[Question], list[Question] | None]:
    """Read what is trained on, each question with a graph of its own, and, where it is named, what validates."""
    read = getattr(kg_retrievers, GRAPH_FORMATS[options.format])
    if options.format == SCENE_GRAPHS:
        read = partial(read, options.graph)
    with working(f"reading {options.questions}"):
        questions = _drawn(read(options.questions), options.limit, options.seed)
    if options.validation is None:
        return questions, None
    with working(f"reading {options.validation}"):
        return questions, list(read(options.validation))


def _drawn(questions: Iterable[Question], limit: int | None, seed: int) -> list[Question]:
    """Return at most so many questions, drawn at random and left in their order; no more are kept in memory."""
    random = Random(seed)
    kept: list[tuple[int, Question]] = []
    for place, question in enumerate(questions):
        if limit is None or place < limit:
            kept.append((place, question))
        elif (at := random.randrange(place + 1)) < limit:
            kept[at] = (place, question)
    return [question for _, question in sorted(kept, key=itemgetter(0))]


def _examples_of_graphs(
    front: Front, embeddings: Embeddings, questions: Sequence[GraphQuestion]
) -> list[GraphPromptExample]:
    """Return an example of each question, of all of its graph or of what is retrieved from it."""
    of_graph = kg_retrievers.GraphPromptExample.of_graph
    if front.method is None:
        return [of_graph(question) for question in questions]
    places: dict[KnowledgeGraph, list[int]] = {}
    for place, question in enumerate(questions):
        places.setdefault(question.graph, []).append(place)
    made: dict[int, GraphPromptExample] = {}
    for graph, about_it in places.items():  # one index at a time
        retriever = front.build(kg_retrievers.GraphIndex.build(graph, embeddings))
        made |= {place: of_graph(questions[place], retriever) for place in about_it}
    return [made[place] for place in range(len(questions))]
