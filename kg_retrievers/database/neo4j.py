"""Runs Cypher in Neo4j, and in other databases that speak its protocol Bolt. Extra: `neo4j`."""

from __future__ import annotations

import asyncio
import logging
import threading
import weakref
from collections.abc import Coroutine, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent import futures
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from kg_retrievers.database.executor import DatabaseExecutor, Fetch, Fetched
from kg_retrievers.database.login import address_in, credentials
from kg_retrievers.database.plain_values import plain
from kg_retrievers.database.schema import DatabaseSchema, NodeLabel, RelationType, backticked, descriptions_in, no_keys
from kg_retrievers.database.values import StoredNode, StoredPath, StoredRelationship
from kg_retrievers.deadline import await_foreign_function, wait_for
from kg_retrievers.errors import (
    CypherSafetyError,
    DatabaseLoginError,
    DatabaseQueryError,
    DatabaseUnavailableError,
    InvalidArgumentError,
    KGRetrieversError,
    MissingExtraError,
    named_arguments,
)
from kg_retrievers.graph.parts import TIMEOUT
from kg_retrievers.graph.readers.frameworks.attributes import VECTOR_SIZE
from kg_retrievers.redaction import hide_secrets

try:
    import neo4j
    from neo4j import exceptions, graph
except ImportError as cause:
    raise MissingExtraError("Neo4jExecutor", "neo4j") from cause

_LOGGER = logging.getLogger(__name__)

Result = TypeVar("Result")

#: How many rows come in one message.
FETCH_SIZE = 1000

#: How many seconds the database has, after the timeout, to say itself that it stopped the query.
GRACE = 0.5

#: How many seconds pass before a query is run once more, whose connection was lost.
PAUSE = 0.5

#: How many seconds the driver has to close its connections.
CLOSING = 2.0

#: How many queries are known not to need another EXPLAIN.
MAX_EXPLAINED = 10_000

#: The properties that hold keys, the first that a label has, if nobody names one.
KEYS = ("key", "id", "name", "title")

#: How many nodes of a label and relationships of a type are looked at.
SAMPLE = 100

#: How many nodes or relationships are looked at for labels and types if the database has no procedure for them.
WIDE_SAMPLE = 100_000

#: The most names of labels, and of types.
MOST = 100_000

#: Returns relationships by their types and the labels of their ends: the properties of some, and their number.
_TOLD = (
    "RETURN type(r) AS name, labels(a) AS heads, labels(b) AS tails, "
    f"collect(properties(r))[..{SAMPLE}] AS properties, count(*) AS found"
)

#: The types of values, by the names of their classes in Python and in the driver, in small letters.
_TYPES = {"bool": "BOOLEAN", "int": "INTEGER", "str": "STRING", "bytearray": "BYTES", "dict": "MAP"}
_TYPES |= {
    name: name.upper() for name in ["float", "bytes", "list", "date", "time", "datetime", "duration", "point", "vector"]
}


