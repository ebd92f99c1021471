"""Bounds: whether the columns of a graph fit together, so that no id leads out of an array later.

Compiled code does not look where an id leads. So what was read from a disk is checked once, when it is opened.
"""

from __future__ import annotations

from collections.abc import Mapping

from kg_retrievers.graph.adjacency import label_count
from kg_retrievers.graph.columns import Array

#: The tables of texts, by the names of their columns.
_TABLES = ("entities", "relations", "types", "names", "relation_ids", "datatype_names", "sources")

#: The columns in rows of different lengths: what has a row, and what the values are ids of.
_ROWS = {
    "aliases": ("entities", "names"),
    "entity_types": ("entities", "types"),
    "name_entities": ("names", "entities"),
    "type_entities": ("types", "entities"),
    "triple_sources": ("triples", "sources"),
}

#: The columns of one id for each: what has one, what it is an id of, and the least id.
_IDS = {"labels": ("entities", "names", 0), "datatypes": ("entities", "datatype_names", -1)}


def check_graph(columns: Mapping[str, Array]) -> None:
    """Check lengths, and that each id is the id of something.

    Cost: a pass over the columns without their texts; for a million triples 10 milliseconds.

    Args:
        columns: The columns of a graph; those that a graph may lack may be missing.

    Raises:
        ValueError: If something does not fit; the message names the column.
        KeyError: If a column is missing that each graph has.
    """
    sizes = {name: check_texts(columns, name) for name in _TABLES if f"{name}.offsets" in columns}
    sizes["triples"] = len(columns["triples"])
    for name, (owner, target) in _ROWS.items():
        if f"{name}.indptr" in columns:
            values = columns[f"{name}.values"]
            check_starts(f"{name}.indptr", columns[f"{name}.indptr"], sizes[owner], len(values))
            check_ids(f"{name}.values", values, sizes[target])
    for name, (owner, target, least) in _IDS.items():
        if name in columns:
            check_shape(name, columns[name], (sizes[owner],))
            check_ids(name, columns[name], sizes[target], least)
    _check_edges(columns, sizes)


def check_texts(columns: Mapping[str, Array], name: str) -> int:
    """Check a table of texts; return how many it holds."""
    offsets, data, hashes, order = (columns[f"{name}.{part}"] for part in ("offsets", "data", "hashes", "order"))
    size = len(hashes)
    check_starts(f"{name}.offsets", offsets, size, len(data))
    check_shape(f"{name}.order", order, (size,))
    check_ids(f"{name}.order", order, size)
    return size


def check_starts(name: str, starts: Array, rows: int, end: int) -> None:
    """Check where rows start: ascending from 0, and an end for the last row."""
    check_shape(name, starts, (rows + 1,))
    if starts[0] != 0 or starts[-1] != end or (starts[1:] < starts[:-1]).any():
        raise ValueError(f"{name} does not ascend from 0 to {end:,}")


def check_ids(name: str, ids: Array, size: int, least: int = 0) -> None:
    """Check that ids are below a size, and not below the least one."""
    if ids.size and (ids.min() < least or ids.max() >= size):
        raise ValueError(f"{name} holds ids of nothing: wanted {least} to {size - 1:,}")


def _check_edges(columns: Mapping[str, Array], sizes: Mapping[str, int]) -> None:
    edges, count = columns["triples"], sizes["triples"]
    check_shape("triples", edges, (count, 3))
    for position, target in enumerate(("entities", "relations", "entities")):
        check_ids("triples", edges[:, position], sizes[target])
    indptr, labels = columns["adjacency.indptr"], columns["adjacency.labels"]
    check_starts("adjacency.indptr", indptr, sizes["entities"], 2 * count)
    limits = {"neighbors": sizes["entities"], "labels": label_count(sizes["relations"]), "triples": count}
    for name, limit in limits.items():
        check_shape(f"adjacency.{name}", columns[f"adjacency.{name}"], (2 * count,))
        check_ids(f"adjacency.{name}", columns[f"adjacency.{name}"], limit)
    descends = labels[1:] < labels[:-1]
    starts = indptr[1:-1]
    descends[starts[(starts > 0) & (starts < 2 * count)] - 1] = False
    if descends.any():
        raise ValueError("adjacency.labels does not ascend in each row")


def check_shape(name: str, column: Array, shape: tuple[int, ...]) -> None:
    """Check the shape of a column."""
    if column.shape != shape:
        raise ValueError(f"{name} has the shape {column.shape}, wanted {shape}")
