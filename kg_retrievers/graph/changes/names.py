"""Labels, aliases and types of a changed graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from kg_retrievers.graph.changes.labels import made_up_labels
from kg_retrievers.graph.changes.merge import Merge, numbered
from kg_retrievers.graph.changes.rows import Rows, new_ids
from kg_retrievers.graph.changes.types import find_types, used_types
from kg_retrievers.graph.columns import Array, StringTable
from kg_retrievers.graph.iris import Prefixes, local_words


class Descriptions(NamedTuple):
    """What entities are called and of which types they are, in ids of names and types before some are left out.

    Attributes:
        labels: The name of each entity.
        aliases: The further names of each entity.
        types: The types of each entity.
        names: The id of each name of the addition.
        kinds: The id of each type of the addition.
    """

    labels: Array
    aliases: Rows
    types: Rows
    names: Array
    kinds: Array

    def subset(self, kept: Array) -> Descriptions:
        """Return what is said about some entities."""
        if kept.all():
            return self
        return self._replace(labels=self.labels[kept], aliases=self.aliases.subset(kept), types=self.types.subset(kept))


def join_descriptions(merge: Merge) -> Descriptions:
    """Describe the entities of both; where both give a label, that of the addition counts, and lists are joined.

    The end of an IRI is no label that an addition gives.
    """
    both, addition = _with_new_entities(merge), merge.addition
    own_names = addition.names.ids_of(addition.entities)
    aliases, types = Rows.named(addition._columns, "aliases"), Rows.named(addition._columns, "entity_types")
    has_label = addition.labels != own_names
    has_label[made_up_labels(addition, np.flatnonzero(has_label & ~merge.is_new_entity))] = False
    described = has_label | (aliases.lengths > 0) | (types.lengths > 0)
    labels, new_aliases, new_types = both.labels, {}, {}
    for id in np.flatnonzero(described & ~merge.is_new_entity).tolist():
        entity = int(merge.entities[id])
        if has_label[id]:
            labels[entity] = both.names[addition.labels[id]]
        new_aliases[entity] = _union(both.aliases.row(entity), both.names[aliases.row(id)].tolist())
        new_types[entity] = _union(both.types.row(entity), both.kinds[types.row(id)].tolist())
    return both._replace(aliases=both.aliases.replaced(new_aliases), types=both.types.replaced(new_types))


def replace_descriptions(
    merge: Merge, labels: Iterable[str], aliases: Iterable[str], types: Iterable[str]
) -> Descriptions:
    """Describe the entities of both; what the addition says about some keys takes the place of what the graph says.

    Args:
        merge: The graph and the addition.
        labels: The keys whose labels the addition has.
        aliases: The keys whose aliases the addition has.
        types: The keys whose types the addition has.
    """
    both, addition = _with_new_entities(merge), merge.addition
    for id in map(addition.entities.find, labels):
        both.labels[merge.entities[id]] = both.names[addition.labels[id]]
    lists = []
    for keys, rows, of_addition, ids in (
        (aliases, both.aliases, Rows.named(addition._columns, "aliases"), both.names),
        (types, both.types, Rows.named(addition._columns, "entity_types"), both.kinds),
    ):
        found = [addition.entities.find(key) for key in keys]
        lists.append(rows.replaced({int(merge.entities[id]): ids[of_addition.row(id)].tolist() for id in found}))
    return both._replace(aliases=lists[0], types=lists[1])


def is_described(merge: Merge, descriptions: Descriptions, entities: Array) -> Array:
    """Return which entities of the graph have a label that is not made of their key, an alias or a type: bool."""
    graph = merge.graph
    expand = Prefixes(graph.prefixes).expand
    found = np.diff(descriptions.aliases.indptr)[entities] > 0
    found |= np.diff(descriptions.types.indptr)[entities] > 0
    for at in np.flatnonzero(~found).tolist():
        entity = int(entities[at])
        label = int(descriptions.labels[entity])
        key = graph.entities[entity]
        found[at] = label >= len(graph.names) or graph.names[label] not in (key, local_words(expand(key)))
    return found


def name_columns(
    merge: Merge, descriptions: Descriptions, entities: StringTable
) -> tuple[dict[str, Array], Array, dict[str, str]]:
    """Return the columns of names and types that entities have, the earlier id of each name, and the ids of types.

    Where each entity is called by its key alone, names are in the order of entities.

    Args:
        merge: The graph and what is added.
        descriptions: What the entities that stay are called.
        entities: Their keys.
    """
    labels, aliases, types, names, kinds = descriptions
    graph, addition, size = merge.graph, merge.addition, len(labels)
    type_table, kind_ids, type_ids = used_types(merge, kinds, types.values)
    types = types._replace(values=kind_ids[types.values])
    columns: dict[str, Array] = type_table.columns("types") | types.columns("entity_types")
    columns |= Rows.of_pairs(types.values, types.owners, len(type_table), size).columns("type_entities")
    if merge.are_names_keys:
        return columns, np.where(labels < len(graph.names), labels, -1).astype(np.int64), type_ids
    used = np.append(labels, aliases.values)
    table, name_ids = _used_strings(graph.names, addition.names, names, used)
    origins = np.full(len(table), -1)
    kept = np.flatnonzero(name_ids[: len(graph.names)] >= 0)
    origins[name_ids[kept]] = kept
    labels, aliases = name_ids[labels], aliases._replace(values=name_ids[aliases.values])
    if len(table) == size and not len(aliases.values) and _are_keys(table, labels, entities):
        return columns, origins[labels], type_ids
    columns |= table.columns("names") | {"labels": labels} | aliases.columns("aliases")
    owners = np.append(np.arange(size), aliases.owners)
    columns |= Rows.of_pairs(name_ids[used], owners, len(table), size).columns("name_entities")
    return columns, origins, type_ids


def _are_keys(names: StringTable, labels: Array, entities: StringTable) -> bool:
    """Return whether the label of each entity is its key."""
    every = np.arange(len(labels))
    if np.array_equal(labels, every):
        return names.is_same(entities)
    return bool(np.array_equal(entities.ids_of(names)[labels], every))


def _with_new_entities(merge: Merge) -> Descriptions:
    """Return what the graph says about its entities, and what the addition says about the others."""
    graph, addition, new = merge.graph, merge.addition, merge.is_new_entity
    names = merge.entities if merge.are_names_keys else numbered(graph.names.ids_of(addition.names), len(graph.names))
    kinds = numbered(find_types(graph, addition), len(graph.types))
    aliases, types = (
        Rows.named(addition._columns, "aliases").subset(new),
        Rows.named(addition._columns, "entity_types").subset(new),
    )
    return Descriptions(
        np.append(graph.labels, names[addition.labels[new]]),
        Rows.named(graph._columns, "aliases").joined(aliases._replace(values=names[aliases.values])),
        Rows.named(graph._columns, "entity_types").joined(types._replace(values=kinds[types.values])),
        names,
        kinds,
    )


def _used_strings(table: StringTable, new: StringTable, ids: Array, used: Array) -> tuple[StringTable, Array]:
    """Return the strings of two tables that are used, and the new id of each, -1 for the others.

    Args:
        table: The table of the graph.
        new: The table of the addition.
        ids: The id of each string of `new`: that of the same string of `table`, or one behind them.
        used: The ids that are used, in any order.
    """
    is_new = ids >= len(table)
    is_used = np.zeros(len(table) + int(is_new.sum()), np.bool_)
    is_used[used] = True
    of_new = np.zeros(len(new), np.bool_)
    of_new[is_new] = is_used[ids[is_new]]
    return table.subset(is_used[: len(table)]).joined(new.subset(of_new)), new_ids(is_used)


def _union(one: Sequence[int], other: Sequence[int]) -> list[int]:
    return list(dict.fromkeys([*one, *other]))
