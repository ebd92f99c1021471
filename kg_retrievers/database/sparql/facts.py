"""Reads entities and facts of a graph behind a SPARQL endpoint."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from urllib.parse import unquote

from kg_retrievers.database.sparql.keys import Keys
from kg_retrievers.database.sparql.schema import relation_labels, type_labels
from kg_retrievers.database.sparql.terms import (
    BLOCK,
    STRING,
    Called,
    Descriptions,
    Iri,
    Solutions,
    Term,
    Text,
    blocks,
    describing,
    read_names,
    values,
)
from kg_retrievers.database.sparql.vocabulary import Vocabulary
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Triple
from kg_retrievers.graph.iris import local_words
from kg_retrievers.graph.parts import EntityPage, Facts, StoredEntity
from kg_retrievers.graph.readers.rdf.sources import SCHEMA_TYPES

#: The most things that some names may be, all together, and how many things a query names that looks each up alone.
MAX_NAMED, TAILS = 10_000, 5_000

#: Where a page ends: "0" for a literal or "1" for an IRI, and the text, encoded as in an address.
_POSITION = re.compile(r"[01][\w.~%-]*", re.ASCII)

#: Of how many relations one query reads samples.
RELATIONS_AT_ONCE = 50

#: A fact as terms.
_Row = Sequence[Term | None]


class SparqlParts(Keys):
    """Reads entities and facts; see `PartReader` for what the methods do.

    Args:
        ask: Sends a query.
        schema: Returns what the endpoint holds.
    """

    def forget(self) -> None:
        """Forget what was learnt of the endpoint, such as the names of types and relations that the schema lacks."""
        super().forget()
        self._types: dict[str, str] = {}
        self._relations: dict[str, str] = {}

    @property
    def _facts(self) -> str:
        return self._schema().vocabulary.facts("?head", "?relation", "?tail")

    def describe(self, keys: Sequence[str]) -> list[StoredEntity]:
        """Describe entities."""
        wanted = sorted(set(keys))
        iri_of = {iri.value: key for key in wanted for iri in self.iris(key)}
        called = self._called([*iri_of])
        held = self._in_facts([iri for iri in iri_of if iri not in called])
        called |= {iri: Called(None, [], []) for iri in held}
        found = {entity.key: entity for entity in self.of_called(called)}
        texts = [text for key in wanted if key not in found for text in self.texts(key)]
        keys_of_texts = self.of_terms(self._held(texts))
        for term, key in keys_of_texts.items():
            if key not in found and isinstance(term, Text):
                found[key] = StoredEntity(key, term.value, [], [])
        return [found[key] for key in wanted if key in found]

    def _called(self, iris: Sequence[str]) -> dict[str, Called]:
        """Return what things are called, and their types."""
        schema = self._schema()
        return read_names(self._ask, schema.vocabulary, iris) if schema.described else {}

    def of_called(self, called: dict[str, Called]) -> Iterator[StoredEntity]:
        """Yield what things that are called so are."""
        names = self._type_names({iri for one in called.values() for iri in one.types})
        for iri, one in called.items():
            key = self._schema().vocabulary.names.compact(iri)
            label = one.label or local_words(iri) or key
            yield StoredEntity(key, label, one.aliases, sorted({names[type] for type in one.types}))

    def _type_names(self, iris: set[str]) -> dict[str, str]:
        schema = self._schema()
        known = {iri: schema.type_by_iri.get(iri) or self._types.get(iri) for iri in iris}
        if missing := sorted(iri for iri, name in known.items() if name is None):
            self._types |= type_labels(self._ask, schema.vocabulary, missing)
        return {iri: name or self._types[iri] for iri, name in known.items()}

    def _held(self, texts: Sequence[Text]) -> list[Text]:
        """Return which of some literals are tails of facts."""
        if self._schema().vocabulary.literals != "keep":
            return []
        found = list[Text]()
        for block in blocks(texts, BLOCK):
            rows = self._ask(
                f"SELECT DISTINCT ?tail WHERE {{ {values('?tail', block)} ?head ?relation ?tail . {self._facts} }}"
            )
            found += [term for term in rows.column("tail") if isinstance(term, Text)]
        return found

    def entities_named(self, names: Sequence[str], limit: int) -> dict[str, list[str]]:
        """Find the entities with a key, a label or an alias."""
        found = {name: set[str]() for name in names}
        unsure: dict[str, set[str]] = {}
        for block in blocks([*found], BLOCK // 10):
            self._find_called(block, found, unsure)
            for name in block:  # by the end of an IRI, where nothing gives a label
                for iri in self._iris_ending(name):
                    unsure.setdefault(iri, set()).add(name)
        held = self.existing(unsure)
        called = self._called(sorted(held))
        in_facts = self._in_facts(sorted(held - called.keys()))
        of_unsure = called | {iri: Called(None, [], []) for iri in in_facts}
        for iri, entity in zip(of_unsure, self.of_called(of_unsure), strict=True):
            for name in unsure[iri]:
                if name in (entity.key, entity.label, *entity.aliases):
                    found[name].add(entity.key)
        self._find_texts(found)
        self._leave_out_descriptions(found)
        return {name: sorted(found[name])[:limit] for name in names}

    def _leave_out_descriptions(self, found: dict[str, set[str]]) -> None:
        """Leave out relations and types that are in no fact."""
        expand = self._schema().vocabulary.names.expand
        iri_of = {key: iri for keys in found.values() for key in keys if self._describes(iri := expand(key))}
        lone = set(iri_of.values()) - self._in_facts(sorted(iri_of.values()))
        for keys in found.values():
            keys -= {key for key, iri in iri_of.items() if iri in lone}

    def _find_called(self, names: Sequence[str], found: dict[str, set[str]], unsure: dict[str, set[str]]) -> None:
        """Find things by their labels and aliases; those in other languages are labels only where none is better."""
        vocabulary = self._schema().vocabulary
        by = values("?by", [Iri(iri) for iri in (*vocabulary.labels, *vocabulary.aliases)])
        texts = [text for name in names for text in self.texts(name) if text.value == name]
        rows = self._ask(
            f"SELECT DISTINCT ?thing ?name WHERE {{ {values('?name', texts)} {by} ?thing ?by ?name . "
            f"FILTER(isIRI(?thing)) }} ORDER BY STR(?thing) STR(?name) LIMIT {MAX_NAMED}"
        )
        for thing, name in zip(rows.column("thing"), rows.column("name"), strict=True):
            if isinstance(thing, Iri) and isinstance(name, Text) and name.value in found:
                if vocabulary.ranks.rank(name.language or None) is None:
                    unsure.setdefault(thing.value, set()).add(name.value)
                else:
                    found[name.value].add(vocabulary.names.compact(thing.value))

    def _find_texts(self, found: dict[str, set[str]]) -> None:
        """Find the literals that are called so."""
        keys = self.of_terms(self._held([text for name in found for text in self.texts(name)]))
        for text, key in keys.items():
            for name in {key, text.value} & found.keys():
                found[name].add(key)

    def _iris_ending(self, name: str) -> list[str]:
        """Return IRIs whose key is a name, or that end with it in namespaces that are given."""
        vocabulary = self._schema().vocabulary
        found = [iri.value for iri in self.iris(name)]
        ends = name.replace(" ", "_")
        if vocabulary.prefixes and ends and self.iris(ends):
            made = (vocabulary.names.expand(f"{prefix}:{ends}") for prefix in sorted(vocabulary.prefixes))
            found += [iri for iri in made if local_words(iri) == name]
        return found

    def entities_after(self, position: str, page_size: int) -> EntityPage:
        """Read a page of all entities: first those of literals, then those of IRIs, each sorted by its text.

        Raises:
            InvalidArgumentError: If the position is none.
        """
        if position and not _POSITION.fullmatch(position):
            message = f"SparqlExecutor.entities_after: got {position!r:.100}, no position of a page."
            raise InvalidArgumentError(f"{message} Begin with an empty text.")
        rows = self._ask(
            f"SELECT DISTINCT ?place WHERE {{ {self._things()} "
            'BIND(CONCAT(IF(isIRI(?thing), "1", "0"), ENCODE_FOR_URI(STR(?thing))) AS ?place) '
            f'FILTER(?place > "{position}") }} ORDER BY ?place LIMIT {page_size + 1}'
        )
        places = [place.value for place in rows.column("place") if isinstance(place, Text)]
        page = places[:page_size]
        keys = self.of_terms(Text(unquote(place[1:]), STRING) for place in page if place[0] == "0")
        entities = [StoredEntity(key, text.value, [], []) for text, key in keys.items() if isinstance(text, Text)]
        entities += self._named_by_iris([unquote(place[1:]) for place in page if place[0] == "1"])
        is_last = len(places) <= page_size and not rows.is_cut
        return EntityPage(sorted(entities), None if is_last or not page else page[-1])

    def _things(self) -> str:
        """Return what finds `?thing`: the ends of facts, and what has names or types."""
        facts = self._schema().vocabulary.facts("?head", "?by", "?thing")
        return (
            f"{{ SELECT DISTINCT ?thing WHERE {{ {{ ?thing ?by ?value . FILTER(isIRI(?thing)) }} UNION "
            f"{{ ?head ?by ?thing . {facts} }} }} }}"
        )

    def _named_by_iris(self, iris: Sequence[str]) -> list[StoredEntity]:
        """Return entities by their IRIs, but for what is in no fact and describes relations and types."""
        schema = self._schema()
        schema_types = {schema.vocabulary.names.expand(name) for name in SCHEMA_TYPES}
        called = self._called(iris)
        unsure = [iri for iri in iris if iri not in called or schema_types.intersection(called[iri].types)]
        unsure += [iri for iri in iris if self._describes(iri)]
        lone = set(unsure) - self._in_facts(sorted(set(unsure)))
        return [*self.of_called({iri: called.get(iri, Called(None, [], [])) for iri in iris if iri not in lone})]

    def _describes(self, iri: str) -> bool:
        """Return whether a thing is a relation or a type, or has the label of one."""
        schema = self._schema()
        return iri in schema.relation_names or iri in schema.type_by_iri or iri in schema.property_entities

    def _in_facts(self, iris: Sequence[str]) -> set[str]:
        """Return which of some IRIs are ends of facts."""
        found = set[str]()
        for block in blocks(iris, TAILS):
            rows = self._ask(f"SELECT DISTINCT ?thing WHERE {{ {self.in_facts_of([Iri(iri) for iri in block])} }}")
            found |= {term.value for term in rows.column("thing") if isinstance(term, Iri)}
        return found

    def in_facts_of(self, things: Sequence[Iri]) -> str:
        """Return what finds, as `?thing`, those of some things that are ends of facts; "" for none."""
        if not things:
            return ""
        vocabulary = self._schema().vocabulary
        as_head = f"EXISTS {{ ?thing ?relation ?tail . {vocabulary.facts('?thing', '?relation', '?tail')} }}"
        as_tail = f"EXISTS {{ ?head ?by ?thing . {vocabulary.facts('?head', '?by', '?thing')} }}"
        return f"{values('?thing', things)} FILTER({as_head} || {as_tail})"

    def facts_of(self, keys: Sequence[str], relations: Sequence[str] | None, limit: int) -> Facts:
        """Read the facts of some entities, and what these are called."""
        wanted = set(keys)
        only = self._only(relations)
        read = _Read(self._schema().vocabulary)
        for block in blocks(sorted(wanted) if only is not None else [], BLOCK):
            heads, tails = self._ends(block)
            branches = [f"{{ {values('?head', heads)} {only} ?head ?relation ?tail . {self._facts} }}"]
            if tails:
                branches.append(f"{{ {values('?tail', tails)} {only} ?head ?relation ?tail . {self._facts} }}")
            if self._read_facts(read, " UNION ".join(branches), heads, limit):
                break
        triples = [fact for fact in self.triples(read.rows) if fact.head in wanted or fact.tail in wanted]
        return self._described_facts(read, triples, limit)

    def facts_between(self, keys: Sequence[str], limit: int) -> Facts:
        """Read the facts between some entities, and what these are called."""
        ends, wanted = set(keys), sorted(set(keys))
        read, described = _Read(self._schema().vocabulary), set[Iri]()
        for block, other in product(blocks(wanted, BLOCK), blocks(wanted, TAILS)):
            heads, tails = self._ends(block)[0], self._ends(other)[1]
            of_heads = f"{values('?head', heads)} ?head ?relation ?tail . {self._facts}"
            # In a part of their own, so that an engine joins all at once, and does not try each pair.
            of_tails = f"{{ SELECT ?tail WHERE {{ {values('?tail', tails)} }} }}"
            where = f"{{ SELECT ?head ?relation ?tail WHERE {{ {of_heads} }} }} {of_tails}"
            new = [iri for iri in heads if iri not in described]
            described.update(new)
            if self._read_facts(read, where, new, limit, self.in_facts_of(new)):
                break
        triples = [fact for fact in self.triples(read.rows) if fact.head in ends and fact.tail in ends]
        return self._described_facts(read, triples, limit)

    def _read_facts(self, read: _Read, where: str, things: Sequence[Iri], limit: int, further: str = "") -> bool:
        """Read facts, at most one more than `limit`, and by the same query descriptions; tell whether there are more.

        The facts are the first that the endpoint finds. `further` finds, as `?thing`, which of the things are in facts.
        """
        facts = f"SELECT DISTINCT ?head ?relation ?tail WHERE {{ {where} }} LIMIT {limit + 1}"
        schema = self._schema()
        names = describing(schema.vocabulary, [iri.value for iri in things]) if schema.described else ""
        if others := " UNION ".join(f"{{ {other} }}" for other in (names, further) if other):
            found = self._ask(f"SELECT ?head ?relation ?tail ?thing ?by ?name WHERE {{ {{ {facts} }} UNION {others} }}")
        else:
            found = self._ask(facts)
        read.take_names(found, things)
        read.rows += [row[:3] for row in found.rows if row[0] is not None]
        read.is_cut = found.is_cut or len(read.rows) > limit
        return read.is_cut

    def _described_facts(self, read: _Read, triples: list[Triple], limit: int) -> Facts:
        """Return facts with the descriptions that came with them: those of things with a name or a fact."""
        called = read.names.finish()
        in_facts = {term.value for row in read.rows for term in (row[0], row[2]) if isinstance(term, Iri)} | read.held
        held = [iri for iri in read.things if iri in called or iri in in_facts]
        known = {iri: called.get(iri, Called(None, [], [])) for iri in held}
        texts = self.of_terms(tail for _, _, tail in read.rows if isinstance(tail, Text))
        found = {key: StoredEntity(key, term.value, [], []) for term, key in texts.items() if isinstance(term, Text)}
        found |= {entity.key: entity for entity in self.of_called(known)}
        is_cut = read.is_cut or len(triples) > limit
        return Facts(triples[:limit], is_cut, [found[key] for key in sorted(found)])

    def sample_facts(self, relations: Sequence[str], count: int) -> Facts:
        """Read some facts of relations."""
        known, triples, truncated = [one for one in relations if self._only([one])], list[Triple](), False
        for first in range(0, len(known), RELATIONS_AT_ONCE):
            some = known[first : first + RELATIONS_AT_ONCE]
            wheres = (f"{self._only([one])} ?head ?relation ?tail . {self._facts}" for one in some)
            select = "SELECT ?head ?relation ?tail WHERE"
            parts = (f"{{ {select} {{ {where} }} LIMIT {count + 1} }}" for where in wheres)
            found = self._ask(f"{select} {{ {' UNION '.join(parts)} }}")
            by_relation: dict[str, list[Triple]] = {}
            for triple in self.triples(found.rows):
                by_relation.setdefault(triple.relation, []).append(triple)
            truncated |= found.is_cut or any(len(of_one) > count for of_one in by_relation.values())
            triples += [triple for of_one in by_relation.values() for triple in of_one[:count]]
        return Facts(sorted(triples), truncated)

    def _ends(self, keys: Iterable[str]) -> tuple[list[Iri], list[Iri | Text]]:
        """Return the terms that heads, and that tails with some keys may be."""
        heads, tails = list[Iri](), list[Iri | Text]()
        keeps = self._schema().vocabulary.literals == "keep"
        for key in keys:
            heads += self.iris(key)
            tails += self.terms(key) if keeps else self.iris(key)
        return heads, tails

    def _only(self, relations: Sequence[str] | None) -> str | None:
        """Return the clause that limits `?relation`; None where the endpoint has none of the relations."""
        if relations is None:
            return ""
        schema = self._schema()
        iris = {found.relation: found.name for found in schema.relations}
        iris |= {name: iri for iri, name in self._relations.items()}
        known = [Iri(iris[relation]) for relation in sorted(set(relations)) if relation in iris]
        return values("?relation", known) if known else None

    def triples(self, rows: Iterable[_Row]) -> list[Triple]:
        """Return facts by key, each once, sorted; rows with blank nodes are left out."""
        return sorted({triple for triple in self.by_rows(list(rows)) if triple is not None})

    def by_rows(self, rows: Sequence[_Row]) -> list[Triple | None]:
        """Return the fact of each row; None where one of its terms has no key or is not bound."""
        keys = self.of_terms(term for head, _, tail in rows for term in (head, tail))
        names = self._relation_names({relation.value for _, relation, _ in rows if isinstance(relation, Iri)})
        return [
            Triple(keys[head], names[relation.value], keys[tail])
            if head in keys and tail in keys and isinstance(relation, Iri)
            else None
            for head, relation, tail in rows
        ]

    def _relation_names(self, iris: set[str]) -> dict[str, str]:
        schema = self._schema()
        listed = schema.relation_names
        known = {iri: listed.get(iri) or self._relations.get(iri) for iri in iris}
        if missing := sorted(iri for iri, name in known.items() if name is None):
            read = relation_labels(self._ask, schema.vocabulary, missing)
            taken = set(listed.values()) | set(self._relations.values())
            compact = schema.vocabulary.names.compact
            self._relations |= {iri: name if name not in taken else compact(iri) for iri, name in read.items()}
        return {iri: name or self._relations[iri] for iri, name in known.items()}


class _Read:
    """What some queries read: facts, and what things are called.

    Attributes:
        rows: The heads, relations and tails.
        things: The IRIs of which all names were read.
        names: These.
        held: The IRIs of things that are in facts, perhaps in others.
        is_cut: Whether there are more facts.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.rows, self.things, self.is_cut = list[_Row](), list[str](), False
        self.names, self.held = Descriptions(vocabulary), set[str]()

    def take_names(self, found: Solutions, things: Sequence[Iri]) -> None:
        """Take the names of things, unless the endpoint cut the answer off."""
        if not found.is_cut:
            self.things += [iri.value for iri in things]
        if not found.is_cut and "thing" in found.columns:
            self.names.take_all(found)
            named = zip(found.column("thing"), found.column("by"), strict=True)
            self.held |= {thing.value for thing, by in named if isinstance(thing, Iri) and by is None}
