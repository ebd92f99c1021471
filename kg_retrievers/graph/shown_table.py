"""Writes small tables for notebooks; every text is escaped, and a long one cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice

from kg_retrievers.graph.shown_text import one_line

#: How many rows a notebook is shown, and how many characters of a text.
MOST_ROWS, MOST_CHARACTERS = 30, 120


def html_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in HTML, with the first rows and the number of those that are left out.

    Args:
        caption: What is above the table.
        head: The names of the columns.
        rows: The rows; numbers stand on the right, with commas.

    Example:
        >>> print(html_table("Films", ["name", "votes"], [["<Her>", 1234]]))
        <table>
        <caption style="text-align:left">Films</caption>
        <thead><tr><th>name</th><th>votes</th></tr></thead>
        <tbody>
        <tr><td style="text-align:left">&lt;Her&gt;</td><td style="text-align:right">1,234</td></tr>
        </tbody>
        </table>
    """
    every = iter(rows)
    shown = [f"<tr>{''.join(map(_cell, row))}</tr>" for row in islice(every, MOST_ROWS)]
    if more := sum(1 for _ in every):
        shown.append(f'<tr><td colspan="{len(head)}" style="text-align:left">and {more:,} more</td></tr>')
    names = "".join(f"<th>{_text(name)}</th>" for name in head)
    title = f'<caption style="text-align:left">{_text(caption)}</caption>'
    return "\n".join(["<table>", title, f"<thead><tr>{names}</tr></thead>", "<tbody>", *shown, "</tbody>", "</table>"])


def _cell(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        text = f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
        return f'<td style="text-align:right">{text}</td>'
    return f'<td style="text-align:left">{_text("" if value is None else str(value))}</td>'


def _text(text: str) -> str:
    line = one_line(text[: 2 * MOST_CHARACTERS])
    return escape(line if len(line) <= MOST_CHARACTERS else f"{line[:MOST_CHARACTERS]}…")
