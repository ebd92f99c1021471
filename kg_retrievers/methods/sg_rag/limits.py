"""The keys that conditions leave to the nodes of a pattern, for a query's parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kg_retrievers.graph import KnowledgeGraph, Known, Pattern, Unknown
from kg_retrievers.graph.adjacency import label_of
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.operations import Condition
from kg_retrievers.index import GraphIndex
from kg_retrievers.questions.allowed_entities import absent_candidates, allowed_entities


@dataclass(frozen=True)
class KeyLimits:
    """The keys that nodes of a pattern may have.

    Attributes:
        unknowns: Of unknowns on which there is a condition, or which absent triples alone name, by name.
        absent: Of known nodes of absent triples.
    """

    unknowns: dict[str, list[str]]
    absent: dict[Known, list[str]]


def key_limits(index: GraphIndex, pattern: Pattern) -> KeyLimits:
    """Return the keys that the conditions of a pattern leave, as the matcher in memory reads them.

    Entities that no fact of a triple's relation holds are left out, so that few keys are left of a large graph.

    Args:
        index: The indexed graph.
        pattern: The pattern, with relations of the graph.
    """
    graph = index.graph
    allowed = allowed_entities(index, replace(pattern, absent=(), conditions=_of_triples(pattern)), directed=False)
    unknowns = {name: _keys(graph, _in_place(graph, pattern, name, ids)) for name, ids in allowed.items()}
    candidates = absent_candidates(index, pattern)
    absent = {node: _keys(graph, ids) for node, ids in candidates.items() if isinstance(node, Known)}
    unknowns |= {node.name: _keys(graph, ids) for node, ids in candidates.items() if isinstance(node, Unknown)}
    return KeyLimits(unknowns, absent)


def _of_triples(pattern: Pattern) -> tuple[Condition, ...]:
    """Return the conditions on unknowns that are not in absent triples alone."""
    names = {node.name for node in pattern.nodes if isinstance(node, Unknown)}
    return tuple(condition for condition in pattern.conditions if condition.unknown in names)


def _in_place(graph: KnowledgeGraph, pattern: Pattern, name: str, entities: Array) -> Array:
    """Return the entities that an end of a fact is, for each known relation beside an unknown."""
    unknown = next(node for node in pattern.nodes if isinstance(node, Unknown) and node.name == name)
    for head, relation, tail in pattern.triples:
        if isinstance(relation, Known) and unknown in (head, tail):
            label = label_of(graph.relations.find(relation.text), False)
            entries, heads = graph.adjacency.entries_labelled(label)
            entities = np.intersect1d(entities, np.append(heads, graph.adjacency.neighbors[entries]))
    return entities


def _keys(graph: KnowledgeGraph, entities: Array) -> list[str]:
    return [graph.entities[entity] for entity in entities.tolist()]
