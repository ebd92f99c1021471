"""Runs Cypher in the embedded database LadybugDB (https://ladybugdb.com), the successor of Kuzu. Extra: `ladybug`."""

from __future__ import annotations

import csv
import json
import logging
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from itertools import chain, count, pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from rich.console import Console
from rich.progress import track

from kg_retrievers.database.executor import DatabaseExecutor, Fetch, Fetched
from kg_retrievers.database.grammar import Edit, SyntaxNode, read, splice, variables_of
from kg_retrievers.database.ladybug_process import Opening, ProcessSession, SessionPool
from kg_retrievers.database.ladybug_worker import SessionError
from kg_retrievers.database.safety import MAX_QUERY
from kg_retrievers.database.schema import DatabaseSchema, NodeLabel, RelationType, backticked, descriptions_in, quoted
from kg_retrievers.database.tokens import Token
from kg_retrievers.database.values import Rows, StoredNode, StoredPath, StoredRelationship
from kg_retrievers.deadline import check_deadline
from kg_retrievers.errors import (
    DatabaseCancelledError,
    DatabaseCrashError,
    DatabaseMemoryError,
    DatabaseQueryError,
    DatabaseUnavailableError,
    FileWriteError,
    InvalidArgumentError,
    named_arguments,
)
from kg_retrievers.file_writing import raise_write_errors
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.parts import TIMEOUT
from kg_retrievers.paths import checked_path, mode_of

#: The node table of all entities.
ENTITY = "Entity"

#: The most triples of a database that is removed again, and how many are written in a minute: 43 million take 22.
MAX_TEMPORARY, TRIPLES_A_MINUTE = 2_000_000, 2_000_000

#: Characters that a table's name cannot have: a dot separates databases, the others are refused in queries.
_UNFIT = re.compile(r"[.\\$`\x00-\x1f\x7f]")

#: Read by one thread, since only so line breaks in quotes are read as they are.
_CSV = "(PARALLEL=FALSE, HEADER=FALSE, AUTO_DETECT=FALSE, DELIM=',', QUOTE='\"', ESCAPE='\"')"


def load_graph(execute: Callable[[str], Any], graph: KnowledgeGraph, folder: Path, *, progress: bool = False) -> None:
    """Load a graph into an empty database.

    Entities become nodes `(:Entity {key, label, types, aliases})`, each relation a relationship type of its name. If
    LadybugDB cannot have that name, such as with a dot in it or two that differ only by case, the type gets a similar
    name, and the comment of its table holds the relation. Datatypes, sources, ids of relations, text relations and
    prefixes have no place in it: see `lost_parts`.

    Args:
        execute: Runs a statement.
        graph: The graph.
        folder: An empty folder for temporary files.
        progress: Whether to show a progress bar on stderr, with a step for each relation.
    """
    separator = _separator([*graph.types, *graph.names])
    lists = ", ".join(
        f"CASE WHEN {list} = '' THEN CAST([] AS STRING[]) ELSE string_split({list}, {quoted(separator)}) END"
        for list in ("types", "aliases")
    )
    columns = "key STRING, label STRING, types STRING, aliases STRING"
    file = folder / "rows.csv"
    execute(f"CREATE NODE TABLE {ENTITY}(key STRING PRIMARY KEY, label STRING, types STRING[], aliases STRING[])")
    keys = list(graph.entities)
    names = list(graph.names)
    labels = [names[id] for id in graph.labels.tolist()]
    rows = (
        (key, label, separator.join(graph.types_of(key)), separator.join(graph.aliases(key)))
        for key, label in zip(keys, labels, strict=True)
    )
    _write(file, rows)
    execute(f"COPY {ENTITY} FROM (LOAD WITH HEADERS ({columns}) FROM {quoted(file)} {_CSV} RETURN key, label, {lists})")
    heads, relations, tails = graph.edges[:].T
    order = np.argsort(relations, kind="stable")
    starts = np.searchsorted(relations[order], np.arange(len(graph.relations) + 1))
    tables = [*type_names(graph.relations).items()]
    shown = track(tables, "relations", console=Console(stderr=True), transient=True, disable=not progress)
    for id, (relation, name) in enumerate(shown):
        execute(f"CREATE REL TABLE {backticked(name)}(FROM {ENTITY} TO {ENTITY})")
        if name != relation:
            execute(f"COMMENT ON TABLE {backticked(name)} IS {quoted(json.dumps({'relation': relation}))}")
        edges = order[starts[id] : starts[id + 1]]
        _write(file, ((keys[head], keys[tail]) for head, tail in zip(heads[edges], tails[edges], strict=True)))
        execute(f"COPY {backticked(name)} FROM {quoted(file)} {_CSV}")


