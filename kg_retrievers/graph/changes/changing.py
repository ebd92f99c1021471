"""Change graphs without reading all of them again.

A change adds and removes facts, and describes entities again, in columns.

Parts that stay keep their order, and new parts come behind them. Triples are sorted by head, relation and tail all the
same. An id of an entity, a relation, a name or a type changes only if something before it is gone: an entity in no
triple any more that nothing describes, a relation without triples, a name or a type of no entity. So the changed graph
equals a graph made from its facts, and only the order differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypedDict, TypeVar, Unpack, cast

import numpy as np

from kg_retrievers.errors import InvalidArgumentError, check_known, did_you_mean, listed
from kg_retrievers.graph.adjacency import Adjacency, TripleColumns, blocks, parts_of, rank_triples, rows_between
from kg_retrievers.graph.attributes import SOURCE, no_fact_left
from kg_retrievers.graph.building import Pairs, Reading, attribute_columns
from kg_retrievers.graph.changes.merge import (
    Descriptions,
    Merge,
    NewTexts,
    Said,
    attribute_pairs,
    mask,
    new_ids,
    new_texts,
)
from kg_retrievers.graph.columns import Array, roomy
from kg_retrievers.graph.readers.rdf.parsing import FORMATS

if TYPE_CHECKING:
    from kg_retrievers.graph.knowledge_graph import KnowledgeGraph


Graph = TypeVar("Graph", bound="KnowledgeGraph")

Rows = Iterable[Sequence[str]]


class Changes(TypedDict, total=False):
    """The arguments of `KnowledgeGraph.with_changes`, which documents each."""

    added: Rows | KnowledgeGraph
    removed: Rows | KnowledgeGraph
    labels: Mapping[str, str] | None
    aliases: Mapping[str, Sequence[str]] | None
    types: Mapping[str, Sequence[str]] | None
    relation_labels: Mapping[str, str] | None
    removed_sources: Iterable[str]
    source: str | None


class GraphChange(NamedTuple):
    """A changed graph, and the earlier state of each of its parts.

    Attributes:
        graph: The changed graph.
        entities: The earlier id of each entity, -1 if it is new.
        names: The earlier id of each name, -1 if it is new.
        triples: The earlier id of each triple, -1 if it is new.
    """

    graph: KnowledgeGraph
    entities: Array
    names: Array
    triples: Array


def change_graph(graph: KnowledgeGraph, **changes: Unpack[Changes]) -> GraphChange:
    """Change a graph as `KnowledgeGraph.with_changes` does.

    Raises:
        InvalidArgumentError: As `KnowledgeGraph.with_changes`.
    """
    check_known("KnowledgeGraph.with_changes", changes, Changes.__annotations__)
    added = changes.get("added", ())
    said = Said(changes.get("labels") or {}, changes.get("aliases") or {}, changes.get("types") or {})
    if not isinstance(added, type(graph)):
        addition = graph.from_triples(cast("Rows", added), **said._asdict())
        return _change(Merge(graph, addition, NewTexts({})), changes, said)
    first = _change(Merge(graph, added, new_texts(graph, added)), changes, None)
    if not any(said):
        return first
    second = _change(Merge(first.graph, graph.from_triples((), **said._asdict()), NewTexts({})), {}, said)
    origins = (np.append(earlier, -1)[later] for later, earlier in zip(second[1:], first[1:], strict=True))
    return GraphChange(second.graph, *origins)


def _change(merge: Merge, changes: Changes, said: Said | None) -> GraphChange:
    """Merge an addition into a graph.

    Args:
        merge: The graph and its addition.
        changes: The facts to remove, and names of relations and of a source.
        said: The replacement of descriptions. None if the addition's descriptions join the graph's.
    """
    graph, addition = merge.graph, merge.addition
    if said is not None:
        _check_known(merge, said.types)
    descriptions = merge.describe(said)
    lost = _source_ids(graph, changes.get("removed_sources", ()))
    removal, removed = _removal(graph, changes.get("removed", ()))
    facts, origins, of_addition, missing = _merged(merge, removed, _facts_from(graph, lost))
    _check_removed(graph, removal, missing)
    is_end = mask(len(merge.entities), facts.heads) | mask(len(merge.entities), facts.tails)
    kept_entities = merge.kept_entities(descriptions, ~is_end)
    columns, text_relations, type_ids, names = _columns(
        merge, descriptions, facts, kept_entities, changes.get("relation_labels") or {}
    )
    columns |= merge.attribute_columns(origins, of_addition, lost, changes.get("source"))
    new = int((origins < 0).sum())
    changed = type(graph)(
        columns,
        graph.duplicates + addition.duplicates + len(addition) - new,
        graph.skipped + addition.skipped,
        text_relations,
        {**merge.new.prefixes, **graph.prefixes},
        graph.reading.joined(addition.reading).changed(new, len(graph) - len(origins) + new),
        type_ids,
    )
    return GraphChange(changed, merge.entities.origins(kept_entities), names, origins)


def _merged(merge: Merge, removed: Sequence[Array], is_lost: Array) -> tuple[TripleColumns, Array, Array, Array]:
    """Remove and add facts, a range of heads at a time.

    Args:
        merge: The graph and its addition.
        removed: Heads, relations and tails of the facts to remove, by the ids of the graph.
        is_lost: Which other facts of the graph to remove: bool.

    Returns:
        The facts that stay, sorted, the id that each had in the graph, -1 if it is new, the id that each fact of the
            addition gets, and which facts to remove are missing.
    """
    graph, added, count = merge.graph, merge.edges(), 0
    most = len(graph) + len(merge.addition)
    facts, origins = TripleColumns(*(roomy(most, np.int32) for _ in range(3))), roomy(most, np.int32)
    of_addition, missing = np.empty(len(merge.addition), np.int64), np.empty(len(removed[0]), np.bool_)
    starts = graph.adjacency.first_triples
    starts = np.append(starts, np.full(len(merge.entities.new), starts[-1]))
    for low, high in parts_of(starts):
        own, gone, new = (
            slice(starts[low], starts[high]),
            *(rows_between(ids[0], low, high) for ids in (removed, added)),
        )
        given = graph.edges[own].T, [ids[gone] for ids in removed], [ids[new] for ids in added]
        triples, ranks = rank_triples([np.concatenate(columns) for columns in zip(*given, strict=True)])
        size = len(triples.heads)
        of_graph, of_gone, of_new = np.split(ranks, np.cumsum([own.stop - own.start, len(gone)]))
        missing[gone] = ~mask(size, of_graph)[of_gone]
        stays = ~mask(size, of_gone)[of_graph] & ~is_lost[own]
        kept = mask(size, of_graph[stays]) | mask(size, of_new)
        ids = count + new_ids(kept)
        of_addition[new] = ids[of_new]
        some = slice(count, count + int(kept.sum()))
        for column, part in zip(facts, triples, strict=True):
            column[some] = part[kept]
        origins[some] = -1
        origins[ids[of_graph[stays]]] = own.start + np.flatnonzero(stays)
        count = some.stop
    return TripleColumns(*(column[:count] for column in facts)), origins[:count], of_addition, missing


def _columns(
    merge: Merge,
    descriptions: Descriptions,
    facts: TripleColumns,
    kept_entities: Array,
    relation_labels: Mapping[str, str],
) -> tuple[dict[str, Array], list[str], dict[str, str], Array]:
    """Return the columns of a changed graph.

    Its attributes, its text relations, type ids and earlier names are left out.

    Args:
        merge: The graph and its addition.
        descriptions: The names of the entities of both.
        facts: The facts that stay, sorted, by the ids of both. They get their new ids in place.
        kept_entities: Which entities stay: bool.
        relation_labels: New labels of relations.
    """
    ids, entities = new_ids(kept_entities), merge.entities.subset(kept_entities)
    kept_relations = mask(len(merge.relations), facts.relations)
    for column, new in zip(facts, (ids, new_ids(kept_relations), ids), strict=True):
        for block in blocks(len(column)):
            column[block] = new[column[block]]
    of_kept = (pairs.subset(kept_entities[pairs.owners]) for pairs in descriptions[1:])
    aliases, types = (pairs._replace(owners=ids[pairs.owners]) for pairs in of_kept)
    columns: dict[str, Array] = Adjacency.of_triples(facts, len(entities)).columns() | entities.columns("entities")
    relations, text_relations = merge.relation_columns(kept_relations, relation_labels)
    kept = Descriptions(descriptions.labels[kept_entities], aliases, types)
    names, name_origins = merge.name_columns(kept, entities)
    kinds_of, type_ids = merge.type_columns(types, len(entities))
    columns |= relations | names | kinds_of | merge.datatype_columns(kept_entities)
    return columns, text_relations, type_ids, name_origins


def narrow_graph(graph: KnowledgeGraph, kept_sets: Array) -> GraphChange:
    """Return a graph with the facts of some sets of attributes.

    An entity that is only in other facts is left out.

    Args:
        graph: The graph.
        kept_sets: Which sets of attributes stay, as `AttributeSets.satisfying` returns them: bool.

    Raises:
        InvalidArgumentError: If no fact stays.
    """
    sets = attribute_pairs(graph)
    stays = kept_sets[sets.values]  # the last one is that of NONE
    facts = np.flatnonzero(mask(len(graph), sets.owners[stays]))
    if not len(facts):
        raise no_fact_left()
    merge = Merge(graph, graph.from_triples(()), NewTexts({}))
    heads, relations, tails = np.ascontiguousarray(graph.edges[facts].T)
    kept_entities = mask(len(graph.entities), heads) | mask(len(graph.entities), tails)
    kept_entities |= np.diff(graph.adjacency.indptr) == 0  # those that no fact names
    said = Said({}, {}, {})
    columns, text_relations, type_ids, names = _columns(
        merge, merge.describe(said), TripleColumns(heads, relations, tails), kept_entities, {}
    )
    kept = Pairs(new_ids(mask(len(graph), facts))[sets.owners[stays]], sets.values[stays])
    columns |= attribute_columns([*graph.attribute_sets.texts], kept, len(facts))
    prefixes, reading = graph.prefixes, Reading(graph.reading.format)
    narrowed = type(graph)(columns, 0, 0, text_relations, prefixes, reading, type_ids)
    return GraphChange(narrowed, np.flatnonzero(kept_entities), names, facts)


def _removal(
    graph: KnowledgeGraph, removed: Rows | KnowledgeGraph
) -> tuple[KnowledgeGraph, tuple[Array, Array, Array]]:
    """Return the facts to remove as a graph.

    Also return head, relation and tail of each by the ids of the graph.
    """
    if isinstance(removed, type(graph)):
        merge = Merge(graph, removed, new_texts(graph, removed))
    else:
        merge = Merge(graph, graph.from_triples(cast("Rows", removed)), NewTexts({}))
        if merge.addition.attribute_names:
            raise InvalidArgumentError(
                "KnowledgeGraph.with_changes: removed takes facts without attributes, and removes all that is said of "
                "them. To keep some of it, remove the fact and add it again."
            )
    heads, relations, tails = merge.edges()
    sizes = len(graph.entities), len(graph.relations)
    _check_removed(graph, merge.addition, (np.maximum(heads, tails) >= sizes[0]) | (relations >= sizes[1]))
    return merge.addition, (heads, relations, tails)


def _check_removed(graph: KnowledgeGraph, removal: KnowledgeGraph, missing: Array) -> None:
    """Check that no fact to remove is missing.

    Raises:
        InvalidArgumentError: If the graph lacks one of them. The message shows the graph's facts that come near.
    """
    found = np.flatnonzero(missing)
    if not len(found):
        return
    head, relation, tail = removal.triple(int(found[0]))
    others = f", nor are {len(found) - 1:,} others to remove" if len(found) > 1 else ""
    advice, is_rdf = [], removal.reading.format in FORMATS
    for end in dict.fromkeys((head, tail)):
        if is_rdf and end.startswith("_:"):
            advice.append("A blank node of one file is none of another: name it by its key in the graph, in a table.")
        elif end not in graph.entities:
            named = graph.entities_named(end)
            advice.append(f"The key of {end!r} is {listed(named, 3)}." if named else f"No entity has the key {end!r}.")
    if head in graph.entities and tail not in graph.entities:
        tails = [fact.tail for fact in islice(graph.triples(head), 5)]
        advice += [f"Some facts of {head!r} lead to {listed(tails)}."] * bool(tails)
    if not advice:
        by = [triple.relation for triple in graph.triples(head, tail=tail)]
        advice = [f"Its ends are joined by {listed(by)}." if by else "Nothing leads from its head to its tail."]
    raise InvalidArgumentError(
        f"KnowledgeGraph.with_changes: {(head, relation, tail)} is not in the graph{others}. {' '.join(advice)}",
        hint_shell="Correct the file of --remove, or leave the fact out.",
    )


def _source_ids(graph: KnowledgeGraph, sources: Iterable[str]) -> Array:
    """Return the ids of the sets of attributes whose sources are removed.

    Raises:
        InvalidArgumentError: If the graph has no such source.
    """
    found = graph.attribute_sets.values(SOURCE)
    wanted = [sources] if isinstance(sources, str) else [*sources]
    for source in wanted:
        if source not in graph.source_names:
            near = did_you_mean(source, graph.source_names)
            raise InvalidArgumentError(
                f"KnowledgeGraph.with_changes: no fact of the graph is from {source!r}{f'; {near}' if near else '.'} "
                f"Its sources: {listed(graph.source_names) or 'none'}.",
                hint_python="See `graph.source_names`.",
                hint_shell="`info` counts them.",
            )
    return np.array([id for id, source in found.items() if source in wanted], np.int64)


def _facts_from(graph: KnowledgeGraph, sets: Array) -> Array:
    """Return which triples have these sets of attributes and no other: bool."""
    if not len(sets):
        return np.zeros(len(graph), np.bool_)
    pairs = attribute_pairs(graph)
    return ~mask(len(graph), pairs.owners[~np.isin(pairs.values, sets)])


def _check_known(merge: Merge, declared: Mapping[str, object]) -> None:
    """Check that labels and aliases are of entities that there are.

    Raises:
        InvalidArgumentError: If one is not. The message names a key that it may mean.
    """
    addition = merge.addition
    alone = merge.entities.is_new & (np.diff(addition.adjacency.indptr) == 0)
    for key in map(addition.entities.__getitem__, np.flatnonzero(alone).tolist()):
        if key not in declared:
            named = merge.graph.entities_named(key)
            meant = f"It is a name of {named[0]!r}: use the key." if named else "See `graph.entities`."
            raise InvalidArgumentError(
                f"KnowledgeGraph.with_changes: no entity has the key {key!r}. {meant}",
                hint_python="" if named else "To add it without a triple, give it types, or none: types={key: []}.",
            )


def join_additions(graph: KnowledgeGraph, additions: Iterable[KnowledgeGraph]) -> KnowledgeGraph:
    """Return graphs to add as one, with the keys of a graph.

    Each blank node of RDF is another.
    """
    known, joined = graph, graph.from_triples(())
    for addition in additions:
        new = new_texts(known, addition)
        known, joined = (_change(Merge(one, addition, new), {}, None).graph for one in (known, joined))
    return joined


def join_files(graphs: Sequence[Graph]) -> Graph:
    """Return the graphs of several files as one, read as the first one was.

    If two files give an entity labels, the first one counts, and the other becomes an alias.
    """
    joined = graphs[0]
    for graph in graphs[1:]:
        named = graph.labels != graph.names.ids_of(graph.entities)
        keys = [graph.entities[id] for id in np.flatnonzero(named).tolist() if graph.entities[id] in joined.entities]
        first = {key: joined.label(key) for key in keys if joined.label(key) not in (key, graph.label(key))}
        joined = cast("Graph", _change(Merge(joined, graph, new_texts(joined, graph)), {}, None).graph)
        if first:
            aliases = {key: [*joined.aliases(key), graph.label(key)] for key in first}
            joined = cast("Graph", joined.with_changes(labels=first, aliases=aliases))
    joined.reading.changes.clear()
    joined.reading.understood["formats"] = ", ".join(dict.fromkeys(graph.reading.format for graph in graphs))
    return joined


def join_removals(graph: KnowledgeGraph, removals: Iterable[KnowledgeGraph]) -> KnowledgeGraph:
    """Return graphs to remove as one, with the keys of a graph."""
    joined = graph.from_triples(())
    for removal in removals:
        joined = _change(Merge(joined, removal, new_texts(graph, removal)), {}, None).graph
    return joined
