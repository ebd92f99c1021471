"""What a notebook shows: the text, and the picture below it."""

from __future__ import annotations

from html import escape

from kg_retrievers.drawing import Drawing


def shown_as_html(text: str, drawing: Drawing) -> str:
    """Return a text, escaped, above a picture that has something to show."""
    picture = drawing._repr_html_() if drawing.labels else ""
    return f'<div><pre style="white-space:pre-wrap">{escape(text)}</pre>{picture}</div>'
