"""Write a drawing as a page: one file that holds all it needs and loads nothing."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from math import isfinite
from string import Template
from typing import Any

import numpy as np

from kg_retrievers.drawing.picture import Box, clean_line, cut_short, place_boxes
from kg_retrievers.graph.types import Evidence, Path, Triple
from kg_retrievers.graph.verbalize import one_line, readable

#: How many characters of a name, of a source and of the text of a Document a page holds.
MAX_NAME, MAX_TEXT = 300, 2_000

#: How many sources of a fact, and how many answers of a Document, a page names.
MOST_NAMED = 20


def described(item: Any) -> Mapping[str, Any]:
    """Return Evidence, a Path or a Document in the form of the metadata of a Document, with its text.

    `facts_of` has checked that the item holds facts. Nobody has checked the rest.
    """
    if isinstance(item, Evidence):
        return vars(item)
    if isinstance(item, Path):
        return {"triples": item.triples}
    return {**item.metadata, "text": getattr(item, "page_content", "")}


def page_data(
    triples: Sequence[Triple],
    labels: Mapping[str, str],
    entities: Sequence[Box],
    relations: Sequence[Box],
    ends: Sequence[tuple[int, int]],
    documents: Sequence[Mapping[str, Any]],
    left_out: int,
) -> dict[str, Any]:
    """Return the data of a drawing's page, for `showGraph` of graph_view.js.

    Numbers facts as a chain does that cites them: from 1, in the order of the Documents, each once. Sizes and
    places are in pixels. A place is the centre of a box.

    Args:
        triples: The facts.
        labels: The label of each entity drawn, by key.
        entities: The boxes of the entities.
        relations: The boxes of the relations, one for each fact.
        ends: For each fact the positions of its head and its tail.
        documents: The evidence, as `described` returns it.
        left_out: How many facts are not drawn.
    """
    numbered = [box._replace(shown=f"[{number}] {box.shown}") for number, box in enumerate(relations, 1)]
    placed = _placed([*entities, *numbered], ends)
    nodes = [
        {"id": f"n{number}", "key": cut(key), "label": box.shown, "name": cut(label), "role": box.role, **place}
        for number, ((key, label), box, place) in enumerate(zip(labels.items(), entities, placed, strict=False))
    ]
    holders, sources = _provenance(documents)
    edges = [
        {
            "id": f"e{number}",
            "source": f"n{head}",
            "target": f"n{tail}",
            "citation": number + 1,
            "label": numbered[number].shown,
            "relation": cut(triple.relation),
            "name": cut(readable(triple.relation)),
            "sources": [cut(source) for source in sources.get(triple, ())[:MOST_NAMED]],
            "documents": holders.get(triple, []),
            **placed[len(nodes) + number],
        }
        for number, (triple, (head, tail)) in enumerate(zip(triples, ends, strict=True))
    ]
    called = ChainMap(dict(labels), *(about.get("labels") or {} for about in documents))
    return {
        "nodes": nodes,
        "edges": edges,
        "documents": [_document(about, place, called) for place, about in enumerate(documents, 1)],
        "answers": _answers(labels, called, documents),
        "left_out": left_out,
    }


def _provenance(documents: Sequence[Mapping[str, Any]]) -> tuple[dict[Triple, list[int]], dict[Triple, list[str]]]:
    """Return for each triple the positions of the Documents that hold it, and its sources."""
    holders, sources = dict[Triple, list[int]](), dict[Triple, list[str]]()
    for position, about in enumerate(documents):
        triples = [Triple(*row) for row in about["triples"]]
        for triple in dict.fromkeys(triples):
            holders.setdefault(triple, []).append(position)
        for triple, names in zip(triples, about.get("sources") or (), strict=False):
            sources.setdefault(triple, _texts(names))
    return holders, sources


def _texts(names: object) -> list[str]:
    return [name for name in names if isinstance(name, str)] if isinstance(names, list | tuple) else []


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


def _document(about: Mapping[str, Any], place: int, called: Mapping[str, str]) -> dict[str, Any]:
    rank, retriever, value = about.get("rank"), about.get("retriever"), about.get("value")
    answers, text = _texts(about.get("answers")), str(about.get("text") or "")
    lines = "\n".join(one_line(line) for line in text[:MAX_TEXT].split("\n"))
    return {
        "rank": rank if isinstance(rank, int) else place,
        "retriever": cut(retriever) if retriever and isinstance(retriever, str) else "",
        "score": _finite(about.get("score")),
        "confidence": _finite(about.get("confidence")),
        "facts": len(about["triples"]),
        "answers": [cut(called.get(key, key)) for key in answers[:MOST_NAMED]],
        "more_answers": len(answers[MOST_NAMED:]),
        "value": None if value is None else cut(str(value)),
        "truncated": bool(about.get("truncated")),
        "text": lines if len(text) <= MAX_TEXT else f"{lines}…",
    }


def _answers(
    labels: Mapping[str, str], called: Mapping[str, str], documents: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the answers, best first, each with its node if one is drawn, or the result of an operation."""
    nodes = {key: f"n{number}" for number, key in enumerate(labels)}
    keys = dict.fromkeys(key for about in documents for key in _texts(about.get("answers")))
    found = [{"text": cut_short(clean_line(called.get(key, key))), "node": nodes.get(key)} for key in keys]
    if not found:
        values = [about["value"] for about in documents if about.get("value") is not None]
        found = [{"text": cut(str(value), 80), "node": None} for value in values[:1]]
    return found[:MOST_NAMED]


def _finite(number: object) -> float | None:
    return float(number) if isinstance(number, int | float) and isfinite(number) else None


#: The style sheet that Cytoscape would otherwise write into the page, which the page's policy forbids.
_CYTOSCAPE_STYLE = ".__________cytoscape_container { position: relative; }"

#: Characters that no text in a script may hold: they may end the script, or are no text in older JavaScript.
_IN_SCRIPT = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def html_page(data: dict[str, Any], title: str) -> str:
    """Return a page that shows the data of `Drawing.page_data`.

    The page's policy lets only its own scripts and styles run, by their hashes, and lets it load nothing.

    Args:
        data: The data.
        title: The title, shown as the heading.
    """
    styles = {"style": page_file("style.css"), "page_style": page_file("evidence.css")}
    styles["cytoscape_style"] = _CYTOSCAPE_STYLE
    scripts = {"cytoscape": page_file("cytoscape.min.js"), "graph_view": page_file("graph_view.js")}
    scripts["start"] = page_file("evidence.js")
    policy = (
        f"default-src 'none'; script-src {_hashes(scripts.values())}; style-src {_hashes(styles.values())}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    written = json.dumps(data, separators=(",", ":"), ensure_ascii=False).translate(_IN_SCRIPT)
    parts = {**styles, **scripts, "policy": policy, "title": escape(title), "data": written}
    return Template(page_file("evidence.html")).substitute(parts)


@cache
def page_file(name: str) -> str:
    """Return the text of a file of the page."""
    return (files("kg_retrievers.drawing") / "page" / name).read_text(encoding="utf-8")


def _hashes(texts: Iterable[str]) -> str:
    return " ".join(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in texts)