@named_arguments
class Neo4jExecutor(DatabaseExecutor):
    """Runs queries in a Neo4j database, in sessions that may only read.

    Each query has a timeout of its own.

    User name and password are read from the environment variables NEO4J_USERNAME and NEO4J_PASSWORD. Nothing is sent
    before the first query. A pickle holds the address, never a password: the process that loads it reads them from its
    own environment.

    Args:
        uri: The address of the database, as in "neo4j://localhost:7687" or "bolt+s://example.org".
        driver: The driver of neo4j that connects to it, instead of an address. Its maker closes it. An executor made
            with it cannot be pickled.
        database: The name of the database. None for the server's default one.
        key: The property that holds an entity's key, or such a property for each node label, "key" by default. None
            for the first of "key", "id", "name" and "title" that the nodes of a label have. Nodes without it are left
            out.
        label: The property that holds the label of an entity, if there is one.
        auth: The driver's `neo4j.Auth`, such as `neo4j.bearer_auth(token)`, instead of name and password. An executor
            made with it cannot be pickled.
        explain: Whether the database is asked, by EXPLAIN, whether a query only reads, before it is run for the first
            time. False for databases that cannot tell, such as ArcadeDB. Then only the check of this package, and a
            user without the right to write, keep queries from writing.
        connection_timeout: How many seconds it may take to connect.

    Raises:
        InvalidArgumentError: If the URI cannot be read or holds a password, if only one of name and password is set,
            or, from `pickle`, if `auth` or `driver` was given.
    """

    dialect = "neo4j"
    _grace = GRACE

    def __init__(
        self,
        uri: str = "",
        *,
        driver: neo4j.Driver | None = None,
        database: str | None = None,
        key: str | Mapping[str, str] | None = "key",
        label: str | None = "label",
        auth: neo4j.Auth | None = None,
        explain: bool = True,
        connection_timeout: float = 10.0,
    ) -> None:
        """Prepare the driver."""
        self._made_with = {name: value for name, value in locals().items() if name not in ("self", "auth", "driver")}
        self._shared = driver
        self.address = address_in(uri) if driver is None else "the database of the driver"
        self._database, self._key, self._label, self._explain = database, key, label, explain
        self._takes_login = "auth" if auth is not None else "driver" if driver is not None else ""
        self._explained: set[str] = set()
        self._closed, self._closing = False, threading.Lock()
        # The driver's asyncio side: unlike the synchronous one, it can give up on a server that does not answer.
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=_run, args=(self._loop,), name="Neo4jExecutor", daemon=True).start()
        self._stop = weakref.finalize(self, self._loop.call_soon_threadsafe, self._loop.stop)
        if driver is not None:
            return
        try:
            self._driver = neo4j.AsyncGraphDatabase.driver(
                uri,
                auth=credentials("Neo4jExecutor", "NEO4J") if auth is None else auth,
                connection_timeout=connection_timeout,
                connection_acquisition_timeout=connection_timeout,
            )
        except (exceptions.ConfigurationError, ValueError) as cause:
            self._stop()
            hide_secrets(cause)
            raise InvalidArgumentError(f"Neo4jExecutor: {self.address} cannot be used: {cause}") from cause

    def __repr__(self) -> str:
        """Show the address of the database, without name and password."""
        return f"Neo4jExecutor({self.address!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the address and the options.

        Name and password are read from the environment again.
        """
        if self._takes_login:
            raise InvalidArgumentError(
                f"{self!r} was made with {self._takes_login}=, which is not written into a pickle.",
                hint_python="Set NEO4J_USERNAME and NEO4J_PASSWORD in both processes and leave it out, or make the "
                "executor in the other process.",
            )
        return partial(type(self), **self._made_with), ()

    def close(self) -> None:
        """Close the connections, and cancel running queries."""
        with self._closing:
            closed, self._closed = self._closed, True
        if not closed:
            closing = asyncio.run_coroutine_threadsafe(self._close_soon(), self._loop)
            futures.wait([closing], CLOSING)  # a server's garbage can keep the driver busy without end
            self._stop()

    async def _close_soon(self) -> None:
        running = asyncio.all_tasks() - {asyncio.current_task()}
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        if self._shared is None:
            await self._driver.close()
        await self._loop.shutdown_asyncgens()

    def _wait(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine on the driver's thread, and wait for it on this one."""
        with self._closing:  # so that the loop runs until all its work is done or cancelled
            if self._closed:
                work.close()
                raise DatabaseUnavailableError(f"{self!r} is closed. Make another one.")
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return wait_for(future)
        except CancelledError:
            raise DatabaseUnavailableError(f"{self!r} was closed while it ran a query. Make another one.") from None
        except BaseException:
            future.cancel()  # as by Ctrl-C
            raise

    def _fetch(self, query: str, parameters: dict[str, Any], most: int, timeout: float) -> Fetched:
        columns, rows = self._wait(self._fetch_soon(query, parameters, most, timeout, self._explain))
        with self._typed_errors():
            return Fetched(columns, _stored(rows))

    def _rows(self, query: str, parameters: dict[str, Any], most: int, timeout: float) -> list[list[Any]]:
        with self._typed_errors():
            rows: list[list[Any]] = plain(self._read(query, parameters, most, timeout).rows)
            return rows

    def _read(self, query: str, parameters: dict[str, Any], most: int, timeout: float) -> Fetched:
        """Run a query of this package's own, with values as the driver gives them."""
        return self._wait(self._fetch_soon(query, parameters, most, timeout, False))

    async def _fetch_soon(
        self, query: str, parameters: dict[str, Any], most: int, timeout: float, explain: bool
    ) -> Fetched:
        """Run a query.

        If the connection was lost, it runs once more after a pause, since it only reads.
        """
        try:
            async with asyncio.timeout(timeout + GRACE):
                try:
                    return await self._fetch_once(query, parameters, most, timeout, explain)
                except (exceptions.ServiceUnavailable, exceptions.SessionExpired) as lost:
                    if timeout <= PAUSE:
                        raise
                    _LOGGER.info("%r: the connection was lost (%s); the query is run once more.", self, lost)
                    await asyncio.sleep(PAUSE)
                    return await self._fetch_once(query, parameters, most, timeout, explain)
        except KGRetrieversError:
            raise
        except Exception as cause:  # the driver raises Python's own errors where a server breaks the protocol
            hide_secrets(cause)
            raise self._error(cause, query, timeout) from cause

    async def _fetch_once(
        self, query: str, parameters: dict[str, Any], most: int, timeout: float, explain: bool
    ) -> Fetched:
        options: dict[str, Any] = {"database": self._database, "default_access_mode": neo4j.READ_ACCESS}
        options["fetch_size"] = min(most, FETCH_SIZE)
        if self._shared is not None:
            return await await_foreign_function(self._fetch_shared, options, query, parameters, most, timeout, explain)
        async with self._driver.session(**options) as session:
            if explain and query not in self._explained:
                explained = await session.run(neo4j.Query(f"EXPLAIN {query}", timeout=timeout), parameters)
                self._check_kind(query, await explained.consume())
            result = await session.run(neo4j.Query(query, timeout=timeout), parameters)
            columns = result.keys()
            records = await result.fetch(most)
            await result.consume()
            return Fetched(columns, [record.values() for record in records])

    def _fetch_shared(
        self, options: dict[str, Any], query: str, parameters: dict[str, Any], most: int, timeout: float, explain: bool
    ) -> Fetched:
        """Run a query by the driver of somebody else, on a thread of its own."""
        assert self._shared is not None
        with self._shared.session(**options) as session:
            if explain and query not in self._explained:
                explained = session.run(neo4j.Query(f"EXPLAIN {query}", timeout=timeout), parameters)
                self._check_kind(query, explained.consume())
            result = session.run(neo4j.Query(query, timeout=timeout), parameters)
            records = result.fetch(most)
            result.consume()
            return Fetched(result.keys(), [record.values() for record in records])

    def _check_kind(self, query: str, summary: neo4j.ResultSummary) -> None:
        """Refuse a query if the database does not say that it only reads."""
        if summary.query_type != "r":
            raise CypherSafetyError(
                f"Neo4jExecutor: the database says that the query is of type {summary.query_type!r}, not 'r' for "
                "reading. Write one that only reads.",
                query[:80],
                0,
                hint_python="(If the database says so of every query, make the executor with explain=False.)",
                hint_shell="(If the database says so of every query, as ArcadeDB does, add --read explain=false.)",
            )
        if len(self._explained) >= MAX_EXPLAINED:
            self._explained.clear()
        self._explained.add(query)

    def _error(self, cause: Exception, query: str, timeout: float) -> Exception:
        code = (cause.code or "") if isinstance(cause, exceptions.Neo4jError) else ""
        if isinstance(cause, TimeoutError) or "TransactionTimedOut" in code or code.endswith(".Terminated"):
            return self._too_long(timeout)
        if code.startswith("Neo.ClientError.Security.") or isinstance(cause, exceptions.AuthError):
            login = "Set the environment variables NEO4J_USERNAME and NEO4J_PASSWORD to a user who may read there"
            return DatabaseLoginError(
                f"Neo4jExecutor: {self.address} does not let this user in ({code}).",
                hint_python=f"{login}, before the executor is made.",
                hint_shell=f"{login}.",
            )
        refused = code.startswith(("Neo.ClientError.", "Neo.DatabaseError.")) and ".Database." not in code
        reason = (cause.message or code) if isinstance(cause, exceptions.Neo4jError) else str(cause)
        if refused:
            told = f"Neo4jExecutor: {self.address} refused the query: {reason} Correct the query; it was: {query}"
            return DatabaseQueryError(told, query, reason)
        if code.startswith("Neo.TransientError."):
            return DatabaseUnavailableError(
                f"Neo4jExecutor: {self.address} cannot run the query now: {reason} Try again, or make the query "
                "smaller."
            )
        if not isinstance(cause, exceptions.Neo4jError | exceptions.DriverError | OSError):
            return self._no_bolt(cause)
        return DatabaseUnavailableError(
            f"Neo4jExecutor: {self.address} does not answer: {cause} Is it running, and is this its address and its "
            "database's name?"
        )

    def _no_bolt(self, cause: Exception) -> DatabaseUnavailableError:
        return DatabaseUnavailableError(
            f"Neo4jExecutor: {self.address} does not speak Bolt as its driver expects it ({type(cause).__name__}: "
            f"{cause!s:.200}). Is this the address of a database?"
        )

    @contextmanager
    def _typed_errors(self) -> Iterator[None]:
        """Raise a typed error if data from the database has an unexpected form."""
        try:
            yield
        except KGRetrieversError:
            raise
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as cause:
            hide_secrets(cause)
            raise self._no_bolt(cause) from cause

    def _find_nodes(self, ids: list[Hashable]) -> list[StoredNode]:
        schema = self.schema()
        names = [*schema.keys, *([schema.label] if schema.label else [])]
        properties = ", ".join(f"n.{backticked(name)}" for name in names)
        query = f"MATCH (n) WHERE elementId(n) IN $ids RETURN elementId(n), labels(n), {properties}"
        rows = self._rows(query, {"ids": ids}, len(ids), TIMEOUT)
        with self._typed_errors():
            return [
                StoredNode(id, tuple(sorted(labels)), dict(zip(names, rest, strict=True))) for id, labels, *rest in rows
            ]

    def _read_schema(self) -> DatabaseSchema:
        with self._typed_errors():
            return read_schema(self._read, self._key, self._label)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def _stored(value: Any) -> Any:
    match value:
        case graph.Node():
            return StoredNode(value.element_id, tuple(sorted(value.labels)), plain(dict(value)))
        case graph.Relationship():
            start, end = value.nodes
            return StoredRelationship(value.type, _element_id(start), _element_id(end), plain(dict(value)))
        case graph.Path():
            return StoredPath(tuple(map(_stored, value.nodes)), tuple(map(_stored, value.relationships)))
        case list():
            return [_stored(part) for part in value]
        case dict():
            return {name: _stored(part) for name, part in value.items()}
        case _:
            return plain(value)