def lost_parts(graph: KnowledgeGraph) -> list[str]:
    """Return the parts of a graph that a database of `load_graph` lacks."""
    parts = {
        "datatypes of literals": graph.datatype_names,
        "attributes of facts": graph.attribute_names,
        "ids of relations": graph.relation_ids,
        "text relations": graph.text_relations,
        "prefixes": graph.prefixes,
    }
    return [what for what, part in parts.items() if part]


def write_database(graph: KnowledgeGraph, file: Path, *, progress: bool = False) -> None:
    """Write a graph into a new database.

    LadybugDB runs in a process of its own.

    Args:
        graph: The graph.
        file: The file of the database, in an empty folder, which is removed if this process ends before it is written.
        progress: Whether to show a progress bar on stderr.

    Raises:
        DatabaseUnavailableError: If it cannot be written.
        KGRetrieversError: The error of the deadline, if it comes first.
    """
    try:
        with closing(ProcessSession(Opening(file, None, str(file.parent), read_only=False))) as process:

            def execute(statement: str) -> None:
                process.execute(statement, {}, 0)

            load_graph(execute, graph, file.parent, progress=progress)
            execute("CHECKPOINT")
            process.finish()
    except SessionError as cause:
        check_deadline()  # its error names the limit that ended the process
        raise DatabaseUnavailableError(
            f"LadybugExecutor.from_graph: the graph cannot be loaded: {cause.reason} Is there room on the disk?"
        ) from cause


def type_names(relations: Iterable[str]) -> dict[str, str]:
    """Return a table name for each relation.

    It is the relation itself if possible, else a free name.

    Example:
        >>> type_names(["film.genre", "starring", "film_genre", "Starring"])
        {'film.genre': 'film_genre_2', 'starring': 'starring', 'film_genre': 'film_genre', 'Starring': 'Starring_2'}
    """
    relations = list(relations)
    names = dict.fromkeys(relations, "")
    taken = {ENTITY.casefold()}
    for relation in sorted(relations, key=lambda relation: _UNFIT.search(relation) is not None):  # fitting ones first
        plain = _UNFIT.sub("_", relation)
        tried = chain([plain], (f"{plain}_{number}" for number in count(2)))
        names[relation] = next(name for name in tried if name.casefold() not in taken)
        taken.add(names[relation].casefold())
    return names


def _separator(texts: Sequence[str]) -> str:
    """Return a character that occurs in none of the texts, control characters first."""
    used = set().union(*texts)
    return next(character for character in map(chr, range(1, 0x110000)) if character not in used)


def _write(file: Path, rows: Iterable[Sequence[str]]) -> None:
    with raise_write_errors(file), open(file, "w", encoding="utf-8", newline="") as lines:
        csv.writer(lines, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)


#: The most tables, and columns of a table.
MOST = 1_000_000


def read_schema(fetch: Fetch, key: str, label: str | None) -> tuple[DatabaseSchema, dict[str, NodeLabel]]:
    """Read tables, their properties and the tables that they join.

    Args:
        fetch: Runs a query.
        key: The property that holds keys. Tables without it use their primary key.
        label: The property that holds the label of an entity.

    Returns:
        The schema, and the node labels by the id of their table, as text.
    """

    def read(query: str) -> Sequence[Sequence[Any]]:
        return fetch(query, {}, MOST, TIMEOUT).rows

    tables: dict[str, NodeLabel] = {}
    relations = []
    for id, name, kind, comment in read("CALL show_tables() RETURN id, name, type, comment ORDER BY name"):
        columns = read(f"CALL table_info({quoted(name)}) RETURN *")
        properties = {column[1]: column[2] for column in columns}
        if kind == "NODE":
            primary = next(column[1] for column in columns if column[4])
            tables[str(id)] = NodeLabel(name, key if key in properties else primary, properties)
        elif kind == "REL":
            ends = read(f"CALL show_connection({quoted(name)}) RETURN *")
            pairs = tuple(sorted((row[0], row[1]) for row in ends))
            relations.append(RelationType(name, pairs, properties, _relation_in(comment)))
    typed = [table for table in tables.values() if table.properties.get("types") == "STRING[]"]
    described = descriptions_in(tables.values(), label, ("STRING[]",))
    schema = DatabaseSchema(tuple(tables.values()), tuple(relations), *described, type_labels=_types(typed, read))
    return schema, tables


