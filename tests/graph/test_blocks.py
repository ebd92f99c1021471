"""Tests of reading in blocks: where a block ends changes nothing, though plain blocks are read in another way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kg_retrievers.errors import GraphLoadError
from kg_retrievers.graph import GraphBuilder
from kg_retrievers.graph.readers import Limits, read_graph_rows
from kg_retrievers.graph.readers.file_options import OnError
from kg_retrievers.graph.readers.rdf import guards as plain_lines
from kg_retrievers.graph.readers.rdf.sources import read_rdf
from kg_retrievers.graph.readers.rdf.statements import RdfOptions, Statements
from kg_retrievers.graph.readers.tables import delimited as text_lines

CELLS = st.sampled_from(
    ["a", "b", "Her", " c ", "\u00a0d\u2003", "é", "\U0001f3ac", "", " ", '"', '"q"', '"x""y"', "\x1f"]
)
BREAKS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", "\n\n", "\u2028\n", "\x0c\n"])

patched = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@st.composite
def tables(draw: st.DrawFn) -> str:
    """Return a table that begins with a header and plain rows, and goes on with hostile ones among plain ones."""
    delimiter = draw(st.sampled_from("\t,|"))
    plain = delimiter.join(["Her", "directed_by", "Spike Jonze", "films.txt", "1"]) + "\n"
    text = delimiter.join(["head", "relation", "tail", "source", "note"]) + "\n"
    for _ in range(draw(st.integers(1, 12))):
        text += plain * draw(st.integers(0, 3))
        cells = draw(st.lists(CELLS, min_size=draw(st.sampled_from([0, 5, 5, 5])), max_size=6))
        text += delimiter.join(cells) + draw(BREAKS)
    return text + draw(st.sampled_from(["", plain, plain[:-1], '"open']))


def read(path: Path, **options: Any) -> tuple[str, Any]:
    """Return what came of a file: its facts and what is told of them, or the error."""
    try:
        builder = read_graph_rows(path, **options)
    except GraphLoadError as error:
        return "error", str(error)
    return "read", told(builder)


def told(builder: GraphBuilder) -> list[Any]:
    return [[*builder.triples()], builder.skipped, builder.reading.to_dict(), builder.labels, builder.datatypes]


def read_in_blocks(change: Callable[[int], None], path: Path, **options: Any) -> list[tuple[str, Any]]:
    """Return what came of a file in blocks of several sizes, from one that holds all of it to small ones."""
    found = []
    for size in (1 << 20, 1_000, 97, 31):
        change(size)
        found.append(read(path, **options))
    return found


@patched
@given(text=tables(), on_error=st.sampled_from(["raise", "skip"]), suffix=st.sampled_from(["tsv", "csv", "txt"]))
def test_blocks_of_tables_change_nothing(
    text: str, on_error: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"kb.{suffix}"
    path.write_bytes(text.encode())
    first, *others = read_in_blocks(
        lambda size: monkeypatch.setattr(text_lines, "BLOCK_BYTES", size), path, on_error=on_error
    )
    assert others == [first] * len(others)


@pytest.mark.parametrize(
    ("odd", "expected"),
    [
        ("Her\tby\n", "wanted 3 cells (tsv), but got 2"),
        ("Her\t\tJonze\n", "a cell is empty"),
        ("Her\tby\tJon\0ze\n", "NUL byte"),
        ("Her\tby\tJonze\t\n", "wanted 3 cells (tsv), but got 4"),
        (f"Her\tby\t{'x' * 41}\n", "a cell of 41 characters"),
    ],
)
def test_an_odd_row_among_plain_ones(odd: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_lines, "BLOCK_BYTES", 64)
    path = tmp_path / "kb.tsv"
    path.write_bytes(("Her\tby\tJonze\n" * 100 + odd + "Her\tby\tJonze\n" * 100).encode())
    kind, error = read(path, limits=Limits(cell_length=40), header=False)
    assert (kind, expected in error, f"{path}:101: " in error) == ("error", True, True)


def test_a_byte_that_is_no_text_is_named_by_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_lines, "BLOCK_BYTES", 64)
    path = tmp_path / "kb.tsv"
    path.write_bytes(b"Her\tby\tJonze\n" * 100 + b"Am\xe9lie\tby\tJeunet\n")
    kind, error = read(path, header=False)
    assert (kind, "byte 1302 is not utf-8" in error, f"{path}:101: " in error) == ("error", True, True)


PLAIN_LINES = [
    "<http://e.x/Her> <http://e.x/by> <http://e.x/Jonze> .\n",
    "<http://e.x/Am%C3%A9lie_(film)> <http://e.x/by> <http://e.x/é?q=a&b#c> .\n",
    "<urn:x:1> <http://e.x/year> <http://e.x/2013> .\n",
]

#: Each is one or more lines that the parser reads, or refuses.
ODD_LINES = [
    '<urn:x:1> <http://e.x/year> "2013"^^<http://www.w3.org/2001/XMLSchema#integer> .\n',
    '<http://e.x/Her> <http://www.w3.org/2000/01/rdf-schema#label> "Her"@en .\n',
    '<http://e.x/Her> <http://e.x/note> "a \\"b\\" > .\\n"@de-AT .\n',
    "<http://e.x/Her> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e.x/film> .\n",
    "<http://e.x/Her> <http://www.w3.org/2000/01/rdf-schema#label> <http://e.x/film> .\n",
    "_:b0 <http://e.x/by> _:b1 .\n",
    "<_:b0> <http://e.x/by> <http://e.x/Jonze> .\n",
    "<http://e.x/Her> <http://e.x/by> <http://e.x/Jonze>.# so it is\n",
    "  <http://e.x/Her>\t<http://e.x/by>\t<http://e.x/Jonze>\t. \n",
    "# a comment > .\n",
    "\n",
    "<http://e.x/Her> <http://e.x/by> <http://e.x/Jonze> .\r\n",
    "<http://e.x/Her> <http://e.x/by> <http://e.x/Jonze> .\r",
    "<http://e.x/\\u00e9> <http://e.x/by> <http://e.x/Jonze> .\n",
    "<http://[::1]:80/a> <http://u@e.x:1/by> <http://e.x/\U0001f3ac> .\n",
    "\ufeff<http://e.x/Her> <http://e.x/by> <http://e.x/Jonze> .\n",
    "<http://e.x/Her> <http://e.x/by> <http://e.x/Jonze>\n",
    "<http://e.x/Her> <http://e.x/by>\n<http://e.x/Jonze> .\n",
    "<http://e.x/Her> <http://e.x/by> <http://e.x/Jonze> . <http://e.x/Her> <http://e.x/by> <http://e.x/a> .\n",
    "<http://e.x/Her> <http://e.x/by> .\n",
    "<http://e.x/Her> <http://e.x/by> <http://e.x/a> <http://e.x/b> .\n",
    "<http://e.x/Her> <http://e.x/by> <http://e.x/%zz> .\n",
    "<http://e.x/Her> <http://e.x/by> <http://e.x/a b> .\n",
    "<http://e.x/Her> <http://e.x/by> <relative> .\n",
    "<http://e.x/Her> <http://e.x/by> <http://e.x/a\n> .\n",
    "<http://e.x/Her> <http://e.x/by> <http://e.x:9999999/> .\n",
    "<http://e.x/Her> <http://e.x/by> <> .\n",
    "<http://e.x/Her> <http://e.x/by> <http://e.x/{}> .\n",
    "<http://e.x/Her> <http://e.x/by> <http://e.x/\ue000> .\n",
    "<http://e.x/Her> <http://e.x/by> <http://e.x/\x00> .\n",
    '<http://e.x/Her> <http://e.x/note> "open .\n',
    '<http://e.x/Her> <http://e.x/note> "bad \\x" .\n',
    '<http://e.x/Her> <http://e.x/note> "\\uD800" .\n',
    '<http://e.x/Her> <http://e.x/note> "a"@1 .\n',
    '<http://e.x/Her> <http://e.x/note> "a"@abcdefghi .\n',
    '"Her" <http://e.x/by> <http://e.x/Jonze> .\n',
    "<< <http://e.x/Her> <http://e.x/by> <http://e.x/Jonze> >> <http://e.x/by> <http://e.x/Jonze> .\n",
    "<http://e.x/Her> <http://e.x/by> <<( <http://e.x/Her> <http://e.x/by> <http://e.x/Jonze> )>> .\n",
    "> .\n<",
]


@st.composite
def statements(draw: st.DrawFn) -> str:
    """Return N-Triples: plain lines, odd ones among them, and plain ones in which one character is another."""
    text = ""
    for _ in range(draw(st.integers(1, 6))):
        text += draw(st.sampled_from(PLAIN_LINES)) * draw(st.integers(0, 4))
        text += draw(st.sampled_from(ODD_LINES))
        line = draw(st.sampled_from(PLAIN_LINES))
        at = draw(st.integers(0, len(line)))
        text += (
            line[:at]
            + draw(st.sampled_from([*"<>. \\#@_:%/?\"'\n\r\t\0\x85\xa0\u2028\ufffe", "", ""]))
            + line[at + 1 :]
        )
    return text + draw(st.sampled_from(PLAIN_LINES)) * 3 + draw(st.sampled_from(["", "<http://e.x/Her>", '"', "\n\n"]))


@patched
@given(
    text=statements(),
    on_error=st.sampled_from(["raise", "skip", "skip"]),
    options=st.sampled_from([{}, {"blank_nodes": "drop"}, {"graphs": ["default"]}, {"literals": "drop"}]),
)
def test_blocks_of_n_triples_change_nothing(
    text: str, on_error: OnError, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "graph.nt"
    path.write_bytes(text.encode())

    def read(size: int, is_plain: bool) -> tuple[str, Any]:
        monkeypatch.setattr(plain_lines, "BLOCK_BYTES", size)
        with monkeypatch.context() as patch:
            if not is_plain:
                patch.setattr(Statements, "take_plain", lambda *_: False)
            try:
                return "read", told(read_rdf(path, None, RdfOptions(on_error=on_error, **options)))
            except GraphLoadError as error:
                return "error", str(error)

    by_parser = read(1 << 20, False)
    assert [read(size, True) for size in (1 << 20, 400, 150, 61)] == [by_parser] * 4


@pytest.mark.parametrize(
    "lines",
    [
        b"<_:b0> <a:by> <a:Jonze> .\n",
        b"<a:Her> <a:by> <a:Jonze> <a:Ze> .\n<a:Her> <a:by> .\n",
        b"<a:Her> <a:by> <a:Jon\xff> .\n",
        b"<a:Her> <a:by> <a:Jonze> .",
    ],
)
def test_lines_that_only_look_plain(lines: bytes) -> None:
    assert plain_lines.split_plain(lines) is None
