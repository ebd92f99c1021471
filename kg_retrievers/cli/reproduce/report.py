"""What `reproduce` tells: the tables there are, what is asked as in the paper and what is not, the figures."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table as Columns
from rich.text import Text

from kg_retrievers.cli.prices import Price, Spent
from kg_retrievers.cli.reproduce.cells import Result
from kg_retrievers.cli.reproduce.commands import Commands, has_preset
from kg_retrievers.cli.show import show
from kg_retrievers.evaluation.papers.figures import Figure
from kg_retrievers.evaluation.papers.plan import Cell, Plan, metric_of
from kg_retrievers.evaluation.papers.table import STATISTICS, Paper, Table
from kg_retrievers.serving.loading import STATIC


def show_list(papers: Sequence[Paper]) -> None:
    """List the tables of papers, with how much of each is asked."""
    for paper in papers:
        rows = [(table.number, table.state, table.caption) for table in paper.tables]
        show(Text(f"\n{paper.title}: kg-retrievers reproduce {paper.name} --table N --data DIR", style="bold"))
        show(_columns(("table", "asked", "what it shows"), rows), wide=True)


def show_not_asked(paper: Paper, table: Table) -> None:
    """Tell why a table is not asked, with the paper's figures if it has some."""
    show(_title(paper, table), f"Not asked here: {'; '.join(table.reasons)}.")
    rows = [
        (row.name, column.name, _number(figure))
        for row in table.rows
        for column, figure in zip(table.columns, row.figures, strict=True)
        if figure is not None
    ]
    if rows:
        show("", _columns(("row", "column", "paper"), rows), wide=True)


def show_plan(paper: Paper, plan: Plan, commands: Commands) -> None:
    """Tell what is asked as in the paper, what is not and why, and by which commands."""
    show(_title(paper, plan.table), "", Text("As in the paper", style="bold"))
    show(*(f"- {line}" for line in _alike(plan)), wide=True)
    show("", Text("Not as in the paper", style="bold"))
    show(*(f"- {line}" for line in differences(paper, plan, commands.options)), wide=True)
    if told := _commands(plan, commands):
        show("", Text("What is asked", style="bold"))
        show(*(f"  {shlex.join(['kg-retrievers', *words])}" for words in told), wide=True)


def _commands(plan: Plan, commands: Commands) -> list[list[str]]:
    """Return the commands in the order they are run, each once."""
    told: dict[str, list[str]] = {}
    for cell in plan.distinct:
        if cell.run.method == STATISTICS:
            continue
        for format in cell.formats:
            if commands.graph(format) is not None:
                told.setdefault(f"index {format}", commands.index(format))
        if cell.model and cell.model not in commands.models:
            told.setdefault(f"train {cell.model}", commands.train(cell))
        told[cell.name] = commands.evaluate(cell)
    return list(told.values())


def _alike(plan: Plan) -> list[str]:
    """Return what is as in the paper."""
    lines = []
    for cell in plan.distinct:
        run = cell.run
        if run.method == STATISTICS:
            lines.append(f"sizes of {cell.questions.name}, counted in the data")
            continue
        settings = [f"{name}={value}" for name, value in run.fields.items()]
        but = ", but for the examples below" if run.examples and not cell.uses_llm else ""
        settings = [f"its settings (preset paper{but})", *settings] if has_preset(run.method) else settings
        with_settings = f" with {', '.join(settings)}" if settings else ""
        lines.append(f"{run.method}{with_settings} on {cell.questions.name}")
    return list(dict.fromkeys(lines))


