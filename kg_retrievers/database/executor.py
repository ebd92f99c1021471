"""Runs Cypher queries that only read: the protocol, and what its implementations have in common."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Any, NamedTuple, Protocol

from kg_retrievers.database.graph_parts import GraphParts
from kg_retrievers.database.part_queries import PartQueries
from kg_retrievers.database.reading import read_graph
from kg_retrievers.database.safety import CheckedQuery, check_read_only, limited
from kg_retrievers.database.schema import DatabaseSchema, Dialect
from kg_retrievers.database.values import Rows, StoredNode, resolve
from kg_retrievers.errors import DatabaseQueryError, InvalidArgumentError
from kg_retrievers.graph import GraphBuilder
from kg_retrievers.graph.cache import Immutable
from kg_retrievers.graph.parts import PartReader

#: How many rows a query returns, and how many seconds it may take, by default.
LIMIT, TIMEOUT = 1000, 30.0

#: How each engine sorts by a column: LadybugDB refuses to sort by nodes, relationships, paths and lists.
SORT_KEYS: dict[Dialect, str] = {"ladybug": "CAST({} AS STRING)", "neo4j": "{}"}


class Executor(PartReader, Protocol):
    """Runs Cypher queries that only read, and reads parts of the graph. Safe to use from several threads."""

    @property
    def dialect(self) -> Dialect:
        """Which Cypher it understands."""

    def schema(self, *, refresh: bool = False) -> DatabaseSchema:
        """Return what the database held when this was first called, or what it holds now if `refresh`."""

    def run(
        self,
        query: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        limit: int = LIMIT,
        timeout: float = TIMEOUT,
    ) -> Rows:
        """Run a query that only reads.

        Args:
            query: The query. It is checked first, and sorted by its columns so that the rows are always the same.
            parameters: The values of its parameters.
            limit: How many rows are returned; 1 or more. One more is fetched, to know whether there are more.
            timeout: How many seconds it may take, above 0.

        Raises:
            CypherSafetyError: If the query may do more than read.
            InvalidArgumentError: If `limit`, `timeout` or a parameter is out of range or of another type.
            DatabaseQueryError: If the database refuses the query.
            StaleSchemaError: If the query names something that the schema has and the database has no longer.
            DatabaseMemoryError: If the query needs more memory than it may take.
            DatabaseCrashError: If the query ended the process of the database.
            DatabaseTimeoutError: If the query was stopped.
            DatabaseCancelledError: If its caller no longer waits for it.
            DatabaseLoginError: If the database does not accept the credentials.
            DatabaseUnavailableError: If the database cannot be reached.
        """

    def explain(self, query: str, parameters: Mapping[str, Any] | None = None, *, timeout: float = TIMEOUT) -> None:
        """Have the database compile a query, without running it; takes and raises what `run` does."""

    def read_graph(self, page_size: int) -> GraphBuilder:
        """Read the whole graph, `page_size` rows at a time; for `KnowledgeGraph.from_executor`."""

    def close(self) -> None:
        """Close the database. A closed executor cannot be used again."""


class Fetched(NamedTuple):
    """What came from a database: columns, and rows with nodes, relationships and paths in their stored forms."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


#: Runs a query: its text, its parameters, the most rows to fetch, the most seconds.
Fetch = Callable[[str, dict[str, Any], int, float], Fetched]


