"""What joins an entity with those of a question: a shortest chain of facts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kg_retrievers.algorithms.neighborhood import neighborhood
from kg_retrievers.graph import KnowledgeGraph, Triple


def joining_facts(graph: KnowledgeGraph, seeds: Sequence[str], entity: str) -> tuple[Triple, ...]:
    """Return a shortest chain of facts from one of some entities to another; nothing where none joins them.

    Args:
        graph: The graph.
        seeds: The keys of entities to begin with.
        entity: The key of the one at the end.

    Cost: one search of all that the seeds lead to.

    Example:
        >>> graph = KnowledgeGraph.from_triples([("Her", "starring", "Amy"), ("Up", "starring", "Amy")])
        >>> [fact.head for fact in joining_facts(graph, ["Her"], "Up")]
        ['Her', 'Up']
    """
    ids = [id for id in (graph.entities.find(seed) for seed in seeds) if id >= 0]
    if not ids:
        return ()
    around = neighborhood(graph.adjacency, np.array(ids, np.int32))
    hops_of = np.full(len(graph.entities), -1, np.int32)
    hops_of[around.nodes] = around.hops
    here, chain = graph.entities.find(entity), list[Triple]()
    while here >= 0 and hops_of[here] > 0:
        row = graph.adjacency.row(here)
        nearer = np.flatnonzero(hops_of[graph.adjacency.neighbors[row]] == hops_of[here] - 1)[0]
        chain.append(graph.triple(int(graph.adjacency.row_triples(here)[nearer])))
        here = int(graph.adjacency.neighbors[row][nearer])
    return tuple(reversed(chain))
