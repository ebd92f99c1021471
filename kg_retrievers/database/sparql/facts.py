"""Reads facts of a graph behind a SPARQL endpoint, with what entities are called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product

from kg_retrievers.database.sparql.entities import TAILS, Entities
from kg_retrievers.database.sparql.keys import Keys
from kg_retrievers.database.sparql.names import BLOCK, Ask, Called, Descriptions, Solutions, blocks, describing, values
from kg_retrievers.database.sparql.schema import SparqlSchema, relation_labels
from kg_retrievers.database.sparql.terms import Iri, Term, Text
from kg_retrievers.database.sparql.vocabulary import Vocabulary
from kg_retrievers.graph import Triple
from kg_retrievers.graph.parts import Facts, StoredEntity

#: Of how many relations one query reads samples.
RELATIONS_AT_ONCE = 50

#: A fact as terms.
_Row = Sequence[Term | None]


class SparqlParts(Entities):
    """Reads facts, too; see `PartReader` for what the methods do."""

    def __init__(self, ask: Ask, schema: Callable[[], SparqlSchema], keys: Keys) -> None:
        """Take what asks."""
        super().__init__(ask, schema, keys)
        self._relations: dict[str, str] = {}

    def forget(self) -> None:
        """Forget the names of types and relations that the schema lacks."""
        super().forget()
        self._relations = {}

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
        texts = self._keys.of_terms(tail for _, _, tail in read.rows if isinstance(tail, Text))
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
            heads += self._keys.iris(key)
            tails += self._keys.terms(key) if keeps else self._keys.iris(key)
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
        keys = self._keys.of_terms(term for head, _, tail in rows for term in (head, tail))
        names = self._relation_names({relation.value for _, relation, _ in rows if isinstance(relation, Iri)})
        return [
            Triple(keys[head], names[relation.value], keys[tail])
            if head in keys and tail in keys and isinstance(relation, Iri)
            else None
            for head, relation, tail in rows
        ]

    def _relation_names(self, iris: set[str]) -> dict[str, str]:
        schema = self._schema()
        listed = schema.relation_by_iri
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
