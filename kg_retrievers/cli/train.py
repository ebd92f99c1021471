"""The command `train`."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from os import W_OK, access
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

import kg_retrievers
from kg_retrievers.cli.measurement import index_of_graphs, read_questions
from kg_retrievers.cli.methods import quiet
from kg_retrievers.cli.options import (
    ENTITY_FORMATS,
    Embedded,
    EmbeddingCache,
    Json,
    Preset,
    QuestionSet,
    Reading,
    Workers,
    field_values,
    methods,
    open_workers,
    option,
    positive,
)
from kg_retrievers.cli.show import announce_compilation, counted, grid, note, on_terminal, show, status
from kg_retrievers.cli.sources import QueryDatabase, Source, embeddings_of, read_index
from kg_retrievers.errors import InvalidArgumentError, KGRetrieversError, did_you_mean
from kg_retrievers.file_writing import write_file
from kg_retrievers.methods import registry
from kg_retrievers.methods.registry import GRAPH_PROMPT
from kg_retrievers.serving.loading import RECORD, SavedModel, build_retriever, choose_methods, read_models

if TYPE_CHECKING:
    from kg_retrievers.core.retriever import BaseKGRetriever
    from kg_retrievers.datasets import Question
    from kg_retrievers.index import GraphIndex
    from kg_retrievers.methods.g_retriever.graph_prompt import GraphPromptExample

#: The fields that `--field` does not set in a training: other options do, or the graph.
TAKEN = (
    *("index", "questions", "validation", "output", "num_examples", "seed", "progress", "workers"),
    *("embedding_cache", "dimension", "llm", "embeddings", "examples", "model", "retrievers", "executor", "preset"),
)

#: The scope of a retriever over the small graph of one question.
WHOLE = "graph"

#: The note on a training that did no good.
NO_BETTER = "no round was better than the untrained model; are there enough questions, and are they right?"

#: The title above the options of one method.
_PROMPT_PANEL = f"For {GRAPH_PROMPT.name} alone"

_METHODS = ", ".join(sorted(entry.name for entry in registry.trainable()))


def trainable(text: str) -> str:
    """Take the name of a method that can be trained."""
    names = [entry.name for entry in registry.trainable()]
    if text not in names:
        near = did_you_mean(text, names) or f"wanted one of {_METHODS}"
        raise typer.BadParameter(f"no method {text!r} can be trained; {near}")
    return text


@dataclass(frozen=True)
class _Training:
    """The options of a training."""

    method: str
    questions: QuestionSet
    source: Source
    data: str
    validation: str | None
    validation_split: str | None
    output: Path
    field: dict[str, Any]
    embedding_cache: str | None

    def read(self) -> tuple[list[Question], list[Question] | None]:
        """Read the questions, and the validation questions, if the options name them."""
        asked = self.questions
        split = asked.split or ("train" if asked.format == "metaqa" else None)
        with status(f"reading {self.data}"):
            questions = read_questions(self.data, asked, split, asked.limit)
        if self.validation is None:
            if self.validation_split:
                raise InvalidArgumentError("--validation-split is a part of --validation. Give that, too.")
            return questions, None
        with status(f"reading {self.validation}"):
            return questions, read_questions(self.validation, asked, self.validation_split)


def train(
    method: Annotated[str, typer.Argument(metavar="METHOD", help=f"One of {_METHODS}.", parser=trainable)],
    data: Annotated[str, option("FILE_OR_FOLDER", "The questions.", "--questions")],
    output: Annotated[str, option("FOLDER", "A new folder for the model; if begun, go on.")],
    questions: QuestionSet,
    reading: Reading,
    embedded: Embedded,
    validation: Annotated[
        str | None, option("FILE_OR_FOLDER", "Questions that say when to stop (default: a tenth).")
    ] = None,
    validation_split: Annotated[str | None, option("NAME", "A part of them.")] = None,
    num_examples: Annotated[
        int | None, option("N", "How many questions to look at, each time counted.", parser=positive)
    ] = None,
    field: Annotated[list[str], option("NAME=VALUE", "A setting of the training or the model.")] = [],
    causal_lm: Annotated[
        str | None,
        option("NAME_OR_FOLDER", "A causal language model of Hugging Face.", panel=_PROMPT_PANEL),
    ] = None,
    retriever: Annotated[
        str | None,
        option("NAME", "The retriever that it answers from.", "--method", parser=methods, panel=_PROMPT_PANEL),
    ] = None,
    model: Annotated[list[str], option("FOLDER", "A trained model of the retriever.", panel=_PROMPT_PANEL)] = [],
    preset: Preset = None,
    embedding_cache: EmbeddingCache = None,
    workers: Workers = None,
    as_json: Json = False,
) -> int:
    """Train a method on questions with answers.

    Example: kg-retrievers train subgraph-rag --graph films.csv --questions asked.jsonl --output films.model
    """
    source = Source(str(questions.graph), reading, embedded)
    given = field_values(field, "max_nodes=1000", TAKEN)
    training = _Training(
        method, questions, source, data, validation, validation_split, Path(output), given, embedding_cache
    )
    _check_output(training.output)
    is_prompt = method == GRAPH_PROMPT.name
    own = {"--causal-lm": causal_lm, "--method": retriever, "--model": model}
    _check(training, own, {"--num-examples": num_examples, "--preset": preset, "--workers": workers})
    with announce_compilation():
        call, tell = (
            _prepare_prompt(training, str(causal_lm), retriever, model)
            if is_prompt
            else _prepare_retriever(training, num_examples, preset)
        )
        from kg_retrievers.training.unfinished import is_unfinished  # loads torch, as the training just did

        begun = is_unfinished(training.output)
        try:
            with open_workers(workers) as opened:
                shared = {"workers": opened} if opened else {}
                trained = call(output=training.output, seed=questions.seed, progress=on_terminal(), **shared)
        except BaseException as error:
            if is_unfinished(training.output) and not isinstance(error, KGRetrieversError):
                note(f"what was trained is in {output}; the same command goes on from the last finished round")
            raise
    if begun:
        note(f"what was trained before was taken from {output}")
    facts, rows = tell(trained)
    asked = replace(source, place="GRAPH") if questions.have_graphs else source
    command = asked.command("ask", "Who ...?", "--model", output)
    if as_json:
        about = {"method": method, "output": output, "command": command, "seconds": trained.seconds}
        print(json.dumps(about | facts), flush=True)
        return 0
    show(
        f"Trained {method} in {trained.seconds:,.0f} seconds. The model is in {output}.",
        grid(*rows),
        f"Ask it: {command}",
    )
    return 0


def _check_output(folder: Path) -> None:
    """Check before the training that a model can be saved afterwards, and that it replaces none."""
    from kg_retrievers.core.checkpoint import holds_model  # loads numpy, which the help does not need

    if holds_model(folder):
        raise InvalidArgumentError(f"{folder} holds a model already. Name another folder: --output ...")
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir() or not access(there, W_OK):
        what = "cannot be written to" if there.is_dir() else "is a file"
        raise InvalidArgumentError(f"{there} {what}. Name another folder: --output ...")


def _check(training: _Training, of_prompts: Mapping[str, Any], of_retrievers: Mapping[str, Any]) -> None:
    """Check that the options of a training are for its method, and for questions as these are written."""
    asked, is_prompt = training.questions, training.method == GRAPH_PROMPT.name
    others = dict(of_retrievers if is_prompt else of_prompts)
    if not is_prompt:
        others[f"--format {asked.format}"] = asked.have_graphs and asked.format not in ENTITY_FORMATS
    if flags := [flag for flag, value in others.items() if value]:
        also = " It sees a question so often: --field epochs=N" if flags[0] == "--num-examples" else ""
        raise InvalidArgumentError(f"{flags[0]} is not for the training of {training.method}. Leave it out.{also}")
    if is_prompt and of_prompts["--causal-lm"] is None:
        raise InvalidArgumentError(
            f"{training.method} needs a causal language model of Hugging Face: --causal-lm NAME_OR_FOLDER"
        )
    asked.check_graph(training.source.reading, {})
    if asked.graph is None and not asked.have_graphs:
        raise InvalidArgumentError(
            "--graph must name the graph that the questions are about. See: kg-retrievers train --help"
        )


def _check_fields(method: str, names: Collection[str], known: Collection[str], also: str = "") -> None:
    """Check that a training knows each field; `also` says which other fields there are."""
    for name in names:
        if name not in known:
            near = did_you_mean(name, known)
            raise InvalidArgumentError(
                f"the training of {method} has no field {name!r}{f'; {near}' if near else '.'} "
                f"There are: {', '.join(sorted(known))}{also}."
            )


def _fields_of(train: Callable[..., Any], config: Any) -> set[str]:
    """Return the names of the arguments of a training and the settings of its model."""
    arguments = inspect.signature(train).parameters.values()
    known = {argument.name for argument in arguments if argument.kind is not argument.VAR_KEYWORD}
    return (known | {field.name for field in fields(config)}).difference(TAKEN, ["config"])


def _note_no_better(is_better: bool) -> None:
    if not is_better:
        note(NO_BETTER)


# --- retrievers -------------------------------------------------------------------------------------------------------

_Prepared = tuple[Callable[..., Any], Callable[[Any], tuple[dict[str, Any], list[tuple[str, str]]]]]


def _prepare_retriever(training: _Training, num_examples: int | None, preset: str | None) -> _Prepared:
    """Read what a retriever learns from; return what trains it, and what tells of the training."""
    method = registry.find_method(training.method)
    with status(f"loading what trains {method.name}"):
        trainer = method.load_trainer()
    given = dict(training.field)
    _check_fields(method.name, given, _fields_of(trainer, method.load_model().config_class))
    if preset:
        if "preset" not in inspect.signature(trainer).parameters:
            raise InvalidArgumentError(f"the training of {method.name} has no preset. Leave out --preset.")
        given["preset"] = preset
    if num_examples is not None:
        given["num_examples"] = num_examples
    questions, validation = training.read()
    if training.questions.graph is None:
        index = index_of_graphs(training.questions, training.source.embedded, training.embedding_cache, questions)
        given["embedding_cache"] = training.embedding_cache
    else:
        index = read_index(training.source)

    def call(**more: Any) -> Any:
        return trainer(index, questions, validation, **given, **more)

    return call, _tell_retriever


def _tell_retriever(trained: Any) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return the facts of a training, for programs and for people."""
    before, after = trained.history[0], trained.best
    _note_no_better(after > before)
    if trained.unsupervised:
        note(f"{trained.unsupervised:,} questions supervise nothing: what they label is not among their candidates")
    reasons = ("without_entities", "without_answers", "unreachable")
    facts: dict[str, Any] = {
        name: {"used": len(part.usable)} | {reason: getattr(part, reason) for reason in reasons}
        for name, part in (("training", trained.training), ("validation", trained.validation))
    }
    facts |= {"ndcg_before": before, "ndcg_after": after, "history": trained.history}
    return facts | {"unsupervised": trained.unsupervised}, [
        ("Trained on", str(trained.training)),
        ("Validated with", str(trained.validation)),
        ("nDCG of answers", f"{before:.3f} before the training, {after:.3f} after it"),
    ]


