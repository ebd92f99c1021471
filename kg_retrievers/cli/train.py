"""The command `train`."""

from __future__ import annotations

import argparse
import inspect
import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from os import W_OK, access
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import kg_retrievers
from kg_retrievers.cli.load import (
    GRAPH_PROMPT,
    MODELS,
    NAMED_IN_TRAINING,
    TRAINERS,
    read_index,
    read_training_questions,
)
from kg_retrievers.cli.show import compilation_told, grid, remark, show, working
from kg_retrievers.cli.train_graph_prompt import GRAPH_FORMATS, NO_BETTER, PromptTraining, check_training
from kg_retrievers.errors import InvalidArgumentError, KGRetrieversError

if TYPE_CHECKING:
    from kg_retrievers.training.dataset import TrainingQuestions

#: What a training keeps in its output: the model when it is finished, its rounds until then.
FINISHED, UNFINISHED = "config.json", "unfinished/config.json"

#: The options that say how a graph is read, as `ask` spells them.
READING = {
    "entities": "--entities",
    "graph_format": "--format",
    "columns": "--columns",
    "encoding": "--encoding",
    "on_error": "--on-error",
    "embeddings": "--embeddings",
}


def run(options: argparse.Namespace) -> int:
    """Train the model of a method on questions with answers."""
    output = Path(options.output)
    _check_output(output)
    check_training(options)
    with compilation_told():
        training = (PromptTraining if options.method == GRAPH_PROMPT else _RetrieverTraining).of(options)
        begun = (output / UNFINISHED).exists()
        try:
            trained = training.train(output=output, seed=options.seed, progress=sys.stderr.isatty())
        except BaseException as error:
            if (output / UNFINISHED).exists() and not isinstance(error, KGRetrieversError):
                remark(f"what was trained is in {output}; the same command goes on from the last finished round")
            raise
    if begun:
        remark(f"what was trained before was taken from {output}")
    facts, rows = training.told(trained)
    command = _ask_command(options)
    if options.json:
        told = {"method": options.method, "output": str(output), "command": command, "seconds": trained.seconds}
        print(json.dumps(told | facts), flush=True)
        return 0
    show(
        f"Trained {options.method} in {trained.seconds:,.0f} seconds. The model is in {output}.",
        grid(*rows),
        f"Ask it: {command}",
    )
    return 0


@dataclass(frozen=True)
class _RetrieverTraining:
    """The training of a retriever's model, for which all is read."""

    train: Callable[..., Any]

    @classmethod
    def of(cls, options: argparse.Namespace) -> Self:
        with working(f"loading what trains {options.method}"):
            train = getattr(kg_retrievers, TRAINERS[options.method])
        given = dict(options.field)
        _check_fields(options.method, given)
        if options.visits is not None:
            given["visits"] = options.visits
        questions, validation = read_training_questions(options)
        return cls(partial(train, read_index(options), questions, validation, **given))

    def told(self, trained: Any) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        """Return what is to be said of it, for programs and for people."""
        before, after = trained.history[0], trained.best
        if after <= before:
            remark(NO_BETTER)
        if trained.untaught:
            remark(
                f"{trained.untaught:,} questions taught nothing: what they should teach is not among their candidates"
            )
        facts = {"training": _counts(trained.training), "validation": _counts(trained.validation)}
        facts |= {"ndcg_before": before, "ndcg_after": after, "history": trained.history}
        return facts | {"untaught": trained.untaught}, [
            ("Trained on", str(trained.training)),
            ("Validated with", str(trained.validation)),
            ("nDCG of answers", f"{before:.3f} before the training, {after:.3f} after it"),
        ]


def _check_output(folder: Path) -> None:
    """Check before the work begins that a model can be saved after it, and replaces none."""
    if (folder / FINISHED).exists():
        raise InvalidArgumentError(f"{folder} holds a model already. Name another folder: --output ...")
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir() or not access(there, W_OK):
        what = "cannot be written to" if there.is_dir() else "is a file"
        raise InvalidArgumentError(f"{there} {what}. Name another folder: --output ...")


def _check_fields(method: str, given: dict[str, Any]) -> None:
    """Check that what trains the method knows the fields: arguments of its own, or settings of the model."""
    arguments = inspect.signature(getattr(kg_retrievers, TRAINERS[method])).parameters.values()
    config = getattr(kg_retrievers, MODELS[method]).config_class
    known = {argument.name for argument in arguments if argument.kind is not argument.VAR_KEYWORD}
    known = (known | {field.name for field in fields(config)}).difference(NAMED_IN_TRAINING)
    if unknown := [name for name in given if name not in known]:
        raise InvalidArgumentError(
            f"the training of {method} has no field {unknown[0]!r}. There are: {', '.join(sorted(known))}."
        )


def _counts(questions: TrainingQuestions) -> dict[str, int]:
    """Return how many questions were used, and how many were not, by the reason."""
    left_out = {name: getattr(questions, name) for name in ("without_entities", "without_answers", "unreachable")}
    return {"used": len(questions.usable)} | left_out


def _ask_command(options: argparse.Namespace) -> str:
    """Return the command that asks the model, of a graph that is read as it was for the training."""
    graph = "GRAPH" if options.format in GRAPH_FORMATS else options.graph
    command = ["kg-retrievers", "ask", graph, "Who ...?"]
    for name, flag in READING.items():
        if value := getattr(options, name):
            command += [flag, value if isinstance(value, str) else ",".join(value)]
    if options.database_name is not None:
        command += ["--database-name", options.database_name]
    for label, key in options.key:
        command += ["--key", f"{label}={key}" if label else key]
    return shlex.join([*command, "--model", options.output])
