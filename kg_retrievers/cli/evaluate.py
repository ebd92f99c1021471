"""The command `evaluate`."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

import kg_retrievers
from kg_retrievers.cli.built_methods import MethodChoice, build_method, run_method
from kg_retrievers.cli.graph_prompt import retriever_models
from kg_retrievers.cli.load import check_database_is_used
from kg_retrievers.cli.measurement import read_measurement
from kg_retrievers.cli.output import check_figures, check_output, write_output
from kg_retrievers.cli.show import show_comparison, status
from kg_retrievers.methods.registry import GRAPH_PROMPT
from kg_retrievers.serving.loading import choose_methods, read_models

if TYPE_CHECKING:
    from kg_retrievers.evaluation import Report


def run(options: argparse.Namespace) -> int:
    """Measure a method on questions whose answers are known."""
    check_output(options.json)
    check_figures(options.figure)
    report = measured(options)
    if options.json:
        write_output(options.json, json.dumps(report.to_dict(), indent=2))
    if options.json != "-":
        show_comparison(kg_retrievers.compare([report], failures=0, by=options.by, figures=options.figure))
    return 0


def measured(options: argparse.Namespace) -> Report:
    """Ask a method the questions that the options name."""
    check_output(options.records)
    with status("reading the trained models"):
        models = read_models(options.model)
    prompt = models.pop(GRAPH_PROMPT.name, None)
    of_retrievers = retriever_models(prompt, models, options) if prompt else models
    named, _, source = (options.method or "").partition(":")
    choice = MethodChoice(choose_methods(named or None, of_retrievers), source)
    check_database_is_used(choice.methods, options)
    measurement = read_measurement(options, of_retrievers, prompt)
    with measurement.database:
        return run_method(build_method(choice, measurement, options), measurement, options, options.records)
