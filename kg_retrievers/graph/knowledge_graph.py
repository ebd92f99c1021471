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
from kg_retrievers.graph.building import build_columns
from kg_retrievers.graph.cache import Immutable
from kg_retrievers.graph.columns import Array, StringTable, fingerprint, open_columns, save_columns, saved_meta
from kg_retrievers.graph.readers import (
    GraphFormat,
    GraphRows,
    OnError,
    read_entity_rows,
    read_graph_rows,
    read_networkx_rows,
)
from kg_retrievers.graph.schema import RelationSchema, Schema, relation_schemas
from kg_retrievers.graph.types import Triple
from kg_retrievers.graph.value_columns import NAMES_AT_ONCE, ValueColumns, ranked_values
from kg_retrievers.graph.values import Value, read_value

if TYPE_CHECKING:
    from torch_geometric.data import Data


class GraphSource(Protocol):
    """What a whole graph can be read from, as the executors of `kg_retrievers.database`."""

    def read_graph(self, page_size: int) -> GraphRows:
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
    """

    def __init__(
        self,
        columns: Mapping[str, Array],
        duplicates: int = 0,
        skipped: int = 0,
        text_relations: Iterable[str] = (),
    ) -> None:
        """Take columns as `build_columns` or `open` made them; use a named constructor instead."""
        self._columns = dict(columns)
        self._folder: Path | None = None
        self.duplicates = duplicates
        self.skipped = skipped
        self.text_relations = tuple(dict.fromkeys(text_relations))
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
        text_relations: Iterable[str] = (),
    ) -> KnowledgeGraph:
        """Build a graph from `(head, relation, tail)` texts.

        Args:
            triples: The facts. Repeated ones are dropped and counted in `duplicates`.
            labels: What an entity key is called; the key itself where nothing is given.
            aliases: Further names of an entity key.
            types: Types of an entity key.
            text_relations: Relations whose tails are no values, as titles and postal codes are none.

        Raises:
            InvalidArgumentError: If a triple has not three non-empty texts, a name or type is no text, or a text
                relation is none of the graph.
        """
        rows = triples, labels or {}, aliases or {}, types or {}
        return cls(*build_columns(*rows))._with_texts(text_relations)

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        *,
        entities: str | Path | None = None,
        format: GraphFormat | None = None,
        columns: Sequence[str] | None = None,
        on_error: OnError = "raise",
        encoding: str = "utf-8",
        text_relations: Iterable[str] = (),
    ) -> KnowledgeGraph:
        """Read a graph from TSV, CSV, `head|relation|tail` or JSONL.

        Args:
            path: The file of triples. JSONL may also hold rows `{"entity", "label", "aliases", "types"}`.
            entities: A second file with names and types of entities: such JSONL rows, or `entity<TAB>label`. Where
                both files give a label, the first file's counts and the other becomes an alias.
            format: "tsv", "csv", "pipe" or "jsonl"; found by suffix and first line where not given.
            columns: The header's names for head, relation and tail, where they are unusual.
            on_error: "raise" stops at a malformed line, "skip" counts it in `skipped`.
            encoding: Of both files.
            text_relations: As of `from_triples`.

        Raises:
            GraphLoadError: With file name and line number, if something cannot be read.
            InvalidArgumentError: If a text relation is none of the graph.
        """
        rows = read_graph_rows(path, format=format, columns=columns, on_error=on_error, encoding=encoding)
        if entities is not None:
            rows.add_descriptions(read_entity_rows(entities, on_error=on_error, encoding=encoding))
        return cls._from_rows(rows)._with_texts(text_relations)

    @classmethod
    def from_networkx(
        cls,
        graph: nx.DiGraph[Any] | nx.MultiDiGraph[Any],
        *,
        relation: str = "relation",
        text_relations: Iterable[str] = (),
    ) -> KnowledgeGraph:
        """Read a directed NetworkX graph.

        The relation of an edge is its attribute `relation`, else its key in a multigraph. Nodes are taken by `str`;
        their attributes "label", "aliases" and "types" are used.

        Raises:
            InvalidArgumentError: If the graph is undirected, an edge has no relation, two nodes have equal texts, or a
                text relation is none of the graph.
        """
        return cls._from_rows(read_networkx_rows(graph, relation))._with_texts(text_relations)

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
        return cls._from_rows(executor.read_graph(page_size))._with_texts(text_relations)

    @classmethod
    def open(cls, path: str | Path) -> KnowledgeGraph:
        """Open a folder that `save` wrote; the columns stay on disk and are mapped into memory.

        Raises:
            GraphLoadError: If the folder holds no complete graph.
        """
        columns, meta = open_columns(path, "graph", GraphLoadError)
        wanted = [*cls.from_triples([])._columns, "duplicates", "skipped", "fingerprint"]
        if missing := [name for name in wanted if name not in columns and name not in meta]:
            raise GraphLoadError(
                f"{', '.join(missing)} is missing.",
                path,
                hint_python="Save the graph again.",
                hint_shell=f"To index a file: kg-retrievers index FILE --output {path}",
            )
        graph = cls(columns, meta["duplicates"], meta["skipped"], meta.get("text_relations", ()))
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
        return KnowledgeGraph, (self._columns, self.duplicates, self.skipped, self.text_relations)

    @classmethod
    def _from_rows(cls, rows: GraphRows) -> KnowledgeGraph:
        return cls(*build_columns(rows.triples, rows.labels, rows.aliases, rows.types), rows.skipped)

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
        return type(self)(self._columns, self.duplicates, self.skipped, relations)

    # --- out --------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the graph to a folder, replacing what was saved there only when all is written.

        Raises:
            FileWriteError: If the disk is full, or this user may not write there.
        """
        meta = {"duplicates": self.duplicates, "skipped": self.skipped, "fingerprint": self.fingerprint}
        meta |= {"text_relations": list(self.text_relations)}
        save_columns(path, "graph", self._columns, meta)

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """Return a MultiDiGraph with the relation as key and attribute, and "label", "aliases", "types" on nodes."""
        graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
        for key in self.entities:
            graph.add_node(key, label=self.label(key), aliases=self.aliases(key), types=self.types_of(key))
        for head, relation, tail in self.triples():
            graph.add_edge(head, tail, key=relation, relation=relation)
        return graph

    def to_pyg(self, index: Any = None) -> Data:
        """Deprecated: `kg_retrievers.to_pyg(graph, index)` does this."""
        warn_renamed("graph.to_pyg(index)", "kg_retrievers.to_pyg(graph, index)")
        data: Data = import_module("kg_retrievers").to_pyg(self, index)  # its room is above this one
        return data

    def with_changes(
        self, *, added: Iterable[Sequence[str]] = (), removed: Iterable[Sequence[str]] = ()
    ) -> KnowledgeGraph:
        """Return a new graph with some triples added and some removed; entities, names and types are kept.

        Raises:
            InvalidArgumentError: If a triple to remove is not in the graph.
        """
        gone = dict.fromkeys(map(tuple, removed))
        for triple in gone:
            if triple not in self:
                raise InvalidArgumentError(f"KnowledgeGraph.with_changes: {triple} is not in the graph.")
        kept = (triple for triple in self.triples() if triple not in gone)
        labels = {key: self.label(key) for key in self.entities}
        aliases = {key: self.aliases(key) for key in self.entities}
        types = {key: self.types_of(key) for key in self.entities}
        columns, duplicates = build_columns((*kept, *added), labels, aliases, types)
        return type(self)(columns, duplicates, text_relations=self.text_relations)

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
        edges = self.edges
        parts = ((head, self.entities), (relation, self.relations), (tail, self.entities))
        wanted = [None if text is None else table.find(text) for text, table in parts]
        if -1 in wanted:
            return
        ends = [end for end in (wanted[0], wanted[2]) if end is not None]
        ids = self._triples_at(ends) if ends else np.arange(len(edges))
        for column, part in enumerate(wanted):
            if part is not None:
                ids = ids[edges[ids, column] == part]
        for id in ids:
            yield self.triple(int(id))

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
        return None if self._texts[entity] else read_value(self.names[int(self.labels[entity])])

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
        """Count relations and types, and say which types and values each relation joins."""
        sizes = {name: len(self.type_entities(kind)) for kind, name in enumerate(self.types)}
        return Schema(
            entities=len(self.entities),
            triples=len(self),
            relations=self._relation_schemas,
            types=dict(sorted(sizes.items(), key=lambda item: (-item[1], item[0]))),
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