def _element_id(node: graph.Node | None) -> str:
    return node.element_id if node is not None else ""


def read_schema(fetch: Fetch, key: str | Mapping[str, str] | None, label: str | None) -> DatabaseSchema:
    """Read labels, types, their properties and the labels that types join.

    Properties are the properties of the first `SAMPLE` nodes of each label. Ends and properties of relationships come
    from the first `WIDE_SAMPLE` relationships. If these lack a type, they come from the first `SAMPLE` of the type. The
    procedures that return all of them (`db.schema.nodeTypeProperties`) read the whole graph for it.

    Args:
        fetch: Runs a query, and returns values as the driver does.
        key: The property that holds keys, that property by label ("key" for other labels), or None for the first of
            `KEYS` that a label has.
        label: The property that holds the label of an entity.

    Raises:
        InvalidArgumentError: If there are nodes, and no label has its key.
    """
    labels, sampled = [], False
    for name in _names(fetch, "CALL db.labels()", "MATCH (n) WITH n LIMIT $most UNWIND labels(n) AS name"):
        query = f"MATCH (n:{backticked(name)}) RETURN properties(n) LIMIT {SAMPLE}"
        rows = fetch(query, {}, SAMPLE, TIMEOUT).rows
        types = _types_of(row[0] for row in rows)
        if key is None:
            of_label = next((one for one in KEYS if one in types), KEYS[0])
        else:
            of_label = key if isinstance(key, str) else key.get(name, "key")
        if rows:  # Neo4j remembers labels and types of which nothing is left
            labels.append(NodeLabel(name, of_label, types))
        sampled |= len(rows) == SAMPLE
    if labels and not any(label.key in label.properties for label in labels):
        raise no_keys("Neo4jExecutor", labels)
    relations, more = _relations(fetch)
    sampled |= more
    described = descriptions_in(labels, label, ("LIST", "LIST<STRING>"))
    return DatabaseSchema(tuple(labels), tuple(relations), *described, sampled)


