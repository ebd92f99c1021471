"""From collected statements of RDF to the builder of a graph, whose keys are prefixed names."""

from __future__ import annotations

import numpy as np

from kg_retrievers.graph.building import NONE, GraphBuilder, relation_names
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.iris import Prefixes, local_words
from kg_retrievers.graph.readers.rdf.statements import Statements

#: Things of these types are classes, properties and ontologies: they describe relations and types.
SCHEMA_TYPES = (
    "owl:Class", "rdfs:Class", "rdfs:Datatype", "rdf:Property", "owl:ObjectProperty", "owl:DatatypeProperty",
    "owl:AnnotationProperty", "owl:FunctionalProperty", "owl:InverseFunctionalProperty", "owl:TransitiveProperty",
    "owl:SymmetricProperty", "owl:Ontology", "wikibase:Property",
)  # fmt: skip

#: Wikidata labels a property by its entity: "wd:P57" for the relations "wdt:P57", "p:P57", "ps:P57" and their like.
WIKIDATA_PROPERTIES, WIKIDATA_ENTITIES = "http://www.wikidata.org/prop/", "http://www.wikidata.org/entity/"


def take_foreign(statements: Statements) -> None:
    """Take texts in languages that are not wanted where their head and relation have no literal otherwise."""
    if not statements.foreign:
        return
    facts = np.array([statements.heads, statements.relations, statements.tails])
    have = set(map(tuple, facts[:2, facts[2] < 0].T.tolist()))
    for (head, relation), (language, texts) in statements.foreign.items():
        if (head, relation) not in have:
            for text, source in texts:
                statements.add_fact(head, relation, ~statements.literal(text, f"@{language}"), source)
                statements.foreign_count -= 1
    statements.foreign.clear()


