"""A progress bar of the file that is read: how much of it, how fast, and how long it still takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

_WHAT = (TextColumn("{task.description}", markup=False), BarColumn())


class ReadingBar:
    """A progress bar on stderr, by bytes of the files as they lie on the disk; a terminal forgets it at the end."""

    def __init__(self) -> None:
        """Begin before the first file."""
        console = Console(stderr=True)
        self._bar = Progress(
            *_WHAT,
            DownloadColumn(binary_units=True),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=console.is_terminal,
        )
        self._task = self._bar.add_task("Reading", total=None)

    def begin(self, path: Path) -> None:
        """Begin with a file, or begin it again."""
        what, size = f"Reading {path.name}", path.stat().st_size
        self._bar.update(self._task, description=what, total=size, completed=0, refresh=True)

    def show(self, position: int) -> None:
        """Say how many bytes of the file were read."""
        self._bar.update(self._task, completed=position)

    def sort(self) -> None:
        """Say that all was read, and is sorted now; nobody knows for how long."""
        self._bar.remove_task(self._task)
        self._bar.columns = (*_WHAT, TimeElapsedColumn())
        self._task = self._bar.add_task("Sorting", total=None)

    @contextmanager
    def shown(self) -> Iterator[ReadingBar]:
        """Show the bar in the block, for all files that are opened there."""
        token = _BAR.set(self)
        try:
            with self._bar:
                yield self
        finally:
            _BAR.reset(token)


_BAR: ContextVar[ReadingBar | None] = ContextVar("kg_retrievers_reading_bar", default=None)


def reading_bar() -> ReadingBar | None:
    """Return the bar that is shown while files are read here; None where none is."""
    return _BAR.get()


@contextmanager
def show_progress(progress: bool) -> Iterator[None]:
    """Show a bar of the files that are opened in the block, if it is wanted."""
    if not progress:
        yield
        return
    with ReadingBar().shown():
        yield


def show_sorting() -> None:
    """Say on the bar, if there is one, that all files were read."""
    if bar := reading_bar():
        bar.sort()
