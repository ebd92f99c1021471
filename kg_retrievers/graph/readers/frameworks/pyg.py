"""From torch-geometric's `Data` and `HeteroData` to the rows of a knowledge graph, without torch."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.columns import Array

_WHO = "KnowledgeGraph.from_pyg"

#: What is read of a store of nodes or edges; all else is left out.
_READ = ("edge_index", "edge_type", "entities", "labels", "relations", "num_nodes")


def read_pyg_rows(
    data: Any, *, entities: Sequence[str] | None = None, relations: Sequence[str] | None = None
) -> GraphBuilder:
    """Read the edges of a `Data` or `HeteroData`: see `KnowledgeGraph.from_pyg`.

    Args:
        data: The graph of torch-geometric.
        entities: The key of each node.
        relations: The relation of each `edge_type`.

    Raises:
        InvalidArgumentError: If there is no `edge_index`, or a list of names is too short.
    """
    builder = GraphBuilder()
    builder.reading.format = "PyG"
    if hasattr(data, "edge_types"):
        if entities is not None or relations is not None:
            raise InvalidArgumentError(
                f"{_WHO}: entities and relations are for Data. HeteroData has its relations in its edge types; give "
                'the keys of its nodes as data[TYPE].entities = ["...", ...].'
            )
        _read_hetero(data, builder)
    elif getattr(data, "edge_index", None) is not None:
        _read_homogeneous(data, entities, relations, builder)
    else:
        raise InvalidArgumentError(f"{_WHO}: wanted a Data or HeteroData with an edge_index, but got {data!r:.100}.")
    return builder


def _read_homogeneous(
    data: Any, entities: Sequence[str] | None, relations: Sequence[str] | None, builder: GraphBuilder
) -> None:
    ends = _edge_index(data)
    nodes = _keys(entities if entities is not None else getattr(data, "entities", None), _size(data, ends), "", builder)
    ids = _add_nodes(builder, nodes, getattr(data, "labels", None), None)
    names = _edge_relations(data, relations, ends.shape[1], builder)
    _add_edges(builder, ids[ends[0]], names, ids[ends[1]])
    _leave_out(data, "", builder)


def _read_hetero(data: Any, builder: GraphBuilder) -> None:
    ends = {kind: _edge_index(data[kind]) for kind in data.edge_types}
    ids = {}
    for kind in data.node_types:
        rows = [
            row
            for (head, _, tail), both in ends.items()
            for row, side in zip(both, (head, tail), strict=True)
            if side == kind
        ]
        size = max([_size(data[kind], np.empty((2, 0), np.int64)), *(int(row.max(initial=-1)) + 1 for row in rows)])
        nodes = _keys(getattr(data[kind], "entities", None), size, f"{kind}/", builder)
        ids[kind] = _add_nodes(builder, nodes, getattr(data[kind], "labels", None), kind)
        _leave_out(data[kind], f"{kind}.", builder)
    for (head, relation, tail), both in ends.items():
        _add_edges(builder, ids[head][both[0]], [relation] * both.shape[1], ids[tail][both[1]])
        _leave_out(data[head, relation, tail], f"{relation}.", builder)


def _edge_index(store: Any) -> Array:
    """Return the ends of the edges, int64 of shape (2, m)."""
    ends = _array(store.edge_index, "edge_index")
    if ends.ndim != 2 or len(ends) != 2 or (ends.size and ends.min() < 0):
        raise InvalidArgumentError(
            f"{_WHO}: edge_index must be two rows of positions of nodes, 0 or more, but its shape is {ends.shape}."
        )
    return ends


def _array(values: Any, name: str) -> Array:
    try:
        array = np.asarray(values)
        if array.size and array.dtype.kind not in "iu":
            raise TypeError(f"it holds {array.dtype}")
        return array.astype(np.int64)
    except (TypeError, ValueError, RuntimeError) as cause:
        raise InvalidArgumentError(
            f"{_WHO}: {name} is no array of integers in main memory ({cause}). Hand in data.cpu()."
        ) from cause


def _size(store: Any, ends: Array) -> int:
    """Return how many nodes there are: as many as the store says, or as the edges need."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that PyG had to count the nodes by the edges
        given = store.num_nodes
    return max(int(given or 0), int(ends.max(initial=-1)) + 1)


def _keys(names: Any, size: int, prefix: str, builder: GraphBuilder) -> list[str]:
    """Return the key of each node: what it is called, or its position."""
    if names is None:
        what = f"keys of nodes {prefix}*" if prefix else "keys of nodes"
        builder.reading.understood[what] = "their positions: there are no `entities`"
        return [f"{prefix}{position}" for position in range(size)]
    keys = [str(name) for name in names]
    if len(keys) < size or len(set(keys)) < len(keys) or not all(keys):
        raise InvalidArgumentError(
            f"{_WHO}: wanted {size} keys of nodes, no two alike and none empty, but entities has {len(keys)}, "
            f"{len(set(keys))} of them distinct."
        )
    return keys


def _add_nodes(builder: GraphBuilder, keys: Sequence[str], labels: Any, kind: str | None) -> Array:
    """Add the nodes in their order, and return their ids."""
    ids = np.array([builder.entity(key) for key in keys], np.int64)
    for position, key in enumerate(keys):
        label = labels[position] if labels is not None and position < len(labels) else None
        builder.describe(key, None if label is None else str(label), (), [kind] if kind else [])
    return ids


def _edge_relations(data: Any, relations: Sequence[str] | None, size: int, builder: GraphBuilder) -> list[str]:
    """Return the relation of each edge."""
    given, understood = getattr(data, "relations", None), builder.reading.understood
    if relations is None and given is not None and len(given) == size:
        return [str(name) for name in given]  # as `to_pyg` writes them: one for each edge
    kinds = getattr(data, "edge_type", None)
    if kinds is None:
        raise InvalidArgumentError(
            f"{_WHO}: the edges have no relations. Give each edge a text, data.relations = [...], or an id, "
            "data.edge_type = tensor."
        )
    ids, names = _array(kinds, "edge_type").reshape(-1), relations if relations is not None else given
    if len(ids) != size:
        raise InvalidArgumentError(f"{_WHO}: there are {size} edges, but edge_type has {len(ids)} ids.")
    if names is None:
        understood["relations"] = "ids of edge_type: there are no `relations`"
        return [str(id) for id in ids.tolist()]
    if len(ids) and not 0 <= ids.min() <= ids.max() < len(names):
        raise InvalidArgumentError(f"{_WHO}: edge_type goes to {ids.max()}, but there are {len(names)} relations.")
    return [str(names[id]) for id in ids.tolist()]


def _add_edges(builder: GraphBuilder, heads: Array, names: Sequence[str], tails: Array) -> None:
    builder.add_ids(heads, np.array([builder.relation(name) for name in names], np.int64), tails)


def _leave_out(store: Any, prefix: str, builder: GraphBuilder) -> None:
    """Count the values of each further attribute, such as x."""
    keys = store.keys() if callable(getattr(store, "keys", None)) else getattr(store, "keys", ())
    for name in keys:
        if name not in _READ:
            values = store[name]
            count = len(values) if hasattr(values, "__len__") and getattr(values, "ndim", 1) != 0 else 1
            builder.reading.leave_out(f"{prefix}{name} (a graph holds no vectors and no labels of classes)", count)
