"""Files that Zstandard packed."""

from __future__ import annotations

from typing import BinaryIO

from kg_retrievers.errors import MissingExtraError

try:
    import pyarrow
except ImportError as cause:
    raise MissingExtraError("Reading Zstandard files", "arrow") from cause


def open_zstandard(raw: BinaryIO) -> BinaryIO:
    """Unpack a file that Zstandard packed."""
    stream: BinaryIO = pyarrow.input_stream(raw, compression="zstd")
    return stream
