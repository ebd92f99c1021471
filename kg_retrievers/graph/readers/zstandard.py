"""Files that Zstandard packed."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from kg_retrievers.errors import MissingExtraError

try:
    import pyarrow
except ImportError as cause:
    raise MissingExtraError("Reading Zstandard files", "arrow") from cause


def open_zstandard(path: Path) -> BinaryIO:
    """Open a file that Zstandard packed."""
    stream: BinaryIO = pyarrow.input_stream(str(path), compression="zstd")
    return stream
