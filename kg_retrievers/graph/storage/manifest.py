"""Manifest: what a folder of columns holds, as its one file `manifest.json` says."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

#: Raised by one with every change of the layout; a folder of another version is refused.
FORMAT_VERSION = 3

MANIFEST = "manifest.json"

#: The names of files that a save makes: columns, and a manifest before it is renamed.
_OWN_FILES = re.compile(r"[a-z0-9_.]+-[0-9a-f]{32}\.(column|json)")


@dataclass(frozen=True)
class SavedColumn:
    """A column on disk: the first bytes of a file. Further bytes, if there are some, belong to nobody.

    Attributes:
        file: The name of the file in the folder.
        dtype: Its type, as numpy writes it: "<i4".
        shape: Its shape.
        checksum: The CRC-32 of its bytes.
    """

    file: str
    dtype: str
    shape: tuple[int, ...]
    checksum: int

    @property
    def size(self) -> int:
        """The number of bytes."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class SavedPart:
    """A part of a folder, as "graph" and "index".

    Attributes:
        columns: Its columns, by name.
        meta: What else is known of it: values of JSON.
    """

    columns: Mapping[str, SavedColumn] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Manifest:
    """What a folder holds.

    Attributes:
        parts: The parts, by name.

    Example:
        >>> manifest = Manifest({"graph": SavedPart(meta={"skipped": 2})})
        >>> Manifest.from_json(manifest.to_json()) == manifest
        True
    """

    parts: Mapping[str, SavedPart] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the text of the file."""
        content = {"format": FORMAT_VERSION, "parts": {name: asdict(part) for name, part in self.parts.items()}}
        return json.dumps(content | {"checksum": _checksum(content)}, indent=1, sort_keys=True)

    @classmethod
    def from_json(cls, text: str | bytes) -> Manifest:
        """Read back what `to_json` returned.

        Raises:
            ValueError: If the text is damaged, or of another format; the message says which.
        """
        try:
            content = json.loads(text)
            version = content["format"]
            if version == FORMAT_VERSION:
                return cls._read(content)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as cause:
            raise ValueError("the manifest is damaged.") from cause
        raise ValueError(f"written in format {version!s:.20}, this package reads {FORMAT_VERSION}.")

    @classmethod
    def _read(cls, content: dict[str, Any]) -> Manifest:
        if content.pop("checksum") != _checksum(content):
            raise ValueError("the checksum differs")
        return cls({name: _part(part) for name, part in content["parts"].items()})

    @property
    def version(self) -> str:
        """Hexadecimal digits that differ for any two saves that differ."""
        return blake2b(self.to_json().encode(), digest_size=16).hexdigest()

    @property
    def sizes(self) -> dict[str, int]:
        """How many bytes of each file are named."""
        return {column.file: column.size for part in self.parts.values() for column in part.columns.values()}


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a folder; None where there is none, or it cannot be read."""
    try:
        return Manifest.from_json((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return None


def own_files(folder: Path) -> list[Path]:
    """Return the files of columns and the unfinished manifests in a folder; none that a user may have."""
    return [path for path in folder.iterdir() if _OWN_FILES.fullmatch(path.name)]


def is_column(file: str, dtype: str) -> bool:
    """Whether a file of this name can be a column of this type."""
    return _OWN_FILES.fullmatch(file) is not None and np.dtype(dtype).kind in "biuf"


def _part(part: Mapping[str, Any]) -> SavedPart:
    return SavedPart({name: _column(column) for name, column in part["columns"].items()}, dict(part["meta"]))


def _column(column: Mapping[str, Any]) -> SavedColumn:
    file, dtype = column["file"], column["dtype"]
    if not is_column(file, dtype):
        raise ValueError(f"{file}: no column of this package")
    return SavedColumn(file, dtype, tuple(map(int, column["shape"])), int(column["checksum"]))


def _checksum(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True)
    return blake2b(text.encode(), digest_size=16).hexdigest()
