"""Sources of facts and datatypes of literals in a changed graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kg_retrievers.graph.knowledge_graph import KnowledgeGraph


from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from kg_retrievers.errors import InvalidArgumentError, did_you_mean, listed
from kg_retrievers.graph.building import NO_SOURCE, NONE
from kg_retrievers.graph.changes.merge import Merge, Rows, new_ids
from kg_retrievers.graph.columns import Array, StringTable


def facts_from(graph: KnowledgeGraph, sources: Iterable[str]) -> Array:
    """Return the ids of the triples that are from these sources and from no other.

    Raises:
        InvalidArgumentError: If the graph has no such source.
    """
    lost = _source_ids(graph, sources)
    if not len(lost):
        return np.empty(0, np.int64)
    rows = Rows.named(graph._columns, "triple_sources")
    others = np.bincount(rows.owners[~np.isin(rows.values, lost)], minlength=len(graph))
    return np.flatnonzero((rows.lengths > 0) & (others == 0))


class TripleIds(NamedTuple):
    """The ids of triples in a changed graph.

    Attributes:
        kept: That of each triple of the graph, -1 where it is gone.
        added: That of each triple of the addition.
        size: How many triples there are.
    """

    kept: Array
    added: Array
    size: int


def source_columns(merge: Merge, triples: TripleIds, removed: Iterable[str], source: str | None) -> dict[str, Array]:
    """Return the sources of each triple; nothing where no triple has one.

    A triple that is given both with and without a source has `NO_SOURCE` among its sources.

    Args:
        merge: The graph and what is added.
        triples: The ids of triples in the result.
        removed: The sources that are left out.
        source: Where all that is added is from.
    """
    graph, addition, ids = merge.graph, merge.addition, triples.added
    old, new = graph.source_names or _EMPTY, addition.source_names or _EMPTY
    names = dict.fromkeys([*old, *new, *([source] if source else [])])
    if not names:
        return {}
    names.setdefault(NO_SOURCE)
    at = {name: id for id, name in enumerate(names)}
    owners, values = _pairs(graph)
    stays = (triples.kept[owners] >= 0) & ~np.isin(values, _source_ids(graph, removed))
    owners, values = triples.kept[owners[stays]], values[stays]
    new_owners, new_values = _pairs(addition)
    new_values = np.array([at[name] for name in new], np.int64)[new_values]
    new_owners = ids[new_owners]
    if source:
        new_owners, new_values = np.append(new_owners, ids), np.append(new_values, np.full(len(ids), at[source]))
    plain = triples.kept[_without_source(graph) & (triples.kept >= 0)]
    if not source:
        plain = np.append(plain, ids[_without_source(addition)])
    owners, values = np.concatenate([owners, new_owners, plain]), np.append(values, new_values)
    values = np.append(values, np.full(len(plain), at[NO_SOURCE]))
    has_source = np.isin(owners, owners[values != at[NO_SOURCE]])
    owners, values = owners[has_source], values[has_source]
    used = np.zeros(len(names), np.bool_)
    used[values] = True
    if not used.any():
        return {}
    table = StringTable.from_strings([name for name, id in at.items() if used[id]])
    rows = Rows.of_pairs(owners, new_ids(used)[values], triples.size, len(table))
    return table.columns("sources") | rows.columns("triple_sources")


def datatype_columns(merge: Merge, kept: Array) -> dict[str, Array]:
    """Return the datatype of each entity that stays; nothing where none has one.

    Of two datatypes of one text the first in sorted order counts.
    """
    graph, addition = merge.graph, merge.addition
    old, new = graph.datatype_names or _EMPTY, addition.datatype_names or _EMPTY
    names = sorted({*old, *new})
    if not names:
        return {}
    none = len(names)  # after all others
    column = np.full(merge.entity_count, none, np.int32)
    for one, table, entities in ((graph, old, np.arange(len(graph.entities))), (addition, new, merge.entities)):
        if len(table):
            ids = np.array([*(names.index(name) for name in table), none], np.int32)  # the last one is that of NONE
            np.minimum.at(column, entities, ids[one._columns["datatypes"]])
    column = column[kept]
    used = np.zeros(none + 1, np.bool_)
    used[column] = True
    used[none] = False
    if not used.any():
        return {}
    table = StringTable.from_strings([name for name, is_used in zip(names, used[:none], strict=True) if is_used])
    return table.columns("datatype_names") | {"datatypes": new_ids(used)[column]}


def _pairs(graph: KnowledgeGraph) -> tuple[Array, Array]:
    """Return each triple that has a source, and the source, as often as it has one."""
    if graph.source_names is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    rows = Rows.named(graph._columns, "triple_sources")
    return rows.owners, rows.values


def _without_source(graph: KnowledgeGraph) -> Array:
    """Return which triples have no source: bool."""
    found = np.ones(len(graph), np.bool_)
    found[_pairs(graph)[0]] = False
    return found


def _source_ids(graph: KnowledgeGraph, sources: Iterable[str]) -> Array:
    table, ids = graph.source_names or _EMPTY, []
    names = [name for name in table if name]
    for source in (sources,) if isinstance(sources, str) else sources:
        ids.append(table.find(source))
        if ids[-1] < 0 or not source:
            near = did_you_mean(source, names)
            known = f"{f'; {near}' if near else '.'} Its sources: {listed(names)}." if names else "; none has a source."
            raise InvalidArgumentError(
                f"KnowledgeGraph.with_changes: no fact of the graph is from {source!r}{known}",
                hint_python="See `graph.source_names`." if names else "",
                hint_shell="`info` counts them." if names else "",
            )
    return np.array(ids, np.int64)


_EMPTY = StringTable.from_strings([])
assert NONE == -1, "`datatype_columns` takes the last id for NONE"
