"""From RDF to the columns of a knowledge graph, whose keys are prefixed names."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from kg_retrievers.errors import GraphLoadError, GraphLoadWarning, Hints, InvalidArgumentError
from kg_retrievers.graph.attributes import SOURCE
from kg_retrievers.graph.building import NONE, GraphBuilder, relation_names
from kg_retrievers.graph.columns import Array, distinct
from kg_retrievers.graph.iris import NAMED, WELL_KNOWN, Prefixes, local_words
from kg_retrievers.graph.readers.opening import limit_error
from kg_retrievers.graph.readers.rdf.annotations import RANK, WIKIBASE, attribute_value, facts_of
from kg_retrievers.graph.readers.rdf.blank_nodes import BlankNodeLabels
from kg_retrievers.graph.readers.rdf.ontologies import set_schema_aside
from kg_retrievers.graph.readers.rdf.parsing import RdfFile, RdflibGraph, is_rdflib, oxigraph, rdf_format
from kg_retrievers.graph.readers.rdf.statements import (
    ALIAS,
    DEFAULT,
    FIRST_LABEL,
    TYPES,
    WIKIDATA_ENTITIES,
    WIKIDATA_PROPERTIES,
    RdfOptions,
    Statements,
)
from kg_retrievers.graph.readers.rdf.wikidata import WikidataJson
from kg_retrievers.graph.readers.text_files import FileOptions, TextFile

#: Types of OWL that all things have.
_OF_ALL_THINGS = tuple(f"{WELL_KNOWN['owl']}{name}" for name in ("Thing", "NamedIndividual"))

#: How many facts, and entities, are looked at at once.
_FACTS_AT_ONCE, _ENTITIES_AT_ONCE = 1 << 20, 1 << 16


def take_foreign(statements: Statements) -> None:
    """Take texts in languages that are not wanted where their head and relation have no literal otherwise."""
    if not statements.foreign:
        return
    facts = np.array([statements.heads, statements.relations, statements.tails])
    have = set(map(tuple, facts[:2, facts[2] < 0].T.tolist()))
    for (head, relation), (language, texts) in statements.foreign.items():
        if (head, relation) not in have:
            for text, source in texts:
                number = statements.literal(text, f"@{language}", len(statements.heads))
                statements.add_fact(head, relation, ~number, source)
                statements.foreign_count -= 1
    statements.foreign.clear()


class RdfColumns:
    """Gives the numbers of statements their keys, and hands everything to a builder.

    Attributes:
        facts: The facts.
        attributes: How many facts have each attribute.
        iris: The IRI of each number, or "_:" and the name of a blank node.
        keys: The key of each entity, by its id; an empty text for a literal.
        ids: The id of each entity by its number, `NONE` for what is no entity; behind all IRIs those of literals.
        blanks: How many entities are blank nodes.
        ontology: What describes classes and relations.
        local_names: How many entities and relations are called by the end of their IRI.
        described: How many classes and properties, in no fact themselves, describe types and relations.
        blank_types: How many types were left out because they are blank nodes.
        own_types: How many were left out because they are those of all things in Wikibase.
    """

    def __init__(self, statements: Statements, builder: GraphBuilder, prefixes: Prefixes) -> None:
        """Take over what was collected."""
        self._statements, self._builder, self.prefixes = statements, builder, prefixes
        self.facts, self.ontology = set_schema_aside(statements, facts_of(statements))
        self.iris = [*statements.ids]
        self.keys: list[str] = []
        self.ids = np.empty(0, np.intc)
        self.local_names = self.described = self.blank_types = self.own_types = self.blanks = 0
        self.attributes = Counter[str]()
        self._attribute_names: dict[int, str] = {}
        self._texts: list[str] = []
        self._datatypes: list[str] = []

    def fill(self) -> None:
        """Fill the builder."""
        order = self._by_first_place(self.facts.heads, self.facts.tails)
        relations = self._relation_labels()
        order = np.concatenate([order, self._described_alone(order, relations)])
        self.ids = np.full(len(self.iris) + len(self._statements.literals), NONE, np.intc)
        self.ids[order] = np.arange(len(order))
        graphs = [self._statements.ids.get(name, NONE) for name in self._statements.graphs]
        self._name_attributes()
        self._statements.ids.clear()  # since what follows is as large
        self._name_keys(order)
        used = self.prefixes.used(filter(None, self.keys))
        self._name_entities(order)
        self._name_literals(order)
        self._add_facts(relations, graphs)
        self._add_types()
        if not len(self.facts.heads):
            self._declare()
        builder = self._builder
        types = {builder.type_ids.get(name, name) for names in builder.types.values() for name in names}
        used |= self.prefixes.used({*relations.values(), *builder.datatypes.values(), *types})
        builder.prefixes = dict(sorted(used.items()))

    def _by_first_place(self, *columns: Array) -> Array:
        """Return the numbers of facts in the order of appearance: those of IRIs, and, further up, of literals."""
        width, never = len(columns), len(columns) * len(self.facts.heads)
        first = np.full(len(self.iris) + len(self._statements.literals), never, np.int64)
        for start in reversed(range(0, len(self.facts.heads), _FACTS_AT_ONCE)):  # so that the first place stays
            some = np.stack([column[start : start + _FACTS_AT_ONCE] for column in columns], axis=1)
            last_first = self._codes(some.ravel()[::-1])  # of several values the last is kept
            first[last_first] = np.arange(width * start, width * start + len(last_first))[::-1]
        found = np.flatnonzero(first != never)
        return found[np.argsort(first[found])]

    def _codes(self, tails: Array) -> Array:
        return np.where(tails < 0, len(self.iris) + ~tails, tails)

    def _relation_labels(self) -> dict[int, str]:
        """Add the relations in the order of their facts, name them, and return their ids by number."""
        ids: dict[int, str] = {}
        for number in self._by_first_place(self.facts.relations).tolist():
            id = ids[number] = self.prefixes.compact(self.iris[number])
            self._builder.relation(id)
            self._builder.name_relation(id, self._property_label(number) or self._name(number))
        return ids

    def _property_label(self, number: int) -> str | None:
        """Return the label of a property of Wikidata."""
        entity = self._wikidata_entity(number)
        return None if entity is None else self._statements.names.label(entity)

    def _name(self, number: int) -> str:
        """Return the label of a relation or type; where no prefix fits, the end of its IRI in words."""
        label = self._statements.names.label(number)
        if label is not None:
            return label
        iri = self.iris[number]
        name = self.prefixes.name_of(iri)
        self.local_names += name != self.prefixes.compact(iri)
        return name

    def _wikidata_entity(self, number: int) -> int | None:
        iri = self.iris[number]
        if not iri.startswith(WIKIDATA_PROPERTIES):
            return None
        return self._statements.ids.get(WIKIDATA_ENTITIES + iri.rpartition("/")[2])

    def _name_attributes(self) -> None:
        """Name the attributes that relations are: by their labels, else by their local names."""
        numbers = dict.fromkeys(relation for said in self.facts.said.values() for relation in said)
        ids = {self.prefixes.compact(self.iris[number]): number for number in numbers}
        labels = dict[str, str]()
        for id, number in ids.items():
            iri = self.iris[number]
            local = unquote(iri[len(NAMED) :] if iri.startswith(NAMED) else re.split("[/#:]", iri)[-1])
            labels[id] = self._property_label(number) or self._statements.names.label(number) or local or id
            if labels[id] == SOURCE and len(self._statements.graphs):  # which the graphs are
                labels[id] = id
        self._attribute_names = dict(zip(ids.values(), relation_names(ids, labels), strict=True))

    def _described_alone(self, order: Array, relations: dict[int, str]) -> Array:
        """Return the entities that have names or types and no fact, in the order of appearance."""
        statements = self._statements
        named = statements.names.things() - self.facts.said.keys()
        described = np.array([*(set(self.facts.typed.tolist()) | named)], np.int64)
        is_known = np.zeros(len(self.iris), bool)
        is_known[order[order < len(self.iris)]] = True
        things: set[int] = set(described[~is_known[described]].tolist())
        predicates = {*relations, *(relation for said in self.facts.said.values() for relation in said)}
        schema = predicates | set(self.facts.kinds.tolist())
        schema |= {entity for number in predicates if (entity := self._wikidata_entity(number)) is not None}
        schema |= self.ontology.things | (statements.only_described - {*self.facts.typed.tolist()})
        self.described = len(things & schema)
        return np.array(sorted(things - schema), np.int64)

    def _name_keys(self, order: Array) -> None:
        """Give the entities their keys: prefixed names, "_:b0" and so on; literals get theirs later."""
        iris, compact, append = self.iris, self.prefixes.compact, self.keys.append
        for number in _numbers(order):
            if number >= len(iris):
                append("")
            elif iris[number].startswith("_:"):
                append(f"_:b{self.blanks}")
                self.blanks += 1
            else:
                append(compact(iris[number]))

    def _name_literals(self, order: Array) -> None:
        """Give literals their keys, and number all entities."""
        self._texts, self._datatypes = [*self._statements.literals], [*self._statements.datatype_ids]
        builder, texts, first = self._builder, self._texts, len(self.iris)
        datatypes = [name if name.startswith("@") else self.prefixes.datatype(name) for name in self._datatypes]
        kinds = self._statements.datatypes
        taken = set(self.keys) if texts else set()
        for id in np.flatnonzero(order >= first).tolist():
            literal = int(order[id]) - first
            key = text = texts[literal]
            if text in taken:
                key = free_key(text, taken, self._statements.literals)
                builder.labels[key] = text
            self.keys[id] = key
            builder.datatypes[key] = datatypes[kinds[literal]]
        builder.entities(self.keys)
        for literal, kind, _ in self._statements.retyped:
            key = free_key(texts[literal], taken, self._statements.literals)
            builder.set_datatype(key, datatypes[kind])

    def _source_name(self, name: str, number: int, entity: int) -> str:
        """Return the name of a graph: "_:g0" and so on for a blank node that is no entity."""
        if not name.startswith("_:"):
            return self.prefixes.compact(name)
        id = NONE if entity == NONE else int(self.ids[entity])
        return f"_:g{number}" if id == NONE else self.keys[id]

    def _add_facts(self, relations: dict[int, str], graphs: list[int]) -> None:
        """Add the facts.

        Args:
            relations: The relations by their numbers, in the order of their ids.
            graphs: The number of each graph among IRIs and blank nodes, `NONE` for one that is no thing.
        """
        relation = np.zeros(len(self.iris), np.intc)
        relation[[*relations]] = np.arange(len(relations))
        found, nodes = self.facts.sources, self.facts.nodes
        named = zip(self._statements.graphs.items(), graphs, strict=True) if len(found) else ()
        sources = [self._source_name(*graph, entity) for graph, entity in named]
        of_source = np.array([*map(self._builder.attribute_set, ({SOURCE: name} for name in sources)), NONE], np.intc)
        for start in range(0, len(self.facts.heads), _FACTS_AT_ONCE):
            facts = slice(start, start + _FACTS_AT_ONCE)
            heads, tails = self.ids[self.facts.heads[facts]], self.ids[self._codes(self.facts.tails[facts])]
            given = np.full(len(heads), NONE, np.intc)
            given[: len(found[facts])] = of_source[found[facts]]
            for at in np.flatnonzero(nodes[facts] != NONE).tolist():
                said = self._attributes(int(nodes[start + at]))
                if (source := found[start + at]) != NONE:
                    said[SOURCE] = sources[source]
                given[at] = self._builder.attribute_set(said)
            self._builder.add_ids(heads, relation[self.facts.relations[facts]], tails, given if len(found) else None)

    def _attributes(self, node: int) -> dict[str, Any]:
        """Return what is said of a node that stands for a fact."""
        found = dict[str, Any]()
        for relation, tails in self.facts.said[node].items():
            values = [value for one in dict.fromkeys(tails) if (value := self._value(*one)) is not None]
            if self.iris[relation] == RANK:
                values = [str(value).rpartition(":")[2].removesuffix("Rank").lower() for value in values]
            if values:
                found[self._attribute_names[relation]] = values if len(values) > 1 else values[0]
        if label := self._statements.names.label(node):
            found.setdefault("label", label)
        self.attributes.update(found.keys())
        return found

    def _value(self, tail: int, kind: int) -> Any:
        """Return a tail as the value of an attribute: that of a literal, or the label or key of a thing."""
        if tail < 0:
            return attribute_value(self._texts[~tail], self._datatypes[kind])
        if not self.iris[tail].startswith("_:"):
            return self._statements.names.label(tail) or self.prefixes.compact(self.iris[tail])
        if self.ids[tail] == NONE:
            self._statements.left_out["attributes whose values are blank nodes of which nothing is said"] += 1
            return None
        return self.keys[self.ids[tail]]

    def _name_entities(self, order: Array) -> None:
        builder, names = self._builder, self._statements.names
        named, iris, labels = names.things(), self.iris, builder.labels
        blanks = order[[at for at, key in enumerate(self.keys) if key.startswith("_:")]]
        made = BlankNodeLabels(blanks, self.facts, names, iris, [*self._statements.literals] if len(blanks) else [])
        for number, key in zip(_numbers(order), self.keys, strict=True):
            label = names.label(number) if number in named else None
            if key.startswith("_:"):
                label = made.label(number)
            elif label is None and key:
                label = local_words(iris[number])
                self.local_names += bool(label)
            if label and label != key:
                labels[key] = label
            if number in named and (aliases := names.aliases(number)):
                builder.aliases[key] = aliases

    def _add_types(self) -> None:
        """Add the types of entities, each by its label; of two with one label, the prefixed name follows."""
        statements = self._statements
        is_default = [*statements.options.type_predicates] == [*TYPES]
        own = [number for number in np.unique(self.facts.kinds).tolist() if is_default and _is_own(self.iris[number])]
        is_kept = ~np.isin(self.facts.kinds, own)
        things, kinds = self.facts.typed[is_kept], self.facts.kinds[is_kept]
        self.own_types = len(self.facts.kinds) - len(kinds)
        numbers = [number for number in np.unique(kinds).tolist() if not self.iris[number].startswith("_:")]
        if not numbers:
            self.blank_types = len(kinds)
            return
        ids = {self.prefixes.compact(self.iris[number]): number for number in numbers}
        labels = {id: self._name(number) for id, number in ids.items()}
        names = relation_names(ids, labels)
        self._builder.type_ids = {name: id for name, id in zip(names, ids, strict=True) if name != id}
        ranks = np.full(len(self.iris), NONE, np.int64)
        ranks[numbers] = np.argsort(np.argsort(names))
        is_entity = self.ids != NONE
        self.blank_types = int((ranks[kinds] == NONE).sum())
        wanted = is_entity[things] & (ranks[kinds] != NONE)
        pairs = distinct(things[wanted].astype(np.int64) * len(names) + ranks[kinds[wanted]])
        found, in_order = self._builder.types, sorted(names)
        for thing, rank in zip((pairs // len(names)).tolist(), (pairs % len(names)).tolist(), strict=True):
            key = self.keys[self.ids[thing]]
            found[key] = [*found.get(key, ()), in_order[rank]]

    def _declare(self) -> None:
        """Name relations and types without facts, so that a change can name those of another graph."""
        builder, names, iris = self._builder, self._statements.names, self.iris
        for number in sorted(self.ontology.things):
            if label := names.label(number):
                id = self.prefixes.compact(iris[number])
                kinds = self.facts.kinds[self.facts.typed == number].tolist()
                if any(iris[kind].endswith("Property") for kind in kinds):
                    builder.relation(id)
                    builder.name_relation(id, label)
                else:
                    builder.declared_types[id] = label


def _is_own(kind: str) -> bool:
    """Return whether a type is one of all things: in Wikibase, such as of all items, or in OWL."""
    return (kind.startswith(WIKIBASE) and kind != f"{WIKIBASE}Property") or kind in _OF_ALL_THINGS


def _numbers(order: Array) -> Iterator[int]:
    """Yield numbers as Python's own, some at once."""
    for start in range(0, len(order), _ENTITIES_AT_ONCE):
        yield from order[start : start + _ENTITIES_AT_ONCE].tolist()


