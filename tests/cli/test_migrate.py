"""The command `migrate`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from zipfile import ZipFile

from kg_retrievers.graph.storage.manifest import read_manifest

SAVED = Path(__file__).parents[1] / "serving" / "saved_by_0_1.zip"


def test_a_folder_of_an_earlier_version(tmp_path: Path, run: Callable[..., tuple[int, str, str]]) -> None:
    with ZipFile(SAVED) as saved:
        saved.extractall(tmp_path)
    folder = tmp_path / "films.index"
    assert read_manifest(folder) is None
    code, _, notes = run("migrate", str(folder))
    assert (code, f"{folder} is now in the current format" in notes) == (0, True)
    assert read_manifest(folder) is not None
    assert "Spike Jonze" in run("ask", str(folder), "Who directed Her?")[1]
    assert f"{folder} is already in the current format" in run("migrate", str(folder))[2]
    assert run("migrate", str(tmp_path / "none"))[0] == 2
