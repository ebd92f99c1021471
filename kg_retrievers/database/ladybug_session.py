"""Runs queries over one connection to LadybugDB, in a process of its own. Extra: `ladybug`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from kg_retrievers.database.plain_values import plain
from kg_retrievers.errors import DatabaseUnavailableError, MissingExtraError

try:
    import ladybug
except ImportError as cause:
    raise MissingExtraError("LadybugExecutor", "ladybug") from cause

#: The most address space of one database, in bytes. (LadybugDB's own 8 TiB leave room for only 15 open databases.)
MAX_SIZE = 1 << 40

#: After so many queries a connection is replaced, since it keeps every statement that it ever prepared: about 2 MB for
#: a query of several MATCH clauses.
QUERIES_OF_A_CONNECTION = 100

#: Why there is no answer to a query.
Failure = Literal["refused", "interrupted", "memory", "crashed", "closed", "cancelled", "unavailable"]

#: The types of columns that hold nodes, relationships and paths.
_STORED = {"NODE", "REL", "RECURSIVE_REL"}

#: What stands in LadybugDB's messages about memory.
_NO_MEMORY = ("std::bad_alloc", "Unable to allocate memory", "Cannot allocate memory")


class Answer(NamedTuple):
    """What came of a query.

    Args:
        columns: The names of the columns.
        stored: Whether a column holds nodes, relationships or paths.
        rows: The rows, as JSON-safe values.
    """

    columns: list[str]
    stored: list[bool]
    rows: list[list[Any]]


class SessionError(Exception):
    """A query has no answer: what kind of `failure` it is, and the database's own `reason`."""

    def __init__(self, failure: Failure, reason: str) -> None:
        """Keep both."""
        super().__init__(reason)
        self.failure: Failure = failure if failure in get_args(Failure) else "refused"
        self.reason = reason


def open_database(path: Path, pages: int | None, *, read_only: bool) -> ladybug.Database:
    """Open a database.

    Args:
        path: Its file.
        pages: The most bytes for pages and intermediate results; None for 80 % of the machine's memory.
        read_only: Whether it refuses to be written.

    Raises:
        SessionError: If it cannot be opened.
    """
    try:
        return ladybug.Database(
            path,
            buffer_pool_size=pages or 0,
            max_db_size=MAX_SIZE,
            read_only=read_only,
            auto_checkpoint=False,  # while loading, one at the end is ten times faster
        )
    except Exception as cause:  # of a damaged file LadybugDB reports all sorts of errors
        raise SessionError("unavailable", str(cause)) from cause


def cannot_open(shown: str, reason: str) -> DatabaseUnavailableError:
    """Return the error for a file that cannot be opened."""
    return DatabaseUnavailableError(
        f"LadybugExecutor: {shown} cannot be opened: {reason} Close it where it is written, or make it again."
    )


class LadybugSession:
    """Runs queries over a connection to an open database.

    Args:
        database: The database, which outlives this session.
    """

    def __init__(self, database: ladybug.Database) -> None:
        """Connect."""
        self._database = database
        self._connection = ladybug.Connection(database)
        self._queries = 0

    def execute(self, query: str, parameters: dict[str, Any], most: int, timeout: float | None) -> Answer:
        """Run a query, fetch `most` rows of it at most, and stop it after `timeout` seconds, if there are any.

        LadybugDB does not look at the time while it plans a query.

        Raises:
            SessionError: If there is no answer.
        """
        if self._queries == QUERIES_OF_A_CONNECTION:
            self._reconnect()
        self._queries += 1
        self._connection.set_query_timeout(0 if timeout is None else max(1, math.ceil(1000 * timeout)))
        try:
            return self._executed(query, parameters, most)
        except Exception as cause:  # such as a UnicodeDecodeError of text that LadybugDB cut inside a character
            failure, reason = self._failure(cause)
            if failure != "memory" or self._queries == 1:
                raise SessionError(failure, reason) from cause
        self._reconnect()  # the memory may be that of earlier statements
        return self.execute(query, parameters, most, timeout)

    def _reconnect(self) -> None:
        self._connection.close()
        self._connection, self._queries = ladybug.Connection(self._database), 0

    def _executed(self, query: str, parameters: dict[str, Any], most: int) -> Answer:
        result = self._connection.execute(query, parameters)
        with result[-1] if isinstance(result, list) else result as only:
            types = only.get_column_data_types()
            stored = [kind.rstrip("[0123456789]") in _STORED for kind in types]
            return Answer(only.get_column_names(), stored, plain(only.get_n(most)))

    @staticmethod
    def _failure(cause: Exception) -> tuple[Failure, str]:
        reason = str(cause)
        if isinstance(cause, MemoryError) or any(words in reason for words in _NO_MEMORY):
            return "memory", reason
        if reason == "Interrupted.":
            return "interrupted", reason
        return "refused", reason if isinstance(cause, RuntimeError) else f"{type(cause).__name__}: {reason}"

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
