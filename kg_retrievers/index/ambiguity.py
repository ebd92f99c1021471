"""What tells entities apart that have one name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, TypedDict

import numpy as np

from kg_retrievers.graph.adjacency import is_backward, label_count, relation_of
from kg_retrievers.graph.columns import Array, entries_between
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph
from kg_retrievers.graph.verbalize import readable
from kg_retrievers.index.graph_index import GraphIndex

#: How many entities are compared, and how many facts of each are read.
MAX_ENTITIES, MAX_FACTS = 64, 1024


class Homonym(TypedDict):
    """One of several entities with a name, as JSON.

    Attributes:
        key: Its key.
        label: What it is called.
        types: Its types.
        fact: `[head, relation, tail]` in labels: a fact that none of the others has; None where there is none.
        text: What tells it apart, in a few words: a type that no other has, else the fact, else its key.
    """

    key: str
    label: str
    types: list[str]
    fact: list[str] | None
    text: str


class _Link(NamedTuple):
    label: int  # of the adjacency: a relation and a direction
    name: str  # of the entity at the other end


def tell_apart(index: GraphIndex, keys: Sequence[str]) -> list[Homonym]:
    """Return what tells entities apart that have one name.

    Of the facts that only one of them has, the one whose relation tells the most of them apart is taken, then one whose
    relation most of them have, then one that leads from the entity, then one of a relation with few values: the year of
    a film rather than one of its actors.

    Args:
        index: The index of their graph.
        keys: The keys of the entities; those that the graph lacks, and those after the first `MAX_ENTITIES`, are left
            out.

    Returns:
        One for each entity, in the order of the keys.

    Example:
        >>> from kg_retrievers.index import default_embeddings
        >>> facts = [("d1", "release_year", "1984"), ("d2", "release_year", "2021"), ("d2", "genre", "drama")]
        >>> graph = KnowledgeGraph.from_triples(facts, labels={"d1": "Dune", "d2": "Dune"})
        >>> [one["text"] for one in tell_apart(GraphIndex.build(graph, default_embeddings()), ["d1", "d2"])]
        ['release year: 1984', 'release year: 2021']
    """
    graph = index.graph
    known = [key for key in dict.fromkeys(keys) if key in graph.entities][:MAX_ENTITIES]
    types = {key: graph.types_of(key) for key in known}
    bearers = Counter(kind for kinds in types.values() for kind in kinds)
    links = _own_links(graph, np.array([graph.entities.find(key) for key in known], np.int64))
    own_types = [[kind for kind in types[key] if bearers[kind] == 1] for key in known]
    return [_homonym(graph, *one) for one in zip(known, own_types, links, strict=True)]


def _homonym(graph: KnowledgeGraph, key: str, own_types: Sequence[str], link: _Link | None) -> Homonym:
    label, fact, text = graph.label(key), None, key
    if link:
        relation = graph.relations[relation_of(link.label)]
        backward = is_backward(link.label)
        fact = [link.name, relation, label] if backward else [label, relation, link.name]
        text = f"{link.name}: {readable(relation)}" if backward else f"{readable(relation)}: {link.name}"
    text = readable(own_types[0]) if own_types else text
    return Homonym(key=key, label=label, types=graph.types_of(key), fact=fact, text=text)


def _own_links(graph: KnowledgeGraph, ids: Array) -> list[_Link | None]:
    """Return for each entity its best fact that no other has.

    Cost: a few passes over at most `MAX_FACTS` facts of each; one text is read for each fact that is as good as the
    best of its entity.
    """
    adjacency = graph.adjacency
    starts = adjacency.indptr[ids].astype(np.int64)
    entries, owners = entries_between(starts, np.minimum(adjacency.indptr[ids + 1], starts + MAX_FACTS))
    labels, names = adjacency.labels[entries].astype(np.int64), graph.labels[adjacency.neighbors[entries]]
    size = label_count(len(graph.relations))
    links, kinds = np.unique(labels * len(graph.names) + names, return_inverse=True)
    of_links, bearers = _once(owners, kinds, len(links))
    values, shared = np.bincount(labels, minlength=size), _once(owners, labels, size)[1]
    own = of_links[bearers[kinds[of_links]] == 1]
    told = _once(owners[own], labels[own], size)[1]
    owners, labels, names = owners[own], labels[own], names[own]
    order = np.lexsort((labels, values[labels], is_backward(labels), -shared[labels], -told[labels], owners))
    owners, labels, names = owners[order], labels[order], names[order]
    found: list[_Link | None] = [None] * len(ids)
    for owner, first in zip(*map(Array.tolist, np.unique(owners, return_index=True)), strict=True):
        best = (owners == owner) & (labels == labels[first])
        found[owner] = _Link(int(labels[first]), min(graph.names[name] for name in names[best].tolist()))
    return found


def _once(owners: Array, values: Array, size: int) -> tuple[Array, Array]:
    """Return positions at which each owner has each of its values once, and how many owners have each value."""
    _, first = np.unique(owners * size + values, return_index=True)
    return first, np.bincount(values[first], minlength=size)
