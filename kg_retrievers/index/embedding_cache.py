"""Vectors of texts on disk, so that no text is embedded twice."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol

import numpy as np

from kg_retrievers.errors import IndexLoadError
from kg_retrievers.file_writing import raise_write_errors, write_error
from kg_retrievers.graph.columns import Array

#: The low byte of SQLite's error codes where the file cannot be written, each with the system's error if it tells one.
_UNWRITABLE: dict[int, int | None] = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_READONLY: errno.EACCES,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_CANTOPEN: None,
}


class VectorCache(Protocol):
    """Keeps vectors by embedding name and text."""

    def get(self, name: str, texts: Sequence[str]) -> dict[str, Array]:
        """Return the vectors that are known, float32 of shape (d), by text."""

    def put(self, name: str, vectors: Mapping[str, Array]) -> None:
        """Keep vectors, float32 of shape (d), by text."""


class EmbeddingCache:
    """Vectors on disk by embedding name and text, in one SQLite file that threads and processes may share.

    Args:
        path: The file; it is made where there is none.

    Raises:
        IndexLoadError: From every method, if the file is damaged, locked for a minute or no SQLite file.
        FileWriteError: From every method, if the disk is full, or this user may not write there.
    """

    def __init__(self, path: str | Path) -> None:
        """Make the file where there is none."""
        self.path = Path(path)
        with raise_write_errors(self.path.parent):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        self._run(
            "CREATE TABLE IF NOT EXISTS vectors (name TEXT, text TEXT, vector BLOB, PRIMARY KEY (name, text))", [()]
        )

    def get(self, name: str, texts: Sequence[str]) -> dict[str, Array]:
        """Return the vectors that are known, float32 of shape (d), by text."""
        rows = self._run(
            "SELECT text, vector FROM vectors WHERE name = ? AND text = ?", [(name, text) for text in texts]
        )
        return {text: np.frombuffer(vector, np.float32) for text, vector in rows}

    def put(self, name: str, vectors: Mapping[str, Array]) -> None:
        """Keep vectors, float32 of shape (d), by text."""
        rows = [(name, text, vector.tobytes()) for text, vector in vectors.items()]
        self._run("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)

    def _run(self, statement: str, rows: Sequence[Sequence[str | bytes]]) -> list[tuple[str, bytes]]:
        try:
            with closing(sqlite3.connect(self.path, timeout=60)) as database, database:
                return [found for row in rows for found in database.execute(statement, row)]
        except sqlite3.DatabaseError as cause:
            code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
            if code in _UNWRITABLE:
                raise write_error(self.path, str(cause), _UNWRITABLE[code]) from cause
            remedy = "Name another file." if code == sqlite3.SQLITE_NOTADB else "Delete the file, or name another."
            raise IndexLoadError(f"cannot be used as an embedding cache ({cause}). {remedy}", self.path) from cause
