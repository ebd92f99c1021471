"""Messages along triples: the adjacency around some entities, and sums and gradients against plain ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.methods.gnn_rag.message_passing import (
    LocalAdjacency,
    local_adjacency,
    pass_messages,
)
from kg_retrievers.methods.gnn_rag.network import _passed

# --- the adjacency ----------------------------------------------------------------------------------------------------

KEYS = ("Her", "Jonze", "2013", "Adaptation", "1999")


def rows_of(adjacency: LocalAdjacency) -> list[list[tuple[int, int]]]:
    """Return the entries of each row: label and neighbor."""
    entries = list(zip(adjacency.labels.tolist(), adjacency.neighbors.tolist(), strict=True))
    ends = adjacency.indptr.tolist()
    return [entries[start:end] for start, end in pairwise(ends)]


def around(graph: KnowledgeGraph, *keys: str) -> LocalAdjacency:
    return local_adjacency(graph.adjacency, np.array([graph.entities.find(key) for key in keys], np.int32))


@given(
    st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(["by", "in", "with"]), st.sampled_from(KEYS))),
    st.lists(st.sampled_from(KEYS), unique=True),
)
def test_against_all_triples(facts: list[tuple[str, str, str]], keys: list[str]) -> None:
    """Entities in any order."""
    graph = KnowledgeGraph.from_triples(facts, labels={key: key for key in KEYS})
    expected: list[list[tuple[int, int]]] = [[] for _ in keys]
    for head, relation, tail in set(facts):
        if head in keys and tail in keys:
            label = 2 * graph.relations.find(relation)
            expected[keys.index(head)].append((label, keys.index(tail)))
            expected[keys.index(tail)].append((label + 1, keys.index(head)))
    found = rows_of(around(graph, *keys))
    assert [sorted(row) for row in found] == [sorted(row) for row in expected]
    for row in found:
        labels = [label for label, _ in row]
        assert labels == sorted(labels, key=lambda label: (label % 2, label))


# --- messages ---------------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """What is passed, as floats; `received` is there before."""

    adjacency: LocalAdjacency
    weights: np.ndarray
    messages: np.ndarray
    received: np.ndarray


def joined(rows: Sequence[Sequence[tuple[int, int]]]) -> LocalAdjacency:
    entries = [entry for row in rows for entry in row]
    return LocalAdjacency(
        np.cumsum([0, *map(len, rows)], dtype=np.int64),
        np.array([neighbor for _, neighbor in entries], np.int32),
        np.array([label for label, _ in entries], np.int32),
    )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Labels that recur in a row, entities without entries, weights of 0, labels that nothing has."""
    nodes, labels, width = draw(st.integers(1, 5)), draw(st.integers(0, 4)), draw(st.integers(1, 6))
    entry = st.tuples(st.integers(0, max(labels - 1, 0)), st.integers(0, nodes - 1))
    some = st.lists(entry, max_size=6 if labels else 0)
    rows = [sorted(draw(some), key=lambda one: one[0]) for _ in range(nodes)]
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    weights = rng.random(nodes) * draw(st.lists(st.sampled_from([0, 1]), min_size=nodes, max_size=nodes))
    messages, received = rng.normal(size=(labels, width)), rng.normal(size=(nodes, width))
    return Case(joined(rows), *(array.astype(np.float32) for array in (weights, messages, received)))


@given(cases())
def test_messages_against_a_plain_sum(case: Case) -> None:
    expected = case.received.astype(np.float64)
    for place in range(len(case.weights)):
        for entry in range(case.adjacency.indptr[place], case.adjacency.indptr[place + 1]):
            sender, label = case.adjacency.neighbors[entry], case.adjacency.labels[entry]
            expected[place] += np.float64(case.weights[sender]) * case.messages[label]
    given = [array.copy() for array in (*case.adjacency, case.weights, case.messages)]
    pass_messages(case.adjacency, case.weights, case.messages, case.received)
    assert case.received == pytest.approx(expected, abs=1e-5)
    assert all(map(np.array_equal, given, (*case.adjacency, case.weights, case.messages)))


@given(cases())
def test_torch_passes_the_same_messages(case: Case) -> None:
    received = np.zeros_like(case.received)
    pass_messages(case.adjacency, case.weights, case.messages, received)
    found = _passed(torch.from_numpy(case.weights), torch.from_numpy(case.messages), case.adjacency)
    assert found.numpy() == pytest.approx(received, abs=1e-5)


# --- products ---------------------------------------------------------------------------------------------------------


def test_the_order_of_senders_makes_no_difference() -> None:
    """Bit for bit: else entities that look the same would be told apart by the order of their triples."""
    rng = np.random.default_rng(0)
    for count in (3, 5, 40, 500):
        weights = rng.random(count).astype(np.float32)
        messages = rng.normal(size=(1, 8)).astype(np.float32)
        rows = [[(0, sender) for sender in rng.permutation(count).tolist()] for _ in range(9)]
        received = np.zeros((count, 8), np.float32)
        pass_messages(joined(rows + [[]] * (count - 9) if count > 9 else rows[:count]), weights, messages, received)
        assert (received[: min(count, 9)] == received[0]).all()
