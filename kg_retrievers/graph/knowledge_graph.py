"""KnowledgeGraph: immutable columns of triples with both directions, names and types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from functools import cached_property
from itertools import chain
from numbers import Integral
from pathlib import Path
from typing import Any, Self, Unpack

import networkx as nx
import numpy as np

from kg_retrievers.errors import GraphLoadError, InvalidArgumentError, did_you_mean, listed, named_arguments
from kg_retrievers.graph.adjacency import SAVED_FROM, Adjacency, Edges, RelationSamples
from kg_retrievers.graph.attributes import SOURCE, VALIDITY, AttributeSets, AttributeValue, Where, sources_of
from kg_retrievers.graph.building import NONE, GraphBuilder, Reading
from kg_retrievers.graph.changes.changing import Changes, change_graph, join_files, narrow_graph
from kg_retrievers.graph.columns import (
    Array,
    StringTable,
    entries_between,
    fingerprint,
    frozen,
    missing_columns,
    with_silent,
    without_silent,
)
from kg_retrievers.graph.constructors import GraphConstructors
from kg_retrievers.graph.schema import Schema, schema_of
from kg_retrievers.graph.storage.bounds import check_graph, check_types
from kg_retrievers.graph.storage.parts import KEEP, FolderWriter, Keep, OpenedPart, Part, open_parts, saved_meta
from kg_retrievers.graph.types import Triple
from kg_retrievers.graph.value_columns import ValueColumns
from kg_retrievers.graph.values import Value, read_typed_value, read_value
from kg_retrievers.graph.writers.content import GraphContent
from kg_retrievers.graph.writers.files import OnLoss, WriteFormat, write_graph
from kg_retrievers.graph.writers.texts import edge_key, edges_of, node_attributes

#: How many triples are read at once where all are asked for.
TRIPLES_AT_ONCE = 256


@named_arguments
class KnowledgeGraph(GraphConstructors):
    """A directed multigraph of facts. A key identifies an entity. Labels, aliases and types describe it.

    Immutable, safe to share between threads. Build one with `from_triples`, `from_file`, `from_networkx` or `open`.

    A copy is the graph itself. A graph that was opened from a folder is pickled as this folder as long as the folder
    holds the graph, so that another process maps the same files. Any other graph is pickled with all of its columns.

    Attributes:
        entities: The entity keys. The position of a key is its id in all arrays.
        relations: The relations.
        types: The types.
        names: All distinct labels and aliases.
        labels: The label of each entity: int32, shape (entities), ids of names.
        relation_ids: How the source wrote each relation. None if that is its name.
        attribute_sets: The distinct sets of attributes of facts.
        datatype_names: The datatypes and languages of all literals. None if no literal has one.
        edges: The triples by id, sorted by head, relation and tail: `edges[ids]` holds the ids of each, and
            `edges.heads`, `edges.relations` and `edges.tails` hold the ids of all.
        adjacency: The triples by entity, both directions.
        duplicates: How many repeated triples were dropped on the way in.
        skipped: How many unreadable lines were skipped on the way in (`on_error="skip"`).
        text_relations: The relations whose tails are texts, even if they read like numbers or dates. An entity that is
            a tail of such relations alone has no value.
        prefixes: The IRI that each prefix of a key stands for. Empty unless the graph was read from RDF.
        type_ids: How the source wrote a type that has another name, by this name: {"film": "dbo:Film"}.
        reading: The reader's understanding of the source, and the parts that were left out.
    """

    guide = (
        "Read a graph with from_file(path) or from_triples(rows), and open a saved one with open(folder). It has "
        "entities, relations, triples(head, relation, tail), label(key) and with_changes(added=..., removed=...)."
    )

    def __init__(
        self,
        columns: Mapping[str, Array],
        duplicates: int = 0,
        skipped: int = 0,
        text_relations: Iterable[str] = (),
        prefixes: Mapping[str, str] | None = None,
        reading: Reading | None = None,
        type_ids: Mapping[str, str] | None = None,
    ) -> None:
        """Take columns as `GraphBuilder.columns` or `open` made them.

        Use a named constructor instead.

        Raises:
            InvalidArgumentError: If they are no columns.
        """
        if not isinstance(columns, Mapping):
            raise InvalidArgumentError(
                f"KnowledgeGraph: got {columns!r:.100}. Read a file with KnowledgeGraph.from_file(path), a folder of "
                "`save` with open(path), and rows with from_triples(rows)."
            )
        self._columns = with_silent(columns)
        self._folder: Path | None = None
        self._saved_samples: RelationSamples | None = None
        self.duplicates = duplicates
        self.skipped = skipped
        self.text_relations = tuple(dict.fromkeys(text_relations))
        self.prefixes = dict(prefixes or {})
        self.type_ids = dict(type_ids or {})
        self.reading = reading or Reading()
        self.entities = StringTable.from_columns(columns, "entities")
        self.relations = StringTable.from_columns(columns, "relations")
        self.types = StringTable.from_columns(self._columns, "types")
        self.names = StringTable.from_columns(self._columns, "names")
        self.labels = frozen(self._columns["labels"])
        self.relation_ids = self._optional_texts("relation_ids")
        self.attribute_sets = AttributeSets(self._optional_texts("attributes") or StringTable.from_strings([]))
        self.datatype_names = self._optional_texts("datatype_names")
        self.adjacency = Adjacency(*map(frozen, Adjacency.from_columns(columns)))
        self.edges = Edges(self.adjacency)

    def _optional_texts(self, name: str) -> StringTable | None:
        return StringTable.from_columns(self._columns, name) if f"{name}.hashes" in self._columns else None

    # --- in ---------------------------------------------------------------------------------------------------------

    @classmethod
    def open(cls, path: str | Path) -> KnowledgeGraph:
        """Open a folder that `save` wrote.

        The columns stay on disk and are mapped into memory.

        Raises:
            GraphLoadError: If the folder holds no complete graph.
        """
        return cls.from_part(path, open_parts(path, ["graph"])["graph"])

    @classmethod
    def from_part(cls, path: str | Path, part: OpenedPart) -> KnowledgeGraph:
        """Take the part "graph" of a folder that was opened.

        Raises:
            GraphLoadError: If it is not complete, or damaged so that an id leads to nothing.
        """
        columns, meta = dict(part.columns), part.meta
        try:
            check_types(columns)
            wanted = [*without_silent(cls.from_triples([])._columns), "duplicates", "skipped", "fingerprint"]
            missing = [name for name in wanted if name not in columns and name not in meta]
            if missing := missing + missing_columns(columns):
                raise ValueError(f"{', '.join(missing)} is missing")
            samples = RelationSamples.take(columns)
            check_graph(columns)
            reading = Reading(**meta.get("reading", {}))
        except (ValueError, KeyError, IndexError, TypeError) as cause:
            raise GraphLoadError(
                f"the graph is damaged: {cause}.",
                path,
                hint_python="Save the graph again.",
                hint_shell=f"To index a file: kg-retrievers index FILE --output {path}",
            ) from cause
        about = meta.get("text_relations", ()), meta.get("prefixes"), reading
        graph = cls(columns, meta["duplicates"], meta["skipped"], *about, meta.get("type_ids"))
        graph.fingerprint = meta["fingerprint"]
        graph._folder = Path(path).absolute()
        graph._saved_samples = samples
        return graph

    @classmethod
    def _reopen(cls, folder: Path, fingerprint: str) -> KnowledgeGraph:
        """Open the folder of a pickled graph."""
        graph = cls.open(folder)
        if graph.fingerprint != fingerprint:
            raise GraphLoadError("it holds another graph than the one that was pickled. Pickle it again.", folder)
        return graph

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the folder that the graph was opened from.

        If the folder does not hold the graph any more, pickle the columns.
        """
        if self._folder and saved_meta(self._folder, "graph").get("fingerprint") == self.fingerprint:
            return KnowledgeGraph._reopen, (self._folder, self.fingerprint)
        about = self.text_relations, self.prefixes, self.reading, self.type_ids
        return KnowledgeGraph, (without_silent(self._columns), self.duplicates, self.skipped, *about)

    @classmethod
    def _from_builder(cls, builder: GraphBuilder, text_relations: Iterable[str] = ()) -> Self:
        columns, duplicates = builder.columns()
        graph = cls(columns, duplicates, builder.skipped, (), builder.prefixes, builder.reading, builder.type_ids)
        given = (text_relations,) if isinstance(text_relations, str) else text_relations
        ids = graph.relation_ids or graph.relations
        of_source = [graph.relations[ids.find(id)] for id in builder.text_relations if id in ids]
        return graph._with_texts([*of_source, *given])

    @classmethod
    def _joined(cls, graphs: Sequence[Self], text_relations: Iterable[str]) -> Self:
        joined = join_files(graphs)
        given = [text_relations] if isinstance(text_relations, str) else [*text_relations]
        return joined._with_texts([*joined.text_relations, *given]) if given else joined

    def _with_texts(self, relations: Sequence[str]) -> Self:
        """Return the graph with other text relations."""
        if not relations:
            return self
        if strange := [relation for relation in relations if relation not in self.relations]:
            near = did_you_mean(strange[0], self.relations)
            raise InvalidArgumentError(
                f"KnowledgeGraph: the graph has no text relation {strange[0]!r}{f'; {near}' if near else '.'} "
                f"Its relations: {listed(self.relations)}.",
                hint_python="See `graph.relations`.",
                hint_shell="Give --read text_relations= one of them; `info` lists all.",
            )
        about = relations, self.prefixes, self.reading, self.type_ids
        return type(self)(self._columns, self.duplicates, self.skipped, *about)

    # --- out --------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the graph to a folder.

        It replaces an earlier save only when all is written.

        An index that the folder holds stays if it is one of this graph. An index of another graph is removed.

        Raises:
            FileWriteError: If another process writes there, the disk is full, or this user may not write there.
            InvalidArgumentError: If the folder holds a `manifest.json` of something else.
        """
        with FolderWriter(path) as writer:
            index = writer.before.parts.get("index")
            keeps = index is not None and index.meta.get("graph") == self.fingerprint
            parts: dict[str, Part | Keep] = {"graph": self.to_part()}
            writer.replace(parts | ({"index": KEEP} if keeps else {}))

    def to_part(self) -> Part:
        """Return what `from_part` reads back once it is saved."""
        meta = {"duplicates": self.duplicates, "skipped": self.skipped, "fingerprint": self.fingerprint}
        meta |= {"text_relations": list(self.text_relations)}
        meta |= {"prefixes": self.prefixes, "reading": asdict(self.reading), "type_ids": self.type_ids}
        samples = self.relation_samples.columns() if len(self) >= SAVED_FROM else {}
        return Part(without_silent(self._columns) | samples, meta)

    def write(
        self,
        path: str | Path,
        format: WriteFormat | None = None,
        *,
        entities: str | Path | None = None,
        on_loss: OnLoss = "raise",
    ) -> None:
        """Write the graph to a file that other programs read.

        `from_file` reads it, too. An earlier file is replaced at the end.

        - "jsonl": facts, their sources, and all statements about entities and relations. No text may be blank.
        - "graphml", "node-link" (`.json`): the same, but not which relations are `text_relations`.
        - "csv", "tsv", "parquet" (extra `arrow`): facts, in a row for each of their sources. TSV has no place for tabs
          and line breaks in texts.
        - "nt", "ttl", "rdf", and with sources "nq", "trig", "jsonld" (extra `rdf`): RDF. A name that is no IRI becomes
          one that `from_rdf` reads as this name, and so do the types that were called by a label. A prefix that is not
          well known comes back from "ttl" and "trig" alone: `from_rdf` makes the same keys of the others with
          `prefixes=graph.prefixes`.

        Args:
            path: The file. `.gz` at the end of its name packs it.
            format: How to write. None goes by the suffix.
            entities: A second file for data that a table of facts has no place for: `.csv`, `.tsv` and `.parquet` hold
                all that is known of entities, `.jsonl` also the ids of relations and which of them are
                `text_relations`.
            on_loss: "raise" refuses to write a graph that holds more than the files can. "drop" leaves that out.

        Raises:
            InvalidArgumentError: If the files cannot hold the graph, or no format has this name or suffix.
            FileWriteError: If the disk is full, or this user may not write there.
            MissingExtraError: If pyarrow or pyoxigraph is needed and not installed.

        Example:
            >>> KnowledgeGraph.from_triples([("Q1", "r", "Q2")], labels={"Q1": "Her"}).write("her.csv")
            Traceback (most recent call last):
            kg_retrievers.errors.InvalidArgumentError: KnowledgeGraph.write: csv cannot hold 1 labels. Write JSONL or \
