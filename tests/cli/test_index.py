"""The command index: which folders it writes to, and what an interruption leaves."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kg_retrievers.graph.storage.parts import FolderWriter, saved_meta
from kg_retrievers.serving.loading import open_index, recorded_embeddings

Run = Callable[..., tuple[int, str, str]]
INDEX = ("index", "films.csv", "--output", "films.index")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "films.csv").write_text("Her,directed_by,Spike Jonze\nHer,starring,Amy Adams\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_name_of_the_embeddings_is_kept(run: Run, folder: Path) -> None:
    assert run(*INDEX, "--embeddings", "hashed")[0] == 0
    assert recorded_embeddings("films.index") == "hashed"
    assert saved_meta(folder / "films.index", "index")["embeddings_name"] == "hashed"


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


def test_an_interrupted_command_can_be_repeated(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:

        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        patch.setattr(FolderWriter, "replace", interrupted)
        code, out, err = run(*INDEX)
    assert (code, out) == (130, "")
    assert err.splitlines() == ["kg-retrievers: interrupted"]
    assert run(*INDEX)[0] == 0


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


def test_triples_are_embedded(run: Run) -> None:
    code, out, err = run(*INDEX, "--triples")
    assert (code, err) == (0, "")
    assert "with static embeddings, also of the triples." in out
    code, out, _ = run("ask", "films.index", "Who directed Her?", "--method", "kaping", "--k", "1")
    assert (code, "directed_by  Spike Jonze" in out) == (0, True)


def test_a_second_writer_is_told(run: Run, folder: Path) -> None:
    with FolderWriter("films.index"):
        code, _, err = run(*INDEX)
    assert code == 2
    assert f"films.index: process {os.getpid()} is writing there. Wait until it has ended" in err


@pytest.mark.heavy
def test_code_of_a_model_runs_only_where_it_is_trusted(run: Run, folder: Path) -> None:
    (folder / "model").mkdir()
    (folder / "model" / "own.py").write_text("open('ran', 'w').close()\n", "utf-8")
    (folder / "model" / "modules.json").write_text('[{"idx": 0, "name": "0", "path": "", "type": "own.Own"}]', "utf-8")
    asked = ("ask", "films.csv", "Who directed Her?", "--embeddings", "local:model")
    code, _, told = run(*asked)
    assert code != 0
    assert "brings code of its own, which is not run unasked. If you trust it, use Python: " in told
    assert not (folder / "ran").exists()
