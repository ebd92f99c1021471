"""Small graphs with odd names, patterns over them, and what brute force finds there."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

from hypothesis import strategies as st

from kg_retrievers.database.executor import Executor
from kg_retrievers.database.rendering import render
from kg_retrievers.graph import KnowledgeGraph, Known, Pattern, PatternTriple, Term, Triple, Unknown

#: A target, and the facts that make it one.
Found = tuple[str | None, tuple[Triple, ...]]

RELATIONS = ["directed by", "r.s", "R.S", "x`y"]
KEYS = ["a", "A", "é", "e\u0301", "\"'`\n\\", "$n0"]
TYPES = ["Film", "it's a Person"]


def random_graph(seed: int) -> KnowledgeGraph:
    """A small graph with parallel relations, self-loops, odd names and types."""
    choose = random.Random(seed)
    keys = KEYS[: choose.randint(2, 6)]
    facts = [(choose.choice(keys), choose.choice(RELATIONS), choose.choice(keys)) for _ in range(choose.randint(1, 14))]
    types = {key: choose.sample(TYPES, choose.randint(0, 2)) for key in keys}
    return KnowledgeGraph.from_triples(facts, types=types)


#: The options of `render` that change what is found, or how it is asked for.
MODES = {"direction": st.sampled_from(["ignore", "respect"])}


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    """A pattern over the names of `random_graph`, some of which a graph may lack."""
    keys = st.sampled_from([*KEYS, "nobody"])
    types = {name: draw(st.sampled_from([None, None, None, *TYPES])) for name in "xyz"}
    unknown = st.sampled_from("xyz").map(lambda name: Unknown(name, types[name]))
    known = st.builds(lambda key, type: Known("text", type, key), keys, st.sampled_from([None, None, *TYPES]))
    node = st.one_of(unknown, unknown, known, keys.map(Known))
    relation = st.one_of(st.sampled_from(RELATIONS).map(Known), st.sampled_from("rs").map(Unknown))
    triples = draw(st.lists(st.builds(PatternTriple, node, relation, node), min_size=1, max_size=4))
    nodes = Pattern(tuple(triples)).nodes
    pairs = draw(st.lists(st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)), max_size=2))
    unknowns = [node.name for node in nodes if isinstance(node, Unknown)]
    target = draw(st.sampled_from([None, *unknowns]))
    different = tuple((a, b) for a, b in pairs if a != b)
    return Pattern(tuple(triples), target, different, revisits=draw(st.booleans()))


def brute_force(graph: KnowledgeGraph, pattern: Pattern, direction: str) -> set[Found]:
    """All targets with the facts that make them targets."""
    nodes = pattern.nodes
    facts = list(graph.triples())
    found = set()
    choices = [
        [
            key
            for key in graph.entities
            if (not isinstance(node, Known) or key == (node.entity or node.text))
            and (node.type is None or node.type in graph.types_of(key))
        ]
        for node in nodes
    ]
    known = {node for node in nodes if isinstance(node, Known)}
    for keys in product(*choices):
        key_of = dict(zip(nodes, keys, strict=True))
        clash = any(
            key_of[a] == key_of[b] and a != b and not pattern.revisits and (a in known or b in known)
            for a, b in product(nodes, nodes)
        ) or any(key_of[a] == key_of[b] for a, b in pattern.different)
        if clash:
            continue
        options = [
            [
                fact
                for fact in facts
                if ((fact.head, fact.tail) == (key_of[head], key_of[tail]))
                or (direction == "ignore" and (fact.tail, fact.head) == (key_of[head], key_of[tail]))
                if isinstance(relation, Unknown) or fact.relation == relation.text
            ]
            for head, relation, tail in pattern.triples
        ]
        for chosen in product(*options):
            bound: dict[Term, str] = {}
            if all(
                isinstance(triple.relation, Known) or bound.setdefault(triple.relation, fact.relation) == fact.relation
                for triple, fact in zip(pattern.triples, chosen, strict=True)
            ):
                target = next((key_of[n] for n in nodes if isinstance(n, Unknown) and n.name == pattern.target), None)
                found.add((target, chosen))
    return found


def has_all_relations(graph: KnowledgeGraph, pattern: Pattern) -> bool:
    """Tell whether a pattern names no relation that the graph lacks."""
    return all(isinstance(relation, Unknown) or relation.text in graph.relations for _, relation, _ in pattern.triples)


def found_by(executor: Executor, pattern: Pattern, **options: Any) -> list[Found]:
    """What the rendered pattern finds in a database, row by row."""
    query, parameters = render(pattern, executor.schema(), executor.dialect, **options)
    rows = executor.run(query, parameters, limit=100_000)
    assert not rows.truncated
    first = int(pattern.target is not None)
    edges = range(first, first + len(pattern.triples))
    return [(row[0] if first else None, tuple(row[i].triple for i in edges)) for row in rows.rows]
