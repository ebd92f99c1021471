"""Describe the contents of a SPARQL endpoint.

It holds relations and types, by the names that triples and patterns use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from kg_retrievers.database.schema import DatabaseSchema, NodeLabel, RelationType
from kg_retrievers.database.sparql.rendering import SparqlWriter
from kg_retrievers.database.sparql.terms import STRING, Ask, Iri, Text, is_writable, read_names, value
from kg_retrievers.database.sparql.vocabulary import Vocabulary
from kg_retrievers.deadline import deadline, seconds_left
from kg_retrievers.errors import DatabaseTimeoutError
from kg_retrievers.graph.building import relation_names
from kg_retrievers.graph.iris import NAMED, WELL_KNOWN
from kg_retrievers.graph.readers.rdf.statements import ANY, WIKIDATA_ENTITIES, WIKIDATA_PROPERTIES

#: The most relations and types that are listed, and the triples of a sample if an endpoint cannot list them in time.
MAX_LISTED, SAMPLE = 20_000, 100_000

#: How many seconds listing all relations, or all types may take. It is at most half of the time that is left.
LISTING_TIMEOUT = 30.0

#: The kinds of literals that are looked for by their text in any case.
KINDS = (STRING, *(WELL_KNOWN["xsd"] + name for name in ("integer", "decimal", "double", "boolean", "date", "dateTime",
                                                        "gYear", "gYearMonth", "anyURI")))  # fmt: skip


@dataclass(frozen=True)
class SparqlSchema(DatabaseSchema):
    """The contents of an endpoint.

    The name of a relation is its IRI. The name of a type is its name among an entity's types.

    Args:
        vocabulary: How its triples are read.
        type_iris: The IRIs of types by their names.
        kinds: The kinds of literals, as of `Text`.
        has_names: Whether there are entities whose keys are names, not IRIs.
        plain: The IRIs of relations of which every triple is a fact, as far as all triples were looked at.
    """

    pattern_writer: Callable[..., Any] | None = SparqlWriter

    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    type_iris: Mapping[str, str] = field(default_factory=dict)
    kinds: Sequence[str] = KINDS
    has_names: bool = False
    plain: frozenset[str] = frozenset()

    @cached_property
    def type_by_iri(self) -> Mapping[str, str]:
        """The names of types."""
        return {iri: name for name, iri in self.type_iris.items()}

    @cached_property
    def property_entities(self) -> frozenset[str]:
        """The IRIs of the entities that have the labels of properties of Wikidata."""
        return frozenset(filter(None, map(wikidata_entity, self.relation_names)))


def read_schema(ask: Ask, vocabulary: Vocabulary) -> SparqlSchema:
    """Read the contents of an endpoint, by a few queries.

    If it cannot list everything in time, the contents come from a sample.
    """
    listed, some_relations = _listed(ask, _relations_query(vocabulary), "?listed ?odd")
    types, some_types = _listed(ask, _types_query(vocabulary), "?listed")
    relations = sorted(iri for iri in listed if listed[iri] != {"blank"} and vocabulary.is_relation(iri))
    odd = {*vocabulary.labels, *vocabulary.aliases, *vocabulary.types}
    all_listed = not some_relations and not vocabulary.listing
    plain = {iri for iri in listed.keys() - odd if all_listed and listed[iri] == {"fact"}}
    names = names_of(ask, vocabulary, relations)
    type_names = names_of(ask, vocabulary, sorted(types))
    kinds, has_names = _sample(ask)
    wanted = [f"@{language}" for language in vocabulary.languages if language != ANY]
    return SparqlSchema(
        tuple(NodeLabel(name, "", {}) for name in sorted(type_names.values())),
        tuple(RelationType(iri, (), {}, name) for iri, name in sorted(names.items())),
        sampled=some_relations or some_types,
        vocabulary=vocabulary,
        type_iris={name: iri for iri, name in type_names.items()},
        kinds=tuple(dict.fromkeys([*KINDS, *wanted, *kinds])),
        has_names=has_names,
        plain=frozenset(plain),
    )


def names_of(ask: Ask, vocabulary: Vocabulary, iris: Sequence[str]) -> dict[str, str]:
    """Return the names of relations or types, by their IRIs.

    If two have one name, prefixed names follow.
    """
    by_id = {vocabulary.names.compact(iri): iri for iri in sorted(iris)}
    entities = {iri: wikidata_entity(iri) for iri in iris}
    called = read_names(ask, vocabulary, [*iris, *filter(None, entities.values())])

    def name(iri: str) -> str:
        labels = (called[one].label for one in (entities[iri], iri) if one in called)
        return next(filter(None, labels), None) or vocabulary.names.name_of(iri)

    names = relation_names(by_id, {id: name(iri) for id, iri in by_id.items()})
    return dict(zip(by_id.values(), names, strict=True))


def wikidata_entity(iri: str) -> str | None:
    """Return the IRI of the entity that labels a property of Wikidata."""
    return WIKIDATA_ENTITIES + iri.rpartition("/")[2] if iri.startswith(WIKIDATA_PROPERTIES) else None


def _relations_query(vocabulary: Vocabulary) -> tuple[str, str]:
    """Return the query that lists predicates of facts, with the kinds of their triples.

    Also return the query for a sample.
    """
    odd = f'isLiteral(?tail) && (STR(?tail) = "" || !({vocabulary.wanted("?tail")}))'
    # A language never decides whether a relation has facts at all.
    facts = replace(vocabulary, languages=(ANY,)).facts("?head", "?listed", "?tail", keep_blank=True)
    facts += f' BIND(IF(isBlank(?head) || isBlank(?tail), "blank", IF({odd}, "odd", "fact")) AS ?odd)'
    triples = f"?head ?listed ?tail . {facts}"
    sample = f"{{ SELECT ?head ?listed ?tail WHERE {{ ?head ?listed ?tail }} LIMIT {SAMPLE} }} {facts}"
    if vocabulary.listing:
        left_out = " ".join(f"FILTER({one})" for one in vocabulary.relations("?listed"))
        triples = f"{vocabulary.listing.replace('?relation', '?listed')} . {left_out}"
    return triples, sample


def _types_query(vocabulary: Vocabulary) -> tuple[str, str]:
    predicates = " ".join(f"<{iri}>" for iri in vocabulary.types)
    triples = f"VALUES ?by {{ {predicates} }} ?thing ?by ?listed"
    sample = f"{{ SELECT ?listed WHERE {{ {triples} }} LIMIT {SAMPLE} }}"
    return (sample if vocabulary.listing else triples), sample


def _listed(ask: Ask, queries: tuple[str, str], columns: str) -> tuple[dict[str, set[str]], bool]:
    """Return the IRIs that a query lists, with the values of its second column.

    Also return whether there may be more.
    """
    whole, sample = queries
    is_sample = whole == sample
    select = f"SELECT DISTINCT {columns} WHERE {{ {{}} FILTER(isIRI(?listed)) }} LIMIT {2 * MAX_LISTED + 1}"
    try:
        seconds = min(LISTING_TIMEOUT, seconds_left() / 2)
        with deadline(seconds, lambda: DatabaseTimeoutError("The listing takes long.")):
            rows = ask(select.replace("{}", whole))
    except DatabaseTimeoutError:
        rows, is_sample = ask(select.replace("{}", sample)), True
    found: dict[str, set[str]] = {}
    for iri, *others in rows.rows:
        if isinstance(iri, Iri) and is_writable(iri):
            found.setdefault(iri.value, set()).update(filter(None, map(value, others)))
    return found, is_sample or rows.is_cut or len(rows.rows) > 2 * MAX_LISTED


def _sample(ask: Ask) -> tuple[list[str], bool]:
    """Return the kinds of literals in a sample of triples.

    Also return whether an entity's key is a name.
    """
    inner = f"{{ SELECT ?head ?tail WHERE {{ ?head ?relation ?tail }} LIMIT {SAMPLE} }}"
    kind = 'IF(LANG(?tail) = "", STR(DATATYPE(?tail)), CONCAT("@", LANG(?tail)))'
    found = ask(
        f"SELECT DISTINCT ?kind WHERE {{ {inner} FILTER(isLiteral(?tail)) BIND({kind} AS ?kind) }} "
        "ORDER BY ?kind LIMIT 200"
    )
    is_name = " || ".join(f'STRSTARTS(STR({end}), "{NAMED}")' for end in ("?head", "?tail"))
    named = ask(f"SELECT ?head WHERE {{ {inner} FILTER({is_name}) }} LIMIT 1")
    kinds: Iterable[str | None] = (value(term) for term in found.column("kind") if isinstance(term, Text))
    return [kind for kind in kinds if kind and is_writable(Text("", kind))], bool(named.rows)
