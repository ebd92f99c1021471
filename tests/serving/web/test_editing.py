"""The work of a stage as JSON, and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.serving.web.editing import FORMS, read_text, write_text

PATTERN = {
    "triples": [[{"unknown": "entity 1", "type": "film"}, "directed_by", {"known": "Nolan", "entity": "q1"}]],
    "target": "entity 1",
    "conditions": [{"unknown": "entity 1", "operator": ">", "value": "2000"}],
    "operation": {"kind": "count"},
}
PATHS = [{"relations": [["starring", "backward"], ["has_genre", "forward"]]}, {"relations": [["born_in", "either"]]}]
QUERIES = [{"query": "MATCH (a)-[r]->(b)\nRETURN r", "parameters": {"n1": 'He said "Her"', "n2": [1]}}]


@pytest.mark.parametrize(
    ("key", "written", "edited"),
    [
        ("pattern", PATTERN | {"source": "zero-shot", "confidence": 0.85}, PATTERN),
        ("relation_paths", [path | {"score": 0.9, "from": "zero-shot"} for path in PATHS], PATHS),
        ("cypher", QUERIES, QUERIES),
    ],
)
def test_what_is_written_is_read_without_its_origin(key: str, written: Any, edited: Any) -> None:
    text = write_text(written)
    assert len(text.splitlines()) == len(edited) + 2
    assert read_text(key, text) == edited


@pytest.mark.parametrize("key", list(FORMS))
def test_each_form_has_an_example_that_can_be_read(key: str) -> None:
    form = FORMS[key]
    start = min(form.index(bracket) for bracket in "{[" if bracket in form)
    assert json.JSONDecoder().raw_decode(form[start:])


@pytest.mark.parametrize("key", list(FORMS))
@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"a": NaN', "find ?x"])
def test_broken_json_is_told(key: str, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="no JSON"):
        read_text(key, text)


def test_nothing_else_is_edited() -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be edited"):
        read_text("documents", "x")
