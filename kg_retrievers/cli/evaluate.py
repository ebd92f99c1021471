"""The command `evaluate`."""

from __future__ import annotations

import argparse
import json

import kg_retrievers
from kg_retrievers.cli.show import show_comparison
from kg_retrievers.cli.task import build_method, check_output, make_task, run_method, write_output


def run(options: argparse.Namespace) -> int:
    """Measure a method on questions whose answers are known."""
    check_output(options.json)
    check_output(options.records)
    task = make_task(options)
    report = run_method(build_method(options.method, task, options), task, options, options.records)
    if options.json:
        write_output(options.json, json.dumps(report.to_dict(), indent=2))
    if options.json != "-":
        show_comparison(kg_retrievers.compare([report], failures=0))
    return 0
