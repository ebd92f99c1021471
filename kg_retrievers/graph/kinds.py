"""Find the kinds of things of a graph.

Types give the kinds, or relations such as "instance of".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from kg_retrievers.graph.adjacency import label_of
from kg_retrievers.graph.columns import Array, distinct
from kg_retrievers.graph.verbalize import readable

if TYPE_CHECKING:
    from kg_retrievers.graph.knowledge_graph import KnowledgeGraph

#: Types of an ontology rather than of its things.
_SCHEMA_TYPES = re.compile(r".*[#/:](?:Class|Property|\w+Property|Ontology|Datatype|Restriction|NamedIndividual)")

#: Relations whose tails are the kinds of their heads, whatever these are.
_KIND_OF = re.compile(r"(?:rdf )?type|instance of|is an?|is instance of|a")


def kind_relations(graph: KnowledgeGraph) -> list[int]:
    """Return the relations whose tails are the kinds of their heads.

    An example is "Project" by "instance of".
    """
    return [at for at, name in enumerate(graph.relations) if _KIND_OF.fullmatch(readable(name).casefold())]


def is_kind(graph: KnowledgeGraph, relations: Sequence[int], entity: int) -> bool:
    """Tell whether an entity is only the kind of others.

    It must be their kind by some relations, and in no other fact.

    Args:
        graph: The graph.
        relations: The result of `kind_relations`.
        entity: The id of the entity, or -1.
    """
    if entity < 0:
        return False
    row = graph.adjacency.row(entity)
    entries = (graph.adjacency.entries_with(entity, label_of(relation, True)) for relation in relations)
    kinds = sum(int(some.stop) - int(some.start) for some in entries)
    return kinds > 0 and kinds == int(row.stop) - int(row.start)


def kind_names(graph: KnowledgeGraph) -> list[str]:
    """Return the kinds of things of a graph.

    These are its types, or else the tails of relations such as "instance of".

    Types of an ontology, such as `owl:Class`, are left out.
    """
    if len(graph.types):
        return [kind for kind in graph.types_below if not _SCHEMA_TYPES.fullmatch(kind)]
    found = dict[str, None]()
    for relation in kind_relations(graph):
        ends = graph.relation_samples.all_sources_of(label_of(relation, True), graph.adjacency).tolist()
        kinds = (end for end in ends if is_kind(graph, [relation], end))
        found |= dict.fromkeys(graph.names[int(graph.labels[kind])] for kind in kinds)
    return [*found]


def kind_members(graph: KnowledgeGraph, kind: str) -> Array | None:
    """Return the ids of the things of a kind and of the kinds below it.

    They are int64, ascending. None if there is no such kind.
    """
    if len(graph.types):
        if (below := graph.types_below.get(kind)) is None:
            return None
        return distinct(np.array([*chain(*map(graph.type_entities, sorted(below)))], np.int64))
    found = [graph.adjacency.neighbors[entries].astype(np.int64) for _, _, entries in _entries_of(graph, kind)]
    return distinct(np.concatenate(found)) if found else None


def kind_facts(graph: KnowledgeGraph, kind: str) -> tuple[str, str] | None:
    """Return the relation that gives the things of a kind, and the kind's key.

    None if no relation does.
    """
    return next(((graph.relations[relation], key) for relation, key, _ in _entries_of(graph, kind)), None)


def _entries_of(graph: KnowledgeGraph, kind: str) -> Iterator[tuple[int, str, slice]]:
    """Yield relations that give the things of a kind.

    Each comes with the key of the kind, and the range of its entries.
    """
    for relation in kind_relations(graph):
        for key in graph.entities_named(kind):
            entries = graph.adjacency.entries_with(graph.entities.find(key), label_of(relation, True))
            if entries.stop > entries.start:
                yield relation, key, entries
