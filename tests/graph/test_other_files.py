"""Files that are no graph are told, with what to do with each."""

from __future__ import annotations

import io
import pickle
import sqlite3
import tarfile
import zipfile
from pathlib import Path

import pytest

from kg_retrievers.errors import GraphLoadError
from kg_retrievers.graph.readers.opening import Limits, open_bytes


def zipped() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("films.csv", "Her,directed_by,Spike Jonze\n")
    return content.getvalue()


def tarred(mode: str) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode=mode) as archive:  # type: ignore[call-overload]
        archive.addfile(tarfile.TarInfo("films.csv"))
    return content.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "told", "advice"),
    [
        ("paper.pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "a document for people to read", "Extract triples"),
        ("paper.docx", zipped(), "a document for people to read", "Extract triples"),
        ("films.xlsx", zipped(), "a workbook of a spreadsheet", "Save the sheet that holds the facts as CSV"),
        ("films.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a workbook of a spreadsheet", "as CSV"),
        ("films.zip", zipped(), "a zip archive", "Unpack it"),
        ("films.csv", zipped(), "a zip archive", "Unpack it"),
        ("films.tar", tarred("w"), "a tar archive", "tar -xf"),
        ("films.tar.gz", tarred("w:gz"), "a tar archive", "tar -xf"),
        ("films.nt", b"\n<!DOCTYPE html>\n<html>", "a web page", "fetch the file itself"),
        ("films.ttl", b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS", "git lfs pull"),
        ("films.pkl", pickle.dumps({}), "a pickle, which is not opened", "Write it in another format"),
        ("films.pt", zipped(), "a pickle, which is not opened", "Write it in another format"),
    ],
    ids=lambda value: "content" if isinstance(value, bytes) else None,  # archives hold the time
)
def test_what_is_no_graph_is_told(tmp_path: Path, name: str, content: bytes, told: str, advice: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(GraphLoadError, match=told) as caught:
        open_bytes(path, Limits())
    assert advice in caught.value.on_shell
    assert str(path) in str(caught.value)


def test_a_database_of_sqlite(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "films.db") as database:
        database.execute("CREATE TABLE facts (head, relation, tail)")
    with pytest.raises(GraphLoadError, match=r"a database of SQLite.*sqlite3 -header -csv"):
        open_bytes(tmp_path / "films.db", Limits())


@pytest.mark.parametrize("name", ["LBUG", "ARROW1", "PK", "Rar!", "%PDF", "<html"[1:]])
def test_names_of_formats_may_begin_a_graph(tmp_path: Path, name: str) -> None:
    path = tmp_path / "formats.tsv"
    path.write_text(f"{name}\tis a\tformat\n")
    with open_bytes(path, Limits()) as file:
        assert file.read() == path.read_bytes()
