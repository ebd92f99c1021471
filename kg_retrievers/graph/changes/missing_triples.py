"""The triple of a graph that is nearest to one that it lacks, for messages."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import islice

from kg_retrievers.graph.changes.merge import Graph
from kg_retrievers.graph.types import Triple

#: How many triples at an end of the missing one are compared with it.
COMPARED = 500


def nearest_triple(graph: Graph, triple: Sequence[str]) -> Triple | None:
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


def _key(graph: Graph, end: str) -> str:
    """Return the key of the one entity with this name, or the text itself."""
    named = graph.entities_named(end)
    return named[0] if end not in graph.entities and len(named) == 1 else end
