"""What a pattern gives on a small graph, by its rules alone: all assignments, one by one, of names written exactly.

Shares with the package only how values are read and compared, and when a walk may return. Rules:

- A known node is the entity with its key where it is pinned, else each entity called so, else the one with this key.
- The directions of the triples count with an operation, unless the pattern says that they do not.
- A node with a type is an entity of this type or of none; types do not count where the graph has none.
- `distinct` as of `match_pattern`; `different` always holds.
- An absent group holds if no entities of its own make all of its triples facts. A known text stands in each of its
  triples for any entity called so, an unknown relation for any relation.
- A condition looks at the label, "contains" at all names, "in" at the key, else at the names.
- Attributes of a triple come from one of the sets of its fact. Their values are like entities that follow the others,
  sorted by their texts, but never answers: they are the value if one is the target.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from math import fsum
from typing import Any, NamedTuple

from kg_retrievers.graph import KnowledgeGraph, Known, Pattern, PatternTriple, Term, Triple, Unknown
from kg_retrievers.graph.operations import Condition, Operation
from kg_retrievers.graph.pattern import FactAttribute, decide_revisits
from kg_retrievers.graph.values import Value, holds, read_value, unit_symbol

#: What each term of a pattern is.
Assignment = dict[Term, str]


class Plain(NamedTuple):
    """What a pattern gives: the value of its operation, the answers, and whether there is anything to say."""

    value: Any
    answers: list[str]
    known: bool = True


NOTHING = Plain(None, [], False)

#: Begins the keys of values of attributes.
VALUE = "\uffff"


class Named:
    """A graph in which values of attributes are called like entities."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self.graph = graph
        sets = [one for fact in graph.triples() for one in graph.attributes(fact)]
        values = {VALUE + text for one in sets for value in one.values() for text in _texts(value)}
        self.entities = [*graph.entities, *sorted(values)]

    def __contains__(self, fact: Triple) -> bool:
        return fact in self.graph

    def __getattr__(self, name: str) -> Any:
        return getattr(self.graph, name)

    def label(self, key: str) -> str:
        return key[1:] if key[0] == VALUE else self.graph.label(key)

    def value(self, key: str) -> Value | None:
        return read_value(key[1:]) if key[0] == VALUE else self.graph.value(key)

    def aliases(self, key: str) -> list[str]:
        return [] if key[0] == VALUE else self.graph.aliases(key)


def _texts(value: Any) -> list[str]:
    several = value if isinstance(value, list) else [value]
    return [str(one).lower() if isinstance(one, bool) else str(one) for one in several]


def evaluate(graph: KnowledgeGraph, pattern: Pattern, *, distinct: str, direction: str) -> Plain:
    """Return what a pattern gives; see `_evaluate`."""
    if not pattern.attributes:
        return _evaluate(graph, pattern, distinct=distinct, direction=direction)
    named: Any = Named(graph)
    operation = pattern.operation or Operation("list" if pattern.target else "exists")
    plain = _evaluate(
        named, replace(pattern, operation=operation), distinct=distinct, direction=_ways(pattern, direction)
    )
    told = [_shown(named, key) for key in plain.answers]
    if pattern.target in pattern.attribute_unknowns and told and not isinstance(plain.value, dict):
        plain = plain._replace(value=told[0] if len(told) == 1 else told)
    return plain._replace(answers=[key for key in plain.answers if key[0] != VALUE])


def _ways(pattern: Pattern, direction: str) -> str:
    return "respect" if pattern.operation is None else direction


