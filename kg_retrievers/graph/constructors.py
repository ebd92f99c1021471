"""Construct a graph from many sources.

These are triples, files, frames, RDF, other libraries and graph databases.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any, Self

import networkx as nx

from kg_retrievers.errors import Guided, InvalidArgumentError, named_arguments
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.cache import Immutable
from kg_retrievers.graph.parts import driver_of, executor_of
from kg_retrievers.graph.readers.files import GraphFormat, GraphPaths, graph_files, read_graph_files
from kg_retrievers.graph.readers.frameworks.documents import read_graph_document_rows, read_property_graph_rows
from kg_retrievers.graph.readers.frameworks.networkx_graphs import read_networkx_rows
from kg_retrievers.graph.readers.opening import Limits
from kg_retrievers.graph.readers.rdf.sources import read_rdf
from kg_retrievers.graph.readers.rdf.statements import ALIASES, LABELS, TYPES, Kept, RdfOptions, Schema
from kg_retrievers.graph.readers.tables.frames import read_frame
from kg_retrievers.graph.readers.text_files import Attributes, FileOptions, OnError

#: How many rows of a database are read at a time.
PAGE_SIZE = 10_000


@named_arguments
class GraphConstructors(Immutable, Guided):
    """Make a graph of whatever holds one.

    Each constructor is a reader of `kg_retrievers.graph.readers`.
    """

    @classmethod
    @abstractmethod
    def _from_builder(cls, builder: GraphBuilder, text_relations: Iterable[str] = ()) -> Self:
        """Make a graph of the facts that a reader collected."""

    @classmethod
    @abstractmethod
    def _joined(cls, graphs: Sequence[Self], text_relations: Iterable[str]) -> Self:
        """Make one graph of those of several files."""

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
    ) -> Self:
        """Build a graph from `(head, relation, tail)` texts.

        Args:
            triples: The facts. Repeated ones are dropped and counted in `duplicates`.
            labels: The label of an entity key. By default, the key itself.
            aliases: Further names of an entity key.
            types: Types of an entity key.
            relation_labels: The label of a relation, by the text that the triples have. If two relations share a label,
                that text follows it in brackets.
            text_relations: Relations whose tails are no values, such as titles and postal codes.

        Raises:
            InvalidArgumentError: If a triple has not three non-empty texts, a name or type is no text, or a text
                relation is none of the graph.
        """
        builder = GraphBuilder(labels, aliases, types, relation_labels)
        if isinstance(triples, str | Mapping):
            raise InvalidArgumentError(
                f"KnowledgeGraph.from_triples: wanted rows of (head, relation, tail), but got {triples!r:.100}. Read a "
                "file with from_file(path)."
            )
        for triple in triples:
            builder.add_row(triple)
        return cls._from_builder(builder, text_relations)

    @classmethod
    def from_file(
        cls,
        path: GraphPaths,
        *,
        entities: str | Path | None = None,
        ontology: GraphPaths = (),
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
    ) -> Self:
        """Read a graph from a file of any format.

        `graph.reading` records the reader's understanding and the parts that were left out.

        Text: TSV, CSV with any delimiter, `head|relation|tail`, JSON lines, JSON arrays. Tables: Parquet, Arrow IPC
        (extra `arrow`). Graphs: GraphML, GEXF, node-link JSON, and RDF (extra `rdf`, options in `from_rdf`). Exports:
        Neo4j CSV, CSV and JSON of APOC, JSON of arrows.app. Each may be packed as `.gz`, `.bz2`, `.xz` or `.zst`,
        except Parquet and Arrow, which are packed within.

        Args:
            path: The file, several files, or a folder of them, which make one graph. JSON rows may also be entities,
                `{"entity", "label", "aliases", "types"}`, and names of relations, `{"relation", "label"}`.
            entities: A second file with names, types and attributes of entities: such JSON rows, `entity<TAB>label`, or
                a table with a header. If both files give a label, the first file's counts and the other becomes an
                alias.
            ontology: Files of RDF that only describe: labels, classes, relations. Nothing in them is a fact.
            format: The format. By default, the reader finds it by suffix, then by content.
            columns: The header's names for head, relation and tail, if they are unusual. A fourth name may give the
                column of sources of a table.
            delimiter: The separator of the cells of a table. By default, the reader finds it by the first lines.
            header: Whether the first row of a table names its columns. By default, the reader decides by its names.
            facts: Columns of a table of facts whose cells become facts about the head.
            attributes: Attributes of entities become facts, or with "drop" are left out.
            on_error: "raise" stops at a malformed line, "skip" counts it in `skipped`.
            encoding: Of both files.
            limits: The limits on the contents of a file. See `Limits` for the defaults.
            text_relations: As of `from_triples`.

        Raises:
            GraphLoadError: With file name and line number, if something cannot be read or exceeds a limit.
            InvalidArgumentError: If an argument has no such value, or a text relation is none of the graph.
            MissingExtraError: If the format needs an extra that is not installed.
        """
        options = _options_of(FileOptions, locals())
        read = read_graph_files(path, entities=entities, ontology=ontology, format=format, **options)
        if len(read) == 1:
            return cls._from_builder(read[0], text_relations)
        return cls._joined([cls._from_builder(rows) for rows in read], text_relations)

    @classmethod
    @named_arguments
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
    ) -> Self:
        """Read a frame of pandas or polars, an Arrow table, or a list of dictionaries.

        Each row holds one fact.

        The reader recognises columns called head (or subject, source, from), relation (or predicate, edge) and tail (or
        object, target, to), and `graph.reading` names them. Truth values become "true" and "false". A float without a
        fraction becomes an integer: 2013.0 is "2013". Dates and times are written as in ISO 8601, midnights as dates.

        Args:
            frame: The facts.
            head: The column of heads.
            relation: The column of relations.
            tail: The column of tails.
            source: The column that names the origin of a fact. Give each of several sources its own row, such as with
                `frame.explode`.
            entities: A second frame, with a row for each entity: entity (or id, key), label (or name), aliases, types.
                Further columns are attributes. Aliases and types are lists, or texts between pipes.
            facts: Columns whose cells become facts about the head.
            attributes: Attributes of entities become facts, or with "drop" are left out.
            on_error: "raise" stops at a row with an empty cell, "skip" counts it in `skipped`.
            text_relations: As of `from_triples`.

        Raises:
            InvalidArgumentError: If it is no frame, a column is not found, a row holds no fact, an argument has no
                such value, or a text relation is none of the graph.

        Example:
            >>> from kg_retrievers.graph import KnowledgeGraph
            >>> rows = [{"film": "Her", "fact": "year", "value": 2013.0}]
            >>> [*KnowledgeGraph.from_frame(rows, head="film", relation="fact", tail="value").triples()]
            [Triple(head='Her', relation='year', tail='2013')]
        """
        rows = read_frame(frame, (head, relation, tail, source), entities, facts, attributes, on_error)
        return cls._from_builder(rows, text_relations)

    @classmethod
    @named_arguments
    def from_rdf(
        cls,
        source: str | Path | Any,
        *,
        ontology: GraphPaths = (),
        format: str | None = None,
        languages: Sequence[str] = ("en",),
        label_predicates: Sequence[str] = LABELS,
        alias_predicates: Sequence[str] = ALIASES,
        type_predicates: Sequence[str] = TYPES,
        literals: Kept = "keep",
        schema: Schema | None = None,
        graphs: Sequence[str] | None = None,
        blank_nodes: Kept = "keep",
        prefixes: Mapping[str, str] | None = None,
        base_iri: str | None = None,
        on_error: OnError = "raise",
        limits: Limits | None = None,
        text_relations: Iterable[str] = (),
    ) -> Self:
        """Read RDF from a file or a graph of rdflib.

        Formats are N-Triples, N-Quads, Turtle, TriG, RDF/XML, JSON-LD, N3 and Wikidata's JSON.

        The key of an entity is its prefixed name, such as "dbr:Her", or its IRI if no prefix fits. The key of a literal
        is its text, in quotes if an entity has that key. Entities, relations and types are called by their labels. An
        entity without one is called by the end of its IRI in words. A relation or type without one is called by its
        prefixed name, or by the end of its IRI if no prefix fits. Statements about a fact, such as by `<< s p o >>`,
        `rdf:Statement` or qualifiers of Wikidata, are its attributes. `reading` records the reader's understanding and
        the parts that were left out.

        Args:
            source: The file, which may be compressed (`.gz`, `.bz2`, `.xz`), several files, a folder of them, or an
                rdflib Graph or Dataset.
            ontology: Files that only describe: labels, classes, relations. Nothing in them is a fact.
            format: The format of a file by its name or media type, or "wikidata". By default, the suffix decides.
            languages: The languages of labels and texts, best first. "en" takes "en-GB", "*" takes all. Then come texts
                without a language, and last, for a thing without any of them, the first other language in sorted order.
            label_predicates: Predicates of labels, best first. Further labels become aliases.
            alias_predicates: Predicates of aliases.
            type_predicates: Predicates of types. By default, types that all things of Wikibase have are left out.
            literals: "drop" leaves out the facts whose tails are literals.
            schema: "describe" takes triples about classes and relations, such as `rdfs:subClassOf`, for names and
                wider types, "keep" for facts. By default they describe, unless there is nothing else.
            graphs: The named graphs to take, and "default" for the default graph. By default, all of them.
            blank_nodes: "drop" leaves out the statements with blank nodes.
            prefixes: Prefixes in addition to the well-known ones and the declarations of the file: {prefix: namespace}.
            base_iri: The base of relative IRIs in the file.
            on_error: "skip" counts malformed statements in `skipped`. RDF/XML and JSON-LD end at the first one.
            limits: The limits on the contents of a file. See `Limits` for the defaults.
            text_relations: As of `from_triples`, by the names that the graph gives its relations.

        Raises:
            GraphLoadError: With file name and line, if something cannot be read, is malformed or exceeds a limit.
            InvalidArgumentError: If an argument has no such value, or a text relation is none of the graph.
            MissingExtraError: If the extra `rdf` is not installed.
        """
        options = RdfOptions(**_options_of(RdfOptions, locals() | {"prefixes": dict(prefixes or {})}))
        about = FileOptions(limits=options.limits)
        if isinstance(source, str | Path | list | tuple):
            source = graph_files(source, about, is_rdf=True)
        describing = graph_files(ontology, about, is_rdf=True) if ontology else ()
        return cls._from_builder(read_rdf(source, format, options, describing), text_relations)

    @classmethod
    def from_networkx(
        cls,
        graph: nx.DiGraph[Any] | nx.MultiDiGraph[Any],
        *,
        relation: str = "relation",
        attributes: Attributes = "facts",
        text_relations: Iterable[str] = (),
    ) -> Self:
        """Read a directed NetworkX graph.

        The relation of an edge is its attribute `relation`, else its key in a multigraph. Of a node, "label" or "name"
        is its label, "aliases", "types" and "type" are used as such, and each other attribute is a relation to its
        value. The other attributes of an edge are attributes of the fact. `reading` records the used parts and the
        parts that were left out.

        Args:
            graph: The graph. Nodes that are no texts are taken by `str`.
            relation: The attribute of an edge that holds its relation.
            attributes: "drop" leaves out the other attributes of nodes and edges.
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
    ) -> Self:
        """Read the `GraphDocument`s of LangChain's packages.

        Any object with the same `nodes` and `relationships` will do.

        A node has an `id`, a `type` and `properties`, which are read as the attributes of a node of `from_networkx`.
        A relationship has a `source`, a `target` and a `type`. Facts are from the `source` document.

        Args:
            documents: The documents. Nodes with one id are one entity.
            source: The entry of a document's metadata that names the origin of its facts. None takes the id of the
                document, else "id" or "source" of its metadata.
            attributes: As of `from_networkx`.
            text_relations: As of `from_triples`.

        Raises:
            InvalidArgumentError: If something is no such document, or a text relation is none of the graph.

        Example:
            >>> from kg_retrievers.graph import KnowledgeGraph
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
    ) -> Self:
        """Read a LlamaIndex `PropertyGraphStore`, or the store of a `PropertyGraphIndex`.

        Labels of nodes are types, properties are read as the attributes of a node of `from_networkx`. A fact is from
        its `triplet_source_id`. Text chunks, relations to them, and copies that LlamaIndex makes from a chunk into the
        properties of entities are left out and counted in `reading`. A graph in Neo4j that LlamaIndex did not write is
        read as by `from_executor`.

        Args:
            store: The store or index.
            attributes: As of `from_networkx`.
            text_relations: As of `from_triples`.

        Raises:
            InvalidArgumentError: If it is neither, it is empty, or a text relation is none of the graph.
        """
        rows = read_property_graph_rows(store, attributes=attributes)
        if not rows.types and not rows.labels and not len(rows):
            if driver_of(store) is None:
                raise InvalidArgumentError(
                    f"KnowledgeGraph.from_property_graph: {store!r:.100} holds no nodes. Fill it, "
                    "or hand in the store that was filled."
                )
            return cls.from_executor(store, attributes=attributes, text_relations=text_relations)
        return cls._from_builder(rows, text_relations)

    @classmethod
    def from_executor(
        cls,
        executor: Any,
        *,
        page_size: int = PAGE_SIZE,
        attributes: Attributes = "facts",
        text_relations: Iterable[str] = (),
    ) -> Self:
        """Read all of a graph database, such as through `LadybugExecutor` or `Neo4jExecutor`.

        Nodes become entities by the property that the executor takes as key, relationships become triples. Types are
        the node labels, or the list in the property `types` if nodes have it. The other properties are read like the
        properties in a file: of nodes as facts, of relationships as attributes of facts. `reading` counts nodes without
        a key.

        Args:
            executor: An executor. Or a driver of neo4j, LangChain's `Neo4jGraph` or LlamaIndex's
                `Neo4jPropertyGraphStore`.
            page_size: How many rows are read at a time, 1 or more.
            attributes: "drop" leaves out the other properties of nodes and relationships.
            text_relations: As of `from_triples`.

        Raises:
            InvalidArgumentError: If `executor` is none, there are nodes and none has a key, `page_size` is below 1, an
                argument has no such value, or a text relation is none of the graph.
            DatabaseError: If the database cannot be read.
        """
        if page_size < 1:
            raise InvalidArgumentError(f"KnowledgeGraph.from_executor: page_size is {page_size}. Read at least 1 row.")
        reader = executor_of(executor, "KnowledgeGraph.from_executor", "read_graph")
        with nullcontext() if reader is executor else closing(reader):
            return cls._from_builder(reader.read_graph(page_size, attributes), text_relations)


def _options_of(kind: type[FileOptions | RdfOptions], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are fields of options. The time of the limits begins now."""
    options = {one.name: given[one.name] for one in fields(kind)}
    return options | {"limits": (options["limits"] or Limits()).started()}
