"""The figures of a run as a table for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kg_retrievers.graph.shown_table import html_table


def figures_table(caption: str, groups: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a row for each figure that there is, and a column for each group of questions, in HTML.

    Args:
        caption: What is above the table.
        groups: By name, the figures and their "intervals"; the first group has all figures that there may be.
    """
    first = next(iter(groups.values()))
    names = [
        name for name in first if name != "intervals" and any(one.get(name) is not None for one in groups.values())
    ]
    rows = [(name.replace("_", " "), *(_in_words(name, figures) for figures in groups.values())) for name in names]
    heads = ["figure [95 % interval]", *(f"{name} hops" if name.isdigit() else name for name in groups)]
    return html_table(caption, heads, rows)


def _in_words(name: str, figures: Mapping[str, Any]) -> str:
    value, interval = figures.get(name), figures["intervals"].get(name)
    if value is None:
        return ""
    return f"{value:,.3f}" + (f" [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else "")
