"""Tests of the progress bar of a file that is read."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kg_retrievers.errors import GraphLoadError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.readers.limits import Limits
from kg_retrievers.graph.readers.opening import open_bytes
from kg_retrievers.graph.readers.progress import ReadingBar, reading_bar

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
    assert reading_bar() is None


def test_no_bar_is_left_behind_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kb.tsv"
    path.write_text(ROW + "Her\n")
    with pytest.raises(GraphLoadError):
        KnowledgeGraph.from_file(path, header=False, progress=True)
    assert "Reading kb.tsv" in capsys.readouterr().err
    assert reading_bar() is None


class _Noted(ReadingBar):
    """Notes what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.positions: list[int] = []

    def show(self, position: int) -> None:
        self.positions.append(position)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_the_bar_counts_the_bytes_on_the_disk(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"kb.tsv{suffix}"
    content = "".join(
        f"film{number}\tdirected_by\tperson{number * 7919 % 99991}\n" for number in range(40_000)
    ).encode()
    path.write_bytes(gzip.compress(content) if suffix else content)
    with _Noted().shown() as bar, open_bytes(path, Limits()) as file:
        assert file.read() == content
    assert isinstance(bar, _Noted)
    assert bar.positions == sorted(bar.positions)
    assert bar.positions[-1] == path.stat().st_size
    assert len(set(bar.positions)) > 2
