"""FolderLock: one process at a time writes to a folder, and others can tell which."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

from kg_retrievers.errors import FileWriteError

#: The file whose lock is held; it is there while somebody writes, or after a writer was killed.
LOCK = ".writer.lock"


class FolderLock:
    """The right to write to a folder. The system gives it back when the process ends, however it ends.

    Args:
        folder: The folder.

    Raises:
        FileWriteError: If another writer has it; the message names its process.
        OSError: If this user may not write there.
    """

    def __init__(self, folder: Path) -> None:
        """Take the lock, or fail at once."""
        self._path = folder / LOCK
        self._lock = FileLock(self._path, timeout=0, thread_local=False)
        try:
            self._lock.acquire()
        except Timeout as cause:
            reason, advice = f"{_owner(folder)} is writing there", "Wait until it has ended, or name another folder."
            raise FileWriteError(
                f"{reason}.", folder, reason=reason, number=errno.EAGAIN, hint_python=advice
            ) from cause
        with suppress(OSError):  # on a full disk only the message of the other writer is poorer
            self._path.write_text(str(os.getpid()))

    def __enter__(self) -> FolderLock:
        """Return the lock, which is held already."""
        return self

    def __exit__(self, *error: object) -> None:
        """Let others write."""
        self.release()

    def release(self) -> None:
        """Remove the file and let others write."""
        with suppress(OSError):
            self._path.unlink()  # a writer that waits for it sees that the file is gone, and begins again
        self._lock.release()


def writer_of(folder: Path) -> str | None:
    """Return who writes to a folder now, such as "process 123", or None."""
    if not (folder / LOCK).exists():
        return None
    try:
        FolderLock(folder).release()
    except FileWriteError as error:
        return str(error.strerror).removesuffix(" is writing there")
    except OSError:
        return None
    return None


def _owner(folder: Path) -> str:
    try:
        return f"process {int((folder / LOCK).read_bytes())}"
    except (OSError, ValueError):
        return "another process"
