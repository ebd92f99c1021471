"""Tables of names in PostgreSQL with pgvector. Extra: `postgres`."""

from __future__ import annotations

from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from langchain_core.embeddings import Embeddings

from kg_retrievers.errors import DatabaseUnavailableError, InvalidArgumentError, MissingExtraError
from kg_retrievers.index.embeddings import embed

try:
    import psycopg
    from langchain_postgres import PGEngine, PGVectorStore
    from langchain_postgres.v2.indexes import DistanceStrategy
    from psycopg import errors, sql
    from sqlalchemy.exc import DBAPIError
except ImportError as cause:
    raise MissingExtraError("A vector store in PostgreSQL", "postgres") from cause

#: How many seconds it may take to connect.
CONNECTING = 5

#: The settings of every session. By default an HNSW index of pgvector returns 40 rows at most, and an IVFFlat index
#: looks into one list: here they look at more, and go on until there are as many rows as asked for.
SETTINGS = {
    "hnsw.ef_search": "400",
    "hnsw.iterative_scan": "strict_order",
    "hnsw.max_scan_tuples": "100000",
    "ivfflat.probes": "16",
    "ivfflat.iterative_scan": "relaxed_order",
}

#: Vectors of so many numbers fit into a page of 8 KiB. Kept there instead of apart, a search that compares all takes a
#: quarter of the time.
IN_PAGE = 1500


def open_table(url: str, schema: str, table: str, embeddings: Embeddings, create: bool) -> PGVectorStore | None:
    """Open a table, and make it if it is not there.

    Args:
        url: The address, without a password.
        schema: The schema of the table.
        table: The table.
        embeddings: The model.
        create: Whether a table is made.

    Returns:
        A store whose scores are L2 distances. None if there is no table and none is made.

    Raises:
        InvalidArgumentError: If the address has an unknown option, the database has no such schema, or the table has
            other columns.
        DatabaseUnavailableError: If the server has no extension `vector`.
    """
    url = _with_settings(url)
    name = sql.Identifier(schema, table)
    columns = "langchain_id, content, embedding, langchain_metadata"
    engine = PGEngine.from_connection_string(
        url.replace("postgresql:", "postgresql+psycopg:", 1),
        pool_pre_ping=True,
        connect_args={"connect_timeout": CONNECTING},
    )
    try:
        _execute(url, sql.SQL("SELECT {} FROM {} LIMIT 0").format(sql.SQL(columns), name))
    except errors.UndefinedTable:
        if not create:
            return None
        width = embed(embeddings, ["a name"]).shape[1]
        _make(engine, schema, table, width)
        if width <= IN_PAGE:
            _execute(url, sql.SQL("ALTER TABLE {} ALTER COLUMN embedding SET STORAGE PLAIN").format(name))
    except errors.UndefinedColumn as cause:
        raise InvalidArgumentError(
            f"open_store: the table {table!r} was not made by open_store.", hint_python="Name another: table=..."
        ) from cause
    return PGVectorStore.create_sync(
        engine, embeddings, table, schema_name=schema, distance_strategy=DistanceStrategy.EUCLIDEAN
    )


def _execute(url: str, statement: sql.Composed) -> None:
    """Run a statement on a connection of its own.

    Raises:
        InvalidArgumentError: If the address has an option that libpq does not know.
    """
    try:
        with psycopg.connect(url, connect_timeout=CONNECTING) as connection:
            connection.execute(statement)
    except psycopg.ProgrammingError as cause:
        if cause.sqlstate is not None:
            raise
        raise InvalidArgumentError(
            f"open_store: the address has an {str(cause).strip()}.",
            hint_python="After '?' it takes table=..., schema=... and the options of libpq, as sslmode=verify-full.",
        ) from cause


def _make(engine: PGEngine, schema: str, table: str, dimension: int) -> None:
    """Make a table, unless another process makes it meanwhile."""
    try:
        engine.init_vectorstore_table(table, dimension, schema_name=schema)
    except DBAPIError as cause:
        if isinstance(cause.orig, errors.UndefinedFile | errors.FeatureNotSupported):
            raise DatabaseUnavailableError(
                "open_store: the server does not have the extension `vector`.",
                hint_python="Install pgvector on the server (https://github.com/pgvector/pgvector), and try again.",
            ) from cause
        if isinstance(cause.orig, errors.InvalidSchemaName):
            hint = f'Name another: schema=..., or make it: CREATE SCHEMA "{schema}";'
            raise InvalidArgumentError(
                f"open_store: the database has no schema {schema!r}.", hint_python=hint
            ) from cause
        if not isinstance(cause.orig, errors.DuplicateTable):
            raise


def _with_settings(url: str) -> str:
    """Return an address whose sessions have the settings for approximate indexes."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    settings = " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())
    query["options"] = f"{settings} {query.get('options', '')}".strip()
    return urlunsplit(parts._replace(query=urlencode(query, quote_via=quote)))
