"""Full disks and folders in which nobody may write: one typed error, and what was there stays."""

from __future__ import annotations

import errno
import os
import pickle
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from broken_off import full_disk

from kg_retrievers import GraphIndex, HashedEmbeddings, KGRetriever, KnowledgeGraph, Question, read_questions
from kg_retrievers.core.checkpoint import save_checkpoint
from kg_retrievers.datasets import write_questions
from kg_retrievers.errors import FileWriteError, KGRetrieversError
from kg_retrievers.file_writing import raise_write_errors, write_file
from kg_retrievers.graph.columns import Array
from kg_retrievers.index.embeddings import EmbeddingCache

resource = pytest.importorskip("resource")

#: The most bytes of a file on the full disk of these tests.
ROOM = 100

#: More bytes than a pipe holds.
LONG = 1 << 20

SAMPLE = Path(__file__).parents[1] / "kg_retrievers" / "sample"


def graph(count: int) -> KnowledgeGraph:
    return KnowledgeGraph.from_triples([(f"head {number}", "knows", f"tail {number}") for number in range(count)])


def put_vectors(path: Path, count: int) -> None:
    EmbeddingCache(path).put("model", vectors(count))


def vectors(count: int) -> dict[str, Array]:
    return {f"text {number}": np.ones(500, np.float32) for number in range(count)}


#: Functions that write files into a folder: the larger the count, the longer the files.
WRITERS: dict[str, Callable[[Path, int], Any]] = {
    "graph": lambda path, count: graph(count).save(path),
    "index": lambda path, count: GraphIndex.build(graph(count), HashedEmbeddings(), path),
    "model": lambda path, count: save_checkpoint(path, "gnn-rag", {"count": count}, {"w": np.zeros(count, np.float32)}),
    "questions": lambda path, count: write_questions(path / "q.jsonl", [Question("Who is it?")] * count),
    "text": lambda path, count: write_file(path / "file.txt", "x" * 10 * count),
    "embedding cache": lambda path, count: put_vectors(path / "cache.sqlite", count),
}
each_writer = pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)


def contents(folder: Path) -> dict[str, bytes]:
    """Return what the files in a folder hold."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def is_vectors(file: str) -> bool:
    """Whether a file holds the vectors of an index that was not finished, with which the next build goes on."""
    return file.startswith("index.") and file.endswith(".column")


@each_writer
def test_a_full_disk_is_told_and_what_was_there_stays(write: Callable[[Path, int], Any], tmp_path: Path) -> None:
    write(tmp_path, 3)
    before = contents(tmp_path)
    with full_disk(ROOM), pytest.raises(FileWriteError, match=r"cannot be written: .+\. .*[Mm]ake room") as caught:
        write(tmp_path, 100)
    assert caught.value.errno in (errno.EFBIG, errno.EIO)  # SQLite says the latter
    left = contents(tmp_path)
    assert {name: left[name] for name in before} == before
    assert all(map(is_vectors, left.keys() - before.keys()))
    write(tmp_path, 100)
    assert contents(tmp_path) != before


@each_writer
@pytest.mark.skipif(not Path("/proc/version").exists(), reason="no folder in which nobody may write")
def test_a_folder_in_which_nobody_may_write_is_told(write: Callable[[Path, int], Any]) -> None:
    with pytest.raises(FileWriteError, match=r"^/proc/none") as caught:
        write(Path("/proc/none"), 3)
    assert str(caught.value.path).startswith("/proc/none")
    assert caught.value.filename == str(caught.value.path)
    assert isinstance(caught.value, OSError)
    assert "Make room" not in str(caught.value)


@pytest.mark.parametrize("name", ["a\x00b", "n" * 300], ids=["null byte", "too long"])
def test_a_name_that_no_file_can_have_is_told(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    for write in WRITERS.values():
        with pytest.raises(KGRetrieversError):
            write(path, 3)
    for read in (KnowledgeGraph.from_file, KnowledgeGraph.open, GraphIndex.open, KGRetriever.from_file, read_questions):
        with pytest.raises(KGRetrieversError):
            read(path)  # type: ignore[operator]


def test_a_save_that_this_user_may_not_read_is_told() -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        GraphIndex.build(graph(3), HashedEmbeddings(), folder)
        (folder / "manifest.json").chmod(0)
        with another_user(), pytest.raises(KGRetrieversError, match="cannot be read: Permission denied"):
            GraphIndex.open(folder, HashedEmbeddings())


@contextmanager
def another_user() -> Iterator[None]:
    """Be a user who may not write everywhere, where root runs the tests."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