def _evaluate(graph: KnowledgeGraph, pattern: Pattern, *, distinct: str, direction: str) -> Plain:
    """Return what a pattern gives.

    Args:
        graph: The graph.
        pattern: The pattern.
        distinct: As of `SimGRAGRetriever`.
        direction: As of `SimGRAGRetriever`.
    """

    directed = _directed(pattern, direction)

    def find(part: Pattern) -> list[Assignment]:
        return _found(graph, part, distinct, directed)

    def having(assignments: list[Assignment], *names: str | None) -> list[Assignment]:
        needed = {Unknown(name) for name in names if name in pattern.attribute_unknowns}
        return [one for one in assignments if needed <= one.keys()]

    operation = pattern.operation
    if operation is not None and operation.kind == "compare":
        parts = [(name, having(find(_part(pattern, name)), name)) for name in operation.by]
        sides = [sorted(_of_unknown(some, name), key=_id(graph)) for name, some in parts]
        return _compared(graph, operation, *sides)
    assignments = find(pattern)
    if operation is not None and operation.kind == "exists":
        return Plain(bool(assignments), [])
    if operation is not None and operation.kind == "table":
        return _table(graph, operation, having(assignments, *operation.by))
    by = operation.by if operation and operation.kind != "share" else ()
    assignments = having(assignments, pattern.target, *by, operation.group if operation else None)
    targets = sorted(_of_unknown(assignments, pattern.target), key=_id(graph))
    if operation is None:
        return Plain(None, targets) if assignments else NOTHING
    if operation.kind == "share":
        whole = set(targets) | _of_unknown(having(find(_without_limits(pattern)), pattern.target), pattern.target)
        return Plain(_plain_number(100 * len(targets) / len(whole)), []) if whole else NOTHING
    rows = [
        tuple(one[_unknown(one, name)] for name in (pattern.target, *operation.by, operation.group) if name)
        for one in assignments
    ]
    if operation.by and operation.of == "value":
        rows = [row for row in rows if row[1] in _comparable(graph, {row[1] for row in rows})]
    if operation.group is None:
        return _ungrouped(graph, operation, rows)
    if operation.period:
        return _by_period(graph, pattern, operation, rows)
    groups = {row[-1]: _ungrouped(graph, operation, [one[:-1] for one in rows if one[-1] == row[-1]]) for row in rows}
    return _table_of(graph, pattern, {key: one for key, one in groups.items() if one.known})


# --- assignments ----------------------------------------------------------------------------------------------------


def _found(graph: KnowledgeGraph, pattern: Pattern, distinct: str, directed: bool) -> list[Assignment]:
    if distinct != "auto":
        return _all(graph, pattern, distinct, directed)
    revisits = decide_revisits(pattern)
    found = _all(graph, pattern, "none" if revisits.allowed else "known", directed)
    return found if found or revisits.certain else _all(graph, pattern, "none", directed)


def _all(graph: KnowledgeGraph, pattern: Pattern, distinct: str, directed: bool) -> list[Assignment]:
    found = []
    for one in _joined(graph, pattern.triples, {}, directed):
        fits = _differ(pattern, one, distinct) and _satisfies(graph, pattern.conditions, one)
        if fits and not any(_is_present(graph, pattern, group, one, directed) for group in pattern.absent_groups()):
            found += _with_attributes(graph, pattern, one, directed)
    return found


def _with_attributes(graph: KnowledgeGraph, pattern: Pattern, one: Assignment, directed: bool) -> list[Assignment]:
    """Return an assignment with each choice of values of the attributes of its facts."""
    found = [one]
    for number, (head, relation, tail) in enumerate(pattern.triples):
        if not (own := [each for each in pattern.attributes if each.triple == number]):
            continue
        places: Any = head, ("relation", relation), tail
        fact = Triple(*(one[place] for place in places))
        facts = [fact] if directed else dict.fromkeys([fact, Triple(*fact[::-1])])
        sets = [each for way in facts if way in graph for each in graph.attributes(way) or [{}]]
        if own:
            found = [
                more for before in found for each in sets for more in _chosen_of(graph, pattern, own, before, each)
            ]
    return found


def _chosen_of(
    graph: KnowledgeGraph, pattern: Pattern, own: Sequence[FactAttribute], before: Assignment, said: dict[str, Any]
) -> list[Assignment]:
    found = [before]
    for each in own:
        if each.name not in said:
            found = found if each.optional else []
            continue
        keys = [VALUE + text for text in _texts(said[each.name])]
        conditions = [one for one in pattern.conditions if one.unknown == each.unknown]
        keys = [key for key in keys if all(satisfies(graph, one, key) for one in conditions)]
        term = Unknown(each.unknown)
        found = [{**one, term: key} for one in found for key in keys if one.get(term, key) == key]
    return found


