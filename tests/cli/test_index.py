"""The command index: which folders it writes to, and what an interruption leaves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from shell_mistakes import Run

from kg_retrievers import GraphIndex
from kg_retrievers.serving.loading import open_index

FILES = {"films.csv": "Her,directed_by,Spike Jonze\nHer,starring,Amy Adams\n"}
INDEX = ("index", "films.csv", "--output", "films.index")


def test_an_index_of_other_content_is_replaced_and_told(run: Run, folder: Path) -> None:
    assert run(*INDEX)[0] == 0
    (folder / "films.index" / "notes.txt").write_text("mine")
    (folder / "other.csv").write_text("a,b,c\n", "utf-8")
    _, out, _ = run("index", "other.csv", "--output", "films.index")
    assert out.splitlines()[0] == "Replaced the earlier index in films.index."
    assert len(open_index("films.index").graph) == 1
    assert (folder / "films.index" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["notes.txt", "manifest.json", "index.json"])
def test_a_folder_of_something_else_stays(run: Run, folder: Path, name: str) -> None:
    (folder / "films.index").mkdir()
    (folder / "films.index" / name).write_text("{}")
    code, _, err = run(*INDEX)
    assert code == 2
    assert "is not empty and holds no index" in err
    assert os.listdir("films.index") == [name]


KILLED_SAVE = """
import os, signal, sys
synced, sync = 0, os.fsync
def dying(descriptor):
    global synced
    synced += 1
    if synced == 20:
        os.kill(os.getpid(), signal.SIGKILL)
    sync(descriptor)
os.fsync = dying
from kg_retrievers.cli import main
main(sys.argv[1:])
"""


@pytest.mark.heavy
def test_an_interrupted_index_can_be_repeated(run: Run) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED_SAVE, *INDEX], check=False, timeout=120)
    assert killed.returncode < 0
    told = "interrupted before it was complete. The same command goes on where it stopped: kg-retrievers index"
    assert told in run("ask", "films.index", "Who directed Her?")[2]
    code, out, err = run(*INDEX)
    assert (code, err) == (0, "")
    assert out.startswith("Indexed 3 entities"), "nothing was replaced"
    assert run(*INDEX[:-1], "other.index")[0] == 0
    left, clean = (sorted(name.split("-")[0] for name in os.listdir(f"{name}.index")) for name in ("films", "other"))
    assert left == clean, "the vectors that were made are used, and nothing else is left"


def test_a_large_graph_is_saved_before_it_is_indexed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken_off(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kg_retrievers.cli.index.SAVED_FIRST", 2)
    with monkeypatch.context() as patch:
        patch.setattr(GraphIndex, "build", broken_off)
        code, _, err = run(*INDEX)
    assert code == 130
    go_on = "kg-retrievers index films.index --output films.index"
    assert f"if the rest breaks off, go on: {go_on}\n" in err
    assert run("ask", "films.index", "Who directed Her?")[2].strip().endswith(go_on)
    os.remove("films.csv")
    code, out, _ = run(*go_on.split()[1:])
    assert (code, out.startswith("Indexed 3 entities")) == (0, True), "nothing was replaced"
    assert "Spike Jonze" in run("ask", "films.index", "Who directed Her?")[1]


def test_triples_are_embedded(run: Run) -> None:
    code, out, err = run(*INDEX, "--triples")
    assert (code, err) == (0, "")
    assert "with static embeddings, also of the triples." in out
    code, out, _ = run("ask", "films.index", "Who directed Her?", "--method", "kaping", "--k", "1")
    assert (code, "directed_by  Spike Jonze" in out) == (0, True)
