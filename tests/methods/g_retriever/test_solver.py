"""Prize-collecting Steiner trees against brute force, by hand, and against the published solver."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from types import ModuleType
from typing import Any, Literal, NamedTuple

import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference_pcst import ReferenceMissingError, build_reference

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.methods.g_retriever.solver import SteinerTree, solve_pcst

Pruning = Literal["strong", "gw"]
PRUNINGS: tuple[Pruning, ...] = ("strong", "gw")

#: An edge: its ends and its cost.
Edge = tuple[int, int, float]


class Problem(NamedTuple):
    heads: np.ndarray[Any, Any]
    tails: np.ndarray[Any, Any]
    costs: np.ndarray[Any, Any]
    prizes: np.ndarray[Any, Any]

    def solve(self, pruning: Pruning = "strong") -> SteinerTree:
        return solve_pcst(*self, pruning=pruning)

    def cost(self, tree: SteinerTree) -> float:
        return float(self.costs[tree.edges].sum())

    def missed(self, tree: SteinerTree) -> float:
        return float(np.delete(self.prizes, tree.nodes).sum())

    def graph(self, tree: SteinerTree) -> nx.MultiGraph:
        graph = nx.MultiGraph()
        graph.add_nodes_from(tree.nodes.tolist())
        for e in tree.edges.tolist():
            graph.add_edge(int(self.heads[e]), int(self.tails[e]), cost=self.costs[e])
        return graph


def problem(edges: Sequence[Edge], prizes: Sequence[float]) -> Problem:
    columns = list(zip(*edges, strict=True)) if edges else [(), (), ()]
    heads, tails = np.array(columns[0], np.int64), np.array(columns[1], np.int64)
    return Problem(heads, tails, np.array(columns[2], np.float64), np.array(prizes, np.float64))


def by_hand(edges: Sequence[Edge], prizes: Sequence[float], pruning: Pruning = "strong") -> tuple[list[int], list[int]]:
    found = problem(edges, prizes).solve(pruning)
    return found.nodes.tolist(), found.edges.tolist()


def drawn(rng: np.random.Generator, n: int, m: int) -> Problem:
    """A random graph without loops; costs, and the prizes of some nodes, are continuous."""
    heads = rng.integers(0, n, m)
    tails = (heads + rng.integers(1, n, m)) % n
    prizes = rng.random(n) * (rng.random(n) < rng.choice([0.1, 0.5, 1])) * rng.choice([0.5, 1, 3])
    return Problem(heads, tails, rng.random(m), prizes)


def check_tree(case: Problem, found: SteinerTree) -> None:
    """One tree or none; its nodes are the ends of its edges, or it is a single one."""
    nodes, edges = found
    assert nodes.dtype == edges.dtype == np.int64
    assert np.all(np.diff(nodes) > 0)
    assert np.all(np.diff(edges) > 0)
    graph = case.graph(found)
    assert sorted(graph) == nodes.tolist()
    assert not graph or nx.is_tree(graph)


def least(case: Problem) -> float:
    """The least cost + missed prizes over all sets of nodes, each with its cheapest tree."""
    best = case.prizes.sum()
    order = np.argsort(case.costs, kind="stable").tolist()
    for size in range(1, len(case.prizes) + 1):
        for nodes in combinations(range(len(case.prizes)), size):
            tree = {node: node for node in nodes}
            cost, parts = 0.0, size
            for e in order:  # Kruskal's algorithm
                a, b = tree.get(case.heads[e]), tree.get(case.tails[e])
                if a is not None and b is not None and a != b:
                    tree = {node: a if top == b else top for node, top in tree.items()}
                    cost, parts = cost + case.costs[e], parts - 1
            if parts == 1:
                best = min(best, cost + np.delete(case.prizes, nodes).sum())
    return float(best)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Up to 6 nodes and 10 edges with loops, parallel edges and zeros; whole numbers are often tied."""
    n = draw(st.integers(1, 6))
    value = draw(st.sampled_from([st.integers(0, 4).map(float), st.floats(0, 4), st.sampled_from([0.1, 0.2, 0.3])]))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node, value), max_size=10))
    prizes = draw(st.lists(value | st.just(0.0), min_size=n, max_size=n))
    return problem(edges, prizes)