def _types(typed: Sequence[NodeLabel], read: Callable[[str], Sequence[Sequence[Any]]]) -> tuple[str, ...]:
    """Return the types of entities, sorted.

    None are returned if several tables have types, since a type would not say which table.
    """
    if len(typed) != 1:
        return ()
    rows = read(f"MATCH (n:{backticked(typed[0].name)}) UNWIND n.types AS type RETURN DISTINCT type ORDER BY type")
    return tuple(type for (type,) in rows)


def _relation_in(comment: str) -> str:
    """Return the relation that `load_graph` wrote into the comment of a table.

    It is "" if it is the table's name.
    """
    try:
        return str(json.loads(comment)["relation"])
    except (ValueError, KeyError, TypeError):
        return ""


_LOGGER = logging.getLogger(__name__)

#: How much memory the queries of one process may take, and the least that can be allowed, in bytes.
MAX_MEMORY, LEAST_MEMORY = 1 << 30, 1 << 26


@named_arguments
class LadybugExecutor(DatabaseExecutor):
    """Runs queries in a LadybugDB database file.

    A process of its own opens the file read-only.

    The process is started once and kept. Whatever a query does to it, the host lives: a query that takes too long or
    too much memory, or ends the process, fails with an error of its own, and the next query gets another process.

    Queries of up to four threads run side by side, each in a process of its own. Further queries wait. A fork of the
    host starts processes of its own. Ctrl-C, `cancel()` and the cancellation of an async call stop the query.

    The limits of time hold on every system. Memory is limited by the system on Linux, for the process as a whole. On
    other systems, only LadybugDB's own limit holds, for its pages and intermediate results.

    A pickle opens the file again. If `from_graph` made the database for this executor alone, the pickle holds the
    graph, and a new database is made of it.

    If all entities have one label, such as in a database of `from_graph`, a query may name their types like labels: see
    `types_as_conditions`.

    Args:
        path: The file of the database.
        key: The property that holds an entity's key. Node tables without that property use their primary key.
        label: The property that holds the label of an entity, if there is one.
        max_memory: The most bytes that a query may take, 64 MiB or more: one half for pages and intermediate results,
            the other for all else. None for no limit but 80 % of the machine's memory for pages.

    Raises:
        InvalidArgumentError: If `max_memory` is too little.
        DatabaseUnavailableError: If there is no database, or it cannot be opened.

    Example:
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed by", "Spike Jonze")])
        >>> with LadybugExecutor.from_graph(graph) as executor:
        ...     rows = executor.run("MATCH (film)-[:`directed by`]->(person) RETURN person.key")
        >>> rows.columns, rows.rows
        (('person.key',), (('Spike Jonze',),))
    """

    # Of a database for this executor alone: the graph that it was made from, and the folder that a process removes if
    # it finds its host gone.
    dialect = "ladybug"
    _graph: KnowledgeGraph | None = None
    _temporary: str = ""

    def __init__(
        self, path: str | Path, *, key: str = "key", label: str | None = "label", max_memory: int | None = MAX_MEMORY
    ) -> None:
        """Open the database."""
        _check_memory(max_memory)
        self.path = path = Path(path)
        self._key, self._label, self._max_memory = key, label, max_memory
        self._tables: Mapping[str, NodeLabel] = {}
        self._removal: weakref.finalize[..., Any] | None = None
        if not checked_path(path).is_file():
            what = "is a folder, not the file of a database" if path.is_dir() else "is not there"
            raise DatabaseUnavailableError(
                f"LadybugExecutor: {str(path)!r} {what}.",
                hint_python="Make one: LadybugExecutor.from_graph(graph, path).",
                hint_shell="Name the file of a database.",
            )
        self._pool = SessionPool(Opening(path.absolute(), max_memory, self._temporary))

    @classmethod
    def from_graph(
        cls,
        graph: KnowledgeGraph,
        path: str | Path | None = None,
        *,
        max_memory: int | None = MAX_MEMORY,
        progress: bool = False,
    ) -> Self:
        """Write a graph to a new database and open it.

        `load_graph` describes the form of the database.

        The database does not hold datatypes of literals, sources of facts, ids of relations, text relations and
        prefixes. If a graph with some of them goes into a file, a warning is logged.

        Cost: 6 s and 11 MB for 43,000 entities and 134,000 triples, and 20 ms more for each relation.

        Args:
            graph: The graph.
            path: The file to write. It appears once it is complete. None for a database that is removed when the
                executor is closed or the program ends, in whatever way.
            max_memory: As for the class. The loading takes as much memory as it needs.
            progress: Whether to show a progress bar on stderr, with a step for each relation.

        Raises:
            InvalidArgumentError: If the file exists, if `max_memory` is too little, or if a graph of more than
                `MAX_TEMPORARY` triples would go into a database that is removed again.
            DatabaseUnavailableError: If it cannot be written.
        """
        _check_memory(max_memory)
        if path is not None and mode_of(path, FileWriteError) is not None:
            raise InvalidArgumentError(
                f"LadybugExecutor.from_graph: {str(path)!r} exists. Open it by LadybugExecutor(path), or remove it."
            )
        if path is None and len(graph) > MAX_TEMPORARY:
            raise InvalidArgumentError(
                f"LadybugExecutor.from_graph: a database of {len(graph):,} triples would be made again in each "
                f"process, about {len(graph) / TRIPLES_A_MINUTE:.0f} minutes each time; at most {MAX_TEMPORARY:,} are.",
                hint_python="Make it once, LadybugExecutor.from_graph(graph, path), and give executor=.",
                hint_shell="Make it once: --database FILE",
            )
        with ExitStack() as on_error:
            try:
                folder = Path(tempfile.mkdtemp(prefix=".kg-retrievers-", dir=path and Path(path).parent)).absolute()
            except OSError as cause:
                raise DatabaseUnavailableError(
                    f"LadybugExecutor.from_graph: cannot write to {str(path)!r} ({cause}). Name a file in a folder."
                ) from cause
            on_error.callback(shutil.rmtree, folder, ignore_errors=True)
            file = folder / "graph.lbdb"
            write_database(graph, file, progress=progress)
            if path is not None:
                if lost := lost_parts(graph):
                    _LOGGER.warning("LadybugExecutor.from_graph: %s does not hold %s.", path, ", ".join(lost))
                os.replace(file, path)
                return cls(path, max_memory=max_memory)
            executor = cls.__new__(cls)
            executor._graph, executor._temporary = graph, str(folder)
            cls.__init__(executor, file, max_memory=max_memory)
            executor._removal = weakref.finalize(executor, _remove, folder, os.getpid())
            on_error.pop_all()
        return executor

    def __repr__(self) -> str:
        """The file of the database."""
        return f"LadybugExecutor({str(self.path)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the file of the database, or the graph of a temporary one."""
        if self._graph is not None:
            return partial(type(self).from_graph, max_memory=self._max_memory), (self._graph,)
        options: dict[str, Any] = {"key": self._key, "label": self._label, "max_memory": self._max_memory}
        return partial(type(self), **options), (self.path.absolute(),)

    def cancel(self) -> None:
        """Stop the queries that run now, from any thread: each fails with a `DatabaseCancelledError`."""
        self._pool.stop("cancelled")

    def close(self) -> None:
        """Stop running queries and close the database.

        A database without a file of its own is removed.
        """
        self._pool.close()
        if self._removal is not None:
            self._removal()

    def _run(self, query: str, parameters: Mapping[str, Any], limit: int, timeout: float) -> Rows:
        return super()._run(types_as_conditions(query, self.schema()), parameters, limit, timeout)

    def _fetch(self, query: str, parameters: dict[str, Any], most: int, timeout: float) -> Fetched:
        with self._within(timeout, "run"):
            try:
                with self._pool.session() as session:
                    columns, are_stored, rows = session.execute(query, parameters, most)
            except SessionError as error:
                if error.failure == "interrupted":
                    check_deadline()  # its error names the limit that came first
                raise self._error(error, query, timeout) from error
        try:
            if any(are_stored):
                pairs = (zip(row, are_stored, strict=True) for row in rows)
                rows = [[_stored(value) if is_stored else value for value, is_stored in row] for row in pairs]
        except (KeyError, TypeError, AttributeError, RecursionError) as cause:
            raise self._error(SessionError("crashed", "it answered nodes that cannot be read"), query, 0) from cause
        return Fetched(columns, rows)

    def _error(self, error: SessionError, query: str, timeout: float) -> Exception:
        reason, who = error.reason, "LadybugExecutor"
        match error.failure:
            case "closed":
                return DatabaseUnavailableError(f"{self!r} was closed while it ran a query. Open it again.")
            case "cancelled":
                return DatabaseCancelledError(f"{who}: the query was cancelled and stopped.")
            case "interrupted":
                return self._too_long(timeout)
            case "memory":
                told = f"{who}: the query needs more memory than it may take ({reason}); it was: {query:.1000}"
                hints = {"hint_python": "Make it smaller, or raise max_memory.", "hint_shell": "Make it smaller."}
                return DatabaseMemoryError(told, query, reason, **hints)
            case "crashed":
                told = f"{who}: the query took the database down ({reason}); nothing was lost, and the next query can "
                told += f"be run. Write it in another way; it was: {query:.1000}"
                return DatabaseCrashError(told, query, f"The query took the database down ({reason}).")
        told = f"{who}: LadybugDB refused the query: {reason} Correct the query; it was: {query}"
        return DatabaseQueryError(told, query, reason)

    def _find_nodes(self, ids: list[Hashable]) -> list[StoredNode]:
        schema = self.schema()
        found: list[StoredNode] = []
        offsets: dict[str, list[int]] = {}
        for table, offset in (str(id).split(":") for id in ids):
            offsets.setdefault(table, []).append(int(offset))
        for table, wanted in offsets.items():
            label = self._tables[table]
            name_property = schema.label if schema.label and schema.label in label.properties else label.key
            match = f"MATCH (n:{backticked(label.name)}) WHERE offset(id(n)) IN $offsets"
            query = f"{match} RETURN offset(id(n)), n.{backticked(label.key)}, n.{backticked(name_property)}"
            for offset, key, name in self._fetch(query, {"offsets": wanted}, len(wanted), TIMEOUT).rows:
                found.append(StoredNode(f"{table}:{offset}", (label.name,), {name_property: name, label.key: key}))
        return found

    def _read_schema(self) -> DatabaseSchema:
        schema, self._tables = read_schema(self._fetch, self._key, self._label)
        return schema


