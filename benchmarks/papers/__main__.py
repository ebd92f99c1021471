"""Measure a table of a paper and print its figures beside ours.

python -m benchmarks.papers                                         # list all tables
python -m benchmarks.papers PAPER --table N --data DIR --dry-run    # print the plan
python -m benchmarks.papers PAPER --table N --data DIR [--limit N] [--llm PROVIDER:MODEL]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.papers.figures import Figure, figure_of
from benchmarks.papers.measure import Bench, find_method
from benchmarks.papers.tables import (
    STATISTICS,
    Cell,
    Plan,
    find_table,
    paper_names,
    plan_table,
    read_paper,
    reasons,
    state,
)
from kg_retrievers.errors import InvalidArgumentError, KGRetrieversError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    options = _options(arguments)
    try:
        if options.paper is None or options.table is None:
            for name in [options.paper] if options.paper else paper_names():
                _list_tables(name)
            return 0
        return _measure(options)
    except KGRetrieversError as error:
        print(f"benchmarks.papers: error: {error}", file=sys.stderr)
        return 2


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paper", nargs="?", metavar="PAPER", help="the method of the paper")
    parser.add_argument("--table", metavar="N", help="the number of the table, or figure-N")
    parser.add_argument("--dry-run", action="store_true", help="print the plan and ask nothing")
    parser.add_argument("--data", metavar="DIR", help="the folder of the question sets, each in its own folder")
    parser.add_argument("--split", metavar="NAME", help="the split to ask (default: the paper's)")
    parser.add_argument("--train-split", default="train", metavar="NAME", help="the split to learn from")
    parser.add_argument("--limit", type=int, metavar="N", help="at most so many questions of each number of hops")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of all random numbers (default: 0)")
    parser.add_argument("--embeddings", metavar="NAME", help="as for kg-retrievers index")
    parser.add_argument("--llm", metavar="PROVIDER:MODEL", help="a language model that reads the evidence")
    parser.add_argument("--causal-lm", metavar="NAME", help="a model of Hugging Face for graph prompts")
    parser.add_argument(
        "--model", type=_named_folder, action="append", default=[], metavar="NAME=FOLDER", help="a trained model"
    )
    parser.add_argument("--records", default="reproduced", metavar="FOLDER", help="the folder for records and models")
    parser.add_argument("--json", metavar="FILE", help="write the figures")
    return parser.parse_args(arguments)


def _named_folder(text: str) -> tuple[str, str]:
    name, equals, folder = text.partition("=")
    if not (name and equals and folder):
        raise argparse.ArgumentTypeError(f"wanted NAME=FOLDER, but got {text!r}")
    return name, folder


def _list_tables(name: str) -> None:
    for table in read_paper(name)["tables"]:
        why = "; ".join(reasons(table))
        print(f"{name} --table {table['number']}: {table['caption']} ({state(table)}{f': {why}' if why else ''})")


def _measure(options: argparse.Namespace) -> int:
    paper = read_paper(options.paper)
    table = find_table(paper, options.table)
    if state(table) == "not":
        print(f"Nothing of this table is asked: {'; '.join(reasons(table))}.")
        return 0
    if options.data is None:
        raise InvalidArgumentError("name the folder of the question sets: --data DIR")
    bench = Bench(options.paper, options)
    given = {"llm": bool(options.llm), "causal_lm": bool(options.causal_lm), "split": options.split}
    plan = plan_table(paper, table, models=bench.models, **given)
    for at, (cell, _) in list(plan.cells.items()):
        if lacking := bench.lacks(cell):
            del plan.cells[at]
            plan.left_out[cell.name] = lacking
    _show_plan(paper, table, plan, options)
    if not plan.cells:
        raise InvalidArgumentError("nothing of this table can be asked with these options.")
    asked, calls, given_tokens, written = bench.estimate(plan.distinct)
    cost = f"; about {calls:,} calls, {given_tokens:,} tokens read and {written:,} written" if calls else ""
    print(f"\n{asked:,} questions in {len(plan.distinct)} runs{cost}", flush=True)
    if options.dry_run:
        return 0
    figures = _figures(table, plan, bench)
    _show_figures(figures)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"paper": options.paper, "table": options.table, "figures": figures}, file, indent=2)
    return 0


def _show_plan(paper: Mapping[str, Any], table: Mapping[str, Any], plan: Plan, options: argparse.Namespace) -> None:
    """Print the differences from the paper."""
    print(f"{paper['title']}, table {table['number']}: {table['caption']}\n")
    for cell in plan.distinct:
        model = f", model {cell.model}" if cell.model else ""
        print(f"- asked: {cell.name}{model}{_preset(cell)}")
    print(f"- embeddings: {options.embeddings or 'those of the package'} (in the paper: {paper['embeddings']})")
    if any(cell.uses_llm for cell in plan.distinct):
        print(f"- language model: {options.llm} (in the paper: {table.get('llm') or paper['llm']})")
    if options.limit or options.split:
        part = f"at most {options.limit:,} of each number of hops" if options.limit else "all"
        print(f"- questions: {part}, split {options.split or 'as in the paper'}, seed {options.seed}")
    for name, reason in plan.left_out.items():
        print(f"- left out: {name}: {reason}")
    for reason in reasons(table):
        if reason not in plan.left_out.values():
            print(f"- differs: {reason}")


def _preset(cell: Cell) -> str:
    names = cell.run["method"].split("+")
    if cell.run["method"] == STATISTICS or all("paper" in find_method(name).load_retriever().presets for name in names):
        return ""
    return ", with the settings of this package"


def _figures(table: Mapping[str, Any], plan: Plan, bench: Bench) -> list[dict[str, Any]]:
    """Ask all cells; return the paper's figures and ours."""
    found = {}
    for cell in plan.distinct:
        print(f"asking {cell.name}", file=sys.stderr, flush=True)
        found[cell] = bench.statistics(cell) if cell.run["method"] == STATISTICS else bench.report(cell)
    figures = []
    for at, row in enumerate(table["rows"]):
        for column_at, column in enumerate(table["columns"]):
            ours: Figure | None = None
            if (at, column_at) in plan.cells:
                cell, metric = plan.cells[at, column_at]
                measured = found[cell]
                if isinstance(measured, Mapping):
                    ours = measured.get(metric)
                else:
                    ours = figure_of(*measured, metric, column.get("group"))
            paper, unit = row["figures"][column_at], column.get("unit", 1.0)
            if paper is None and ours is None:
                continue
            figures.append({"row": row["name"], "column": column["name"], "paper": paper, "ours": None})
            if ours is not None:
                interval = None if ours.low is None or ours.high is None else [unit * ours.low, unit * ours.high]
                figures[-1] |= {"ours": unit * ours.value, "interval": interval, "n": ours.n}
    return figures


def _show_figures(figures: Sequence[Mapping[str, Any]]) -> None:
    print("\n| row | column | paper | ours | 95 % interval | n |\n|---|---|---|---|---|---|")
    for one in figures:
        low_high = " to ".join(map(_number, one["interval"])) if one.get("interval") else "-"
        cells = [one["row"], one["column"], _number(one["paper"]), _number(one["ours"]), low_high, one.get("n", "-")]
        print(f"| {' | '.join(map(str, cells))} |")


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 2 else f"{value:.4g}"


if __name__ == "__main__":
    sys.exit(main())
