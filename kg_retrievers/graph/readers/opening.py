"""Opens the file of a graph: a regular one, unpacked on the way, within limits."""

from __future__ import annotations

import bz2
import difflib
import gzip
import io
import lzma
import os
import stat
from pathlib import Path
from typing import Any

from kg_retrievers.errors import GraphLoadError
from kg_retrievers.graph.readers.limits import BoundedFile, Limits, limit_error, read_errors
from kg_retrievers.graph.readers.other_files import check_may_hold_graph
from kg_retrievers.graph.readers.progress import reading_bar

#: How like the name of a missing file another one must be to be suggested, in [0, 1].
NAME_SHARE = 0.75

#: The suffixes of compressed files.
PACKED = (".gz", ".bz2", ".xz", ".zst")

_MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}
_BUFFER = 1 << 18


def open_bytes(path: str | os.PathLike[str], limits: Limits, *, by_line: bool = True) -> io.BufferedReader:
    """Open a file for reading; `.gz`, `.bz2`, `.xz` and `.zst` are unpacked on the way, by suffix or first bytes.

    Reading raises a GraphLoadError where a limit is exceeded or the file is damaged.

    Args:
        path: A regular file.
        limits: What the file may hold.
        by_line: Whether `limits.line_bytes` counts: not for a format that needs no line breaks, as JSON.

    Raises:
        GraphLoadError: If there is no such file, it is a folder, a device, a pipe or a socket, or it is known to hold
            no graph, as a PDF.
        MissingExtraError: If the file is packed by Zstandard and nothing here can unpack it.
    """
    path = Path(path)
    check_regular(path)
    with read_errors(path):
        check_may_hold_graph(path)
        packing = packing_of(path)
        total = limits.bytes_of(path.stat().st_size) if packing else None
        raw = io.FileIO(path)
        if bar := reading_bar():
            bar.begin(path)
        bounded = BoundedFile(_unpacked(raw, packing), raw, path, limits, total, by_line, bar)
    return io.BufferedReader(bounded, _BUFFER)


def read_document(path: Path, limits: Limits) -> bytes:
    """Return the bytes of a file, unpacked.

    Raises:
        GraphLoadError: As `open_bytes`, and if there are more than `limits.document_bytes`.
    """
    with open_bytes(path, limits, by_line=False) as opened:
        content = opened.read(limits.document_bytes + 1)
    if len(content) > limits.document_bytes:
        exceeded = f"a document of more than {limits.document_bytes:,} bytes"
        raise limit_error(path, None, exceeded, "document_bytes")
    return content


def check_regular(path: Path) -> None:
    """Check that a path is a regular file, or a link to one.

    Raises:
        GraphLoadError: If there is no such file, or it is a folder, a device, a pipe or a socket.
    """
    with read_errors(path):
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            near = ", ".join(map(repr, _similar_names(path)))
            did_you_mean = f" Did you mean: {near}?" if near else ""
            raise GraphLoadError(f"there is no such file.{did_you_mean}", path) from None
    if stat.S_ISDIR(mode):
        raise GraphLoadError("is a folder; wanted a file of triples or entities.", path)
    if not stat.S_ISREG(mode):
        raise GraphLoadError(
            "is a device, a pipe or a socket, which may have no end; wanted a regular file. Write it to a file first.",
            path,
        )


def packing_of(path: Path) -> str:
    """Return the suffix that says how a file is compressed, or an empty text where it is not."""
    suffix = path.suffix.lower()
    if suffix in PACKED:
        return suffix
    with open(path, "rb") as file:
        start = file.read(6)
    return next((packing for magic, packing in _MAGIC.items() if start.startswith(magic)), "")


def check_unpacked(path: Path) -> None:
    """Check that a table of Arrow is a regular file, and not packed: it is packed within.

    Raises:
        GraphLoadError: If it is not.
    """
    check_regular(path)
    if packing := packing_of(path):
        raise GraphLoadError(f"is packed ({packing}), but a table of Arrow is packed within. Unpack it first.", path)


def plain_name(path: Path) -> str:
    """Return the name of a file in lower case, without the suffix of its compression."""
    name = path.name.lower()
    return name.removesuffix(path.suffix.lower()) if path.suffix.lower() in PACKED else name


def _unpacked(raw: Any, packing: str) -> Any:
    if packing == ".gz":
        return gzip.open(raw, "rb")
    if packing == ".bz2":
        return bz2.open(raw, "rb")
    if packing == ".xz":
        return lzma.open(raw, "rb")
    if packing == ".zst":
        from kg_retrievers.graph.readers.zstandard import open_zstandard

        return open_zstandard(raw)
    return raw


def _similar_names(path: Path) -> list[str]:
    """Return up to three names of files beside a path that are like its own; equal suffixes do not count."""
    names = sorted(os.listdir(path.parent)) if path.parent.is_dir() else []
    stems = difflib.get_close_matches(path.stem, {Path(name).stem for name in names}, cutoff=NAME_SHARE)
    return [name for name in names if Path(name).stem in stems][:3]
