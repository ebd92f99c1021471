"""Writes files whole, and raises the same error wherever a file cannot be written."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from kg_retrievers.errors import FileWriteError

#: Errors of the system if a disk is full, or a user may write no more.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

#: The names of files that are written before they take the place of others.
_UNFINISHED = re.compile(r"\.[0-9a-f]{32}\.tmp")

_MAY_NOT_WRITE = "Name a file or folder that this user may write."

#: The next step, by the error of the system.
_ADVICE: dict[int | None, str] = {
    **dict.fromkeys(FULL, "Make room, or name another file or folder."),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), _MAY_NOT_WRITE),
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR), "Make its folder, or name another one."),
    errno.EISDIR: "Name a file, not a folder.",
    errno.ENAMETOOLONG: "Give it a shorter name.",
    errno.EIO: "Check the disk and make room, or name another file or folder.",
}


@contextmanager
def raise_write_errors(path: str | Path) -> Iterator[None]:
    """Raise each error of the system as a `FileWriteError` that names a path.

    The block only writes to that path.

    Args:
        path: The file or folder.

    Raises:
        FileWriteError: If the disk is full, this user may not write there, or the folder is missing.
    """
    try:
        yield
    except (FileWriteError, BrokenPipeError):
        raise
    except OSError as cause:
        raise write_error(path, cause.strerror or str(cause), cause.errno) from cause
    except ValueError as cause:
        if "null byte" not in str(cause):
            raise
        raise write_error(path, "its name holds a null byte", errno.EINVAL) from cause


def write_error(path: str | Path, reason: str, number: int | None) -> FileWriteError:
    """Return the error for a file that cannot be written.

    Its advice fits the cause.

    Args:
        path: The file or folder.
        reason: The message of the system.
        number: The number of the system's error, as in `errno`. None if it is not known.

    Example:
        >>> str(write_error("notes.txt", "File name too long", errno.ENAMETOOLONG))
        'notes.txt: cannot be written: File name too long. Give it a shorter name.'
    """
    advice = _ADVICE.get(number, "Name another file or folder.")
    return FileWriteError(f"cannot be written: {reason}.", path, reason=reason, number=number, hint_python=advice)


def write_file(path: str | Path, data: str | bytes) -> None:
    """Replace a file in one step.

    A reader finds the earlier file or the new one. Its permissions stay.

    A pipe or a device is written to and stays.

    Args:
        path: The file. Links are followed. Its folder must exist.
        data: Its content. Texts are encoded in UTF-8.

    Raises:
        FileWriteError: If it cannot be written. An earlier file is untouched then.
        BrokenPipeError: If it is a pipe whose reader has ended.

    Example:
        >>> write_file("/no/such/folder/notes.txt", "mine")
        Traceback (most recent call last):
        kg_retrievers.errors.FileWriteError: /no/such/folder/notes.txt: cannot be written: No such file or directory. \
Make its folder, or name another one.
    """
    with replace_file(path) as file:
        file.write(data.encode() if isinstance(data, str) else data)


@contextmanager
def replace_file(path: str | Path) -> Iterator[BinaryIO]:
    """Yield a file that takes the place of another when the block ends.

    It does so like `write_file`, but not after an error.

    Args:
        path: The file, as of `write_file`.

    Raises:
        FileWriteError: As of `write_file`.
    """
    with raise_write_errors(path):
        if os.path.exists(path) and not os.path.isfile(path):  # the real path of a pipe names nothing
            with open(path, "wb") as stream:
                yield stream
            return
        target = Path(os.path.realpath(path))
        written = target.with_name(f".{uuid4().hex}.tmp")
        try:
            with open(written, "xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileNotFoundError):
                shutil.copymode(target, written)
            os.replace(written, target)
            sync_folder(target.parent)
        finally:
            with suppress(OSError):
                written.unlink(missing_ok=True)


def remove_unfinished(folder: Path) -> None:
    """Remove what `replace_file` left in a folder when its process was killed. Nobody else may write there now."""
    for path in folder.iterdir():
        if _UNFINISHED.fullmatch(path.name):
            path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Wait until the names of the files in a folder are on the disk."""
    if sys.platform == "win32":
        return  # it opens no folders
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return  # who may write to a folder may not always read it
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
