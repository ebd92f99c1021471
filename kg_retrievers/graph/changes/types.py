"""Types of a changed graph: they are found by their ids, and called by their labels."""

from __future__ import annotations

import numpy as np

from kg_retrievers.graph.building import relation_names
from kg_retrievers.graph.changes.labels import is_made_up
from kg_retrievers.graph.changes.merge import Graph, Merge, written_types
from kg_retrievers.graph.changes.rows import new_ids
from kg_retrievers.graph.columns import Array, StringTable


def find_types(graph: Graph, addition: Graph) -> Array:
    """Return the id of each type of an addition in a graph, -1 where it is missing.

    A type that both write by an id is found by it; one that either calls by its name alone, by this name.
    """
    if not (graph.type_ids or addition.type_ids):
        return graph.types.ids_of(addition.types)
    at = {id: number for number, id in enumerate(written_types(graph))}
    found = []
    for name in addition.types:
        number = at.get(addition.type_ids.get(name, name), -1)
        has_two_ids = name in addition.type_ids and name in graph.type_ids
        found.append(graph.types.find(name) if number < 0 and not has_two_ids else number)
    return np.array(found, np.int32)


def used_types(merge: Merge, kinds: Array, used: Array) -> tuple[StringTable, Array, dict[str, str]]:
    """Return the types that are used, the new id of each, -1 for the others, and how the sources wrote them.

    Args:
        merge: The graph and what is added.
        kinds: The id of each type of the addition: that of the graph, or one behind them.
        used: The ids that are used, in any order.
    """
    graph, addition = merge.graph, merge.addition
    is_new = kinds >= len(graph.types)
    is_used = np.zeros(len(graph.types) + int(is_new.sum()), np.bool_)
    is_used[used] = True
    if not (graph.type_ids or addition.type_ids):
        of_new = np.zeros(len(kinds), np.bool_)
        of_new[is_new] = is_used[kinds[is_new]]
        table = graph.types.subset(is_used[: len(graph.types)]).joined(addition.types.subset(of_new))
        return table, new_ids(is_used), {}
    ids = [*written_types(graph), *[""] * int(is_new.sum())]
    for kind, name in zip(kinds.tolist(), addition.types, strict=True):
        if not ids[kind] or (name in addition.type_ids and graph.types[kind] not in graph.type_ids):
            ids[kind] = addition.type_ids.get(name, name)
    labels = {id: name for id, name in zip(ids, _plain_names(graph), strict=False) if id != name}
    labels |= {ids[kind]: label for kind, label in _new_labels(merge, kinds)}
    wanted = [ids[kind] for kind in np.flatnonzero(is_used).tolist()]
    names = relation_names(wanted, labels)
    written = {name: id for name, id in zip(names, wanted, strict=True) if name != id}
    return StringTable.from_strings(names), new_ids(is_used), written


def _new_labels(merge: Merge, kinds: Array) -> list[tuple[int, str]]:
    """Return the types that the addition labels, and their labels."""
    graph, addition = merge.graph, merge.addition
    labels = []
    for kind, id, label in zip(kinds.tolist(), written_types(addition), _plain_names(addition), strict=True):
        if label != id and (kind >= len(graph.types) or not is_made_up(label, id, addition.prefixes)):
            labels.append((kind, label))
    return labels


def _plain_names(graph: Graph) -> list[str]:
    """Return what the types of a graph are called, without the ids that tell two with one label apart."""
    return [name.removesuffix(f" ({id})") for name, id in zip(graph.types, written_types(graph), strict=True)]
