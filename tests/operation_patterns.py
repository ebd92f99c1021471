"""Patterns with conditions, absent triples, attributes of facts and operations, drawn over the names of any graph."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kg_retrievers.errors import PatternError
from kg_retrievers.graph import FactAttribute, KnowledgeGraph, Known, Pattern, PatternTriple, Term, Unknown
from kg_retrievers.graph.operations import Condition, Operation

VALUES = [
    "1987", "1990", "1987-03", "1987-03-02", "2 March 1987", "12 m", "12", "12.5 ft", "1,250", "1250 m", "-3",
    "true", "no", "yes",
]  # fmt: skip
LITERALS: list[Any] = [*VALUES, 1987, 12, 12.5, 1250, True, False, "Ann", "bern", "May 1990", "1987-01-01"]


@st.composite
def operation_patterns(draw: st.DrawFn, graph: KnowledgeGraph) -> Pattern:
    """A pattern over the names of a graph."""
    types = st.sampled_from([None, None, None, *graph.types])
    unknowns = {name: Unknown(name, draw(types)) for name in "xyzvw"}
    keys = list(graph.entities)
    known = st.one_of(
        st.sampled_from([*graph.names, *keys]).map(Known), st.sampled_from(keys).map(lambda key: Known("?", None, key))
    )
    relation = st.sampled_from([*(Known(name) for name in graph.relations), Unknown("p")])
    own = st.sampled_from("xyz").map(unknowns.__getitem__)
    node = st.one_of(own, own, own, known)
    triples = draw(st.lists(st.builds(PatternTriple, node, relation, node), min_size=1, max_size=3))
    nodes = Pattern(tuple(triples)).nodes
    inside = [term.name for term in nodes if isinstance(term, Unknown)]
    absent = draw(_absent(unknowns, inside, known, [Known(name) for name in graph.relations])) if inside else []
    ends = [end for head, _, tail in absent for end in (head, tail)]
    attributes = draw(_of_facts(len(dict.fromkeys(triples)), graph.attribute_names))
    inside += dict.fromkeys(one.unknown for one in attributes)
    named = list(dict.fromkeys([*inside, *(end.name for end in ends if isinstance(end, Unknown))]))
    most = draw(st.sampled_from([0, 1, 2]))
    conditions = draw(st.lists(_condition(named, [*graph.names, *keys]), max_size=most)) if named else []
    pairs = draw(st.lists(st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)), max_size=1))
    target, operation = draw(st.sampled_from(inside)) if inside else None, draw(_operation(inside))
    first = [*dict.fromkeys(triples)]  # as the pattern keeps them
    if operation and isinstance(operation.whole, int):
        named = {end for head, _, tail in first[: operation.whole] for end in (head, tail)}
        if operation.whole > len(first) or not any(isinstance(end, Unknown) and end.name == target for end in named):
            operation = None
    pattern: dict[str, Any] = {
        "target": target,
        "different": [(a, b) for a, b in pairs if a != b],
        "directed": draw(st.sampled_from([None, None, True, False])),
        "conditions": conditions,
        "operation": operation,
        "attributes": attributes,
    }
    kept = [triple for triple in absent if triple not in triples]
    try:
        return Pattern.of(*triples, absent=kept, **pattern)
    except PatternError:  # a group of absent triples around two unknowns, or a condition on what is gone
        pattern["conditions"] = [one for one in conditions if one.unknown in inside]
        return Pattern.of(*triples, **pattern)


@st.composite
def _of_facts(draw: st.DrawFn, triples: int, names: list[str]) -> list[FactAttribute]:
    """Up to two attributes of facts."""
    if not names:
        return []
    of_fact = st.builds(
        FactAttribute,
        st.integers(0, triples - 1),
        st.sampled_from(names),
        st.sampled_from("ab"),
        st.sampled_from([False, False, True]),
    )
    return draw(st.lists(of_fact, max_size=draw(st.sampled_from([0, 0, 2]))))


@st.composite
def _absent(draw: st.DrawFn, unknowns: dict[str, Unknown], inside: list[str], known: Any, relations: Any) -> Any:
    """Up to two triples: around an unknown of the pattern, and beyond it."""
    root: Term = unknowns[draw(st.sampled_from(inside))]
    further = draw(st.sampled_from([unknowns["w"], unknowns["v"], None, None]))
    there = further or draw(known)
    relation = st.sampled_from([*relations, Unknown("q")])
    triples = [(root, draw(relation), there)]
    if further is not None and draw(st.booleans()):
        end = draw(st.one_of(known, st.sampled_from([unknowns["v"], unknowns["w"], root])))
        triples.append((further, draw(st.sampled_from(relations)), end))
    turned = [(tail, name, head) if draw(st.booleans()) else (head, name, tail) for head, name, tail in triples]
    return [PatternTriple(*triple) for triple in turned] if draw(st.booleans()) else []


@st.composite
def _condition(draw: st.DrawFn, named: list[str], names: list[str]) -> Condition:
    unknown = draw(st.sampled_from(named))
    operator: Any = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "between", "contains", "in"]))
    if operator == "in":
        value: Any = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3))
    elif operator == "contains":
        value = draw(st.sampled_from(["an", "19", "Q", "m"]))
    elif operator in ("=", "!="):
        value = draw(st.sampled_from(LITERALS))
    else:
        numbers = st.sampled_from([*VALUES[:-3], 1987, 12, 12.5])
        value = [draw(numbers), draw(numbers)] if operator == "between" else draw(numbers)
    return Condition(unknown, operator, value)


@st.composite
def _operation(draw: st.DrawFn, inside: list[str]) -> Operation | None:
    kinds = [
        "count", "list", "max", "min", "order", "sum", "mean", "range", "share", "table", "compare", None,
    ] if inside else [None]  # fmt: skip
    kind: Any = draw(st.sampled_from([*kinds, "exists"]))
    if kind is None:
        return None
    group = draw(st.sampled_from([None, None, *inside]))
    if kind in ("count", "exists"):
        return Operation(kind, group=group if kind == "count" else None)
    by = (draw(st.sampled_from(inside)),)
    if kind in ("share", "table"):
        if kind == "share" and draw(st.booleans()):
            return Operation(kind, whole=draw(st.integers(1, 2)))
        return Operation(kind, by if kind == "share" else (*by, draw(st.sampled_from(inside))))
    of: Any = draw(st.sampled_from(["value", "count"]))
    comparison: Any = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">="]))
    if kind == "list":
        number = draw(st.integers(1, 3))
        plain = Operation("list", group=group)
        return draw(st.sampled_from([plain, Operation("list", by, of, comparison, number)]))
    if kind == "compare":
        return Operation("compare", (*by, draw(st.sampled_from(inside))), of, comparison)
    if kind == "order":
        limit, descending = draw(st.sampled_from([None, 1, 2])), draw(st.booleans())
        return Operation("order", by, of, limit=limit, descending=descending, offset=draw(st.integers(0, 2)))
    period = draw(st.sampled_from([None, "day", "month", "year", "decade", "century"])) if group else None
    return Operation(kind, by, of, group=group, period=period)