@given(problems())
@example(problem([(0, 1, 5e-324)], [1, 1]))  # half of what is left of it is 0
@settings(max_examples=300)
def test_cost_and_missed_prizes_are_at_most_twice_the_least(case: Problem) -> None:
    optimum = least(case)
    objective = {}
    for pruning in PRUNINGS:
        found = case.solve(pruning)
        check_tree(case, found)
        objective[pruning] = case.cost(found) + case.missed(found)
        assert objective[pruning] >= optimum - 1e-9
    assert objective["gw"] + case.missed(case.solve("gw")) <= 2 * optimum + 1e-9
    assert objective["strong"] <= objective["gw"] + 1e-9


# --- against the papers' steps, taken one at a time -------------------------------------------------------------------


def grown(case: Problem) -> tuple[nx.Graph, list[frozenset[int]]]:
    """The edges on which clusters met, and all clusters that slept at some time; every event looks at every edge."""
    clusters = {node: frozenset([node]) for node in range(len(case.prizes))}
    budgets = {clusters[node]: prize for node, prize in enumerate(case.prizes.tolist())}
    awake = {clusters[node] for node, prize in enumerate(case.prizes) if prize > 0}
    slept = [cluster for cluster in budgets if cluster not in awake]
    tree, moats = nx.Graph(), np.zeros(len(case.prizes))
    tree.add_nodes_from(clusters)
    while len(awake) > 1:
        sleeper = min(awake, key=lambda cluster: budgets[cluster])
        step, meeting = budgets[sleeper], -1
        for e, (a, b, cost) in enumerate(zip(case.heads, case.tails, case.costs, strict=True)):
            growing = len({clusters[a], clusters[b]} & awake)
            if clusters[a] != clusters[b] and growing and (cost - moats[a] - moats[b]) / growing < step:
                step, meeting = (cost - moats[a] - moats[b]) / growing, e
        for cluster in awake:
            budgets[cluster] -= step
            moats[list(cluster)] += step
        if meeting < 0:
            awake.remove(sleeper)
            slept.append(sleeper)
            continue
        a, b = int(case.heads[meeting]), int(case.tails[meeting])
        tree.add_edge(a, b, cost=case.costs[meeting])
        parts = {clusters[a], clusters[b]}
        whole = clusters[a] | clusters[b]
        budgets[whole] = sum(budgets[part] for part in parts)
        awake = awake - parts | {whole}
        clusters.update(dict.fromkeys(whole, whole))
    return tree.subgraph(frozenset().union(*awake)), slept


def best_below(case: Problem, tree: nx.Graph, top: int, above: int = -1) -> tuple[float, set[int]]:
    """The worth and the nodes of the best tree that holds a node and, of the others, only those behind it."""
    worth, nodes = float(case.prizes[top]), {top}
    for node in set(tree[top]) - {above}:
        more, behind = best_below(case, tree, node, top)
        if more > tree.edges[top, node]["cost"]:
            worth, nodes = worth + more - tree.edges[top, node]["cost"], nodes | behind
    return worth, nodes


def pruned(case: Problem, pruning: Pruning) -> list[int]:
    tree, slept = grown(case)
    if pruning == "gw":
        cut: set[int] | frozenset[int] = {-1}
        while cut:
            cut = next(
                (part for part in slept if len(list(nx.edge_boundary(tree, part & set(tree)))) == 1), frozenset()
            )
            tree = tree.subgraph(set(tree) - cut)
        return sorted(tree)
    return sorted(max((best_below(case, tree, top) for top in tree), default=(0, set()))[1])


@pytest.mark.parametrize("pruning", PRUNINGS)
def test_as_many_small_steps_find_the_same_nodes(pruning: Pruning) -> None:
    rng = np.random.default_rng(4)
    edges = 0
    for trial in range(200):
        n = int(rng.integers(2, 30))
        case = drawn(rng, n, int(rng.integers(n, 3 * n)))
        found = case.solve(pruning)
        assert found.nodes.tolist() == pruned(case, pruning), trial
        edges += len(found.edges)
    assert edges > 800


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_sums_that_differ_by_rounding_are_one_tie() -> None:
    """0.1 + 0.2 is not 0.3, so that one of the two ways round the square is a bit shorter."""
    square: list[Edge] = [(0, 1, 0.1), (1, 3, 0.2), (0, 2, 0.15), (2, 3, 0.15)]
    for edges in (square, square[::-1], square[2:] + square[:2]):
        for pruning in PRUNINGS:
            nodes, chosen = by_hand(edges, [1, 0, 0, 1], pruning=pruning)
            assert len(nodes) == 3
            assert sum(edges[e][2] for e in chosen) == pytest.approx(0.3)


