"""The command `warm-up`."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace

import pytest

import kg_retrievers
from kg_retrievers import cli
from kg_retrievers.algorithms import compiled
from kg_retrievers.algorithms.compiled import ENTRIES
from kg_retrievers.cli import warm_up


def test_everything_is_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    package = Path(kg_retrievers.__file__).parent
    for path in package.rglob("*.py"):
        if "compiled_entry" in path.read_text(encoding="utf-8") and path.stem != "compiled":
            importlib.import_module(".".join((package.name, *path.relative_to(package).with_suffix("").parts)))
    assert cli.main(["warm-up"]) == 0
    *steps, kept = capsys.readouterr().err.splitlines()
    count = len(warm_up.STEPS)
    told = [f"compiling {what} ({number} of {count}) ..." for number, what in enumerate(warm_up.STEPS, 1)]
    assert [step.removeprefix("kg-retrievers: ") for step in steps] == told
    assert kept.startswith("kg-retrievers: compiled; kept in ")
    assert [entry.py_func.__qualname__ for entry in ENTRIES if not entry.signatures] == []


def test_code_that_cannot_be_kept_is_an_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "ENTRIES", [SimpleNamespace(stats=SimpleNamespace(cache_path=None))])
    monkeypatch.setattr(warm_up, "STEPS", {})
    assert cli.main(["warm-up"]) == 2
    assert "NUMBA_CACHE_DIR" in capsys.readouterr().err
