"""Columns of graphs of formats 1 and 2, where triples are numbered as they were read."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from kg_retrievers.graph.adjacency import Adjacency, entries_between
from kg_retrievers.graph.columns import Array, StringTable, offset_type
from kg_retrievers.graph.silent_columns import without_silent
from kg_retrievers.graph.storage.bounds import check_shape, check_starts
from kg_retrievers.graph.storage.manifest import Manifest
from kg_retrievers.graph.storage.parts import KEEP, Column, OpenedPart, Part, open_parts
from kg_retrievers.graph.storage.writer import Keep
from kg_retrievers.graph.triple_order import TripleColumns, triple_order

_LOGGER = logging.getLogger(__name__)

#: Meta of an index whose triples have the ids of today, whatever the graph beside it was opened from.
SORTED = {"triple_order": "sorted"}

#: The triples: int32, shape (n, 3), in the order in which they were read.
_TRIPLES = "triples"


def has_its_columns(columns: Mapping[str, Array]) -> bool:
    """Whether the columns of a graph are those of an earlier format."""
    return _TRIPLES in columns


def convert(path: str | Path, columns: Mapping[str, Array]) -> tuple[dict[str, Array], Array]:
    """Return the columns of today, in memory, and the earlier id of each triple; tell how to save them so.

    Cost: some passes and two sorts; about a second for a million triples.

    Raises:
        ValueError: If something does not fit; the message names the column.
        KeyError: If a column is missing.
    """
    _LOGGER.warning(
        "%s was saved by an earlier version, and is converted each time that it is opened. To save it in the format of "
        "today: kg-retrievers migrate %s",
        path,
        path,
    )
    made: dict[str, Array] = {}
    for name, column in columns.items():
        if name.endswith(".offsets"):
            made |= _table(columns, name.removesuffix(".offsets"))
        elif name.endswith(".indptr"):
            made[name] = column.astype(offset_type(int(column[-1])))
        elif not name.startswith("adjacency.") and name != _TRIPLES:
            made.setdefault(name, column)
    triples, earlier = _sorted_triples(columns, made)
    made |= Adjacency.of_triples(triples, len(made["entities.hashes"])).columns()
    if "triple_sources.indptr" in made:
        made |= _sources(made, earlier)
    return without_silent(made), earlier


def kept_index(path: str | Path, earlier: Array | None, before: Manifest) -> Part | Keep:
    """Return the index of a folder, to be saved beside its graph.

    Args:
        path: The folder.
        earlier: The earlier id of each triple, where the graph in the folder is of an earlier format.
        before: What the folder holds.
    """
    if earlier is None:
        return KEEP
    index = open_parts(path, ["index"])["index"]
    columns: dict[str, Column] = dict(index.columns)
    columns |= dict.fromkeys(before.parts["index"].columns, KEEP) if "index" in before.parts else {}
    return Part(columns | triple_rows(index, earlier), index.meta | SORTED)


def triple_rows(index: OpenedPart, earlier: Array | None) -> dict[str, Array]:
    """Return the column that says in which row of an index the vector of each triple is, where it changes.

    Args:
        index: The index.
        earlier: The earlier id of each triple of its graph; None where there is none.

    Raises:
        ValueError: If the index numbers triples as an earlier version did, and the graph does not tell how, or has
            another number of them.
    """
    if "triples" not in index.columns or SORTED.items() <= index.meta.items():
        return {}
    if earlier is None:
        raise ValueError("it numbers triples as an earlier version did, and the graph was saved by this one")
    rows = index.columns.get("triples_rows")
    if rows is None:
        return {"triples_rows": earlier.astype(np.int32)}
    check_shape("triples_rows", rows, earlier.shape)
    return {"triples_rows": rows[earlier].astype(np.int32)}


def _table(columns: Mapping[str, Array], name: str) -> dict[str, Array]:
    """Return a table of texts with the hashes of today."""
    offsets, data = columns[f"{name}.offsets"], columns[f"{name}.data"]
    check_starts(f"{name}.offsets", offsets, len(columns[f"{name}.hashes"]), len(data))
    return StringTable.from_texts(offsets, data).columns(name)


def _sorted_triples(columns: Mapping[str, Array], made: Mapping[str, Array]) -> tuple[TripleColumns, Array]:
    edges = columns[_TRIPLES]
    check_shape(_TRIPLES, edges, (len(edges), 3))
    for position, table in enumerate(("entities", "relations", "entities")):
        ids, size = edges[:, position], len(made[f"{table}.hashes"])
        if ids.min(initial=0) < 0 or ids.max(initial=-1) >= size:
            raise ValueError(f"{_TRIPLES} holds ids of nothing: wanted 0 to {size - 1:,}")
    order = triple_order(*edges.T)
    return TripleColumns(*(column[order] for column in edges.T)), order


def _sources(columns: Mapping[str, Array], earlier: Array) -> dict[str, Array]:
    """Return the sources of the triples in their new order."""
    indptr, values = columns["triple_sources.indptr"], columns["triple_sources.values"]
    check_starts("triple_sources.indptr", indptr, len(earlier), len(values))
    rows, _ = entries_between(indptr[earlier], indptr[earlier + 1])
    starts = np.append(0, np.cumsum(np.diff(indptr)[earlier])).astype(indptr.dtype)
    return {"triple_sources.indptr": starts, "triple_sources.values": values[rows]}