def test_large_and_small_numbers_in_one_graph() -> None:
    rng = np.random.default_rng(3)
    for _ in range(300):
        n, m = int(rng.integers(2, 7)), int(rng.integers(1, 11))
        costs, prizes = 10 ** rng.uniform(-9, 9, m), 10 ** rng.uniform(-9, 9, n)
        case = drawn(rng, n, m)._replace(costs=costs, prizes=prizes)
        optimum = least(case)
        for pruning in PRUNINGS:
            found = case.solve(pruning)
            check_tree(case, found)
            twice = case.missed(found) if pruning == "gw" else 0
            assert case.cost(found) + case.missed(found) + twice <= 2 * optimum * (1 + 1e-6)


def test_a_long_chain() -> None:
    size = 100_000
    heads = np.arange(size - 1)
    chain = Problem(heads, heads + 1, np.ones(size - 1), np.zeros(size))
    chain.prizes[[0, -1]] = 2 * size
    everywhere = chain._replace(prizes=np.full(size, 2.0))
    rising = everywhere._replace(costs=np.linspace(0.5, 1.5, size - 1))
    for case in (chain, everywhere, rising):
        for pruning in PRUNINGS:
            found = case.solve(pruning)
            assert np.array_equal(found.nodes, np.arange(size))
            assert np.array_equal(found.edges, heads)
    too_dear = chain._replace(costs=np.full(size - 1, 5.0))
    assert too_dear.solve().nodes.tolist() in ([0], [size - 1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0], [1], [1.0], [[1.0], [1.0]]), "as long as each other.* got .*\\(2, 1\\)"),
        (([0, 1], [1], [1.0], [1.0, 1.0]), "as long as each other.* got .*\\(2,\\), \\(1,\\)"),
        (([0], [2], [1.0], [1.0, 1.0]), "ends of edges must be .*in 0 ... 1"),
        (([-1], [1], [1.0], [1.0, 1.0]), "ends of edges must be .*in 0 ... 1"),
        (([0.5], [1], [1.0], [1.0, 1.0]), "ends of edges must be integers"),
        (([2**32], [1], [1.0], [1.0, 1.0]), "ends of edges"),  # 0 in 32 bits
        (([0], [1], [-1.0], [1.0, 1.0]), "costs must be 0 or more and finite.* got -1.0"),
        (([0], [1], [1.0], [np.nan, 1.0]), "prizes must be 0 or more and finite.* got nan"),
        (([0], [1], [1.0], [1.0, np.inf]), "prizes must be 0 or more and finite"),
    ],
)
def test_wrong_arguments_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"solve_pcst: .*{message}"):
        solve_pcst(*map(np.asarray, arguments))


# --- the published solver ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    try:
        return build_reference()
    except ReferenceMissingError as error:
        pytest.skip(str(error))


def published(reference: ModuleType, case: Problem, pruning: Pruning) -> SteinerTree:
    edges = np.stack([case.heads, case.tails], 1)
    nodes, edges = reference.pcst_fast(edges, case.prizes, case.costs, -1, 1, pruning, 0)
    return SteinerTree(np.sort(nodes), np.sort(edges))


def compared(seed: int) -> Problem:
    """Of 200 graphs every fourth has about 200 to 2,000 edges; the others are small."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(100, 500) if seed % 4 == 0 else rng.integers(4, 40))
    case = drawn(rng, n, int(rng.integers(n, 4 * n)))
    case.prizes[rng.choice(n, 4, replace=False)] += rng.uniform(0.5, 0.6, 4)  # else it adds nodes without a prize
    return case


@pytest.mark.heavy  # building it takes more than half a minute
@pytest.mark.parametrize("tied", [False, True])
def test_the_published_solver_finds_the_same(reference: ModuleType, tied: bool) -> None:
    """The same nodes and edges; where prizes are tied, as much."""
    for seed in range(200):
        case = compared(seed)
        case = case._replace(prizes=np.ceil(case.prizes)) if tied else case
        for pruning in PRUNINGS:
            found, wanted = case.solve(pruning), published(reference, case, pruning)
            if tied:
                expected = case.cost(wanted) + case.missed(wanted)
                assert case.cost(found) + case.missed(found) == pytest.approx(expected, abs=1e-9), (seed, pruning)
                continue
            assert found.nodes.tolist() == wanted.nodes.tolist(), (seed, pruning)
            assert found.edges.tolist() == wanted.edges.tolist(), (seed, pruning)


def test_too_many_edges_are_refused() -> None:
    ends, costs = np.broadcast_to(np.int32(0), 2**30), np.broadcast_to(1.0, 2**30)
    with pytest.raises(InvalidArgumentError, match="at most"):
        solve_pcst(ends, ends, costs, np.ones(1))
