"""Writes a drawing as a page: one file that holds all it needs and asks nobody for anything."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from math import isfinite
from typing import Any

import numpy as np

from kg_retrievers.drawing.picture import Box, clean_line, cut_short, place_boxes
from kg_retrievers.graph.types import Evidence, Triple
from kg_retrievers.graph.verbalize import one_line, readable


@dataclass(frozen=True)
class DrawnItem:
    """What a drawing says of one Document, or of one piece of evidence.

    Attributes:
        rank: Its rank among those of its retriever, from 1; without one, its place among what is drawn.
        triples: Its facts.
        answers: The keys of the entities that it proposes.
        value: What an operation gave, if any.
        score: Higher is better; None where it has none.
        confidence: From 0 to 1; None where it has none.
        retriever: What found it; "" where it does not say.
        text: Its facts in words; "" where it has none.
        truncated: Whether more would have been found without a limit.
    """

    rank: int
    triples: tuple[Triple, ...]
    answers: tuple[str, ...] = ()
    value: Any = None
    score: float | None = None
    confidence: float | None = None
    retriever: str = ""
    text: str = ""
    truncated: bool = False


@dataclass(frozen=True)
class Provenance:
    """Where the facts of a drawing are from.

    Attributes:
        items: What is drawn, in its order.
        sources: The sources of triples, where these carry some.
        labels: What each answer is called, by key.
    """

    items: tuple[DrawnItem, ...] = ()
    sources: Mapping[Triple, tuple[str, ...]] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, items: Sequence[Any], labels: Mapping[str, str]) -> Provenance:
        """Return that of Evidence, Paths and Documents; `facts_of` has checked that they hold facts.

        Args:
            items: What is drawn.
            labels: The labels that Documents bring, by key.
        """
        sources: dict[Triple, tuple[str, ...]] = {}
        for item in items:
            metadata = getattr(item, "metadata", {})
            for triple, names in zip(metadata.get("triples", ()), metadata.get("sources") or (), strict=False):
                sources.setdefault(Triple(*triple), _texts(names))
        drawn = tuple(_drawn(item, place) for place, item in enumerate(items, 1))
        called = {key: labels.get(key, key) for item in drawn for key in item.answers}
        return cls(drawn, sources, called)


def _drawn(item: Any, place: int) -> DrawnItem:
    if isinstance(item, Evidence):
        return DrawnItem(
            *(place, item.triples, tuple(item.answers), item.value, item.score, item.confidence),
            truncated=item.truncated,
        )
    metadata = getattr(item, "metadata", None)
    if not isinstance(metadata, Mapping):
        return DrawnItem(place, tuple(item.triples))
    rank, retriever = metadata.get("rank"), metadata.get("retriever")
    return DrawnItem(
        rank=rank if isinstance(rank, int) else place,
        triples=tuple(Triple(*row) for row in metadata["triples"]),
        answers=_texts(metadata.get("answers")),
        value=metadata.get("value"),
        score=_number(metadata.get("score")),
        confidence=_number(metadata.get("confidence")),
        retriever=retriever if isinstance(retriever, str) else "",
        text=str(getattr(item, "page_content", "")),
        truncated=bool(metadata.get("truncated")),
    )


def _texts(names: object) -> tuple[str, ...]:
    if not isinstance(names, Iterable) or isinstance(names, str):
        return ()
    return tuple(name for name in names if isinstance(name, str))


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


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


#: The style sheet that Cytoscape would else write into the page, which the page's policy forbids.
_CYTOSCAPE_STYLE = ".__________cytoscape_container { position: relative; }"

_PAGE_STYLE = """
html, body { height: 100%; margin: 0; background: var(--kg-paper); }
body { display: flex; flex-direction: column; color: var(--kg-ink); font: 14px/1.45 system-ui, sans-serif; }
h1 { margin: 0; padding: 10px 12px 0; font-size: 17px; overflow-wrap: anywhere; }
main { flex: 1; min-height: 0; }
@media print { html, body { display: block; height: auto; } }
"""

_START = """
const data = JSON.parse(document.getElementById("data").textContent);
window.evidence = showGraph(document.getElementById("view"), data);
"""

#: What no text in a script may hold: what may end the script, and what is no text in older JavaScript.
_IN_SCRIPT = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def html_page(data: dict[str, Any], title: str) -> str:
    """Return a page that shows what `Drawing.page_data` returns.

    The page's policy lets only its own scripts and styles run, by their hashes, and lets it load nothing.

    Args:
        data: The data.
        title: The title, shown as the heading.
    """
    scripts = [page_file("cytoscape.min.js"), page_file("graph_view.js"), _START]
    styles = [page_file("style.css"), _PAGE_STYLE, _CYTOSCAPE_STYLE]
    policy = (
        f"default-src 'none'; script-src {_hashes(scripts)}; style-src {_hashes(styles)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{escape(title)}</title>",
            f"<style>{styles[0]}</style>\n<style>{styles[1]}</style>",
            f'<style id="__________cytoscape_stylesheet">{styles[2]}</style>\n</head>\n<body>',
            f"<h1>{escape(title)}</h1>",
            '<main id="view"><noscript>This page shows its facts by a script, which is turned off.</noscript></main>',
            f'<script type="application/json" id="data">{_json(data)}</script>',
            *(f"<script>{script}</script>" for script in scripts),
            "</body>\n</html>\n",
        ]
    )


@cache
def page_file(name: str) -> str:
    """Return a script or the style sheet of the page, as text."""
    return (files("kg_retrievers.drawing") / "page" / name).read_text(encoding="utf-8")


def _json(data: dict[str, Any]) -> str:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).translate(_IN_SCRIPT)


def _hashes(texts: list[str]) -> str:
    return " ".join(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in texts)
