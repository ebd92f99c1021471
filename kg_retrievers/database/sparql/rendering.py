"""Writes a pattern as a SPARQL query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from kg_retrievers.database.rendering import PatternWriter
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Known, PatternTriple, Term, Unknown


@dataclass
class SparqlWriter(PatternWriter):
    """Writes a pattern as SPARQL.

    Facts have the columns `h0`, `r0`, `t0`, ..., of which `run` makes one each.
    """

    schema: Any  # a SparqlSchema, which names this class

    sign: ClassVar[str] = "?"

    def lines(self, bindings: Mapping[str, str], *, counts: bool, facts: bool) -> Iterator[str]:
        """Yield the lines of the query."""
        yield from self.select(bindings, counts=counts, facts=facts)
        yield "WHERE {"
        yield from (f"  {line}" for line in self.where())
        yield "}"

    def select(self, bindings: Mapping[str, str], *, counts: bool, facts: bool) -> Iterator[str]:
        """Yield SELECT with its columns."""
        if counts:
            yield f"SELECT (COUNT(DISTINCT {self.columns_of(bindings)[0][0]}) AS ?count)"
            return
        if not bindings:
            bindings, facts = {} if self.pattern.target is None else {"target": self.pattern.target}, True
        columns = [f"({name} AS ?{column})" for name, column in self.columns_of(bindings)]
        for position, (head, relation, tail) in enumerate(self.pattern.triples if facts else ()):
            term = self._relation(relation)
            ends = [f"?h{position}", f"?t{position}"]
            if self.direction == "respect":
                ends = [f"({self.names[end]} AS ?{letter}{position})" for end, letter in ((head, "h"), (tail, "t"))]
            columns += [ends[0], f"({term} AS ?r{position})", ends[1]]
        yield f"SELECT DISTINCT {' '.join(columns)}"

    def where(self) -> Iterator[str]:
        """Yield the patterns to find."""
        limits = {node: self._limits(node, name) for node, name in self.names.items()}
        for node in self.names:
            yield from limits[node]
        for node in self.pattern.alone:
            if node.type is None and not limits[node]:
                yield f"{{ {self.names[node]} ?p ?o }} UNION {{ ?s ?p {self.names[node]} }}"
        for position, triple in enumerate(self.pattern.triples):
            yield self._triple(position, triple, limits)
        for node, name in self.names.items():
            if node.type is not None:
                yield self.has_type(name, self.types_of(node.type))
        for one, other in self.different():
            yield f"FILTER(!sameTerm({self.names[one]}, {self.names[other]}))"
        for group in self.pattern.absent_groups():
            yield self._absent(group)

    def _limits(self, node: Term, name: str) -> list[str]:
        """Return the clause that limits the entities of a node, if it is limited."""
        keys = self.keys.get(node)
        if keys is None and isinstance(node, Unknown):
            keys = self.allowed.get(node.name)
        return [] if keys is None else [self.has_key(name, keys)]

    def has_key(self, name: str, keys: Sequence[str]) -> str:
        """Return the condition that a node has one of the keys."""
        self.parameters[name[1:]] = list(keys)
        return f"VALUES {name} {{ ${name[1:]} }}"

    def _triple(self, position: int, triple: PatternTriple, limits: Mapping[Term, list[str]]) -> str:
        """Return a triple.

        Either way, its limits stand in each branch, so that an engine begins with these.
        """
        head, relation, tail = triple
        start, end = self.names[head], self.names[tail]
        forward = self._fact(start, relation, end)
        if self.direction == "respect":
            return forward
        inside = "".join(f"{line} " for node in dict.fromkeys((head, tail)) for line in limits[node])
        ways = [(forward, start, end), (self._fact(end, relation, start), end, start)]
        bound = ((fact, f"BIND({first} AS ?h{position}) BIND({last} AS ?t{position})") for fact, first, last in ways)
        return " UNION ".join(f"{{ {inside}{fact} {ends} }}" for fact, ends in bound)

    def _fact(self, head: str, relation: Term, tail: str) -> str:
        term = self._relation(relation)
        predicate = None if term.startswith("?") else term[1:-1]
        if predicate in self.schema.plain:
            return f"{head} {term} {tail} ."
        return f"{head} {term} {tail} . {self.schema.vocabulary.facts(head, term, tail, predicate)}"

    def _relation(self, relation: Term) -> str:
        """Return the IRI of a known relation, or the variable of an unknown one."""
        if isinstance(relation, Known):
            return f"<{self.schema.type_of(relation.text)}>"
        unknown = dict.fromkeys(one for _, one, _ in (*self.pattern.triples, *self.pattern.absent))
        return f"?p{list(unknown).index(relation)}"

    def has_type(self, name: str, types: Sequence[str]) -> str:
        """Return the condition that a node has one of some types."""
        iris = [iri for type in types if (iri := self.schema.type_iris.get(type)) is not None]
        if not iris:
            raise InvalidArgumentError(
                f"render: the endpoint has no type {types[0]!r}. It has {sorted(self.schema.type_iris)[:20]}."
            )
        by = "|".join(f"<{predicate}>" for predicate in self.schema.vocabulary.types)
        if len(iris) == 1:
            return f"{name} ({by}) <{iris[0]}> ."
        return f"VALUES {name}_type {{ {' '.join(f'<{iri}>' for iri in iris)} }} {name} ({by}) {name}_type ."

    def _absent(self, group: Sequence[PatternTriple]) -> str:
        """Return the condition that a group of triples is not there, all of them."""
        parts: list[str] = []
        names = dict(self.names)

        def name_of(node: Term) -> str:
            if node in names and isinstance(node, Unknown):
                return names[node]
            name = f"?a{self.absent_count}"  # a known text is any entity called so, each time
            self.absent_count += 1
            names[node] = name
            parts.extend(self.limits_of_absent(node, name))
            return name

        for head, relation, tail in group:
            start, end = name_of(head), name_of(tail)
            forward, backward = self._fact(start, relation, end), self._fact(end, relation, start)
            parts.append(forward if self.absent_directed else f"{{ {forward} }} UNION {{ {backward} }}")
        return f"FILTER NOT EXISTS {{ {' '.join(parts)} }}"