class DatabaseExecutor(GraphParts, Immutable, ABC):
    """Checks a query, has it run, and turns its rows into values by entity key.

    A copy, deep or not, is the executor itself: it is safe to share, and its connections cannot be copied. A pickle
    holds what another process needs to connect again.
    """

    _schema: DatabaseSchema | None = None

    @property
    @abstractmethod
    def dialect(self) -> Dialect:
        """Which Cypher it understands."""

    def schema(self, *, refresh: bool = False) -> DatabaseSchema:
        """Return what the database holds; see `Executor.schema`."""
        if self._schema is None or refresh:
            self._schema = self._read_schema()
        return self._schema

    def run(
        self,
        query: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        limit: int = LIMIT,
        timeout: float = TIMEOUT,
    ) -> Rows:
        """Run a query that only reads; see `Executor.run`. The timeout is that of all requests together."""
        if limit < 1:
            raise InvalidArgumentError(f"{type(self).__name__}.run: limit is {limit}. Ask for at least 1 row.")
        with self._within(timeout, "run"):
            return self._run(query, parameters, limit, timeout)

    def _run(self, query: str, parameters: Mapping[str, Any] | None, limit: int, timeout: float) -> Rows:
        bounded, used = self._bounded(query, parameters, limit)
        schema = self.schema()
        columns, stored = self._fetch(bounded.text, used, limit + 1, timeout)
        if bounded.columns is not None:
            columns = [name or of_engine for name, of_engine in zip_longest(bounded.columns, columns, fillvalue="")]
        try:
            rows, labels = resolve(stored[:limit], schema, self._find_nodes)
        except RecursionError as cause:
            reason = "It returns lists or maps that are nested too deep."
            who = type(self).__name__
            raise DatabaseQueryError(f"{who}.run: {reason} The query was: {query:.1000}", query, reason) from cause
        return Rows(tuple(columns), rows, len(stored) > limit, labels)

    def explain(self, query: str, parameters: Mapping[str, Any] | None = None, *, timeout: float = TIMEOUT) -> None:
        """Have the database compile a query, without running it; see `Executor.explain`."""
        with self._within(timeout, "explain"):
            bounded, used = self._bounded(query, parameters, LIMIT)
            self._compile(bounded.text, used, timeout)

    def _bounded(
        self, query: str, parameters: Mapping[str, Any] | None, limit: int
    ) -> tuple[CheckedQuery, dict[str, Any]]:
        """Return the query that is sent, and the parameters that it uses."""
        who = type(self).__name__
        values = {name: _parameter(who, name, value) for name, value in (parameters or {}).items()}
        counts = frozenset((name, value if isinstance(value, int) else None) for name, value in values.items())
        bounded = _checked(query, counts, limit, self.dialect)
        return bounded, {name: values[name] for name in bounded.parameters}

    def read_graph(self, page_size: int) -> GraphBuilder:
        """Read the whole graph, `page_size` rows at a time; for `KnowledgeGraph.from_executor`."""
        return read_graph(self.run, self.schema(), self.dialect, page_size)

    @abstractmethod
    def _read_schema(self) -> DatabaseSchema:
        """Read what the database holds."""

    @abstractmethod
    def _fetch(self, query: str, parameters: dict[str, Any], most: int, timeout: float) -> Fetched:
        """Run a checked query and fetch `most` rows of it at most."""

    def count_facts(self, *, timeout: float = TIMEOUT) -> int | None:
        """Return how many relationships there are, a number that the databases keep."""
        with self._within(timeout, "count_facts"):
            if not self.schema().relations:
                return 0
            rows = self._rows("MATCH ()-[r]->() RETURN count(r) AS facts", {}, 1, timeout)
            return int(rows[0][0])

    def _queries(self, timeout: float) -> PartQueries:
        def run(query: str, parameters: dict[str, Any], most: int) -> Sequence[Sequence[Any]]:
            return self._rows(query, parameters, most, timeout)

        return PartQueries(self.schema(), self.dialect, run)

    def _rows(self, query: str, parameters: dict[str, Any], most: int, timeout: float) -> Sequence[Sequence[Any]]:
        return self._fetch(query, parameters, most, timeout).rows

    def _compile(self, query: str, parameters: dict[str, Any], timeout: float) -> None:
        """Have a checked query compiled."""
        self._fetch(f"EXPLAIN {query}", parameters, 1, timeout)

    @abstractmethod
    def _find_nodes(self, ids: list[Hashable]) -> Iterable[StoredNode]:
        """Read nodes by the database's own ids."""


@lru_cache(maxsize=1024)  # reading a query takes as long as running it does
def _checked(query: str, parameters: frozenset[tuple[str, int | None]], limit: int, dialect: Dialect) -> CheckedQuery:
    """Return the query that is sent. This is the one call that checks whether a query only reads."""
    return limited(check_read_only(query, parameters=dict(parameters)), limit, sort_key=SORT_KEYS[dialect])


def _parameter(who: str, name: str, value: Any) -> Any:
    """Return the value of a parameter, if every database takes it and reads it as the same value."""
    match value:
        case _ if not isinstance(name, str):
            pass
        case None | bool() | float():
            return value
        case int() if -(2**63) <= value < 2**63:
            return value
        case str() if not _HALVES.search(value):
            return value
        case list() | tuple():
            if _are_alike(parts := [_parameter(who, name, part) for part in value]):
                return parts
        case Mapping() if all(isinstance(part, str) and not _HALVES.search(part) for part in value):
            # In one order, since LadybugDB takes the names from the last in a list and the values as they come.
            return {part: _parameter(who, name, value[part]) for part in sorted(value)}
    raise InvalidArgumentError(
        f"{who}.run: the parameter ${name} holds {value!r:.200}. Wanted a name that is a text, and None, a bool, "
        "number (integers of 64 bits) or text (without halves of surrogate pairs), or lists and dictionaries of "
        "these; in a list all of one kind, and dictionaries with the same names."
    )


#: What UTF-8 cannot write.
_HALVES = re.compile(r"[\ud800-\udfff]")

#: The kinds of values, of which a list holds one; None stands among all but lists and dictionaries.
_KINDS = (bool, int | float, str, list, dict, type(None))


def _are_alike(values: Sequence[Any]) -> bool:
    """Tell whether values can stand in one list: LadybugDB fails on others, or changes them silently."""
    kinds = {next(kind for kind in _KINDS if isinstance(value, kind)) for value in values}
    if not kinds & {list, dict}:
        return len(kinds - {type(None)}) <= 1
    if kinds == {list}:
        return _are_alike([part for value in values for part in value])
    if kinds != {dict} or len(set(map(tuple, values))) > 1:
        return False
    return all(map(_are_alike, zip(*map(dict.values, values), strict=True)))
