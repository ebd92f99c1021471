"""Merge an addition into a graph's ids and columns.

An IRI of an added graph gets the key that the graph has for it, a blank node one that the graph lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, count, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kg_retrievers.errors import InvalidArgumentError, did_you_mean
from kg_retrievers.graph.adjacency import blocks
from kg_retrievers.graph.attributes import SOURCE, attribute_set, read_attribute_set
from kg_retrievers.graph.building import (
    NO_ATTRIBUTES,
    NONE,
    Pairs,
    attribute_columns,
    name_columns,
    relation_names,
    type_columns,
)
from kg_retrievers.graph.columns import Array, StringTable
from kg_retrievers.graph.iris import NAMED, Prefixes, local_words
from kg_retrievers.graph.readers.rdf.parsing import FORMATS

if TYPE_CHECKING:
    from kg_retrievers.graph.knowledge_graph import KnowledgeGraph

#: The `Reading.format` of graphs that were read from RDF.
RDF = (*FORMATS, "rdflib")


class NewTexts(NamedTuple):
    """The graph's spelling of an addition's texts, by the addition's own.

    Attributes:
        prefixes: The prefixes of the addition, as the graph writes it.
        entities: The keys of entities.
        relations: How the source writes relations.
        types: How the source writes types.
        sources: The names of sources.
        datatypes: The names of datatypes.
    """

    prefixes: Mapping[str, str]
    entities: Mapping[str, str] = {}
    relations: Mapping[str, str] = {}
    types: Mapping[str, str] = {}
    sources: Mapping[str, str] = {}
    datatypes: Mapping[str, str] = {}


def written_relations(graph: KnowledgeGraph) -> StringTable:
    """Return how the source of a graph wrote its relations."""
    return graph.relations if graph.relation_ids is None else graph.relation_ids


def written_types(graph: KnowledgeGraph) -> list[str]:
    """Return how the source of a graph wrote its types."""
    return [graph.type_ids.get(name, name) for name in graph.types]


def new_texts(graph: KnowledgeGraph, addition: KnowledgeGraph) -> NewTexts:
    """Return the graph's spelling of an addition's texts.

    It gives equal IRIs equal keys.

    Keys are equal IRIs if their prefixes say so: "ex:klee" is <http://museum.example/id/klee> if "ex" stands for
    http://museum.example/id/. The prefixes of the graph go before the prefixes of the addition. Blank nodes of RDF
    never equal blank nodes of the graph, whatever their names.
    """
    ours, theirs = graph.prefixes, addition.prefixes
    is_rdf = addition.reading.format in FORMATS
    if not (ours or theirs or is_rdf):
        return NewTexts({})
    expand = Prefixes(theirs).expand
    prefixes = Prefixes({prefix: iri for prefix, iri in theirs.items() if prefix not in ours} | ours)
    is_twofold = any(ours[prefix] != theirs[prefix] for prefix in ours.keys() & theirs.keys())

    def form(text: str, known: Container[str]) -> str:
        iri = text if text.startswith("_:") else expand(text)
        if iri.startswith((NAMED, "_:")):
            return text
        short = prefixes.compact(iri)
        return next((one for one in (short, iri, f"<{iri}>") if one in known), short if is_rdf else text)

    def renamed(texts: Iterable[str] | None, known: Container[str] | None) -> dict[str, str]:
        ours = known or ()
        forms = {text: form(text, ours) for text in texts or () if is_twofold or text not in ours}
        return {text: one for text, one in forms.items() if one != text}

    literals = addition._columns.get("datatypes", np.full(len(addition.entities), -1)) >= 0
    keys = [addition.entities[id] for id in np.flatnonzero(~literals).tolist()]
    datatypes = [name for name in addition.datatype_names or () if not name.startswith(("@", "xsd:"))]
    entities, sources = renamed(keys, graph.entities), renamed(addition.source_names, graph.source_names)
    relations = renamed(written_relations(addition), written_relations(graph))
    types, kinds = renamed(written_types(addition), {*written_types(graph)}), renamed(datatypes, graph.datatype_names)
    if is_rdf:
        nodes = [key for key in keys if key.startswith("_:")]
        entities |= _free(nodes, "_:b", graph.entities)
        graphs = [name for name in addition.source_names if name.startswith("_:")]
        sources |= {name: entities[name] for name in graphs if name in entities}
        sources |= _free([name for name in graphs if name not in addition.entities], "_:g", graph.source_names)
    if not any((entities, relations, types, sources, kinds)):
        return NewTexts(theirs)
    texts = [*keys, *written_relations(addition), *written_types(addition), *datatypes]
    forms = entities | relations | types | kinds
    used = prefixes.used(forms.get(text, text) for text in texts)
    return NewTexts(used, entities, relations, types, sources, kinds)


def _free(nodes: list[str], start: str, known: Container[str]) -> dict[str, str]:
    """Return other names for blank nodes if a graph has one of them.

    A name is the start and a number.
    """
    if not any(node in known for node in nodes):
        return {}
    free = (name for name in (f"{start}{number}" for number in count()) if name not in known)
    return dict(zip(nodes, islice(free, len(nodes)), strict=True))


@dataclass(frozen=True)
class JoinedTable:
    """The texts of a graph, followed by texts that only an addition has.

    Attributes:
        old: The texts of the graph.
        new: The texts that only the addition has.
        ids: The id of each text of the addition.
    """

    old: StringTable
    new: StringTable
    ids: Array

    @classmethod
    def of(
        cls,
        old: StringTable,
        texts: Iterable[str],
        renamed: Mapping[str, str],
        find: Callable[[StringTable], Array] | None = None,
    ) -> JoinedTable:
        """Look up the texts of an addition.

        Args:
            old: The texts of the graph.
            texts: The texts of the addition.
            renamed: The texts that take the place of some of them. Two may become one.
            find: Returns the id of each text in the graph, -1 if it is missing. By default the id of the same text.
        """
        if isinstance(texts, StringTable) and not renamed:
            table, positions = texts, np.arange(len(texts))
        else:
            wanted = [renamed.get(text, text) for text in texts]
            table = StringTable.from_strings(dict.fromkeys(wanted))
            positions = np.array([table.find(text) for text in wanted], np.int64)
        ids = (find or old.ids_of)(table).astype(np.int64)
        missing = ids < 0
        ids[missing] = len(old) + np.arange(int(missing.sum()))
        return cls(old, table.subset(missing), ids[positions])

    def __len__(self) -> int:
        """The number of texts of both."""
        return len(self.old) + len(self.new)

    @property
    def is_new(self) -> Array:
        """Which texts of the addition the graph lacks: bool."""
        return self.ids >= len(self.old)

    def subset(self, kept: Array) -> StringTable:
        """Return some texts of both, in their order."""
        return self.old.subset(kept[: len(self.old)]).joined(self.new.subset(kept[len(self.old) :]))

    def origins(self, kept: Array) -> Array:
        """Return the earlier id of each text that stays, -1 if it is new."""
        ids = np.flatnonzero(kept)
        return np.where(ids < len(self.old), ids, -1)


def mask(size: int, ids: Array | list[int]) -> Array:
    """Return which of so many items are among some: bool."""
    found = np.zeros(size, np.bool_)
    for block in blocks(len(ids)):
        found[ids[block]] = True
    return found


def new_ids(kept: Array) -> Array:
    """Return the new id of each item if only some stay.

    It is int32, and -1 for the others.

    Example:
        >>> new_ids(np.array([True, False, True])).tolist()
        [0, -1, 1]
    """
    return np.where(kept, np.cumsum(kept, dtype=np.int32) - 1, -1).astype(np.int32)


def find_relations(graph: KnowledgeGraph, texts: StringTable) -> Array:
    """Return the id of each relation by the source's spelling, or else by its name.

    It is -1 if the relation is missing.
    """
    found = written_relations(graph).ids_of(texts)
    return np.where(found < 0, graph.relations.ids_of(texts), found)


class Said(NamedTuple):
    """The replacement of descriptions, by entity key."""

    labels: Mapping[str, str]
    aliases: Mapping[str, Sequence[str]]
    types: Mapping[str, Sequence[str]]


class Descriptions(NamedTuple):
    """The names and types of entities.

    They are in ids of names and types before some are left out.

    Attributes:
        labels: The name of each entity.
        aliases: The further names of entities.
        types: The types of entities.
    """

    labels: Array
    aliases: Pairs
    types: Pairs


class Merge:
    """A graph, its addition, and the ids that the addition gets.

    These are ids of the graph, or new ones behind them.

    Args:
        graph: The graph.
        addition: The added graph.
        new: The texts that take the place of some of the addition.
    """

    def __init__(self, graph: KnowledgeGraph, addition: KnowledgeGraph, new: NewTexts) -> None:
        """Look up the parts of the addition."""
        self.graph, self.addition, self.new = graph, addition, new
        self.entities = JoinedTable.of(graph.entities, addition.entities, new.entities)
        written, find = (written_relations(graph), written_relations(addition)), partial(find_relations, graph)
        self.relations = JoinedTable.of(*written, new.relations, find)
        self._is_unlabelled = addition.labels == addition.names.ids_of(addition.entities)
        labels = {key: form for key, form in new.entities.items() if self._is_unlabelled[addition.entities.find(key)]}
        self.names = JoinedTable.of(graph.names, addition.names, labels)
        self._join_types()

    def edges(self) -> tuple[Array, Array, Array]:
        """Return head, relation and tail of each added triple by ids of both."""
        edges = self.addition.edges
        return self.entities.ids[edges.heads], self.relations.ids[edges.relations], self.entities.ids[edges.tails]

    # --- descriptions -------------------------------------------------------------------------------------------------

    def describe(self, said: Said | None) -> Descriptions:
        """Describe the entities of both.

        If both give a label, the label of the addition counts, except the end of an IRI. Aliases and types are joined.

        Args:
            said: The replacement of descriptions of the graph. The addition says the same.
        """
        graph, addition, entities = self.graph, self.addition, self.entities
        if said is None:
            labelled = ~self._is_unlabelled
            labelled[self._with_ends_of_iris(np.flatnonzero(labelled & ~entities.is_new))] = False
        else:
            labelled = mask(len(addition.entities), [addition.entities.find(key) for key in said.labels])
        labels = np.append(graph.labels, np.zeros(len(entities.new), np.int32))
        for chosen in (entities.is_new & ~labelled, labelled):
            labels[entities.ids[chosen]] = self.names.ids[addition.labels[chosen]]
        return Descriptions(
            labels,
            self._joined_pairs("aliases", self.names.ids, said.aliases if said else ()),
            self._joined_pairs("entity_types", self.types, said.types if said else ()),
        )

    def _joined_pairs(self, name: str, ids: Array, replaced: Iterable[str]) -> Pairs:
        """Return the pairs of both graphs.

        For some keys, the addition's pairs take the place of the graph's.
        """
        old, new = Pairs.named(self.graph._columns, name), Pairs.named(self.addition._columns, name)
        gone = self.entities.ids[[self.addition.entities.find(key) for key in replaced]]
        old = old.subset(~mask(len(self.entities), gone)[old.owners])
        return old.joined(Pairs(self.entities.ids[new.owners], ids[new.values]))

    def _with_ends_of_iris(self, entities: Array) -> list[int]:
        """Return the added entities whose labels are the ends of their IRIs."""
        addition, expand = self.addition, Prefixes(self.addition.prefixes).expand
        words = ((id, local_words(expand(addition.entities[id]))) for id in entities.tolist())
        return [id for id, local in words if addition.names[addition.labels[id]] == local]

    def kept_entities(self, descriptions: Descriptions, lonely: Array) -> Array:
        """Return which entities stay: bool. One that loses its last triple stays if something describes it.

        Args:
            descriptions: The names of entities.
            lonely: Which entities have no triple after the change: bool. It is changed.
        """
        graph = self.graph
        lonely[: len(graph.entities)] &= np.diff(graph.adjacency.indptr) > 0  # it was not before
        lonely[self.entities.ids] = False
        for pairs in (descriptions.aliases, descriptions.types):
            lonely[pairs.owners] = False
        expand = Prefixes(graph.prefixes).expand
        for entity in np.flatnonzero(lonely).tolist():
            label, key = int(descriptions.labels[entity]), graph.entities[entity]
            if label < len(graph.names) and not key.startswith("_:"):
                lonely[entity] = graph.names[label] in (key, local_words(expand(key)))
        kept: Array = ~lonely
        return kept

    def name_columns(self, descriptions: Descriptions, entities: StringTable) -> tuple[dict[str, Array], Array]:
        """Return the columns of names, and the earlier id of each name.

        If each entity is called by its key alone, there are no columns, and names are in the order of entities.

        Args:
            descriptions: The names of the entities that stay.
            entities: Their keys.
        """
        labels, aliases, _ = descriptions
        used = mask(len(self.names), np.append(labels, aliases.values))
        table, ids, origins = self.names.subset(used), new_ids(used), self.names.origins(used)
        labels = ids[labels]
        if not len(aliases.values) and np.array_equal(entities.ids_of(table)[labels], np.arange(len(labels))):
            return {}, origins[labels]
        return name_columns(table, labels, aliases._replace(values=ids[aliases.values])), origins

    # --- relations and types ------------------------------------------------------------------------------------------

    def _join_types(self) -> None:
        """Look up the types of the addition, and the sources' spelling of types.

        A type that both write by an id is found by the id. A type that either calls by its name alone is found by this
        name.
        """
        graph, addition = self.graph, self.addition
        self.type_ids = written_types(graph)
        at = {id: number for number, id in enumerate(self.type_ids)}
        found = []
        for name, written in zip(addition.types, written_types(addition), strict=True):
            id = self.new.types.get(written, written)
            number = at.get(id, -1)
            if number < 0 and not (name in addition.type_ids and name in graph.type_ids):
                number = graph.types.find(name)
                if number >= 0 and id != name:
                    self.type_ids[number] = id
            if number < 0:
                number = at[id] = len(self.type_ids)
                self.type_ids.append(id)
            found.append(number)
        self.types: Array = np.array(found, np.int64)

    def type_columns(self, types: Pairs, size: int) -> tuple[dict[str, Array], dict[str, str]]:
        """Return the columns of types that entities have, and how the sources write them.

        Args:
            types: The types of the entities that stay.
            size: The number of entities that stay.
        """
        graph, addition = self.graph, self.addition
        used = mask(len(self.type_ids), types.values)
        labels = _plain_labels(graph.types, self.type_ids)
        self._add_labels(labels, addition.types, written_types(addition), self.new.types)
        ids = [self.type_ids[kind] for kind in np.flatnonzero(used).tolist()]
        names = relation_names(ids, labels)
        written = {name: id for name, id in zip(names, ids, strict=True) if name != id}
        types = types._replace(values=new_ids(used)[types.values])
        return type_columns(StringTable.from_strings(names), types, size), written

    def relation_columns(self, kept: Array, labels: Mapping[str, str]) -> tuple[dict[str, Array], list[str]]:
        """Return the columns of the relations that stay.

        Also return the names of the staying relations among `text_relations` of both graphs.

        All names are computed again, since a label that another relation gets or loses changes the name that is shown.

        Args:
            kept: Which relations stay: bool.
            labels: New labels, by the name of a relation in the source or the graph.

        Raises:
            InvalidArgumentError: If a label belongs to no relation.
        """
        graph, addition = self.graph, self.addition
        table = self.relations.subset(kept)
        ids = [*table]
        own = _plain_labels(graph.relations, written_relations(graph))
        self._add_labels(own, addition.relations, written_relations(addition), self.new.relations)
        everything = [*chain(self.relations.old, self.relations.new)]
        of_addition = [everything[id] for id in self.relations.ids.tolist()]
        known = dict(zip(addition.relations, of_addition, strict=True))
        known |= zip(graph.relations, self.relations.old, strict=True)
        known |= {id: id for id in ids}
        for text, label in labels.items():
            if (id := known.get(text)) not in table:
                near = did_you_mean(text, [*graph.relations, *addition.relations])
                raise InvalidArgumentError(
                    f"KnowledgeGraph.with_changes: relation_labels names {text!r}, which is no relation of the graph"
                    f"{f'; {near}' if near else '.'} See `graph.relations`."
                )
            own[str(id)] = label
        names = relation_names(ids, own)
        columns = StringTable.from_strings(names).columns("relations")
        if names != ids:
            columns |= table.columns("relation_ids")
        now = dict(zip(ids, names, strict=True))
        texts = [known[name] for name in (*graph.text_relations, *addition.text_relations)]
        return columns, [now[id] for id in texts if id in now]

    def _add_labels(
        self, labels: dict[str, str], names: Iterable[str], written: Iterable[str], new: Mapping[str, str]
    ) -> None:
        """Add the labels of relations or types of the addition.

        The end of an IRI replaces no label.

        Args:
            labels: The labels of the graph, by how its source writes them.
            names: Their names in the addition.
            written: How its source writes them.
            new: How they are written in the graph, if that differs.
        """
        expand, prefixes = Prefixes(self.addition.prefixes).expand, Prefixes(self.new.prefixes)
        for name, earlier in zip(names, written, strict=True):
            id, label = new.get(earlier, earlier), name.removesuffix(f" ({earlier})")
            is_made_up = label in (earlier, local_words(expand(earlier)))
            if is_made_up and earlier in new:
                label = prefixes.name_of(prefixes.expand(id))
            if label != id and not (is_made_up and id in labels):
                labels[id] = label

    # --- attributes and datatypes -------------------------------------------------------------------------------------

    def attribute_columns(
        self, origins: Array, of_addition: Array, removed: Array, source: str | None
    ) -> dict[str, Array]:
        """Return the attributes of each triple, or nothing if no triple has any.

        Args:
            origins: The id that each triple had in the graph, -1 if it is new.
            of_addition: The id that each triple of the addition gets.
            removed: The ids of the sets of attributes that are left out.
            source: The origin of the whole addition.
        """
        given = _sets(self.addition)
        if not (source or len(given) or len(_sets(self.graph))):
            return {}
        size, of_graph, kept = len(origins), np.full(len(self.graph), -1), np.flatnonzero(origins >= 0)
        of_graph[origins[kept]] = kept
        table = JoinedTable.of(_sets(self.graph), [self._renamed_source(text) for text in given], {})
        texts, old, new = [*table.old, *table.new], attribute_pairs(self.graph), attribute_pairs(self.addition)
        stays = (of_graph[old.owners] >= 0) & ~np.isin(old.values, removed)
        owners = [of_graph[old.owners[stays]], of_addition[new.owners]]
        values = [old.values[stays], np.append(table.ids, NONE)[new.values]]  # the last one is that of NONE
        if source:
            named = dict[str, int](zip(texts, range(len(texts)), strict=True))

            def number(attributes: Mapping[str, Any]) -> int:
                return named.setdefault(attribute_set({SOURCE: source, **attributes}), len(named))

            sets = [*map(read_attribute_set, given), {}]  # the last one is that of NONE
            values[1] = np.array([number(one) for one in sets], np.int64)[new.values]
            also = np.array([SOURCE in one for one in sets])[new.values]
            sourced = np.array([number({**one, SOURCE: source}) for one in sets], np.int64)
            owners.append(of_addition[new.owners[also]])
            values.append(sourced[new.values[also]])
            texts = [*named]
        return attribute_columns(texts, Pairs(np.concatenate(owners), np.concatenate(values)), size)

    def _renamed_source(self, text: str) -> str:
        """Return a set of attributes of the addition as the graph writes its source."""
        attributes = read_attribute_set(text)
        source = attributes.get(SOURCE)
        renamed = self.new.sources.get(source) if isinstance(source, str) else None
        return attribute_set({**attributes, SOURCE: renamed}) if renamed else text

    def datatype_columns(self, kept: Array) -> dict[str, Array]:
        """Return the datatype of each entity that stays, or nothing if none has one.

        Of two datatypes of one text the first in sorted order counts.
        """
        graph, addition = self.graph, self.addition
        table = JoinedTable.of(graph.datatype_names or EMPTY, addition.datatype_names or EMPTY, self.new.datatypes)
        names = [*table.old, *table.new]
        ranks = np.argsort(sorted(range(len(names)), key=names.__getitem__))
        column = np.full(len(self.entities), len(names), np.int32)
        of_graph = graph._columns, np.arange(len(table.old)), np.arange(len(graph.entities))
        for columns, ids, entities in (of_graph, (addition._columns, table.ids, self.entities.ids)):
            if "datatypes" in columns:
                known = np.append(ranks[ids], len(names)).astype(np.int32)  # the last one is that of NONE
                np.minimum.at(column, entities, known[columns["datatypes"]])
        column = column[kept]
        used = mask(len(names) + 1, column)
        used[-1] = False
        if not used.any():
            return {}
        some = [name for name, is_used in zip(sorted(names), used[:-1], strict=True) if is_used]
        return StringTable.from_strings(some).columns("datatype_names") | {"datatypes": new_ids(used)[column]}


def _plain_labels(names: Iterable[str], written: Iterable[str]) -> dict[str, str]:
    """Return the labels of relations or types, by the source's spelling."""
    pairs = zip(names, written, strict=False)
    return {id: name.removesuffix(f" ({id})") for name, id in pairs if name != id}


def attribute_pairs(graph: KnowledgeGraph) -> Pairs:
    """Return each triple and its sets of attributes.

    `NONE` stands for a triple that is given without any.
    """
    pairs = Pairs.named(graph._columns, "triple_attributes")
    plain = np.flatnonzero(~mask(len(graph), pairs.owners))
    empty = _sets(graph).find(NO_ATTRIBUTES)
    values = np.where(pairs.values == empty, NONE, pairs.values) if empty >= 0 else pairs.values
    return Pairs(np.append(pairs.owners, plain), np.append(values, np.full(len(plain), NONE)))


def _sets(graph: KnowledgeGraph) -> StringTable:
    return graph.attribute_sets.texts


EMPTY = StringTable.from_strings([])
