"""The tables and the picture of `benchmarks/scale.py`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.synthetic_graph import SIZES

#: What the table shows: caption, step, what of it (a dot leads into what a kind measured), and its unit.
ROWS = (
    ("load TSV, CPU s", "load-tsv", "cpu_s"),
    ("load TSV, peak MB", "load-tsv", "peak_mb"),
    ("load TSV, private MB", "load-tsv", "private_mb"),
    ("load N-Triples, CPU s", "load-nt", "cpu_s"),
    ("load N-Triples, peak MB", "load-nt", "peak_mb"),
    ("graph on disk, bytes a triple", "load-tsv", "bytes_per_triple"),
    ("index, CPU s", "index", "cpu_s"),
    ("index, peak MB", "index", "peak_mb"),
    ("index on disk, bytes", "index", "disk_bytes"),
    ("open a graph, ms", "open", "open_ms"),
    ("first answer of a fresh process, CPU s", "open", "first_answer_s"),
    ("memory beyond mapped files, MB", "questions", "resident_mb"),
    ("one exact name, ms", "names", "exact_ms"),
    ("one vague name, k = 16, ms", "names", "vague_16_ms"),
    ("one vague name, k = 16,384, ms", "names", "vague_16384_ms"),
    ("eight vague names, k = 16, ms", "names", "eight_16_ms"),
    ("a question, names exact, ms", "questions", "exact.median_ms"),
    ("a question, one vague name, ms", "questions", "one vague.median_ms"),
    ("a question, two vague names, ms", "questions", "two vague.median_ms"),
    ("hit of these three", "questions", "exact.hit"),
    ("", "questions", "one vague.hit"),
    ("", "questions", "two vague.hit"),
    ("`KGRetriever`, names exact, ms", "evidence", "exact.median_ms"),
    ("`KGRetriever`, one vague name, ms", "evidence", "one vague.median_ms"),
    ("`KGRetriever`, no name, ms", "evidence", "no name.median_ms"),
)

#: What the picture shows: rows of the table with a curve each.
CURVES = (
    "load TSV, CPU s",
    "index, CPU s",
    "first answer of a fresh process, CPU s",
    "one vague name, k = 16, ms",
    "one vague name, k = 16,384, ms",
    "a question, names exact, ms",
    "a question, one vague name, ms",
    "a question, two vague names, ms",
)


def report(results: Sequence[dict[str, Any]], picture: Path | None) -> None:
    """Print the tables; draw the curves."""
    by_step = {(result["step"], result["size"]): result for result in results}
    sizes = [size for size in SIZES if any(size == of for _, of in by_step)]
    _print_table(
        ["", *sizes], [(name, [_value(by_step.get((step, s)), key) for s in sizes]) for name, step, key in ROWS]
    )
    for step in ("operations", "export", "match", "hubs", "many", "duckdb", "pyoxigraph", "networkx"):
        found = {size: by_step[step, size] for size in sizes if (step, size) in by_step}
        keys = dict.fromkeys(key for result in found.values() for key in _flat(result))
        print(f"\n{step}\n")
        _print_table(["", *found], [(key, [_value(result, key) for result in found.values()]) for key in keys])
    if picture is not None:
        _draw(by_step, sizes, picture)


def _flat(result: dict[str, Any]) -> list[str]:
    names = []
    for name, value in result.items():
        names += [f"{name}.{inner}" for inner in value] if isinstance(value, dict) else [name]
    return [name for name in names if name not in ("step", "size")]


def _value(result: dict[str, Any] | None, key: str) -> Any:
    """Return a value, within another where a dot says so; None where it was not measured."""
    for part in key.split(".") if result and key not in result else [key]:
        result = None if result is None else result.get(part)
    return result


def _print_table(header: Sequence[str], rows: Sequence[tuple[str, Sequence[Any]]]) -> None:
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for name, values in rows:
        print(
            f"| {name} | "
            + " | ".join(
                "" if value is None else f"{value:,}" if isinstance(value, int | float) else str(value)
                for value in values
            )
            + " |"
        )


def _draw(by_step: dict[tuple[str, str], dict[str, Any]], sizes: Sequence[str], picture: Path) -> None:
    """Draw seconds and milliseconds over triples, both axes logarithmic."""
    from matplotlib import pyplot

    pyplot.rcParams.update({"svg.hashsalt": "scale", "svg.fonttype": "none", "font.size": 9})
    figure, panels = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for panel, unit in zip(panels, ("s", "ms"), strict=True):
        for name, step, key in ROWS:
            values = [_value(by_step.get((step, size)), key) for size in sizes]
            points = [(SIZES[s][0] / 1e6, v) for s, v in zip(sizes, values, strict=True) if v]
            if name in CURVES and name.split()[-1] == unit and points:
                panel.plot(*zip(*points, strict=True), marker="o", markersize=3, label=name.rsplit(",", 1)[0])
        panel.set(xscale="log", yscale="log", xlabel="million triples", ylabel="CPU s" if unit == "s" else "CPU ms")
        panel.grid(alpha=0.3)
        panel.legend(frameon=False, fontsize=7)
    figure.savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    raise SystemExit("Run: python -m benchmarks.scale --report PICTURE")
