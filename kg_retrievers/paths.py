"""The same errors for a path that cannot be used, wherever a user gives one."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from kg_retrievers.errors import FileFormatError


def mode_of(path: str | os.PathLike[str], error: type[FileFormatError] = FileFormatError) -> int | None:
    """Return the mode of the file or folder at a path, or None if there is nothing.

    Raises:
        FileFormatError: Of the class `error`, if the system cannot look it up: the path holds NUL, is too long, is a
            loop of links, or this user may not see it.

    Example:
        >>> mode_of("/no/such/file"), stat.S_ISDIR(mode_of("/") or 0)
        (None, True)
    """
    try:
        return Path(path).stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as cause:
        reason = cause.strerror if isinstance(cause, OSError) else str(cause)
        raise error(
            f"cannot be used: {reason}.", os.fspath(path), hint_python="Name another file or folder."
        ) from cause


def checked_path(path: str | os.PathLike[str], error: type[FileFormatError] = FileFormatError) -> Path:
    """Return the path of a file or folder, which may be missing.

    Raises:
        FileFormatError: Of the class `error`, as of `mode_of`, and for a device, a pipe or a socket.
    """
    mode = mode_of(path, error)
    if mode is not None and not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise error(
            "is a device, a pipe or a socket, which may have no end; wanted a regular file.",
            os.fspath(path),
            hint_python="Write it to a file first.",
        )
    return Path(path)


def read_bytes(path: str | os.PathLike[str], error: type[FileFormatError], wanted: str = "a file") -> bytes:
    """Return the content of a file.

    Raises:
        FileFormatError: Of the class `error`, as of `checked_path`, and if it cannot be read.
    """
    try:
        return checked_path(path, error).read_bytes()
    except OSError as cause:
        raise error(f"wanted {wanted}, but it cannot be read: {cause.strerror}.", os.fspath(path)) from cause
