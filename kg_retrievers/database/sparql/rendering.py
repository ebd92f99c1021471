"""Writes a pattern as a SPARQL query."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Literal

from kg_retrievers.database.rendering import must_differ
from kg_retrievers.database.schema import DatabaseSchema
from kg_retrievers.database.sparql.vocabulary import Vocabulary
from kg_retrievers.errors import InvalidArgumentError, PatternError
from kg_retrievers.graph import Known, Pattern, PatternTriple, Term, Unknown


def write_pattern(
    pattern: Pattern,
    schema: DatabaseSchema,
    vocabulary: Vocabulary,
    type_iris: Mapping[str, str],
    plain: Collection[str],
    *,
    keys: Mapping[Term, Sequence[str]],
    given: Mapping[Known, Sequence[str]],
    allowed: Mapping[str, Sequence[str]],
    distinct: Literal["known", "nodes", "none"],
    direction: Literal["ignore", "respect"],
    limit: int | None,
    bindings: Sequence[str],
) -> tuple[str, dict[str, Any]]:
    """Write a pattern as `render` does, with the columns `h0`, `r0`, `t0`, ... of facts, of which `run` makes one each.

    Args:
        pattern: What to find.
        schema: The relations that the endpoint has.
        vocabulary: How its triples are read.
        type_iris: The IRIs of types by their names.
        plain: The relations of which every triple is a fact.
        keys: The keys of which each known node may take one.
        given: The keys of known nodes of absent triples, as a caller gives them.
        allowed: The keys that unknowns may have, by name.
        distinct: Which nodes must be different entities.
        direction: Whether the directions of triples count.
        limit: The most rows; None for no limit.
        bindings: The names of one or two unknowns whose keys are the columns.

    Raises:
        InvalidArgumentError: If the endpoint lacks a relation or type of the pattern.
        PatternError: If `bindings` names no unknown node, or absent triples form a cycle.
    """
    names = {node: f"?n{position}" for position, node in enumerate(pattern.nodes)}
    query = _Rendering(pattern, schema, vocabulary, type_iris, plain, names, keys, given, allowed, direction)
    lines = [*query.select(bindings), "WHERE {", *(f"  {line}" for line in query.where(distinct)), "}"]
    if limit is not None:
        lines.append(f"LIMIT {limit}")
    return "\n".join(lines), query.parameters


@dataclass
class _Rendering:
    """Writes a pattern, part by part.

    Attributes:
        names: The variable of each node.
        parameters: Those of the conditions written so far.
        count: How many nodes of absent triples are named so far.
    """

    pattern: Pattern
    schema: DatabaseSchema
    vocabulary: Vocabulary
    type_iris: Mapping[str, str]
    plain: Collection[str]
    names: dict[Term, str]
    keys: Mapping[Term, Sequence[str]]
    given: Mapping[Known, Sequence[str]]
    allowed: Mapping[str, Sequence[str]]
    direction: Literal["ignore", "respect"]
    parameters: dict[str, Any] = field(default_factory=dict)
    count: int = 0

    def select(self, bindings: Sequence[str]) -> Iterator[str]:
        """Yield SELECT with its columns."""
        name_of = {node.name: name for node, name in self.names.items() if isinstance(node, Unknown)}
        if missing := [name for name in bindings if name not in name_of]:
            raise PatternError(f"render: {missing[0]!r} is none of the unknown nodes {list(name_of)}.")
        if bindings:
            pairs = zip(bindings, ("target", "by"), strict=False)
            yield "SELECT DISTINCT " + " ".join(f"({name_of[name]} AS ?{column})" for name, column in pairs)
            return
        columns = [] if self.pattern.target is None else [f"({name_of[self.pattern.target]} AS ?target)"]
        for position, (head, relation, tail) in enumerate(self.pattern.triples):
            term = self._relation(relation)
            ends = [f"?h{position}", f"?t{position}"]
            if self.direction == "respect":
                ends = [f"({self.names[end]} AS ?{letter}{position})" for end, letter in ((head, "h"), (tail, "t"))]
            columns += [ends[0], f"({term} AS ?r{position})", ends[1]]
        yield f"SELECT DISTINCT {' '.join(columns)}"

    def where(self, distinct: Literal["known", "nodes", "none"]) -> Iterator[str]:
        """Yield what is to be found."""
        limits = {node: self._limits(node, name) for node, name in self.names.items()}
        for node in self.names:
            yield from limits[node]
        for position, triple in enumerate(self.pattern.triples):
            yield self._triple(position, triple, limits)
        for node, name in self.names.items():
            if node.type is not None:
                yield self._has_type(name, node.type)
        for one, other in combinations(self.names, 2):
            if must_differ(self.pattern, self.keys, one, other, distinct):
                yield f"FILTER(!sameTerm({self.names[one]}, {self.names[other]}))"
        for group in self.pattern.absent_groups():
            yield self._absent(group)

    def _limits(self, node: Term, name: str) -> list[str]:
        """Return the clause that says which entities a node may be, if it is limited."""
        keys = self.keys.get(node)
        if keys is None and isinstance(node, Unknown):
            keys = self.allowed.get(node.name)
        return [] if keys is None else [self._has_key(name, keys)]

    def _has_key(self, name: str, keys: Sequence[str]) -> str:
        self.parameters[name[1:]] = list(keys)
        return f"VALUES {name} {{ ${name[1:]} }}"

    def _triple(self, position: int, triple: PatternTriple, limits: Mapping[Term, list[str]]) -> str:
        """Return a triple; either way, with its limits in each branch, so that an engine begins with these."""
        head, relation, tail = triple
        start, end = self.names[head], self.names[tail]
        forward = self._fact(start, relation, end)
        if self.direction == "respect":
            return forward
        inside = "".join(f"{line} " for node in dict.fromkeys((head, tail)) for line in limits[node])
        ways = [(forward, start, end), (self._fact(end, relation, start), end, start)]
        branches = (
            f"{{ {inside}{fact} BIND({first} AS ?h{position}) BIND({last} AS ?t{position}) }}"
            for fact, first, last in ways
        )
        return " UNION ".join(branches)

    def _fact(self, head: str, relation: Term, tail: str) -> str:
        term = self._relation(relation)
        predicate = None if term.startswith("?") else term[1:-1]
        if predicate in self.plain:
            return f"{head} {term} {tail} ."
        return f"{head} {term} {tail} . {self.vocabulary.facts(head, term, tail, predicate)}"

    def _relation(self, relation: Term) -> str:
        """Return the IRI of a known relation, or the variable of an unknown one."""
        if isinstance(relation, Known):
            return f"<{self.schema.type_of(relation.text)}>"
        unknown = dict.fromkeys(one for _, one, _ in (*self.pattern.triples, *self.pattern.absent))
        return f"?p{list(unknown).index(relation)}"

    def _has_type(self, name: str, type: str) -> str:
        iri = self.type_iris.get(type)
        if iri is None:
            raise InvalidArgumentError(
                f"render: the endpoint has no type {type!r}. It has {sorted(self.type_iris)[:20]}."
            )
        by = "|".join(f"<{predicate}>" for predicate in self.vocabulary.types)
        return f"{name} ({by}) <{iri}> ."

    def _absent(self, group: Sequence[PatternTriple]) -> str:
        """Return the condition that a group of triples is not there, all of them.

        Raises:
            PatternError: If they form a cycle, as everywhere.
        """
        unknown = {node for head, _, tail in group for node in (head, tail) if isinstance(node, Unknown)}
        if sum(unknown >= {head, tail} for head, _, tail in group) >= len(unknown):
            raise PatternError("Pattern: the absent triples form a cycle; that is not supported.")
        parts: list[str] = []
        names = dict(self.names)

        def name_of(node: Term) -> str:
            if node in names and isinstance(node, Unknown):
                return names[node]
            name = f"?a{self.count}"  # a known text is any entity called so, each time
            self.count += 1
            names[node] = name
            parts.extend(self._limits_of_absent(node, name))
            return name

        directed = self.direction == "respect" if self.pattern.directed is None else self.pattern.directed
        for head, relation, tail in group:
            start, end = name_of(head), name_of(tail)
            forward, backward = self._fact(start, relation, end), self._fact(end, relation, start)
            parts.append(forward if directed else f"{{ {forward} }} UNION {{ {backward} }}")
        return f"FILTER NOT EXISTS {{ {' '.join(parts)} }}"

    def _limits_of_absent(self, node: Term, name: str) -> list[str]:
        """Return the conditions on a node of absent triples alone."""
        keys = self.given.get(node) if isinstance(node, Known) else self.allowed.get(node.name)
        if keys is not None:
            return [self._has_key(name, keys)]
        found = []
        if isinstance(node, Known):
            found.append(self._has_key(name, [node.text if node.entity is None else node.entity]))
        return found if node.type is None else [*found, self._has_type(name, node.type)]
