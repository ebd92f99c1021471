"""FolderLock: one process at a time writes to a folder."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path

from kg_retrievers.errors import FileWriteError

#: The file whose lock is held; it is there while somebody writes, or after a writer was killed.
LOCK = ".writer.lock"

# The locked byte on Windows, behind the text, which others read.
_FAR = 1 << 20

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)

    def _unlock(descriptor: int) -> None:
        os.close(descriptor)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

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
                if cause.errno not in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
                    raise
                raise self._taken(folder) from cause
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

    def _taken(self, folder: Path) -> FileWriteError:
        try:
            owner = f"process {int(self._path.read_bytes())}"
        except (OSError, ValueError):
            owner = "another process"
        return FileWriteError(
            f"{owner} is writing there.",
            folder,
            reason=f"{owner} is writing there",
            number=errno.EAGAIN,
            hint_python="Wait until it has ended, or name another folder.",
        )
