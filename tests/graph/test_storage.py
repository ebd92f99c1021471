"""What is saved in a folder: kills, writers at once, damage, readers beside a writer."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from broken_off import DIE_AT, full_disk

from kg_retrievers.errors import FileWriteError, GraphLoadError, IndexLoadError, InvalidArgumentError, KGRetrieversError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.storage import parts as storage
from kg_retrievers.graph.storage.parts import (
    KEEP,
    LOCK,
    MANIFEST,
    Column,
    FolderWriter,
    Grown,
    Part,
    may_hold_save,
    open_parts,
    read_manifest,
    save_parts,
    verify,
)
from kg_retrievers.testing import tiny_graph

COLUMNS: dict[str, Column] = {
    "ids": np.arange(6, dtype=np.int32).reshape(3, 2),
    "text": np.frombuffer(b"abc", np.uint8),
}


def save(folder: Path, columns: Mapping[str, Column] = COLUMNS, **meta: Any) -> None:
    save_parts(folder, {"graph": Part(columns, meta)})


def ids(folder: Path) -> list[list[int]]:
    rows: list[list[int]] = open_parts(folder, ["graph"])["graph"].columns["ids"].tolist()
    return rows


def names(folder: Path) -> set[str]:
    return set(os.listdir(folder))


def sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.iterdir()}


def check_no_leftovers(folder: Path) -> None:
    manifest = read_manifest(folder)
    assert manifest is not None
    assert sizes(folder) == {**manifest.sizes, MANIFEST: (folder / MANIFEST).stat().st_size}


# --- columns that stay and columns that grow ---


def test_a_column_grows_in_its_file_and_another_stays(tmp_path: Path) -> None:
    save(tmp_path, size=3)
    before = names(tmp_path)
    opened = open_parts(tmp_path, ["graph"])["graph"]
    more = Grown(np.array([[7, 8]], np.int32))
    save(tmp_path, {"ids": more, "text": KEEP}, size=4)
    assert names(tmp_path) == before, "no new file"
    assert ids(tmp_path) == [[0, 1], [2, 3], [4, 5], [7, 8]]
    assert opened.columns["ids"].tolist() == [[0, 1], [2, 3], [4, 5]], "a reader keeps its rows"
    assert (opened.meta, open_parts(tmp_path, ["graph"])["graph"].meta) == ({"size": 3}, {"size": 4})
    save(tmp_path, {"ids": Grown(np.empty((0, 2), np.int32))})  # the text is not named any more
    assert len(ids(tmp_path)) == 4
    check_no_leftovers(tmp_path)
    verify(tmp_path)
    assert len(names(tmp_path)) == 2


def test_parts_stay_or_go(tmp_path: Path) -> None:
    save_parts(tmp_path, {"graph": Part(COLUMNS, {}), "index": Part({"empty": np.empty((0, 3), np.float32)}, {"a": 1})})
    save_parts(tmp_path, {"graph": Part(COLUMNS, {}), "index": KEEP})
    index = open_parts(tmp_path, ["index"])["index"]
    assert (index.columns["empty"].shape, index.meta) == ((0, 3), {"a": 1})
    save_parts(tmp_path, {"graph": KEEP})
    with pytest.raises(GraphLoadError, match="holds no saved index"):
        open_parts(tmp_path, ["graph", "index"])
    check_no_leftovers(tmp_path)


# --- writers ---


def test_a_second_writer_is_told_who_writes(tmp_path: Path) -> None:
    save(tmp_path)
    with FolderWriter(tmp_path) as writer:
        with pytest.raises(FileWriteError, match=rf"process {os.getpid()} is writing there\. Wait until"):
            save(tmp_path)
        assert len(ids(tmp_path)) == 3, "readers go on"
        writer.replace({"graph": KEEP})
    save(tmp_path)
    check_no_leftovers(tmp_path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_does_not_keep_the_lock(tmp_path: Path) -> None:
    """As the workers of a pool that outlive the save that started them."""
    code = (
        "import os, sys, time; from kg_retrievers.graph.storage.parts import FolderWriter\n"
        "with FolderWriter(sys.argv[1]) as writer:\n"
        "    writer.replace({}); process = os.fork()\n"
        "    if not process: time.sleep(60); os._exit(0)\n"
        "with FolderWriter(sys.argv[1]): pass\n"
        "os.kill(process, 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr


def test_what_a_user_has_there_stays(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "graph.ids-1.column").write_text("mine")
    save(tmp_path)
    save(tmp_path)
    assert (tmp_path / "notes.txt").exists()
    assert (tmp_path / "graph.ids-1.column").exists()
    assert may_hold_save(tmp_path)


def test_a_manifest_of_something_else_stays(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text('{"name": "web app"}')
    with pytest.raises(InvalidArgumentError, match="of something else, which would be lost"):
        save(tmp_path)
    assert names(tmp_path) == {MANIFEST}
    assert not may_hold_save(tmp_path)
    with pytest.raises(GraphLoadError, match="manifest is damaged"):
        open_parts(tmp_path, ["graph"])


def test_where_a_save_is_expected(tmp_path: Path) -> None:
    assert may_hold_save(tmp_path / "none")
    assert may_hold_save(tmp_path)
    save(tmp_path)
    (tmp_path / MANIFEST).write_text("damaged")
    (tmp_path / LOCK).touch()
    assert may_hold_save(tmp_path), "what is left of a save"
    (tmp_path / "notes.txt").touch()
    assert not may_hold_save(tmp_path)


# --- kills ---

KILL_EVERYWHERE = """
import json, os, shutil, signal, sys
from pathlib import Path
import numpy as np
from kg_retrievers.errors import KGRetrieversError
from kg_retrievers.graph.storage.parts import MANIFEST, read_manifest
from kg_retrievers.graph.storage.parts import Grown, KEEP, Part, open_parts, save_parts, verify