def free_key(text: str, taken: Container[str], literals: Container[str]) -> str:
    """Return the key of a literal: its text, in quotes if an entity has that key.

    Example:
        >>> free_key("dbr:Her", {"dbr:Her"}, {"dbr:Her": 0}), free_key("Her", {"dbr:Her"}, {"Her": 0})
        ('"dbr:Her"', 'Her')
    """
    key = text
    while key in taken or (key is not text and key in literals):
        key = f'"{key}"'
    return key


def describe_reading(statements: Statements, builder: GraphBuilder, columns: RdfColumns, foreign: Counter[str]) -> None:
    """Fill the `reading` of a builder.

    Args:
        statements: What was collected.
        builder: What came of it.
        columns: How it came.
        foreign: How many labels were taken from each language that is not wanted.
    """
    reading, options = builder.reading, statements.options
    named = {name: statements.uses[FIRST_LABEL - rank] for rank, name in enumerate(options.label_predicates)} | {
        "the end of the IRI": columns.local_names
    }
    types = [name for name in options.type_predicates if columns.prefixes.expand(name) in statements.type_predicates]
    kinds = Counter(builder.datatypes.values())
    blanks, ontology = columns.blanks, columns.ontology
    said = {
        "labels": _counts(named),
        "aliases": _count(statements.uses[ALIAS], f"by {', '.join(options.alias_predicates)}"),
        "languages": _languages(options.languages, foreign),
        "types": _count(len(columns.facts.typed) - ontology.supertypes - columns.own_types, f"by {', '.join(types)}"),
        "types of wider classes": _count(ontology.supertypes, "by rdfs:subClassOf"),
        "attributes of facts": _counts(columns.attributes),
        "classes and properties": _count(columns.described, "describe types and relations and are no entities"),
        "literals": _count(kinds.total(), f"({_counts(kinds)})"),
        "literals that their datatype does not allow": _count(statements.invalid, "taken as texts"),
        "blank nodes": _count(blanks, f"kept as _:b0 to _:b{blanks - 1}" if blanks > 1 else "kept as _:b0"),
        "graphs": _count(len(statements.graphs), "named ones, kept as sources of facts"),
    }
    reading.understood |= {what: text for what, text in said.items() if text}
    reading.leave_out('names in other languages (languages=[..., "*"])', statements.names.left_out)
    reading.leave_out('literals in other languages (languages=[..., "*"])', statements.foreign_count)
    reading.leave_out("types that are blank nodes (type_predicates=())", columns.blank_types)
    reading.leave_out("types of all things, such as wikibase:Item and owl:Thing", columns.own_types)
    reading.leave_out('triples that describe classes and relations (schema="keep")', ontology.triples)
    for what, count in statements.left_out.items():
        reading.leave_out(what, count)


