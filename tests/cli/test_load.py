"""Graphs that the command is given: any format straight from the file, and what is no graph."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def mistake(done: tuple[int, str, str]) -> str:
    """Check that a command told a mistake on one line and nothing else; return the line."""
    code, out, err = done
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1, err
    return err


def test_a_folder_of_tables(run: Run, folder: Path) -> None:
    (folder / "my tables").mkdir()
    for name in ("people.csv.gz", "films.csv", "notes.pdf"):
        (folder / "my tables" / name).write_text("Her,directed_by,Spike Jonze\n")
    told = mistake(run("info", "my tables"))
    assert "my tables: the folder holds no saved graph, but 2 files that may be one. Name the file: " in told
    assert told.endswith("kg-retrievers info 'my tables/films.csv'\n")


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("paper.pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "is a document for people to read, which states no triples."),
        (
            "films.xlsx",
            b"PK\x03\x04\x14\0\x06\0",
            "is a workbook of a spreadsheet. Save the sheet that holds the facts",
        ),
        ("films.zip", b"PK\x03\x04\x14\0\x06\0", "is a zip archive. Unpack it, and name the file of the graph."),
        ("film.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "is an image. Name a file that holds triples."),
        ("films.csv", b"", "no triples"),
    ],
)
@pytest.mark.parametrize("command", [("info",), ("index", "--output", "films.index"), ("ask", "Who directed Her?")])
def test_what_is_no_graph(
    run: Run, folder: Path, command: tuple[str, ...], name: str, content: bytes, told: str
) -> None:
    (folder / name).write_bytes(content)
    first, *rest = command
    line = mistake(run(first, name, *rest))
    assert line.startswith(f"kg-retrievers: error: {name}: ")
    assert told in line
    assert not (folder / "films.index").exists()
