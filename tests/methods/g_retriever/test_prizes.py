"""Prizes by rank, against the published rule, and subgraphs by prizes, against brute force."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers.methods.g_retriever.prizes import prize_edges, solve_prizes
from kg_retrievers.methods.g_retriever.solver import SteinerTree

Array = np.ndarray[Any, Any]
Rule = Literal["paper", "published"]
Pruning = Literal["strong", "gw"]
PRUNINGS: tuple[Pruning, ...] = ("strong", "gw")


# --- prizes of edges ---


def prizes(relations: list[int], ranked: list[int], k: int, rule: Rule) -> list[float]:
    found = prize_edges(np.array(relations, np.int32), np.array(ranked, np.int64), k, rule)
    assert found.dtype == np.float64
    result: list[float] = found.tolist()
    return result


class Ranked(NamedTuple):
    relations: list[int]
    ranked: list[int]
    k: int


@st.composite
def ranked_edges(draw: st.DrawFn) -> Ranked:
    size = draw(st.integers(1, 8))
    relations = draw(st.lists(st.integers(0, size - 1), max_size=20))
    ranked = draw(st.permutations(range(size)))[: draw(st.integers(0, size))]
    return Ranked(relations, list(ranked), draw(st.integers(1, 10)))


@given(ranked_edges())
def test_the_rule_of_the_paper_and_the_published_one(case: Ranked) -> None:
    """The latter word for word from similarities of edges; it lowers k to the number of relations with edges."""
    relations = np.array(case.relations, np.int64)
    ranked = [relation for relation in case.ranked if relation in case.relations]
    by_rank = {relation: max(case.k - rank, 0) for rank, relation in enumerate(ranked)}
    assert prizes(case.relations, case.ranked, case.k, "paper") == [by_rank.get(one, 0) for one in case.relations]
    k = min(case.k, len(ranked))
    if k == 0:
        return
    similarities = np.array([-ranked.index(relation) if relation in ranked else -100.0 for relation in relations])
    best = np.unique(similarities)[::-1][:k]
    expected = np.where(similarities < best[-1], 0.0, similarities)
    last = float(k)
    for place in range(k):
        edges = similarities == best[place]
        value = min((k - place) / edges.sum(), last)
        expected[edges] = value
        last = value * (1 - 0.01)
    assert prizes(case.relations, case.ranked, k, "published") == pytest.approx(expected.tolist(), abs=0)


# --- the connected subgraph ---


class Prized(NamedTuple):
    heads: Array
    tails: Array
    node_prizes: Array
    edge_prizes: Array
    cost: float


def prized(edges: list[tuple[int, int, float]], node_prizes: list[float], cost: float) -> Prized:
    """Edges as (head, tail, prize)."""
    heads, tails, edge_prizes = np.array(edges, float).reshape(-1, 3).T
    return Prized(heads.astype(np.int32), tails.astype(np.int32), np.array(node_prizes), edge_prizes, cost)


@st.composite
def prized_graphs(draw: st.DrawFn) -> Prized:
    """With prizes of edges below, at and above the cost, loops and parallel edges."""
    nodes = draw(st.integers(1, 6))
    node, prize = st.integers(0, nodes - 1), st.sampled_from((0.0, 0.0, 0.25, 0.5, 0.99, 1.0, 1.1, 2.0, 3.7))
    edges = draw(st.lists(st.tuples(node, node, prize), max_size=7))
    return prized(edges, [draw(prize) for _ in range(nodes)], draw(st.sampled_from((0.0, 0.5, 1.0, 2.5))))


def parts(nodes: list[int], heads: list[int], tails: list[int]) -> int:
    """The number of connected parts."""
    part = {node: node for node in nodes}
    for head, tail in zip(heads, tails, strict=True):
        old, new = part[head], part[tail]
        part = {node: new if other == old else other for node, other in part.items()}
    return len({*part.values()})


def value(case: Prized, nodes: Any, edges: Any) -> float:
    prizes = case.node_prizes[nodes].sum() + case.edge_prizes[edges].sum()
    return float(prizes - case.cost * len(edges))


def best_value(case: Prized) -> float:
    """The most that a connected subgraph is worth, of all: a node, or a set of edges with their ends."""
    heads, tails, node_prizes, edge_prizes = (array.tolist() for array in case[:4])
    best = max(node_prizes)
    for size in range(1, len(heads) + 1):
        for chosen in combinations(range(len(heads)), size):
            nodes = {heads[edge] for edge in chosen} | {tails[edge] for edge in chosen}
            worth = sum(node_prizes[node] for node in nodes) + sum(edge_prizes[edge] for edge in chosen)
            if (worth := worth - case.cost * size) > best:
                connected = parts([*nodes], [heads[edge] for edge in chosen], [tails[edge] for edge in chosen]) == 1
                best = worth if connected else best
    return float(best)


@given(prized_graphs(), st.sampled_from(PRUNINGS))
@settings(max_examples=300)
def test_what_is_found_is_connected_and_near_the_best(case: Prized, pruning: Pruning) -> None:
    """Near as `solve_pcst` promises: cost + missed (twice, with "gw") <= 2 * (cost + missed) of any such subgraph."""
    found = solve_prizes(*case, pruning=pruning)
    nodes, edges = found.nodes.tolist(), found.edges.tolist()
    assert nodes == sorted(set(nodes))
    assert edges == sorted(set(edges))
    heads, tails = case.heads[edges].tolist(), case.tails[edges].tolist()
    assert {*heads, *tails} <= set(nodes)
    if not case.node_prizes.any() and case.edge_prizes.max(initial=0) <= case.cost:
        assert (nodes, edges) == ([], [])
        return
    assert parts(nodes, heads, tails) == 1
    rest = case.edge_prizes - case.cost  # an edge costs it where it is below zero, else may be missed
    paid = np.maximum(-rest, 0)[edges].sum()
    missed = np.delete(case.node_prizes, nodes).sum() + np.delete(np.maximum(rest, 0), edges).sum()
    everything = case.node_prizes.sum() + np.maximum(rest, 0).sum()
    assert value(case, nodes, edges) == pytest.approx(everything - paid - missed)
    least = everything - best_value(case)
    assert paid + missed * (2 if pruning == "gw" else 1) <= 2 * least + 1e-9
    if pruning == "strong":
        assert value(case, nodes, edges) > 0
        growth = solve_prizes(*case, pruning="gw")
        assert value(case, nodes, edges) >= value(case, growth.nodes, growth.edges) - 1e-9


def plain(found: SteinerTree) -> tuple[list[int], list[int]]:
    assert found.nodes.dtype == found.edges.dtype == np.int64
    return found.nodes.tolist(), found.edges.tolist()


def test_pruning_by_growth_may_keep_what_costs_more_than_it_is_worth() -> None:
    """Six neighbours in a row meet before any of them has used up its prize: 6 * 1 - 5 * 1.9."""
    case = prized([(place, place + 1, 0) for place in range(5)], [1] * 6, 1.9)
    assert plain(solve_prizes(*case, pruning="gw")) == ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4])
    assert plain(solve_prizes(*case))[1] == []
