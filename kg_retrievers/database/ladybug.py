"""Runs Cypher in the embedded database LadybugDB (https://ladybugdb.com), the successor of Kuzu. Extra: `ladybug`."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Hashable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Self

from kg_retrievers.database.executor import RAISE_TIMEOUT, TIMEOUT, DatabaseExecutor, Fetched
from kg_retrievers.database.grammar import read
from kg_retrievers.database.ladybug_loading import load_graph
from kg_retrievers.database.ladybug_schema import read_schema
from kg_retrievers.database.schema import DatabaseSchema, Dialect, NodeLabel, backticked
from kg_retrievers.database.values import StoredNode, StoredPath, StoredRelationship, plain
from kg_retrievers.errors import (
    CypherSafetyError,
    DatabaseQueryError,
    DatabaseTimeoutError,
    DatabaseUnavailableError,
    InvalidArgumentError,
    MissingExtraError,
)
from kg_retrievers.graph import KnowledgeGraph

try:
    import ladybug
except ImportError as cause:
    raise MissingExtraError("LadybugExecutor", "ladybug") from cause

#: The most address space of one database, in bytes. (LadybugDB's own 8 TiB leave room for only 15 open databases.)
MAX_SIZE = 1 << 40

#: After so many queries a connection is replaced, since it keeps every statement that it ever prepared.
QUERIES_OF_A_CONNECTION = 1000

#: How many seconds beyond its timeout a query is waited for: LadybugDB ignores the timeout inside an expression, and
#: where three or more parts of a query have nothing to do with each other.
GRACE = 2.0

#: The most nodes whose keys and labels are kept; about 500 bytes each.
MAX_NODES = 200_000


class LadybugExecutor(DatabaseExecutor):
    """Runs queries in a LadybugDB database, a file that is opened read-only inside this process.

    Queries of several threads run side by side. A query that LadybugDB does not stop at its timeout is given up: its
    caller gets a `DatabaseTimeoutError`, but the query may keep a core busy until the process ends. Run untrusted
    queries in a process that you can end.

    A pickle opens the file again; where `from_graph` made the database for this executor alone, it holds the graph, of
    which a new database is made.

    Args:
        path: The file of the database.
        key: The property that holds an entity's key; the primary key of node tables without that property.
        label: The property that holds the label of an entity, where there is one.
        max_memory: The most bytes for pages and intermediate results; None for 80 % of the machine's memory.

    Raises:
        DatabaseUnavailableError: If there is no database, or it cannot be opened.

    Example:
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed by", "Spike Jonze")])
        >>> with LadybugExecutor.from_graph(graph) as executor:
        ...     rows = executor.run("MATCH (film)-[:`directed by`]->(person) RETURN person.key")
        >>> rows.columns, rows.rows
        (('person.key',), (('Spike Jonze',),))
    """

    def __init__(
        self, path: str | Path, *, key: str = "key", label: str | None = "label", max_memory: int | None = None
    ) -> None:
        """Open the database."""
        self.path = Path(path)
        self._key, self._label, self._max_memory = key, label, max_memory
        self._graph: KnowledgeGraph | None = None  # what the database was made from, if for this executor alone
        self._changed = threading.Condition()
        self._idle: list[_Connection] = []
        self._busy: list[_Connection] = []
        self._tables: Mapping[str, NodeLabel] = {}
        self._nodes: dict[Hashable, StoredNode] = {}
        self._at_close = ExitStack()
        if not self.path.is_file():
            what = "is a folder, not the file of a database" if self.path.is_dir() else "is not there"
            raise DatabaseUnavailableError(
                f"LadybugExecutor: {str(path)!r} {what}.",
                hint_python="Make one: LadybugExecutor.from_graph(graph, path).",
                hint_shell="Name the file of a database.",
            )
        self._database: ladybug.Database | None = _open(self.path, max_memory, read_only=True)

    @classmethod
    def from_graph(
        cls, graph: KnowledgeGraph, path: str | Path | None = None, *, max_memory: int | None = None
    ) -> Self:
        """Write a graph to a new database and open it; see `load_graph` for what it looks like.

        Cost: 6 s and 11 MB for 43,000 entities and 134,000 triples, and 20 ms more for each relation.

        Args:
            graph: The graph.
            path: The file to write; it appears once it is complete. None for a database that is removed when the
                executor is closed.
            max_memory: As for the class.

        Raises:
            InvalidArgumentError: If the file exists.
            DatabaseUnavailableError: If it cannot be written.
        """
        if path is not None and Path(path).exists():
            raise InvalidArgumentError(
                f"LadybugExecutor.from_graph: {str(path)!r} exists. Open it by LadybugExecutor(path), or remove it."
            )
        with ExitStack() as on_error:
            try:
                folder = Path(tempfile.mkdtemp(prefix=".kg-retrievers-", dir=path and Path(path).parent))
            except OSError as cause:
                raise DatabaseUnavailableError(
                    f"LadybugExecutor.from_graph: cannot write to {str(path)!r} ({cause}). Name a file in a folder."
                ) from cause
            on_error.callback(shutil.rmtree, folder, ignore_errors=True)
            file = folder / "graph.lbdb"
            with _open(file, max_memory, read_only=False) as database, ladybug.Connection(database) as connection:
                connection.execute("CALL threads=1")  # several would give relationships other ids each time
                load_graph(connection.execute, graph, folder)
                connection.execute("CHECKPOINT")
            if path is not None:
                os.replace(file, path)
            executor = cls(path or file, max_memory=max_memory)
            if path is None:
                on_error.pop_all()
                removed = weakref.finalize(executor, shutil.rmtree, folder, ignore_errors=True)  # or at the latest then
                executor._at_close.callback(removed)
                executor._graph = graph
        return executor

    @property
    def dialect(self) -> Dialect:
        """LadybugDB's own."""
        return "ladybug"

    def __repr__(self) -> str:
        """The file of the database."""
        return f"LadybugExecutor({str(self.path)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the file of the database, or the graph that it was made from for this executor alone."""
        if self._graph is not None:
            return partial(type(self).from_graph, max_memory=self._max_memory), (self._graph,)
        options: dict[str, Any] = {"key": self._key, "label": self._label, "max_memory": self._max_memory}
        return partial(type(self), **options), (self.path.absolute(),)

    def close(self) -> None:
        """Stop the queries that run and close the database; remove it if `from_graph` made it for this executor alone.

        If a query does not stop for `GRACE` seconds, the database stays open until the process ends.
        """
        until = time.monotonic() + GRACE
        with self._changed:
            database, self._database = self._database, None
            while self._busy and time.monotonic() < until:
                for connection in self._busy:
                    connection.interrupt()
                self._changed.wait(0.05)  # an interrupt is lost on a query that is still being compiled
            while self._idle:
                self._idle.pop().close()
            if self._busy:
                _LEFT_OPEN.append(database)
            elif database is not None:
                database.close()
        self._at_close.close()

    @contextmanager
    def _connection(self) -> Iterator[ladybug.Connection]:
        with self._changed:
            if self._database is None:
                raise DatabaseUnavailableError(f"{self!r} is closed. Open it again.")
            connection = self._idle.pop() if self._idle else _Connection(self._database)
            self._busy.append(connection)
        try:
            yield connection
        finally:
            connection.queries += 1
            with self._changed:
                self._busy.remove(connection)
                if connection.queries < QUERIES_OF_A_CONNECTION:
                    self._idle.append(connection)
                else:
                    connection.close()
                self._changed.notify_all()

    def _fetch(self, query: str, parameters: dict[str, Any], most: int, timeout: float) -> Fetched:
        """Run a query; one that may not stop runs in a thread of its own, which is abandoned at the timeout."""
        if _stops(query):
            return self._fetch_here(query, parameters, most, timeout)
        fetched: Future[Fetched] = Future()

        def work() -> None:
            try:
                fetched.set_result(self._fetch_here(query, parameters, most, timeout))
            except BaseException as error:
                fetched.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        if not wait([fetched], timeout + GRACE).done:
            raise self._error(_INTERRUPTED, query, timeout)
        return fetched.result()

    def _fetch_here(self, query: str, parameters: dict[str, Any], most: int, timeout: float) -> Fetched:
        with self._connection() as connection:
            connection.set_query_timeout(max(1, round(1000 * timeout)))
            try:
                result = connection.execute(query, parameters)
            except RuntimeError as cause:
                raise self._error(str(cause), query, timeout) from cause
            with result[-1] if isinstance(result, list) else result as only:
                columns, types = only.get_column_names(), only.get_column_data_types()
                are_stored = [kind.rstrip("[0123456789]") in _STORED for kind in types]
                rows = [
                    [_stored(value) if stored else plain(value) for value, stored in zip(row, are_stored, strict=True)]
                    for row in only.get_n(most)
                ]
        return Fetched(columns, rows)

    def _error(self, reason: str, query: str, timeout: float) -> Exception:
        if self._database is None:
            return DatabaseUnavailableError(f"{self!r} was closed while it ran a query. Open it again.")
        if reason == _INTERRUPTED:
            return DatabaseTimeoutError(
                f"LadybugExecutor: the query took longer than {timeout:g} s and was stopped.", **RAISE_TIMEOUT
            )
        message = f"LadybugExecutor: LadybugDB refused the query: {reason} Correct the query; it was: {query}"
        return DatabaseQueryError(message, query, reason)

    def _find_nodes(self, ids: list[Hashable]) -> list[StoredNode]:
        """Read keys and labels, of whole tables where these are small: LadybugDB has no index of nodes by id."""
        schema = self.schema()
        found = self._nodes if len(self._nodes) <= MAX_NODES else {}
        offsets: dict[str, list[int]] = {}
        for table, offset in (str(id).split(":") for id in ids if id not in found):
            offsets.setdefault(table, []).append(int(offset))
        for table, wanted in offsets.items():
            label = self._tables[table]
            name_property = schema.label if schema.label and schema.label in label.properties else label.key
            match = f"MATCH (n:{backticked(label.name)})"
            parameters: dict[str, Any] = {}
            most: int = self._fetch(f"{match} RETURN count(*)", {}, 1, TIMEOUT).rows[0][0]
            if len(found) + most > MAX_NODES:
                match, parameters, most = f"{match} WHERE offset(id(n)) IN $offsets", {"offsets": wanted}, len(wanted)
            query = f"{match} RETURN offset(id(n)), n.{backticked(label.key)}, n.{backticked(name_property)}"
            for offset, key, name in self._fetch(query, parameters, most, TIMEOUT).rows:
                id = f"{table}:{offset}"
                found[id] = StoredNode(id, (label.name,), {name_property: name, label.key: key})
        self._nodes = found
        return [found[id] for id in ids if id in found]

    def _read_schema(self) -> DatabaseSchema:
        schema, self._tables = read_schema(self._fetch, self._key, self._label)
        return schema