@each_writer
def test_a_folder_of_another_user_is_told(write: Callable[[Path, int], Any]) -> None:
    with TemporaryDirectory() as name:  # the folders of pytest are closed to others
        folder = Path(name)
        write(folder, 3)
        before = contents(folder)
        for path in (*folder.rglob("*"), folder):
            path.chmod(0o555 if path.is_dir() else 0o444)
        with another_user(), pytest.raises(FileWriteError, match=r"Permission denied|readonly") as caught:
            write(folder, 100)
        assert "Name a file or folder that this user may write." in str(caught.value)
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        assert contents(folder) == before


# --- one file ---------------------------------------------------------------------------------------------------------


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    write_file(file, "a")
    file.chmod(0o640)
    link.symlink_to("file")
    write_file(link, b"b")
    assert (file.read_text(), link.is_symlink(), stat.S_IMODE(file.stat().st_mode)) == ("b", True, 0o640)
    assert sorted(os.listdir(tmp_path)) == ["file", "link"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_device_is_written_to_and_not_replaced() -> None:
    write_file("/dev/null", "gone")
    with pytest.raises(FileWriteError, match="/dev/full: cannot be written: No space left on device"):
        write_file("/dev/full", "x")
    assert Path("/dev/full").is_char_device()
    assert Path("/dev/null").is_char_device()


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no names of open files")
def test_a_pipe_whose_reader_ends_stays_a_broken_pipe() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(BrokenPipeError):
        write_file(f"/dev/fd/{writing}", b"x" * LONG)
    os.close(writing)


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "Make room, or name another file or folder."),
        (errno.EROFS, "Name a file or folder that this user may write."),
        (errno.ENOENT, "Make its folder, or name another one."),
        (errno.EISDIR, "Name a file, not a folder."),
        (errno.ENAMETOOLONG, "Give it a shorter name."),
        (errno.EMFILE, "Name another file or folder."),
    ],
)
def test_the_advice_follows_the_cause(number: int, advice: str) -> None:
    with pytest.raises(FileWriteError) as caught, raise_write_errors("there"):
        raise OSError(number, "so")
    error = caught.value
    assert str(error) == error.on_shell == f"there: cannot be written: so. {advice}"
    again = pickle.loads(pickle.dumps(error))
    assert (error.errno, error.filename, error.strerror) == (number, "there", "so")
    assert (again.errno, again.filename, again.strerror, str(again)) == (number, "there", "so", str(error))


# --- the shell --------------------------------------------------------------------------------------------------------


def shell(*arguments: str, room: int | None = None, stdout: Any = subprocess.PIPE) -> tuple[int, str]:
    """Run the command with little room on the disk; return its exit code and stderr."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    limit = None if room is None else partial(resource.setrlimit, resource.RLIMIT_FSIZE, (room, room))
    done = subprocess.run(
        [sys.executable, "-m", "kg_retrievers.cli", *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        preexec_fn=limit,
        env=environment | {"PYTHONDONTWRITEBYTECODE": "1"},
    )
    return done.returncode, done.stderr


GRAPH, QUESTIONS = str(SAMPLE / "graph.jsonl"), str(SAMPLE / "questions.jsonl")
EVALUATE = ["evaluate", "--graph", GRAPH, "--data", QUESTIONS, "--format", "jsonl", "--method", "kaping"]


@pytest.mark.parametrize(
    "command",
    [["index", GRAPH, "--output"], pytest.param([*EVALUATE, "--records"], marks=pytest.mark.heavy)],
    ids=" ".join,
)
def test_the_shell_tells_a_full_disk(command: list[str], tmp_path: Path) -> None:
    output = str(tmp_path / "output")
    code, stderr = shell(*command, output, room=ROOM)
    assert code == 2, stderr
    assert "cannot be written" in stderr
    assert output in stderr
    assert "Make room" in stderr
    assert "Traceback" not in stderr
    left = [] if not Path(output).is_dir() else os.listdir(output)
    assert all(map(is_vectors, left))
    assert [name for name in os.listdir(tmp_path) if name != "output"] == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_the_shell_tells_a_full_disk_of_its_own_output() -> None:
    with open("/dev/full", "wb") as full:
        code, stderr = shell("info", GRAPH, "--json", stdout=full)
    assert code == 2
    assert "the output cannot be written: No space left on device. Make room" in stderr
    assert "Traceback" not in stderr
    assert "Exception ignored" not in stderr


def test_the_shell_ends_quietly_where_nobody_reads() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        assert shell("info", GRAPH, "--json", stdout=writing) == (141, "")
    finally:
        with suppress(OSError):
            os.close(writing)
