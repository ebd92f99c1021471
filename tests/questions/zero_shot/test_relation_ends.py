"""What relations join, read for all of them at once, is what each of them gives alone."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.questions.zero_shot.steps import COMMON_ENTITIES, RELATIONS_SEEN, RelationEnds

#: Fewer facts and entries than are looked at, so that all of them are.
triples = st.lists(
    st.tuples(st.sampled_from("abcdefg"), st.sampled_from("rstuvw"), st.sampled_from("abcdefg")),
    min_size=1,
    max_size=25,
    unique=True,
)


def around(graph: KnowledgeGraph, entities: list[int], own: int) -> list[int]:
    """Return the most frequent labels of entities, an entity as often as it is named."""
    counts: Counter[int] = Counter()
    for entity in entities:
        counts.update(set(graph.adjacency.labels[graph.adjacency.row(entity)].tolist()) - {own})
    return sorted(counts, key=lambda label: (-counts[label], label))[:RELATIONS_SEEN]


@given(triples)
def test_the_relations_around_each_end(rows: list[tuple[str, str, str]]) -> None:
    graph = KnowledgeGraph.from_triples(rows)
    ends = RelationEnds.of_graph(graph)
    for relation in range(len(graph.relations)):
        facts = graph.edges[np.flatnonzero(graph.edges.relations == relation)]
        heads, tails = facts[:, 0].tolist(), facts[:, 2].tolist()
        assert ends.around_heads[relation] == around(graph, heads, 2 * relation)
        assert ends.around_tails[relation] == around(graph, tails, 2 * relation + 1)
        if len({*heads} & {*tails}) >= COMMON_ENTITIES * min(len({*heads}), len({*tails})):
            assert ends.alike[relation]


def test_values_and_types() -> None:
    facts = [(f"film {year}", "released in", str(year)) for year in range(1990, 1999)]
    facts += [(f"film {year}", "about", f"topic {year}") for year in range(1990, 1999)]
    types = {f"film {year}": ["Film"] for year in range(1990, 1999)}
    graph = KnowledgeGraph.from_triples(facts, types=types)
    ends = RelationEnds.of_graph(graph)
    by_name = {name: at for at, name in enumerate(graph.relations)}
    assert [ends.head_types[by_name[name]] for name in ("about", "released in")] == ["Film", "Film"]
    assert [ends.tail_types[by_name[name]] for name in ("about", "released in")] == ["", ""]
    assert ends.kinds[by_name["about"]] == 0
    assert ends.kinds[by_name["released in"]] > 0
    assert not ends.alike.any()
