"""The command `compare`."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import kg_retrievers
from kg_retrievers.cli.graph_prompt import read_asked_models
from kg_retrievers.cli.load import CYPHER, RETRIEVERS, method_names
from kg_retrievers.cli.show import message, remark, show_comparison
from kg_retrievers.cli.task import Method, Task, build_method, check_output, make_task, run_method, write_output
from kg_retrievers.errors import InvalidArgumentError, MissingExtraError

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
        told = {method: list(texts) for method, texts in found.failures.items()}
        write_output(options.json, json.dumps({"runs": [one.to_dict() for one in reports], "failures": told}, indent=2))
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
    folder = Path(options.records) if options.records else None
    if folder:
        if folder.exists() and not folder.is_dir():
            raise InvalidArgumentError(f"{folder} is a file. Name a folder: --records ...")
        folder.mkdir(parents=True, exist_ok=True)
    models, prompt = read_asked_models(options)
    asked = {name for method in options.method for name in method_names(method)}
    for name, model in models.items():
        if name not in asked and ALL not in asked:
            remark(f"the model in {model.folder} is left out: {name} is not compared")
    if options.database is not None and not {CYPHER, ALL} & asked:
        remark(f"--database is left out: {CYPHER} is not compared")
    task = make_task(options, models, prompt)
    with task.database:
        for method in _built(options, task):
            yield run_method(method, task, options, folder and folder / f"{method.name.replace(':', '-')}.jsonl")


def _built(options: argparse.Namespace, task: Task) -> list[Method]:
    """Build the methods that are named, and for ALL each with nothing and with each of what is given.

    Raises:
        InvalidArgumentError: If none of them can be built, or
        MissingExtraError: if what is missing is an optional package.
    """
    methods: dict[str, bool] = {}  # and whether it is named
    every = [f"{name}:{source}" for name in sorted(RETRIEVERS) for source in task.sources]
    if len(task.sources) == 1:
        every = sorted(RETRIEVERS)
    for name in options.method:
        methods |= {name: True} if name != ALL else {one: methods.get(one, False) for one in every}
    built: list[Method] = []
    refused: dict[str, Exception] = {}
    for name, named in methods.items():
        try:
            method = build_method(name, task, options)
        except (InvalidArgumentError, MissingExtraError) as error:
            refused[name] = error
            continue
        alike = [one.name for one in built if _fields(one) == _fields(method)]
        if alike and not named:
            remark(f"{name} is left out: it is the same as {alike[0]}")
        else:
            built.append(method)
    if not built:
        raise next(iter(refused.values()))
    for name, reason in refused.items():
        remark(f"{name} is left out: {message(reason, options.format_flag)}")
    return built


def _fields(method: Method) -> tuple[object, ...]:
    """Return what the results of a method hang on; two retrievers with the same fields may have made other caches."""
    return type(method.retriever), dict(method.retriever), method.answering
