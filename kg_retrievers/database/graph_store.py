"""Runs Cypher through the graph stores of LangChain and LlamaIndex, and any object that has their method."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from kg_retrievers.database.executor import DatabaseExecutor, Fetched
from kg_retrievers.database.neo4j_schema import read_schema
from kg_retrievers.database.plain_values import plain
from kg_retrievers.database.schema import DatabaseSchema, Dialect
from kg_retrievers.database.values import Relationship, StoredNode
from kg_retrievers.errors import DatabaseError, DatabaseQueryError, InvalidArgumentError
from kg_retrievers.graph import Triple


class QueryExecutor(DatabaseExecutor):
    """Runs queries through an object with `query(cypher, params)` or `structured_query(cypher, param_map)`.

    LangChain's `Neo4jGraph` and LlamaIndex's property graph stores are such objects. They return less than
    `Neo4jExecutor` and `LadybugExecutor` do, with fewer guarantees; take these where you can:

    - Only the check of this package, and a user without the right to write, keep queries from writing.
    - The only timeout is the one that the store itself was made with.
    - All rows come at once; the LIMIT that the query is given bounds them, and a UNION cannot have one.
    - A node is the dictionary of its properties. A relationship becomes a `Relationship` only if its two nodes were
      returned in the same row with their keys, as by `render(..., nodes=True)`, and none has the key property of
      another label with another value. A path is a list without directions.
    - It can be pickled only if the store can.

    Args:
        store: The object.
        schema: What the database holds; None to read it, which needs Neo4j's dialect.
        dialect: The Cypher that the database understands.
        key: As in `Neo4jExecutor`, where the schema is read.
        label: As in `Neo4jExecutor`, where the schema is read.

    Raises:
        InvalidArgumentError: If the object has neither method, or there is no schema for another dialect.
    """

    def __init__(
        self,
        store: Any,
        *,
        schema: DatabaseSchema | None = None,
        dialect: Dialect = "neo4j",
        key: str | Mapping[str, str] = "key",
        label: str | None = "label",
    ) -> None:
        """Look for the method."""
        query = next((getattr(store, name) for name in ("query", "structured_query") if hasattr(store, name)), None)
        if not callable(query):
            raise InvalidArgumentError(
                f"QueryExecutor: {type(store).__name__} has no method query(cypher, params) or "
                "structured_query(cypher, param_map)."
            )
        if schema is None and dialect != "neo4j":
            raise InvalidArgumentError(
                f"QueryExecutor: the schema is not read in the dialect {dialect!r}. Give schema=."
            )
        self._store = store
        self._query: Callable[[str, dict[str, Any]], Sequence[Mapping[str, Any]]] = query
        self._given, self._dialect, self._key, self._label = schema, dialect, key, label

    @property
    def dialect(self) -> Dialect:
        """The dialect that the constructor was given."""
        return self._dialect

    def __repr__(self) -> str:
        """The class of the store."""
        return f"QueryExecutor({type(self._store).__name__})"

    def __getstate__(self) -> dict[str, Any]:
        """Check that the store, which goes into the pickle, can be pickled; one that holds a connection cannot."""
        try:
            pickle.dumps(self._store)
        except (TypeError, AttributeError, pickle.PicklingError) as cause:
            raise InvalidArgumentError(
                f"{self!r}: the store cannot be pickled ({cause}).",
                hint_python="Make the store and the executor in the other process.",
            ) from cause
        return vars(self)

    def close(self) -> None:
        """Do nothing: the caller who made the store closes it."""

    def _fetch(self, query: str, parameters: dict[str, Any], most: int, timeout: float) -> Fetched:
        columns, rows = self._read(query, parameters, most, timeout)
        return Fetched(columns, [[self._value(value) for value in row] for row in rows])

    def _read(self, query: str, parameters: dict[str, Any], most: int, timeout: float) -> Fetched:
        """Run a query; values are the store's."""
        try:
            rows = self._query(query, parameters)
        except Exception as cause:  # each store has errors of its own
            reason = str(cause)
            message = (
                f"{self!r} could not run the query: {reason} Correct the query, or the connection; it was: {query}"
            )
            raise DatabaseQueryError(message, query, reason) from cause
        if not isinstance(rows, Sequence) or not all(isinstance(row, Mapping) for row in rows):
            raise DatabaseError(f"{self!r}: wanted a list of dictionaries, but the store returned {rows!r:.200}")
        columns = list(rows[0]) if rows else []
        return Fetched(columns, [[row[name] for name in columns] for row in rows[:most]])

    def _value(self, value: Any) -> Any:
        match value:
            case (dict() as start, str() as type, dict() as end) if isinstance(value, tuple):
                head, tail = (self._key_in(node) for node in (start, end))
                if head and tail and self._schema is not None:
                    return Relationship(Triple(head, self._schema.relation_of(type), tail), {})
                return [plain(start), type, plain(end)]
            case list():
                return [self._value(part) for part in value]
            case _:
                return plain(value)

    def _key_in(self, properties: Mapping[str, Any]) -> str:
        """Return the key in a node's properties; "" if there is none, or one of two, since its labels are not known."""
        keys = self._schema.keys if self._schema is not None else ()
        found = {str(properties[key]) for key in keys if properties.get(key) is not None}
        return found.pop() if len(found) == 1 else ""

    def _find_nodes(self, ids: list[Hashable]) -> list[StoredNode]:
        return []

    def _read_schema(self) -> DatabaseSchema:
        if self._given is not None:
            return self._given
        return read_schema(self._read, self._key, self._label, "QueryExecutor")