def _joined(
    graph: KnowledgeGraph, triples: Sequence[PatternTriple], before: Assignment, directed: bool, apart: bool = False
) -> Iterator[Assignment]:
    """Yield what the terms of some triples are, so that all are facts; known texts `apart` are not the same node."""
    if not triples:
        yield before
        return
    terms = triples[0]
    places = [_place(term, at, len(triples) if apart else 0) for at, term in enumerate(terms)]
    for fact in graph.triples():
        turned = Triple(fact.tail, fact.relation, fact.head)
        for texts in (fact,) if directed else dict.fromkeys([fact, turned]):
            after = dict(before)
            fits = all(
                _may_be(graph, term, text, at == 1) for at, (term, text) in enumerate(zip(terms, texts, strict=True))
            )
            if fits and all(after.setdefault(place, text) == text for place, text in zip(places, texts, strict=True)):
                yield from _joined(graph, triples[1:], after, directed, apart)


def _place(term: Term, at: int, triple: int) -> Any:
    """Return what is the same wherever a term stands; a relation is never a node of its name."""
    if triple and (at == 1 or isinstance(term, Known)):
        return term, at, triple
    return ("relation", term) if at == 1 else term


def _may_be(graph: KnowledgeGraph, term: Term, text: str, relation: bool) -> bool:
    if relation:
        return isinstance(term, Unknown) or term.text == text
    types = graph.types_of(text)
    if term.type is not None and types and term.type not in types:
        return False
    if isinstance(term, Unknown):
        return True
    return text == term.entity if term.entity is not None else text in _called(graph, term.text)


def _called(graph: KnowledgeGraph, text: str) -> list[str]:
    return graph.entities_named(text) or [key for key in graph.entities if key == text]


def _differ(pattern: Pattern, one: Assignment, distinct: str) -> bool:
    nodes = pattern.nodes
    for at, a in enumerate(nodes):
        for b in nodes[at + 1 :]:
            apart = distinct == "nodes" or (distinct == "known" and isinstance(a, Known) | isinstance(b, Known))
            if one[a] == one[b] and (apart or (a, b) in pattern.different or (b, a) in pattern.different):
                return False
    return True


def _satisfies(graph: KnowledgeGraph, conditions: Sequence[Condition], one: Assignment) -> bool:
    entity = {term.name: key for term, key in one.items() if isinstance(term, Unknown)}
    return all(
        satisfies(graph, condition, entity[condition.unknown])
        for condition in conditions
        if condition.unknown in entity
    )


def satisfies(graph: KnowledgeGraph, condition: Condition, key: str) -> bool:
    """Return whether an entity satisfies a condition."""
    names = [graph.label(key), *graph.aliases(key)]
    if condition.operator == "contains":
        return any(str(condition.value).casefold() in name.casefold() for name in names)
    if condition.operator == "in" and key[0] == VALUE:
        assert isinstance(condition.value, tuple)
        return names[0].casefold() in {str(name).casefold() for name in condition.value}
    if condition.operator == "in":
        wanted = condition.value if isinstance(condition.value, tuple) else ()
        return any(key == name or (name not in graph.entities and name in names) for name in map(str, wanted))
    value = graph.value(key) or Value(names[0])
    if condition.operator == "between":
        low, high = condition.literals
        return holds(value, ">=", low) and holds(value, "<=", high)
    return holds(value, condition.operator, condition.literals[0])


def _is_present(
    graph: KnowledgeGraph, pattern: Pattern, group: Sequence[PatternTriple], one: Assignment, directed: bool
) -> bool:
    """Return whether the triples of an absent group are facts, for some entities of its own."""
    roots: Assignment = {node: key for node, key in one.items() if isinstance(node, Unknown)}
    found = _joined(graph, group, roots, directed, apart=True)
    return any(_satisfies(graph, pattern.conditions, more) for more in found)


# --- operations -----------------------------------------------------------------------------------------------------


def _directed(pattern: Pattern, direction: str) -> bool:
    if pattern.directed is None:
        return direction == "respect" or pattern.operation is not None
    return pattern.directed