def differences(paper: Paper, plan: Plan, options: Any) -> list[str]:
    """Return what is not as in the paper, and why."""
    table, cells = plan.table, plan.distinct
    lines = []
    llm = table.llm or paper.llm
    if any(row.run and row.run.llm != "none" for row in table.rows):
        ours = options.llm or "none; answers are those that the method proposes from the graph"
        lines.append(f"language model: {ours}; in the paper: {llm}")
    if any(cell.is_tuned for cell in cells):
        lines.append(f"language model that is trained: {options.causal_lm or 'that of --model'}; in the paper: {llm}")
    if any(cell.run.method != STATISTICS for cell in cells):
        lines.append(f"text encoder: {options.embeddings or STATIC}; in the paper: {paper.embeddings}")
    lines += [
        f"{run.method} has the settings of this package: its paper's are not among the presets"
        for run in {cell.run.method: cell.run for cell in cells}.values()
        if run.method != STATISTICS and not has_preset(run.method)
    ]
    lines += [_examples(cell, options) for cell in cells if cell.run.examples]
    if options.split:
        splits = dict.fromkeys(column.questions.split for column in table.columns)
        lines.append(f"questions: of the split {options.split}; in the paper: {', '.join(splits)}")
    if options.limit:
        lines.append(f"questions: at most {options.limit:,} of each number of hops, drawn with seed {options.seed}")
    lines += [reason for reason in table.reasons if reason not in plan.left_out.values()]
    by_reason: dict[str, list[str]] = {}
    for name, reason in plan.left_out.items():
        by_reason.setdefault(reason, []).append(name)
    return [*dict.fromkeys(lines), *(f"left out: {', '.join(names)}: {why}" for why, names in by_reason.items())]


def _examples(cell: Cell, options: Any) -> str:
    """Return which labelled questions a method gets, and what for."""
    split = options.examples_split or "train"
    of_paper = "" if split == "train" else " (in the paper: train)"
    hops = ", of as many hops as the questions that are asked," if cell.questions.hops else ""
    instead = "too" if cell.uses_llm else "in place of a language model"
    return (
        f"up to {cell.run.examples:,} labelled questions of the split {split}{of_paper}{hops} write patterns, {instead}"
    )


def figures(plan: Plan, results: Mapping[Cell, Result]) -> list[tuple[str, str, float | None, Figure | None]]:
    """Return the row, the column, the paper's figure and ours."""
    found = []
    for at, row in enumerate(plan.table.rows):
        for column_at, column in enumerate(plan.table.columns):
            cell = plan.cells.get((at, column_at))
            metric = cell and metric_of(row, column, cell)
            ours = results[cell].figure(metric, column.group) if cell and metric else None
            if row.figures[column_at] is not None or ours:
                found.append((row.name, column.name, row.figures[column_at], ours and ours.scaled(column.unit)))
    return found


def show_figures(plan: Plan, results: Mapping[Cell, Result]) -> None:
    """Show the paper's figures beside ours."""
    rows = []
    for row, column, paper, ours in figures(plan, results):
        measured = ("-", "-", "-") if ours is None else (_number(ours.value), _interval(ours), f"{ours.n:,}")
        rows.append((row, column, _number(paper), *measured))
    show("", _columns(("row", "column", "paper", "ours", "95 % interval", "n"), rows), wide=True)


def to_dict(
    paper: Paper, plan: Plan, results: Mapping[Cell, Result], spent: Spent, price: Price | None
) -> dict[str, Any]:
    """Return the figures and the cost, JSON-safe."""
    return {
        "paper": paper.name,
        "table": plan.table.number,
        "state": plan.table.state,
        "figures": [
            {
                "row": row,
                "column": column,
                "paper": figure,
                "ours": ours and ours.value,
                "interval": [ours.low, ours.high] if ours and ours.low is not None else None,
                "n": ours.n if ours else None,
            }
            for row, column, figure, ours in figures(plan, results)
        ],
        "left_out": dict(plan.left_out),
        "llm_calls": spent.calls,
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "cost": None if price is None else spent.money(price),
    }


def _title(paper: Paper, table: Table) -> Text:
    what = f"Table {table.number}" if table.number.isdecimal() else table.number.replace("-", " ").capitalize()
    return Text(f"{what} of {paper.title}: {table.caption}", style="bold")


def _columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Columns:
    columns = Columns(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for head in heads:
        columns.add_column(head)
    for row in rows:
        columns.add_row(*row)
    return columns


def _number(value: float | None) -> str:
    """Return a figure with as many digits as it needs."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 2 else f"{value:.4g}"


def _interval(figure: Figure) -> str:
    return "-" if figure.low is None else f"{_number(figure.low)} to {_number(figure.high)}"
