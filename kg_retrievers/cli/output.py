"""What commands write to a file or to stdout, checked before the work begins."""

from __future__ import annotations

from collections.abc import Sequence
from os import W_OK, access
from pathlib import Path
from typing import TYPE_CHECKING

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.file_writing import write_file

if TYPE_CHECKING:
    pass


def check_output(path: str | None) -> None:
    """Check before the work begins that a file can be written after it."""
    if path is not None and path != "-":
        file = Path(path)
        if not file.parent.is_dir() or file.is_dir() or not access(file if file.exists() else file.parent, W_OK):
            raise InvalidArgumentError(f"{path} cannot be written: wanted a file name in a folder that is there.")


def check_figures(names: Sequence[str]) -> None:
    """Check before the work begins that there are such figures."""
    if names:
        from kg_retrievers.evaluation import comparison

        comparison.check_figures(names)


def write_output(path: str, text: str) -> None:
    """Write to a file, or to stdout if it is called "-"."""
    if path == "-":
        print(text, flush=True)
    else:
        write_file(path, text + "\n")