def _id(graph: KnowledgeGraph) -> Callable[[str], int]:
    return list(graph.entities).index


def _unknown(one: Assignment, name: str | None) -> Term:
    return next(term for term in one if isinstance(term, Unknown) and term.name == name)


def _of_unknown(assignments: Sequence[Assignment], name: str | None) -> set[str]:
    if name is None:
        return set()
    return {one[_unknown(one, name)] for one in assignments}


def _without_limits(pattern: Pattern) -> Pattern:
    """Return the whole of a share: a pattern without the conditions on what it is by, or its first triples alone."""
    operation = pattern.operation
    assert operation is not None
    kept = tuple(one for one in pattern.conditions if one.unknown not in operation.by)
    if not isinstance(operation.whole, int):
        return replace(pattern, conditions=kept, operation=None)
    own = tuple(one for one in pattern.attributes if one.triple < operation.whole)
    part = Pattern(pattern.triples[: operation.whole], pattern.target, revisits=pattern.revisits, attributes=own)
    names = {node.name for node in part.nodes if isinstance(node, Unknown)} | {one.unknown for one in own}
    conditions = tuple(one for one in kept if one.unknown in names)
    return replace(part, directed=pattern.directed, conditions=conditions)


def _plain_number(number: float) -> int | float:
    return int(number) if float(number).is_integer() else number


def _shown(graph: KnowledgeGraph, key: str) -> Any:
    value = graph.value(key)
    return graph.label(key) if value is None else value.plain


def _comparable(graph: KnowledgeGraph, keys: set[str]) -> dict[str, tuple[float, ...]]:
    """Return what some entities are compared by, of those that can be: dates or numbers of one unit."""
    found = _ranks(graph, Operation("max", ("x",)), {key: {key} for key in keys}, True)[0]
    return {key: found[key] for key in sorted(found, key=_id(graph))}


def _ungrouped(graph: KnowledgeGraph, operation: Operation, rows: Sequence[tuple[str, ...]]) -> Plain:
    """Return what an operation gives for targets, or targets with what they are compared by."""
    targets = sorted({row[0] for row in rows}, key=_id(graph))
    of_target = {key: {row[1] for row in rows if row[0] == key} for key in targets} if operation.by else {}
    match operation.kind:
        case "count":
            return Plain(len(targets), [])
        case "list" if not operation.by:
            return Plain(None, targets) if targets else NOTHING
        case "sum" | "mean" | "range":
            value = _aggregate(graph, operation, of_target)
            return NOTHING if value is None else Plain(value, [])
    return _chosen(graph, operation, of_target)


def _aggregate(graph: KnowledgeGraph, operation: Operation, of_target: dict[str, set[str]]) -> Any:
    if operation.of == "count":
        numbers: list[float | None] = [len(by) for by in of_target.values()]
    elif operation.kind == "range":
        ranks = _comparable(graph, {key for by in of_target.values() for key in by})
        ends = [choose(ranks, key=lambda key: ranks[key]) for choose in (min, max)] if ranks else []
        last = [key for key in ranks if ends and ranks[key] == ranks[ends[1]]][-1:]
        return [_shown(graph, key) for key in (*ends[:1], *last)] or None
    else:
        read = [graph.value(key) for by in of_target.values() for key in by]
        numbers = [one.number if one else None for one in read]
    known = [number for number in numbers if number is not None]
    if not known or len(known) < len(numbers):
        return None
    if operation.kind == "range":
        return [_plain_number(min(known)), _plain_number(max(known))]
    return _plain_number(fsum(known) / (1 if operation.kind == "sum" else len(known)))


def _table(graph: KnowledgeGraph, operation: Operation, assignments: Sequence[Assignment]) -> Plain:
    rows = {tuple(one[_unknown(one, name)] for name in operation.by) for one in assignments}
    if not rows:
        return NOTHING
    ordered = sorted(rows, key=lambda row: [_id(graph)(key) for key in row])
    answers = dict.fromkeys(row[at] for at in range(len(operation.by)) for row in ordered)
    cells = [[_shown(graph, key) for key in row] for row in ordered]
    return Plain({"columns": [*operation.by], "rows": cells}, list(answers))