place, grows = Path(sys.argv[1]), sys.argv[2] == "grows"
old, folder = place / "old", place / "folder"
save_parts(old, {"graph": Part({"ids": np.arange(5), "kept": np.arange(3)}, {})})
ids = Grown(np.arange(5, 9)) if grows else np.arange(9)

def save():
    save_parts(folder, {"graph": Part({"ids": ids, "kept": KEEP, "new": np.arange(2)}, {})})

states, step, done = [], 0, False
while not done:
    step += 1
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(old, folder)
    process = os.fork()
    if not process:
        die_at(step)
        save()
        os._exit(0)
    done = os.waitpid(process, 0)[1] == 0
    verify(folder)
    columns = open_parts(folder, ["graph"])["graph"].columns
    states.append(len(columns["ids"]))
    assert columns["ids"].tolist() == [*range(states[-1])], columns
    assert ("new" in columns) == (states[-1] == 9)
    ids, before = np.arange(9), ids
    save()
    ids = before
    manifest = read_manifest(folder)
    left = {path.name: path.stat().st_size for path in folder.iterdir() if path.name != MANIFEST}
    assert left == manifest.sizes, (left, manifest.sizes)
print(json.dumps(states))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("grows", ["grows", "is written anew"])
def test_killed_at_every_step(tmp_path: Path, grows: str) -> None:
    """The earlier save or the new one opens, and the next save sweeps what is left."""
    command = [sys.executable, "-c", DIE_AT + KILL_EVERYWHERE, str(tmp_path), grows]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    states = json.loads(done.stdout)
    assert set(states) == {5, 9}
    assert states == sorted(states), "one step is the save"
    assert len(states) > 10


def test_a_full_disk_leaves_a_grown_column_as_it_was(tmp_path: Path) -> None:
    save(tmp_path)
    before = sizes(tmp_path)
    with full_disk(1000), pytest.raises(FileWriteError, match=r"cannot be written: .+ Make room, or"):
        save(tmp_path, {"ids": Grown(np.zeros((299_999, 2), np.int32)), "text": KEEP})
    assert sizes(tmp_path) == before
    assert len(ids(tmp_path)) == 3


# --- damage ---


def flip(path: Path, other: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 16
    path.write_bytes(content)


def swap(path: Path, other: Path) -> None:
    contents = path.read_bytes(), other.read_bytes()
    path.write_bytes(contents[1])
    other.write_bytes(contents[0])


DAMAGES: dict[str, Callable[[Path, Path], Any]] = {
    "a bit": flip,
    "cut": lambda path, other: os.truncate(path, path.stat().st_size // 2),
    "removed": lambda path, other: path.unlink(),
    "swapped": swap,
    "ones": lambda path, other: path.write_bytes(b"\xff" * path.stat().st_size),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("checked", [storage.CHECKED, 0], ids=["by checksums", "by bounds"])
def test_damage_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path, Path], Any], checked: int
) -> None:
    """On open for small columns; else by bounds, or by `verify`."""
    monkeypatch.setattr(storage, "CHECKED", checked)
    tiny_graph().save(tmp_path / "before")
    contents = {path.name: path.read_bytes() for path in (tmp_path / "before").iterdir()}
    for number, (name, content) in enumerate(contents.items()):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "before", folder)
        others = [other for other in contents if len(contents[other]) == len(content) and contents[other] != content]
        if content and (others or damage is not swap):
            damage(folder / name, folder / (others or [MANIFEST])[0])
            with pytest.raises(IndexLoadError, match=r"damaged|interrupted"):
                verify(folder)
            if checked:
                with pytest.raises(GraphLoadError, match=r"damaged|interrupted|cannot be read"):
                    KnowledgeGraph.open(folder)
            else:
                read_all(folder)


def read_all(folder: Path) -> None:
    """Read a graph that may be damaged: a typed error is fine, and so is another answer."""
    try:
        graph = KnowledgeGraph.open(folder)
        for entity, key in enumerate(graph.entities):
            graph.names[int(graph.labels[entity])], [graph.types[kind] for kind in graph.entity_types(entity)]
            graph.adjacency.neighbors[graph.adjacency.row(entity)]
            list(graph.triples(key))
    except KGRetrieversError:
        pass


def test_verify_names_what_is_damaged(tmp_path: Path) -> None:
    save(tmp_path)
    assert verify(tmp_path) == 27
    flip(next(tmp_path.glob("graph.text-*")), tmp_path)
    with pytest.raises(IndexLoadError, match=r"damaged: graph\.text\.") as caught:
        verify(tmp_path)
    assert "kg-retrievers index FILE" in caught.value.on_shell
    with pytest.raises(IndexLoadError, match="no such folder"):
        verify(tmp_path / "none")


# --- readers ---


def test_readers_beside_a_writer(tmp_path: Path) -> None:
    graphs = [tiny_graph(), tiny_graph().with_changes(added=[("a", "b", "c")])]
    graphs[0].save(tmp_path)

    def save_again() -> None:
        for number in range(20):
            graphs[number % 2].save(tmp_path)

    writer = Thread(target=save_again)
    writer.start()
    opened = []
    while writer.is_alive():
        graph = KnowledgeGraph.open(tmp_path)
        opened.append(sum(1 for _ in graph.triples()))
    writer.join()
    assert set(opened) <= {16, 17}
    assert len(opened) > 5
