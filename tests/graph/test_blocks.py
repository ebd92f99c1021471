"""Tests of reading in blocks: where a block ends changes nothing, though plain blocks are read in another way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kg_retrievers.errors import GraphLoadError
from kg_retrievers.graph import GraphBuilder
from kg_retrievers.graph.readers import text_files
from kg_retrievers.graph.readers.files import read_graph_rows

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
    made, duplicates = builder.columns()
    columns = {name: column.tolist() for name, column in made.items()}
    return [columns, duplicates, builder.skipped, asdict(builder.reading), builder.labels, builder.datatypes]


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
        lambda size: monkeypatch.setattr(text_files, "BLOCK_BYTES", size), path, on_error=on_error
    )
    assert others == [first] * len(others)
