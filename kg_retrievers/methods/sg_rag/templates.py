"""Makes templates, patterns whose known nodes are slots, from the schema of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from kg_retrievers.algorithms.relation_paths import relation_path_ends
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph, Known, Pattern, Term, Unknown
from kg_retrievers.graph.adjacency import is_backward, label_count, relation_of, reversed_label
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import MASK

#: The most relations of a walk: the questions of MetaQA need chains of three facts.
MAX_HOPS = 3


def schema_templates(graph: KnowledgeGraph, *, max_hops: int = MAX_HOPS, max_templates: int = 10_000) -> list[Pattern]:
    """Return the questions that one walk over a graph answers, as patterns with one slot.

    A template is a walk over the relations of the graph, each crossed one way or the other, that leads somewhere: the
    ends of one relation and the starts of the next have entities in common, and a walk that goes back by the relation
    that it came by can end elsewhere. The slot, `Known("_")`, is the start of the walk; it has the type that all typed
    entities there have, if they have one in common. The target is the end of the walk.

    Args:
        graph: The graph.
        max_hops: The most relations of a walk, 1 or more.
        max_templates: The most templates; those of more relations are left out first.

    Raises:
        InvalidArgumentError: If `max_hops` or `max_templates` is below 1.

    Example:
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Jonze"), ("Jackass", "directed_by", "Jonze")])
        >>> for template in schema_templates(graph, max_hops=2):
        ...     print([tuple(getattr(term, "text", "?") for term in triple) for triple in template.triples])
        [('_', 'directed_by', '?')]
        [('?', 'directed_by', '_')]
        [('_', 'directed_by', '?'), ('?', 'directed_by', '?')]
    """
    if max_hops < 1 or max_templates < 1:
        raise InvalidArgumentError(
            f"schema_templates: max_hops and max_templates must be 1 or more, but got {max_hops} and {max_templates}."
        )
    adjacency, relations = graph.adjacency, list(graph.relations)
    degrees = np.diff(adjacency.indptr)
    kinds, counts = np.unique(
        np.repeat(np.arange(len(degrees)), degrees) * np.int64(label_count(len(relations))) + adjacency.labels,
        return_counts=True,
    )
    forks = set(np.unique(kinds[counts > 1] % label_count(len(relations))).tolist())  # labels that an entity has twice
    templates: list[Pattern] = []
    slots: dict[int, Known] = {}
    for path, _ in relation_path_ends(adjacency, np.flatnonzero(degrees), max_hops=max_hops):
        if any(onward == reversed_label(label) and onward not in forks for label, onward in pairwise(path)):
            continue
        first = path[0]
        if first not in slots:
            starts = np.unique(adjacency.entries_labelled(first)[1])
            slots[first] = Known(MASK, _common_type(graph, starts))
        templates.append(walk_pattern(slots[first], steps_of(relations, path)))
        if len(templates) == max_templates:
            break
    return templates


def _common_type(graph: KnowledgeGraph, entities: Array) -> str | None:
    """Return the rarest of the types that all typed ones among the entities have."""
    typed = np.setdiff1d(entities, graph.untyped)
    members = ((kind, graph.type_entities(kind)) for kind in range(len(graph.types)))
    common = [(len(of_kind), kind) for kind, of_kind in members if len(typed) and np.isin(typed, of_kind).all()]
    return graph.types[min(common)[1]] if common else None


def steps_of(relations: Sequence[str], path: Sequence[int]) -> list[tuple[str, bool]]:
    """Return the labels of a walk as steps of `walk_pattern`."""
    return [(relations[relation_of(label)], not is_backward(label)) for label in path]


def walk_pattern(start: Known, steps: Sequence[tuple[str, bool]]) -> Pattern:
    """Return the pattern of a walk from a known node; a step is a relation, and whether it goes from head to tail.

    Example:
        >>> walk_pattern(Known("Spike Jonze"), [("directed_by", False)]).to_dict()["triples"]
        [[{'unknown': 'entity 1'}, 'directed_by', 'Spike Jonze']]
    """
    nodes: list[Term] = [start, *(Unknown(f"entity {hop}") for hop in range(1, len(steps) + 1))]
    triples = [
        (here, relation, there) if forward else (there, relation, here)
        for (here, there), (relation, forward) in zip(pairwise(nodes), steps, strict=True)
    ]
    return Pattern.of(*triples, target=f"entity {len(steps)}")