#: Databases in which a query did not stop; closing one would end the process.
_LEFT_OPEN: list[ladybug.Database | None] = []


class _Connection(ladybug.Connection):
    """A connection that counts its queries."""

    queries = 0


#: The message of LadybugDB for a query that was stopped.
_INTERRUPTED = "Interrupted."

#: What loops inside of expressions are written with: comprehensions and `reduce` have a bar.
_LOOPS = {"|", "ANY", "ALL", "NONE", "SINGLE"}


@lru_cache(maxsize=1024)
def _stops(query: str) -> bool:
    """Tell whether LadybugDB always stops a query at its timeout.

    It does if the query has at most two parts and no loops inside of expressions. Parts are patterns that have no
    variable in common, UNWIND, and what comes after a WITH.
    """
    try:
        tokens, root = read(query)
    except CypherSafetyError:  # one of this package's own, or EXPLAIN
        return False
    parts: list[set[str]] = []
    for node in root.walk():
        if node.rule == "path":
            named = [tokens[inner.start].name for inner in node.walk() if inner.rule == "variable"]
            names = {*named, f" {node.start}"}
            joined = [part for part in parts if part & names]
            parts = [part for part in parts if not part & names] + [names.union(*joined)]
    clauses = [tokens[node.start].word for node in root.walk() if node.rule == "clause"]
    more = clauses.count("UNWIND") + clauses.count("WITH")
    return len(parts) + more <= 2 and not any(token.word in _LOOPS for token in tokens)


