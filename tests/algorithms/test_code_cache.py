"""Where machine code is kept, and what is said while it is made."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kg_retrievers.algorithms import code_cache

CODE = """
from kg_retrievers.algorithms.pagerank import personalized_pagerank
from kg_retrievers.graph import KnowledgeGraph
graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")])
print(personalized_pagerank(graph.adjacency, [0]).sum().round(3))
"""


def run(**environment: str) -> str:
    """Return what a process says on stderr that computes something compiled."""
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )
    assert done.stdout == "1.0\n", done.stderr
    return done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="the folder is another one there")
def test_code_is_kept_for_the_user_and_its_making_is_told_once(tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path), "NUMBA_CACHE_DIR": ""}
    assert run(**environment).count("Compiling once for this machine") == 1
    kept = {path.suffix for path in (tmp_path / "kg-retrievers").rglob("*.*") if path.is_file()}
    assert kept == {".nbi", ".nbc"}
    assert run(**environment) == ""


def test_a_folder_that_is_named_comes_first(tmp_path: Path) -> None:
    environment = {"XDG_CACHE_HOME": str(tmp_path / "user"), "NUMBA_CACHE_DIR": str(tmp_path / "named")}
    assert "Compiling once for this machine" in run(**environment)
    assert not (tmp_path / "user").exists()
    assert any(path.suffix == ".nbc" for path in (tmp_path / "named").rglob("*"))


@pytest.mark.skipif(sys.platform != "linux", reason="the folder is another one there")
def test_a_home_that_cannot_be_written_is_tolerated(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    run(XDG_CACHE_HOME=str(file), NUMBA_CACHE_DIR="")


@pytest.mark.skipif(sys.platform != "linux", reason="the folder is another one there")
def test_code_is_kept_where_nobody_else_can_write(tmp_path: Path) -> None:
    run(XDG_CACHE_HOME=str(tmp_path), NUMBA_CACHE_DIR="")
    folders = [tmp_path / "kg-retrievers", *(tmp_path / "kg-retrievers").iterdir()]
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in folders] == [0o700, 0o700]


@pytest.mark.skipif(sys.platform != "linux", reason="the folder is another one there")
@pytest.mark.parametrize("level", ["kg-retrievers", "kg-retrievers/{versions}"])
def test_no_code_is_taken_from_a_folder_where_others_can_write(tmp_path: Path, level: str) -> None:
    folder = tmp_path / level.format(versions=code_cache._versions())
    folder.mkdir(parents=True, mode=0o700)
    folder.chmod(0o777)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert code_cache.UserFolder.from_function(run, __file__) is None
        folder.chmod(0o700)
        folder.parent.chmod(0o700)
        assert code_cache.UserFolder.from_function(run, __file__) is not None


@pytest.mark.skipif(sys.platform != "linux", reason="the folder is another one there")
def test_a_relative_folder_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert code_cache.user_folder() == Path.home() / ".cache" / "kg-retrievers"
