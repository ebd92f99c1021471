"""What a page shows of a drawing, as data that JSON holds: texts are cleaned and cut, the boxes have their places."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from kg_retrievers.drawing.boxes import Box, clean_line, cut_short
from kg_retrievers.drawing.page_layout import place_page
from kg_retrievers.graph.shown_text import one_line
from kg_retrievers.graph.types import Triple
from kg_retrievers.graph.verbalize import readable

if TYPE_CHECKING:
    from kg_retrievers.drawing.drawing import Drawing
    from kg_retrievers.drawing.provenance import DrawnItem

#: How many characters of a name, of a source and of the text of a Document a page holds.
MAX_NAME, MAX_TEXT = 300, 2_000

#: How many sources of a fact, and how many answers of a Document, a page names.
MOST_NAMED = 20


def page_data(drawing: Drawing) -> dict[str, Any]:
    """Return what a page shows of a drawing; `showGraph` of graph_view.js takes it.

    Numbers facts as a chain does that cites them: from 1, in the order of the Documents, each once. Sizes and places
    are in pixels, places are centres.
    """
    entities, unnumbered = drawing.boxes()
    relations = [box._replace(shown=f"[{number}] {box.shown}") for number, box in enumerate(unnumbered, 1)]
    ends = drawing.ends()
    sizes = np.array([box.size for box in entities + relations]).reshape(-1, 2)
    places = place_page(ends, sizes)
    placed = [
        {"x": round(x, 1), "y": round(y, 1), "width": round(width, 1), "height": round(height, 1)}
        for (x, y), (width, height) in zip(places.tolist(), sizes.tolist(), strict=True)
    ]
    nodes = [
        {"id": f"n{number}", "key": cut(key), "label": box.shown, "name": cut(label), "role": box.role, **place}
        for number, ((key, label), box, place) in enumerate(zip(drawing.labels.items(), entities, placed, strict=False))
    ]
    of_fact = _items_of(drawing)
    edges = [
        _edge(drawing, number, box, of_fact.get(triple, [])) | {"source": f"n{head}", "target": f"n{tail}"} | place
        for number, (triple, box, (head, tail), place) in enumerate(
            zip(drawing.triples, relations, ends, placed[len(nodes) :], strict=True)
        )
    ]
    return {
        "nodes": nodes,
        "edges": edges,
        "documents": [_document(drawing, item) for item in drawing.provenance.items],
        "answers": _answers(drawing),
        "left_out": drawing.left_out,
    }


def cut(text: str, most: int = MAX_NAME) -> str:
    """Return a text on one line, and of a long one its beginning and its length.

    Example:
        >>> cut("Her"), cut("x" * 1_000_000, 3)
        ('Her', 'xxx… (1,000,000 characters)')
    """
    line = clean_line(text[: 2 * most])
    return line if len(text) <= most else f"{line[:most]}… ({len(text):,} characters)"


def _items_of(drawing: Drawing) -> dict[Triple, list[int]]:
    """Return for each triple the positions of the items that hold it."""
    found: dict[Triple, list[int]] = {}
    for position, item in enumerate(drawing.provenance.items):
        for triple in dict.fromkeys(item.triples):
            found.setdefault(triple, []).append(position)
    return found


def _edge(drawing: Drawing, number: int, box: Box, positions: Sequence[int]) -> dict[str, Any]:
    """Return a fact; where several items hold it, rank and score are those of the first."""
    triple = drawing.triples[number]
    items = drawing.provenance.items
    first = items[positions[0]] if positions else None
    sources = drawing.provenance.sources.get(triple, ())
    return {
        "id": f"e{number}",
        "relation": cut(triple.relation),
        "label": box.shown,
        "name": cut(readable(triple.relation[: 2 * MAX_NAME])),
        "citation": number + 1,
        "sources": [cut(source) for source in sources[:MOST_NAMED]],
        "score": _finite(first.score) if first else None,
        "document": first.rank if first else None,
        "documents": list(positions),
    }


def _document(drawing: Drawing, item: DrawnItem) -> dict[str, Any]:
    answers = item.answers[:MOST_NAMED]
    text = "\n".join(one_line(line) for line in item.text[:MAX_TEXT].split("\n"))
    return {
        "rank": item.rank,
        "retriever": cut(item.retriever) if item.retriever else "",
        "score": _finite(item.score),
        "confidence": _finite(item.confidence),
        "facts": len(item.triples),
        "answers": [cut(drawing.called(key)) for key in answers],
        "more_answers": len(item.answers) - len(answers),
        "value": None if item.value is None else cut(str(item.value)),
        "truncated": item.truncated,
        "text": text if len(item.text) <= MAX_TEXT else f"{text}…",
    }


def _answers(drawing: Drawing) -> list[dict[str, Any]]:
    """Return the answers, best first: the text of each, and its node where one is drawn; then what operations gave."""
    nodes = {key: f"n{number}" for number, key in enumerate(drawing.labels)}
    keys = dict.fromkeys(key for item in drawing.provenance.items for key in item.answers)
    found = [{"text": cut_short(clean_line(drawing.called(key))), "node": nodes.get(key)} for key in keys]
    if not found:
        values = [item.value for item in drawing.provenance.items if item.value is not None]
        found = [{"text": cut(str(value), 80), "node": None} for value in values[:1]]
    return found[:MOST_NAMED]


def _finite(number: float | None) -> float | None:
    return number if number is not None and isfinite(number) else None
