"""Labels, aliases, types, relations, sources and datatypes of a changed graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kg_retrievers.errors import InvalidArgumentError, did_you_mean, listed
from kg_retrievers.graph.building import NO_SOURCE, NONE, relation_names
from kg_retrievers.graph.changes.merge import Merge, Rows, new_ids, numbered, written_relations, written_types
from kg_retrievers.graph.columns import Array, StringTable
from kg_retrievers.graph.iris import Prefixes, local_words

if TYPE_CHECKING:
    from kg_retrievers.graph.knowledge_graph import KnowledgeGraph


def is_made_up(label: str, key: str, prefixes: Mapping[str, str]) -> bool:
    """Return whether a label is the end of the IRI that a key stands for, as RDF names what it gives no label.

    Example:
        >>> is_made_up("Her 2013", "dbr:Her_2013", {}), is_made_up("Her", "dbr:Her_2013", {})
        (True, False)
    """
    return label == local_words(Prefixes(prefixes).expand(key))


def made_up_labels(graph: KnowledgeGraph, entities: Array) -> Array:
    """Return those of some entities whose labels are the ends of their IRIs."""
    prefixes, found = Prefixes(graph.prefixes), []
    for id in entities.tolist():
        if graph.names[graph.labels[id]] == local_words(prefixes.expand(graph.entities[id])):
            found.append(id)
    return np.array(found, np.int64)


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


def find_types(graph: KnowledgeGraph, addition: KnowledgeGraph) -> Array:
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
    labels |= {ids[kind]: label for kind, label in _new_type_labels(merge, kinds)}
    wanted = [ids[kind] for kind in np.flatnonzero(is_used).tolist()]
    names = relation_names(wanted, labels)
    written = {name: id for name, id in zip(names, wanted, strict=True) if name != id}
    return StringTable.from_strings(names), new_ids(is_used), written


def _new_type_labels(merge: Merge, kinds: Array) -> list[tuple[int, str]]:
    """Return the types that the addition labels, and their labels."""
    graph, addition = merge.graph, merge.addition
    labels = []
    for kind, id, label in zip(kinds.tolist(), written_types(addition), _plain_names(addition), strict=True):
        if label != id and (kind >= len(graph.types) or not is_made_up(label, id, addition.prefixes)):
            labels.append((kind, label))
    return labels


def _plain_names(graph: KnowledgeGraph) -> list[str]:
    """Return what the types of a graph are called, without the ids that tell two with one label apart."""
    return [name.removesuffix(f" ({id})") for name, id in zip(graph.types, written_types(graph), strict=True)]


def relation_columns(merge: Merge, kept: Array, labels: Mapping[str, str]) -> tuple[dict[str, Array], dict[str, str]]:
    """Return the columns of the relations that stay, and the name of each relation by its earlier name.

    All names are found anew where relations have labels: a label that another relation gets or loses changes the name
    that is shown.

    Args:
        merge: The graph and what is added.
        kept: Which relations stay: bool.
        labels: New labels, by what the source or the graph calls a relation.

    Raises:
        InvalidArgumentError: If a label is that of no relation.
    """
    graph, addition = merge.graph, merge.addition
    new = merge.is_new_relation
    ids = written_relations(graph).joined(written_relations(addition).subset(new)).subset(kept)
    if graph.relation_ids is None and addition.relation_ids is None and not labels:
        return ids.columns("relations"), {name: name for name in ids}
    own = _relation_labels(graph)
    for written, label in _relation_labels(addition).items():
        if written not in own or not is_made_up(label, written, addition.prefixes):
            own[written] = label
    earlier: dict[str, str] = {}
    for one in (addition, graph):
        earlier |= zip(one.relations, written_relations(one), strict=True)
    earlier |= {id: id for id in ids}
    for text, label in labels.items():
        if (id := earlier.get(text)) not in ids:
            near = did_you_mean(text, [*graph.relations, *addition.relations])
            raise InvalidArgumentError(
                f"KnowledgeGraph.with_changes: relation_labels names {text!r}, which is no relation of the graph"
                f"{f'; {near}' if near else '.'} See `graph.relations`."
            )
        own[str(id)] = label
    names = relation_names(ids, own)
    columns = StringTable.from_strings(names).columns("relations")
    if names != [*ids]:
        columns |= ids.columns("relation_ids")
    now = dict(zip(ids, names, strict=True))
    return columns, {name: now[id] for name, id in earlier.items() if id in now}


def _relation_labels(graph: KnowledgeGraph) -> dict[str, str]:
    """Return the label of each relation that has one, by what the source calls it."""
    if graph.relation_ids is None:
        return {}
    pairs = zip(graph.relations, graph.relation_ids, strict=True)
    return {id: name.removesuffix(f" ({id})") for name, id in pairs if name != id}


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
