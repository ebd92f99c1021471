"""Writes files whole, and raises the same error wherever a file cannot be written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from kg_retrievers.errors import FileWriteError


@contextmanager
def raise_write_errors(path: str | Path) -> Iterator[None]:
    """Raise each error of the system as a `FileWriteError` that names a path; the block only writes to that path.

    Raises:
        FileWriteError: If the disk is full, this user may not write there, or the folder is missing.
    """
    try:
        yield
    except FileWriteError:
        raise
    except OSError as cause:
        why = cause.strerror or cause
        raise FileWriteError(f"cannot be written: {why}. Make room, or name another file or folder.", path) from cause


def write_file(path: str | Path, data: str | bytes) -> None:
    """Replace a file in one step: a reader finds the earlier file or the new one. Its permissions stay.

    A pipe or a device is written to and stays.

    Args:
        path: The file; links are followed. Its folder must exist.
        data: Its content; texts are encoded in UTF-8.

    Raises:
        FileWriteError: If it cannot be written; an earlier file is untouched then.

    Example:
        >>> write_file("/no/such/folder/notes.txt", "mine")
        Traceback (most recent call last):
        kg_retrievers.errors.FileWriteError: /no/such/folder/notes.txt: cannot be written: No such file or directory. \
Make room, or name another file or folder.
    """
    content = data.encode() if isinstance(data, str) else data
    with raise_write_errors(path):
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file():
            with open(path, "wb") as device:
                device.write(content)
            return
        _replace(target, content)


def _replace(path: Path, content: bytes) -> None:
    written = path.with_name(f".{uuid4().hex}.tmp")
    try:
        with open(written, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            shutil.copymode(path, written)
        os.replace(written, path)
    except BaseException:
        with suppress(OSError):
            written.unlink(missing_ok=True)
        raise
