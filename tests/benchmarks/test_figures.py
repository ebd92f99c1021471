"""Published figures: each says how it was made, none is of much older code, and the docs show no others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks import figures
from benchmarks.figures import RESULTS, ROOT, Run, digest, load, outdated, package_version

NAMES = sorted(path.stem for path in RESULTS.glob("*.json"))
FIELDS = {"command", "commit", "version", "mode", "embeddings", "n", "seed", "depends_on"}

#: Pages whose figures all come from `benchmarks/results`, in prose too.
PAGES = [
    "README.md",
    *(f"docs/{name}.md" for name in ("measured", "evidence", "compared", "which-method", "limitations")),
    *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs" / "methods").glob("*.md"))),
]

GENERATED = re.compile("<!-- generated: .*?<!-- end generated -->", re.DOTALL)


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_says_how_it_was_made(name: str) -> None:
    content = load(name)
    for run in content["runs"]:
        assert run.keys() >= FIELDS
        assert run["command"].startswith("python ")
        assert re.fullmatch(r"[0-9a-f]{7,}", run["commit"]), "measured on changes that no commit has"
        assert all(run[field] for field in FIELDS - {"seed"})
        assert all((ROOT / room).exists() for room in run["depends_on"])
    if "table" in content:
        assert {len(row) for row in content["table"]} == {len(content["table"][0])}
    else:
        assert all(row["n"] and row["run"] < len(content["runs"]) for row in content["rows"])


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_is_not_of_much_older_code(name: str) -> None:
    for run in load(name)["runs"]:
        changed = outdated(run, package_version())
        assert not changed, (
            f"{changed} changed since {name} was measured. Measure it again or remove it: {run['command']}"
        )


def test_every_figure_is_shown() -> None:
    pages = "".join(path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md"))
    shown = {name for names in re.findall(r"generated: figures of (.+?) -->", pages) for name in names.split()}
    assert set(NAMES) == shown | {"rivals", "rivals-kept"}


@pytest.mark.parametrize("name", PAGES)
def test_figures_in_prose_are_those_of_a_table(name: str) -> None:
    prose = re.sub(r"```.*?```", "", GENERATED.sub("", (ROOT / name).read_text("utf-8")), flags=re.DOTALL)
    shown = "".join(table for page in PAGES for table in GENERATED.findall((ROOT / page).read_text("utf-8")))
    stray = [share for share in re.findall(r"(?<![\w.])\.\d{2,3}\b", prose) if share not in shown]
    assert not stray, f"{name} says {stray}, which no table has"


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """A package with a room of one file."""
    home = tmp_path / "package" / "room"
    home.mkdir(parents=True)
    (home / "code.py").write_text("answer = 1\n", "utf-8")
    return tmp_path


def made(room: Path, version: str) -> Run:
    """Return a made-up run on the code of a room."""
    common: dict[str, Any] = {"command": "python -m x", "commit": "1a2b3c4", "mode": "m", "embeddings": "default"}
    code = digest(room / "package" / "room")
    return Run(**common, version=version, n="1 question", seed=None, depends_on={"package/room": code})


def test_only_figures_that_are_old_and_whose_code_changed_are_outdated(room: Path) -> None:
    run = made(room, "0.2.5")
    assert outdated(run, "0.9.0", room) == []  # old, and the code is the same
    (room / "package" / "room" / "code.py").write_text("answer = 2\n", "utf-8")
    assert outdated(run, "0.3.0", room) == []  # changed, and one minor version old
    assert outdated(run, "0.4.0", room) == ["package/room"]
    assert outdated(run, "1.0.0", room) == ["package/room"]


def test_recorded_tables_are_joined_by_the_names_of_their_rows(
    room: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "RESULTS", tmp_path)
    run = made(room, "0.2.0")
    figures.record("one", [["kind", "first"], ["a", ".10"], ["all", ".30"]], run)
    figures.record("two", [["kind", "second"], ["all", ".40"], ["a", ".20"]], {**run, "command": "python -m y"})
    assert figures.shown(["one", "two"]).splitlines() == [
        "| kind | first | second |",
        "|---|---|---|",
        "| a | .10 | .20 |",
        "| all | .30 | .40 |",
        "",
        "Measured: `python -m x` (n 1 question), `python -m y` (n 1 question), commit 1a2b3c4. Mode: m.",
    ]
