"""Small graphs of several labels with odd names, and what plain filters find of each part of them."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import NamedTuple

from hypothesis import strategies as st

from kg_retrievers.graph import KnowledgeGraph, Triple
from kg_retrievers.graph.parts import Facts, PartReader, StoredEntity

KEYS = ["a", "A", "é", "e\u0301", "\"'`\n\\", "$keys", "\ufb00", "\U0001f600", "x y"]
NAMES = ["", "a", "Her", "her", "\U0001f600", "it's"]
RELATIONS = ["directed by", "R", "x`y"]

#: The property that holds keys, by label.
KEY_OF = {"Film": "title", "a `Person`": "name"}


class Node(NamedTuple):
    """A node: its labels, its key, its label and aliases as properties."""

    labels: tuple[str, ...]
    key: str
    label: str
    aliases: list[str]


class StoredGraph(NamedTuple):
    """The nodes of a database, and its relationships between nodes by position, some of them twice."""

    nodes: list[Node]
    facts: list[tuple[int, str, int]]

    def triples(self) -> list[Triple]:
        """The facts by key, sorted, each once."""
        keys = [node.key for node in self.nodes]
        return sorted({Triple(keys[head], relation, keys[tail]) for head, relation, tail in self.facts})

    def entities(self) -> list[StoredEntity]:
        """The entities, sorted by key."""
        return [self._entity(key) for key in sorted({node.key for node in self.nodes})]

    def _entity(self, key: str) -> StoredEntity:
        nodes = sorted((node for node in self.nodes if node.key == key), key=lambda node: node.labels)
        label = next((node.label for node in nodes if node.label), key)
        names = (name for node in nodes for name in (*([node.label] if node.label != label else []), *node.aliases))
        aliases = dict.fromkeys(name for name in names if name)
        return StoredEntity(key, label, list(aliases), sorted({name for node in nodes for name in node.labels}))


def stored_graph(seed: int, *, several_labels: bool) -> StoredGraph:
    """A graph with parallel relations, self-loops, equal keys under two labels, perhaps nodes of two labels."""
    choose = random.Random(seed)
    one, two = KEY_OF
    nodes = []
    for key in choose.sample(KEYS, choose.randint(2, len(KEYS))):
        ways = [[(one,)], [(two,)], [(one,), (two,)], [(one, two)] if several_labels else [(one,)]]
        for labels in choose.choice(ways):
            aliases = choose.sample(NAMES[1:], choose.randint(0, 2))
            nodes.append(Node(labels, key, choose.choice(NAMES), aliases))
    places = range(len(nodes))
    facts = [(choose.choice(places), choose.choice(RELATIONS), choose.choice(places)) for _ in range(12)]
    return StoredGraph(nodes, facts + facts[:2])


class Part(NamedTuple):
    """What is asked for: some keys, names and relations, the most facts, and the size of a page."""

    keys: list[str]
    names: list[str]
    relations: list[str] | None
    limit: int
    page_size: int


parts = st.builds(
    Part,
    st.lists(st.sampled_from([*KEYS, "nobody", "\ud800"]), max_size=4),
    st.lists(st.sampled_from([*KEYS, *NAMES, "nobody"]), max_size=4),
    st.none() | st.lists(st.sampled_from([*RELATIONS, "no such relation"]), max_size=2),
    st.integers(1, 30),
    st.integers(1, 12),
)


def check_parts(executor: PartReader, graph: StoredGraph, part: Part) -> None:
    """Check that an executor reads what plain filters find."""
    keys, limit = set(part.keys), part.limit
    triples = graph.triples()
    assert {*executor.relations()} - {*KEY_OF.values()} == {relation for _, relation, _ in triples}
    wanted = set(RELATIONS) if part.relations is None else set(part.relations)
    around = [one for one in triples if keys & {one.head, one.tail} and one.relation in wanted]
    facts = executor.facts_of(part.keys, relations=part.relations, limit=limit)
    _check_facts(facts, around, limit)
    within = [one for one in triples if {one.head, one.tail} <= keys]
    between = executor.facts_between(part.keys, limit=limit)
    _check_facts(between, within, limit)
    entities = graph.entities()
    described = [entity for entity in entities if entity.key in keys]
    assert executor.describe(part.keys) == described
    for read in (between, facts) if part.relations is None else (between,):
        assert [entity for entity in read.entities if entity.key in keys] == described
    found = executor.entities_named(part.names, limit=2)
    assert found == {name: _named(graph, name)[:2] for name in part.names}
    for relation in RELATIONS:
        of_relation = [one for one in triples if one.relation == relation]
        sample = executor.sample_facts([relation], limit)
        assert set(sample.triples) <= set(of_relation)
        assert sample.truncated or sample.triples == of_relation
        assert sample == executor.sample_facts([relation], limit)
    assert sorted(pages(executor, part.page_size)) == entities


def _check_facts(found: Facts, wanted: list[Triple], limit: int) -> None:
    """Check facts; where some are left out, the database's order of odd characters decides which."""
    assert found.truncated == (len(wanted) > limit)
    assert found.triples == sorted(found.triples)
    if found.truncated:
        assert len(found.triples) == limit
        assert set(found.triples) <= set(wanted)
    else:
        assert found.triples == wanted


def _named(graph: StoredGraph, name: str) -> list[str]:
    return sorted({node.key for node in graph.nodes if name and name in (node.key, node.label, *node.aliases)})


def pages(executor: PartReader, page_size: int) -> Iterable[StoredEntity]:
    """Yield the entities of all pages."""
    position: str | None = ""
    while position is not None:
        page = executor.entities_after(position, page_size)
        assert len(page.entities) <= page_size
        yield from page.entities
        position = page.position


def check_against(executor: PartReader, graph: KnowledgeGraph) -> None:
    """Check that the parts of a graph that was loaded into a database are those of the graph."""
    keys = list(graph.entities)
    for key in keys:
        around = {*graph.triples(head=key), *graph.triples(tail=key)}
        assert executor.facts_of([key]).triples == sorted(around)
    assert executor.facts_between(keys).triples == sorted(set(graph.triples()))
    described = {entity.key: entity for entity in executor.describe(keys)}
    for key in keys:
        assert described[key] == (key, graph.label(key), graph.aliases(key), graph.types_of(key))
    assert executor.relations() == sorted(graph.relations)
