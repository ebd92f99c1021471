"""SECURITY.md: the tests that it names are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]


@cache
def functions_in(file: str) -> frozenset[str]:
    """Return the names of all functions in a file."""
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return frozenset(part.name for part in ast.walk(tree) if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef))


def test_each_promise_has_its_tests() -> None:
    page = (ROOT / "SECURITY.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| promise")]
    assert len(rows) > 15
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)
        assert named, row
        for file, test in named:
            assert test in functions_in(file), (file, test)
