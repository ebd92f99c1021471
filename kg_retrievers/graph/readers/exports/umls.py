"""The Rich Release Format of the UMLS: concepts and their relations (UMLS Reference Manual, chapter 3).

`MRCONSO.RRF` holds the names of concepts, `MRREL.RRF` how concepts are related, `MRSTY.RRF` their semantic types.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from kg_retrievers.errors import GraphLoadError
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.readers.file_options import FileOptions
from kg_retrievers.graph.readers.tables.text_lines import TextFile

#: The language of names.
LANGUAGE = "ENG"

_NAMES, _RELATIONS, _TYPES = "MRCONSO.RRF", "MRREL.RRF", "MRSTY.RRF"
_NAME_COLUMNS, _RELATION_COLUMNS, _TYPE_COLUMNS = 18, 16, 6


def find_umls_files(folder: Path) -> dict[str, Path]:
    """Return the three files of a folder, packed or not, by their names."""
    found = {path.name.upper().partition(".RRF")[0] + ".RRF": path for path in sorted(folder.glob("*.[rR][rR][fF]*"))}
    return {name: found[name] for name in (_NAMES, _RELATIONS, _TYPES) if name in found}


def read_umls(folder: Path, options: FileOptions, builder: GraphBuilder) -> None:
    """Add the concepts of a folder.

    The key of an entity is its concept's id (CUI). Its preferred English name (TS P, STT PF, ISPREF Y) is its label,
    its other English names are aliases, its semantic types are types. A relation is RELA, or REL where there is none:
    the second concept of a row has it to the first, and SAB is where the fact is from. Suppressed rows, names in other
    languages and relations within a concept are left out.

    Raises:
        GraphLoadError: If a file is missing, or a row has too few cells.
    """
    files = find_umls_files(folder)
    for name in (_NAMES, _RELATIONS):
        if name not in files:
            raise GraphLoadError(f"there is no {name}; wanted a folder with {_NAMES} and {_RELATIONS}.", folder)
    _add_relations(TextFile(files[_RELATIONS], options), builder)
    _add_names(TextFile(files[_NAMES], options), builder)
    if _TYPES in files:
        for cells in _rows(TextFile(files[_TYPES], options), _TYPE_COLUMNS, builder):
            builder.describe(cells[0], types=[cells[3]])
    builder.reading.understood["labels"] = "preferred names in English; other names are aliases"
    builder.reading.understood["relations"] = "RELA, else REL; from the second concept of a row to the first"


def _add_names(file: TextFile, builder: GraphBuilder) -> None:
    reading = builder.reading
    others: dict[str, dict[str, None]] = {}
    preferred: dict[str, str] = {}
    for cells in _rows(file, _NAME_COLUMNS, builder):
        concept, name = cells[0], cells[14].strip()
        if cells[1] != LANGUAGE:
            reading.leave_out("names in other languages than English")
        elif cells[16] not in ("N", ""):
            reading.leave_out("suppressed names")
        elif (cells[2], cells[4], cells[6]) == ("P", "PF", "Y") and concept not in preferred:
            preferred[concept] = name
        elif name:
            others.setdefault(concept, {})[name] = None
    for concept in {**preferred, **others}:
        names = [*others.get(concept, ())]
        label = preferred.get(concept) or names[0]
        builder.describe(concept, label, [name for name in names if name != label])


def _add_relations(file: TextFile, builder: GraphBuilder) -> None:
    reading = builder.reading
    for cells in _rows(file, _RELATION_COLUMNS, builder):
        first, second, relation = cells[0], cells[4], cells[7] or cells[3]
        if cells[14] not in ("N", ""):
            reading.leave_out("suppressed relations")
        elif first == second:
            reading.leave_out("relations within a concept")
        elif first and second and relation:
            builder.add(second, relation, first, cells[10] or None)


def _rows(file: TextFile, width: int, builder: GraphBuilder) -> Iterator[Sequence[str]]:
    """Yield the cells of each row, which end in a pipe each."""
    for text in file.lines():
        cells = text.rstrip("\r\n").split("|")
        if len(cells) >= width:
            yield cells
        elif text.strip():
            file.reject(f"wanted {width} cells, but got {len(cells)}: {{}}.", file.line, got=cells)
    builder.skipped += file.skipped
