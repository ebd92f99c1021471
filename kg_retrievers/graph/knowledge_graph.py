"""KnowledgeGraph: immutable columns of triples with both directions, names and types."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import networkx as nx
import numpy as np

from kg_retrievers.errors import GraphLoadError, InvalidArgumentError
from kg_retrievers.graph.adjacency import Adjacency
from kg_retrievers.graph.cache import Immutable
from kg_retrievers.graph.columns import Array, StringTable, fingerprint, open_columns, save_columns, saved_meta
from kg_retrievers.graph.readers import GraphFormat, GraphRows, read_entity_rows, read_graph_rows
from kg_retrievers.graph.types import Triple

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(frozen=True)
class RelationSchema:
    """What one relation joins: its number of triples and the types seen at its heads and tails, sorted."""

    relation: str
    triples: int
    head_types: tuple[str, ...]
    tail_types: tuple[str, ...]


@dataclass(frozen=True)
class Schema:
    """The shape of a graph: relations by falling number of triples, and the number of entities of each type."""

    entities: int
    triples: int
    relations: tuple[RelationSchema, ...]
    types: Mapping[str, int]


class GraphSource(Protocol):
    """What a whole graph can be read from, as the executors of `kg_retrievers.database`."""

    def read_graph(self, page_size: int) -> GraphRows:
        """Read everything, so many rows at a time."""


class KnowledgeGraph(Immutable):
    """A directed multigraph of facts. Entities are told apart by key; labels, aliases and types describe them.

    Immutable, safe to share between threads. Build one with `from_triples`, `from_file`, `from_networkx` or `open`.

    A copy is the graph itself. A graph that was opened from a folder is pickled as this folder as long as it holds the
    graph, so that another process maps the same files; any other graph is pickled with all of its columns.

    Attributes:
        entities: The entity keys; the position of a key is its number in all arrays.
        relations: The relations.
        types: The types.
        names: All distinct labels and aliases.
        labels: The label of each entity: int32, shape (entities), numbers of names.
        edges: The triples by number: int32, shape (triples, 3), numbers of head, relation and tail.
        adjacency: The triples by entity, both directions.
        duplicates: How many repeated triples were dropped on the way in.
        skipped: How many unreadable lines were skipped on the way in (`on_error="skip"`).
    """

    def __init__(self, columns: Mapping[str, Array], duplicates: int = 0, skipped: int = 0) -> None:
        """Take columns as `_build` or `open` made them; use a named constructor instead."""
        self._columns = dict(columns)
        self._folder: Path | None = None
        self.duplicates = duplicates
        self.skipped = skipped
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
    ) -> KnowledgeGraph:
        """Build a graph from `(head, relation, tail)` texts.

        Args:
            triples: The facts. Repeated ones are dropped and counted in `duplicates`.
            labels: What an entity key is called; the key itself where nothing is given.
            aliases: Further names of an entity key.
            types: Types of an entity key.

        Raises:
            InvalidArgumentError: If a triple has not three non-empty texts, or a name or type is no text.
        """
        return cls._build(triples, labels or {}, aliases or {}, types or {})

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        *,
        entities: str | Path | None = None,
        format: GraphFormat | None = None,
        columns: Sequence[str] | None = None,
        on_error: Literal["raise", "skip"] = "raise",
        encoding: str = "utf-8",
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

        Raises:
            GraphLoadError: With file name and line number, if something cannot be read.
        """
        rows = read_graph_rows(path, format=format, columns=columns, on_error=on_error, encoding=encoding)
        skipped = rows.skipped
        if entities is not None:
            more = read_entity_rows(entities, on_error=on_error, encoding=encoding)
            skipped += more.skipped
            for key, label in more.labels.items():
                if rows.labels.setdefault(key, label) != label:
                    rows.aliases.setdefault(key, []).append(label)
            for described, further in ((rows.aliases, more.aliases), (rows.types, more.types)):
                for key, texts in further.items():
                    described[key] = [*described.get(key, ()), *texts]
        return cls._build(rows.triples, rows.labels, rows.aliases, rows.types, skipped)

    @classmethod
    def from_networkx(
        cls, graph: nx.DiGraph[Any] | nx.MultiDiGraph[Any], *, relation: str = "relation"
    ) -> KnowledgeGraph:
        """Read a directed NetworkX graph.

        The relation of an edge is its attribute `relation`, else its key in a multigraph. Nodes are taken by `str`;
        their attributes "label", "aliases" and "types" are used.

        Raises:
            InvalidArgumentError: If the graph is undirected, an edge has no relation, or two nodes have equal texts.
        """
        if not graph.is_directed():
            raise InvalidArgumentError(
                "KnowledgeGraph.from_networkx: got an undirected graph; a triple has a direction. "
                "Build a DiGraph or MultiDiGraph."
            )
        keys = {node: str(node) for node in graph}
        if len(set(keys.values())) < len(keys):
            twice = next(key for key in keys.values() if list(keys.values()).count(key) > 1)
            raise InvalidArgumentError(f"KnowledgeGraph.from_networkx: two nodes are both written {twice!r}.")
        triples = []
        edges = graph.edges(keys=True, data=True) if graph.is_multigraph() else graph.edges(data=True)
        for head, tail, *key, data in edges:
            name = data.get(relation, key[0] if key else None)
            if not isinstance(name, str):
                raise InvalidArgumentError(
                    f"KnowledgeGraph.from_networkx: the edge {head!r} -> {tail!r} has no text in its attribute "
                    f"{relation!r}, but {name!r}. Name the attribute that holds it: relation=..."
                )
            triples.append((keys[head], name, keys[tail]))
        described: dict[str, dict[str, Any]] = {name: {} for name in ("label", "aliases", "types")}
        for node, data in graph.nodes(data=True):
            for name, values in described.items():
                if name in data:
                    values[keys[node]] = data[name]
        isolated = {keys[node]: keys[node] for node in nx.isolates(graph)}
        return cls._build(triples, isolated | described["label"], described["aliases"], described["types"])

    @classmethod
    def from_executor(cls, executor: GraphSource, *, page_size: int = 10_000) -> KnowledgeGraph:
        """Read all of a graph database, as through `LadybugExecutor` or `Neo4jExecutor`.

        Nodes become entities by the property that the executor takes as key, relationships become triples. Types are
        the node labels, or where nodes have a property `types`, its list.

        Args:
            executor: Where the database is.
            page_size: How many rows are read at a time; 1 or more.

        Raises:
            InvalidArgumentError: If `executor` is none, there are nodes without a text as key, or `page_size` is
                below 1.
            DatabaseError: If the database cannot be read.
        """
        if not hasattr(executor, "read_graph"):
            raise InvalidArgumentError(
                f"KnowledgeGraph.from_executor: wanted an executor, such as LadybugExecutor(path), but got "
                f"{executor!r:.100}."
            )
        if page_size < 1:
            raise InvalidArgumentError(f"KnowledgeGraph.from_executor: page_size is {page_size}. Read at least 1 row.")
        rows = executor.read_graph(page_size)
        return cls._build(rows.triples, rows.labels, rows.aliases, rows.types)

    @classmethod
    def open(cls, path: str | Path) -> KnowledgeGraph:
        """Open a folder that `save` wrote; the columns stay on disk and are mapped into memory.

        Raises:
            GraphLoadError: If the folder holds no complete graph.
        """
        columns, meta = open_columns(path, "graph", GraphLoadError)
        wanted = [*cls.from_triples([])._columns, "duplicates", "skipped", "fingerprint"]
        if missing := [name for name in wanted if name not in columns and name not in meta]:
            raise GraphLoadError(f"{', '.join(missing)} is missing. Save the graph again.", path)
        graph = cls(columns, meta["duplicates"], meta["skipped"])
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
        return KnowledgeGraph, (self._columns, self.duplicates, self.skipped)

    @classmethod
    def _build(
        cls,
        triples: Iterable[Sequence[str]],
        labels: Mapping[str, str],
        aliases: Mapping[str, Sequence[str]],
        types: Mapping[str, Sequence[str]],
        skipped: int = 0,
    ) -> KnowledgeGraph:
        unique: dict[Sequence[str], None] = {}
        count = 0
        for count, triple in enumerate(triples, 1):
            whole = len(triple) == 3 and not isinstance(triple, str)
            if not whole or not all(isinstance(text, str) and text for text in triple):
                raise InvalidArgumentError(
                    f"KnowledgeGraph: triple {count} must be three non-empty texts (head, relation, tail), "
                    f"but got {triple!r}."
                )
            unique[tuple(triple)] = None
        entities = _Numbers()
        relations = _Numbers()
        edges = np.array(
            [(entities[head], relations[relation], entities[tail]) for head, relation, tail in unique], np.int32
        ).reshape(-1, 3)
        for key in (*labels, *aliases, *types):
            entities[key]
        names, kinds = _Numbers(), _Numbers()
        keys = list(entities)
        label_ids = np.array([names[_text("label", key, labels.get(key, key))] for key in keys], np.int32)
        alias_ids = [[names[_text("alias", key, alias)] for alias in _texts("aliases", key, aliases)] for key in keys]
        type_ids = [[kinds[_text("type", key, kind)] for kind in _texts("types", key, types)] for key in keys]
        columns: dict[str, Array] = {"triples": edges}
        try:
            for name, table in (("entities", entities), ("relations", relations), ("names", names), ("types", kinds)):
                columns |= StringTable.from_strings(table).columns(name)
        except UnicodeEncodeError as cause:
            raise InvalidArgumentError(f"KnowledgeGraph: {cause.object!r} holds half a surrogate pair.") from cause
        columns["labels"] = label_ids
        columns |= _ragged("aliases", alias_ids)
        columns |= _ragged("entity_types", type_ids)
        named = [[label, *rest] for label, rest in zip(label_ids, alias_ids, strict=True)]
        columns |= _inverted("name_entities", len(names), named)
        columns |= _inverted("type_entities", len(kinds), type_ids)
        adjacency = Adjacency.of_edges(edges, len(keys))
        columns |= {f"adjacency.{name}": array for name, array in adjacency._asdict().items()}
        return cls(columns, count - len(unique), skipped)

    # --- out --------------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the graph to a folder, replacing what was saved there only when all is written."""
        meta = {"duplicates": self.duplicates, "skipped": self.skipped, "fingerprint": self.fingerprint}
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
        warnings.warn(
            "KnowledgeGraph.to_pyg is kg_retrievers.to_pyg(graph, index) now.", DeprecationWarning, stacklevel=2
        )
        data: Data = import_module("kg_retrievers.training.pyg").to_pyg(self, index)  # a room above this one
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
        return self._build(
            (*kept, *added),
            {key: self.label(key) for key in self.entities},
            {key: self.aliases(key) for key in self.entities},
            {key: self.types_of(key) for key in self.entities},
        )

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
        if ends:
            indptr = self.adjacency.indptr
            row = min(ends, key=lambda end: int(indptr[end + 1] - indptr[end]))
            numbers = np.unique(self.adjacency.triples[indptr[row] : indptr[row + 1]])
        else:
            numbers = np.arange(len(edges))
        for column, number in enumerate(wanted):
            if number is not None:
                numbers = numbers[edges[numbers, column] == number]
        for number in numbers:
            yield self.triple(int(number))

    def triple(self, number: int) -> Triple:
        """Return a triple by its number, counted from 0 in stored order."""
        head, relation, tail = self.edges[number].tolist()
        return Triple(self.entities[head], self.relations[relation], self.entities[tail])

    def label(self, key: str) -> str:
        """Return what an entity is called; its key where no label was given, or where it is not in the graph."""
        number = self.entities.find(key)
        return key if number < 0 else self.names[int(self.labels[number])]

    def aliases(self, key: str) -> list[str]:
        """Return the further names of an entity."""
        return [self.names[name] for name in self._row("aliases", self._number(key))]

    def types_of(self, key: str) -> list[str]:
        """Return the types of an entity."""
        return [self.types[kind] for kind in self._row("entity_types", self._number(key))]

    def entities_named(self, name: str) -> list[str]:
        """Return the keys of all entities with this label or alias, in stored order."""
        number = self.names.find(name)
        return [] if number < 0 else [self.entities[entity] for entity in self._row("name_entities", number)]

    def name_entities(self, name: int) -> list[int]:
        """Return the numbers of the entities with a name, given by its number in `names`; ascending."""
        return self._row("name_entities", name)

    @cached_property
    def untyped(self) -> Array:
        """The numbers of the entities without type; int64, ascending."""
        return np.flatnonzero(np.diff(self._columns["entity_types.indptr"]) == 0)

    def type_entities(self, kind: int) -> list[int]:
        """Return the numbers of the entities of a type, given by its number in `types`; ascending."""
        return self._row("type_entities", kind)

    def schema(self) -> Schema:
        """Count relations and types, and say which types each relation joins."""
        edges = self.edges
        counts = np.bincount(edges[:, 1], minlength=len(self.relations))
        order = np.argsort(-counts, kind="stable")
        relations = []
        by_relation = np.split(edges[np.argsort(edges[:, 1], kind="stable")], np.cumsum(counts)[:-1])
        for relation in order.tolist():
            of_relation = by_relation[relation]
            head_types, tail_types = (
                tuple(sorted({self.types[kind] for end in np.unique(ends) for kind in self._row("entity_types", end)}))
                for ends in (of_relation[:, 0], of_relation[:, 2])
            )
            relations.append(RelationSchema(self.relations[relation], int(counts[relation]), head_types, tail_types))
        sizes = np.diff(self._columns["type_entities.indptr"]).tolist()
        types = dict(sorted(zip(self.types, sizes, strict=True), key=lambda item: (-item[1], item[0])))
        return Schema(len(self.entities), len(self), tuple(relations), types)

    def _number(self, key: str) -> int:
        number = self.entities.find(key)
        if number < 0:
            raise InvalidArgumentError(f"KnowledgeGraph: no entity with the key {key!r}. See `graph.entities`.")
        return number

    def _row(self, name: str, row: int) -> list[int]:
        indptr = self._columns[f"{name}.indptr"]
        values: list[int] = self._columns[f"{name}.values"][indptr[row] : indptr[row + 1]].tolist()
        return values