# --- graph prompts ----------------------------------------------------------------------------------------------------


def _prepare_prompt(training: _Training, llm: str, retriever: str | None, folders: Sequence[str]) -> _Prepared:
    """Read and retrieve what a graph prompt learns from; return what trains it, and what tells of the training."""
    with status(f"loading what trains {GRAPH_PROMPT.name}"), quiet():
        trainer = GRAPH_PROMPT.load_trainer()
    with status("reading the trained models"):
        models = read_models(folders)
    if prompt := models.get(GRAPH_PROMPT.name):
        raise InvalidArgumentError(f"{prompt.folder} is a graph prompt itself; wanted the model of a retriever.")
    own = training.questions.have_graphs
    methods: tuple[registry.Method, ...] = ()  # none of them takes all of a question's own graph
    if retriever or models or not own:
        methods = choose_methods(retriever, models, GRAPH_PROMPT.default_method)
    of_training, of_retriever = _prompt_fields(training, trainer, methods)
    questions, validation = training.read()
    learned, validating = _answered(questions, training.data), _answered(validation, training.validation)
    place = str(Path(llm).resolve()) if Path(llm).is_dir() else llm
    with status(f"loading {place}"), quiet():
        causal_lm = kg_retrievers.CausalLM.load(place, dtype=of_training.get("precision") or "auto")
    with ExitStack() as at_end:
        database = None
        if own:
            embeddings = embeddings_of(training.source)
        else:
            index = read_index(training.source)
            embeddings = index.embeddings
            database = at_end.enter_context(QueryDatabase(training.source, None, index))

        def build(index: GraphIndex) -> BaseKGRetriever:
            executor = None if database is None else lambda: database.executor
            return build_retriever(methods, index, of_retriever, models=models, executor=executor)

        with status("retrieving the graphs of the questions"):
            asked = [*learned, *validating]
            if not own:
                examples = kg_retrievers.graph_prompt_examples(build(index), asked, label=index.graph.label)
            else:
                examples = _examples_of_graphs(asked, build if methods else None, embeddings, training.embedding_cache)
    empty = [one.question for one in examples if not one.triples]
    if empty:
        note(f"for {len(empty):,} of {len(examples):,} questions no graph was found, as for {empty[0]!r:.200}")

    def call(output: Path, **more: Any) -> Any:
        count = len(learned)
        with quiet():
            trained = trainer(
                causal_lm, embeddings, examples[:count], examples[count:] or None, output=output, **of_training, **more
            )
        write_file(output / RECORD, _record(methods, of_retriever, models))
        return trained

    def tell(trained: Any) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        left_out = (len(questions) - len(learned), len(validation or ()) - len(validating))
        name = registry.joined_names(methods) or None
        return _tell_prompt(trained, left_out, {"without_graph": len(empty), "retriever": name})

    return call, tell


