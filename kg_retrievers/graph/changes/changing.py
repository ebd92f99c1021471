"""Changes of a graph: facts added and removed, entities described anew, in columns and without reading all of it again.

What stays keeps its order; what is new comes behind it. An id changes only where something before it is gone: an entity
in no triple any more that nothing describes, a relation without triples, a name or a type of no entity. So the changed
graph holds what a graph made anew from its facts holds, and only the order differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypedDict, TypeVar, Unpack, cast

import numpy as np

from kg_retrievers.errors import InvalidArgumentError, listed
from kg_retrievers.graph.adjacency import Adjacency, is_backward, label_of, relation_of
from kg_retrievers.graph.changes.adjacency import change_adjacency, triples_of
from kg_retrievers.graph.changes.keys import check_blank_nodes, fit_keys
from kg_retrievers.graph.changes.merge import Graph, Merge, find_relations, written_relations
from kg_retrievers.graph.changes.missing_triples import nearest_triple
from kg_retrievers.graph.changes.names import (
    Descriptions,
    is_described,
    join_descriptions,
    name_columns,
    replace_descriptions,
)
from kg_retrievers.graph.changes.relations import relation_columns
from kg_retrievers.graph.changes.rows import new_ids
from kg_retrievers.graph.changes.sources import datatype_columns, facts_from, source_columns
from kg_retrievers.graph.columns import Array

G = TypeVar("G", bound=Graph)


class Changes(TypedDict, total=False):
    """What `KnowledgeGraph.with_changes` takes; it says what each means."""

    added: Iterable[Sequence[str]] | Graph
    removed: Iterable[Sequence[str]] | Graph
    labels: Mapping[str, str] | None
    aliases: Mapping[str, Sequence[str]] | None
    types: Mapping[str, Sequence[str]] | None
    relation_labels: Mapping[str, str] | None
    removed_sources: Iterable[str]
    source: str | None


class GraphChange(NamedTuple, Generic[G]):
    """A changed graph, and what each of its parts was before.

    Attributes:
        graph: The changed graph.
        entities: The earlier id of each entity, -1 where it is new.
        names: The earlier id of each name, -1 where it is new.
        triples: The earlier id of each triple, -1 where it is new.
    """

    graph: G
    entities: Array
    names: Array
    triples: Array


class _Said(NamedTuple):
    """What takes the place of descriptions, by entity key."""

    labels: Mapping[str, str]
    aliases: Mapping[str, Sequence[str]]
    types: Mapping[str, Sequence[str]]


class _Facts(NamedTuple):
    """What becomes of the triples.

    Attributes:
        kept: Which triples of the graph stay: bool.
        new: The triples that come behind them, in ids of `Merge`.
        ids: The id of each triple of the addition in the result.
    """

    kept: Array
    new: Array
    ids: Array


def change_graph(graph: G, **changes: Unpack[Changes]) -> GraphChange[G]:
    """Change a graph as `KnowledgeGraph.with_changes` does.

    Raises:
        InvalidArgumentError: As `KnowledgeGraph.with_changes`.
    """
    added = changes.get("added", ())
    said = _Said(changes.get("labels") or {}, changes.get("aliases") or {}, changes.get("types") or {})
    if not isinstance(added, type(graph)):
        return _change(graph, graph.from_triples(_rows(added), **said._asdict()), changes, said)
    first = _change(graph, fit_keys(graph, added), changes, None)
    if not any(said):
        return first
    second = _change(first.graph, graph.from_triples((), **said._asdict()), {}, said)
    origins = (_through(later, earlier) for later, earlier in zip(second[1:], first[1:], strict=True))
    return GraphChange(second.graph, *origins)


def _change(graph: G, addition: Graph, changes: Changes, said: _Said | None) -> GraphChange[G]:
    """Merge an addition into a graph.

    Args:
        graph: The graph.
        addition: What is added.
        changes: What is removed, and names of relations and of a source.
        said: What takes the place of descriptions; None where those of the addition join the graph's.
    """
    merge = Merge.of(graph, addition)
    if said is None:
        descriptions = join_descriptions(merge)
    else:
        _check_known(merge, said.types)
        descriptions = replace_descriptions(merge, *said)
    facts = _changed_facts(merge, changes)
    gone = graph.edges[np.flatnonzero(~facts.kept)]
    adjacency = change_adjacency(graph.adjacency, gone, facts.kept, facts.new, merge.entity_count)
    count = int(facts.kept.sum())
    edges = np.empty((count + len(facts.new), 3), np.int32)
    np.compress(facts.kept, graph.edges, axis=0, out=edges[:count])
    edges[count:] = facts.new
    kept_entities = _kept_entities(merge, descriptions, adjacency)
    kept_relations = np.bincount(edges[:, 1], minlength=merge.relation_count) > 0
    edges, adjacency = _renumbered(edges, adjacency, kept_entities, kept_relations)

    entities = graph.entities.joined(addition.entities.subset(merge.is_new_entity)).subset(kept_entities)
    columns: dict[str, Array] = {"triples": edges} | entities.columns("entities")
    relations, renamed = relation_columns(merge, kept_relations, changes.get("relation_labels") or {})
    names, name_origins, type_ids = name_columns(merge, descriptions.subset(kept_entities))
    columns |= relations | names | datatype_columns(merge, kept_entities)
    columns |= source_columns(merge, facts.kept, facts.ids, changes.get("removed_sources", ()), changes.get("source"))
    columns |= {f"adjacency.{name}": column for name, column in adjacency._asdict().items()}
    changed = type(graph)(
        columns,
        graph.duplicates + addition.duplicates + len(addition) - len(facts.new),
        graph.skipped + addition.skipped,
        [renamed[name] for name in (*graph.text_relations, *addition.text_relations) if name in renamed],
        addition.prefixes | graph.prefixes,
        graph.reading.joined(addition.reading).changed(len(facts.new), len(graph) - count),
        type_ids,
    )
    return GraphChange(
        changed,
        _origins(kept_entities, len(graph.entities)),
        name_origins,
        np.append(np.flatnonzero(facts.kept), np.full(len(facts.new), -1)),
    )


def _changed_facts(merge: Merge, changes: Changes) -> _Facts:
    graph = merge.graph
    kept = np.ones(len(graph), np.bool_)
    kept[_removed_ids(graph, changes.get("removed", ()))] = False
    kept[facts_from(graph, changes.get("removed_sources", ()))] = False
    edges, of_addition = merge.edges()
    present = triples_of(graph.adjacency, edges)
    is_new = present < 0
    is_new[~is_new] = ~kept[present[~is_new]]
    ids = int(kept.sum()) + np.cumsum(is_new) - 1
    ids[~is_new] = new_ids(kept)[present[~is_new]]
    return _Facts(kept, edges[is_new].astype(np.int32, copy=False), ids[of_addition])


def _rows(triples: Iterable[Sequence[str]] | Graph) -> Iterable[Sequence[str]]:
    return cast("Iterable[Sequence[str]]", triples)


def _removed_ids(graph: Graph, removed: Iterable[Sequence[str]] | Graph) -> Array:
    """Return the ids of the triples to remove.

    Raises:
        InvalidArgumentError: If the graph lacks one of them; the message names the nearest.
    """
    if isinstance(removed, type(graph)):
        check_blank_nodes(removed)
        removal = fit_keys(graph, removed)
    else:
        removal = graph.from_triples(_rows(removed))
    heads, relations, tails = removal.edges.T
    entities, kinds = graph.entities.ids_of(removal.entities), find_relations(graph, written_relations(removal))
    ids = triples_of(graph.adjacency, np.stack([entities[heads], kinds[relations], entities[tails]], axis=1))
    missing = np.flatnonzero(ids < 0)
    if len(missing):
        first = removal.triple(int(missing[0]))
        near = nearest_triple(graph, first)
        others = f", nor are {len(missing) - 1:,} others to remove" if len(missing) > 1 else ""
        raise InvalidArgumentError(
            f"KnowledgeGraph.with_changes: {tuple(first)} is not in the graph{others}. "
            f"{f'The nearest is {tuple(near)}.' if near else 'Neither end is an entity of the graph.'}",
            **_remove_hints(graph, first),
        )
    return ids


def _remove_hints(graph: Graph, triple: Sequence[str]) -> dict[str, str]:
    """Return what to do about a triple that is missing: its ends are keys, which may be written as labels."""
    named = {end: graph.entities_named(end) for end in (triple[0], triple[2]) if end not in graph.entities}
    keys = "".join(f" The key of {end!r} is {listed(found, 3)}." for end, found in named.items() if found)
    told = f"Write keys, not labels.{keys}" if keys else ""
    on_shell = told or "Correct the file of --remove, or leave the fact out."
    return {"hint_python": told, "hint_shell": on_shell}


def _kept_entities(merge: Merge, descriptions: Descriptions, adjacency: Adjacency) -> Array:
    """Return which entities stay: bool. One that loses its last triple stays if something describes it."""
    before = np.zeros(merge.entity_count, np.bool_)
    before[: len(merge.graph.entities)] = np.diff(merge.graph.adjacency.indptr) > 0
    lonely = before & (np.diff(adjacency.indptr) == 0)
    lonely[merge.entities] = False
    ids = np.flatnonzero(lonely)
    kept = np.ones(merge.entity_count, np.bool_)
    kept[ids] = is_described(merge, descriptions, ids)
    return kept


def _renumbered(edges: Array, adjacency: Adjacency, entities: Array, relations: Array) -> tuple[Array, Adjacency]:
    """Write the ids of the entities and relations that stay into triples, and return these and the adjacency."""
    if not relations.all():
        ids = new_ids(relations)
        edges[:, 1] = ids[edges[:, 1]]
        labels = label_of(ids[relation_of(adjacency.labels)], is_backward(adjacency.labels))
        adjacency = adjacency._replace(labels=labels.astype(np.int32, copy=False))
    if not entities.all():
        ids = new_ids(entities)
        edges[:, 0], edges[:, 2] = ids[edges[:, 0]], ids[edges[:, 2]]
        indptr = np.append(adjacency.indptr[:-1][entities], adjacency.indptr[-1])  # the others have no entries
        adjacency = adjacency._replace(indptr=indptr, neighbors=ids[adjacency.neighbors])
    return edges, adjacency


def _check_known(merge: Merge, declared: Mapping[str, object]) -> None:
    """Check that labels and aliases are of entities that there are.

    Raises:
        InvalidArgumentError: If one is not; the message names a key that it may mean.
    """
    addition = merge.addition
    alone = merge.is_new_entity & (np.diff(addition.adjacency.indptr) == 0)
    for key in map(addition.entities.__getitem__, np.flatnonzero(alone).tolist()):
        if key not in declared:
            named = merge.graph.entities_named(key)
            meant = f"It is a name of {named[0]!r}: use the key." if named else "See `graph.entities`."
            raise InvalidArgumentError(
                f"KnowledgeGraph.with_changes: no entity has the key {key!r}. {meant}",
                hint_python="" if named else "To add it without a triple, give it types, or none: types={key: []}.",
            )


def _origins(kept: Array, earlier: int) -> Array:
    """Return the earlier id of each item that stays, -1 where it is new."""
    ids = np.flatnonzero(kept)
    return np.where(ids < earlier, ids, -1)


def _through(later: Array, earlier: Array) -> Array:
    """Return for each item the earlier id of its earlier id."""
    return np.where(later < 0, -1, earlier[later] if len(earlier) else -1)
