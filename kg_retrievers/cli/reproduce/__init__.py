"""The command `reproduce`: a table of a paper, the paper's figures beside ours."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kg_retrievers.cli.output import check_output, write_output
from kg_retrievers.cli.reproduce.data import DataSet, find_set, missing_part
from kg_retrievers.cli.show import note, show
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.file_writing import raise_write_errors

if TYPE_CHECKING:
    from kg_retrievers.cli.reproduce.commands import Commands
    from kg_retrievers.evaluation.papers.plan import Cell, Plan
    from kg_retrievers.evaluation.papers.table import Paper, Table


def run(options: argparse.Namespace) -> int:
    """Measure a table of a paper, or list the tables."""
    from kg_retrievers.cli.reproduce.report import (  # loads numpy, which the help does not need
        show_list,
        show_not_asked,
    )
    from kg_retrievers.evaluation.papers import PAPERS, find_paper

    if options.paper is None and options.table is not None:
        names = ", ".join(paper.name for paper in PAPERS)
        raise InvalidArgumentError(f"--table {options.table}: of which paper? Name one of {names}: reproduce PAPER ...")
    if options.table is None:
        papers = PAPERS if options.paper is None else (find_paper(options.paper),)
        show_list(papers)
        return 0
    paper = find_paper(options.paper)
    table = paper.table(options.table)
    if table.state == "not":
        show_not_asked(paper, table)
        return 0
    check_output(options.json)
    plan, commands = _planned(table, options)
    return _reproduce(paper, plan, commands, options)


def _planned(table: Table, options: argparse.Namespace) -> tuple[Plan, Commands]:
    """Return what is asked of the sets that are there, and the commands that ask it."""
    from kg_retrievers.cli.reproduce.checks import check_options
    from kg_retrievers.cli.reproduce.commands import Commands
    from kg_retrievers.evaluation.papers.plan import plan_table

    if options.data is None:
        raise InvalidArgumentError("--data must name the folder of the question sets. See: reproduce --help")
    models = dict(options.model)
    given = {"llm": options.llm is not None, "causal_lm": options.causal_lm is not None}
    plan = plan_table(table, models=models, split=options.split, **given)
    commands = Commands(options, {}, Path(options.records), models)
    sets, missing = _find_sets(plan, commands)
    plan = plan.without(missing)
    if not plan.cells:
        raise InvalidArgumentError(
            f"nothing of table {table.number} can be asked: {'; '.join(_reasons(plan, missing))}."
        )
    check_options(plan, options, models)
    return plan, replace(commands, sets=sets)


def _find_sets(plan: Plan, commands: Commands) -> tuple[dict[str, DataSet], dict[Cell, dict[str, str]]]:
    """Return the sets that are there by format, and by the cells that lack something what is wanted where."""
    home = Path(commands.options.data)
    sets: dict[str, DataSet] = {}
    missing: dict[Cell, dict[str, str]] = {}
    for cell in plan.distinct:
        if lacking := commands.lacks(cell):
            missing.setdefault(cell, {})[cell.model] = lacking
        for questions in commands.parts(cell):
            found = find_set(home, questions)
            if isinstance(found, str):
                missing.setdefault(cell, {})[questions.format] = found
                continue
            sets[questions.format] = found
            if lacking := missing_part(found, questions):
                missing.setdefault(cell, {})[questions.name] = lacking
    return sets, missing


def _reasons(plan: Plan, missing: Mapping[Cell, Mapping[str, str]]) -> list[str]:
    """Return why nothing can be asked: the sets that are missing, else what else is."""
    of_sets = [reason for reasons in missing.values() for reason in reasons.values()]
    return list(dict.fromkeys(of_sets or plan.left_out.values()))


def _told(plan: Plan, commands: Commands, asked: int) -> str:
    """Return what is asked, and what is trained before it; of tables that are counted, that nothing is."""
    trained = {cell.model for cell in plan.distinct if cell.model} - commands.models.keys()
    told = f"{asked:,} questions are asked" if asked else "no question is asked"
    return f"{told}; trained first, unless it was before: {', '.join(sorted(trained))}" if trained else told


def _reproduce(paper: Paper, plan: Plan, commands: Commands, options: argparse.Namespace) -> int:
    """Tell what is asked and what it will cost, ask it, and show the figures."""
    from kg_retrievers.cli.prices import read_price
    from kg_retrievers.cli.reproduce.cells import estimated, measure, spent
    from kg_retrievers.cli.reproduce.report import show_figures, show_plan, to_dict

    if options.prices and not options.llm:
        raise InvalidArgumentError("--prices is for a language model, but none is given. Leave it out, or: --llm ...")
    price = read_price(options.prices, options.llm) if options.prices else None
    quiet = options.json == "-"
    if not quiet:
        show_plan(paper, plan, commands)
    if options.dry_run or options.llm:
        costs, asked = estimated(plan, commands)
        told = _told(plan, commands, asked)
        if options.llm:
            told += f"; estimated: {costs.told(price)}"
        note(told) if quiet else show(f"\n{told}.")
    if options.dry_run:
        return 0
    for folder in (commands.home, commands.home / paper.name, commands.home / "databases"):
        with raise_write_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
    results = measure(plan, commands)
    if options.json:
        found = to_dict(paper, plan, results, spent(results), price)
        write_output(options.json, json.dumps(found, indent=2))
    if not quiet:
        show_figures(plan, results)
        show(f"\nCounted: {spent(results).told(price)}.")
    return 0
