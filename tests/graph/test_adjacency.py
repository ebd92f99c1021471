"""The rows of an adjacency against the triples themselves, and labels against relation and direction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Adjacency, KnowledgeGraph, adjacency
from kg_retrievers.graph.adjacency import Edges, label_of, rank_triples, sort_triples, triple_of
from kg_retrievers.graph.columns import Array

IDS = st.integers(0, 5)
triples = st.lists(st.tuples(IDS, st.sampled_from([0, 1, 2, 16_382, 40_000]), IDS), max_size=20)


def plain_rows(facts: Iterable[tuple[int, int, int]]) -> tuple[dict[int, list[tuple[int, int, int]]], list[Any]]:
    """Return the label, neighbor and triple of each entry by entity, and the triples in order."""
    ordered = sorted(set(facts))
    rows: dict[int, list[tuple[int, int, int]]] = {entity: [] for entity in range(6)}
    for id, (head, relation, tail) in enumerate(ordered):
        rows[head].append((label_of(relation, False), tail, id))
    backward = sorted((tail, relation, head, id) for id, (head, relation, tail) in enumerate(ordered))
    for tail, relation, head, id in backward:
        rows[tail].append((label_of(relation, True), head, id))
    return rows, ordered


def edges_of(facts: Iterable[Any]) -> Array:
    return np.array([*facts], np.int32).reshape(-1, 3)


@given(triples)
def test_rows_are_those_of_plain_python(facts: list[tuple[int, int, int]]) -> None:
    rows, _ = plain_rows(facts)
    adjacency = Adjacency.of_edges(edges_of(facts), 6)
    kind = np.int16 if max((relation for _, relation, _ in facts), default=0) < 16_383 else np.int32
    assert [column.dtype for column in adjacency] == [np.int32, np.int32, np.int32, kind, np.int32]
    for entity, row in rows.items():
        at = adjacency.row(entity)
        found = zip(adjacency.labels[at], adjacency.neighbors[at], adjacency.row_triples(entity), strict=True)
        assert [tuple(map(int, entry)) for entry in found] == row
        assert [int(triple_of(adjacency, entity, entry)) for entry in range(at.start, at.stop)] == [t for *_, t in row]
        assert all(adjacency.entities_of(np.arange(at.start, at.stop)) == entity)
        halves = [adjacency.half(entity, backward) for backward in (False, True)]
        assert (at.start, halves[0].stop, at.stop) == (halves[0].start, halves[1].start, halves[1].stop)
    for label in {label for row in rows.values() for label, *_ in row} | {0, 1, 77, 32_766, 32_767, 80_001}:
        firsts, lasts = adjacency.ranges_with(np.arange(6), label)
        for entity, row in rows.items():
            expected = [(neighbor, id) for own, neighbor, id in row if own == label]
            entries = adjacency.entries_with(entity, label)
            ids = adjacency.triples_of(np.arange(entries.start, entries.stop), entity)
            assert [*zip(adjacency.neighbors[entries].tolist(), ids.tolist(), strict=True)] == expected
            assert (lasts - firsts)[entity] == len(expected) == entries.stop - entries.start
            assert not expected or firsts[entity] == entries.start
            assert adjacency.has_label(entity, label) == bool(expected)
        every = [(entity, neighbor) for entity, row in rows.items() for own, neighbor, _ in row if own == label]
        entries, entities = adjacency.entries_labelled(label)
        assert [*zip(entities.tolist(), adjacency.neighbors[entries].tolist(), strict=True)] == every


@given(triples)
def test_edges_are_the_triples_in_order(facts: list[tuple[int, int, int]]) -> None:
    _, ordered = plain_rows(facts)
    edges = Edges(Adjacency.of_edges(edges_of(facts), 6))
    assert len(edges) == len(ordered)
    assert edges[:].tolist() == [list(fact) for fact in ordered]
    assert [edges[id].tolist() for id in range(len(ordered))] == edges[:].tolist()
    assert edges[np.arange(1, len(edges), 2)].tolist() == edges[1::2].tolist() == edges[:].tolist()[1::2]
    assert [edges.triple(id) for id in range(len(ordered))] == ordered
    for column, part in enumerate((edges.heads, edges.relations, edges.tails)):
        assert part.tolist() == [fact[column] for fact in ordered]
    for id in (len(ordered), -1):
        with pytest.raises(IndexError, match=f"but got {id}"):
            edges[id]
        with pytest.raises(IndexError, match=f"but got {id}"):
            edges.triple(id)


@given(triples, st.booleans())
def test_triples_are_sorted_however_wide_they_are(facts: list[tuple[int, int, int]], wide: bool) -> None:
    """As one integer each, or as columns where 63 bits are too few."""
    if wide:
        facts = [(head + 2**30, relation + 2**29, tail + 2**30) for head, relation, tail in facts]
    given_columns = [*edges_of(facts).T]
    ordered = sorted(set(facts))
    ranked, ranks = rank_triples([*given_columns])
    assert [*zip(*(column.tolist() for column in sort_triples([*given_columns])), strict=True)] == ordered
    assert [*zip(*(column.tolist() for column in ranked), strict=True)] == ordered
    assert [ordered[rank] for rank in ranks.tolist()] == facts


def test_more_facts_than_ids_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adjacency, "MAX_COUNT", 2)
    facts = [("Her", "starring", name) for name in ("Joaquin Phoenix", "Amy Adams", "Rooney Mara")]
    with pytest.raises(InvalidArgumentError, match="a graph holds at most 2 facts and as many entities"):
        KnowledgeGraph.from_triples(facts)