def _relations(fetch: Fetch) -> tuple[list[RelationType], bool]:
    """Return the types of relationships.

    Also return whether there may be more of their ends and properties.

    Types among the first relationships are read by one query, the others one by one. If no index finds the
    relationships of a type, each such query looks at all of the graph.
    """
    first = f"MATCH (a)-[r]->(b) WITH a, r, b LIMIT $most {_TOLD}"
    rows = list(fetch(first, {"most": WIDE_SAMPLE}, MOST, TIMEOUT).rows)
    more = sum(row[4] for row in rows) == WIDE_SAMPLE
    seen = {row[0] for row in rows}
    for name in _names(
        fetch, "CALL db.relationshipTypes()", "MATCH ()-[r]->() WITH r LIMIT $most WITH type(r) AS name"
    ):
        if name not in seen:
            query = f"MATCH (a)-[r:{backticked(name)}]->(b) WITH a, r, b LIMIT {SAMPLE} {_TOLD}"
            rows += fetch(query, {}, SAMPLE, TIMEOUT).rows
    by_name: dict[str, list[Sequence[Any]]] = {}
    for row in rows:
        by_name.setdefault(row[0], []).append(row)
    relations = [
        RelationType(name, _ends(of_type), _types_of(chain.from_iterable(row[3] for row in of_type)))
        for name, of_type in sorted(by_name.items())
    ]
    return relations, more or any(row[4] >= SAMPLE for row in rows)


