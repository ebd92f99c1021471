"""What each relation joins: counts and samples against the plain computation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kg_retrievers import KnowledgeGraph
from kg_retrievers.errors import GraphLoadError
from kg_retrievers.graph import adjacency
from kg_retrievers.graph.adjacency import FACTS, RelationSamples
from kg_retrievers.graph.columns import spread
from kg_retrievers.graph.storage.parts import Part, save_parts


def drawn_graph(seed: int, entities: int = 120, relations: int = 5, triples: int = 900) -> KnowledgeGraph:
    draw = np.random.default_rng(seed)
    heads, tails = (draw.integers(0, entities, triples) ** 2 // entities for _ in range(2))
    kinds = draw.integers(0, relations, triples) ** 2 // relations
    return KnowledgeGraph.from_triples(
        (f"e{head}", f"r{kind}", f"e{tail}") for head, kind, tail in zip(heads, kinds, tails, strict=True)
    )


@pytest.mark.parametrize("block", [1 << 22, 7])
@pytest.mark.parametrize("kept", [10**6, 200, 3])
def test_samples_are_spread_over_the_facts_and_the_entities_of_each_relation(
    kept: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adjacency, "KEPT", kept)
    monkeypatch.setattr(adjacency, "BLOCK", block)
    graph = drawn_graph(0)
    samples = RelationSamples.of_adjacency(graph.adjacency, len(graph.relations))
    triples = np.array(
        sorted(
            (graph.entities.find(head), graph.relations.find(relation), graph.entities.find(tail))
            for head, relation, tail in graph.triples()
        )
    )
    assert len(samples.kept) <= max(kept, 2 * len(graph.relations))
    for relation in range(len(graph.relations)):
        facts = triples[triples[:, 1] == relation]
        seen = spread(facts, FACTS)
        first, last = samples.facts_indptr[relation : relation + 2]
        assert samples.facts[relation] == len(facts)
        assert samples.heads[first:last].tolist() == seen[:, 0].tolist()
        assert samples.tails[first:last].tolist() == seen[:, 2].tolist()
        for label, column in ((2 * relation, 0), (2 * relation + 1, 2)):
            sources, some = np.unique(facts[:, column]), samples.sources_of(label)
            assert samples.sources[label] == len(sources)
            assert some.tolist() == spread(sources, len(some)).tolist()
            assert samples.has_all(label) == (len(some) == len(sources))
            assert samples.ends_of(label ^ 1).tolist() == some.tolist()


def test_samples_of_another_graph_are_refused(tmp_path: Path) -> None:
    part, other = drawn_graph(3).to_part(), drawn_graph(4, entities=500).relation_samples.columns()
    save_parts(tmp_path, {"graph": Part({**part.columns, **other}, part.meta)})
    with pytest.raises(GraphLoadError, match="relation_samples"):
        KnowledgeGraph.open(tmp_path)
