"""Migration of an index: the vectors of many names become bytes and bits, as a build of today keeps them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kg_retrievers.algorithms.quantization import quantized, rotated_bits, words_of
from kg_retrievers.errors import DamagedDataError
from kg_retrievers.graph.columns import DAMAGED, Array, fingerprint
from kg_retrievers.graph.storage.column_file import ColumnFile
from kg_retrievers.graph.storage.manifest import SavedPart
from kg_retrievers.graph.storage.parts import KEEP, Column, FolderWriter, Part, open_parts
from kg_retrievers.graph.storage.writer import Keep
from kg_retrievers.index.quantized_search import QUANTIZED_FROM

#: How many vectors are read at once.
BATCH = 1 << 14


def shrink_names(folder: str | Path) -> int:
    """Keep the vectors of names as 8-bit numbers and bits where a build would; nothing is embedded.

    Cost: one pass over the vectors; a quarter of their size is needed on the disk meanwhile, and the bits in memory.

    Args:
        folder: A folder in the current format; see `kg_retrievers.graph.migration.migrate`.

    Returns:
        How many names it was; 0 where there are fewer than `QUANTIZED_FROM`, or they were kept so before.

    Raises:
        DamagedDataError: If a vector is damaged.
        FileWriteError: If another process writes there, the disk is full, or this user may not write there.
    """
    with FolderWriter(folder) as writer:
        index = writer.before.parts.get("index")
        if index is None or not (count := _large_names(index)):
            return 0
        vectors = open_parts(folder, ["index"])["index"].columns["names"]
        key = fingerprint({}, {"made of": index.columns["names"].file})
        file = ColumnFile(writer.folder, "index.names", key, np.int8, vectors.shape[1])
        try:
            columns: dict[str, Column] = dict.fromkeys(index.columns, KEEP)
            columns |= {"names": file, "names_bits": _shrink(vectors, file)}
            parts: dict[str, Part | Keep] = dict.fromkeys(writer.before.parts, KEEP)
            writer.replace(parts | {"index": Part(columns, index.meta)})
        except BaseException:
            file.remove()
            raise
    return count


def _large_names(index: SavedPart) -> int:
    """Return how many names have vectors of floats that a build would not keep."""
    if "names" not in index.columns or "names_bits" in index.columns:
        return 0
    names = index.columns.get("names_rows", index.columns["names"]).shape[0]
    return names if names >= QUANTIZED_FROM else 0


def _shrink(vectors: Array, file: ColumnFile) -> Array:
    """Write vectors to a file as 8-bit numbers; return their bits."""
    file.cut(0)  # of a migration that was interrupted
    bits = np.empty((len(vectors), words_of(vectors.shape[1])), np.uint64)
    for start in range(0, len(vectors), BATCH):
        floats = vectors[start : start + BATCH]
        norms = np.linalg.norm(floats, axis=1)
        if not ((norms > 0) & (norms < np.inf)).all():
            raise DamagedDataError("GraphIndex: a vector is damaged.", hint_python=DAMAGED)
        rows = quantized(floats)
        file.append(rows)
        bits[start : start + len(rows)] = rotated_bits(rows)
    return bits
