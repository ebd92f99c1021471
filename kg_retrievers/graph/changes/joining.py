"""Several graphs as one change, where each was read by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kg_retrievers.graph.knowledge_graph import KnowledgeGraph


from collections.abc import Iterable
from copy import copy
from dataclasses import replace

from kg_retrievers.graph.changes.changing import change_graph
from kg_retrievers.graph.changes.keys import check_blank_nodes, fit_keys


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
