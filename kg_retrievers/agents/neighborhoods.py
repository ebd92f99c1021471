"""The facts around an entity, some of each relation."""

from __future__ import annotations

from collections import Counter

import numpy as np

from kg_retrievers.agents.answers import fact_of
from kg_retrievers.agents.bounds import MOST_ITEMS
from kg_retrievers.agents.results import Named, NeighborFact, Neighbors, RelationCount, shorten, shown
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError, did_you_mean, listed
from kg_retrievers.graph import KnowledgeGraph, Known, Pattern, Triple
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.verbalize import readable
from kg_retrievers.index import GraphIndex, PartRequest, linker_of
from kg_retrievers.index.names import words_of
from kg_retrievers.questions.around import evidence_around


def resolve(index: GraphIndex, entity: str) -> str:
    """Return the key of an entity that is named by key, label or alias.

    The name is written as in the graph or in results.

    Case, accents and signs count only if several entities differ in nothing else.

    Raises:
        EntityLinkingError: If nothing has this name, with the nearest names, or several entities have.
    """
    try:
        return linker_of(index).resolve([entity])[0]
    except EntityLinkingError as error:
        near = {
            key: entity in (shown(key), shown(name))
            for name in error.suggestions
            for key in index.part(PartRequest(names=(name,))).graph.entities_named(name)
            if entity in (shown(key), shown(name)) or words_of(entity) == words_of(name)
        }
        keys = [key for key, as_shown in near.items() if as_shown] or [*near]
        if len(keys) == 1 or any(near.values()):
            return keys[0]
        raise


def neighbors_of(index: GraphIndex, entity: str, limit: int, relation: str | None, start: int = 0) -> Neighbors:
    """Return facts of an entity as head or tail, some of each relation.

    Args:
        index: The indexed graph.
        entity: Its key.
        limit: The most facts.
        relation: Facts of this relation alone.
        start: How many of these facts to skip.

    Raises:
        InvalidArgumentError: If the entity has no fact of this relation, or not so many facts.
    """
    part = index.part(PartRequest((entity,), hops=1))
    graph = part.graph
    id = graph.entities.find(entity)
    outgoing, incoming = graph.edges.find(head=id), graph.edges.find(tail=id)
    incoming = np.setdiff1d(incoming, outgoing, assume_unique=True)  # a loop is one fact
    ids = np.concatenate([outgoing, incoming])
    kinds, is_incoming = graph.edges[ids][:, 1], np.arange(len(ids)) >= len(outgoing)
    counts = _counts(graph, kinds, is_incoming)
    if relation is not None:
        of_relation = np.isin(kinds, _relation_ids(graph, entity, relation, kinds))
        ids, kinds, is_incoming = ids[of_relation], kinds[of_relation], is_incoming[of_relation]
    if start and start >= len(ids):
        raise InvalidArgumentError(f"start is {start}, but there are {len(ids)} such facts.")
    chosen = _some_of_each(2 * kinds.astype(np.int64) + is_incoming)[start : start + limit].tolist()
    return Neighbors(
        entity=Named(key=entity, label=graph.label(entity)),
        types=list(graph.types_of(entity)[:MOST_ITEMS]),
        aliases=list(graph.aliases(entity)[:MOST_ITEMS]),
        total=len(ids),
        facts=[_fact(graph, graph.triple(ids[at]), bool(is_incoming[at])) for at in chosen],
        relations=counts,
        start=start,
        left_out=len(ids) - start - len(chosen),
        truncated=part.truncated,
    )


def described(index: GraphIndex, entity: str) -> Neighbors:
    """Return an entity with its most telling facts, as the operation "describe" chooses them.

    Args:
        index: The indexed graph.
        entity: Its key.
    """
    around, part = neighbors_of(index, entity, 1, None), index.part(PartRequest((entity,), hops=1))
    pattern = Pattern.of(alone=[Known(entity, entity=entity)], operation="describe")
    graph, [found] = part.graph, evidence_around(part, pattern, 1)
    facts = [_fact(graph, triple, is_incoming=triple.head != entity) for triple in found.triples]
    return around.model_copy(update={"facts": facts, "start": None, "left_out": around.total - len(facts)})


def sort_by_words(index: GraphIndex, around: Neighbors, words: str) -> Neighbors:
    """Return facts and relations of an entity, sorted by words.

    The relations nearest to the words come first.
    """
    if not words:
        return around
    [near] = index.nearest_relations([words], max(len(index.graph.relations), 1))
    places = {shown(index.graph.relations[id]): place for place, id in enumerate(near.ids.tolist())}
    facts = sorted(around.facts, key=lambda fact: places.get(fact.triple[1], len(places)))
    relations = sorted(around.relations, key=lambda one: places.get(one.relation, len(places)))
    return around.model_copy(update={"facts": facts, "relations": relations})


def _counts(graph: KnowledgeGraph, kinds: Array, is_incoming: Array) -> list[RelationCount]:
    """Return how many facts each relation has, for the relations with most facts."""
    outgoing, incoming = Counter(kinds[~is_incoming].tolist()), Counter(kinds[is_incoming].tolist())
    totals = sorted((outgoing + incoming).items(), key=lambda item: (-item[1], item[0]))
    return [
        RelationCount(relation=graph.relations[kind], outgoing=outgoing[kind], incoming=incoming[kind])
        for kind, _ in totals[:MOST_ITEMS]
    ]


def _relation_ids(graph: KnowledgeGraph, key: str, relation: str, kinds: Array) -> list[int]:
    """Return the ids of the relation that a text names.

    The name is written as in the graph or in results.
    """
    own = {kind: graph.relations[kind] for kind in np.unique(kinds).tolist()}
    found = [kind for kind, name in own.items() if relation in (name, shown(name), readable(name))]
    if not found:
        names = [shorten(name, 100) for name in own.values()]
        near = did_you_mean(relation, names) or f"it has facts of {listed(names)}."
        raise InvalidArgumentError(
            f"{shorten(key, 100)!r} has no fact of a relation {shorten(relation, 100)!r}; {near}"
        )
    return found


def _some_of_each(groups: Array) -> Array:
    """Return the positions of all items, interleaved by group.

    The first item of each group comes first, then the second of each, and so on.

    Example:
        >>> _some_of_each(np.array([5, 5, 5, 2])).tolist()
        [3, 0, 1, 2]
    """
    order = np.argsort(groups, kind="stable")
    sorted_groups = groups[order]
    places = np.arange(len(groups)) - np.searchsorted(sorted_groups, sorted_groups)
    chosen: Array = order[np.lexsort((sorted_groups, places))]
    return chosen


def _fact(graph: KnowledgeGraph, triple: Triple, is_incoming: bool) -> NeighborFact:
    labels = {key: graph.label(key) for key in (triple.head, triple.tail)}
    other = triple.head if is_incoming else triple.tail
    return fact_of(NeighborFact, triple, labels, graph.sources(triple), graph.attributes(triple), other=labels[other])
