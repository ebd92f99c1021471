"""Small graphs and patterns over their names, at random."""

from __future__ import annotations

import random
from typing import Any

from kg_retrievers import KnowledgeGraph, Known, Pattern, Unknown
from kg_retrievers.graph import Term
from kg_retrievers.graph.operations import Condition, Operation

LABELS = {"Q1": "Ann", "Q2": "Ann", "Q3": "Bob", "Q4": "Cleo"}
KEYS = [*LABELS, "Bern", "Dora", "Eve", "12", "1990", "7 m"]
RELATIONS = ["owns", "likes", "dated", "knows"]
TYPES = ["Person", "Place"]


def random_graph(choose: random.Random) -> KnowledgeGraph:
    """A small graph with namesakes, values, perhaps types, self-loops and parallel relations."""
    keys = choose.sample(KEYS, choose.randint(4, 9))
    count = choose.randint(4, 16)
    facts = [(choose.choice(keys), choose.choice(RELATIONS), choose.choice(keys)) for _ in range(count)]
    typed = choose.random() < 0.4
    types = {key: choose.sample(TYPES, choose.randint(0, 2)) for key in keys} if typed else {}
    labels = {key: label for key, label in LABELS.items() if key in keys}
    return KnowledgeGraph.from_triples(facts, labels=labels, types=types)


def random_pattern(choose: random.Random, graph: KnowledgeGraph, *, exact: bool = False) -> Pattern:
    """A pattern over the names of a graph, with an unknown; perhaps with misspelt names, and no word of direction."""
    kinds = [None, None, None, *graph.types]
    unknowns = {name: Unknown(name, choose.choice(kinds)) for name in "xyz"}
    names, relations = list(graph.names), list(graph.relations)

    def node() -> Term:
        if choose.random() < 0.65:
            return unknowns[choose.choice("xyz")]
        key = choose.choice(list(graph.entities))
        return Known(misspelt(choose.choice(names))) if choose.random() < 0.6 else Known(graph.label(key), None, key)

    def misspelt(name: str) -> str:
        return name[:-1] + "x" if not exact and choose.random() < 0.15 else name

    def relation() -> Term:
        return Known(misspelt(choose.choice(relations))) if choose.random() < 0.9 else Unknown("p")

    triples = [
        (unknowns["x"], relation(), node()),
        *((node(), relation(), node()) for _ in range(choose.randint(0, 2))),
    ]
    nodes = Pattern.of(*triples).nodes
    inside = [node.name for node in nodes if isinstance(node, Unknown)]
    parts: dict[str, Any] = {
        "target": choose.choice(inside),
        "directed": choose.choice([True, False] if exact else [None, None, True, False]),
    }
    if choose.random() < 0.2 and len(nodes) > 1:
        parts["different"] = [tuple(choose.sample(nodes, 2))]
    if choose.random() < 0.25:
        named = names[:2] if exact else ["Ann", "Bob"]
        conditions: list[Any] = [
            ("=", "12"),
            (">", 5),
            ("contains", "n"),
            ("in", named),
            ("!=", "12"),
        ]
        parts["conditions"] = [Condition(choose.choice(inside), *choose.choice(conditions))]
    if choose.random() < 0.2:
        end = choose.choice([Known(choose.choice(names)), Unknown("w")])
        absent = (unknowns[choose.choice(inside)], Known(choose.choice(relations)), end)
        parts["absent"] = [choose.choice([absent, absent[::-1]])]
    if choose.random() < 0.3:
        parts["operation"] = random_operation(choose, inside)
    return Pattern.of(*triples, **parts, typed=True if choose.random() < 0.1 else None)


def random_operation(choose: random.Random, inside: list[str]) -> Operation:
    """An operation over the unknowns of a pattern."""
    kind: Any = choose.choice(["count", "exists", "max", "min", "order", "list", "compare"])
    by, of = choose.choice(inside), choose.choice(["value", "count"])
    if kind in ("count", "exists"):
        return Operation(kind)
    if kind == "list":
        return Operation("list", (by,), "count", ">=", choose.randint(1, 3))
    if kind == "compare":
        return Operation("compare", (by, choose.choice(inside)), of, "=")  # type: ignore[arg-type]
    return Operation(kind, (by,), of, limit=choose.choice([1, 2]) if kind == "order" else None)  # type: ignore[arg-type]