#: The types of columns that hold nodes, relationships and paths.
_STORED = {"NODE", "REL", "RECURSIVE_REL"}


def _stored(value: Any) -> Any:
    if isinstance(value, list):
        return [_stored(part) for part in value]
    if not isinstance(value, dict):
        return value
    if "_RELS" in value:  # a path, or the value of a variable on a relationship of several hops: no nodes at its ends
        nodes, relationships = _stored(value["_NODES"]), _stored(value["_RELS"])
        return StoredPath(tuple(nodes), tuple(relationships)) if len(nodes) > len(relationships) else relationships
    properties = {name: plain(part) for name, part in value.items() if name[0] != "_" and part is not None}
    if "_SRC" in value:
        return StoredRelationship(value["_LABEL"], _id(value["_SRC"]), _id(value["_DST"]), properties)
    return StoredNode(_id(value["_ID"]), (value["_LABEL"],), properties)


def _id(value: dict[str, int]) -> str:
    return f"{value['table']}:{value['offset']}"


def _open(path: Path, max_memory: int | None, *, read_only: bool) -> ladybug.Database:
    try:
        return ladybug.Database(
            path,
            buffer_pool_size=max_memory or 0,
            max_db_size=MAX_SIZE,
            read_only=read_only,
            auto_checkpoint=False,  # while loading, one at the end is ten times faster
        )
    except RuntimeError as cause:
        raise DatabaseUnavailableError(
            f"LadybugExecutor: {str(path)!r} cannot be opened: {cause} Close it where it is written, or make it again."
        ) from cause
