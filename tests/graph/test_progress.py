"""Tests of the progress bar of a file that is read."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kg_retrievers.errors import GraphLoadError
from kg_retrievers.graph import KnowledgeGraph

ROW = "Her\tdirected_by\tSpike Jonze\n"
STATEMENT = "<http://e.x/Her> <http://e.x/directed_by> <http://e.x/Jonze> .\n"


@pytest.mark.parametrize(("name", "content"), [("kb.tsv", ROW), ("kb.tsv.gz", ROW), ("kb.nt", STATEMENT)])
def test_the_bar_stands_on_stderr_and_names_what_is_done(
    name: str, content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(content.encode()) if name.endswith("gz") else content.encode())
    quiet = KnowledgeGraph.from_file(path)
    assert capsys.readouterr().err == ""
    read = KnowledgeGraph.from_rdf if name.endswith("nt") else KnowledgeGraph.from_file
    assert [*read(path, progress=True).triples()] == [*quiet.triples()]
    out, err = capsys.readouterr()
    assert (out, "Sorting" in err) == ("", True)
    KnowledgeGraph.from_file(path)
    assert capsys.readouterr().err == ""


def test_no_bar_is_left_behind_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kb.tsv"
    path.write_text(ROW + "Her\n")
    with pytest.raises(GraphLoadError):
        KnowledgeGraph.from_file(path, header=False, progress=True)
    assert "Reading kb.tsv" in capsys.readouterr().err
