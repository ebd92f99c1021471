"""The command `update`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.storage.writer import FolderWriter

Run = Callable[..., tuple[int, str, str]]

FILES = {
    "films.csv": "Her,directed_by,Spike Jonze\nHer,starring,Amy Adams\n",
    "more.csv": "Her,starring,Amy Adams\nHer,has_genre,Romance\nArrival,starring,Amy Adams\n",
    "still.jsonl": '{"head": "Arrival", "relation": "directed_by", "tail": "Denis Villeneuve"}\n'
    '{"entity": "Arrival", "label": "Arrival (2016)", "types": ["film"]}\n',
    "old.tsv": "Her\tdirected_by\tSpike Jonze\n",
    "wrong.csv": "Her,directed_by,Spike Jones\n",
    "broken.csv": "Her,directed_by,Spike Jonze\nbroken\n",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Path:
    """A folder with the files above and an index of the first, to work in."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    assert run("index", "films.csv", "--output", "films.index", "--embeddings", "hashed")[0] == 0
    return tmp_path


def test_facts_are_added_and_removed(run: Run) -> None:
    code, out, _ = run("update", "films.index", "--add", "more.csv", "--add", "still.jsonl", "--remove", "old.tsv")
    assert code == 0
    assert "Added 3 facts (1 were there already or repeated) and removed 1; embedded 5 texts." in out
    assert "films.index now holds 5 entities, 3 relations, 4 triples." in out
    assert "Denis Villeneuve" in run("ask", "films.index", "Who directed Arrival (2016)?")[1]
    graph = KnowledgeGraph.open("films.index")
    assert (graph.label("Arrival"), graph.types_of("Arrival")) == ("Arrival (2016)", ["film"])


def test_the_counts_as_json(run: Run) -> None:
    code, out, _ = run("update", "films.index", "--add", "more.csv", "--json")
    assert code == 0
    assert json.loads(out) == {"added": 2, "present": 1, "removed": 0, "embedded": 3, "triples": 4}


def test_sources_are_noted_and_removed(run: Run) -> None:
    assert run("update", "films.index", "--add", "more.csv", "--source", "monday")[0] == 0
    graph = KnowledgeGraph.open("films.index")
    assert graph.sources(("Her", "has_genre", "Romance")) == ["monday"]
    code, out, _ = run("update", "films.index", "--remove-source", "monday")
    assert code == 0
    assert "removed 2" in out
    assert ("Her", "starring", "Amy Adams") in KnowledgeGraph.open("films.index")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["films.index"], "nothing to change. Name files or sources: --add, --remove, --remove-source"),
        (["films.csv", "--add", "more.csv"], "films.csv is no folder that `index` saved."),
        (["films.index", "--remove", "old.tsv", "--source", "x"], "--source says where the facts of --add are from"),
        (["films.index", "--remove", "wrong.csv"], "The nearest is ('Her', 'directed_by', 'Spike Jonze')."),
        (["films.index", "--add", "none.csv"], "none.csv"),
        (["films.index", "--add", "broken.csv"], "broken.csv:2"),
        (["films.index", "--remove-source", "x"], "no fact of the graph is from 'x'; none has a source"),
        (["films.index", "--add", "more.csv", "--embeddings", "static"], "was built with"),
        (["films.index", "--ad", "more.csv", "--what"], "--what"),
    ],
)
def test_what_is_wrong_is_refused_and_nothing_is_changed(run: Run, argv: list[str], words: str) -> None:
    before = KnowledgeGraph.open("films.index").fingerprint
    code, out, errors = run("update", *argv)
    assert (code, out, len(errors.splitlines())) == (2, "", 1)
    assert words in errors
    assert KnowledgeGraph.open("films.index").fingerprint == before


def test_a_folder_that_another_process_writes_is_refused(run: Run) -> None:
    with FolderWriter("films.index"):
        code, _, errors = run("update", "films.index", "--add", "more.csv")
    assert code == 2
    assert "is writing there" in errors


def test_a_folder_without_an_index_is_refused(run: Run, folder: Path) -> None:
    (folder / "empty").mkdir()
    code, _, errors = run("update", "empty", "--add", "more.csv")
    assert code == 2
    assert "no saved" in errors
