"""What the tests of question sets share: files, and what was read from them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kg_retrievers.datasets import GraphQuestion


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8"))
    return path


def write_lines(path: Path, rows: list[Any]) -> Path:
    return write(path, "".join(json.dumps(one) + "\n" for one in rows))


def triples(question: GraphQuestion) -> list[tuple[str, ...]]:
    return [tuple(triple) for triple in question.graph.triples()]


def ids(questions: Iterable[Any]) -> list[str]:
    return [question.id for question in questions]
