"""What a stage wrote, as a text that a person can read and edit, and back: patterns, relation paths and queries.

Each text is short where that loses nothing, and JSON otherwise. What is read here is only given its form; the retriever
checks it like what a model writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from kg_retrievers.errors import InvalidArgumentError, PatternError
from kg_retrievers.graph import KnowledgeGraph, Known, Pattern, Unknown

#: Stands between the parts of a fact, and between the steps of a path.
ARROW = " -> "

#: The ways in which a step of a relation path is crossed.
_WAYS = ("forward", "backward", "either")

#: Stands between queries.
_BETWEEN = "\n---\n"

_STEP = re.compile(rf"(?P<relation>.+?)(?: \((?P<way>{'|'.join(_WAYS)})\))?")
_UNKNOWN = re.compile(r"\?(?P<name>[^()]+?)(?: \((?P<type>.+)\))?")
_PARAMETER = re.compile(r"// \$(?P<name>\w+) = (?P<value>.+)")

# What says how a pattern came about, and is not edited.
_ABOUT = ("source", "confidence", "unplaced", "nearest", "lacking", "truncated")


def _pattern_text(value: Mapping[str, Any], graph: KnowledgeGraph) -> str:
    pattern = {key: part for key, part in value.items() if key not in _ABOUT}
    lines = [f"find ?{pattern['target']}"] if pattern.get("target") else []
    lines += [ARROW.join(_term_text(term) for term in triple) for triple in pattern["triples"]]
    lines += [name for name in ("directed", "typed") if pattern.get(name)]
    text = "\n".join(lines)
    try:
        read = _read_pattern(text, graph)
    except PatternError:
        read = {}
    return text if read == pattern else json.dumps(pattern, ensure_ascii=False, indent=1)


def _term_text(term: str | Mapping[str, str]) -> str:
    if isinstance(term, str):
        return term
    kind = f" ({term['type']})" if term.get("type") else ""
    return f"?{term['unknown']}{kind}" if "unknown" in term else term.get("entity") or f"{term['known']}{kind}"


def _read_pattern(text: str, graph: KnowledgeGraph) -> dict[str, Any]:
    """Read a pattern: "find ?x", a fact a line as "Her -> directed_by -> ?x (person)", "directed", "typed"."""
    target, triples, flags = None, [], dict[str, bool]()
    for line in filter(None, map(str.strip, text.splitlines())):
        parts = [part.strip() for part in line.split(ARROW.strip())]
        if len(parts) == 3:
            head, relation, tail = parts
            triples.append((_read_node(head, graph), _read_relation(relation), _read_node(tail, graph)))
        elif line in ("directed", "typed"):
            flags[line] = True
        elif line.startswith("find ?") and target is None:
            target = line.removeprefix("find ?").strip()
        else:
            raise PatternError(f"The line {line!r:.200} is no part of a pattern.", hint_python=FORMS["pattern"])
    return Pattern.of(*triples, target=target, directed=flags.get("directed"), typed=flags.get("typed")).to_dict()


def _read_node(text: str, graph: KnowledgeGraph) -> Known | Unknown:
    if unknown := _UNKNOWN.fullmatch(text):
        return Unknown(unknown["name"], unknown["type"])
    if text in graph.entities:
        return Known(graph.label(text), entity=text)
    return Known(text)


def _read_relation(text: str) -> str | Unknown:
    return Unknown(text[1:]) if text.startswith("?") and len(text) > 1 else text


def _paths_text(value: Sequence[Mapping[str, Any]], graph: KnowledgeGraph) -> str:
    return "\n".join(ARROW.join(f"{name} ({way})" for name, way in path["relations"]) for path in value)


def _read_paths(text: str, graph: KnowledgeGraph) -> list[dict[str, Any]]:
    """Read relation paths, one a line, as "starring (backward) -> has_genre (forward)"."""
    paths = []
    for line in filter(None, map(str.strip, text.splitlines())):
        steps = [_STEP.fullmatch(step.strip()) for step in line.split(ARROW.strip())]
        if not all(steps):
            raise InvalidArgumentError(f"The line {line!r:.200} is no path.", hint_python=FORMS["relation_paths"])
        paths.append({"relations": [[step["relation"], step["way"] or "either"] for step in steps if step]})
    if not paths:
        raise InvalidArgumentError("There is no relation path.", hint_python=FORMS["relation_paths"])
    return paths


def _queries_text(value: Sequence[Mapping[str, Any]], graph: KnowledgeGraph) -> str:
    if any("operation" in query or "facts" in query for query in value):  # which a text of queries cannot say
        return json.dumps(list(value), ensure_ascii=False, indent=1)
    return _BETWEEN.join(_query_text(query) for query in value)


def _query_text(query: Mapping[str, Any]) -> str:
    parameters = query.get("parameters", {}).items()
    lines = [f"// ${name} = {json.dumps(value, ensure_ascii=False)}" for name, value in parameters]
    return "\n".join([*lines, query["query"]])


def _read_queries(text: str, graph: KnowledgeGraph) -> list[dict[str, Any]]:
    """Read queries: before each, its parameters as comments, as in `// $n1 = "Her"`."""
    return [_read_query(part) for part in text.replace("\r\n", "\n").split(_BETWEEN) if part.strip()]


def _read_query(text: str) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    lines = text.strip().splitlines()
    while lines and (parameter := _PARAMETER.fullmatch(lines[0].strip())):
        parameters[parameter["name"]] = _json(parameter["value"], "cypher")
        lines.pop(0)
    return {"query": "\n".join(lines).strip(), "parameters": parameters}


class _Form(NamedTuple):
    write: Callable[[Any, KnowledgeGraph], str]
    read: Callable[[str, KnowledgeGraph], Any]


_TEXTS: dict[str, _Form] = {
    "pattern": _Form(_pattern_text, _read_pattern),
    "relation_paths": _Form(_paths_text, _read_paths),
    "cypher": _Form(_queries_text, _read_queries),
}

#: How what can be edited is written, by its key in the state.
FORMS: dict[str, str] = {
    "pattern": "A fact a line, as: Her -> directed_by -> ?director (person). What is asked for, as: find ?director. "
    "The lines `directed` and `typed` make directions and types count. Or a pattern as JSON.",
    "relation_paths": "A path a line, as: starring (backward) -> has_genre (forward); the better one first.",
    "cypher": "A query that only reads and returns relationships. Before it a line for each parameter, as: "
    '// $n1 = "Her". A line --- stands between queries.',
}


def write_text(key: str, value: Any, graph: KnowledgeGraph) -> str:
    """Return what a stage wrote under a key of `FORMS`, as a text."""
    return _TEXTS[key].write(value, graph)


def read_text(key: str, text: str, graph: KnowledgeGraph) -> Any:
    """Read what a person wrote under a key of `FORMS`; `write_text` writes the text.

    Raises:
        InvalidArgumentError: If nobody can edit this key, or the text has another form.
        PatternError: If it is no pattern.
    """
    if key not in _TEXTS:
        raise InvalidArgumentError(f"{key!r:.100} cannot be edited; {', '.join(_TEXTS)} can.")
    if text.lstrip().startswith(("{", "[")):
        return _json(text, key)
    return _TEXTS[key].read(text, graph)


def _json(text: str, key: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"This is no JSON: {error}.", hint_python=FORMS[key]) from None
