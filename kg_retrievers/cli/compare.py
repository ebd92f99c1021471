"""The command `compare`."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import kg_retrievers
from kg_retrievers.cli.graph_prompt import retriever_models
from kg_retrievers.cli.load import query_methods, read_models
from kg_retrievers.cli.show import message, note, show_comparison
from kg_retrievers.cli.task import (
    Choice,
    Contestant,
    Task,
    build_method,
    check_output,
    make_task,
    run_method,
    write_output,
)
from kg_retrievers.errors import InvalidArgumentError, MissingExtraError
from kg_retrievers.methods import registry
from kg_retrievers.methods.registry import GRAPH_PROMPT
from kg_retrievers.serving.loading import SavedModel

if TYPE_CHECKING:
    from kg_retrievers.evaluation import Report

#: In place of the name of a method: all that can be built with what is given.
ALL = "all"


def run(options: argparse.Namespace) -> int:
    """Put several methods, or earlier runs, side by side."""
    check_output(options.json)
    earlier = [kg_retrievers.Report.read(path) for path in options.runs]
    measured = list(_measured(options))
    names = Counter(report.method for report in (*earlier, *measured))
    reports = [
        replace(report, method=f"{report.method} ({path})") if names[report.method] > 1 else report
        for report, path in zip(earlier, options.runs, strict=True)
    ] + measured
    found = kg_retrievers.compare(reports, failures=options.failures)
    if options.json:
        failures = {method: list(texts) for method, texts in found.failures.items()}
        runs = [report.to_dict() for report in reports]
        write_output(options.json, json.dumps({"runs": runs, "failures": failures}, indent=2))
    if options.json != "-":
        show_comparison(found)
    return 0


def _measured(options: argparse.Namespace) -> Iterator[Report]:
    """Run the methods."""
    if not options.method:
        if not options.runs:
            raise InvalidArgumentError("name files of records, or methods to run: --method ... --method ...")
        return
    if missing := [f"--{name}" for name in ("graph", "data", "format") if getattr(options, name) is None]:
        raise InvalidArgumentError(f"to run methods, {' and '.join(missing)} must be given. See: compare --help")
    folder = _folder_of_records(options.records)
    models = read_models(options.model)
    prompt = models.pop(GRAPH_PROMPT.name, None)
    if prompt:
        retriever_models(prompt, models, options)
    _note_unused(options, models)
    task = make_task(options, models, prompt)
    with task.database:
        for contestant in _built(options, task):
            name = contestant.choice.name.replace(":", "-")
            yield run_method(contestant, task, options, folder and folder / f"{name}.jsonl")


def _folder_of_records(name: str | None) -> Path | None:
    """Make the folder that keeps what is measured, if one is named."""
    if name is None:
        return None
    folder = Path(name)
    if folder.exists() and not folder.is_dir():
        raise InvalidArgumentError(f"{folder} is a file. Name a folder: --records ...")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _note_unused(options: argparse.Namespace, models: Mapping[str, SavedModel]) -> None:
    """Note which models, and whether a database, no method that is compared uses."""
    if ALL in options.method:
        return
    compared = {method for name in options.method for method in Choice.of(name).methods}
    for name, saved in models.items():
        if saved.entry not in compared:
            note(f"the model in {saved.folder} is left out: {name} is not compared")
    if options.database is not None and not any(method.runs_queries for method in compared):
        note(f"--database is left out: {query_methods()} is not compared")


def _built(options: argparse.Namespace, task: Task) -> list[Contestant]:
    """Build the methods that are named, and for ALL each with nothing and with each of what is given.

    Raises:
        InvalidArgumentError: If none of them can be built, or
        MissingExtraError: if what is missing is an optional package.
    """
    built: list[Contestant] = []
    refused: dict[str, Exception] = {}
    for choice, is_named in _choices(options, task).items():
        try:
            contestant = build_method(choice, task, options)
        except (InvalidArgumentError, MissingExtraError) as error:
            refused[choice.name] = error
            continue
        alike = [one.choice.name for one in built if _made_of(one) == _made_of(contestant)]
        if alike and not is_named:
            note(f"{choice.name} is left out: it is the same as {alike[0]}")
        else:
            built.append(contestant)
    if not built:
        raise next(iter(refused.values()))
    for name, reason in refused.items():
        note(f"{name} is left out: {message(reason)}")
    return built


def _choices(options: argparse.Namespace, task: Task) -> dict[Choice, bool]:
    """Return what is to be compared, in order, each with whether it is named, not only meant by ALL."""
    sources = task.sources if len(task.sources) > 1 else [""]
    choices: dict[Choice, bool] = {}
    for name in options.method:
        if name != ALL:
            choices[Choice.of(name)] = True
            continue
        for method in map(registry.find_method, registry.method_names()):
            for source in sources:
                choices.setdefault(Choice((method,), source), False)
    return choices


def _made_of(contestant: Contestant) -> tuple[object, ...]:
    """Return what its results hang on; two retrievers with the same fields may have made other caches."""
    return type(contestant.retriever), dict(contestant.retriever), contestant.answers_by