GraphML or node-link JSON, which hold all; or give a second file, entities="entities.jsonl"; or leave out what it \
cannot hold with on_loss="drop".
        """
        write_graph(GraphContent(self), path, format, entities, on_loss)

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """Return a MultiDiGraph that holds all but `text_relations`, as `from_networkx` takes it.

        Nodes have "label", "aliases" and "types", and "datatype" if they have one. Edges have the relation as key and
        as "relation", and "relation_id", "sources" and other attributes if they have some. A fact that is stated
        several times, with other attributes, has several edges.
        """
        content, graph = GraphContent(self), nx.MultiDiGraph()
        for entity in content.entities():
            graph.add_node(entity.key, **node_attributes(entity))
        for fact in content.facts():
            for place, attributes in enumerate(edges_of(fact)):
                graph.add_edge(fact.head, fact.tail, key=edge_key(fact, place))
                graph.edges[fact.head, fact.tail, edge_key(fact, place)].update(attributes)
        return graph

    def with_changes(self, **changes: Unpack[Changes]) -> KnowledgeGraph:
        """Return a new graph with facts added and removed.

        Some entities may get other descriptions, too.

        It holds the same triples, labels, types and names as a graph made from its facts and descriptions. The order
        differs: entities, relations and names that stay keep their order, and new ones come behind them. An entity that
        is in no triple any more is gone, unless it has a label, an alias or a type, or was in no triple before.

        Cost: a few passes over the columns and two sorts, 0.1 to 0.2 s of CPU for a million triples.

        Args:
            added: Triples of texts, with relations by their ids ("P57") or names ("director"), or a graph, whose
                descriptions, datatypes and sources come with its facts. The labels of the graph take the place of
                others, except labels that were made from the end of an IRI. Its aliases and types join them. Facts that
                are there already are counted in `duplicates`. An IRI gets the key that the graph has for it, and a
                blank node of RDF one that the graph lacks.
            removed: Triples of the graph, or a graph that holds them, without blank nodes of RDF. A triple that is
                also added is in the new graph, without its earlier sources.
            labels: New labels by entity key.
            aliases: The further names by entity key, in place of its present ones.
            types: The types by entity key, in place of its present ones. A key that is in no triple becomes an entity.
            relation_labels: New labels of relations, by their ids or names.
            removed_sources: Sources that are left out, with the facts that are from no other source.
            source: The origin of the added facts. A fact that is also given without a source stays when its sources are
                removed.

        Raises:
            InvalidArgumentError: If a triple to remove is not in the graph, a label or alias belongs to no entity or
                relation, or no fact is from a source to remove.

        Example:
            >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Jonze"), ("Her", "genre", "Drama")])
            >>> changed = graph.with_changes(added=[("Her", "genre", "Romance")], removed=[("Her", "genre", "Drama")])
            >>> list(changed.entities)
            ['Her', 'Jonze', 'Romance']
        """
        return change_graph(self, **changes).graph

    @cached_property
    def fingerprint(self) -> str:
        """32 hexadecimal digits that change with any fact, name or type.

        They are computed once, and `save` keeps them.
        """
        return fingerprint(without_silent(self._columns), {})

    # --- questions of fact ------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of triples."""
        return len(self.edges)

    def __contains__(self, triple: object) -> bool:
        """Whether a triple `(head, relation, tail)` is a fact of the graph."""
        if not isinstance(triple, tuple) or len(triple) != 3 or not all(isinstance(text, str) for text in triple):
            return False
        return len(self._triple_ids(triple)) > 0

    def __repr__(self) -> str:
        """Sizes only."""
        return f"KnowledgeGraph({len(self.entities)} entities, {len(self.relations)} relations, {len(self)} triples)"

    def triples(
        self, head: str | None = None, relation: str | None = None, tail: str | None = None
    ) -> Iterator[Triple]:
        """Yield the triples with the given head, relation and tail, by their ids.

        By default, it yields all of them.

        Raises:
            InvalidArgumentError: If the graph has no such entity or relation.
        """
        ids = self._triple_ids((head, relation, tail))
        if not len(ids):
            for key in filter(None, (head, tail)):
                self._id_of(key)
            if relation:
                self.relation_id(relation)
        for first in range(0, len(ids), TRIPLES_AT_ONCE):
            for start, kind, end in self.edges[ids[first : first + TRIPLES_AT_ONCE]].tolist():
                yield Triple(self.entities[start], self.relations[kind], self.entities[end])

    def _triple_ids(self, triple: Sequence[str | None]) -> Array:
        """Return the ids of the triples with the given parts, ascending."""
        if not isinstance(triple, Sequence) or isinstance(triple, str) or len(triple) != 3:
            raise InvalidArgumentError(
                f"KnowledgeGraph: wanted a fact (head, relation, tail), but got {triple!r:.100}.",
                hint_python="An entity has facts: graph.triples(head=key).",
            )
        tables = (self.entities, self.relations, self.entities)
        wanted = [None if text is None else table.find(text) for text, table in zip(triple, tables, strict=True)]
        if -1 in wanted:
            return np.empty(0, np.int64)
        return self.edges.find(*wanted)

    def triple(self, id: int) -> Triple:
        """Return a triple by its id.

        The id is its position among all, sorted by the ids of head, relation and tail.
        """
        _check_id("triple", id, len(self.edges))
        head, relation, tail = self.edges.triple(int(id))
        return Triple(self.entities[head], self.relations[relation], self.entities[tail])

    def label(self, key: str) -> str:
        """Return the label of an entity.

        It is its key if no label was given, or if it is not in the graph.
        """
        entity = self.entities.find(key)
        return key if entity < 0 else self.names[int(self.labels[entity])]

    def value(self, key: str) -> Value | None:
        """Return the label of an entity read as a date, number or truth value.

        None if it is none.

        The rules stand in `kg_retrievers.graph.values`. An entity that is a tail of `text_relations` alone has no
        value.

        Raises:
            InvalidArgumentError: If the graph has no such entity.

        Example:
            >>> graph = KnowledgeGraph.from_triples([("Her", "released in", "2013"), ("Her", "starring", "Amy Adams")])
            >>> graph.value("2013").number, graph.value("Her")
            (2013.0, None)
        """
        return self.entity_value(self._id_of(key))

    def entity_value(self, entity: int) -> Value | None:
        """Return the value in the label of an entity, given by its id."""
        _check_id("entity", entity, len(self.entities))
        if self._texts[entity]:
            return None
        label, datatypes = self.names[int(self.labels[entity])], self.datatype_names
        kind = NONE if datatypes is None else int(self._columns["datatypes"][entity])
        return read_value(label) if datatypes is None or kind == NONE else read_typed_value(label, datatypes[kind])

    @cached_property
    def relation_samples(self) -> RelationSamples:
        """Samples of the ends of each relation.

        They count its facts and entities, and hold some of them. A large graph keeps them saved.
        """
        return self._saved_samples or RelationSamples.of_adjacency(self.adjacency, len(self.relations))

    @cached_property
    def value_columns(self) -> ValueColumns:
        """The values of all labels, read once."""
        values = self.lazy_values
        values.read(np.arange(len(self.entities)))
        return values

    @cached_property
    def lazy_values(self) -> ValueColumns:
        """The values of labels.

        Call `read` for the entities whose values are needed.
        """
        return ValueColumns(self)

    @cached_property
    def _texts(self) -> Array:
        """Whether each entity is a tail of `text_relations` alone."""
        texts = [self.relations.find(relation) for relation in self.text_relations]
        found = np.zeros(len(self.entities), bool)
        if not texts:
            return found
        is_text, tails = np.isin(self.edges.relations, texts), self.edges.tails
        found[tails[is_text]] = True
        found[tails[~is_text]] = False
        return found

    def datatype(self, key: str) -> str | None:
        """Return the datatype of a literal, such as "xsd:date", or its language, such as "@en".

        None if it has neither.

        Raises:
            InvalidArgumentError: If the graph has no such entity.
        """
        entity = self._id_of(key)
        if self.datatype_names is None:
            return None
        kind = int(self._columns["datatypes"][entity])
        return None if kind == NONE else self.datatype_names[kind]

    def relation_id(self, name: str) -> str:
        """Return how the source wrote a relation.

        An example is "P57" for a relation called "director". It is its name if they are one.

        Raises:
            InvalidArgumentError: If the graph has no such relation.
        """
        relation = self.relations.find(name)
        if relation < 0:
            near = did_you_mean(name, self.relations)
            raise InvalidArgumentError(
                f"KnowledgeGraph: no relation {name!r}{f'; {near}' if near else '.'}",
                hint_python="See `graph.relations`.",
                hint_shell="`info` lists them.",
            )
        ids = self.relation_ids
        return name if ids is None else ids[relation]

    @property
    def attribute_names(self) -> list[str]:
        """The names of the attributes of facts, in sorted order."""
        return self.attribute_sets.names

    @property
    def source_names(self) -> list[str]:
        """The sources of all facts, each once: the values of the attribute "source"."""
        return list(dict.fromkeys(map(str, self.attribute_sets.values(SOURCE).values())))

    def attributes(self, triple: Sequence[str]) -> list[dict[str, AttributeValue]]:
        """Return the sets of attributes of a fact.

        There is one for each time that it is stated otherwise. It is empty if there is none.

        Raises:
            InvalidArgumentError: If the graph has no such triple.

        Example:
            >>> graph = KnowledgeGraph.from_triples([("Keanu Reeves", "acted in", "The Matrix", {"role": "Neo"})])
            >>> graph.attributes(("Keanu Reeves", "acted in", "The Matrix"))
            [{'role': 'Neo'}]
        """
        ids = self._triple_ids(triple)
        if not len(ids):
            raise InvalidArgumentError(
                f"KnowledgeGraph: {tuple(triple)} is not in the graph.",
                hint_python="graph.triples(head=key) has the facts of an entity.",
            )
        return [self.attribute_sets.read(id) for id in self.attribute_set_ids(int(ids[0]))]

    def triple_id(self, triple: Sequence[str]) -> int:
        """Return the id of a triple, or -1 if it is not in the graph.

        The id is its place among all.
        """
        ids = self._triple_ids(triple)
        return int(ids[0]) if len(ids) else -1

    def attribute_set_ids(self, triple: int) -> list[int]:
        """Return the attribute set ids of a fact, given by its triple's id."""
        return self._row("triple_attributes", triple) if len(self.attribute_sets.texts) else []

    def sources(self, triple: Sequence[str]) -> list[str]:
        """Return the origins of a fact.

        These are the named graphs, files or documents that it came with. It is empty if there are none.

        Raises:
            InvalidArgumentError: If the graph has no such triple.
        """
        return sources_of(self.attributes(triple))

    def view(
        self, where: Where | None = None, *, as_of: date | str | None = None, validity: tuple[str, str] = VALIDITY
    ) -> KnowledgeGraph:
        """Return a graph with only the facts whose attributes satisfy conditions.

        It holds nothing of the other facts: an entity, a relation or a name that only they have is not in it.

        Cost: the cost of a graph of the facts that stay, and a pass over all.

        Args:
            where: The condition on each attribute: a value, `{"tenant": "a"}`, one of several, `{"tenant": ["a"]}`,
                comparisons, `{"confidence": {">=": 0.5}}`, or `{"deleted": None}` for none, also as one of several.
                Texts are compared by each letter, dates by their days. Of a list one value must satisfy the condition.
            as_of: A day on which the facts hold: "valid_from" is not after it, and "valid_to" not before it. Facts
                without one of them have no such limit.
            validity: The names of the two attributes that give the validity.

        Raises:
            InvalidArgumentError: If no fact has such an attribute, it cannot be compared so, or no fact stays.

        Example:
            >>> facts = [("Ann", "works for", "Acme", {"until": 2013}), ("Bob", "works for", "Acme", {"until": 2020})]
            >>> view = KnowledgeGraph.from_triples(facts).view({"until": {">": 2015}})
            >>> list(view.entities)
            ['Acme', 'Bob']
        """
        kept = self.attribute_sets.satisfying({} if where is None else where, as_of, validity)
        return narrow_graph(self, kept).graph

    def aliases(self, key: str) -> list[str]:
        """Return the further names of an entity."""
        return [self.names[name] for name in self._row("aliases", self._id_of(key))]

    def types_of(self, key: str) -> list[str]:
        """Return the types of an entity."""
        return [self.types[kind] for kind in self.entity_types(self._id_of(key))]

    def entities_named(self, name: str) -> list[str]:
        """Return the keys of all entities with this label or alias, in stored order."""
        id = self.names.find(name)
        return [] if id < 0 else [self.entities[entity] for entity in self.name_entities(id)]

    def name_entities(self, name: int) -> list[int]:
        """Return the ids of the entities with a name, ascending.

        The name is given by its id in `names`.
        """
        return self._row("name_entities", name)

    def entities_of_names(self, names: Array) -> tuple[Array, Array]:
        """Return the ids of the entities with some names, name after name.

        Also return how many entities each name has.
        """
        return self._rows("name_entities", names)

    def entity_types(self, entity: int) -> list[int]:
        """Return the ids of the types of an entity, given by its id."""
        return self._row("entity_types", entity)

    def type_entities(self, kind: int) -> Array:
        """Return the ids of the entities of a type, int32, ascending.

        The type is given by its id in `types`.
        """
        _check_id("type", kind, len(self.types))
        return self._rows("type_entities", np.array([kind]))[0]

    @cached_property
    def types_below(self) -> dict[str, frozenset[int]]:
        """The types below each type, by `rdfs:subClassOf` or P279.

        Each type, also one of no entity, comes with the ids of itself and the types below it.
        """
        below = {name: {number} for number, name in enumerate(self.types)}
        facts = [fact for name in self._wider_relations for fact in self.triples(relation=name)]
        keys = {key for fact in facts for key in (fact.head, fact.tail)}
        names = {key: key if key in self.types else self.label(key) for key in keys}
        size = -1
        while size < (size := sum(map(len, below.values()))):
            for head, _, tail in facts:
                below.setdefault(names[tail], set()).update(below.get(names[head], ()))
        return {name: frozenset(ids) for name, ids in below.items()}

    def are_classes(self, keys: Sequence[str]) -> bool:
        """Tell whether entities stand for types.

        All their facts are of `rdfs:subClassOf`, and there are some.
        """
        wider = self._wider_relations
        known = [key for key in keys if wider and key in self.entities]
        facts = [fact for key in known for fact in chain(self.triples(head=key), self.triples(tail=key))]
        return bool(facts) and all(fact.relation in wider for fact in facts)

    @cached_property
    def _wider_relations(self) -> list[str]:
        is_wider = re.compile(r".*(?:^|[:/#])(?:subClassOf|P279)").fullmatch
        return [name for name in self.relations if is_wider(name) or is_wider(self.relation_id(name))]

    @cached_property
    def untyped(self) -> Array:
        """The ids of the entities without type: int64, ascending."""
        return np.flatnonzero(np.diff(self._columns["entity_types.indptr"]) == 0)

    def schema(self) -> Schema:
        """Count relations, types, datatypes and sources.

        Also say which types and values each relation joins.
        """
        return self._schema

    @cached_property
    def _schema(self) -> Schema:
        return schema_of(self)

    def types_among(self, entities: Array) -> list[int]:
        """Return the ids of the types of some entities, given by id, ascending."""
        found: list[int] = np.unique(self._rows("entity_types", entities)[0]).tolist()
        return found

    def _id_of(self, key: str) -> int:
        entity = self.entities.find(key)
        if entity < 0:
            named = self.entities_named(key)
            hint = f"The key of {key!r} is {listed(named, 3)}." if named else "See `graph.entities`."
            if self.relations.find(key) >= 0:
                hint = f"It is a relation: relation={key!r}."
            raise InvalidArgumentError(f"KnowledgeGraph: no entity with the key {key!r}. {hint}")
        return entity

    def _row(self, name: str, row: int) -> list[int]:
        """Return a row of ids."""
        indptr = self._columns[f"{name}.indptr"]
        _check_id(name.partition("_")[0], row, len(indptr) - 1)
        values: list[int] = self._columns[f"{name}.values"][indptr[row] : indptr[row + 1]].tolist()
        return values

    def _rows(self, name: str, rows: Array) -> tuple[Array, Array]:
        """Return the ids of several rows, row after row, and how many each has."""
        indptr = self._columns[f"{name}.indptr"]
        entries, _ = entries_between(indptr[rows], indptr[rows + 1])
        return self._columns[f"{name}.values"][entries], indptr[rows + 1] - indptr[rows]


def _check_id(what: str, id: int, count: int) -> None:
    is_number = isinstance(id, Integral)
    if not is_number or not 0 <= id < count:
        shown = str(id) if is_number else repr(id)
        raise InvalidArgumentError(
            f"KnowledgeGraph: wanted the id of a {what}, from 0 to {count - 1}, but got {shown:.50}.",
            hint_python="" if is_number else "Keys find facts by graph.triples(head, relation, tail).",
        )
