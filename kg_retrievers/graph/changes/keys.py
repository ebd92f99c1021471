"""Keys of an added graph: an IRI gets the key that the graph has for it, a blank node one that the graph lacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.building import GraphBuilder, relation_names
from kg_retrievers.graph.changes.descriptions import is_made_up
from kg_retrievers.graph.changes.merge import find_relations, written_relations, written_types
from kg_retrievers.graph.columns import Array, StringTable
from kg_retrievers.graph.iris import NAMED, Prefixes
from kg_retrievers.graph.readers.rdf.parsing import FORMATS
from kg_retrievers.graph.writers.content import GraphContent

if TYPE_CHECKING:
    from kg_retrievers.graph.knowledge_graph import KnowledgeGraph


#: The `Reading.format` of what was read from RDF.
RDF = (*FORMATS, "rdflib")


def fit_keys(graph: KnowledgeGraph, addition: KnowledgeGraph) -> KnowledgeGraph:
    """Return an addition whose keys are those of a graph, so that equal IRIs have equal keys.

    Keys are equal IRIs where their prefixes say so: "ex:klee" is <http://museum.example/id/klee> if "ex" stands for
    http://museum.example/id/. The prefixes of the graph go before those of the addition. Blank nodes of RDF are
    others than those of the graph, whatever they are called.
    """
    forms = _Forms(graph, addition)
    new = forms.find()
    return renamed(addition, new, forms.prefixes) if any(new) else addition


def check_blank_nodes(removal: KnowledgeGraph) -> None:
    """Check that facts to remove that were read from RDF name no blank node.

    Raises:
        InvalidArgumentError: If they do.
    """
    if removal.reading.format not in RDF:
        return
    blank = np.array([key.startswith("_:") for key in removal.entities], np.bool_)
    found = np.flatnonzero(blank[removal.edges.heads] | blank[removal.edges.tails])
    if len(found):
        raise InvalidArgumentError(
            f"KnowledgeGraph.with_changes: {len(found):,} of the facts to remove have blank nodes, as "
            f"{tuple(removal.triple(int(found[0])))}. A blank node of one file is none of another.",
            hint_python='Name them by the keys of the graph: removed=[("_:b7", relation, tail)].',
            hint_shell="Name them by the keys of the graph, in a TSV file: _:b7<TAB>relation<TAB>tail.",
        )


class _Forms:
    """Finds the form that a graph has for what an addition writes."""

    def __init__(self, graph: KnowledgeGraph, addition: KnowledgeGraph) -> None:
        ours, theirs = graph.prefixes, addition.prefixes
        self._graph, self._addition = graph, addition
        self._is_rdf = addition.reading.format in RDF
        self._twofold = any(ours[prefix] != theirs[prefix] for prefix in ours.keys() & theirs.keys())
        self._expand = Prefixes(theirs).expand
        self.prefixes = Prefixes({prefix: iri for prefix, iri in theirs.items() if prefix not in ours} | ours)

    def find(self) -> NewTexts:
        """Return the new form of each text that gets another."""
        has_prefixes = self._graph.prefixes or self._addition.prefixes
        new = self._of_iris() if has_prefixes else NewTexts({}, {}, {}, {}, {})
        if self._is_rdf:
            self._add_blank_nodes(new)
        return new

    def _of_iris(self) -> NewTexts:
        graph, addition = self._graph, self._addition
        entities = self._unknown(addition.entities, graph.entities.ids_of(addition.entities))
        relations = written_relations(addition)
        unknown = self._unknown(relations, find_relations(graph, relations))
        datatypes = [name for name in addition.datatype_names or () if not name.startswith(("@", "xsd:"))]
        return NewTexts(
            self._new(self._without_literals(entities), graph.entities),
            self._new(unknown, written_relations(graph)),
            self._new(written_types(addition), StringTable.from_strings(dict.fromkeys(written_types(graph)))),
            self._new(addition.source_names or (), graph.source_names or _EMPTY),
            self._new(datatypes, graph.datatype_names or _EMPTY),
        )

    def _unknown(self, table: StringTable, found: Array) -> list[str]:
        """Return the texts that the graph lacks, or that have a prefix with another meaning there."""
        if self._twofold:
            return table[:]
        return [table[id] for id in np.flatnonzero(found < 0).tolist()]

    def _without_literals(self, keys: list[str]) -> list[str]:
        datatypes = self._addition._columns.get("datatypes")
        if datatypes is None:
            return keys
        literals = {self._addition.entities[id] for id in np.flatnonzero(datatypes >= 0).tolist()}
        return [key for key in keys if key not in literals]

    def _new(self, texts: Iterable[str], known: StringTable) -> dict[str, str]:
        """Return the new form of each text that gets another."""
        new = {text: self._form(text, known) for text in texts}
        return {text: form for text, form in new.items() if form != text}

    def _form(self, text: str, known: StringTable) -> str:
        """Return the form that the graph has, or would have, for an IRI; any other text as it is."""
        iri = text if text.startswith("_:") else self._expand(text)
        if iri.startswith((NAMED, "_:")):
            return text
        short = self.prefixes.compact(iri)
        found = next((form for form in (short, iri, f"<{iri}>") if form in known), None)
        return found or (short if self._is_rdf else text)

    def _add_blank_nodes(self, new: NewTexts) -> None:
        """Give blank nodes other keys where the graph has one of them."""
        known, addition = self._graph, self._addition
        nodes = self._without_literals([key for key in addition.entities if key.startswith("_:")])
        if any(key in known.entities for key in nodes):
            new.entities.update(zip(nodes, _free(known.entities, "_:b", len(nodes)), strict=True))
        graphs = [name for name in addition.source_names or () if name.startswith("_:")]
        new.sources.update({name: new.entities[name] for name in graphs if name in new.entities})
        sources, alone = known.source_names or _EMPTY, [name for name in graphs if name not in addition.entities]
        if any(name in sources for name in alone):
            new.sources.update(zip(alone, _free(sources, "_:g", len(alone)), strict=True))


def _free(known: StringTable, start: str, count: int) -> list[str]:
    """Return so many texts that a table lacks: the start and a number."""
    free: list[str] = []
    first, size = 0, max(2 * count, 1024)
    while len(free) < count:
        names = [f"{start}{number}" for number in range(first, first + size)]
        missing = np.flatnonzero(known.ids_of(StringTable.from_strings(names)) < 0).tolist()
        free += [names[at] for at in missing]
        first, size = first + size, 2 * size
    return free[:count]


_EMPTY = StringTable.from_strings([])


class NewTexts(NamedTuple):
    """The new form of keys, of ids of relations and types, of sources and of datatypes, where it differs."""

    entities: dict[str, str]
    relations: dict[str, str]
    types: dict[str, str]
    sources: dict[str, str]
    datatypes: dict[str, str]


def renamed(addition: KnowledgeGraph, new: NewTexts, prefixes: Prefixes) -> KnowledgeGraph:
    """Return a graph with other texts, whose prefixes have some of these; entities that get one key become one."""
    builder = GraphBuilder()
    content = GraphContent(addition._columns, addition.prefixes, addition.type_ids)
    labels = _new_labels(addition.types, written_types(addition), new.types, addition.prefixes, prefixes)
    types = _new_types(addition, new, labels, builder)
    for entity in content.entities():
        key = new.entities.get(entity.key, entity.key)
        builder.entity(key)
        label = None if entity.label == entity.key else entity.label
        if label or entity.aliases or entity.types:
            builder.describe(key, label, entity.aliases, [types[name] for name in entity.types])
        if entity.datatype:
            builder.set_datatype(key, new.datatypes.get(entity.datatype, entity.datatype))
    relations = {id: new.relations.get(id, id) for id in content.relation_ids}
    labels = _new_labels(content.relations, content.relation_ids, new.relations, addition.prefixes, prefixes)
    builder.relation_labels.update(labels)
    for fact in content.facts():
        head, tail = (new.entities.get(key, key) for key in (fact.head, fact.tail))
        for source in fact.sources or [""]:
            builder.add(head, relations[fact.relation_id], tail, new.sources.get(source, source) or None)
    return _made(addition, new, builder, prefixes)


def _new_labels(
    names: Iterable[str],
    ids: Iterable[str],
    new: Mapping[str, str],
    before: Mapping[str, str],
    prefixes: Prefixes,
) -> dict[str, str]:
    """Return the labels of relations or types by their new ids; one that was made of an IRI is made anew.

    Args:
        names: What they are called.
        ids: How the source writes them.
        new: Their new ids, where they differ.
        before: The prefixes of the earlier ids.
        prefixes: The prefixes of the new ids.
    """
    labels = {}
    for name, id in zip(names, ids, strict=True):
        label = name.removesuffix(f" ({id})")
        if id in new and (label == id or is_made_up(label, id, before)):
            label = prefixes.name_of(prefixes.expand(new[id]))
        labels[new.get(id, id)] = label
    return {id: label for id, label in labels.items() if label != id}


def _new_types(
    addition: KnowledgeGraph, new: NewTexts, labels: Mapping[str, str], builder: GraphBuilder
) -> dict[str, str]:
    """Return what each type is called now, and say in the builder how its source writes it."""
    ids = {name: new.types.get(id, id) for name, id in zip(addition.types, written_types(addition), strict=True)}
    distinct = [*dict.fromkeys(ids.values())]
    names = dict(zip(distinct, relation_names(distinct, labels), strict=True))
    builder.type_ids = {name: id for id, name in names.items() if name != id}
    return {name: names[id] for name, id in ids.items()}


def _made(addition: KnowledgeGraph, new: NewTexts, builder: GraphBuilder, prefixes: Prefixes) -> KnowledgeGraph:
    """Return the graph of a builder, with what is known of the addition."""
    columns, _ = builder.columns()
    made = type(addition)(columns, 0, addition.skipped, reading=addition.reading, type_ids=builder.type_ids)
    made.duplicates = addition.duplicates + len(addition) - len(made)
    names = dict(zip(written_relations(made), made.relations, strict=True))
    ids = dict(zip(addition.relations, written_relations(addition), strict=True))
    made.text_relations = tuple(names[new.relations.get(ids[name], ids[name])] for name in addition.text_relations)
    keys = [key for key in made.entities if key not in builder.datatypes]
    types = (builder.type_ids.get(name, name) for name in made.types)
    made.prefixes = prefixes.used([*keys, *names, *types, *builder.datatypes.values()])
    return made
