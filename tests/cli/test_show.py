"""What a person is shown of evidence."""

from __future__ import annotations

from pathlib import Path

import pytest
from shell_mistakes import Run

from kg_retrievers import GraphIndex, KnowledgeGraph, default_embeddings
from kg_retrievers.graph.building import GraphBuilder


@pytest.fixture
def index(tmp_path: Path) -> str:
    """A saved index of a graph with sources, one of which would steer a terminal."""
    builder = GraphBuilder()
    builder.add("Her", "directed_by", "Spike Jonze", {"source": "credits.csv"})
    builder.add("Her", "directed_by", "Spike Jonze", {"source": "films\x1b[2J"})
    builder.add("Her", "starring", "Amy Adams")
    GraphIndex.build(KnowledgeGraph._from_builder(builder), default_embeddings(), tmp_path / "index")
    return str(tmp_path / "index")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ([], " 1  Her   directed_by  Spike Jonze  credits.csv; films [2J"),
        (["--field", "style=paths"], " From credits.csv; films [2J"),
        (["--method", "kaping", "--k", "1"], "directed_by  Spike Jonze  credits.csv; films [2J"),
    ],
    ids=["a table", "paths", "single triples"],
)
def test_ask_shows_where_facts_are_from(run: Run, index: str, options: list[str], line: str) -> None:
    _, out, _ = run("ask", index, "Who directed Her?", *options)
    assert any(shown.endswith(line) for shown in out.splitlines()), out


def test_facts_without_sources_show_none(run: Run, index: str) -> None:
    _, out, _ = run("ask", index, "Who starred in Her?", "--method", "simgrag")
    assert "source" not in out


def test_the_limit_that_cut_a_list_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "films.tsv").write_text("".join(f"Film {n}\tdirected by\tAnn Lee\n" for n in range(3)), "utf-8")
    asked = ("ask", str(tmp_path / "films.tsv"), "Which films did Ann Lee direct?", "--method", "simgrag", "--explain")
    _, out, _ = run(*asked, "--field", "max_bindings=2")
    assert ", 2 triples, cut short by max_bindings=2 of simgrag: there may be more\n" in out
    assert "max_bindings=2 of simgrag was reached: there may be more." in out
    assert "there may be more" not in run(*asked)[1]
