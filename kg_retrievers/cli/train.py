"""The command `train`."""

from __future__ import annotations

import argparse
import inspect
import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from os import W_OK, access
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from kg_retrievers.cli.load import read_index, read_training_questions
from kg_retrievers.cli.own_graphs import GRAPH_FORMATS, all_have_graphs, first_index
from kg_retrievers.cli.reading_options import OPTIONS
from kg_retrievers.cli.show import announce_compilation, grid, note, on_terminal, show, status
from kg_retrievers.cli.train_graph_prompt import (
    NAMED_IN_TRAINING,
    NO_BETTER,
    PromptTraining,
    check_training,
    unknown_field,
)
from kg_retrievers.cli.workers import open_workers
from kg_retrievers.errors import InvalidArgumentError, KGRetrieversError
from kg_retrievers.methods import registry
from kg_retrievers.methods.registry import GRAPH_PROMPT

if TYPE_CHECKING:
    from kg_retrievers.training.dataset import TrainingQuestions


def run(options: argparse.Namespace) -> int:
    """Train the model of a method on questions with answers."""
    output = Path(options.output)
    _check_output(output)
    check_training(options)
    if options.workers and options.method == GRAPH_PROMPT.name:
        raise InvalidArgumentError(f"--workers is not for {GRAPH_PROMPT.name}, which has no candidates. Leave it out.")
    with announce_compilation():
        training = _kind_of_training(options.method).of(options)
        from kg_retrievers.training.unfinished import is_unfinished  # loads torch, as the training just did

        begun = is_unfinished(output)
        try:
            with open_workers(options.workers) as workers:
                shared = {"workers": workers} if workers else {}
                trained = training.train(output=output, seed=options.seed, progress=on_terminal(), **shared)
        except BaseException as error:
            if is_unfinished(output) and not isinstance(error, KGRetrieversError):
                note(f"what was trained is in {output}; the same command goes on from the last finished round")
            raise
    if begun:
        note(f"what was trained before was taken from {output}")
    facts, rows = training.summary(trained)
    command = _ask_command(options)
    if options.json:
        training_facts = {"method": options.method, "output": str(output), "command": command}
        print(json.dumps(training_facts | {"seconds": trained.seconds} | facts), flush=True)
        return 0
    show(
        f"Trained {options.method} in {trained.seconds:,.0f} seconds. The model is in {output}.",
        grid(*rows),
        f"Ask it: {command}",
    )
    return 0


@dataclass(frozen=True)
class _RetrieverTraining:
    """The training of a retriever's model, with everything read."""

    train: Callable[..., Any]

    @classmethod
    def of(cls, options: argparse.Namespace) -> Self:
        method = registry.find_method(options.method)
        with status(f"loading what trains {method.name}"):
            train = method.load_trainer()
        given = dict(options.field)
        _check_fields(method, train, given)
        if options.preset:
            given["preset"] = _checked_preset(options.preset, method.name, train)
        if options.num_examples is not None:
            given["num_examples"] = options.num_examples
        questions, validation = read_training_questions(options)
        if all_have_graphs(questions):
            index = first_index(options, questions)
            given["embedding_cache"] = options.embedding_cache
        else:
            index = read_index(options)
        return cls(partial(train, index, questions, validation, **given))

    def summary(self, trained: Any) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        """Return the facts of a training, for programs and for people."""
        before, after = trained.history[0], trained.best
        if after <= before:
            note(NO_BETTER)
        if trained.unsupervised:
            note(f"{trained.unsupervised:,} questions supervise nothing: what they label is not among their candidates")
        facts = {"training": _counts(trained.training), "validation": _counts(trained.validation)}
        facts |= {"ndcg_before": before, "ndcg_after": after, "history": trained.history}
        return facts | {"unsupervised": trained.unsupervised}, [
            ("Trained on", str(trained.training)),
            ("Validated with", str(trained.validation)),
            ("nDCG of answers", f"{before:.3f} before the training, {after:.3f} after it"),
        ]


def _kind_of_training(name: str) -> type[PromptTraining] | type[_RetrieverTraining]:
    return PromptTraining if name == GRAPH_PROMPT.name else _RetrieverTraining


def _holds_model(folder: Path) -> bool:
    from kg_retrievers.core.checkpoint import holds_model  # loads numpy, which the help does not need

    return holds_model(folder)


def _check_output(folder: Path) -> None:
    """Check before the training that a model can be saved afterwards, and that it replaces none."""
    if _holds_model(folder):
        raise InvalidArgumentError(f"{folder} holds a model already. Name another folder: --output ...")
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir() or not access(there, W_OK):
        what = "cannot be written to" if there.is_dir() else "is a file"
        raise InvalidArgumentError(f"{there} {what}. Name another folder: --output ...")


def _check_fields(method: registry.Method, train: Callable[..., Any], given: dict[str, Any]) -> None:
    """Check that each field is an argument of the training or a setting of the model."""
    arguments = inspect.signature(train).parameters.values()
    known = {argument.name for argument in arguments if argument.kind is not argument.VAR_KEYWORD}
    known |= {field.name for field in fields(method.load_model().config_class)}
    known -= {*NAMED_IN_TRAINING}
    if unknown := [name for name in given if name not in known]:
        raise unknown_field(method.name, unknown[0], known)


def _checked_preset(preset: str, method: str, train: Callable[..., Any]) -> str:
    """Return a preset that the training takes."""
    if "preset" not in inspect.signature(train).parameters:
        raise InvalidArgumentError(f"the training of {method} has no preset. Leave out --preset.")
    return preset


def _counts(questions: TrainingQuestions) -> dict[str, int]:
    """Return how many questions were used, and how many were left out for each reason."""
    left_out = {name: getattr(questions, name) for name in ("without_entities", "without_answers", "unreachable")}
    return {"used": len(questions.usable)} | left_out


def _ask_command(options: argparse.Namespace) -> str:
    """Return the command that asks the model, reading the graph as the training did."""
    graph = "GRAPH" if options.format in GRAPH_FORMATS else options.graph
    command = ["kg-retrievers", "ask", graph, "Who ...?"]
    for name, option in OPTIONS.items():
        if value := getattr(options, name):
            command += option.words(value)
    if options.embeddings is not None:
        command += ["--embeddings", options.embeddings]
    if options.trust_remote_code:
        command.append("--trust-remote-code")
    if options.database_name is not None:
        command += ["--database-name", options.database_name]
    if not options.explain:
        command.append("--no-explain")
    for label, key in options.key:
        command += ["--key", f"{label}={key}" if label else key]
    return shlex.join([*command, "--model", options.output])
