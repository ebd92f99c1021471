"""The rows of an adjacency against the triples themselves, and labels against relation and direction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.algorithms.compiled import compiled_entry
from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.adjacency import (
    is_backward,
    label_count,
    label_of,
    label_sources,
    relation_of,
    reversed_label,
)

triples = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5)), max_size=20, unique=True)


@given(triples)
def test_entries_are_those_of_the_triples(facts: list[tuple[int, int, int]]) -> None:
    edges = np.array(facts, np.int32).reshape(-1, 3)
    adjacency = Adjacency.of_edges(edges, 6)
    assert [column.dtype for column in adjacency] == [np.int64, np.int32, np.int32, np.int32]
    for entity in range(6):
        for relation in range(3):
            for backward, here, there in ((False, 0, 2), (True, 2, 0)):
                label = label_of(relation, backward)
                expected = sorted((f[there], i) for i, f in enumerate(facts) if (f[here], f[1]) == (entity, relation))
                entries = adjacency.entries_with(entity, label)
                found = zip(adjacency.neighbors[entries].tolist(), adjacency.triples[entries].tolist(), strict=True)
                assert list(found) == expected
                assert adjacency.has_label(entity, label) == bool(expected)
                assert label_sources(edges, label).tolist().count(entity) == len(expected)
        assert (np.diff(adjacency.labels[adjacency.row(entity)]) >= 0).all()


@pytest.mark.parametrize("label", [-2, -1, 6])
def test_nothing_has_the_label_of_no_relation(label: int) -> None:
    adjacency = Adjacency.of_edges(np.array([[0, 0, 1], [1, 2, 0]], np.int32), 2)
    assert not adjacency.has_label(0, label)


@given(st.integers(0, 2**29), st.booleans())
def test_a_label_is_a_relation_and_a_direction(relation: int, backward: bool) -> None:
    label = label_of(relation, backward)
    assert (relation_of(label), is_backward(label)) == (relation, backward)
    assert reversed_label(label) == label_of(relation, not backward)
    assert label < label_count(relation + 1)


def test_arrays_and_compiled_code_get_the_same() -> None:
    relations, backward = np.array([0, 0, 1, 7], np.int32), np.array([False, True, True, False])
    labels = label_of(relations, backward)
    assert labels.dtype == np.int32

    def read(labels: np.ndarray, relations: np.ndarray, backward: np.ndarray, turned: np.ndarray) -> None:
        for i in range(len(labels)):
            relations[i], backward[i] = relation_of(labels[i]), is_backward(labels[i])
            turned[i] = reversed_label(label_of(relations[i], backward[i]))

    found = np.empty_like(relations), np.empty_like(backward), np.empty_like(labels)
    compiled_entry(read, allocates=False)(labels, *found)
    assert found[0].tolist() == relation_of(labels).tolist() == relations.tolist()
    assert found[1].tolist() == is_backward(labels).tolist() == backward.tolist()
    assert found[2].tolist() == reversed_label(labels).tolist()
