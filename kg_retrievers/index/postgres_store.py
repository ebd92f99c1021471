"""Vectors in PostgreSQL with pgvector, through langchain-postgres. Extra: `postgres`."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import cache
from typing import Any, TypeVar, cast

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from kg_retrievers.deadline import wait_for
from kg_retrievers.errors import DatabaseUnavailableError, InvalidArgumentError, MissingExtraError
from kg_retrievers.index.store_errors import not_there

try:
    from langchain_postgres import PGEngine, PGVectorStore
    from langchain_postgres.v2.indexes import DistanceStrategy
    from psycopg import ProgrammingError
    from psycopg.conninfo import make_conninfo
    from sqlalchemy import event, make_url, text
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
except ImportError as cause:
    raise MissingExtraError("A vector store in PostgreSQL", "postgres") from cause

Result = TypeVar("Result")

#: How many seconds it may take to connect.
CONNECTING = 5

#: What every session sets. By default an HNSW index of pgvector returns 40 rows at most, and an IVFFlat index looks
#: into one list: here they look at more, and go on until there are as many rows as were asked for.
SETTINGS = {
    "hnsw.ef_search": "400",
    "hnsw.iterative_scan": "strict_order",
    "hnsw.max_scan_tuples": "100000",
    "ivfflat.probes": "16",
    "ivfflat.iterative_scan": "relaxed_order",
}

#: Vectors of so many numbers fit into a page of 8 KiB, beside the rest of a row. Kept there instead of apart, a
#: search that compares all takes a quarter of the time, and the planner knows what it costs.
IN_PAGE = 1500

#: PostgreSQL's code for a file that is not there, as that of an extension that is not installed.
_NO_FILE = {"58P01", "0A000"}

#: PostgreSQL's codes for a table and a schema that are not there.
_NO_TABLE, _NO_SCHEMA = "42P01", "3F000"


class PostgresStore(PGVectorStore):
    """A PGVectorStore that writes a batch in one transaction, and reads no vectors, which are most of a row.

    Made by `open_postgres` alone, which knows the columns of the table.
    """

    #: The connections, the name of the table as SQL takes it, and the process that opened it.
    _place: tuple[AsyncEngine, str, int]

    def add_embeddings(
        self,
        texts: Iterable[str],
        embeddings: list[list[float]],
        metadatas: list[dict[str, Any]] | None = None,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Write rows with vectors that are made already, in place of those with the same ids; all or none."""
        texts = list(texts)
        if metadatas is None or ids is None:
            return super().add_embeddings(texts, embeddings, metadatas, ids, **kwargs)
        rows = [
            {"id": id, "content": content, "embedding": str(vector), "metadata": json.dumps(metadata)}
            for id, content, vector, metadata in zip(ids, texts, embeddings, metadatas, strict=True)
        ]
        self._write(
            "INSERT INTO {table} (langchain_id, content, embedding, langchain_metadata) "
            "VALUES (:id, :content, :embedding, :metadata) ON CONFLICT (langchain_id) DO UPDATE SET content = "
            "EXCLUDED.content, embedding = EXCLUDED.embedding, langchain_metadata = EXCLUDED.langchain_metadata",
            rows,
        )
        return ids

    def similarity_search_with_score_by_vector(
        self, embedding: list[float], k: int | None = None, filter: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Return the nearest documents and their L2 distances."""
        if filter or kwargs:
            return super().similarity_search_with_score_by_vector(embedding, k, filter, **kwargs)
        rows = self._rows(
            "SELECT langchain_id, content, langchain_metadata, embedding <-> CAST(:vector AS vector) AS distance "
            "FROM {table} ORDER BY embedding <-> CAST(:vector AS vector) LIMIT :k",
            {"vector": str(embedding), "k": k or 4},
        )
        return [
            (Document(content, id=str(id), metadata=metadata), distance) for id, content, metadata, distance in rows
        ]

    def get_by_ids(self, ids: Sequence[str]) -> list[Document]:
        """Return the documents that there are, by one statement however many ids there are."""
        rows = self._rows(
            "SELECT langchain_id, content, langchain_metadata FROM {table} "
            "WHERE langchain_id = ANY(CAST(:ids AS uuid[]))",
            {"ids": list(ids)},
        )
        return [Document(content, id=str(id), metadata=metadata) for id, content, metadata in rows]

    def update_metadata(self, ids: Sequence[str], metadatas: Sequence[dict[str, Any]]) -> None:
        """Give rows other metadata; their vectors stay."""
        rows = [{"id": id, "metadata": json.dumps(metadata)} for id, metadata in zip(ids, metadatas, strict=True)]
        self._write("UPDATE {table} SET langchain_metadata = :metadata WHERE langchain_id = :id", rows)

    def _rows(self, statement: str, parameters: dict[str, Any]) -> Sequence[Any]:
        engine, table, process = self._place

        async def read() -> Sequence[Any]:
            async with engine.connect() as connection:
                return (await connection.execute(text(statement.format(table=table)), parameters)).all()

        return _wait_for(read(), process)

    def _write(self, statement: str, rows: Sequence[dict[str, str]]) -> None:
        engine, table, process = self._place
        _wait_for(_run(engine, statement.format(table=table), rows), process)


def open_postgres(
    url: str, schema: str, table: str, embeddings: Embeddings, dimension: Callable[[], int] | None
) -> PostgresStore:
    """Open a table of names; where there is none, make it or refuse.

    Args:
        url: The address, without a password.
        schema: The schema of the table.
        table: The table.
        embeddings: The model; the store keeps it, and embeds nothing.
        dimension: Returns the length of its vectors; called where the table is made. None: no table is made.

    Returns:
        A store whose scores are L2 distances.

    Raises:
        InvalidArgumentError: If the address has an unknown option, the database has no such schema, or the table was
            not made here.
        DatabaseUnavailableError: If the server has no extension `vector`.
        StaleIndexError: If there is no such table, and `dimension` is None.
    """
    process = os.getpid()
    engine = _engine(url)
    quoted = engine.dialect.identifier_preparer.quote_identifier
    full_name = f"{quoted(schema)}.{quoted(table)}"
    connections = PGEngine.from_engine(engine, _loop(process))
    if not _wait_for(_has_table(engine, full_name), process):
        if dimension is None:
            raise not_there(f"table {table!r} in the schema {schema!r}")
        try:
            width = dimension()
            connections.init_vectorstore_table(table, width, schema_name=schema)
            if width <= IN_PAGE:
                alter = f"ALTER TABLE {full_name} ALTER COLUMN embedding SET STORAGE PLAIN"
                _wait_for(_run(engine, alter), process)
        except DBAPIError as cause:
            if _state(cause) in _NO_FILE:
                raise _no_extension(url) from cause
            if _state(cause) == _NO_SCHEMA:
                hint = f"Name another: schema=..., or make it: CREATE SCHEMA {quoted(schema)};"
                raise InvalidArgumentError(
                    f"open_store: the database has no schema {schema!r}.", hint_python=hint
                ) from cause
            if not _wait_for(_has_table(engine, full_name), process):  # else another process made it meanwhile
                raise
    try:
        made = PostgresStore.create_sync(
            connections, embeddings, table, schema_name=schema, distance_strategy=DistanceStrategy.EUCLIDEAN
        )
    except ValueError as cause:  # a column that is wanted is not there
        raise InvalidArgumentError(
            f"open_store: the table {table!r} was not made by open_store.", hint_python="Name another: table=..."
        ) from cause
    store = cast(PostgresStore, made)  # langchain-postgres says that it makes a PGVectorStore, whatever the class
    store._place = engine, full_name, process
    return store


def _no_extension(url: str) -> DatabaseUnavailableError:
    return DatabaseUnavailableError(
        f"PostgresStore: the server at {make_url(url).host} does not have the extension `vector`.",
        hint_python="Install pgvector on the server (https://github.com/pgvector/pgvector), and try again.",
    )


def _engine(url: str) -> AsyncEngine:
    """Return connections that are checked before use, since the server may have been started anew.

    Raises:
        InvalidArgumentError: If the address has an option that libpq does not know.
    """
    address = make_url(url).set(drivername="postgresql+psycopg")
    try:
        make_conninfo(**dict.fromkeys(address.query, ""))
    except ProgrammingError as cause:
        raise InvalidArgumentError(
            f"open_store: the address has an {str(cause).strip()}.",
            hint_python="After '?' it takes table=..., schema=... and the options of libpq, as sslmode=verify-full.",
        ) from cause
    engine = create_async_engine(address, pool_pre_ping=True, connect_args={"connect_timeout": CONNECTING})

    @event.listens_for(engine.sync_engine, "connect")
    def set_up(connection: Any, record: object) -> None:
        cursor = connection.cursor()
        columns = ", ".join("set_config(%s, %s, false)" for _ in SETTINGS)
        cursor.execute(f"SELECT {columns}", [part for setting in SETTINGS.items() for part in setting])
        cursor.close()
        connection.commit()

    return engine


async def _run(engine: AsyncEngine, statement: str, rows: Sequence[dict[str, str]] | None = None) -> None:
    async with engine.begin() as connection:
        await connection.execute(text(statement), rows)


async def _has_table(engine: AsyncEngine, full_name: str) -> bool:
    """Whether there is a table; one that this user may not read raises the server's error."""
    try:
        await _run(engine, f"SELECT FROM {full_name} LIMIT 0")
    except DBAPIError as cause:
        if _state(cause) == _NO_TABLE:
            return False
        raise
    return True


def _state(error: DBAPIError) -> str | None:
    """Return PostgreSQL's code of an error."""
    return getattr(error.orig, "sqlstate", None)


@cache
def _loop(process: int) -> asyncio.AbstractEventLoop:
    """Return the loop on which all connections of a process run; psycopg takes no other kind of loop on Windows."""
    loop = asyncio.SelectorEventLoop()
    threading.Thread(target=loop.run_forever, name="PostgresStore", daemon=True).start()
    return loop


def _wait_for(work: Coroutine[Any, Any, Result], process: int) -> Result:
    """Run a coroutine on the loop of a process, at most until the deadline; a query is cancelled then."""
    if process != os.getpid():
        work.close()
        raise DatabaseUnavailableError(
            "PostgresStore: its connections are those of the process that forked this one.",
            hint_python="Open the store in this process, by open_store.",
        )
    return wait_for(asyncio.run_coroutine_threadsafe(work, _loop(process)))
