"""The data of a page, JSON-safe: texts are cleaned and cut, and each box has its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from kg_retrievers.drawing.boxes import Box, clean_line, cut_short
from kg_retrievers.drawing.layout import place_boxes
from kg_retrievers.drawing.provenance import DrawnItem, Provenance
from kg_retrievers.graph.types import Triple
from kg_retrievers.graph.verbalize import one_line, readable

#: How many characters of a name, of a source and of the text of a Document a page holds.
MAX_NAME, MAX_TEXT = 300, 2_000

#: How many sources of a fact, and how many answers of a Document, a page names.
MOST_NAMED = 20


def page_data(
    triples: Sequence[Triple],
    labels: Mapping[str, str],
    called: Callable[[str], str],
    entities: Sequence[Box],
    relations: Sequence[Box],
    ends: Sequence[tuple[int, int]],
    provenance: Provenance,
    left_out: int,
) -> dict[str, Any]:
    """Return what a page shows of a drawing; `showGraph` of graph_view.js takes it.

    Numbers facts as a chain does that cites them: from 1, in the order of the Documents, each once. Sizes and
    places are in pixels. A place is the centre of a box.

    Args:
        triples: The facts.
        labels: What each entity drawn is called, by key.
        called: What any entity is called, by key.
        entities: The boxes of the entities.
        relations: The boxes of the relations, one for each fact.
        ends: For each fact the positions of its head and its tail.
        provenance: What holds the facts.
        left_out: How many facts are not drawn.
    """
    numbered = [box._replace(shown=f"[{number}] {box.shown}") for number, box in enumerate(relations, 1)]
    placed = _placed([*entities, *numbered], ends)
    nodes = [
        {"id": f"n{number}", "key": cut(key), "label": box.shown, "name": cut(label), "role": box.role, **place}
        for number, ((key, label), box, place) in enumerate(zip(labels.items(), entities, placed, strict=False))
    ]
    holders = _holders(provenance)
    edges = []
    for number, (triple, (head, tail)) in enumerate(zip(triples, ends, strict=True)):
        fact = {"id": f"e{number}", "source": f"n{head}", "target": f"n{tail}", "citation": number + 1}
        fact |= {"label": numbered[number].shown} | _fact(triple, provenance, holders.get(triple, []))
        edges.append(fact | placed[len(nodes) + number])
    return {
        "nodes": nodes,
        "edges": edges,
        "documents": [_document(item, called) for item in provenance.items],
        "answers": _answers(labels, called, provenance),
        "left_out": left_out,
    }


def _placed(boxes: Sequence[Box], ends: Sequence[tuple[int, int]]) -> list[dict[str, float]]:
    sizes = np.array([box.size for box in boxes]).reshape(-1, 2)
    rows = np.hstack([place_boxes(ends, sizes), sizes]).round(1).tolist()
    return [dict(zip(("x", "y", "width", "height"), row, strict=True)) for row in rows]


def cut(text: str, most: int = MAX_NAME) -> str:
    """Return a text on one line, and of a long one its beginning and its length.

    Example:
        >>> cut("Her"), cut("x" * 1_000_000, 3)
        ('Her', 'xxx… (1,000,000 characters)')
    """
    line = clean_line(text[: 2 * most])
    return line if len(text) <= most else f"{line[:most]}… ({len(text):,} characters)"


def _holders(provenance: Provenance) -> dict[Triple, list[int]]:
    """Return for each triple the positions of the items that hold it."""
    found: dict[Triple, list[int]] = {}
    for position, item in enumerate(provenance.items):
        for triple in dict.fromkeys(item.triples):
            found.setdefault(triple, []).append(position)
    return found


def _fact(triple: Triple, provenance: Provenance, holders: Sequence[int]) -> dict[str, Any]:
    """Return what is known of a fact; where several items hold it, rank and score are those of the first."""
    first = provenance.items[holders[0]] if holders else None
    return {
        "relation": cut(triple.relation),
        "name": cut(readable(triple.relation)),
        "sources": [cut(source) for source in provenance.sources.get(triple, ())[:MOST_NAMED]],
        "score": _finite(first.score) if first else None,
        "document": first.rank if first else None,
        "documents": list(holders),
    }


def _document(item: DrawnItem, called: Callable[[str], str]) -> dict[str, Any]:
    answers = item.answers[:MOST_NAMED]
    text = "\n".join(one_line(line) for line in item.text[:MAX_TEXT].split("\n"))
    return {
        "rank": item.rank,
        "retriever": cut(item.retriever) if item.retriever else "",
        "score": _finite(item.score),
        "confidence": _finite(item.confidence),
        "facts": len(item.triples),
        "answers": [cut(called(key)) for key in answers],
        "more_answers": len(item.answers) - len(answers),
        "value": None if item.value is None else cut(str(item.value)),
        "truncated": item.truncated,
        "text": text if len(item.text) <= MAX_TEXT else f"{text}…",
    }


def _answers(labels: Mapping[str, str], called: Callable[[str], str], provenance: Provenance) -> list[dict[str, Any]]:
    """Return the answers, best first: the text of each, and its node where one is drawn; then what operations gave."""
    nodes = {key: f"n{number}" for number, key in enumerate(labels)}
    keys = dict.fromkeys(key for item in provenance.items for key in item.answers)
    found = [{"text": cut_short(clean_line(called(key))), "node": nodes.get(key)} for key in keys]
    if not found:
        values = [item.value for item in provenance.items if item.value is not None]
        found = [{"text": cut(str(value), 80), "node": None} for value in values[:1]]
    return found[:MOST_NAMED]


def _finite(number: float | None) -> float | None:
    return number if number is not None and isfinite(number) else None
