"""The matcher against brute force, in every mode."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg_retrievers.algorithms.compiled import source_checksum
from kg_retrievers.errors import InvalidArgumentError, SearchBudgetError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.methods.simgrag.matching import (
    Candidates,
    Match,
    MatchNode,
    MatchQuery,
    match_pattern,
    plan,
    solving,
)
from kg_retrievers.methods.simgrag.matching.pointers import Scratch

Facts = list[tuple[int, int, int]]
#: What tells two merged matches apart: known entities, known relations by edge, type distances of typed unknowns.
Key = tuple[tuple[int, ...], tuple[int, ...], tuple[float, ...]]


def graph_of(facts: Facts, entities: int, relations: int) -> KnowledgeGraph:
    """A graph in which entity and relation i are written "i" and numbered i."""
    everything = [(str(e), "padding", str(e)) for e in range(entities)]
    graph = KnowledgeGraph.from_triples(everything + [(str(h), f"r{r}", str(t)) for h, r, t in facts])
    numbered = {f"r{r}": r for r in range(relations)}
    triples = [(h, r, t) for h, r, t in graph.triples() if r in numbered]
    isolated = {str(e): str(e) for e in range(entities)}
    rebuilt = KnowledgeGraph.from_triples(sorted(triples, key=lambda triple: numbered[triple[1]]), labels=isolated)
    return rebuilt


def numbers(graph: KnowledgeGraph, query: MatchQuery) -> MatchQuery:
    """The query with "entity i" replaced by the number that the graph gave it."""
    entity = {i: graph.entities.find(str(i)) for i in range(len(graph.entities))}
    relation = {i: graph.relations.find(f"r{i}") for i in range(10)}

    def translated(candidates: Candidates | None, table: dict[int, int]) -> Candidates | None:
        if candidates is None:
            return None
        kept = [(table[int(i)], d) for i, d in zip(*candidates, strict=True) if table.get(int(i), -1) >= 0]
        return Candidates(np.array([i for i, _ in kept], np.int32), np.array([d for _, d in kept], np.float32))

    nodes = []
    for entities, types, _ in query.nodes:
        members = types and (types[0], [np.array(sorted(entity[int(e)] for e in m), np.int32) for m in types[1]])
        may_be_root = members and entities is None and len(nodes) % 2 == 0
        limited = np.unique(np.concatenate([np.zeros(0, np.int32), *members[1]])) if members and may_be_root else None
        nodes.append(MatchNode(translated(entities, entity), members or None, limited))
    return MatchQuery(nodes, [translated(r, relation) for r in query.relations], query.edges, query.different)


def brute_force(graph: KnowledgeGraph, query: MatchQuery, distinct: str, direction: str) -> Iterator[tuple[Any, ...]]:
    """Yield (cost, nodes, relations, triples of each edge, types) of every binding."""
    rows = [tuple(map(int, row)) for row in graph.edges[:]]
    joined: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for number, (h, r, t) in enumerate(rows):
        joined[h, r, t].append(number)
        if direction == "ignore" and h != t:
            joined[t, r, h].append(number)
    choices = []
    for entities, types, _ in query.nodes:
        of_type: dict[int, float] = {}
        if types is not None:
            for position in np.argsort(-types[0], kind="stable"):
                of_type |= dict.fromkeys(map(int, types[1][position]), float(types[0][position]))
        pool = dict.fromkeys(range(len(graph.entities)), 0.0)
        if entities is not None:
            pool = dict(zip(map(int, entities.ids), map(float, entities.distances), strict=True))
        choices.append(
            [
                (e, d + of_type.get(e, 0.0), of_type.get(e, 0.0))
                for e, d in pool.items()
                if types is None or e in of_type
            ]
        )
    known = [node.entities is not None for node in query.nodes]
    stated = {frozenset(pair) for pair in query.different}
    for binding in product(*choices):
        e = [choice[0] for choice in binding]
        clash = any(
            e[a] == e[b]
            and (distinct == "nodes" or (distinct == "known" and (known[a] or known[b])) or frozenset((a, b)) in stated)
            for a in range(len(e))
            for b in range(a)
        )
        if clash:
            continue
        options = []
        for head, term, tail in query.edges:
            candidates = query.relations[term]
            costs = (
                dict(zip(map(int, candidates.ids), map(float, candidates.distances), strict=True))
                if candidates is not None
                else dict.fromkeys(range(len(graph.relations)), 0.0)
            )
            options.append([(r, d) for r, d in costs.items() if (e[head], r, e[tail]) in joined])
        for chosen in product(*options):
            shared: dict[int, set[int]] = defaultdict(set)
            for (_, term, _), (r, _) in zip(query.edges, chosen, strict=True):
                if query.relations[term] is None:
                    shared[term].add(r)
            if any(len(rs) > 1 for rs in shared.values()):
                continue
            cost = sum(d for _, d, _ in binding) + sum(d for _, d in chosen)
            triples = [joined[e[h], r, e[t]] for (h, _, t), (r, _) in zip(query.edges, chosen, strict=True)]
            yield cost, e, [r for r, _ in chosen], triples, [choice[2] for choice in binding]


def key_of(query: MatchQuery, e: list[int], r: list[int], types: list[float]) -> Key:
    """What a binding has in common with those that are merged with it."""
    return (
        tuple(x for x, node in zip(e, query.nodes, strict=True) if node.entities is not None),
        tuple(x for x, (_, term, _) in zip(r, query.edges, strict=True) if query.relations[term] is not None),
        tuple(x for x, node in zip(types, query.nodes, strict=True) if node.entities is None and node.types),
    )


@st.composite
def problems(draw: st.DrawFn, most_entities: int = 6, many_types: bool = False) -> tuple[KnowledgeGraph, MatchQuery]:
    """A small graph and a connected or disconnected pattern over it; with `many_types`, each node has eight types."""
    entities, relations = draw(st.integers(2, most_entities)), draw(st.integers(1, 3))
    fact = st.tuples(st.integers(0, entities - 1), st.integers(0, relations - 1), st.integers(0, entities - 1))
    facts = draw(st.lists(fact, min_size=1, max_size=14, unique=True))
    graph = graph_of(facts, entities, relations)
    size = draw(st.integers(1, 4))
    distance = st.sampled_from([0.0, 0.25, 0.5, 1.0])

    def candidates(upto: int) -> st.SearchStrategy[Candidates]:
        pairs = st.dictionaries(st.integers(0, upto - 1), distance, min_size=1)
        return pairs.map(lambda d: Candidates(np.array(list(d), np.int32), np.array(list(d.values()), np.float32)))

    members = st.lists(st.integers(0, entities - 1), unique=True).map(lambda m: np.array(m, np.int32))
    few_kinds = st.integers(1, 2).flatmap(
        lambda n: st.tuples(
            st.lists(distance, min_size=n, max_size=n).map(lambda d: np.array(d, np.float32)),
            st.lists(members, min_size=n, max_size=n),
        )
    )
    kind_of_each = st.lists(st.integers(0, 7), min_size=entities, max_size=entities)
    many_kinds = kind_of_each.map(
        lambda kinds: (np.arange(8, dtype=np.float32) / 8, [np.flatnonzero(np.equal(kinds, i)) for i in range(8)])
    )
    node = st.builds(
        MatchNode,
        st.one_of(st.none(), candidates(entities)),
        many_kinds if many_types else st.one_of(st.none(), st.none(), st.none(), few_kinds),
    )
    nodes = draw(st.lists(node, min_size=size, max_size=size))
    terms = draw(st.lists(st.one_of(st.none(), candidates(relations)), min_size=1, max_size=3))
    end = st.integers(0, size - 1)
    edges = draw(st.lists(st.tuples(end, st.integers(0, len(terms) - 1), end), min_size=1, max_size=4, unique=True))
    used = sorted({v for h, _, t in edges for v in (h, t)})
    edges = [(used.index(h), r, used.index(t)) for h, r, t in edges]
    pairs = st.lists(st.tuples(st.integers(0, len(used) - 1), st.integers(0, len(used) - 1)), max_size=1)
    different = [(a, b) for a, b in draw(pairs) if a != b]
    return graph, numbers(graph, MatchQuery([nodes[v] for v in used], terms, edges, different))


modes = {
    "distinct": st.sampled_from(["known", "nodes", "none"]),
    "direction": st.sampled_from(["ignore", "respect"]),
    "k": st.integers(1, 4),
    "max_distance": st.sampled_from([np.inf, 0.5, 0.0]),
}


@pytest.mark.heavy
@settings(max_examples=600, deadline=None)
@given(st.one_of(problems(), problems(most_entities=3, many_types=True)), st.fixed_dictionaries(modes))
def test_merged_matches_equal_brute_force(problem: tuple[KnowledgeGraph, MatchQuery], mode: dict[str, Any]) -> None:
    graph, query = problem
    groups: dict[Key, tuple[float, list[set[int]], list[set[int]]]] = {}
    for cost, e, r, triples, types in brute_force(graph, query, mode["distinct"], mode["direction"]):
        if cost > mode["max_distance"]:
            continue
        group = groups.setdefault(key_of(query, e, r, types), (cost, [set() for _ in e], [set() for _ in query.edges]))
        for entities, entity in zip(group[1], e, strict=True):
            entities.add(entity)
        for facts, numbers_ in zip(group[2], triples, strict=True):
            facts.update(numbers_)
    found = match_pattern(graph.adjacency, len(graph.relations), query, **mode)
    expected = sorted(cost for cost, _, _ in groups.values())[: mode["k"]]
    assert [match.distance for match in found] == expected
    keys = []
    for match in found:
        assert not match.truncated
        fitting = [
            key
            for key, (cost, entities, facts) in groups.items()
            if cost == match.distance
            and [set(x.tolist()) for x in match.entities] == entities
            and [set(x.tolist()) for x in match.triples] == facts
            and all(x in (-1, y) or query.relations[t] is None for x, y, t in _relations_of(match, key, query))
        ]
        assert fitting, (match, groups)
        keys.append(tuple(fitting))
    assert all(keys.count(key) <= len(key) for key in keys)


@pytest.mark.heavy
@settings(max_examples=1000, deadline=None)
@given(
    st.one_of(problems(), problems(most_entities=3, many_types=True)),
    st.fixed_dictionaries({**modes, "ties": st.sampled_from(["merge", "break"])}),
    st.sampled_from([0, 64]),
)
def test_rounds_give_what_a_search_among_all_candidates_gives(
    problem: tuple[KnowledgeGraph, MatchQuery], mode: dict[str, Any], eager_above: int
) -> None:
    graph, query = problem
    matches = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "EAGER_ABOVE", eager_above)
        patch.setattr(solving, "WIDENING", 2)
        for first in (64, 1):  # more than there are candidates; then as few as possible
            patch.setattr(solving, "FIRST_ROUND", first)
            matches.append(str(match_pattern(graph.adjacency, len(graph.relations), query, **mode)))
        distances = [match.distance for match in match_pattern(graph.adjacency, len(graph.relations), query, **mode)]
    assert matches[0] == matches[1]
    costs = sorted(cost for cost, *_ in brute_force(graph, query, mode["distinct"], mode["direction"]))
    nearest = [cost for cost in costs if cost <= mode["max_distance"]][: mode["k"]]
    assert distances[:1] == nearest[:1]
    assert mode["ties"] == "merge" or distances == nearest


def _relations_of(match: Match, key: Key, query: MatchQuery) -> list[tuple[int, int, int]]:
    of_key = iter(key[1])
    return [
        (relation, next(of_key) if query.relations[term] is not None else -1, term)
        for relation, (_, term, _) in zip(match.relations, query.edges, strict=True)
    ]


@settings(max_examples=300, deadline=None)
@given(st.one_of(problems(), problems(most_entities=3, many_types=True)), st.fixed_dictionaries(modes))
def test_broken_ties_equal_brute_force(problem: tuple[KnowledgeGraph, MatchQuery], mode: dict[str, Any]) -> None:
    graph, query = problem
    every = [
        (cost, e, r)
        for cost, e, r, _, _ in brute_force(graph, query, mode["distinct"], mode["direction"])
        if cost <= mode["max_distance"]
    ]
    found = match_pattern(graph.adjacency, len(graph.relations), query, ties="break", **mode)
    assert [match.distance for match in found] == sorted(cost for cost, _, _ in every)[: mode["k"]]
    bindings = [([int(x) for (x,) in match.entities], list(match.relations)) for match in found]
    for match, (e, r) in zip(found, bindings, strict=True):
        assert (match.distance, e, r) in every
        assert all(len(triples) >= 1 for triples in match.triples)
    assert len({str(binding) for binding in bindings}) == len(bindings)


def one(*pairs: tuple[int, float]) -> Candidates:
    return Candidates(np.array([i for i, _ in pairs], np.int32), np.array([d for _, d in pairs], np.float32))


def found(graph: KnowledgeGraph, query: MatchQuery, **options: Any) -> list[Match]:
    return match_pattern(graph.adjacency, len(graph.relations), query, **options)


@pytest.fixture(scope="module")
def hub() -> KnowledgeGraph:
    """An actor in 300 films, each with one of 3 genres and a year of its own."""
    facts = []
    for i in range(300):
        facts += [
            (f"film {i}", "starring", "hub"),
            (f"film {i}", "genre", f"genre {i % 3}"),
            (f"film {i}", "year", f"{i}"),
        ]
    return KnowledgeGraph.from_triples(facts)


def star(graph: KnowledgeGraph, arms: int) -> MatchQuery:
    """The hub and several films of it, all alike."""
    nodes = [MatchNode(one((graph.entities.find("hub"), 0.0)))] + [MatchNode()] * arms
    return MatchQuery(nodes, [one((graph.relations.find("starring"), 0.0))], [(v, 0, 0) for v in range(1, arms + 1)])


def test_a_star_of_equal_arms_is_one_match_without_its_product(hub: KnowledgeGraph) -> None:
    (match,) = found(hub, star(hub, 6), k=3, max_scans=100_000)  # 300 ** 6 bindings
    assert not match.truncated
    assert [len(entities) for entities in match.entities] == [1] + [300] * 6
    assert all(len(triples) == 300 for triples in match.triples)


def test_max_bindings_keeps_the_sets_consistent(hub: KnowledgeGraph) -> None:
    nodes = [MatchNode(one((hub.entities.find("hub"), 0.0))), MatchNode(), MatchNode()]
    relations = [one((hub.relations.find(name), 0.0)) for name in ("starring", "year")]
    (match,) = found(hub, MatchQuery(nodes, relations, [(1, 0, 0), (1, 1, 2)]), max_bindings=7)
    assert match.truncated
    films, years = (set(match.entities[v].tolist()) for v in (1, 2))
    assert len(films) == len(years) == 7
    assert {hub.entities.find(hub.entities[film].removeprefix("film ")) for film in films} == years


def test_buffers_grow(hub: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = found(hub, star(hub, 3), k=2, ties="break", distinct="nodes")
    merged = found(hub, star(hub, 3))
    monkeypatch.setattr("kg_retrievers.methods.simgrag.matching.solving.FIRST_CAPACITY", 2)
    assert str(found(hub, star(hub, 3), k=2, ties="break", distinct="nodes")) == str(expected)
    assert str(found(hub, star(hub, 3))) == str(merged)


def complete_graph(size: int) -> tuple[KnowledgeGraph, MatchQuery]:
    """Everybody knows everybody, and a cycle of five of them that cannot be cheap."""
    graph = KnowledgeGraph.from_triples([(f"{a}", "knows", f"{b}") for a in range(size) for b in range(size) if a != b])
    everyone = one(*((e, 0.5 + e / 1000) for e in range(size)))
    nodes = [MatchNode(everyone)] + [MatchNode()] * 4
    return graph, MatchQuery(nodes, [one((0, 0.1))], [(v, 0, (v + 1) % 5) for v in range(5)])


def test_a_time_budget_ends_the_search() -> None:
    graph, query = complete_graph(40)
    found(graph, query)  # compile
    began = time.thread_time()
    try:
        matches = found(graph, query, k=10**5, ties="break", distinct="nodes", max_seconds=0.1, max_scans=10**9)
    except SearchBudgetError:
        matches = []
    assert time.thread_time() - began < 20
    assert all(match.truncated for match in matches)


@pytest.mark.parametrize(
    ("option", "value"),
    [("k", 0), ("max_bindings", 0), ("max_scans", -1), ("max_distance", -0.1), ("max_distance", float("nan"))],
)
def test_numbers_out_of_range_are_refused(hub: KnowledgeGraph, option: str, value: float) -> None:
    with pytest.raises(InvalidArgumentError, match=option):
        found(hub, star(hub, 1), **{option: value})


def test_many_candidates_are_searched_in_rounds_and_what_a_cut_round_found_is_kept(hub: KnowledgeGraph) -> None:
    everything = np.arange(len(hub.entities), dtype=np.int32)
    vague = MatchNode(Candidates(everything, np.linspace(0.1, 1, len(everything), dtype=np.float32)))
    query = MatchQuery([vague, MatchNode(), vague], [None, None], [(0, 0, 1), (1, 1, 2)])
    matches = found(hub, query, k=3)
    assert not any(match.truncated for match in matches)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(solving, "FIRST_ROUND", 10_000)
        assert str(found(hub, query, k=3)) == str(matches)
    cut = found(hub, query, k=3, max_scans=12_000)
    assert cut[0].truncated or str(cut) == str(matches)


def test_marks_begin_anew_when_they_run_out(hub: KnowledgeGraph) -> None:
    expected = str(found(hub, star(hub, 3)))
    with pytest.MonkeyPatch.context() as patch:
        scratch = Scratch()
        scratch.arrays(1, len(hub.entities), 1, 1)
        scratch.stamp = 2**31 - 20
        scratch.stamps[:] = 2**31 - 21
        patch.setattr("kg_retrievers.methods.simgrag.matching.pointers._IDLE", [scratch])
        assert str(found(hub, star(hub, 3))) == expected
        assert scratch.stamp < 1000


@pytest.mark.heavy
def test_an_unwritable_cache_is_tolerated(tmp_path: Path) -> None:
    """Compile in a process that may write its cache nowhere: beside no source and under no home."""
    code = """
import numba.core.caching as caching
def refuse(self):
    raise OSError("read-only")
caching._CacheLocator.ensure_cache_path = refuse
from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, SimGRAGRetriever
graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")])
retriever = SimGRAGRetriever.from_index(GraphIndex.build(graph, HashedEmbeddings()))
print(retriever.invoke("Who directed Her?")[0].metadata["answers"])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ), check=False
    )
    assert done.stdout == "['Spike Jonze']\n", done.stderr


def test_machine_code_is_told_apart_by_the_sources_it_was_made_from(tmp_path: Path) -> None:
    checksums = set()
    for text in ("", "x = 1\n", "x = 2\n"):
        (tmp_path / "bounds.py").write_text(text)
        checksums.add(source_checksum(tmp_path))
    assert len(checksums) == 3