def _table_of(graph: KnowledgeGraph, pattern: Pattern, groups: dict[str, Plain]) -> Plain:
    """Return the table of groups: dates and numbers in order, others by falling value."""
    operation = pattern.operation
    assert operation is not None
    assert operation.group is not None
    if not groups:
        return NOTHING
    labels, ids = {key: graph.label(key) for key in groups}, _id(graph)
    ranks = _comparable(graph, set(groups))
    if len(ranks) == len(groups):
        order = sorted(groups, key=lambda key: (ranks[key], ids(key)))
    elif operation.kind in ("list", "range"):
        order = sorted(groups, key=lambda key: (labels[key], ids(key)))
    else:
        order = sorted(groups, key=lambda key: (-_sortable(groups[key].value), labels[key], ids(key)))
    return Plain(_titled(graph, pattern, operation, labels, groups, order), order)


def _by_period(graph: KnowledgeGraph, pattern: Pattern, operation: Operation, rows: list[tuple[str, ...]]) -> Plain:
    """Return the table of the days, months, years, decades or centuries of dates, in order."""
    spans: dict[str, set[str]] = {}
    for key in {row[-1] for row in rows}:
        value = graph.value(key)
        if value is not None and value.first is not None and value.last is not None:
            spans[key] = {_period(value.first, str(operation.period)), _period(value.last, str(operation.period))}
    named = [(*row[:-1], next(iter(spans[row[-1]]))) for row in rows if len(spans.get(row[-1], ())) == 1]
    groups = {one: _ungrouped(graph, operation, [row[:-1] for row in named if row[-1] == one]) for _, *_, one in named}
    groups = {one: plain for one, plain in groups.items() if plain.known}
    table = _titled(graph, pattern, operation, {one: one for one in groups}, groups, sorted(groups))
    return Plain(table, []) if groups else NOTHING


def _period(day: date, period: str) -> str:
    match period:
        case "day":
            return day.isoformat()
        case "month":
            return day.isoformat()[:7]
        case "year":
            return f"{day.year}"
        case "decade":
            return f"{day.year // 10}0s"
        case _:
            number = (day.year + 99) // 100
            return f"{number}{'st' if number == 21 else 'th'} century"


def _titled(
    graph: KnowledgeGraph,
    pattern: Pattern,
    operation: Operation,
    labels: dict[str, str],
    groups: dict[str, Plain],
    order: list[str],
) -> dict[str, Any]:
    rows = []
    for key in order:
        named = [[graph.label(answer) for answer in groups[key].answers]] if groups[key].answers else []
        rows.append([labels[key], *named, *([] if operation.kind == "list" else [groups[key].value])])
    titles = [operation.group, *([pattern.target] if operation.kind in ("list", "max", "min") else [])]
    return {"columns": [*titles, *([] if operation.kind == "list" else [operation.kind])], "rows": rows}


def _sortable(value: Any) -> float:
    return value if isinstance(value, int | float) else 0.0


def _chosen(graph: KnowledgeGraph, operation: Operation, of_target: dict[str, set[str]]) -> Plain:
    if operation.kind == "list":
        assert operation.comparison is not None
        wanted = Value("", number=operation.number)
        kept = [key for key, by in of_target.items() if holds(Value("", number=len(by)), operation.comparison, wanted)]
        return Plain([len(of_target[key]) for key in kept], kept) if kept else NOTHING
    descending = operation.descending if operation.kind == "order" else operation.kind == "max"
    ranks, shown = _ranks(graph, operation, of_target, descending)
    sign = -1 if descending else 1
    order = sorted(ranks, key=lambda key: tuple(sign * part for part in ranks[key]))  # stable: equal ones as stored
    if not order:
        return NOTHING
    if operation.kind == "order":
        last = None if operation.limit is None else operation.offset + operation.limit
        wanted = {ranks[key] for key in order[operation.offset : last]}
        first = [key for key in order if ranks[key] in wanted]
        return Plain([shown[key] for key in first], first) if first else NOTHING
    return Plain(shown[order[0]], [key for key in order if ranks[key] == ranks[order[0]]])


