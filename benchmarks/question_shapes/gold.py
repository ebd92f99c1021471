"""The gold answers of the questions of twelve shapes, from a graph file alone: no code of the package.

    python benchmarks/question_shapes/gold.py benchmarks/question_shapes/looked_at/NAME

prints each question with its gold answer, and fails at one whose gold is empty without being a refusal.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

_DATE = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?")
_NUMBER = re.compile(r"(-?\d[\d,]*(?:\.\d+)?)\s*(\S{0,12})")
_SCALES = {"thousand": 3, "million": 6, "billion": 9}
_SCHEMA = ("subClassOf", "subPropertyOf", "domain", "range", "inverseOf")

Fact = tuple[str, str, str]


def local(iri: str) -> str:
    """Return the last part of an IRI."""
    return re.split(r"[#/]", iri)[-1]


def number(text: str) -> float | None:
    """Return the number that a text begins with, a unit behind it or none."""
    found = _NUMBER.fullmatch(text.strip())
    scale = next((10**zeros for word, zeros in _SCALES.items() if word in text.split()), 1)
    return float(found[1].replace(",", "")) * scale if found else None


def comparable(text: str) -> tuple[int, Any]:
    """Return what values are compared by: numbers, or dates as their days."""
    date = _DATE.fullmatch(text.strip())
    if date and (date[2] or 1000 <= int(date[1]) <= 2100):
        return 1, (int(date[1]), int(date[2] or 0), int(date[3] or 0))
    value = number(text)
    if value is None:
        raise ValueError(f"{text!r} is no number and no date")
    return 0, value


def is_value(text: str) -> bool:
    """Tell whether a text is a number or a date."""
    try:
        comparable(text)
    except ValueError:
        return False
    return True


class Facts:
    """The facts of a graph file, by label."""

    def __init__(self, folder: Path) -> None:
        """Read them."""
        self.facts: list[Fact] = []
        self.types: dict[str, set[str]] = defaultdict(set)
        self.above: dict[str, set[str]] = defaultdict(set)
        self.called: dict[str, str] = {}
        if (folder / "graph.ttl").exists():
            self._read_turtle(folder / "graph.ttl")
        else:
            with (folder / "graph.tsv").open(newline="") as file:
                rows = [row for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if row]
            self.facts = [(row[0], row[1], row[2]) for row in rows[rows[0] == ["head", "relation", "tail"] :]]
            for head, relation, tail in self.facts:
                if relation.replace("_", " ") in ("type", "instance of", "is a"):
                    self.types[head].add(tail)
        self.facts = sorted(set(self.facts))
        self.out: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.into: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.around: dict[str, list[Fact]] = defaultdict(list)
        for fact in self.facts:
            head, relation, tail = fact
            self.out[head, relation].append(tail)
            self.into[tail, relation].append(head)
            self.around[head].append(fact)
            if tail != head:
                self.around[tail].append(fact)

    def _read_turtle(self, path: Path) -> None:
        import rdflib

        graph = rdflib.Graph()
        graph.parse(path)
        labels = {subject: str(label) for subject, label in graph.subject_objects(rdflib.RDFS.label)}

        def name(term: Any) -> str:
            return labels.get(term) or (local(term) if isinstance(term, rdflib.URIRef) else str(term))

        schema = {subject for subject, relation, _ in graph if local(relation) in _SCHEMA}
        used = {predicate for _, predicate, _ in graph} | {
            kind for _, _, kind in graph.triples((None, rdflib.RDF.type, None))
        }
        self.called = {label: local(term) for term, label in labels.items() if term in used}
        for subject, relation, other in graph:
            if relation == rdflib.RDF.type:
                if local(other) not in ("Class", "Property", "ObjectProperty", "DatatypeProperty"):
                    self.types[name(subject)].add(local(other))
            elif relation == rdflib.RDFS.subClassOf:
                self.above[local(subject)].add(local(other))
            elif relation != rdflib.RDFS.label and local(relation) not in _SCHEMA and subject not in schema:
                self.facts.append((name(subject), local(relation), name(other)))

    def of_type(self, kind: str) -> set[str]:
        """Return all things of a type and of those below it."""
        below, waiting = {kind}, [kind]
        while waiting:
            one = waiting.pop()
            new = {child for child, parents in self.above.items() if one in parents} - below
            below |= new
            waiting += new
        found = {thing for thing, kinds in self.types.items() if kinds & below}
        if not found:
            raise ValueError(f"nothing is a {kind!r}")
        return found

    def walk(self, things: Iterable[str], steps: Sequence[str]) -> set[str]:
        """Return the ends of a walk."""
        here = set(things)
        for step in steps:
            name = step.removeprefix("-")
            if not any(name == relation for _, relation in self.out):
                raise ValueError(f"no relation {name!r}")
            table = self.into if step.startswith("-") else self.out
            here = {end for thing in here for end in table.get((thing, name), ())}
        return here

    def chains(self, start: str, end: str, through: str | None) -> set[frozenset[Fact]]:
        """Return the shortest chains of facts between two things, perhaps through a thing of a type."""
        kinds = self.of_type(through) if through else None
        found: set[frozenset[Fact]] = set()
        waiting: deque[tuple[str, tuple[str, ...], tuple[Fact, ...]]] = deque([(start, (start,), ())])
        best = 6
        while waiting:
            here, seen, facts = waiting.popleft()
            if len(facts) > best:
                break
            if here == end:
                if kinds is None or kinds & set(seen[1:-1]):
                    best = min(best, len(facts))
                    found.add(frozenset(facts))
                continue
            if len(facts) == best:
                continue
            for fact in self.around[here]:
                there = fact[2] if fact[0] == here else fact[0]
                if there not in seen and (there == end or not is_value(there)):
                    waiting.append((there, (*seen, there), (*facts, fact)))
        return found


def gold(facts: Facts, expression: Sequence[Any]) -> Any:
    """Return the gold answer of an expression."""
    name, *args = expression
    sets: dict[str, Callable[..., set[str]]] = {
        "type": facts.of_type,
        "ends": lambda step: {fact[0 if step[0] == "-" else 2] for fact in facts.facts if fact[1] == step.lstrip("-")},
        "entity": lambda one: _known(facts, one),
        "path": lambda start, *steps: facts.walk(gold(facts, start), steps),
        "and": lambda *many: set.intersection(*(gold(facts, one) for one in many)),
        "or": lambda *many: set.union(*(gold(facts, one) for one in many)),
        "minus": lambda one, other: gold(facts, one) - gold(facts, other),
        "having": lambda one, steps, other: {
            thing for thing in gold(facts, one) if facts.walk([thing], steps) & gold(facts, other)
        },
        "where": lambda one, steps, *compared: {
            thing
            for thing in gold(facts, one)
            if any(_compares(value, *compared) for value in facts.walk([thing], steps))
        },
        "top": lambda one, steps, way, n: _ranked(_best(facts, gold(facts, one), steps, way), way, 0, n),
        "nth": lambda one, steps, way, n: _ranked(_best(facts, gold(facts, one), steps, way), way, n - 1, n),
        "top_count": lambda one, steps, way, n: _ranked(_counts(facts, gold(facts, one), steps), way, 0, n),
        "nth_count": lambda one, steps, way, n: _ranked(_counts(facts, gold(facts, one), steps), way, n - 1, n),
    }
    if name in sets:
        return sets[name](*args)
    match name:
        case "count":
            return len(gold(facts, args[0]))
        case "sum" | "mean" | "min" | "max" | "range":
            return _aggregate(name, _values(facts, gold(facts, args[0]), args[1]))
        case "sum_count" | "mean_count" | "min_count" | "max_count":
            return _aggregate(name.removesuffix("_count"), [*_counts(facts, gold(facts, args[0]), args[1]).values()])
        case "share":
            whole = gold(facts, args[1])
            return 100 * len(gold(facts, args[0]) & whole) / len(whole)
        case "group_count":
            return _grouped(facts, gold(facts, args[0]), args[1], len)
        case "group":
            kind, members, steps, by = args
            return _grouped(facts, gold(facts, members), by, lambda some: _aggregate(kind, _values(facts, some, steps)))
        case "parts":
            return [gold(facts, one) for one in args]
        case "same":
            return gold(facts, args[0]) == gold(facts, args[1])
        case "greater":
            one, other, steps, way = args
            return _ranked(_best(facts, gold(facts, one) | gold(facts, other), steps, way), way, 0, 1)
        case "connect":
            return facts.chains(*args[:2], args[2] if len(args) > 2 else None)
        case "describe":
            return set(facts.around[next(iter(_known(facts, args[0])))])
        case "common":
            one, other = ({_seen_from(fact, thing) for fact in facts.around[thing]} for thing in args)
            return {shared for shared in one & other if shared[2] not in args}
        case "differ":
            return _differences(facts, *args)
        case "overview":
            kinds = {kind for of_one in facts.types.values() for kind in of_one}
            return {kind: len(facts.of_type(kind)) for kind in sorted(kinds)}
        case "asks":
            return {relation for thing in facts.of_type(args[0]) for _, relation, _ in facts.around[thing]}
        case "refuse":
            return None
    raise ValueError(f"no function {name!r}")


def _known(facts: Facts, name: str) -> set[str]:
    if name not in facts.around:
        raise ValueError(f"no entity {name!r}")
    return {name}


def _compares(value: str, operator: str, *wanted: str) -> bool:
    one, others = comparable(value), [comparable(text) for text in wanted]
    if one[0] != others[0][0]:
        return False
    if one[0] == 1:  # a year is compared with the year of a day
        parts = [sum(part > 0 for part in other[1]) for other in others]
        cut = [one[1][:size] for size in parts]
        ends = [other[1][:size] for other, size in zip(others, parts, strict=True)]
    else:
        cut, ends = [one[1]] * len(others), [other[1] for other in others]
    match operator:
        case "=":
            return bool(cut[0] == ends[0])
        case "<":
            return bool(cut[0] < ends[0])
        case "<=":
            return bool(cut[0] <= ends[0])
        case ">":
            return bool(cut[0] > ends[0])
        case ">=":
            return bool(cut[0] >= ends[0])
        case "between":
            return bool(ends[0] <= cut[0] and cut[1] <= ends[1])
    raise ValueError(f"no operator {operator!r}")


def _values(facts: Facts, things: Iterable[str], steps: Sequence[str]) -> list[float]:
    texts = [text for thing in sorted(things) for text in sorted(facts.walk([thing], steps))]
    return [value for text in texts if (value := number(text)) is not None]


def _counts(facts: Facts, things: Iterable[str], steps: Sequence[str]) -> dict[str, int]:
    counts = {thing: len(facts.walk([thing], steps)) for thing in things}
    return {thing: count for thing, count in counts.items() if count}


def _best(facts: Facts, things: Iterable[str], steps: Sequence[str], way: str) -> dict[str, Any]:
    choose = max if way == "desc" else min
    found = {thing: [comparable(end) for end in facts.walk([thing], steps) if is_value(end)] for thing in things}
    return {thing: choose(values) for thing, values in found.items() if values}


def _ranked(keys: dict[str, Any], way: str, first: int, last: int) -> set[str]:
    """Return the things from one place to another, with those that tie with the last."""
    order = sorted(keys, key=keys.__getitem__, reverse=way == "desc")
    wanted = {keys[thing] for thing in order[first:last]}
    return {thing for thing in order if keys[thing] in wanted}


def _aggregate(kind: str, values: Sequence[float]) -> Any:
    if not values:
        return None
    match kind:
        case "sum":
            return sum(values)
        case "mean":
            return sum(values) / len(values)
        case "range":
            return [min(values), max(values)]
    return min(values) if kind == "min" else max(values)


def _grouped(
    facts: Facts, things: Iterable[str], steps: Sequence[str], of: Callable[[set[str]], Any]
) -> dict[str, Any]:
    groups: dict[str, set[str]] = defaultdict(set)
    for thing in things:
        for end in facts.walk([thing], steps):
            groups[end].add(thing)
    values = {end: of(members) for end, members in sorted(groups.items())}
    return {end: value for end, value in values.items() if value is not None}


def _seen_from(fact: Fact, thing: str) -> tuple[str, bool, str]:
    head, relation, tail = fact
    return (relation, True, tail) if head == thing else (relation, False, head)


def _differences(facts: Facts, one: str, other: str) -> dict[str, tuple[set[str], set[str]]]:
    ends: list[dict[tuple[str, bool], set[str]]] = [defaultdict(set), defaultdict(set)]
    for of_one, thing in zip(ends, (one, other), strict=True):
        for fact in facts.around[thing]:
            relation, forward, end = _seen_from(fact, thing)
            of_one[relation, forward].add(end)
    return {
        relation if forward else f"-{relation}": (ends[0][relation, forward], ends[1][relation, forward])
        for relation, forward in sorted(ends[0].keys() & ends[1].keys())
        if ends[0][relation, forward] != ends[1][relation, forward]
    }


def golds_of(facts: Facts, row: dict[str, Any]) -> list[Any]:
    """Return the gold answers of a question, any of which is right."""
    return [gold(facts, one) for one in row.get("golds") or [row["gold"]]]


def main() -> int:
    """Print the gold answers of the questions of a folder."""
    folder, failed = Path(sys.argv[1]), 0
    facts = Facts(folder)
    for line in (folder / "questions.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        try:
            answers = golds_of(facts, row)
            refuses = (row.get("golds") or [row["gold"]]) == [["refuse"]]
            if not refuses and any(answer is None or answer in ({}, set(), []) for answer in answers):
                raise ValueError("the gold is empty")
        except (ValueError, TypeError, ZeroDivisionError, KeyError) as error:
            failed += 1
            answers = [f"FAILED: {error}"]
        print(row["shape"], "|", row["question"], "|", *(repr(one)[:300] for one in answers))
    print(f"{len(facts.facts)} facts, {failed} failed", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
