"""Opens the file of a graph: a regular one that may hold a graph, unpacked on the way, within limits."""

from __future__ import annotations

import bz2
import difflib
import gzip
import io
import lzma
import os
import stat
from pathlib import Path
from typing import Any, NamedTuple

from kg_retrievers.errors import GraphLoadError, MissingExtraError
from kg_retrievers.graph.readers.limits import BoundedFile, Limits, limit_error, read_errors
from kg_retrievers.graph.readers.progress import watched

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
        raw = watched(open(path, "rb", buffering=0), path)  # noqa: SIM115
        bounded = BoundedFile(_unpacked(raw, packing), raw, path, limits, total, by_line)
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
        return _open_zstandard(raw)
    return raw


def _open_zstandard(raw: Any) -> Any:
    try:
        import pyarrow
    except ImportError as cause:
        raise MissingExtraError("Reading Zstandard files", "arrow") from cause
    return pyarrow.input_stream(raw, compression="zstd")


def _similar_names(path: Path) -> list[str]:
    """Return up to three names of files beside a path that are like its own; equal suffixes do not count."""
    names = sorted(os.listdir(path.parent)) if path.parent.is_dir() else []
    stems = difflib.get_close_matches(path.stem, {Path(name).stem for name in names}, cutoff=NAME_SHARE)
    return [name for name in names if Path(name).stem in stems][:3]


#: How many bytes from the beginning tell what a file is.
_START = 512

#: Where the header of a tar archive says so.
_TAR = slice(257, 262)


class _Kind(NamedTuple):
    """What a file is, and what to do, in Python and on the shell where that differs."""

    what: str
    python: str
    shell: str | None = None


_ZIP = _Kind("a zip archive", "Unpack it, and name the file of the graph.")
_SHEET = _Kind(
    "a workbook of a spreadsheet",
    "Read it with pandas, and give the frame: KnowledgeGraph.from_frame(pandas.read_excel(path)).",
    "Save the sheet that holds the facts as CSV, with a column each for head, relation and tail.",
)
_TEXT = _Kind(
    "a document for people to read, which states no triples",
    "Extract triples from its text first, as LangChain's LLMGraphTransformer does, and give them to "
    "KnowledgeGraph.from_graph_documents.",
    "Extract triples from its text first, and write them as CSV.",
)
_IMAGE = _Kind("an image", "Name a file that holds triples.")
_PAGE = _Kind("a web page", "Perhaps a download went wrong: fetch the file itself.")
_TAR_KIND = _Kind("a tar archive", "Unpack it, and name the file of the graph: tar -xf FILE")
_SQLITE = _Kind("a database of SQLite", "Write the table of facts as CSV: sqlite3 -header -csv FILE 'SELECT ...'")
_POINTER = _Kind("a pointer of Git LFS in place of the file", "Fetch the file: git lfs pull")
_PICKLE = _Kind(
    "a pickle, which is not opened since it can run any program",
    "Load it yourself if you trust it, and give what it holds: KnowledgeGraph.from_networkx or from_triples.",
    "Write it in another format, as CSV or GraphML, where it was made.",
)
_LADYBUG = _Kind(
    "a LadybugDB database", "Give it to its executor: KnowledgeGraph.from_executor(LadybugExecutor(path))."
)
#: The first bytes of what is no graph.
_STARTS = {
    b"%PDF-": _TEXT,
    b"\xd0\xcf\x11\xe0": _SHEET,
    b"PK\x03\x04": _ZIP,
    b"\x89PNG": _IMAGE,
    b"\xff\xd8\xff": _IMAGE,
    b"GIF8": _IMAGE,
    b"SQLite format 3\0": _SQLITE,
    b"version https://git-lfs": _POINTER,
    b"\x80\x02": _PICKLE,
    b"\x80\x03": _PICKLE,
    b"\x80\x04": _PICKLE,
    b"\x80\x05": _PICKLE,
    b"LBUG": _LADYBUG,
}

#: Those of the first bytes that may begin a text, unless a NUL follows.
_LIKE_TEXT = (b"GIF8", b"LBUG")

#: What a zip archive, or an old file of an office program, is by its suffix.
_ZIPPED = {
    **dict.fromkeys((".xlsx", ".xlsm", ".ods", ".xls"), _SHEET),
    **dict.fromkeys((".docx", ".odt", ".pptx", ".epub", ".doc", ".ppt"), _TEXT),
    **dict.fromkeys((".pt", ".pth"), _PICKLE),
}

_PAGES = (b"<!doctype html", b"<html")
_PACKED_TARS = (".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst")


def check_may_hold_graph(path: Path) -> None:
    """Check that a file is none of those that hold no graph.

    Raises:
        GraphLoadError: If it is one, with what to do about it.
    """
    with open(path, "rb") as file:
        start = file.read(_START)
    kind = _kind_of(start, path.name.lower())
    if kind is not None:
        raise GraphLoadError(f"is {kind.what}.", path, hint_python=kind.python, hint_shell=kind.shell)


def _kind_of(start: bytes, name: str) -> _Kind | None:
    if name.endswith(_PACKED_TARS) or start[_TAR] == b"ustar":
        return _TAR_KIND
    if start.lstrip().lower().startswith(_PAGES):
        return _PAGE
    magic = next((magic for magic in _STARTS if start.startswith(magic)), b"")
    kind = None if magic in _LIKE_TEXT and b"\0" not in start else _STARTS.get(magic)
    return _ZIPPED.get(Path(name).suffix, kind) if kind in (_ZIP, _SHEET) else kind
