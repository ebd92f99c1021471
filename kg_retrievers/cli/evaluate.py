"""The command `evaluate`."""

from __future__ import annotations

import argparse
import json

import kg_retrievers
from kg_retrievers.cli.graph_prompt import read_asked_models
from kg_retrievers.cli.load import asked_method, check_database_is_used
from kg_retrievers.cli.show import show_comparison
from kg_retrievers.cli.task import build_method, check_output, make_task, run_method, write_output


def run(options: argparse.Namespace) -> int:
    """Measure a method on questions whose answers are known."""
    check_output(options.json)
    check_output(options.records)
    models, prompt = read_asked_models(options)
    method = asked_method(options.method, models)
    check_database_is_used(method, options)
    task = make_task(options, models, prompt)
    with task.database:
        report = run_method(build_method(method, task, options), task, options, options.records)
    if options.json:
        write_output(options.json, json.dumps(report.to_dict(), indent=2))
    if options.json != "-":
        show_comparison(kg_retrievers.compare([report], failures=0))
    return 0
