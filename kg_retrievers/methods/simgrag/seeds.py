"""The nodes of a pattern that name an entity which a caller gives."""

from __future__ import annotations

from collections.abc import Sequence

from kg_retrievers.graph import KnowledgeGraph, Known, Pattern


def pin_seeds(pattern: Pattern, seeds: Sequence[str], graph: KnowledgeGraph) -> Pattern:
    """Return a pattern whose nodes that name a seed entity are pinned to it, whoever wrote the pattern.

    Example:
        >>> graph = KnowledgeGraph.from_triples([("Q1", "starring", "Adams")], labels={"Q1": "Her"})
        >>> pin_seeds(Pattern.of(("Her", "starring", "Adams")), ["Q1"], graph).nodes[0]
        Known(text='Her', type=None, entity='Q1')
    """
    named = {seed: (seed, graph.label(seed), *graph.aliases(seed)) for seed in seeds}
    named = {seed: tuple(name.casefold() for name in names) for seed, names in named.items()}
    pinned = {}
    for node in pattern.nodes:
        if isinstance(node, Known) and node.entity is None:
            meant = [seed for seed, names in named.items() if node.text.casefold() in names]
            if len(meant) == 1:  # of two seeds with one name, either may be meant
                pinned[node] = Known(node.text, node.type, meant[0])
    return pattern.with_known(pinned)
