"""The tables and the charts of results, and the page of the docs that shows them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.rivals.measuring import BUDGETS, MAIN_BUDGET

Row = Mapping[str, Any]

#: The name of all hand-made graphs together. Single graphs follow it.
HAND_MADE = "Hand-made graphs"

#: How many rivals a chart shows: those with the best answer recall at the main budget. The tables show all.
RIVALS_DRAWN = 8


def table(rows: Sequence[Row]) -> str:
    """Return one set's rows as two Markdown tables: the answers, then the facts and the cost."""
    budgets = [f"@{budget:,}" for budget in BUDGETS]
    answers = [["answers", *budgets, f"95 % @{MAIN_BUDGET}", "n"]]
    facts = [["facts", *budgets, "CPU ms", "ready, CPU s"]]
    for row in rows:
        low, high = row["interval"]
        found, on_walks = row["answer_recall"], row["triple_recall"] or {}
        shares = [_share(found[str(budget)]) for budget in BUDGETS]
        answers.append([_name(row), *shares, f"{_share(low)}-{_share(high)}", str(row["n"])])
        shares = [_share(on_walks.get(str(budget))) for budget in BUDGETS]
        facts.append([_name(row), *shares, f"{row['cpu_ms']:,.1f}", f"{row['ready_s']:,.1f}"])
    return f"{_markdown(answers)}\n\n{_markdown(facts)}"


def _summary(rows: Sequence[Row], names: Sequence[str]) -> str:
    """Return the answer recall of each method at the main budget on several sets, as a Markdown table."""
    cells = {(row["method"], row["set"]): row for row in rows}
    lines = [[f"answers @{MAIN_BUDGET}", *names]]
    for method, row in {row["method"]: row for row in rows}.items():
        found = [cells.get((method, name)) for name in names]
        lines.append([_name(row), *(_share(one and _main_recall(one)) for one in found)])
    return _markdown(lines)


def _markdown(lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], ["---"] * len(lines[0]), *lines[1:]))


def _name(row: Row) -> str:
    name = f"**{row['method']}**" if row["ours"] else row["method"]
    return name + (" †" if row["given_entities"] else "")


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
    rows, names = results["rows"], list(shown)
    wide = names[: names.index(HAND_MADE) + 1] if HAND_MADE in names else names
    parts = [_INTRODUCTION, _summary(rows, wide), ""]
    for name, picture in shown.items():
        if name == HAND_MADE:
            parts.append(_HAND_MADE)
        mark = "##" if name in wide else "###"
        parts.append(f"{mark} {name}\n\n![Answer recall against tokens, {name}](pictures/{picture.name})\n")
        parts.append(table([row for row in rows if row["set"] == name]) + "\n")
    settings = {row["method"]: row["setting"] for row in rows if row["setting"] != "default"}
    parts.append(_SETTINGS + _markdown([["method", "setting"], *map(list, settings.items())]) + "\n")
    parts += [_RUNS, *map(_run_line, results["runs"]), ""]
    (docs / "evidence.md").write_text("\n".join(parts), "utf-8")


def _run_line(run: Mapping[str, Any]) -> str:
    packages = "".join(f", {name} {number}" for name, number in run["versions"].items())
    limit = f"at most {run['limit']}" if run["limit"] else "all"
    return (
        f"- `{run['command']}`: commit {run['commit']}, seed {run['seed']}, {limit} questions of each graph, "
        f"fewer if they cost more than {run['seconds']:.0f} CPU seconds. Python {run['python']}{packages}."
    )


_INTRODUCTION = f"""\
# Evidence for a token budget

Which method puts the most answers into few tokens? Each method orders facts, one line each: `head -> relation ->
tail`. We take the facts from the first on, as long as their text stays within the budget of tokens.

- *Answers* is the share of the gold answers that are an end of a taken fact.
- *Facts* is the share of the facts on the gold walks that are taken. FB15k-237 has no gold walks.
- A question for which a method finds nothing counts 0.

No language model, no examples and no training take part. Embeddings are the default ones, or all-MiniLM-L6-v2 if the
name of a method ends in "MiniLM". Our methods are in bold. Methods with † link no entities: they get the entities
that our linker finds. A dash means that the method was not asked.

Answers within {MAIN_BUDGET} tokens:
"""

_HAND_MADE = """\
The hand-made graphs are those of `benchmarks/own_graphs/dev`. They were looked at while KGRetriever was built.
[Measured](measured.md#evidence-within-a-budget-of-tokens) has graphs that nobody looked at. After the figures for all
of them, each graph follows alone.
"""

_SETTINGS = """\
## Settings

Methods that this table leaves out have their defaults. `benchmarks/rivals/README.md` says how each rival was called,
and which could not run.

"""

_RUNS = """\
## How to repeat it

CPU times are medians per question on one core of a shared machine. Compare times of one run only. A chart shows the
eight best rivals at 150 tokens. These commands made the figures:
"""
