"""Statements of RDF about classes and relations instead of things. They widen types, and are no facts by default."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.iris import WELL_KNOWN, Prefixes
from kg_retrievers.graph.readers.rdf.annotations import Facts
from kg_retrievers.graph.readers.rdf.statements import SCHEMA_TYPES, Statements, is_schema_relation

#: The statements of these vocabularies about a class, a relation or an ontology describe it, such as `rdfs:comment`.
_DESCRIBING = (
    *(WELL_KNOWN[prefix] for prefix in ("rdf", "rdfs", "owl", "skos", "dc", "dcterms", "sh")),
    *("http://purl.org/vocab/vann/", "http://www.w3.org/2003/06/sw-vocab-status/ns#", "http://creativecommons.org/ns#"),
)

#: The classes of these vocabularies are above everything, so that they widen nothing.
_OF_ALL = (WELL_KNOWN["rdf"], WELL_KNOWN["rdfs"], WELL_KNOWN["owl"])


class Ontology(NamedTuple):
    """A source's statements about classes and relations.

    Attributes:
        things: The numbers of classes, relations, ontologies, and of the blank nodes that describe them.
        triples: How many triples describe them and are no facts.
        supertypes: How many types things have as those of wider classes.
    """

    things: set[int]
    triples: int = 0
    supertypes: int = 0


def set_schema_aside(statements: Statements, facts: Facts) -> tuple[Facts, Ontology]:
    """Return the facts without schema triples, and with wider types.

    All facts stay if schema triples are kept, or if there is nothing else.

    Args:
        statements: What was collected.
        facts: The facts of these statements.

    Raises:
        InvalidArgumentError: If there is nothing else, and an ontology beside it.
    """
    prefixes = Prefixes()
    numbers = (statements.ids.get(prefixes.expand(name)) for name in SCHEMA_TYPES)
    is_schema = np.isin(facts.kinds, [number for number in numbers if number is not None])
    is_instance = np.zeros(len(statements.ids), np.bool_)
    is_instance[facts.typed[~is_schema]] = True
    things = {thing for thing in facts.typed[is_schema].tolist() if not is_instance[thing]}
    schema, iris = statements.options.schema, [*statements.ids]
    if schema == "keep" or not statements.options.type_predicates:
        return facts, Ontology(things)
    gone, described = _schema_rows(statements, facts, iris, things, is_instance)
    if not gone.any() or (schema is None and gone.all() and not is_instance.any()):
        if gone.any() and statements.only_described:
            raise InvalidArgumentError(
                f"{statements.place} says only what classes and relations are, as an ontology does.",
                hint_python='If path and ontology= are swapped, swap them. To ask about classes, give schema="keep".',
                hint_shell="If the graph and --ontology are swapped, swap them. To ask about classes, give "
                "--read schema=keep.",
            )
        return facts, Ontology(things)
    things = described
    number = statements.ids.get(f"{WELL_KNOWN['rdfs']}subClassOf", -1)
    more_typed, more_kinds = _widened(facts, _wider_classes(facts, iris, number))
    kept = ~gone
    without = facts._replace(
        heads=facts.heads[kept],
        relations=facts.relations[kept],
        tails=facts.tails[kept],
        sources=facts.sources[kept[: len(facts.sources)]],
        nodes=facts.nodes[kept[: len(facts.nodes)]],
        typed=np.append(facts.typed, more_typed),
        kinds=np.append(facts.kinds, more_kinds),
    )
    return without, Ontology(things, int(gone.sum()), len(more_typed))


def _schema_rows(
    statements: Statements, facts: Facts, iris: Sequence[str], things: set[int], is_instance: Array
) -> tuple[Array, set[int]]:
    """Return which facts describe classes and relations, bool, and the numbers of all classes and relations.

    Args:
        statements: What was collected.
        facts: The facts.
        iris: The IRI of each number.
        things: What is said to be a class or relation.
        is_instance: Which numbers have types that are no types of classes and relations: bool.
    """
    relations = np.unique(facts.relations).tolist()
    annotating = statements.ids.get(f"{WELL_KNOWN['owl']}AnnotationProperty", -1)
    notes = set(facts.typed[facts.kinds == annotating].tolist())
    about = [number for number in relations if number in notes or iris[number].startswith(_DESCRIBING)]
    gone: Array = np.isin(facts.relations, [number for number in relations if is_schema_relation(iris[number])])
    used = {*relations, *np.unique(facts.kinds).tolist(), *facts.heads[gone].tolist(), *facts.tails[gone].tolist()}
    found = things | {thing for thing in used if thing >= 0 and not is_instance[thing]}
    rows = np.flatnonzero(np.isin(facts.relations, about) & ~gone)
    rows_of = defaultdict[int, list[int]](list)
    for row, head in zip(rows.tolist(), facts.heads[rows].tolist(), strict=True):
        rows_of[head].append(row)
    described = [*found & rows_of.keys()]
    while described:
        rows_about = rows_of.pop(described.pop(), [])
        gone[rows_about] = True
        inner = {tail for tail in facts.tails[rows_about].tolist() if tail >= 0 and iris[tail].startswith("_:")}
        found |= inner
        described += inner & rows_of.keys()
    return gone, found


def _wider_classes(facts: Facts, iris: Sequence[str], subclass: int) -> Mapping[int, list[int]]:
    """Return the named classes directly above each class, by the number of `rdfs:subClassOf`."""
    above = defaultdict[int, list[int]](list)
    for row in np.flatnonzero(facts.relations == subclass).tolist():
        tail = int(facts.tails[row])
        if tail >= 0 and not iris[tail].startswith(("_:", *_OF_ALL)):
            above[int(facts.heads[row])].append(tail)
    return above


def _widened(facts: Facts, above: Mapping[int, list[int]]) -> tuple[Array, Array]:
    """Return things and their types in classes above those that they are said to be in."""
    order = np.argsort(facts.kinds, kind="stable")
    kinds, starts = np.unique(facts.kinds[order], return_index=True)
    things, types = [np.empty(0, np.intc)], [np.empty(0, np.intc)]
    for kind, members in zip(kinds.tolist(), np.split(facts.typed[order], starts[1:]), strict=False):
        wider, new = {kind}, [kind]
        while new:
            new = [one for one in dict.fromkeys(up for kind in new for up in above.get(kind, ())) if one not in wider]
            wider |= {*new}
        for one in sorted(wider - {kind}):
            things.append(members)
            types.append(np.full(len(members), one, np.intc))
    return np.concatenate(things), np.concatenate(types)