def _prompt_fields(
    training: _Training, trainer: Callable[..., Any], methods: Sequence[registry.Method]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fields of the training and the model, and those of the retriever."""
    from kg_retrievers.methods.g_retriever.graph_prompt import GraphPromptConfig  # loads torch, which the help need not

    known = _fields_of(trainer, GraphPromptConfig)
    of_retriever = registry.retriever_class(methods).model_fields if methods else {}
    also = f", and the fields of {registry.joined_names(methods)}" if methods else ""
    _check_fields(GRAPH_PROMPT.name, [name for name in training.field if name not in of_retriever], known, also)
    given, retrieving = {}, {}
    # The graph of one question is small, and is looked at whole, as in the paper.
    scope = of_retriever.get("scope") if training.questions.have_graphs else None
    if scope is not None and WHOLE in get_args(scope.annotation):
        retrieving["scope"] = WHOLE
    for name, value in training.field.items():
        if name in known:
            given[name] = tuple(value) if isinstance(value, list) else value
        else:
            retrieving[name] = value
    return given, retrieving


def _answered(questions: Sequence[Question] | None, path: str | None) -> list[Any]:
    """Leave out the questions without answers.

    Raises:
        InvalidArgumentError: If none has an answer.
    """
    answered = [question for question in questions or () if question.answers]
    if questions and not answered:
        raise InvalidArgumentError(f"no question in {path} has an answer; there is nothing to learn from it.")
    return answered


def _record(methods: Sequence[registry.Method], given: Mapping[str, Any], models: Mapping[str, SavedModel]) -> str:
    """Return what is kept beside the model, so that `ask` builds the same retriever."""
    folders = [str(Path(model.folder).resolve()) for model in models.values()]
    return json.dumps({"method": registry.joined_names(methods) or None, "fields": dict(given), "models": folders})


def _examples_of_graphs(
    questions: Sequence[Any],
    build: Callable[[GraphIndex], BaseKGRetriever] | None,
    embeddings: Any,
    cache: str | None,
) -> list[GraphPromptExample]:
    """Return an example of each question, of all of its graph or of what is retrieved from it."""
    from kg_retrievers.index.question_indexes import QuestionIndexes  # loads numpy, which the help does not need

    of_graph = kg_retrievers.GraphPromptExample.of_graph
    if build is None:
        return [of_graph(question) for question in questions]
    indexes = QuestionIndexes(embeddings, cache)
    retrievers: dict[Any, BaseKGRetriever] = {}
    for question in questions:
        if question.graph not in retrievers:
            retrievers[question.graph] = build(indexes.of(question.graph))
    return [of_graph(question, retrievers[question.graph]) for question in questions]


def _tell_prompt(
    trained: Any, left_out: tuple[int, int], more: Mapping[str, Any]
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return the facts of a training, for programs and for people."""
    before, after, count = trained.history[0], trained.best, trained.examples + trained.validation
    _note_no_better(after < before)
    facts: dict[str, Any] = {
        "training": {"used": trained.examples, "without_answers": left_out[0]},
        "validation": {"used": trained.validation, "without_answers": left_out[1]},
        **more,
        "loss_before": before,
        "loss_after": after,
        "history": trained.history,
        "trained_weights": trained.trained,
        "weights": trained.weights,
        "cut": trained.cut,
    }
    cut = f"cut for {trained.cut:,} of {count:,} questions" if trained.cut else "whole for all questions"
    used = [
        counted(number, "question") + (f"; not used: {without:,} have no answer" if without else "")
        for number, without in zip((trained.examples, trained.validation), left_out, strict=True)
    ]
    return facts, [
        ("Trained on", used[0]),
        ("Validated with", used[1]),
        ("Loss of answers", f"{before:.3f} before the training, {after:.3f} after it"),
        ("Trained weights", f"{trained.trained:,} of {trained.weights:,}, {trained.share:.2%}"),
        ("Text of the graph", cut if trained.model.config.show_graph else "not shown"),
    ]
