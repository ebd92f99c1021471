"""KnowledgeGraph: immutable columns of triples with both directions, names and types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import networkx as nx
import numpy as np

from kg_retrievers.errors import GraphLoadError, InvalidArgumentError, warn_renamed
from kg_retrievers.graph.adjacency import Adjacency, entries_between
from kg_retrievers.graph.bounds import check_graph
from kg_retrievers.graph.building import NONE, GraphBuilder
from kg_retrievers.graph.cache import Immutable
from kg_retrievers.graph.changes import change_graph
from kg_retrievers.graph.columns import Array, StringTable, fingerprint
from kg_retrievers.graph.datatypes import read_typed_value
from kg_retrievers.graph.readers import (
    Attributes,
    GraphFormat,
    OnError,
    read_frame,
    read_graph_document_rows,
    read_graph_rows,
    read_networkx_rows,
    read_property_graph_rows,
    read_pyg_rows,
)
from kg_retrievers.graph.readers.limits import Limits
from kg_retrievers.graph.readers.rdf import read_rdf
from kg_retrievers.graph.readers.rdf_statements import ALIASES, LABELS, RDF_LIMITS, Kept, RdfOptions
from kg_retrievers.graph.reading import Reading
from kg_retrievers.graph.schema import RelationSchema, Schema, count_names, relation_schemas
from kg_retrievers.graph.storage import KEEP, FolderWriter, OpenedPart, Part, open_parts, saved_meta
from kg_retrievers.graph.types import Triple
from kg_retrievers.graph.value_columns import NAMES_AT_ONCE, ValueColumns, ranked_values
from kg_retrievers.graph.values import Value, read_value
from kg_retrievers.graph.writers import GraphContent, OnLoss, WriteFormat, networkx_graph, write_graph

if TYPE_CHECKING:
    from torch_geometric.data import Data


class GraphSource(Protocol):
    """What a whole graph can be read from, as the executors of `kg_retrievers.database`."""

    def read_graph(self, page_size: int) -> GraphBuilder:
        """Read everything, so many rows at a time."""


class KnowledgeGraph(Immutable):
    """A directed multigraph of facts. A key identifies an entity; labels, aliases and types describe it.

    Immutable, safe to share between threads. Build one with `from_triples`, `from_file`, `from_networkx` or `open`.

    A copy is the graph itself. A graph that was opened from a folder is pickled as this folder as long as it holds the
    graph, so that another process maps the same files; any other graph is pickled with all of its columns.

    Attributes:
        entities: The entity keys; the position of a key is its id in all arrays.
        relations: The relations.
        types: The types.
        names: All distinct labels and aliases.
        labels: The label of each entity: int32, shape (entities), ids of names.
        edges: The triples by id: int32, shape (triples, 3), ids of head, relation and tail.
        adjacency: The triples by entity, both directions.
        duplicates: How many repeated triples were dropped on the way in.
        skipped: How many unreadable lines were skipped on the way in (`on_error="skip"`).
        text_relations: The relations whose tails are texts, even where they read like numbers or dates: an entity that
            is a tail of these relations alone has no value.
        prefixes: The IRI that each prefix of a key stands for; empty unless the graph was read from RDF.
        reading: What the source was understood to say, and what was left out.
    """

    def __init__(
        self,
        columns: Mapping[str, Array],
        duplicates: int = 0,
        skipped: int = 0,
        text_relations: Iterable[str] = (),
        prefixes: Mapping[str, str] | None = None,
        reading: Reading | None = None,
    ) -> None:
        """Take columns as `GraphBuilder.columns` or `open` made them; use a named constructor instead."""
        self._columns = dict(columns)
        self._folder: Path | None = None
        self.duplicates = duplicates
        self.skipped = skipped
        self.text_relations = tuple(dict.fromkeys(text_relations))
        self.prefixes = dict(prefixes or {})
        self.reading = reading or Reading()
        self.entities = StringTable.from_columns(columns, "entities")
        self.relations = StringTable.from_columns(columns, "relations")
        self.types = StringTable.from_columns(columns, "types")
        self.names = StringTable.from_columns(columns, "names")
        self.labels = _frozen(columns["labels"])
        self.edges = _frozen(columns["triples"])
        self.adjacency = Adjacency(*(_frozen(columns[f"adjacency.{name}"]) for name in Adjacency._fields))

    # --- in ---------------------------------------------------------------------------------------------------------

    @classmethod
    def from_triples(
        cls,
        triples: Iterable[Sequence[str]],
        *,
        labels: Mapping[str, str] | None = None,
        aliases: Mapping[str, Sequence[str]] | None = None,
        types: Mapping[str, Sequence[str]] | None = None,
        relation_labels: Mapping[str, str] | None = None,
        text_relations: Iterable[str] = (),
    ) -> KnowledgeGraph:
        """Build a graph from `(head, relation, tail)` texts.

        Args:
            triples: The facts. Repeated ones are dropped and counted in `duplicates`.
            labels: What an entity key is called; the key itself where nothing is given.
            aliases: Further names of an entity key.
            types: Types of an entity key.
            relation_labels: What a relation is called, by the text that the triples have. Where two relations share a
                label, that text follows it in brackets.
            text_relations: Relations whose tails are no values, as titles and postal codes are none.

        Raises:
            InvalidArgumentError: If a triple has not three non-empty texts, a name or type is no text, or a text
                relation is none of the graph.
        """
        builder = GraphBuilder(labels, aliases, types, relation_labels)
        for triple in triples:
            builder.add_row(triple)
        return cls._from_builder(builder, text_relations)

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        *,
        entities: str | Path | None = None,
        format: GraphFormat | None = None,
        columns: Sequence[str] | None = None,
        delimiter: str | None = None,
        header: bool | None = None,
        facts: Sequence[str] = (),
        attributes: Attributes = "facts",
        on_error: OnError = "raise",
        encoding: str = "utf-8",
        limits: Limits | None = None,
        text_relations: Iterable[str] = (),
    ) -> KnowledgeGraph:
        """Read a graph from a file of any format; `graph.reading` says what was understood and what was left out.

        Text: TSV, CSV with any delimiter, `head|relation|tail`, JSON lines, JSON arrays. Tables: Parquet, Arrow IPC
        (extra `arrow`). Graphs: GraphML, GEXF, node-link JSON, and RDF (extra `rdf`; `from_rdf` has its options).
        Exports: Neo4j CSV, APOC JSON, PrimeKG, Wikidata, UMLS RRF. Each may be packed as `.gz`, `.bz2`, `.xz` or
        `.zst`, but for Parquet and Arrow, which are packed within.

        Args:
            path: The file; of Neo4j CSV and UMLS also a folder. JSON rows may also be entities,
                `{"entity", "label", "aliases", "types"}`, and names of relations, `{"relation", "label"}`.
            entities: A second file with names, types and attributes of entities: such JSON rows, `entity<TAB>label`,
                or a table with a header. Where both files give a label, the first file's counts and the other becomes
                an alias.
            format: The format; found by suffix, then by content where not given.
            columns: The header's names for head, relation and tail, where they are unusual, and of a table that for
                sources as a fourth, if you like.
            delimiter: What stands between the cells of a table; found by the first lines where not given.
            header: Whether the first row of a table names its columns; found by its names where not given.
            facts: Columns of a table of facts whose cells become facts about the head.
            attributes: Attributes of entities become facts, or with "drop" are left out.
            on_error: "raise" stops at a malformed line, "skip" counts it in `skipped`.
            encoding: Of both files.
            limits: What a file may hold; see `Limits` for the defaults.
            text_relations: As of `from_triples`.

        Raises:
            GraphLoadError: With file name and line number, if something cannot be read or exceeds a limit.
            InvalidArgumentError: If an argument has no such value, or a text relation is none of the graph.
            MissingExtraError: If the format needs an extra that is not installed.
        """
        rows = read_graph_rows(
            path,
            entities=entities,
            format=format,
            columns=columns,
            delimiter=delimiter,
            header=header,
            facts=facts,
            attributes=attributes,
            on_error=on_error,
            encoding=encoding,
            limits=limits or Limits(),
        )
        return cls._from_builder(rows, text_relations)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        head: str | None = None,
        relation: str | None = None,
        tail: str | None = None,
        source: str | None = None,
        entities: Any = None,
        facts: Sequence[str] = (),
        attributes: Attributes = "facts",
        on_error: OnError = "raise",
        text_relations: Iterable[str] = (),
    ) -> KnowledgeGraph:
        """Read a frame of pandas or polars, an Arrow table, or a list of dictionaries, with a fact in each row.

        Columns called head (or subject, source, from), relation (or predicate, edge) and tail (or object, target, to)
        are found; `graph.reading` says which they are. Truth values become "true" and "false". A float becomes a whole
        number if its column holds no others: 2013.0 is "2013". Dates and times are written as in ISO 8601, times as
        dates if their column holds midnights alone.

        Args:
            frame: The facts.
            head: The column of heads.
            relation: The column of relations.
            tail: The column of tails.
            source: The column that says where a fact is from, as text or list of texts.
            entities: A second frame, with a row for each entity: entity (or id, key), label (or name), aliases, types;
                further columns are attributes. Aliases and types are lists, or texts between pipes.
            facts: Columns whose cells become facts about the head.
            attributes: Attributes of entities become facts, or with "drop" are left out.
            on_error: "raise" stops at a row with an empty cell, "skip" counts it in `skipped`.
            text_relations: As of `from_triples`.

        Raises:
            InvalidArgumentError: If it is no frame, a column is not found, a row holds no fact, an argument has no
                such value, or a text relation is none of the graph.

        Example:
            >>> rows = [{"film": "Her", "fact": "year", "value": 2013.0}]
            >>> [*KnowledgeGraph.from_frame(rows, head="film", relation="fact", tail="value").triples()]
            [Triple(head='Her', relation='year', tail='2013')]
        """
        rows = read_frame(
            frame,
            head=head,
            relation=relation,
            tail=tail,
            source=source,
            entities=entities,
            facts=facts,
            attributes=attributes,
            on_error=on_error,
        )
        return cls._from_builder(rows, text_relations)

    @classmethod
    def from_rdf(
        cls,
        source: str | Path | Any,
        *,
        format: str | None = None,
        languages: Sequence[str] = ("en",),
        label_predicates: Sequence[str] = LABELS,
        alias_predicates: Sequence[str] = ALIASES,
        type_predicates: Sequence[str] = ("rdf:type",),
        literals: Kept = "keep",
        graphs: Sequence[str] | None = None,
        blank_nodes: Kept = "keep",
        prefixes: Mapping[str, str] | None = None,
        base_iri: str | None = None,
        on_error: OnError = "raise",
        limits: Limits = RDF_LIMITS,
        text_relations: Iterable[str] = (),
    ) -> KnowledgeGraph:
        """Read RDF: N-Triples, N-Quads, Turtle, TriG, RDF/XML, JSON-LD or N3, or a graph of rdflib.

        The key of an entity is its prefixed name, as "dbr:Her", or its IRI where no prefix fits. The key of a literal
        is its text, in quotes where an entity has that key. Entities, relations and types are called by their labels.
        An entity without one is called by the end of its IRI in words, a relation or type by its prefixed name, or by
        the end of its IRI where no prefix fits. `reading` says what was understood and what was left out.

        Args:
            source: The file, which may be compressed (`.gz`, `.bz2`, `.xz`), or an rdflib Graph or Dataset.
            format: The format of a file by its name or media type; found by suffix where not given.
            languages: The languages of labels and texts, best first; "en" takes "en-GB", "*" takes all. Then come texts
                without a language, then, for a thing without any of these, the first other language in sorted order.
            label_predicates: Predicates of labels, best first. Further labels become aliases.
            alias_predicates: Predicates of aliases.
            type_predicates: Predicates of types, as "wdt:P31".
            literals: "drop" leaves out the facts whose tails are literals.
            graphs: The named graphs to take, and "default" for the default graph; all of them where not given.
            blank_nodes: "drop" leaves out the statements with blank nodes.
            prefixes: Prefixes beside those that are well known and those that the file declares: {prefix: namespace}.
            base_iri: What relative IRIs in the file are relative to.
            on_error: "skip" counts malformed statements in `skipped`; RDF/XML and JSON-LD end at the first one.
            limits: What a file may hold; a literal has 1,048,576 characters at most.
            text_relations: As of `from_triples`, by the names that the graph gives its relations.

        Raises:
            GraphLoadError: With file name and line, if something cannot be read, is malformed or exceeds a limit.
            InvalidArgumentError: If an argument has no such value, or a text relation is none of the graph.
            MissingExtraError: If a file is to be read and the extra `rdf` is not installed.
        """
        options = RdfOptions(
            languages=languages,
            label_predicates=label_predicates,
            alias_predicates=alias_predicates,
            type_predicates=type_predicates,
            literals=literals,
            graphs=graphs,
            blank_nodes=blank_nodes,
            prefixes=dict(prefixes or {}),
            base_iri=base_iri,
            on_error=on_error,
            limits=limits,
        )
        return cls._from_builder(read_rdf(source, format, options), text_relations)

    @classmethod
    def from_networkx(
        cls,
        graph: nx.DiGraph[Any] | nx.MultiDiGraph[Any],
        *,
        relation: str = "relation",
        attributes: Attributes = "facts",
        text_relations: Iterable[str] = (),
    ) -> KnowledgeGraph:
        """Read a directed NetworkX graph.

        The relation of an edge is its attribute `relation`, else its key in a multigraph. Of a node, "label" or "name"
        is its label, "aliases", "types" and "type" are used as such, and each other attribute is a relation to its
        value. No fact can hold further attributes of edges. `reading` says what was used and what was left out.

        Args:
            graph: The graph. Nodes that are no texts are taken by `str`.
            relation: The attribute of an edge that holds its relation.
            attributes: "drop" leaves out the other attributes of nodes.
            text_relations: As of `from_triples`.

        Raises:
            InvalidArgumentError: If the graph is undirected, an edge has no relation, two nodes have equal texts, or a
                text relation is none of the graph.
        """
        return cls._from_builder(read_networkx_rows(graph, relation, attributes), text_relations)

    @classmethod
    def from_graph_documents(
        cls,
        documents: Iterable[Any],
        *,
        source: str | None = None,
        attributes: Attributes = "facts",
        text_relations: Iterable[str] = (),
    ) -> KnowledgeGraph:
        """Read the `GraphDocument`s of LangChain's packages, or whatever has `nodes` and `relationships` as they do.

        A node has an `id`, a `type` and `properties`, which are read as the attributes of a node of `from_networkx`.
        A relationship has a `source`, a `target` and a `type`. Facts are from the `source` document.

        Args:
            documents: The documents. Nodes with one id are one entity.
            source: The entry of a document's metadata that says where its facts are from; None takes the id of the
                document, else "id" or "source" of its metadata.
            attributes: As of `from_networkx`.
            text_relations: As of `from_triples`.

        Raises:
            InvalidArgumentError: If something is no such document, or a text relation is none of the graph.

        Example:
            >>> jonze = {"id": "Spike Jonze", "type": "Person"}
            >>> directed = {"source": "Her", "target": "Spike Jonze", "type": "DIRECTED_BY"}
            >>> origin = {"metadata": {"source": "films.txt"}}
            >>> document = {"nodes": [jonze], "relationships": [directed], "source": origin}
            >>> graph = KnowledgeGraph.from_graph_documents([document])
            >>> graph.types_of("Spike Jonze"), graph.sources(("Her", "DIRECTED_BY", "Spike Jonze"))
            (['Person'], ['films.txt'])
        """
        rows = read_graph_document_rows(documents, source=source, attributes=attributes)
        return cls._from_builder(rows, text_relations)

    @classmethod
    def from_property_graph(
        cls, store: Any, *, attributes: Attributes = "facts", text_relations: Iterable[str] = ()
    ) -> KnowledgeGraph:
        """Read a LlamaIndex `PropertyGraphStore`, or the store of a `PropertyGraphIndex`.

        Labels of nodes are types, properties are read as the attributes of a node of `from_networkx`. A fact is from
        its `triplet_source_id`. Text chunks, relations to them, and what LlamaIndex copies from a chunk into the
        properties of entities are left out and counted in `reading`.

        Args:
            store: The store or index.
            attributes: As of `from_networkx`.
            text_relations: As of `from_triples`.

        Raises:
            InvalidArgumentError: If it is neither, or a text relation is none of the graph.
        """
        return cls._from_builder(read_property_graph_rows(store, attributes=attributes), text_relations)

    @classmethod
    def from_pyg(
        cls, data: Any, *, entities: Sequence[str] | None = None, relations: Sequence[str] | None = None
    ) -> KnowledgeGraph:
        """Read a `Data` or `HeteroData` of torch-geometric, as `kg_retrievers.to_pyg` writes it or with ids alone.

        `data.entities` are the keys of nodes, `data.labels` their labels, `data.relations` the relation of each edge,
        or of each id in `data.edge_type`. Where there are no names, ids are names. In HeteroData the types of nodes
        are types, and the key of a node without a name is its type and position, as "person/0".

        Args:
            data: The graph.
            entities: The key of each node of `Data`.
            relations: The relation of each id in `edge_type` of `Data`.

        Raises:
            InvalidArgumentError: If there are no edges, an edge has no relation, or names are missing or equal.
        """
        return cls._from_builder(read_pyg_rows(data, entities=entities, relations=relations))

    @classmethod
    def from_executor(
        cls, executor: GraphSource, *, page_size: int = 10_000, text_relations: Iterable[str] = ()
    ) -> KnowledgeGraph:
        """Read all of a graph database, as through `LadybugExecutor` or `Neo4jExecutor`.

        Nodes become entities by the property that the executor takes as key, relationships become triples. Types are
        the node labels, or where nodes have a property `types`, its list.

        Args:
            executor: Where the database is.
            page_size: How many rows are read at a time; 1 or more.
            text_relations: As of `from_triples`.

        Raises:
            InvalidArgumentError: If `executor` is none, there are nodes without a text as key, `page_size` is below 1,
                or a text relation is none of the graph.
            DatabaseError: If the database cannot be read.
        """
        if not hasattr(executor, "read_graph"):
            raise InvalidArgumentError(
                f"KnowledgeGraph.from_executor: wanted an executor, such as LadybugExecutor(path), but got "
                f"{executor!r:.100}."
            )
        if page_size < 1:
            raise InvalidArgumentError(f"KnowledgeGraph.from_executor: page_size is {page_size}. Read at least 1 row.")
        return cls._from_builder(executor.read_graph(page_size), text_relations)

    @classmethod
    def open(cls, path: str | Path) -> KnowledgeGraph:
        """Open a folder that `save` wrote; the columns stay on disk and are mapped into memory.

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
        columns, meta = part.columns, part.meta
        wanted = [*cls.from_triples([])._columns, "duplicates", "skipped", "fingerprint"]
        save_again = {
            "hint_python": "Save the graph again.",
            "hint_shell": f"To index a file: kg-retrievers index FILE --output {path}",
        }
        if missing := [name for name in wanted if name not in columns and name not in meta]:
            raise GraphLoadError(f"{', '.join(missing)} is missing.", path, None, **save_again)
        try:
            check_graph(columns)
        except (ValueError, KeyError) as cause:
            raise GraphLoadError(f"the graph is damaged: {cause}.", path, None, **save_again) from cause
        about = meta.get("text_relations", ()), meta.get("prefixes"), Reading.from_dict(meta.get("reading", {}))
        graph = cls(columns, meta["duplicates"], meta["skipped"], *about)
        graph.fingerprint = meta["fingerprint"]
        graph._folder = Path(path).absolute()
        return graph

    @classmethod
    def _reopen(cls, folder: Path, fingerprint: str) -> KnowledgeGraph:
        """Open the folder of a pickled graph."""
        graph = cls.open(folder)
        if graph.fingerprint != fingerprint:
            raise GraphLoadError("it holds another graph than the one that was pickled. Pickle it again.", folder)
        return graph

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the folder that the graph was opened from, or the columns where it does not hold them any more."""
        if self._folder and saved_meta(self._folder, "graph").get("fingerprint") == self.fingerprint:
            return KnowledgeGraph._reopen, (self._folder, self.fingerprint)
        about = self.text_relations, self.prefixes, self.reading
        return KnowledgeGraph, (self._columns, self.duplicates, self.skipped, *about)

    @classmethod
    def _from_builder(cls, builder: GraphBuilder, text_relations: Iterable[str] = ()) -> KnowledgeGraph:
        columns, duplicates = builder.columns()
        graph = cls(columns, duplicates, builder.skipped, (), builder.prefixes, builder.reading)
        return graph._with_texts(text_relations)

    def _with_texts(self, relations: Iterable[str]) -> KnowledgeGraph:
        """Return the graph with other text relations."""
        relations = (relations,) if isinstance(relations, str) else tuple(relations)
        if not relations:
            return self
        if strange := [relation for relation in relations if relation not in self.relations]:
            raise InvalidArgumentError(
                f"KnowledgeGraph: text_relations names {strange}, which are no relations of the graph. "
                "See `graph.relations`."
            )
        return type(self)(self._columns, self.duplicates, self.skipped, relations, self.prefixes, self.reading)

    # --- out --------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the graph to a folder, replacing what was saved there only when all is written.

        An index that the folder holds stays if it is one of this graph; one of another graph is removed.

        Raises:
            FileWriteError: If another process writes there, the disk is full, or this user may not write there.
            InvalidArgumentError: If the folder holds a `manifest.json` of something else.
        """
        with FolderWriter(path) as writer:
            index = writer.before.parts.get("index")
            keeps = index is not None and index.meta.get("graph") == self.fingerprint
            writer.replace({"graph": self.to_part()} | ({"index": KEEP} if keeps else {}))

    def to_part(self) -> Part:
        """Return what `from_part` reads back once it is saved."""
        meta = {"duplicates": self.duplicates, "skipped": self.skipped, "fingerprint": self.fingerprint}
        meta |= {"text_relations": list(self.text_relations)}
        meta |= {"prefixes": self.prefixes, "reading": self.reading.to_dict()}
        return Part(self._columns, meta)

    def write(
        self,
        path: str | Path,
        format: WriteFormat | None = None,
        *,
        entities: str | Path | None = None,
        on_loss: OnLoss = "raise",
    ) -> None:
        """Write the graph to a file that other programs, and `from_file`, read; an earlier file is replaced at the end.

        Whether a relation is one of `text_relations` is an option of reading, and not written.

        - "graphml", "node-link" (`.json`): all of the graph.
        - "jsonl": all but white space around texts.
        - "csv", "tsv", "parquet" (extra `arrow`): facts, in a row for each of their sources. TSV has no place for tabs
          and line breaks in texts.
        - "nt", "ttl", "rdf", and with sources "nq", "trig", "jsonld" (extra `rdf`): RDF. A name that is no IRI becomes
          one that `from_rdf` reads as this name; so do the types that were called by a label.

        Args:
            path: The file. `.gz` at the end of its name packs it.
            format: How to write; None goes by the suffix.
            entities: A second file for what a table of facts has no place for: `.csv`, `.tsv` and `.parquet` hold all
                that is known of entities, `.jsonl` also the ids of relations.
            on_loss: "raise" refuses to write a graph that holds more than the files can; "drop" leaves that out.

        Raises:
            InvalidArgumentError: If the files cannot hold the graph, or no format has this name or suffix.
            FileWriteError: If the disk is full, or this user may not write there.
            MissingExtraError: If pyarrow is needed and not installed.

        Example:
            >>> KnowledgeGraph.from_triples([("Q1", "r", "Q2")], labels={"Q1": "Her"}).write("her.csv")
            Traceback (most recent call last):
            kg_retrievers.errors.InvalidArgumentError: KnowledgeGraph.write: csv cannot hold 1 labels. Write GraphML \
or node-link JSON, which hold all; or give a second file, entities="entities.jsonl"; or leave out what it cannot hold \
with on_loss="drop".
        """
        write_graph(self._columns, path, format, entities=entities, on_loss=on_loss, prefixes=self.prefixes)

    def to_triples(self) -> list[Triple]:
        """Return all triples in stored order, as `from_triples` takes them."""
        content = GraphContent(self._columns)
        return [Triple(fact.head, fact.relation, fact.tail) for fact in content.facts()]

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """Return a MultiDiGraph that holds all of the graph, as `from_networkx` takes it.

        Nodes have "label", "aliases" and "types", and "datatype" where they have one. Edges have the relation as key
        and as "relation", and "relation_id" and "sources" where they have some.
        """
        return networkx_graph(GraphContent(self._columns))

    def to_pyg(self, index: Any = None) -> Data:
        """Deprecated: `kg_retrievers.to_pyg(graph, index)` does this."""
        warn_renamed("graph.to_pyg(index)", "kg_retrievers.to_pyg(graph, index)")
        data: Data = import_module("kg_retrievers").to_pyg(self, index)  # its room is above this one
        return data

    def with_changes(
        self,
        *,
        added: Iterable[Sequence[str]] | KnowledgeGraph = (),
        removed: Iterable[Sequence[str]] | KnowledgeGraph = (),
        labels: Mapping[str, str] | None = None,
        aliases: Mapping[str, Sequence[str]] | None = None,
        types: Mapping[str, Sequence[str]] | None = None,
        relation_labels: Mapping[str, str] | None = None,
        removed_sources: Iterable[str] = (),
        source: str | None = None,
    ) -> KnowledgeGraph:
        """Return a new graph with some facts added and removed, and some entities described anew.

        It holds the triples, labels, types and names that a graph made anew from its facts and descriptions holds. The
        order differs: what stays keeps its order, and what is new comes behind it. An entity that is in no triple any
        more is gone, unless it has a label, an alias or a type, or was in no triple before.

        Cost: a few passes over the columns, without a loop; 0.1 to 0.2 s of CPU for a million triples.

        Args:
            added: Triples of texts, with relations by their ids ("P57") or names ("director"), or a graph, whose
                descriptions, datatypes and sources come with its facts: its labels take the place of others, its
                aliases and types join them. Facts that are there already are counted in `duplicates`.
            removed: Triples of the graph, or a graph that holds them. A triple that is also added is in the new graph,
                without its earlier sources.
            labels: New labels by entity key.
            aliases: The further names by entity key, in place of those it has.
            types: The types by entity key, in place of those it has. A key that is in no triple becomes an entity.
            relation_labels: New labels of relations, by their ids or names.
            removed_sources: Sources that are left out, with the facts that are from no other source.
            source: Where the added facts are from.

        Raises:
            InvalidArgumentError: If a triple to remove is not in the graph, a label or alias is that of no entity or
                relation, or no fact is from a source to remove.

        Example:
            >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Jonze"), ("Her", "genre", "Drama")])
            >>> changed = graph.with_changes(added=[("Her", "genre", "Romance")], removed=[("Her", "genre", "Drama")])
            >>> list(changed.entities)
            ['Her', 'Jonze', 'Romance']
        """
        return change_graph(
            self,
            added=added,
            removed=removed,
            labels=labels,
            aliases=aliases,
            types=types,
            relation_labels=relation_labels,
            removed_sources=removed_sources,
            source=source,
        ).graph

    @cached_property
    def fingerprint(self) -> str:
        """32 hexadecimal digits that change with any fact, name or type; computed once, and kept by `save`."""
        return fingerprint(self._columns, {})

    # --- questions of fact ------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of triples."""
        return len(self.edges)

    def __contains__(self, triple: object) -> bool:
        """Whether a triple `(head, relation, tail)` is a fact of the graph."""
        if not isinstance(triple, tuple) or len(triple) != 3 or not all(isinstance(text, str) for text in triple):
            return False
        return next(self.triples(*triple), None) is not None

    def __repr__(self) -> str:
        """Sizes only."""
        return f"KnowledgeGraph({len(self.entities)} entities, {len(self.relations)} relations, {len(self)} triples)"

    def triples(
        self, head: str | None = None, relation: str | None = None, tail: str | None = None
    ) -> Iterator[Triple]:
        """Yield the triples with the given head, relation and tail, in stored order; all of them by default."""
        for id in self._triple_ids((head, relation, tail)):
            yield self.triple(int(id))

    def _triple_ids(self, triple: Sequence[str | None]) -> Array:
        """Return the ids of the triples with the given parts, ascending."""
        edges, tables = self.edges, (self.entities, self.relations, self.entities)
        wanted = [None if text is None else table.find(text) for text, table in zip(triple, tables, strict=True)]
        if -1 in wanted:
            return np.empty(0, np.int64)
        ends = [end for end in (wanted[0], wanted[2]) if end is not None]
        ids = self._triples_at(ends) if ends else np.arange(len(edges))
        for column, part in enumerate(wanted):
            if part is not None:
                ids = ids[edges[ids, column] == part]
        return ids

    def _triples_at(self, ends: Sequence[int]) -> Array:
        """Return the ids of the triples at that end which has the fewest, ascending."""
        rows = [self.adjacency.row(end) for end in ends]
        return np.unique(self.adjacency.triples[min(rows, key=lambda row: row.stop - row.start)])

    def triple(self, id: int) -> Triple:
        """Return a triple by its id, counted from 0 in stored order."""
        head, relation, tail = self.edges[id].tolist()
        return Triple(self.entities[head], self.relations[relation], self.entities[tail])

    def label(self, key: str) -> str:
        """Return what an entity is called; its key where no label was given, or where it is not in the graph."""
        entity = self.entities.find(key)
        return key if entity < 0 else self.names[int(self.labels[entity])]

    def value(self, key: str) -> Value | None:
        """Return what the label of an entity says as a date, number or truth value; None where it says none.

        The rules are those of `kg_retrievers.graph.values`. An entity that is a tail of `text_relations` alone has no
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
        """Return what the label of an entity, given by its id, says as a value."""
        if self._texts[entity]:
            return None
        label, datatypes = self.names[int(self.labels[entity])], self.datatype_names
        kind = NONE if datatypes is None else int(self._columns["datatypes"][entity])
        return read_value(label) if datatypes is None or kind == NONE else read_typed_value(label, datatypes[kind])

    @cached_property
    def value_columns(self) -> ValueColumns:
        """The values of all labels, read once."""
        self.lazy_values.read(np.arange(len(self.entities)))
        return self.lazy_values

    @cached_property
    def lazy_values(self) -> ValueColumns:
        """The values of labels, of which those are to be read that are needed."""
        return ValueColumns(self)

    @cached_property
    def _texts(self) -> Array:
        """Whether each entity is a tail of `text_relations` alone."""
        texts = [self.relations.find(relation) for relation in self.text_relations]
        is_text, found = np.isin(self.edges[:, 1], texts), np.zeros(len(self.entities), bool)
        found[self.edges[is_text, 2]] = True
        found[self.edges[~is_text, 2]] = False
        return found

    def datatype(self, key: str) -> str | None:
        """Return the datatype of a literal, as "xsd:date", or its language, as "@en"; None if it has neither.

        Raises:
            InvalidArgumentError: If the graph has no such entity.
        """
        entity = self._id_of(key)
        if self.datatype_names is None:
            return None
        kind = int(self._columns["datatypes"][entity])
        return None if kind == NONE else self.datatype_names[kind]

    @cached_property
    def datatype_names(self) -> StringTable | None:
        """The datatypes and languages of all literals; None where no literal has one."""
        has_datatypes = "datatypes" in self._columns
        return StringTable.from_columns(self._columns, "datatype_names") if has_datatypes else None

    def relation_id(self, name: str) -> str:
        """Return how the source wrote a relation, as "P57" where it is called "director"; its name where they are one.

        Raises:
            InvalidArgumentError: If the graph has no such relation.
        """
        relation = self.relations.find(name)
        if relation < 0:
            raise InvalidArgumentError(f"KnowledgeGraph: no relation {name!r}. See `graph.relations`.")
        ids = self.relation_ids
        return name if ids is None else ids[relation]

    @cached_property
    def relation_ids(self) -> StringTable | None:
        """How the source wrote each relation; None where that is its name."""
        has_ids = "relation_ids.offsets" in self._columns
        return StringTable.from_columns(self._columns, "relation_ids") if has_ids else None

    def sources(self, triple: Sequence[str]) -> list[str]:
        """Return where a fact is from: the named graphs, files or documents that it came with; empty where none did.

        Raises:
            InvalidArgumentError: If the graph has no such triple.
        """
        ids = self._triple_ids(triple)
        if not len(ids):
            raise InvalidArgumentError(f"KnowledgeGraph: {tuple(triple)} is not in the graph.")
        if self.source_names is None:
            return []
        names = self.source_names
        return [names[source] for source in self._row("triple_sources", int(ids[0]))]

    @cached_property
    def source_names(self) -> StringTable | None:
        """The sources of all facts; None where no fact has one."""
        has_sources = "sources.offsets" in self._columns
        return StringTable.from_columns(self._columns, "sources") if has_sources else None

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
        """Return the ids of the entities with a name, given by its id in `names`; ascending."""
        return self._row("name_entities", name)

    def entity_types(self, entity: int) -> list[int]:
        """Return the ids of the types of an entity, given by its id."""
        return self._row("entity_types", entity)

    def type_entities(self, kind: int) -> list[int]:
        """Return the ids of the entities of a type, given by its id in `types`; ascending."""
        return self._row("type_entities", kind)

    @cached_property
    def untyped(self) -> Array:
        """The ids of the entities without type; int64, ascending."""
        return np.flatnonzero(np.diff(self._columns["entity_types.indptr"]) == 0)

    def schema(self) -> Schema:
        """Count relations, types, datatypes and sources, and say which types and values each relation joins."""
        sizes = {name: len(self.type_entities(kind)) for kind, name in enumerate(self.types)}
        return Schema(
            entities=len(self.entities),
            triples=len(self),
            relations=self._relation_schemas,
            types=dict(sorted(sizes.items(), key=lambda item: (-item[1], item[0]))),
            datatypes=count_names(self.datatype_names, self._columns.get("datatypes")),
            sources=count_names(self.source_names, self._columns.get("triple_sources.values")),
        )

    @cached_property
    def _relation_schemas(self) -> tuple[RelationSchema, ...]:
        return relation_schemas(self.edges, self.relations, self.types, self._types_among, self._value_range)

    def _types_among(self, entities: Array) -> list[int]:
        """Return the ids of the types of some entities, given by id; ascending."""
        indptr = self._columns["entity_types.indptr"]
        rows, _ = entries_between(indptr[entities], indptr[entities + 1])
        found: list[int] = np.unique(self._columns["entity_types.values"][rows]).tolist()
        return found

    def _value_range(self, entities: Array) -> tuple[str, str] | None:
        """Return the labels of the least and greatest of some entities, given by id; None unless most have values.

        Ends where half of them have none, so that few names of a relation without values are read.
        """
        ids, values, without = np.unique(entities), self.lazy_values, 0
        for first in range(0, len(ids), NAMES_AT_ONCE):
            some = ids[first : first + NAMES_AT_ONCE]
            values.read(some)
            without += int((~values.are_values(some)).sum())
            if 2 * without >= len(ids):
                return None
        ranked, keys = ranked_values(values, ids)
        if 2 * ranked.sum() <= len(ids):
            return None
        ids, keys = ids[ranked], keys[ranked]
        order = np.lexsort((ids, keys[:, 1], keys[:, 0]))
        least, greatest = (self.names[int(self.labels[ids[at]])] for at in (order[0], order[-1]))
        return least, greatest

    def _id_of(self, key: str) -> int:
        entity = self.entities.find(key)
        if entity < 0:
            raise InvalidArgumentError(f"KnowledgeGraph: no entity with the key {key!r}. See `graph.entities`.")
        return entity

    def _row(self, name: str, row: int) -> list[int]:
        indptr = self._columns[f"{name}.indptr"]
        values: list[int] = self._columns[f"{name}.values"][indptr[row] : indptr[row + 1]].tolist()
        return values


def _frozen(column: Array) -> Array:
    """A read-only plain view, so that compiled code sees one type whether the column is in memory or on disk."""
    view = column.view(np.ndarray)
    view.flags.writeable = False
    return view
