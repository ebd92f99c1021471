"""Asks the cells of a table, each by the command `evaluate`, and before it indexes and trains what it needs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import kg_retrievers
from kg_retrievers.cli.evaluate import measured
from kg_retrievers.cli.index import run as run_index
from kg_retrievers.cli.options import make_parser
from kg_retrievers.cli.prices import Spent
from kg_retrievers.cli.reproduce.commands import Commands
from kg_retrievers.cli.show import note, status
from kg_retrievers.cli.train import run as run_train
from kg_retrievers.datasets import Question
from kg_retrievers.evaluation import Report
from kg_retrievers.evaluation.papers.figures import Figure, figure_of, grounding_of, statistics_of
from kg_retrievers.evaluation.papers.plan import Cell, Plan
from kg_retrievers.evaluation.papers.table import STATISTICS, SUPPORT, Group
from kg_retrievers.graph import KnowledgeGraph

#: How the line begins that says what a person would do after `index` and `train`.
_NEXT_STEP = "Ask it: "


@dataclass(frozen=True)
class Result:
    """What was measured at a cell: a run, and what is counted in the data or the answers."""

    report: Report | None
    counted: Mapping[str, Figure]

    def figure(self, metric: str, group: Group | None) -> Figure | None:
        """Return a figure by the name of its metric; None where the cell has it not."""
        if self.report is None or metric in self.counted:
            return self.counted.get(metric)
        return figure_of(self.report, metric, group)


def measure(plan: Plan, commands: Commands) -> dict[Cell, Result]:
    """Ask all cells; what earlier runs have asked is taken from the records."""
    results: dict[Cell, Result] = {}
    for number, cell in enumerate(plan.distinct, 1):
        note(f"{number} of {len(plan.distinct)}: {cell.name}")
        counted = cell.run.method == STATISTICS
        results[cell] = Result(None, _statistics(cell, commands)) if counted else _asked(cell, commands)
    return results


def estimated(plan: Plan, commands: Commands) -> tuple[Spent, int]:
    """Return what the calls will cost that are still to be made, and how many questions are to be asked."""
    cost, questions = Spent(), 0
    for cell in plan.distinct:
        if cell.run.method == STATISTICS:
            continue
        count = len(_questions(cell, commands))
        path = commands.records(cell)
        done = Report.read(path).records if path.is_file() else ()
        left = count - len(done)
        questions += left
        if cell.uses_llm:
            in_paper = Spent(cell.run.calls, *cell.run.tokens)
            cost += Spent.of(done).times(left / len(done)) if done else in_paper.times(left)
    return cost, questions


def spent(results: Mapping[Cell, Result]) -> Spent:
    """Return what the calls cost, those of earlier runs included."""
    return sum((Spent.of(one.report.records) for one in results.values() if one.report), Spent())


def _asked(cell: Cell, commands: Commands) -> Result:
    _make_index(cell.questions.format, commands)
    if cell.model and cell.model not in commands.models:
        _train(cell, commands)
    report = measured(_parsed(commands.evaluate(cell)))
    lists = cell.run.fields.get("prompting") == SUPPORT
    return Result(report, grounding_of(report, _questions(cell, commands), _one_graph(cell, commands)) if lists else {})


def _make_index(format: str, commands: Commands) -> None:
    """Index the graph of a set once, if there is one."""
    folder = commands.graph(format)
    if folder is not None and not _is_saved(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        _run(run_index, commands.index(format))


def _train(cell: Cell, commands: Commands) -> None:
    """Train a cell's model, unless an earlier run has."""
    from kg_retrievers.core.checkpoint import holds_model

    folder = commands.model(cell)
    if holds_model(folder):
        note(f"{cell.model} was trained before: {folder}")
        return
    _make_index(cell.learned, commands)
    note(f"training {cell.model} on the split train; the split of validation says when to stop")
    folder.parent.mkdir(parents=True, exist_ok=True)
    _run(run_train, commands.train(cell))


def _run(command: Callable[[argparse.Namespace], int], words: list[str]) -> None:
    """Run a command; what it says goes to stderr, since stdout is for the table, but not what to ask by hand."""
    with redirect_stdout(StringIO()) as said:
        command(_parsed(words))
    for line in said.getvalue().splitlines():
        if not line.startswith(_NEXT_STEP):
            print(line, file=sys.stderr)


def _parsed(words: list[str]) -> argparse.Namespace:
    options: argparse.Namespace = make_parser().parse_args(words, argparse.Namespace(debug=False))
    return options


def _is_saved(folder: Path) -> bool:
    from kg_retrievers.graph.storage.parts import is_saved

    return is_saved(folder)


def _questions(cell: Cell, commands: Commands) -> list[Question]:
    asked, options = cell.questions, commands.options
    hops = [asked.hops] if asked.hops else None
    with status(f"reading {asked.name}"):
        return kg_retrievers.read_question_set(
            commands.sets[asked.format].folder,
            asked.format,
            split=asked.split,
            only_hops=hops,
            limit=options.limit,
            seed=options.seed,
        )


def _statistics(cell: Cell, commands: Commands) -> dict[str, Figure]:
    return statistics_of(_questions(cell, commands), _one_graph(cell, commands), commands.options.seed)


def _one_graph(cell: Cell, commands: Commands) -> KnowledgeGraph | None:
    """Read the graph that all questions are about, if there is one."""
    file = commands.sets[cell.questions.format].graph
    return None if file is None else kg_retrievers.KnowledgeGraph.from_file(file)
