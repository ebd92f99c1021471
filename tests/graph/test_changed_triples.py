"""Changed triples against the same triples sorted at once."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers.graph.adjacency import Adjacency
from kg_retrievers.graph.changes.merge import change_triples
from kg_retrievers.graph.columns import Array

IDS = st.integers(0, 5)
TRIPLES = st.sets(st.tuples(IDS, st.integers(0, 2), IDS), max_size=30).map(sorted)
ENTITIES, RELATIONS = 6, 3


def rows(triples: list[tuple[int, int, int]]) -> Array:
    return np.array(triples, np.int64).reshape(-1, 3)


@settings(max_examples=100)
@given(TRIPLES, TRIPLES, st.data())
def test_changed_triples_are_those_sorted_at_once(
    before: list[tuple[int, int, int]], after: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    kept = np.array([triple in after for triple in before], np.bool_)
    new = data.draw(st.permutations([triple for triple in after if triple not in before]))
    entities, relations = np.zeros(ENTITIES, np.bool_), np.zeros(RELATIONS, np.bool_)
    entities[rows(after)[:, ::2]] = relations[rows(after)[:, 1]] = True
    changed = change_triples(list(rows(before).T), kept, rows(new), entities, relations)
    assert [after[id] for id in changed.new_ids.tolist()] == new
    assert [after[id] if id >= 0 else None for id in changed.kept_ids.tolist()] == [
        triple if triple in after else None for triple in before
    ]
    assert [before[id] if id >= 0 else None for id in changed.origins.tolist()] == [
        triple if triple in before else None for triple in after
    ]
    of_entity, of_relation = np.cumsum(entities) - 1, np.cumsum(relations) - 1
    heads, kinds, tails = rows(after).T
    wanted = np.stack([of_entity[heads], of_relation[kinds], of_entity[tails]], axis=1)
    for found, column in zip(changed.adjacency, Adjacency.of_edges(wanted, int(entities.sum())), strict=True):
        assert found.dtype == column.dtype
        assert found.tolist() == column.tolist()
