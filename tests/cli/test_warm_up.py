"""The command `warm-up`."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import kg_retrievers
from kg_retrievers import cli
from kg_retrievers.algorithms.compiled import ENTRIES


def test_everything_is_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    package = Path(kg_retrievers.__file__).parent
    for path in package.rglob("*.py"):
        if "compiled_entry(" in path.read_text(encoding="utf-8") and path.stem != "compiled":
            importlib.import_module(".".join((package.name, *path.relative_to(package).with_suffix("").parts)))
    assert cli.main(["warm-up"]) == 0
    assert "compiled; kept in " in capsys.readouterr().err
    assert [entry.py_func.__qualname__ for entry in ENTRIES if not entry.signatures] == []
