"""Changed triples against the same triples sorted anew."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers.graph.adjacency import Adjacency
from kg_retrievers.graph.changes.triples import Splice, change_triples, renumbered
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.edges import Edges

IDS = st.integers(0, 5)
TRIPLES = st.sets(st.tuples(IDS, st.integers(0, 2), IDS), max_size=30).map(sorted)
ENTITIES, RELATIONS = 6, 3


def rows(triples: list[tuple[int, int, int]]) -> Array:
    return np.array(triples, np.int64).reshape(-1, 3)


@settings(max_examples=300)
@given(TRIPLES, TRIPLES, st.integers(4, 6), st.data())
def test_changed_triples_are_those_sorted_anew(
    before: list[tuple[int, int, int]], after: list[tuple[int, int, int]], size: int, data: st.DataObject
) -> None:
    before = [triple for triple in before if max(triple[0], triple[2]) < size]
    adjacency = Adjacency.of_edges(rows(before), size)
    removed = np.array([id for id, triple in enumerate(before) if triple not in after], np.int64)
    new = data.draw(st.permutations([triple for triple in after if triple not in before]))
    changed = change_triples(adjacency, removed, rows(new), ENTITIES, RELATIONS)
    assert [after[id] for id in changed.new_ids.tolist()] == new
    assert [after[id] if id >= 0 else None for id in changed.kept_ids.tolist()] == [
        triple if triple in after else None for triple in before
    ]
    assert [before[id] if id >= 0 else None for id in changed.origins.tolist()] == [
        triple if triple in before else None for triple in after
    ]
    every = np.ones(ENTITIES, np.bool_), np.ones(RELATIONS, np.bool_)
    check_equal(renumbered(changed.adjacency, *every), Adjacency.of_edges(rows(after), ENTITIES))


@settings(max_examples=100)
@given(TRIPLES)
def test_ids_follow_the_entities_and_relations_that_stay(triples: list[tuple[int, int, int]]) -> None:
    edges = rows(triples)
    entities, relations = np.zeros(ENTITIES, np.bool_), np.zeros(RELATIONS, np.bool_)
    entities[edges[:, ::2]] = relations[edges[:, 1]] = True
    of_entity, of_relation = np.cumsum(entities) - 1, np.cumsum(relations) - 1
    wanted = np.stack([of_entity[edges[:, 0]], of_relation[edges[:, 1]], of_entity[edges[:, 2]]], axis=1)
    found = renumbered(Adjacency.of_edges(edges, ENTITIES), entities, relations)
    check_equal(found, Adjacency.of_edges(wanted, int(entities.sum())))


@pytest.mark.parametrize(("relations", "kind"), [(16_383, np.int16), (16_384, np.int32)])
def test_labels_are_wide_enough_for_new_relations(relations: int, kind: type) -> None:
    adjacency = Adjacency.of_edges(rows([(0, 0, 1)]), 2)
    last = (1, relations - 1, 0)
    changed = change_triples(adjacency, np.empty(0, np.int64), rows([last]), 2, relations)
    assert changed.adjacency.labels.dtype == kind
    assert Edges(changed.adjacency)[1].tolist() == [*last]


@given(st.integers(0, 8), st.data())
def test_a_splice_leaves_out_and_puts_between(size: int, data: st.DataObject) -> None:
    removed = data.draw(st.lists(st.integers(0, size - 1), unique=True)) if size else []
    at = sorted(data.draw(st.lists(st.integers(0, size))))
    wanted: list[int] = []
    for position in range(size + 1):
        wanted += [-1 - id for id, before in enumerate(at) if before == position]
        wanted += [position] if position < size and position not in removed else []
    splice = Splice.of(size, np.array(removed, np.int64), np.array(at, np.int64))
    assert splice.column(np.arange(size), -1 - np.arange(len(at))).tolist() == wanted


def check_equal(found: Adjacency, wanted: Adjacency) -> None:
    for name, column in wanted._asdict().items():
        assert np.array_equal(getattr(found, name), column), name
    kinds = {name: (getattr(found, name).dtype, column.dtype) for name, column in wanted._asdict().items()}
    assert all(one == other for one, other in kinds.values()), kinds
