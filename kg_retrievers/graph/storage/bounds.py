"""Check that the columns of a graph fit together.

Then no id leads out of an array later.

Compiled code does not check where an id leads. So data that was read from a disk is checked once, when it is opened:
the types and lengths of all columns, and the values of columns of up to `BOUNDED` bytes. Longer columns are not read
for that, so that a graph opens at once, whatever its size. `verify` compares them with their checksums.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kg_retrievers.graph.adjacency import Adjacency, is_backward, label_count
from kg_retrievers.graph.columns import Array, starts_of

#: The values of columns of up to so many bytes are checked when they are opened. A pass takes 5 ms for the longest.
BOUNDED = 1 << 25

#: The tables of texts, by the names of their columns.
_TABLES = ("entities", "relations", "types", "names", "relation_ids", "datatype_names", "attributes")

#: The types of the columns that hold no signed integers, by the ends of their names.
_TYPES = {"data": "uint8", "hashes": "uint64"}

#: The columns in rows of different lengths: the owners of the rows, and the objects that the values are ids of.
_ROWS = {
    "aliases": ("entities", "names"),
    "entity_types": ("entities", "types"),
    "name_entities": ("names", "entities"),
    "type_entities": ("types", "entities"),
    "triple_attributes": ("triples", "attributes"),
}

#: The columns of one id for each: the owners, the objects of the ids, and the least id.
_IDS = {"labels": ("entities", "names", 0), "datatypes": ("entities", "datatype_names", -1)}


def check_types(columns: Mapping[str, Array]) -> None:
    """Check the types of columns.

    Texts are bytes, their hashes uint64, and all else signed integers, in the byte order of this machine.

    Args:
        columns: The columns of a graph.

    Raises:
        ValueError: If a column is of another type, or has another number of dimensions. The message names it.
    """
    for name, column in columns.items():
        wanted = _TYPES.get(name.rpartition(".")[2], "int")
        if not (column.dtype.name.startswith(wanted) and column.dtype.isnative and column.ndim == 1):
            raise ValueError(f"{name} is {column.dtype.str} of shape {column.shape}, wanted 1D of {wanted}")


def check_graph(columns: Mapping[str, Array]) -> None:
    """Check the lengths and ids of columns.

    In columns of up to `BOUNDED` bytes, each id must be the id of something.

    Cost: a pass over these columns, which takes 10 milliseconds for a million triples, and 1 for 43 million.

    Args:
        columns: The columns of a graph. Columns that a graph may lack may be missing.

    Raises:
        ValueError: If something does not fit. The message names the column.
        KeyError: If a column is missing that each graph has.
    """
    sizes = {name: check_texts(columns, name) for name in _TABLES if f"{name}.offsets" in columns}
    sizes.setdefault("names", sizes["entities"])  # entities without labels are called by their keys
    if "relation_ids" in sizes:
        check_shape("relation_ids.hashes", columns["relation_ids.hashes"], (sizes["relations"],))
    sizes["triples"] = len(columns["adjacency.backward_triples"])
    for name, (owner, target) in _ROWS.items():
        if f"{name}.indptr" in columns:
            values = columns[f"{name}.values"]
            check_starts(f"{name}.indptr", columns[f"{name}.indptr"], sizes[owner], len(values))
            check_ids(f"{name}.values", values, sizes[target])
    for name, (owner, target, least) in _IDS.items():
        if name in columns:
            check_ids(name, columns[name], sizes[target], least, count=sizes[owner])
    _check_adjacency(Adjacency.from_columns(columns), sizes)


def check_texts(columns: Mapping[str, Array], name: str) -> int:
    """Check a table of texts, and return how many it holds."""
    offsets, data, hashes, order = (columns[f"{name}.{part}"] for part in ("offsets", "data", "hashes", "order"))
    size = len(hashes)
    check_starts(f"{name}.offsets", offsets, size, len(data))
    check_ids(f"{name}.order", order, size, count=size)
    return size


def check_starts(name: str, starts: Array, rows: int, end: int) -> None:
    """Check where rows start: ascending from 0, and an end for the last row."""
    check_shape(name, starts, (rows + 1,))
    if starts[0] != 0 or starts[-1] != end or (_is_bounded(starts) and (starts[1:] < starts[:-1]).any()):
        raise ValueError(f"{name} does not ascend from 0 to {end:,}")


def check_ids(name: str, ids: Array, size: int, least: int = 0, *, count: int | None = None) -> None:
    """Check that ids are in range, and how many there are.

    They are below a size, and not below the least one. The number is checked if it is known.
    """
    if count is not None:
        check_shape(name, ids, (count,))
    if ids.size and _is_bounded(ids) and (ids.min() < least or ids.max() >= size):
        raise ValueError(f"{name} holds ids of nothing: wanted {least} to {size - 1:,}")


def _is_bounded(column: Array) -> bool:
    return column.nbytes <= BOUNDED


def _check_adjacency(adjacency: Adjacency, sizes: Mapping[str, int]) -> None:
    entities, count = sizes["entities"], sizes["triples"]
    check_starts("adjacency.indptr", adjacency.indptr, entities, 2 * count)
    check_starts("adjacency.first_triples", adjacency.first_triples, entities, count)
    check_ids("adjacency.neighbors", adjacency.neighbors, entities, count=2 * count)
    check_ids("adjacency.labels", adjacency.labels, label_count(sizes["relations"]), count=2 * count)
    check_ids("adjacency.backward_triples", adjacency.backward_triples, count, count=count)
    if not _is_bounded(adjacency.indptr):
        return
    forward = np.diff(adjacency.first_triples)
    backward = np.diff(adjacency.indptr) - forward
    if (backward < 0).any():
        raise ValueError("adjacency.first_triples counts more triples than an entity has entries")
    if _is_bounded(adjacency.labels):
        halves = np.stack([forward, backward], axis=1).ravel()
        is_turned = is_backward(adjacency.labels) != np.repeat(np.arange(2 * entities) % 2 == 1, halves)
        descends, begins = adjacency.labels[1:] < adjacency.labels[:-1], np.zeros(2 * count + 1, np.bool_)
        begins[starts_of(halves)] = True
        if is_turned.any() or (descends & ~begins[1:-1]).any():
            raise ValueError("adjacency.labels does not ascend in each half of a row, forward before backward")


def check_shape(name: str, column: Array, shape: tuple[int, ...]) -> None:
    """Check the shape of a column."""
    if column.shape != shape:
        raise ValueError(f"{name} has the shape {column.shape}, wanted {shape}")
