"""The part of a graph's schema that a question is about, for a language model that writes a pattern."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kg_retrievers.algorithms.neighborhood import neighborhood
from kg_retrievers.graph.verbalize import approximate_tokens, as_data, readable
from kg_retrievers.index import GraphIndex, QuestionEntity
from kg_retrievers.index.graph_search import SIMILARITY_DECIMALS

#: The most relations and types that are shown, and the most tokens of all lines.
RELATIONS_SHOWN, TYPES_SHOWN, MAX_TOKENS = 40, 20, 1_500

#: How far around the entities relations come first, in hops, and how many entities are looked at there.
HOPS, MAX_NODES = 2, 2_000


def schema_lines(index: GraphIndex, question: str, entities: Sequence[QuestionEntity] = ()) -> list[str]:
    """Return the types and relations near a question, each relation with one of its facts.

    The relations around the entities of the question come first, those nearest to its words before others. The lines
    have at most `MAX_TOKENS` tokens together.

    Args:
        index: The indexed graph.
        question: The question.
        entities: Those that it names.
    """
    graph, adjacency = index.graph, index.graph.adjacency
    if not len(graph.relations):
        return []
    masked = question
    for entity in entities:
        masked = masked.replace(entity.name, " ")
    near = (index.relation_vectors @ index.embed([masked])[0]).round(SIMILARITY_DECIMALS)
    starts = [graph.entities.find(key) for entity in entities for key in entity.entities[: entity.best]]
    seeds = [start for start in starts if start >= 0]
    samples = graph.relation_samples
    begin = samples.facts_indptr
    facts = {
        relation: (int(samples.heads[begin[relation]]), int(samples.tails[begin[relation]]))
        for relation in np.flatnonzero(samples.facts).tolist()
    }
    close = list[int]()
    if seeds:
        around = neighborhood(adjacency, seeds, max_hops=HOPS, max_nodes=MAX_NODES)
        triples = np.concatenate([*(adjacency.row_triples(seed) for seed in seeds), around.triples])
        relations, first = np.unique(graph.edges[triples][:, 1], return_index=True)
        close = relations.tolist()
        facts |= {kind: (head, tail) for head, kind, tail in graph.edges[triples[first]].tolist()}
    order = sorted(facts, key=lambda relation: (relation not in close, -near[relation], relation))
    lines = [f"Types: {'; '.join(types)}"] if (types := _types(index, masked)) else []
    left = MAX_TOKENS - sum(map(approximate_tokens, lines))
    for relation in order[:RELATIONS_SHOWN]:
        head, tail = (graph.label(graph.entities[end]) for end in facts[relation])
        name = graph.relations[relation]
        line = as_data(f"{name}: {head} -> {name} -> {tail}")
        if (left := left - approximate_tokens(line)) < 0:
            break
        lines.append(line)
    return lines


def _types(index: GraphIndex, question: str) -> list[str]:
    """Return the names of the types, of many those nearest to the question."""
    types = index.graph.types
    if not len(types):
        return []
    found = index.nearest_types([question], TYPES_SHOWN)[0].ids.tolist()
    return [as_data(readable(types[kind])) for kind in sorted(found)]
