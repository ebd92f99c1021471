"""Distinguish entities that share a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, TypedDict

from kg_retrievers.graph import KnowledgeGraph, readable
from kg_retrievers.graph.adjacency import Adjacency, is_backward, relation_of
from kg_retrievers.graph.columns import Array
from kg_retrievers.index.graph_index import GraphIndex

#: How many entities are compared, and how many facts of each are read.
MAX_ENTITIES, MAX_FACTS = 64, 1024


class Homonym(TypedDict):
    """One of several entities with a name, as JSON.

    Attributes:
        key: Its key.
        label: Its label.
        types: Its types.
        fact: `[head, relation, tail]` in labels: a fact that none of the others has. None if there is none.
        text: The distinguishing mark in a few words: a type that no other has, else the fact, else its key.
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
    """Return the marks that distinguish entities of one name.

    Only facts that one of them alone has are candidates. The choice prefers the relation that distinguishes most of
    them, then a relation that most of them have, then a fact that leads from the entity, then a relation with few
    values. An example is the year of a film rather than one of its actors.

    Args:
        index: The index of their graph.
        keys: The keys of the entities. Keys that the graph lacks, and keys after the first `MAX_ENTITIES`, are left
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
    links = _own_links(graph, [graph.entities.find(key) for key in known])
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


def _own_links(graph: KnowledgeGraph, ids: Sequence[int]) -> list[_Link | None]:
    """Return for each entity its best fact that no other has.

    At most `MAX_FACTS` facts of each are read.
    """
    links = [_links_of(graph.adjacency, graph.labels, id) for id in ids]
    bearers = Counter(link for of_one in links for link in set(of_one))
    own = [[link for link in of_one if bearers[link] == 1] for of_one in links]
    told, shared = (Counter(label for of_one in some for label in {one[0] for one in of_one}) for some in (own, links))
    values = Counter(label for of_one in links for label, _ in of_one)

    def cost(label: int) -> tuple[float, ...]:
        return -told[label], -shared[label], is_backward(label), values[label], label

    found: list[_Link | None] = []
    for of_one in own:
        best = min((label for label, _ in of_one), key=cost, default=None)
        names = [graph.names[name] for label, name in of_one if label == best]
        found.append(None if best is None else _Link(best, min(names)))
    return found


def _links_of(adjacency: Adjacency, names: Array, id: int) -> list[tuple[int, int]]:
    """Return each fact's label and the name at its other end."""
    row = adjacency.row(id)
    some = slice(row.start, min(row.stop, row.start + MAX_FACTS))
    return list(zip(adjacency.labels[some].tolist(), names[adjacency.neighbors[some]].tolist(), strict=True))
