"""How a question was read, and what was weighed, from the details of a Document, in lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kg_retrievers.core.results import tell_result
from kg_retrievers.graph import pattern_lines
from kg_retrievers.graph.verbalize import as_data, readable

#: Who read a question, by the `source` of a pattern or a query.
SOURCES = {
    "examples": "as the nearest example",
    "zero-shot": "by its entities and words",
    "llm": "by a language model",
}

#: How many relation paths are told.
MOST_PATHS = 3


def reading_lines(metadata: Mapping[str, Any]) -> list[str]:
    """Return how a question was read: the pattern, the relation path or the query; nothing where it was not."""
    details, lines = metadata["details"], list[str]()
    if pattern := details.get("pattern"):
        lines += [*pattern_lines(pattern), *_read(pattern.get("source"))]
    elif details.get("query"):
        lines += [as_data(line) for line in details["query"].splitlines()]
        lines += [
            as_data(f"${name} = {json.dumps(value)}") for name, value in (details.get("parameters") or {}).items()
        ]
        lines += _read(details.get("from"))
    elif path := details.get("relation_path"):
        lines.append(path_line(path))
        source = next((one.get("from") for one in _proposed(details) if one["relations"] == path), None)
        lines += _read(source)
    return [*lines, *filter(None, [tell_result(metadata)])]


def weighed_lines(metadata: Mapping[str, Any]) -> list[str]:
    """Return what was weighed, as far as the Document says: distances, prizes, proposals, rows, who found it."""
    details, lines = metadata["details"], list[str]()
    if (distance := details.get("distance")) is not None:
        lines.append(f"The facts are {distance:.3g} away from the pattern in all; the score is 1 / (1 + that).")
    if (prizes := details.get("prizes")) is not None:
        cost = details["edge_cost"]
        lines.append(f"The subgraph collects prizes of {prizes:.3g}; each fact costs {cost:.3g}.")
    if (candidates := details.get("candidates")) is not None:
        lines.append(f"The graph network proposed {candidates} entities, and paths lead to them.")
    path = details.get("relation_path")
    others = [one for one in _proposed(details) if one["relations"] != path]
    for one in others[:MOST_PATHS]:
        lines.append(f"Also proposed: {path_line(one['relations'])}, with the score {one['score']:.3g}.")
    if (tried := details.get("tried")) is not None and (rows := details.get("rows")) is not None:
        lines.append(f"Of the queries written, number {tried} gave {rows} row{'' if rows == 1 else 's'}.")
    for name, found in (details.get("found_by") or {}).items():
        lines.append(f"Found by {as_data(name)}, at rank {found['rank']} with the score {found['score']:.3g}.")
    if details.get("widened"):
        lines.append("Nothing else fits, so unknowns may be entities that the question names.")
    read = details.get("pattern") or details
    if unplaced := read.get("unplaced"):
        lines.append(f"No relation fits {', '.join(as_data(repr(one)) for one in unplaced)}: left out of the reading.")
    if nearest := read.get("nearest"):
        named = ", ".join(as_data(readable(one)) for one in nearest)
        lines.append(f"The relations that came nearest when it was read, its entities in mind: {named}.")
    return lines


def path_line(path: Sequence[Sequence[str]]) -> str:
    """Return a relation path in words.

    Example:
        >>> path_line([["directed_by", "forward"], ["directed_by", "backward"]])
        '-> directed by ->, <- directed by <-'
    """
    arrows = {"forward": "->", "backward": "<-"}
    steps = (f"{arrows[direction]} {readable(relation)} {arrows[direction]}" for relation, direction in path)
    return as_data(", ".join(steps))


def _proposed(details: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(details.get("relation_paths") or ())


def _read(source: str | None) -> list[str]:
    return [f"(read {SOURCES.get(source, f'by {source}')})"] if source else []
