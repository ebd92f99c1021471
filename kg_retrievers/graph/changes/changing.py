"""Changes of a graph: facts added and removed, entities described anew, in columns and without reading all of it again.

What stays keeps its order; what is new comes behind it, but triples are sorted by head, relation and tail. An id of an
entity, a relation, a name or a type changes only where something before it is gone: an entity in no triple any more
that nothing describes, a relation without triples, a name or a type of no entity. So the changed graph holds what a
graph made anew from its facts holds, and only the order differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypedDict, Unpack, cast

import numpy as np

from kg_retrievers.errors import InvalidArgumentError, listed
from kg_retrievers.graph.changes.descriptions import (
    Descriptions,
    TripleIds,
    datatype_columns,
    facts_from,
    is_described,
    join_descriptions,
    name_columns,
    relation_columns,
    replace_descriptions,
    source_columns,
)
from kg_retrievers.graph.changes.keys import check_blank_nodes, fit_keys
from kg_retrievers.graph.changes.merge import Merge, change_triples, find_relations, find_triples, written_relations
from kg_retrievers.graph.columns import Array, without_silent
from kg_retrievers.graph.types import Triple

if TYPE_CHECKING:
    from kg_retrievers.graph.knowledge_graph import KnowledgeGraph


class Changes(TypedDict, total=False):
    """What `KnowledgeGraph.with_changes` takes; it says what each means."""

    added: Iterable[Sequence[str]] | KnowledgeGraph
    removed: Iterable[Sequence[str]] | KnowledgeGraph
    labels: Mapping[str, str] | None
    aliases: Mapping[str, Sequence[str]] | None
    types: Mapping[str, Sequence[str]] | None
    relation_labels: Mapping[str, str] | None
    removed_sources: Iterable[str]
    source: str | None


class GraphChange(NamedTuple):
    """A changed graph, and what each of its parts was before.

    Attributes:
        graph: The changed graph.
        entities: The earlier id of each entity, -1 where it is new.
        names: The earlier id of each name, -1 where it is new.
        triples: The earlier id of each triple, -1 where it is new.
    """

    graph: KnowledgeGraph
    entities: Array
    names: Array
    triples: Array


class _Said(NamedTuple):
    """What takes the place of descriptions, by entity key."""

    labels: Mapping[str, str]
    aliases: Mapping[str, Sequence[str]]
    types: Mapping[str, Sequence[str]]


def change_graph(graph: KnowledgeGraph, **changes: Unpack[Changes]) -> GraphChange:
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


def _change(graph: KnowledgeGraph, addition: KnowledgeGraph, changes: Changes, said: _Said | None) -> GraphChange:
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
    kept, edges, of_addition = _kept_triples(graph, changes), *merge.edges()
    present = find_triples(graph.adjacency, edges)
    is_new = present < 0
    is_new[~is_new] = ~kept[present[~is_new]]
    given = [graph.edges.heads, graph.edges.relations, graph.edges.tails]
    counts = [
        np.bincount(np.append(column[kept], new), minlength=size)
        for column, new, size in zip(given, edges[is_new].T, merge.sizes, strict=True)
    ]
    kept_entities, kept_relations = _kept_entities(merge, descriptions, counts[0] + counts[2]), counts[1] > 0
    facts = change_triples(given, kept, edges[is_new], kept_entities, kept_relations)
    of_edges = np.empty(len(edges), np.int64)
    of_edges[is_new], of_edges[~is_new] = facts.new_ids, facts.kept_ids[present[~is_new]]

    entities = graph.entities.joined(addition.entities.subset(merge.is_new_entity)).subset(kept_entities)
    columns: dict[str, Array] = facts.adjacency.columns()
    columns |= entities.columns("entities")
    relations, renamed = relation_columns(merge, kept_relations, changes.get("relation_labels") or {})
    names, name_origins, type_ids = name_columns(merge, descriptions.subset(kept_entities), entities)
    columns |= relations | names | datatype_columns(merge, kept_entities)
    of_triples = TripleIds(facts.kept_ids, of_edges[of_addition], len(facts.origins))
    columns |= source_columns(merge, of_triples, changes.get("removed_sources", ()), changes.get("source"))
    new = int((facts.origins < 0).sum())
    changed = type(graph)(
        without_silent(columns),
        graph.duplicates + addition.duplicates + len(addition) - new,
        graph.skipped + addition.skipped,
        [renamed[name] for name in (*graph.text_relations, *addition.text_relations) if name in renamed],
        addition.prefixes | graph.prefixes,
        graph.reading.joined(addition.reading).changed(new, len(graph) - len(facts.origins) + new),
        type_ids,
    )
    return GraphChange(changed, _origins(kept_entities, len(graph.entities)), name_origins, facts.origins)


def _kept_triples(graph: KnowledgeGraph, changes: Changes) -> Array:
    """Return which triples stay: bool."""
    kept = np.ones(len(graph), np.bool_)
    kept[_removed_ids(graph, changes.get("removed", ()))] = False
    kept[facts_from(graph, changes.get("removed_sources", ()))] = False
    return kept


def _rows(triples: Iterable[Sequence[str]] | KnowledgeGraph) -> Iterable[Sequence[str]]:
    return cast("Iterable[Sequence[str]]", triples)


def _removed_ids(graph: KnowledgeGraph, removed: Iterable[Sequence[str]] | KnowledgeGraph) -> Array:
    """Return the ids of the triples to remove.

    Raises:
        InvalidArgumentError: If the graph lacks one of them; the message names the nearest.
    """
    if isinstance(removed, type(graph)):
        check_blank_nodes(removed)
        removal = fit_keys(graph, removed)
    else:
        removal = graph.from_triples(_rows(removed))
    heads, relations, tails = removal.edges[:].T
    entities, kinds = graph.entities.ids_of(removal.entities), find_relations(graph, written_relations(removal))
    ids = find_triples(graph.adjacency, np.stack([entities[heads], kinds[relations], entities[tails]], axis=1))
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


def _remove_hints(graph: KnowledgeGraph, triple: Sequence[str]) -> dict[str, str]:
    """Return what to do about a triple that is missing: its ends are keys, which may be written as labels."""
    named = {end: graph.entities_named(end) for end in (triple[0], triple[2]) if end not in graph.entities}
    keys = "".join(f" The key of {end!r} is {listed(found, 3)}." for end, found in named.items() if found)
    told = f"Write keys, not labels.{keys}" if keys else ""
    on_shell = told or "Correct the file of --remove, or leave the fact out."
    return {"hint_python": told, "hint_shell": on_shell}


def _kept_entities(merge: Merge, descriptions: Descriptions, counts: Array) -> Array:
    """Return which entities stay: bool. One that loses its last triple stays if something describes it.

    Args:
        merge: The graph and what is added.
        descriptions: What entities are called.
        counts: How many triples each entity has after the change.
    """
    lonely = counts == 0
    lonely[: len(merge.graph.entities)] &= np.diff(merge.graph.adjacency.indptr) > 0  # it was not before
    lonely[merge.entities] = False
    ids = np.flatnonzero(lonely)
    kept = np.ones(merge.entity_count, np.bool_)
    kept[ids] = is_described(merge, descriptions, ids)
    return kept


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


#: How many triples at an end of the missing one are compared with it.
COMPARED = 500


def nearest_triple(graph: KnowledgeGraph, triple: Sequence[str]) -> Triple | None:
    """Return the triple at an end of a missing one that looks most like it; None where both ends are unknown.

    An end may be an entity's key or one of its names.

    Example:
        >>> from kg_retrievers.sample import load_graph
        >>> nearest_triple(load_graph(), ("Her", "director", "Spike Jonze"))
        Triple(head='Her', relation='directed_by', tail='Spike Jonze')
    """
    head, relation, tail = _key(graph, triple[0]), triple[1], _key(graph, triple[2])
    wanted = " ".join((head, relation, tail))
    best, near = 0.0, None
    for end, is_head in ((head, True), (tail, False)):
        for key in (end, *graph.entities_named(end)[:COMPARED]):
            found = graph.triples(head=key) if is_head else graph.triples(tail=key)
            for one in islice(found, COMPARED):
                alike = SequenceMatcher(None, " ".join(one), wanted, autojunk=False).ratio()
                if alike > best:
                    best, near = alike, one
    return near


def _key(graph: KnowledgeGraph, end: str) -> str:
    """Return the key of the one entity with this name, or the text itself."""
    named = graph.entities_named(end)
    return named[0] if end not in graph.entities and len(named) == 1 else end


def join_additions(graph: KnowledgeGraph, additions: Iterable[KnowledgeGraph]) -> KnowledgeGraph:
    """Return graphs to add as one, with the keys of a graph: each blank node of RDF is another."""
    known, joined = graph, graph.from_triples(())
    for addition in additions:
        fitted = _with_keys_of(known, addition)
        known, joined = change_graph(known, added=fitted).graph, change_graph(joined, added=fitted).graph
    return joined


def join_removals(graph: KnowledgeGraph, removals: Iterable[KnowledgeGraph]) -> KnowledgeGraph:
    """Return graphs to remove as one, with the keys of a graph.

    Raises:
        InvalidArgumentError: If one that was read from RDF has facts with blank nodes.
    """
    joined = graph.from_triples(())
    for removal in removals:
        check_blank_nodes(removal)
        joined = change_graph(joined, added=_with_keys_of(graph, removal)).graph
    return joined


def _with_keys_of(graph: KnowledgeGraph, other: KnowledgeGraph) -> KnowledgeGraph:
    """Return another graph with the keys of a graph, of no format, so that no key is taken for a blank node of RDF."""
    fitted = copy(fit_keys(graph, other))
    fitted.reading = replace(fitted.reading, format="")
    return fitted