def _frozen(column: Array) -> Array:
    """A read-only plain view, so that compiled code sees one type whether the column is in memory or on disk."""
    view = column.view(np.ndarray)
    view.flags.writeable = False
    return view


class _Numbers(dict[str, int]):
    """Gives each new text the next number."""

    def __missing__(self, key: str) -> int:
        number = self[key] = len(self)
        return number


def _text(what: str, key: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidArgumentError(f"KnowledgeGraph: a {what} of {key!r} must be a non-empty text, but got {value!r}.")
    return value


def _texts(what: str, key: str, values: Mapping[str, Sequence[str]]) -> Sequence[str]:
    texts = values.get(key, ())
    if isinstance(texts, str):
        raise InvalidArgumentError(f"KnowledgeGraph: {what} of {key!r} must be a list of texts, but got {texts!r}.")
    return tuple(dict.fromkeys(texts))


def _ragged(name: str, rows: Sequence[Sequence[int]]) -> dict[str, Array]:
    indptr = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=indptr[1:])
    return {f"{name}.indptr": indptr, f"{name}.values": np.array([value for row in rows for value in row], np.int32)}


def _inverted(name: str, size: int, rows: Sequence[Sequence[int]]) -> dict[str, Array]:
    inverse: list[list[int]] = [[] for _ in range(size)]
    for number, row in enumerate(rows):
        for value in dict.fromkeys(row):
            inverse[value].append(number)
    return _ragged(name, inverse)