def _ranks(
    graph: KnowledgeGraph, operation: Operation, of_target: dict[str, set[str]], descending: bool
) -> tuple[dict[str, tuple[float, ...]], dict[str, Any]]:
    if operation.of == "count":
        counts = {key: len(by) for key, by in of_target.items()}
        return {key: (count,) for key, count in counts.items()}, dict(counts)
    compared = sorted(set().union(*of_target.values()), key=_id(graph))
    values = {key: value for key in compared if (value := graph.value(key)) is not None}
    dates = {
        key: (value.first.toordinal(), value.last.toordinal())
        for key, value in values.items()
        if value.first and value.last
    }
    numbers = {key: (value.number,) for key, value in values.items() if value.number is not None}
    by_rank: dict[str, Any] = dates if len(dates) > len(numbers) else _of_one_unit(numbers, values)
    ranks, shown = {}, {}
    for target, by in of_target.items():
        if known := [key for key in by_rank if key in by]:
            best = (max if descending else min)(known, key=lambda key: by_rank[key])
            ranks[target] = by_rank[best]
            shown[target] = values[best].plain
    return ranks, shown


def _of_one_unit(numbers: dict[str, Any], values: dict[str, Value]) -> dict[str, Any]:
    """Return the numbers without a unit, and those in the most frequent one; of two, the one that comes first."""
    units = {key: unit_symbol(values[key].unit) for key in numbers}
    most = Counter(unit for unit in units.values() if unit).most_common(1)
    return {key: rank for key, rank in numbers.items() if units[key] in ("", *(unit for unit, _ in most))}


def _compared(graph: KnowledgeGraph, operation: Operation, one: Sequence[str], other: Sequence[str]) -> Plain:
    comparison = operation.comparison
    assert comparison is not None
    if operation.of == "count":
        return Plain(holds(Value("", number=len(one)), comparison, Value("", number=len(other))), [])
    left, right = ([value for key in side if (value := graph.value(key))] for side in (one, other))
    opposite: Any = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}[comparison]
    if one and other and not left and not right and comparison in ("=", "!="):
        if set(one) == set(other):
            return Plain(comparison == "=", [])
        return NOTHING if set(one) & set(other) else Plain(comparison == "!=", [])
    pairs = [(a, b) for a in left for b in right]
    for truth, said in ((True, comparison), (False, opposite)):
        if pairs and all(holds(a, said, b) for a, b in pairs):
            return Plain(truth, [])
    return NOTHING


def _part(pattern: Pattern, name: str) -> Pattern:
    """Return the triples that are joined to an unknown, with all that is said of their nodes."""
    nodes: set[Term] = {node for node in pattern.nodes if isinstance(node, Unknown) and node.name == name}
    nodes |= {pattern.triples[one.triple].head for one in pattern.attributes if one.unknown == name}
    for _ in pattern.triples:
        nodes |= {node for head, _, tail in pattern.triples if {head, tail} & nodes for node in (head, tail)}
    groups = [
        group
        for group in pattern.absent_groups()
        if any(nodes & {head, tail} - _known(nodes) for head, _, tail in group)
    ]
    absent = tuple(triple for group in groups for triple in group)
    triples = tuple(triple for triple in pattern.triples if triple.head in nodes)
    names = {end.name for head, _, tail in (*triples, *absent) for end in (head, tail) if isinstance(end, Unknown)}
    own = [one for one in pattern.attributes if pattern.triples[one.triple] in triples]
    attributes = tuple(replace(one, triple=triples.index(pattern.triples[one.triple])) for one in own)
    return replace(
        pattern,
        triples=triples,
        attributes=attributes,
        absent=absent,
        target=name,
        operation=None,
        different=tuple(pair for pair in pattern.different if {*pair} <= nodes),
        conditions=tuple(one for one in pattern.conditions if one.unknown in {*names, *(each.unknown for each in own)}),
    )


def _known(nodes: set[Term]) -> set[Term]:
    return {node for node in nodes if isinstance(node, Known)}
