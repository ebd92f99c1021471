"""Work for workers: it is here so that other processes can import it."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kg_retrievers.errors import BudgetError


def doubled(batch: Sequence[int]) -> list[int]:
    return [2 * number for number in batch]


def refused_from_five(batch: Sequence[int]) -> list[int]:
    if max(batch) >= 5:
        raise BudgetError("refused: all is used up.")
    return doubled(batch)


def ends_its_process(_: Sequence[int]) -> list[int]:
    os.kill(os.getpid(), signal.SIGKILL)
    return []


@dataclass(frozen=True)
class KillsOnce:
    """Ends its process the first time that it meets a number."""

    folder: Path
    at: int

    def __call__(self, batch: Sequence[int]) -> list[int]:
        if self.at in batch and first_time(self.folder):
            ends_its_process(batch)
        return doubled(batch)


def first_time(folder: Path) -> bool:
    """Whether nobody called this for the folder before."""
    try:
        os.close(os.open(folder / "called", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


@dataclass(frozen=True)
class Opened:
    """Notes in a folder when a copy of it is opened."""

    folder: Path

    def __call__(self, batch: Sequence[int]) -> list[int]:
        return doubled(batch)

    def __reduce__(self) -> tuple[Any, ...]:
        return _open_noted, (self.folder, os.getpid())


def _open_noted(folder: Path, made_in: int) -> Opened:
    if os.getpid() != made_in:
        with open(folder / "opened", "a") as file:
            file.write(f"{os.getpid()}\n")
    return Opened(folder)
