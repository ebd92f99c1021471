"""Files that pyarrow reads: Parquet, Arrow IPC and Zstandard."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from kg_retrievers.errors import MissingExtraError

try:
    import pyarrow
except ImportError as cause:
    raise MissingExtraError("Reading Parquet, Arrow and Zstandard files", "arrow") from cause


def open_zstandard(path: Path) -> BinaryIO:
    """Open a file that Zstandard packed."""
    stream: BinaryIO = pyarrow.input_stream(str(path), compression="zstd")
    return stream