def _check_memory(max_memory: int | None) -> None:
    if max_memory is not None and max_memory < LEAST_MEMORY:
        raise InvalidArgumentError(
            f"LadybugExecutor: max_memory is {max_memory}. Wanted {LEAST_MEMORY} bytes or more, or None."
        )


def _remove(folder: Path, owner: int) -> None:
    """Remove a folder, unless this is a fork of the owning process."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _stored(value: Any) -> Any:
    if isinstance(value, list):
        return [_stored(part) for part in value]
    if not isinstance(value, dict):
        return value
    if "_RELS" in value:  # a path, or the value of a variable on a relationship of several hops: no nodes at its ends
        nodes, relationships = _stored(value["_NODES"]), _stored(value["_RELS"])
        return StoredPath(tuple(nodes), tuple(relationships)) if len(nodes) > len(relationships) else relationships
    properties = {name: part for name, part in value.items() if name[:1] != "_" and part is not None}
    if "_SRC" in value:
        return StoredRelationship(value["_LABEL"], _id(value["_SRC"]), _id(value["_DST"]), properties)
    return StoredNode(_id(value["_ID"]), (value["_LABEL"],), properties)


def _id(value: dict[str, int]) -> str:
    return f"{value['table']}:{value['offset']}"


# --- types that stand as labels ---

#: How the signs between labels are written as conditions. `%` is any label.
_SIGNS = {"|": "OR", "&": "AND", ":": "AND", "!": "NOT", "%": "TRUE"}


def types_as_conditions(query: str, schema: DatabaseSchema) -> str:
    """Return a query with conditions in place of labels that are types.

    Each condition is on the types of a node.

    A label that the database has stays. A label that is neither makes the database refuse the query.

    Args:
        query: The query.
        schema: Its `type_labels` are the types that may stand as labels.

    Raises:
        CypherSafetyError: If there are types, and the query cannot be read.

    Example:
        >>> from kg_retrievers.database.schema import NodeLabel
        >>> entity = NodeLabel("Entity", "key", {"key": "STRING", "types": "STRING[]"})
        >>> schema = DatabaseSchema((entity,), (), types="types", type_labels=("Film",))
        >>> types_as_conditions("MATCH (f:Film)-[r]->(p) WHERE f.key = 'Her' OR p.key = 'Her' RETURN r", schema)
        "MATCH (f:`Entity`)-[r]->(p) WHERE (f.key = 'Her' OR p.key = 'Her') AND ('Film' IN f.types) RETURN r"
    """
    if len(query) > MAX_QUERY or not any(name in query for name in schema.type_labels):
        return query
    tokens, root = read(query)
    rewriting = _Rewriting(tokens, schema)
    rewriting.visit(root, [])
    return splice(query, rewriting.edits)


class _Rewriting:
    """Collects the changes of a query."""

    def __init__(self, tokens: Sequence[Token], schema: DatabaseSchema) -> None:
        self.tokens, self.edits = tokens, list[Edit]()
        self._types = schema.types or ""
        self._labels = {label.name for label in schema.labels}
        self._type_labels = {*schema.type_labels} - self._labels
        self._typed_label = next(label.name for label in schema.labels if self._types in label.properties)
        used = {token.name for token in tokens}
        self._free_names = (name for number in count() if (name := f"typed{number}") not in used)

    def visit(self, node: SyntaxNode, conditions: list[str]) -> None:
        """Change a part of the query.

        Conditions on its nodes join the conditions of the MATCH around it.
        """
        patterns = node.find("patterns")
        if patterns and node.rule in ("clause", "subquery"):
            self._visit_match(node, patterns)
        elif node.rule == "operand" and node.inside[0].rule == "node":
            self._visit_test(node)
        else:
            if node.rule == "node" and (labels := node.find("labels")) and self._names_type(labels):
                conditions.append(self._untyped(node, labels))
            elif node.rule == "value":
                self._change_test_of_label(node)
            for inner in node.inside:
                self.visit(inner, conditions)

    def _visit_match(self, node: SyntaxNode, patterns: SyntaxNode) -> None:
        """Change a MATCH, or patterns in a subquery.

        The conditions join its WHERE.
        """
        own: list[str] = []
        self.visit(patterns, own)
        condition, where = " AND ".join(own), node.find("where")
        if where is None:
            end = self._span(patterns)[1]
            self.edits.append((end, end, f" WHERE {condition}" if own else ""))
            return
        start, end = self._span(where.inside[0])[0], self._span(where)[1]
        self.edits.append((start, start, "(" if own else ""))
        self.visit(where, [])
        self.edits.append((end, end, f") AND {condition}" if own else ""))

    def _visit_test(self, node: SyntaxNode) -> None:
        """Change a pattern that stands as a condition.

        It can have conditions of its own in a subquery alone.
        """
        own: list[str] = []
        named = any(self._names_type(inner) for inner in node.walk() if inner.rule == "labels")
        start, end = self._span(node)
        self.edits.append((start, start, "EXISTS { MATCH " if named else ""))
        for inner in node.inside:
            self.visit(inner, own)
        self.edits.append((end, end, f" WHERE {' AND '.join(own)} }}" if named else ""))

    def _untyped(self, node: SyntaxNode, labels: SyntaxNode) -> str:
        """Put the label of all entities in place of types.

        Return the condition on the types.
        """
        named = variables_of(self.tokens, node)
        name = backticked(named[0]) if named and self.tokens[node.start + 1].kind == "quoted" else "".join(named)
        name = name or next(self._free_names)
        label = f"{'' if named else name}:{backticked(self._typed_label)}"
        self.edits.append((*self._span(labels), label))
        return self._condition(labels, name)

    def _change_test_of_label(self, node: SyntaxNode) -> None:
        """Change `film:Film` if it stands as a condition."""
        test, operand = node.find("is_a"), node.find("operand")
        if test and operand and operand.inside[0].rule == "variable" and self._names_type(test):
            start, end = self._span(operand)[0], self._span(test)[1]
            self.edits.append((start, end, self._condition(test, self.tokens[operand.start].text)))

    def _condition(self, labels: SyntaxNode, name: str) -> str:
        """Return the condition on the types of a node."""
        words = []
        for before, token in pairwise(self.tokens[labels.start : labels.end]):
            if token.name in self._type_labels and token.kind != "sign":
                words.append(f"{quoted(token.name)} IN {name}.{self._types}")
            elif token.kind != "sign":
                words.append("TRUE")
            elif not (token.text == ":" and before.text == "|"):  # "A|:B" is "A|B"
                words.append(_SIGNS.get(token.text, token.text))
        return f"({' '.join(words)})"

    def _names_type(self, labels: SyntaxNode) -> bool:
        """Whether all labels are known, and some are types."""
        names = {self.tokens[inner.start].name for inner in labels.walk() if inner.rule == "tag"}
        return bool(names & self._type_labels) and names <= self._type_labels | self._labels

    def _span(self, node: SyntaxNode) -> tuple[int, int]:
        return self.tokens[node.start].position, self.tokens[node.end - 1].end
