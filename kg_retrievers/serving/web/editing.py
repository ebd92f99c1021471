"""Writes the work of a stage as JSON that a person can edit, and reads it back: patterns, relation paths and queries.

`read_text` checks the form alone. The retriever checks the content like the reply of a model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kg_retrievers.errors import InvalidArgumentError

#: How the editable keys of the state are written.
FORMS: dict[str, str] = {
    "pattern": 'As JSON: {"triples": [["Her", "directed_by", {"unknown": "director"}]], "target": "director"}. '
    'With "directed": true or "typed": true, directions or types count.',
    "relation_paths": 'As JSON, the better one first: [{"relations": [["starring", "backward"], '
    '["has_genre", "forward"]]}]. With "either", a relation is crossed both ways.',
    "cypher": "As JSON, queries that only read and return relationships: "
    '[{"query": "MATCH (f)-[r:starring]->(p) WHERE p.key = $name RETURN r", "parameters": {"name": "Amy Adams"}}].',
}

# How something came about. Nobody edits it.
_ABOUT = frozenset(("source", "from", "score", "confidence", "unplaced", "nearest", "lacking", "truncated"))


def write_text(value: Any) -> str:
    """Return a pattern, paths or queries of a state as JSON, with a line for each part."""
    if isinstance(value, list):
        parts = [json.dumps(_without_origin(one), ensure_ascii=False) for one in value]
        return "[\n{}\n]".format(",\n".join(parts))
    kept = _without_origin(value).items()
    parts = [f"{json.dumps(name)}: {json.dumps(part, ensure_ascii=False)}" for name, part in kept]
    return "{{\n{}\n}}".format(",\n".join(parts))


def _without_origin(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in value.items() if name not in _ABOUT}


def read_text(key: str, text: str) -> Any:
    """Return the data that a person wrote under a key of `FORMS`.

    Raises:
        InvalidArgumentError: If nobody can edit this key, or the text is no JSON.
    """
    if key not in FORMS:
        raise InvalidArgumentError(f"{key!r:.100} cannot be edited; {', '.join(FORMS)} can.")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"This is no JSON: {error}.", hint_python=FORMS[key]) from None
