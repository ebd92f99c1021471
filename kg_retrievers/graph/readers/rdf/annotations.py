"""Statements of RDF about a fact: reifiers of RDF 1.2, each `rdf:Statement`, and the statement nodes of Wikidata.

Each of them is a node that stands for a fact. Other statements about the node are attributes of the fact, and the node
is no entity. They may stand before or behind their fact, so that all of this happens when everything is collected.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from kg_retrievers.graph.building import NONE
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.iris import WELL_KNOWN
from kg_retrievers.graph.readers.rdf.statements import TYPE, WIKIDATA_PROPERTIES, Statements
from kg_retrievers.graph.values import INTEGERS, is_valid

RDF, XSD = WELL_KNOWN["rdf"], WELL_KNOWN["xsd"]

#: The rank of a statement of Wikidata, and how the IRIs of its ontology begin.
WIKIBASE = WELL_KNOWN["wikibase"]
RANK = f"{WIKIBASE}rank"

#: How the IRIs of references, and of values in full, begin in Wikidata.
_REFERENCES, _VALUES = "http://www.wikidata.org/reference/", "http://www.wikidata.org/value/"

# "p:P57" leads to a statement node, and "ps:P57" from there to the tail.
_OF_STATEMENTS = re.compile(re.escape(WIKIDATA_PROPERTIES) + r"(statement/)?(P\d+)")

#: The statements left out.
_UNSTATED, _OF_TYPES = "statements about triples that the source does not state", "statements about types and names"

#: In how many graphs a fact has the statements of another graph about it: the product of both may be large.
MOST_GRAPHS = 100
_IN_MANY_GRAPHS = f"statements about a fact of more than {MOST_GRAPHS} other graphs, in the further ones"

#: Longer numbers are identifiers. Those of a million digits would take Python long.
_LONGEST_NUMBER = 64

_READERS: Mapping[str, Callable[[str], Any]] = {
    **dict.fromkeys(INTEGERS, int),
    **dict.fromkeys(("double", "float"), float),
    "decimal": Decimal,
    "boolean": lambda text: text.strip() in ("true", "1"),
    "dateTime": lambda text: re.sub(r"T00:00:00(\.0+)?Z?$", "", text),
}


def attribute_value(text: str, datatype: str) -> Any:
    """Return the value of a literal for an attribute: a number, a truth value, or otherwise its text.

    Args:
        text: The text.
        datatype: The IRI of its datatype, or "@en" and the like.

    Example:
        >>> attribute_value("+7", XSD + "integer"), attribute_value("1", XSD + "boolean"), attribute_value("7", "@en")
        (7, True, '7')
    """
    if datatype == f"{RDF}JSON":
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    read = _READERS.get(datatype[len(XSD) :]) if datatype.startswith(XSD) else None
    if read is None or len(text) > _LONGEST_NUMBER or not is_valid(text, datatype):
        return text
    value = read(text)
    return value if not isinstance(value, float) or isfinite(value) else text


class Facts(NamedTuple):
    """Facts and types by numbers, as in `Statements`, without nodes that stand for facts.

    Attributes:
        heads: The number of the head of each fact.
        relations: The number of its relation.
        tails: The number of its tail; ~number for a literal.
        sources: The number of its graph, or `NONE`; empty if no fact has any.
        nodes: The node that stands for it, or `NONE`; empty if no fact has any.
        typed: The numbers of things, and
        kinds: of their types, side by side.
        said: What is said of each node: by relation the tails, and the datatypes of literals.
    """

    heads: Array
    relations: Array
    tails: Array
    sources: Array
    nodes: Array
    typed: Array
    kinds: Array
    said: Mapping[int, Mapping[int, list[tuple[int, int]]]]


def facts_of(statements: Statements) -> Facts:
    """Return the facts, with the statements about them, at no cost if there are none."""
    names = ("heads", "relations", "tails", "sources", "typed", "kinds")
    heads, relations, tails, sources, typed, kinds = (np.frombuffer(getattr(statements, one), np.intc) for one in names)
    nothing = np.empty(0, np.intc)
    facts = Facts(heads, relations, tails, sources, nothing, typed, kinds, {})
    has_claims = any(map(_OF_STATEMENTS.fullmatch, statements.predicates))
    if not (has_claims or statements.reified or f"{RDF}subject" in statements.predicates):
        return facts
    return _Folding(statements, facts).fold()


class _Folding:
    """Turns what is said of nodes that stand for facts into attributes of these facts."""

    def __init__(self, statements: Statements, facts: Facts) -> None:
        self._statements, self._typed, self._kinds = statements, facts.typed, facts.kinds
        self._heads, self._relations, self._tails = facts.heads, facts.relations.copy(), facts.tails.copy()
        self._sources = np.full(len(facts.heads), NONE, np.intc)
        self._sources[: len(facts.sources)] = facts.sources
        self._gone = np.zeros(len(facts.heads), np.bool_)
        self._nodes_of = defaultdict[int, list[int]](list)  # of each row
        self._nodes = set[int]()
        self._kind_of = {row: kind for _, kind, row in statements.retyped}  # of the literal in each row
        self._new_types = dict[int, tuple[int, int]]()  # of nodes

    def fold(self) -> Facts:
        """Return what stays."""
        self._find_claims()
        iris = [*self._statements.ids]
        self._find_reified(iris)
        said = self._take_said(iris)
        self._retype()
        self._statements.left_out[_OF_TYPES] += sum(bool(said[node]) for node in self._new_types)
        inner = sum(len(nodes) for row, nodes in self._nodes_of.items() if self._gone[row])
        self._statements.left_out["attributes of attributes"] += inner
        first, more = np.full(len(self._heads), NONE, np.intc), list[tuple[int, int]]()
        for row, (node, *others) in self._nodes_of.items():
            first[row] = node
            more += [(row, other) for other in others if not self._gone[row]]
        rows, nodes = np.array(more, np.intc).reshape(-1, 2).T
        rows = np.concatenate([np.flatnonzero(~self._gone), rows])
        nodes = np.concatenate([first[~self._gone], nodes])
        heads, relations, tails, sources = self._heads, self._relations, self._tails, self._sources
        is_thing = ~np.isin(self._typed, [*self._nodes])
        new = np.array([*self._new_types.values()], np.intc).reshape(-1, 2).T
        of_things = self._typed[is_thing], self._kinds[is_thing]
        typed, kinds = (np.append(old, more) for old, more in zip(of_things, new, strict=True))
        return Facts(heads[rows], relations[rows], tails[rows], sources[rows], nodes, typed, kinds, said)

    def _find_claims(self) -> None:
        """Make a fact of each statement node of Wikidata: "wd:Q1 p:P57 _:s", "_:s ps:P57 wd:Q2" is of "wdt:P57"."""
        claims, values, statements = dict[int, str](), list[int](), self._statements
        for iri, number in statements.predicates.items():
            if found := _OF_STATEMENTS.fullmatch(iri):
                if found[1]:
                    values.append(number)
                else:
                    claims[number] = f"{WIKIDATA_PROPERTIES}direct/{found[2]}"
        rows = np.flatnonzero(np.isin(self._relations, values))
        value_of = dict(zip(self._heads[rows].tolist(), rows.tolist(), strict=True))
        for row in np.flatnonzero(np.isin(self._relations, [*claims] if values else [])).tolist():
            iri, node = claims[int(self._relations[row])], int(self._tails[row])
            self._nodes.add(node)
            if node not in value_of:
                statements.left_out["statements of Wikidata without a value"] += 1
                self._gone[row] = True
                continue
            tail, role = int(self._tails[value_of[node]]), statements.predicates[iri]
            if role == TYPE and tail >= 0:
                statements.type_predicates.add(iri)
                self._new_types[node] = int(self._heads[row]), tail
                self._gone[row] = True
                continue
            self._relations[row], self._tails[row] = statements.ids[iri], tail
            if (kind := self._kind_of.get(value_of[node])) is not None:
                self._kind_of[row] = kind
            statements.reified.extend((node, int(self._heads[row]), statements.ids[iri], tail, int(self._sources[row])))
        self._gone[[value_of[node] for node in self._nodes & value_of.keys()]] = True

    def _find_reified(self, iris: Sequence[str]) -> None:
        """Find the facts for which reifiers and each `rdf:Statement` stand."""
        reifiers = np.array(self._statements.reified, np.intc).reshape(-1, 5)
        quoted = np.concatenate([reifiers, np.array(self._rdf_statements(), np.intc).reshape(-1, 5)])
        is_near = ~self._gone
        for place, column in enumerate((self._heads, self._relations, self._tails), 1):
            is_near &= np.isin(column, quoted[:, place])
        rows = defaultdict[tuple[int, ...], dict[int, int]](dict)
        for row in np.flatnonzero(is_near).tolist():
            same = rows[int(self._heads[row]), int(self._relations[row]), int(self._tails[row])]
            self._gone[row] = same.setdefault(int(self._sources[row]), row) != row
        for at, (node, *triple, source) in enumerate(quoted.tolist()):
            found = rows.get(tuple(triple))
            if found:
                self._nodes.add(node)
                of_graph = [found[source]] if source in found else [*islice(found.values(), MOST_GRAPHS)]
                for row in of_graph:
                    self._nodes_of[row].append(node)
                if source not in found and len(found) > MOST_GRAPHS:
                    self._statements.left_out[_IN_MANY_GRAPHS] += len(found) - MOST_GRAPHS
            elif at < len(reifiers):
                self._statements.left_out[_UNSTATED if triple[1] >= 0 else _OF_TYPES] += 1
                if iris[node].startswith("_:"):  # of which nothing else is known
                    self._nodes.add(node)

    def _rdf_statements(self) -> list[tuple[int, ...]]:
        """Return nodes with one `rdf:subject`, `rdf:predicate` and `rdf:object`: as `Statements.reified`."""
        parts = [self._statements.predicates.get(f"{RDF}{part}", NONE) for part in ("subject", "predicate", "object")]
        found = defaultdict[int, list[set[int]]](lambda: [set(), set(), set()])
        sources = dict[int, int]()
        for row in np.flatnonzero(np.isin(self._relations, parts)).tolist():
            node = int(self._heads[row])
            found[node][parts.index(self._relations[row])].add(int(self._tails[row]))
            sources[node] = int(self._sources[row])
        whole = {node: sets for node, sets in found.items() if [*map(len, sets)] == [1, 1, 1]}
        return [(node, *(one for (one,) in sets), sources[node]) for node, sets in whole.items()]

    def _take_said(self, iris: Sequence[str]) -> Mapping[int, Mapping[int, list[tuple[int, int]]]]:
        """Take away what is said of nodes, which is returned, and of the references and values of Wikidata."""
        statements = self._statements
        parts = {number for number, iri in enumerate(iris) if iri.startswith((_REFERENCES, _VALUES))}
        structure = {statements.ids.get(f"{RDF}{part}", NONE) for part in ("subject", "predicate", "object")}
        said = {node: defaultdict[int, list[tuple[int, int]]](list) for node in self._nodes}
        of_nodes = np.isin(self._heads, [*self._nodes]) & ~self._gone
        for row in np.flatnonzero(of_nodes).tolist():
            relation, tail = int(self._relations[row]), int(self._tails[row])
            if tail >= 0 and iris[tail] == f"{WIKIBASE}NormalRank":
                continue
            if tail in parts:
                statements.left_out["references of Wikidata"] += iris[tail].startswith(_REFERENCES)
            elif relation not in structure:
                said[int(self._heads[row])][relation].append((tail, self._kind(row, tail)))
        self._gone |= of_nodes | np.isin(self._heads, [*parts])
        is_type = statements.ids[f"{RDF}type"]
        for place in np.flatnonzero(np.isin(self._typed, [*self._nodes, *parts])).tolist():
            node, kind = int(self._typed[place]), int(self._kinds[place])
            if node in said and not iris[kind].startswith((f"{RDF}Statement", WIKIBASE)):
                said[node][is_type].append((kind, NONE))
        self._nodes |= parts
        return said

    def _kind(self, row: int, tail: int) -> int:
        return self._kind_of.get(row, self._statements.datatypes[~tail]) if tail < 0 else NONE

    def _retype(self) -> None:
        """Leave literals the datatypes that they have as tails of facts."""
        statements = self._statements
        tails = [~literal for literal, _, _ in statements.retyped]
        kinds = defaultdict[int, dict[int, None]](dict)
        for row in np.flatnonzero(np.isin(self._tails, tails) & ~self._gone).tolist():
            tail = int(self._tails[row])
            kinds[~tail][self._kind(row, tail)] = None
        statements.retyped = []
        for literal, (first, *others) in kinds.items():
            statements.datatypes[literal] = first
            statements.retyped += [(literal, kind, NONE) for kind in others]
