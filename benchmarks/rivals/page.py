"""The tables and the charts of results, as the docs show them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.figures import Run, load, markdown, provenance, share
from benchmarks.rivals.measuring import BUDGETS, MAIN_BUDGET

Row = Mapping[str, Any]

#: The name of all hand-made graphs together. Single graphs have no table in the docs.
HAND_MADE = "Hand-made graphs"

#: How many rivals a chart shows: those with the best answer recall at the main budget. The tables show all.
RIVALS_DRAWN = 8


def table(rows: Sequence[Row]) -> str:
    """Return one set's rows as two Markdown tables: the answers, then the facts and the cost."""
    facts = [["facts", *_BUDGETS, "CPU ms", "ready, CPU s"]]
    for row in rows:
        on_walks = row["triple_recall"] or {}
        shares = [share(on_walks.get(str(budget))) for budget in BUDGETS]
        facts.append([_name(row), *shares, f"{row['cpu_ms']:,.1f}", f"{row['ready_s']:,.1f}"])
    return f"{answers_table(rows)}\n\n{markdown(facts)}"


def answers_table(rows: Sequence[Row]) -> str:
    """Return the answer recall of one set's rows."""
    lines = [["answers", *_BUDGETS, f"95 % @{MAIN_BUDGET}", "n"]]
    for row in rows:
        shares = [share(row["answer_recall"][str(budget)]) for budget in BUDGETS]
        lines.append([_name(row), *shares, "-".join(map(share, row["interval"])), str(row["n"])])
    return markdown(lines)


_BUDGETS = [f"@{budget:,}" for budget in BUDGETS]


def rows_of(file: str, name: str) -> list[Row]:
    """Return the rows of one set in a file of results."""
    return [row for row in load(file)["rows"] if row["set"] == name]


def set_tables(subject: str) -> str:
    """Return the tables of a set of `rivals.json` for the docs."""
    return table(rows_of("rivals", subject))


def kept_table(_: str) -> str:
    """Return the answer recall on the graphs that are kept aside, and how it was measured."""
    return f"{answers_table(rows_of('rivals-kept', HAND_MADE))}\n\n{provenance(load('rivals-kept')['runs'])}"


def summary(subject: str) -> str:
    """Return the answer recall at the main budget: of all methods, or of some (split by ";") on sets that all have."""
    rows = [row for row in load("rivals")["rows"] if not subject or row["method"] in subject.split("; ")]
    methods, cells = {row["method"]: row for row in rows}, {(row["method"], row["set"]): row for row in rows}
    names = [name for name in shown_sets(rows) if not subject or all((method, name) in cells for method in methods)]
    lines = [[f"answers @{MAIN_BUDGET}", *names]]
    for method, row in methods.items():
        found = [cells.get((method, name)) for name in names]
        lines.append([_name(row), *(share(one and main_recall(one)) for one in found)])
    return markdown(lines)


def shown_sets(rows: Sequence[Row]) -> list[str]:
    """Return the names of the sets, without single hand-made graphs."""
    names = list(dict.fromkeys(row["set"] for row in rows))
    return names[: names.index(HAND_MADE) + 1] if HAND_MADE in names else names


def settings(_: str) -> str:
    """Return the settings of methods that do not have their defaults."""
    found = {row["method"]: row["setting"] for row in load("rivals")["rows"] if row["setting"] != "default"}
    return markdown([["method", "setting"], *map(list, found.items())])


def runs(_: str) -> str:
    """Return how each row was measured."""
    return "\n".join(map(_run_line, load("rivals")["runs"]))


def _run_line(run: Run) -> str:
    older = "older than this version, " if "note" in run else ""
    return f"- `{run['command']}`: {older}commit {run['commit']}, seed {run['seed']}, {run['n']}."


def _name(row: Row) -> str:
    name = f"**{row['method']}**" if row["ours"] else row["method"]
    return name + (" †" if row["given_entities"] else "")


def main_recall(row: Row) -> float:
    """Return the answer recall at the main budget."""
    recall: float = row["answer_recall"][str(MAIN_BUDGET)]
    return recall


def draw_charts(results: Mapping[str, Any], folder: Path) -> list[tuple[str, Path]]:
    """Draw answer recall against tokens for each set; return the names of the sets and the pictures."""
    from matplotlib import pyplot

    pyplot.rcParams.update({"svg.hashsalt": "evidence", "svg.fonttype": "none", "font.size": 9})
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for name in shown_sets(results["rows"]):
        rows = [row for row in results["rows"] if row["set"] == name]
        figure, panel = pyplot.subplots(figsize=(8, 4.2), layout="constrained")
        ours = [row for row in rows if row["ours"]]
        rivals = sorted((row for row in rows if not row["ours"]), key=main_recall, reverse=True)[:RIVALS_DRAWN]
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
