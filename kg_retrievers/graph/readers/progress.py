"""A progress bar of the file that is read: how much of it, how fast, and how long it still takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO

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
_BAR: ContextVar[Progress | None] = ContextVar("kg_retrievers_reading_bar", default=None)


@contextmanager
def show_progress(progress: bool) -> Iterator[None]:
    """Show a bar on stderr for the files that are opened in the block, if wanted. A terminal forgets it at the end."""
    if not progress:
        yield
        return
    console = Console(stderr=True)
    speed = DownloadColumn(binary_units=True), TransferSpeedColumn(), TimeRemainingColumn(), TimeElapsedColumn()
    bar = Progress(*_WHAT, *speed, console=console, transient=console.is_terminal)
    token = _BAR.set(bar)
    try:
        with bar:
            yield
    finally:
        _BAR.reset(token)


def watched(file: BinaryIO, path: Path) -> BinaryIO:
    """Return a file that shows on the bar, if there is one, how many of its bytes were read."""
    bar = _BAR.get()
    if bar is None:
        return file
    _remove_tasks(bar)
    return bar.wrap_file(file, path.stat().st_size, description=f"Reading {path.name}")


def show_sorting() -> None:
    """Say on the bar, if there is one, that all files were read and are sorted now."""
    if bar := _BAR.get():
        _remove_tasks(bar)
        bar.columns = (*_WHAT, TimeElapsedColumn())
        bar.add_task("Sorting", total=None)


def _remove_tasks(bar: Progress) -> None:
    for task in bar.task_ids:
        bar.remove_task(task)
