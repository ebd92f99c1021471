"""The table of PrimeKG (Chandak et al., "Building a knowledge graph to enable precision medicine", 2023).

Each row holds a fact with both of its ends: `x_name, display_relation, y_name`, and their ids, types and sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from reprlib import repr as short

from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.readers.tables.delimiters import Layout, split_rows
from kg_retrievers.graph.readers.tables.text_lines import TextFile

_NEEDED = ("x_name", "display_relation", "y_name")
_OF_END = ("source", "id", "name", "type")


def is_primekg_header(cells: Sequence[str]) -> bool:
    """Whether a row is the header of such a table.

    Example:
        >>> is_primekg_header(["relation", "display_relation", "x_id", "x_name", "y_id", "y_name"])
        True
    """
    return set(_NEEDED) <= set(cells)


def read_primekg(file: TextFile, layout: Layout, builder: GraphBuilder) -> None:
    """Add the facts of such a table.

    The key of an entity is its source and id, as "NCBI:9796"; its name where the table has no ids. Its name is its
    label, and `x_type` or `y_type` its type.

    Raises:
        GraphLoadError: If the header lacks one of the three, or a row has not as many cells as the header.
    """
    rows = split_rows(file, layout)
    first = next(rows, None)
    if first is None:
        return
    names = first.cells
    if not is_primekg_header(names):
        file.fail(f"wanted the columns {', '.join(_NEEDED)}, but found {short(names)}.", first.line)
    relation = names.index("display_relation")
    ends = [{part: names.index(f"{end}_{part}") for part in _OF_END if f"{end}_{part}" in names} for end in "xy"]
    described: set[str] = set()
    for line, last, cells in rows:
        if len(cells) != len(names):
            file.reject(f"wanted {len(names)} cells ({layout.format}), but got {len(cells)}: {{}}.", line, last, cells)
            continue
        keys = [_key(cells, columns) for columns in ends]
        if not (cells[relation] and all(keys)):
            file.reject("a name, an id or the relation is empty: {}.", line, last, cells)
            continue
        builder.add(keys[0], cells[relation], keys[1])
        for key, columns in zip(keys, ends, strict=True):
            if key not in described:
                described.add(key)
                kind = cells[columns["type"]] if "type" in columns else ""
                builder.describe(key, cells[columns["name"]], types=[kind] if kind else [])
    read = {"display_relation"} | {f"{end}_{part}" for end in "xy" for part in _OF_END}
    builder.reading.understood["keys"] = "source and id, as in NCBI:9796"
    for name in names:
        if name not in read:
            builder.reading.leave_out(f"cells of column {name!r}", len(builder))


def _key(cells: Sequence[str], columns: dict[str, int]) -> str:
    """Return the key of an end; empty where its name or id is."""
    name = cells[columns["name"]]
    id = cells[columns["id"]] if "id" in columns else name
    source = cells[columns["source"]] if "source" in columns and "id" in columns else ""
    return "" if not (name and id) else f"{source}:{id}" if source else id
