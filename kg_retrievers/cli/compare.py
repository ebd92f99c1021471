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
from kg_retrievers.cli.built_methods import BuiltMethod, MethodChoice, build_method, run_method
from kg_retrievers.cli.graph_prompt import retriever_models
from kg_retrievers.cli.load import query_methods
from kg_retrievers.cli.measurement import Measurement, read_measurement
from kg_retrievers.cli.output import check_figures, check_output, write_output
from kg_retrievers.cli.show import message, note, show_comparison, status
from kg_retrievers.errors import InvalidArgumentError, MissingExtraError
from kg_retrievers.file_writing import raise_write_errors
from kg_retrievers.methods import registry
from kg_retrievers.methods.registry import GRAPH_PROMPT
from kg_retrievers.serving.loading import SavedModel, read_models

if TYPE_CHECKING:
    from kg_retrievers.evaluation import Report

#: Stands for every method that can be built from the options.
ALL = "all"


def run(options: argparse.Namespace) -> int:
    """Put several methods, or earlier runs, side by side."""
    check_output(options.json)
    check_figures(options.figure)
    earlier = [kg_retrievers.Report.read(path) for path in options.runs]
    measured = list(_measured(options))
    names = Counter(report.method for report in (*earlier, *measured))
    reports = [
        replace(report, method=f"{report.method} ({path})") if names[report.method] > 1 else report
        for report, path in zip(earlier, options.runs, strict=True)
    ] + measured
    found = kg_retrievers.compare(reports, failures=options.failures, by=options.by, figures=options.figure)
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
    if missing := [f"--{name}" for name in ("data", "format") if getattr(options, name) is None]:
        raise InvalidArgumentError(f"to run methods, {' and '.join(missing)} must be given. See: compare --help")
    folder = _folder_of_records(options.records)
    with status("reading the trained models"):
        models = read_models(options.model)
    prompt = models.pop(GRAPH_PROMPT.name, None)
    if prompt:
        retriever_models(prompt, models, options)
    _note_unused(options, models)
    measurement = read_measurement(options, models, prompt)
    with measurement.database:
        for built in _built_methods(options, measurement):
            name = built.choice.name.replace(":", "-")
            yield run_method(built, measurement, options, folder and folder / f"{name}.jsonl")


def _folder_of_records(name: str | None) -> Path | None:
    """Make the folder of records, if the options name one."""
    if name is None:
        return None
    folder = Path(name)
    if folder.exists() and not folder.is_dir():
        raise InvalidArgumentError(f"{folder} is a file. Name a folder: --records ...")
    with raise_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def _note_unused(options: argparse.Namespace, models: Mapping[str, SavedModel]) -> None:
    """Note the models and the database that no compared method uses."""
    if ALL in options.method:
        return
    compared = {method for name in options.method for method in MethodChoice.of(name).methods}
    for name, saved in models.items():
        if saved.entry not in compared:
            note(f"the model in {saved.folder} is left out: {name} is not compared")
    if options.database is not None and not any(method.runs_queries for method in compared):
        note(f"--database is left out: {query_methods()} is not compared")


def _built_methods(options: argparse.Namespace, measurement: Measurement) -> list[BuiltMethod]:
    """Build the named methods; ALL builds each method with nothing, and with each source that is given.

    Raises:
        InvalidArgumentError: If none of them can be built, or
        MissingExtraError: if what is missing is an optional package.
    """
    all_built: list[BuiltMethod] = []
    refused: dict[str, Exception] = {}
    for choice, is_named in _choices(options, measurement).items():
        try:
            built = build_method(choice, measurement, options)
        except (InvalidArgumentError, MissingExtraError) as error:
            refused[choice.name] = error
            continue
        alike = [one.choice.name for one in all_built if _made_of(one) == _made_of(built)]
        if alike and not is_named:
            note(f"{choice.name} is left out: it is the same as {alike[0]}")
        else:
            all_built.append(built)
    if not all_built:
        raise next(iter(refused.values()))
    for name, reason in refused.items():
        note(f"{name} is left out: {message(reason)}")
    return all_built


def _choices(options: argparse.Namespace, measurement: Measurement) -> dict[MethodChoice, bool]:
    """Return the choices to compare, in order; True where the user names one, False where only ALL includes it."""
    sources = measurement.sources if len(measurement.sources) > 1 else [""]
    choices: dict[MethodChoice, bool] = {}
    for name in options.method:
        if name != ALL:
            choices[MethodChoice.of(name)] = True
            continue
        for method in map(registry.find_method, registry.method_names()):
            for source in sources:
                choices.setdefault(MethodChoice((method,), source), False)
    return choices


def _made_of(built: BuiltMethod) -> tuple[object, ...]:
    """Return what determines its results; caches do not."""
    return type(built.retriever), dict(built.retriever), built.answers_by
