"""Reads entities and facts of a graph behind a SPARQL endpoint."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from urllib.parse import unquote

from kg_retrievers.database.sparql.schema import SparqlSchema, names_of
from kg_retrievers.database.sparql.terms import (
    BLOCK,
    STRING,
    Ask,
    Called,
    Iri,
    T,
    Term,
    Text,
    blocks,
    called_by,
    describing,
    is_sendable,
    is_writable,
    read_names,
    values,
)
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Triple
from kg_retrievers.graph.iris import NAMED, local_words
from kg_retrievers.graph.parts import EntityPage, Facts, Limits, StoredEntity
from kg_retrievers.graph.readers.rdf.sources import free_key
from kg_retrievers.graph.readers.rdf.statements import SCHEMA_TYPES
from kg_retrievers.graph.values import is_valid

#: The most things that some names may be, all together, and how many things a query names that looks each up alone.
MAX_NAMED, TAILS = 10_000, 5_000

#: The end of a page: "0" for a literal or "1" for an IRI, and the text, encoded as in an address.
_POSITION = re.compile(r"[01][\w.~%-]*", re.ASCII)

#: Of how many relations one query reads samples.
RELATIONS_AT_ONCE = 50

#: How many observed kinds of literals are kept in addition to the kinds of the schema.
MAX_KINDS = 200

_UNNAMED = Called(None, [], [])

#: A fact, or a thing, a predicate and a name, as terms.
_Row = Sequence[Term | None]

#: The pattern that finds `?head`, `?relation` and `?tail`, the things to describe, and the pattern that finds as
#: `?thing` which of them have facts.
_FactsQuery = tuple[str, Sequence[Iri], str]


class SparqlParts:
    """Reads entities and facts by their keys.

    See `PartReader` for the methods.

    The key of an IRI is its short form. The key of a literal is its text, in quotes if an entity has that key, so that
    literals of one text are one entity. A blank node has no key. Several terms may have one key, and the endpoint holds
    some of them.

    Args:
        ask: Sends a query.
        schema: Returns the schema of the endpoint.
    """

    def __init__(self, ask: Ask, schema: Callable[[], SparqlSchema]) -> None:
        """Know nothing yet."""
        self._ask, self._schema = ask, schema
        self.forget()

    def forget(self) -> None:
        """Forget learnt facts on the endpoint.

        Examples are the names of types and relations that the schema lacks.
        """
        self._kinds: dict[str, None] = {}
        self._types: dict[str, str] = {}
        self._relations: dict[str, str] = {}

    # --- keys and terms ---

    def of_terms(self, terms: Iterable[Term | None]) -> dict[Term, str]:
        """Return the keys of some terms, blank nodes left out."""
        compact = self._schema().vocabulary.names.compact
        unique = list(dict.fromkeys(terms))
        keys: dict[Term, str] = {term: compact(term.value) for term in unique if isinstance(term, Iri)}
        texts = [term for term in unique if isinstance(term, Text)]
        known = set(self._schema().kinds)
        for text in texts:
            if text.kind not in known and is_writable(text) and len(self._kinds) < MAX_KINDS:
                self._kinds[text.kind] = None
        taken = self._taken({text.value for text in texts})
        return keys | {text: free_key(text.value, taken, ()) for text in texts}

    def iris(self, key: str) -> list[Iri]:
        """Return the IRI that a key may be of.

        There is none for a text that no query holds.
        """
        iri = self._schema().vocabulary.names.expand(key) if is_sendable(key) else NAMED
        return [Iri(iri)] if iri != NAMED else []

    def texts(self, key: str) -> list[Text]:
        """Return the literals that a key may be of."""
        unquoted = [key[1:-1]] if len(key) > 2 and key[0] == key[-1] == '"' else []
        found = [text for text in (key, *unquoted) if text and is_sendable(text)]
        kinds = dict.fromkeys([*self._schema().kinds, *self._kinds])
        return [Text(text, kind) for text in found for kind in kinds if is_valid(text, kind)]

    def terms(self, key: str) -> list[Iri | Text]:
        """Return all terms that a key may be of."""
        return [*self.iris(key), *self.texts(key)]

    def _taken(self, texts: set[str]) -> set[str]:
        """Return the texts that are keys of IRIs which are entities."""
        schema = self._schema()
        names = schema.vocabulary.names
        of_text: dict[str, str] = {}
        # In quotes, too, since what they hold may be taken.
        for text in texts:
            iri = names.expand(text)
            if (schema.has_names or not iri.startswith(NAMED)) and is_sendable(iri) and names.compact(iri) == text:
                of_text[text] = iri
        types = ", ".join(f"<{iri}>" for iri in schema.vocabulary.types)
        as_tail = f"EXISTS {{ ?head ?relation ?thing FILTER(?relation NOT IN ({types})) }}"
        is_end = f"FILTER(EXISTS {{ ?thing ?any ?value }} || {as_tail})"
        iris = [Iri(of_text[text]) for text in sorted(of_text)]
        found = self._found("?thing", iris, BLOCK, lambda block: f"{values('?thing', block)} {is_end}")
        return {names.compact(term.value) for term in found if isinstance(term, Iri)}

    def _found(
        self, variable: str, terms: Sequence[T], size: int, where: Callable[[Sequence[T]], str]
    ) -> Iterator[Term | None]:
        """Yield the bindings of a variable in a query about some terms at a time."""
        for block in blocks(terms, size):
            yield from self._ask(f"SELECT DISTINCT {variable} WHERE {{ {where(block)} }}").column(variable[1:])

    # --- entities ---

    @property
    def _a_fact(self) -> str:
        return f"?head ?relation ?tail . {self._schema().vocabulary.facts('?head', '?relation', '?tail')}"

    def describe(self, keys: Sequence[str]) -> list[StoredEntity]:
        """Describe entities."""
        wanted = sorted(set(keys))
        found = {one.key: one for one in self._named_by_iris([iri.value for key in wanted for iri in self.iris(key)])}
        texts = [text for key in wanted if key not in found for text in self.texts(key)]
        found |= {entity.key: entity for entity in self.of_literals(self._held(texts)) if entity.key not in found}
        return [found[key] for key in wanted if key in found]

    def of_called(self, called: dict[str, Called]) -> Iterator[StoredEntity]:
        """Yield the entities of things with these names."""
        types = (iri for one in called.values() for iri in one.types)
        names = self._names(types, self._schema().type_by_iri, self._types)
        for iri, one in called.items():
            key = self._schema().vocabulary.names.compact(iri)
            label = one.label or local_words(iri) or key
            yield StoredEntity(key, label, one.aliases, sorted({names[type] for type in one.types}))

    def of_literals(self, terms: Iterable[Term | None]) -> list[StoredEntity]:
        """Return the entities of the literals among some terms."""
        keys = self.of_terms(term for term in terms if isinstance(term, Text))
        return [StoredEntity(key, term.value, [], []) for term, key in keys.items() if isinstance(term, Text)]

    def _names(self, iris: Iterable[str], listed: Mapping[str, str], learnt: dict[str, str]) -> dict[str, str]:
        """Return the names of relations or types.

        Names that the schema lacks are learnt.
        """
        wanted = sorted(set(iris))
        if missing := [iri for iri in wanted if iri not in listed and iri not in learnt]:
            vocabulary, taken = self._schema().vocabulary, {*listed.values(), *learnt.values()}
            read = names_of(self._ask, vocabulary, missing)
            learnt |= {iri: vocabulary.names.compact(iri) if name in taken else name for iri, name in read.items()}
        return {iri: listed.get(iri) or learnt[iri] for iri in wanted}

    def _held(self, texts: Sequence[Text]) -> list[Text]:
        """Return which of some literals are tails of facts."""
        if self._schema().vocabulary.literals != "keep":
            return []
        found = self._found("?tail", texts, BLOCK, lambda block: f"{values('?tail', block)} {self._a_fact}")
        return [term for term in found if isinstance(term, Text)]

    def entities_named(self, names: Sequence[str], limit: int) -> dict[str, list[str]]:
        """Find the entities with a key, a label or an alias.

        If nothing gives a label, the end of an IRI counts, too.
        """
        vocabulary, found = self._schema().vocabulary, {name: set[str]() for name in names}
        by = values("?by", [Iri(iri) for iri in (*vocabulary.labels, *vocabulary.aliases)])
        iris = {iri for name in names for iri in self._iris_ending(name)}
        texts = [text for name in names for text in self.texts(name)]
        for block in blocks(texts, BLOCK):
            rows = self._ask(
                f"SELECT DISTINCT ?thing WHERE {{ {values('?name', block)} {by} ?thing ?by ?name . "
                f"FILTER(isIRI(?thing)) }} ORDER BY STR(?thing) LIMIT {MAX_NAMED}"
            )
            iris |= {thing.value for thing in rows.column("thing") if isinstance(thing, Iri)}
        for entity in (*self._named_by_iris(sorted(iris)), *self.of_literals(self._held(texts))):
            for name in found.keys() & {entity.key, entity.label, *entity.aliases}:
                found[name].add(entity.key)
        return {name: sorted(found[name])[:limit] for name in names}

    def _iris_ending(self, name: str) -> list[str]:
        """Return IRIs whose key is a name, or that end with it in given namespaces."""
        vocabulary = self._schema().vocabulary
        found = [iri.value for iri in self.iris(name)]
        ends = name.replace(" ", "_")
        if vocabulary.prefixes and ends and self.iris(ends):
            made = (vocabulary.names.expand(f"{prefix}:{ends}") for prefix in sorted(vocabulary.prefixes))
            found += [iri for iri in made if local_words(iri) == name]
        return found

    def entities_after(self, position: str, page_size: int) -> EntityPage:
        """Read a page of all entities.

        Literals come first, then IRIs, each sorted by text.

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
        entities = self.of_literals(Text(unquote(place[1:]), STRING) for place in page if place[0] == "0")
        entities += self._named_by_iris([unquote(place[1:]) for place in page if place[0] == "1"])
        is_last = len(places) <= page_size and not rows.is_cut
        return EntityPage(sorted(entities), None if is_last or not page else page[-1])

    def _things(self) -> str:
        """Return the pattern of `?thing`: the ends of facts, and things with names or types."""
        facts = self._schema().vocabulary.facts("?head", "?by", "?thing")
        return (
            f"{{ SELECT DISTINCT ?thing WHERE {{ {{ ?thing ?by ?value . FILTER(isIRI(?thing)) }} UNION "
            f"{{ ?head ?by ?thing . {facts} }} }} }}"
        )

    def _named_by_iris(self, iris: Sequence[str]) -> list[StoredEntity]:
        """Return the entities of some IRIs. Relations, types and unnamed things count only if facts hold them."""
        schema = self._schema()
        schema_types = {schema.vocabulary.names.expand(name) for name in SCHEMA_TYPES}
        called = read_names(self._ask, schema.vocabulary, iris)
        unsure = [iri for iri in iris if iri not in called or schema_types.intersection(called[iri].types)]
        names = (schema.relation_names, schema.type_by_iri, schema.property_entities)
        unsure += [iri for iri in iris if any(iri in some for some in names)]
        lone = set(unsure) - self._in_facts(sorted(set(unsure)))
        return [*self.of_called({iri: called.get(iri, _UNNAMED) for iri in iris if iri not in lone})]

    def _in_facts(self, iris: Sequence[str]) -> set[str]:
        """Return which of some IRIs are ends of facts."""
        found = self._found("?thing", [Iri(iri) for iri in iris], TAILS, self._in_facts_of)
        return {term.value for term in found if isinstance(term, Iri)}

    def _in_facts_of(self, things: Sequence[Iri]) -> str:
        """Return the pattern that finds, as `?thing`, the things that are ends of facts."""
        facts = self._schema().vocabulary.facts
        as_head = f"EXISTS {{ ?thing ?relation ?tail . {facts('?thing', '?relation', '?tail')} }}"
        as_tail = f"EXISTS {{ ?head ?by ?thing . {facts('?head', '?by', '?thing')} }}"
        return f"{values('?thing', things)} FILTER({as_head} || {as_tail})"

    # --- facts ---

    def facts_of(self, keys: Sequence[str], relations: Sequence[str] | None, limit: int, limits: Limits) -> Facts:
        """Read the facts of some entities, with their names."""
        wanted, only = set(keys), self._only(relations)

        def queries() -> Iterator[_FactsQuery]:
            for block in blocks(sorted(wanted) if only is not None else [], BLOCK):
                heads, tails = self._ends(block)
                ends: dict[str, Sequence[Iri | Text]] = {"?head": heads} | ({"?tail": tails} if tails else {})
                parts = (f"{{ {values(end, terms)} {only} {self._a_fact} }}" for end, terms in ends.items())
                yield " UNION ".join(parts), heads, ""

        return self._read_facts(queries(), limit, lambda fact: fact.head in wanted or fact.tail in wanted)

    def facts_between(self, keys: Sequence[str], limit: int) -> Facts:
        """Read the facts between some entities, with their names."""
        ends, wanted, described = set(keys), sorted(set(keys)), set[Iri]()

        def queries() -> Iterator[_FactsQuery]:
            for block, other in product(blocks(wanted, BLOCK), blocks(wanted, TAILS)):
                heads, tails = self._ends(block)[0], self._ends(other)[1]
                # In a part of their own, so that an engine joins all at once, and does not try each pair.
                of_tails = f"{{ SELECT ?tail WHERE {{ {values('?tail', tails)} }} }}"
                of_heads = f"{{ SELECT ?head ?relation ?tail WHERE {{ {values('?head', heads)} {self._a_fact} }} }}"
                new = [iri for iri in heads if iri not in described]
                described.update(new)
                yield f"{of_heads} {of_tails}", new, self._in_facts_of(new) if new else ""

        return self._read_facts(queries(), limit, lambda fact: fact.head in ends and fact.tail in ends)

    def _read_facts(self, queries: Iterable[_FactsQuery], limit: int, is_wanted: Callable[[Triple], bool]) -> Facts:
        """Read facts, the first that the endpoint finds, and names.

        The same queries read both.
        """
        rows, names, things, is_cut = list[_Row](), list[_Row](), list[str](), False
        vocabulary = self._schema().vocabulary
        for where, described, further in queries:
            facts = f"SELECT DISTINCT ?head ?relation ?tail WHERE {{ {where} }} LIMIT {limit + 1}"
            iris = [iri.value for iri in described]
            parts = " UNION ".join(f"{{ {part} }}" for part in (facts, describing(vocabulary, iris), further) if part)
            found = self._ask(f"SELECT ?head ?relation ?tail ?thing ?by ?name WHERE {{ {parts} }}")
            rows += [row[:3] for row in found.rows if row[0] is not None]
            if not found.is_cut:
                names += [row[3:] for row in found.rows if row[0] is None]
                things += iris
            if is_cut := found.is_cut or len(rows) > limit:
                break
        triples = list(filter(is_wanted, self.triples(rows)))
        held = {term for row in rows for term in (row[0], row[2])} | {thing for thing, by, _ in names if by is None}
        called = called_by(vocabulary, names)
        known = {iri: called.get(iri, _UNNAMED) for iri in things if iri in called or Iri(iri) in held}
        entities = {entity.key: entity for entity in self.of_literals(tail for _, _, tail in rows)}
        entities |= {entity.key: entity for entity in self.of_called(known)}
        return Facts(triples[:limit], is_cut or len(triples) > limit, [entities[key] for key in sorted(entities)])

    def sample_facts(self, relations: Sequence[str], count: int) -> Facts:
        """Read some facts of relations."""
        known, triples, truncated = [one for one in relations if self._only([one])], list[Triple](), False
        for first in range(0, len(known), RELATIONS_AT_ONCE):
            some = known[first : first + RELATIONS_AT_ONCE]
            wheres = (f"{self._only([one])} {self._a_fact}" for one in some)
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
        """Return the clause that limits `?relation`.

        None if the endpoint has none of the relations.
        """
        if relations is None:
            return ""
        schema = self._schema()
        iris = {found.relation: found.name for found in schema.relations}
        iris |= {name: iri for iri, name in self._relations.items()}
        known = [Iri(iris[relation]) for relation in sorted(set(relations)) if relation in iris]
        return values("?relation", known) if known else None

    def triples(self, rows: Iterable[_Row]) -> list[Triple]:
        """Return facts by key, each once, sorted.

        Rows with blank nodes are left out.
        """
        return sorted({triple for triple in self.by_rows(list(rows)) if triple is not None})

    def by_rows(self, rows: Sequence[_Row]) -> list[Triple | None]:
        """Return the fact of each row.

        None if one of its terms has no key or is not bound.
        """
        keys = self.of_terms(term for head, _, tail in rows for term in (head, tail))
        iris = (relation.value for _, relation, _ in rows if isinstance(relation, Iri))
        names = self._names(iris, self._schema().relation_names, self._relations)
        return [
            Triple(keys[head], names[relation.value], keys[tail])
            if head in keys and tail in keys and isinstance(relation, Iri)
            else None
            for head, relation, tail in rows
        ]