def given_options(options: RdfOptions, prefixes: Prefixes) -> dict[str, Any]:
    """Return the options that differ from their defaults, except options of errors and limits. Predicates are IRIs."""
    default, given = RdfOptions(), {}
    for name in ("languages", "literals", "schema", "blank_nodes", "base_iri"):
        if getattr(options, name) != getattr(default, name):
            given[name] = getattr(options, name)
    for name in ("label_predicates", "alias_predicates", "type_predicates", "graphs"):
        names = getattr(options, name)
        if names is not None and [*names] != [*(getattr(default, name) or ())]:
            given[name] = [one if one == DEFAULT else prefixes.expand(one) for one in names]
    if options.prefixes:
        given["prefixes"] = dict(options.prefixes)
    return {name: [*value] if isinstance(value, tuple) else value for name, value in given.items()}


def _count(count: int, text: str) -> str:
    return f"{count:,} {text}" if count else ""


def _counts(counts: Mapping[str, int]) -> str:
    """Return counts as a text, the greatest first."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count:,}" for name, count in ranked if count)


def _languages(wanted: Sequence[str], foreign: Counter[str]) -> str:
    text = ", then ".join([*wanted, "no language"])
    return f"{text}; {foreign.total():,} labels in others ({_counts(foreign)})" if foreign else text


def read_rdf(source: Any, format: str | None, options: RdfOptions, ontology: Sequence[Path] = ()) -> GraphBuilder:
    """Read files of RDF as one, or a graph of rdflib.

    Args:
        source: A path, several paths, or a graph.
        format: The format of all of them.
        options: How they are read.
        ontology: Files that only describe.

    Raises:
        GraphLoadError: If a file cannot be read, is malformed, exceeds a limit, or they say nothing.
        InvalidArgumentError: If an argument has no such value.
        MissingExtraError: Without the extra `rdf`.
    """
    if isinstance(source, str | Path):
        source = [source]
    paths = [*map(Path, source)] if isinstance(source, Sequence) else []
    if not paths and not is_rdflib(source):
        raise InvalidArgumentError(
            f"KnowledgeGraph.from_rdf: wanted the path of a file, a list of paths, or a Graph or Dataset of rdflib, "
            f"but got {source!r:.100}."
        )
    shown = rdf_format(paths[0], format) if paths else RdflibGraph.format
    statements, prefixes, skipped = Statements(options, oxigraph(), (paths or [Path(shown)])[0]), dict[str, str](), 0
    sources: list[Any] = paths or [source]
    for number, one in enumerate([*sources, *ontology]):
        only_describes = number >= len(sources)
        statements.next_file(number, only_describes)
        opened = _opened(one, None if only_describes else format, statements)
        has_formulas = opened.format == "N3" and options.graphs is None
        before, statements.only_described = statements.only_described, set()
        opened.read(partial(statements.begin, has_formulas=has_formulas), statements.take)
        is_silent = only_describes and not statements.only_described
        statements.only_described |= before
        skipped += opened.skipped
        # If two files declare one prefix, the first one counts.
        prefixes |= {prefix: iri for prefix, iri in opened.prefixes.items() if prefix not in prefixes}
        if is_silent and not before:
            raise GraphLoadError(_SILENT, one, **_DESCRIBE)
        if is_silent:
            warnings.warn(GraphLoadWarning(_SILENT, one, **_DESCRIBE), stacklevel=1)
    builder = _build(statements, shown, prefixes, skipped)
    return _checked(builder, paths, ontology) if paths else builder


_SILENT = "describes nothing."
_DESCRIBE: Hints = {
    "hint_python": "Give ontology= a file of RDF with classes, relations or labels, as .ttl or .owl.",
    "hint_shell": "Give --ontology a file of RDF with classes, relations or labels, as .ttl or .owl.",
}


def _opened(source: Any, format: str | None, statements: Statements) -> RdfFile | RdflibGraph | WikidataJson:
    """Return a file or a graph of rdflib that is read next."""
    options = statements.options
    if not isinstance(source, Path):
        return RdflibGraph(source, options.on_error)
    if rdf_format(source, format) == WikidataJson.format:
        file = TextFile(source, FileOptions(on_error=options.on_error, limits=options.limits))
        return WikidataJson(file, oxigraph(), statements.left_out)
    return RdfFile(source, format, options.base_iri, options.on_error, options.limits)


def _checked(builder: GraphBuilder, paths: Sequence[Path], ontology: Sequence[Path]) -> GraphBuilder:
    """Return what files say, if they say anything, with their names if there are several."""
    if len(paths) + len(ontology) > 1:
        names = [*(path.name for path in paths), *(f"{path.name}, which only describes" for path in ontology)]
        builder.reading.understood["files"] = "; ".join(names)
    if not (len(builder) or builder.labels or builder.types or builder.relation_labels or builder.declared_types):
        left = "".join(f", {count:,} {what}" for what, count in builder.reading.left_out.items())
        empty = "" if paths[0].stat().st_size else "the file is empty: "
        raise GraphLoadError(
            f"{empty}no facts, {builder.skipped:,} malformed lines{left}.",
            paths[0],
            hint_python="Name a file that holds statements of RDF.",
        )
    return builder


def _build(statements: Statements, format: str, declared: dict[str, str], skipped: int) -> GraphBuilder:
    """Return the builder of what was collected.

    Args:
        statements: What was collected.
        format: The name of the format.
        declared: The prefixes that the source declares.
        skipped: How many malformed lines were skipped.
    """
    statements.check_graphs()
    longest, limit = max(map(len, statements.ids), default=0), statements.options.limits.cell_length
    if longest > limit:
        raise limit_error(statements.place, None, f"an IRI of {longest:,} characters", "cell_length", longest)
    builder = GraphBuilder(format=format)
    builder.skipped = skipped
    prefixes = Prefixes({**declared, **statements.options.prefixes})
    builder.reading.options = given_options(statements.options, prefixes)
    take_foreign(statements)
    taken_names = statements.names.finish()
    columns = RdfColumns(statements, builder, prefixes)
    columns.fill()
    describe_reading(statements, builder, columns, taken_names)
    return builder
