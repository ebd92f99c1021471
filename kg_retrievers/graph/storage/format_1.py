"""Folders of format 1, which versions 0.1 and 0.2 wrote: a manifest and a folder of `.npy` files for each part."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from kg_retrievers.errors import FileFormatError
from kg_retrievers.graph.columns import Array

#: The file in which the shell recorded the embeddings of an index.
_RECORD = "cli.json"

_FOLDERS = re.compile(r"(graph|index)-[0-9a-f]{32}")


def is_saved(folder: Path) -> bool:
    """Whether a folder holds a part in format 1."""
    return any(_manifest(folder, name) for name in ("graph", "index"))


def read_meta(folder: Path, name: str) -> dict[str, Any]:
    """Return the meta of a part; empty where nothing can be read there."""
    meta = _manifest(folder, name).get("meta")
    return meta | _record(folder) if isinstance(meta, dict) else {}


def open_part(folder: Path, name: str, error: type[FileFormatError]) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return the columns of a part, memory-mapped, and its meta.

    Raises:
        FileFormatError: Of the class `error`, if something is missing or damaged.
    """
    manifest, columns = _manifest(folder, name), {}
    try:
        for column, (dtype, shape) in manifest["columns"].items():
            path = folder / manifest["data"] / f"{column}.npy"
            array = np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
            if array.dtype.str != dtype or list(array.shape) != shape:
                raise ValueError(f"{path.name}: wanted {dtype} of shape {shape}")
            columns[column] = array
        return columns, dict(manifest["meta"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError, EOFError) as cause:
        message = f"the {name} of an earlier version cannot be read ({cause})."
        on_shell = f"To index a file: kg-retrievers index FILE --output {folder}"
        raise error(message, folder, hint_python="Save it again.", hint_shell=on_shell) from cause


def remove(folder: Path) -> None:
    """Remove what format 1 left in a folder that holds a save of this version."""
    manifests = [f"{name}.json" for name in ("graph", "index") if _manifest(folder, name)]
    if manifests and _record(folder):
        manifests.append(_RECORD)
    for name in manifests:
        (folder / name).unlink()
    for path in folder.iterdir():
        if _FOLDERS.fullmatch(path.name):
            shutil.rmtree(path, ignore_errors=True)


def _manifest(folder: Path, name: str) -> dict[str, Any]:
    """Return the manifest of a part; empty where there is none of format 1."""
    manifest = _read(folder / f"{name}.json")
    return manifest if manifest.get("format") == 1 and "data" in manifest else {}


def _record(folder: Path) -> dict[str, str]:
    """Return the name of the embeddings that the shell recorded, as meta of today."""
    record = _read(folder / _RECORD)
    return {"embeddings_name": record["embeddings"]} if [*record] == ["embeddings"] else {}


def _read(path: Path) -> dict[str, Any]:
    """Return the object in a file; empty where there is none."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