class RdfColumns:
    """Gives the numbers of statements their keys, and hands everything to a builder.

    Attributes:
        heads: The number of the head of each fact.
        relations: The number of its relation.
        tails: The number of its tail; ~number for a literal.
        numbers: The number of each IRI and blank node.
        iris: The IRI of each number, or "_:" and the name of a blank node.
        keys: The key of each entity that is no literal, by its number, in the order of their ids.
        local_names: How many entities and relations are called by the end of their IRI.
        described: How many classes and properties, in no fact themselves, describe types and relations.
        blank_types: How many types were left out because they are blank nodes.
    """

    def __init__(self, statements: Statements, builder: GraphBuilder, prefixes: Prefixes) -> None:
        """Take over what was collected."""
        self._statements, self._builder, self._prefixes = statements, builder, prefixes
        self.heads = np.frombuffer(statements.heads, np.intc)
        self.relations = np.frombuffer(statements.relations, np.intc)
        self.tails = np.frombuffer(statements.tails, np.intc)
        self.schema_types = {
            number for name in SCHEMA_TYPES if (number := statements.ids.get(prefixes.expand(name))) is not None
        }
        self.numbers: dict[str, int] = statements.ids
        self.iris = [*statements.ids]
        self.keys: dict[int, str] = {}
        self.local_names = self.described = self.blank_types = 0

    def fill(self) -> None:
        """Fill the builder."""
        order = self._entities_of_facts()
        relations = self._relation_labels()
        order = np.concatenate([order, self._described_alone(order, relations)])
        self._name_keys(order)
        self._add_facts(order, relations)
        self._name_entities()
        self._add_types()
        builder = self._builder
        names = [*self.keys.values(), *relations.values(), *builder.datatypes.values()]
        types = [builder.type_ids.get(name, name) for names in builder.types.values() for name in names]
        builder.prefixes = self._prefixes.used([*names, *types])

    def _entities_of_facts(self) -> Array:
        """Return the entities of facts in the order of appearance: numbers of IRIs, then, further up, of literals."""
        never = 2 * len(self.heads) + 1
        first = np.full(len(self.iris) + len(self._statements.literals), never, np.int64)
        tails = self._codes(self.tails)
        places = np.arange(len(self.heads))[::-1]
        first[tails[::-1]] = 2 * places + 1  # of several values for one place the last is kept
        by_head = np.full(len(self.iris), never, np.int64)
        by_head[self.heads[::-1]] = 2 * places
        np.minimum(first[: len(self.iris)], by_head, out=first[: len(self.iris)])
        order = np.argsort(first, kind="stable")
        return order[: int((first != never).sum())]

    def _codes(self, tails: Array) -> Array:
        return np.where(tails < 0, len(self.iris) + ~tails, tails)

    def _relation_labels(self) -> dict[int, str]:
        """Add the relations in the order of their facts, name them, and return their ids by number."""
        numbers, first = np.unique(self.relations, return_index=True)
        ids: dict[int, str] = {}
        for number in numbers[np.argsort(first)].tolist():
            id = ids[number] = self._prefixes.compact(self.iris[number])
            self._builder.relation(id)
            self._builder.name_relation(id, self._wikidata_label(number) or self._name(number))
        return ids

    def _name(self, number: int) -> str:
        """Return the label of a relation or type; where no prefix fits, the end of its IRI in words."""
        label = self._statements.names.label(number)
        if label is not None:
            return label
        iri = self.iris[number]
        name = self._prefixes.name_of(iri)
        self.local_names += name != self._prefixes.compact(iri)
        return name

    def _wikidata_label(self, number: int) -> str | None:
        entity = self._wikidata_entity(number)
        return None if entity is None else self._statements.names.label(entity)

    def _wikidata_entity(self, number: int) -> int | None:
        iri = self.iris[number]
        if not iri.startswith(WIKIDATA_PROPERTIES):
            return None
        return self.numbers.get(WIKIDATA_ENTITIES + iri.rpartition("/")[2])

    def _described_alone(self, order: Array, relations: dict[int, str]) -> Array:
        """Return the entities that have names or types and no fact, in the order of appearance."""
        statements = self._statements
        things = set(statements.typed) | statements.names.things()
        things -= set(order[order < len(self.iris)].tolist())
        schema = set(relations) | set(statements.kinds)
        schema |= {entity for number in relations if (entity := self._wikidata_entity(number)) is not None}
        self.described = len(things & schema)
        unused = {
            thing
            for thing, kind in zip(statements.typed, statements.kinds, strict=True)
            if kind in self.schema_types and thing in things and thing not in schema
        }
        statements.left_out["classes and properties without facts (type_predicates=())"] += len(unused)
        return np.array(sorted(things - schema - unused), np.int64)

    def _name_keys(self, order: Array) -> None:
        """Give the entities their keys: prefixed names, "_:b0" and so on, and the texts of literals."""
        blanks = 0
        for number in order[order < len(self.iris)].tolist():
            iri = self.iris[number]
            if iri.startswith("_:"):
                self.keys[number] = f"_:b{blanks}"
                blanks += 1
            else:
                self.keys[number] = self._prefixes.compact(iri)
        self._name_literals(order)

    def _name_literals(self, order: Array) -> None:
        builder, texts, first = self._builder, [*self._statements.literals], len(self.iris)
        taken, kinds = set(self.keys.values()), self._statements.datatypes
        iris, short = self._statements.datatype_ids, self._prefixes.datatype
        datatypes = [name if name.startswith("@") else short(name) for name in iris]
        for number in order.tolist():
            if number < first:
                builder.entity(self.keys[number])
                continue
            key = text = texts[number - first]
            if text in taken:
                key = _free_key(text, taken, self._statements.literals)
                builder.labels[key] = text
            builder.entity(key)
            builder.datatypes[key] = datatypes[kinds[number - first]]
        for literal, kind in self._statements.retyped:
            key = _free_key(texts[literal], taken, self._statements.literals)
            builder.set_datatype(key, datatypes[kind])

    def _add_facts(self, order: Array, relations: dict[int, str]) -> None:
        builder, statements = self._builder, self._statements
        new = np.zeros(len(self.iris) + len(statements.literals), np.intc)
        new[order] = np.arange(len(order))
        relation = np.zeros(len(self.iris), np.intc)
        relation[[*relations]] = np.arange(len(relations))
        sources = None
        if statements.sources:
            ids = [builder.source(self._source_name(*graph)) for graph in statements.graphs.items()]
            sources = np.full(len(self.heads), NONE, np.intc)
            found = np.frombuffer(statements.sources, np.intc)
            sources[: len(found)] = np.where(found == NONE, NONE, np.array(ids)[found])
        builder.add_ids(new[self.heads], relation[self.relations], new[self._codes(self.tails)], sources)

    def _source_name(self, name: str, number: int) -> str:
        """Return the name of a graph: "_:g0" and so on for a blank node that is no entity."""
        if not name.startswith("_:"):
            return self._prefixes.compact(name)
        return self.keys.get(self.numbers.get(name, NONE), f"_:g{number}")

    def _name_entities(self) -> None:
        names, builder = self._statements.names, self._builder
        for number, key in self.keys.items():
            label = names.label(number)
            if label is None and not key.startswith("_:"):
                label = local_words(self.iris[number])
                self.local_names += bool(label)
            if label and label != key:
                builder.labels[key] = label
            if aliases := names.aliases(number):
                builder.aliases[key] = aliases

    def _add_types(self) -> None:
        """Add the types of entities, each by its label; of two with one label, the prefixed name follows."""
        statements = self._statements
        things, kinds = np.frombuffer(statements.typed, np.intc), np.frombuffer(statements.kinds, np.intc)
        numbers = [number for number in np.unique(kinds).tolist() if not self.iris[number].startswith("_:")]
        if not numbers:
            self.blank_types = len(kinds)
            return
        ids = {self._prefixes.compact(self.iris[number]): number for number in numbers}
        labels = {id: self._name(number) for id, number in ids.items()}
        names = relation_names(ids, labels)
        self._builder.type_ids = {name: id for name, id in zip(names, ids, strict=True) if name != id}
        ranks = np.full(len(self.iris), NONE, np.int64)
        ranks[numbers] = np.argsort(np.argsort(names))
        is_entity = np.zeros(len(self.iris), bool)
        is_entity[[*self.keys]] = True
        self.blank_types = int((ranks[kinds] == NONE).sum())
        wanted = is_entity[things] & (ranks[kinds] != NONE)
        pairs = np.unique(things[wanted].astype(np.int64) * len(names) + ranks[kinds[wanted]])
        found, in_order = self._builder.types, sorted(names)
        for thing, rank in zip((pairs // len(names)).tolist(), (pairs % len(names)).tolist(), strict=True):
            found[self.keys[thing]] = [*found.get(self.keys[thing], ()), in_order[rank]]


def _free_key(text: str, taken: set[str], literals: dict[str, int]) -> str:
    """Return the key of a literal: its text, in quotes where an entity has that key.

    Example:
        >>> _free_key("dbr:Her", {"dbr:Her"}, {"dbr:Her": 0}), _free_key("Her", {"dbr:Her"}, {"Her": 0})
        ('"dbr:Her"', 'Her')
    """
    key = text
    while key in taken or (key is not text and key in literals):
        key = f'"{key}"'
    return key
