"""Tells files that are no graph, as a PDF or a zip archive, and says what to do with each."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from kg_retrievers.errors import GraphLoadError

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
_HDF = _Kind("a file of HDF5", "Write it as CSV or Parquet where it was made.")

#: The first bytes of what is no graph.
_STARTS = {
    b"%PDF-": _TEXT,
    b"{\\rtf": _TEXT,
    b"\xd0\xcf\x11\xe0": _SHEET,
    b"PK\x03\x04": _ZIP,
    b"PK\x05\x06": _ZIP,
    b"7z\xbc\xaf": _Kind("a 7z archive", _ZIP.python),
    b"Rar!\x1a\x07": _Kind("a RAR archive", _ZIP.python),
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
    b"\x89HDF": _HDF,
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
