"""The tables and the charts of results, and the page of the docs that shows them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.rivals.measuring import BUDGETS, MAIN_BUDGET

Row = Mapping[str, Any]

#: How many rivals a chart shows: those with the best answer recall at the main budget. The tables show all.
RIVALS_DRAWN = 8


def table(rows: Sequence[Row]) -> str:
    """Return one set's rows as a Markdown table."""
    head = ["method", "setting", *(f"answers @{budget:,}" for budget in BUDGETS), f"95 % @{MAIN_BUDGET}"]
    head += [*(f"facts @{budget:,}" for budget in BUDGETS), "CPU ms", "ready, CPU s", "n"]
    lines = [head, ["---"] * len(head), *map(_cells, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(row: Row) -> list[str]:
    name = f"**{row['method']}**" if row["ours"] else row["method"]
    given = " †" if row["given_entities"] else ""
    low, high = row["interval"]
    facts = row["triple_recall"] or {}
    return [
        name + given,
        row["setting"],
        *(_share(row["answer_recall"][str(budget)]) for budget in BUDGETS),
        f"{_share(low)}-{_share(high)}",
        *(_share(facts.get(str(budget))) for budget in BUDGETS),
        f"{row['cpu_ms']:,.1f}",
        f"{row['ready_s']:,.1f}",
        str(row["n"]),
    ]


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}".lstrip("0") if value < 1 else "1.000"


def _main_recall(row: Row) -> float:
    recall: float = row["answer_recall"][str(MAIN_BUDGET)]
    return recall


def draw_charts(results: Mapping[str, Any], folder: Path) -> list[tuple[str, Path]]:
    """Draw answer recall against tokens for each set; return the names of the sets and the pictures."""
    from matplotlib import pyplot

    pyplot.rcParams.update({"svg.hashsalt": "evidence", "svg.fonttype": "none", "font.size": 9})
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name in dict.fromkeys(row["set"] for row in results["rows"]):
        rows = [row for row in results["rows"] if row["set"] == name]
        figure, panel = pyplot.subplots(figsize=(8, 4.2), layout="constrained")
        ours = [row for row in rows if row["ours"]]
        rivals = sorted((row for row in rows if not row["ours"]), key=_main_recall, reverse=True)[:RIVALS_DRAWN]
        styles = ((ours, {"linewidth": 2.2}), (rivals, {"linewidth": 1.2, "linestyle": "--"}))
        for number, row, style in ((number, row, style) for some, style in styles for number, row in enumerate(some)):
            values = [row["answer_recall"][str(budget)] for budget in BUDGETS]
            panel.plot(BUDGETS, values, marker="o", markersize=3, color=f"C{number}", label=row["method"], **style)
        panel.set(xscale="log", xlabel="tokens", ylabel="answer recall", ylim=(0, 1.02), title=name)
        panel.set_xticks(BUDGETS, [f"{budget:,}" for budget in BUDGETS])
        panel.minorticks_off()
        panel.grid(alpha=0.3)
        panel.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
        path = folder / f"evidence-{re.sub(r'[^a-z0-9]+', '-', name.casefold()).strip('-')}.svg"
        figure.savefig(path, metadata={"Date": None})
        pyplot.close(figure)
        drawn.append((name, path))
    return drawn


def write_page(results: Mapping[str, Any], docs: Path) -> None:
    """Write `evidence.md` and its charts into the folder of the docs."""
    shown = dict(draw_charts(results, docs / "pictures"))
    rows = results["rows"]
    parts = [_INTRODUCTION, *map(_run_line, results["runs"]), ""]
    for name, picture in shown.items():
        parts.append(f"## {name}\n\n![Answer recall against tokens, {name}](pictures/{picture.name})\n")
        parts.append(table([row for row in rows if row["set"] == name]) + "\n")
    (docs / "evidence.md").write_text("\n".join(parts), "utf-8")


def _run_line(run: Mapping[str, Any]) -> str:
    packages = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
    limit = run["limit"] or "all"
    return (
        f"- `{run['command']}`: commit {run['commit']}, seed {run['seed']}, at most {limit} questions of each graph, "
        f"fewer if they cost more than {run['seconds']:.0f} CPU seconds. Embeddings: {run['embeddings']}. "
        f"Python {run['python']}, {packages}."
    )


_INTRODUCTION = """\
# Evidence for a token budget, side by side

Each method puts facts in an order. The facts are taken from the first on, while their text stays within the budget of
tokens. Every fact is the same line for every method: `head -> relation -> tail`. *Answers* is the share of the gold
answers that are an end of a taken fact. *Facts* is the share of the facts on the gold walks that are taken. A question
for which a method finds nothing counts 0. No language model, no examples and no training take part. Our methods are in
bold. Methods with † link no entities themselves, and get the entities that our linker finds.

The hand-made graphs are those of `benchmarks/own_graphs/dev`, which were looked at while KGRetriever was built. CPU
times are medians per question, on one core of a shared machine: compare those of one run alone. A chart shows the eight
best rivals at 150 tokens.
`benchmarks/rivals/README.md` says how each rival was called, and which could not run.
"""
