"""The command `compare`."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import kg_retrievers
from kg_retrievers.cli.load import RETRIEVERS
from kg_retrievers.cli.show import remark, show_comparison
from kg_retrievers.cli.task import check_output, make_task, run_method, write_output
from kg_retrievers.errors import InvalidArgumentError

if TYPE_CHECKING:
    from kg_retrievers.evaluation import Report

#: In place of the name of a method: all that can be built with what is given.
ALL = "all"


def run(options: argparse.Namespace) -> int:
    """Put several methods, or earlier runs, side by side."""
    check_output(options.json)
    methods: dict[str, bool] = {}  # and whether it must be there
    for method in options.method:
        methods |= {method: True} if method != ALL else {name: methods.get(name, False) for name in sorted(RETRIEVERS)}
    reports = [*_read(options.runs, methods), *_measured(options, methods)]
    found = kg_retrievers.compare(reports, failures=options.failures)
    if options.json:
        told = {method: list(texts) for method, texts in found.failures.items()}
        write_output(options.json, json.dumps({"runs": [one.to_dict() for one in reports], "failures": told}, indent=2))
    if options.json != "-":
        show_comparison(found)
    return 0


def _read(paths: Sequence[str], methods: Collection[str]) -> list[Report]:
    """Read earlier runs, and add to the names that are there twice where they come from."""
    reports = [kg_retrievers.Report.read(path) for path in paths]
    names = Counter((*methods, *(report.method for report in reports)))
    return [
        replace(report, method=f"{report.method} ({path})") if names[report.method] > 1 else report
        for report, path in zip(reports, paths, strict=True)
    ]


def _measured(options: argparse.Namespace, methods: Mapping[str, bool]) -> Iterator[Report]:
    """Run the methods."""
    if not methods:
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
    task = make_task(options)
    for method, named in methods.items():
        try:
            yield run_method(method, task, options, folder and folder / f"{method.replace(':', '-')}.jsonl")
        except InvalidArgumentError as error:
            if named:
                raise
            remark(f"{method} is left out: {error}")