def _ends(rows: Iterable[Sequence[Any]]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted({(head, tail) for _, heads, tails, *_ in rows for head in heads for tail in tails}))


def _names(fetch: Fetch, procedure: str, sample: str) -> list[str]:
    try:
        rows = fetch(procedure, {}, MOST, TIMEOUT).rows
    except DatabaseQueryError:  # another database, without this procedure
        rows = fetch(f"{sample} RETURN DISTINCT name", {"most": WIDE_SAMPLE}, MOST, TIMEOUT).rows
    return sorted(row[0] for row in rows)


def _types_of(samples: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    types: dict[str, str] = {}
    for properties in samples:
        for name, value in properties.items():
            type = _type_of(value)
            if types.get(name, "LIST") == "LIST":  # another value says more than an empty list
                types[name] = type
            elif type not in (types[name], "LIST"):
                types[name] = "ANY"
    return dict(sorted(types.items()))


def _type_of(value: Any) -> str:
    """Return the type of a value, like `valueType` in Cypher, without NOT NULL."""
    names = (kind.__name__.lower() for kind in type(value).__mro__)
    name = next((_TYPES[name] for name in names if name in _TYPES), "STRING")
    if name == "LIST" and len(value) > VECTOR_SIZE and all(isinstance(one, float) for one in value):
        return "VECTOR"
    if name == "LIST" and value:
        return f"LIST<{_type_of(value[0])}>"
    if name in ("TIME", "DATETIME"):
        return f"{'LOCAL' if value.tzinfo is None else 'ZONED'} {name}"
    return name
