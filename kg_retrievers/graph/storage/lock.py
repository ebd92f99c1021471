"""FolderLock: one process at a time writes to a folder, and others can tell which."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path

from kg_retrievers.errors import FileWriteError

#: The file whose lock is held; it is there while somebody writes, or after a writer was killed.
LOCK = ".writer.lock"

# What the system says where another one has the lock.
_TAKEN = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)

# The locked byte on Windows, behind the text, which others read.
_FAR = 1 << 20

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)

    _try = _lock

    def _unlock(descriptor: int) -> None:
        os.close(descriptor)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _try(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # several may look at once

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # a fork of this process may hold the file open
        os.close(descriptor)


class FolderLock:
    """The right to write to a folder. The system gives it back when the process ends, however it ends.

    Args:
        folder: The folder.

    Raises:
        FileWriteError: If another writer has it; the message names its process.
        OSError: If this user may not write there.
    """

    def __init__(self, folder: Path) -> None:
        """Take it, or fail at once."""
        self._path = folder / LOCK
        while True:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                _lock(self._descriptor)
            except OSError as cause:
                os.close(self._descriptor)
                if cause.errno not in _TAKEN:
                    raise
                raise _taken(folder) from cause
            if self._is_current():
                break
            os.close(self._descriptor)  # its last owner removed the file
        with suppress(OSError):  # a full disk: only the message of the other writer is poorer
            os.truncate(self._path, 0)
            os.write(self._descriptor, str(os.getpid()).encode())

    def __enter__(self) -> FolderLock:
        """Return the lock, which is held already."""
        return self

    def __exit__(self, *error: object) -> None:
        """Let others write."""
        self.release()

    def release(self) -> None:
        """Let others write."""
        with suppress(OSError):
            self._path.unlink()
        _unlock(self._descriptor)

    def _is_current(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.stat(self._path))
        except FileNotFoundError:
            return False


def writer_of(folder: Path) -> str | None:
    """Return who writes to a folder now, such as "process 123"; None where nobody does."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDONLY)
    except OSError:
        return None
    try:
        _try(descriptor)
    except OSError as cause:
        os.close(descriptor)
        return _owner(folder) if cause.errno in _TAKEN else None
    _unlock(descriptor)
    return None


def _owner(folder: Path) -> str:
    try:
        return f"process {int((folder / LOCK).read_bytes())}"
    except (OSError, ValueError):
        return "another process"


def _taken(folder: Path) -> FileWriteError:
    reason = f"{_owner(folder)} is writing there"
    return FileWriteError(
        f"{reason}.",
        folder,
        reason=reason,
        number=errno.EAGAIN,
        hint_python="Wait until it has ended, or name another folder.",
    )
