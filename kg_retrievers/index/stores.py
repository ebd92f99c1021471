"""Opens the vector store that an address names: PostgreSQL with pgvector, Chroma, Milvus."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import VectorStore

from kg_retrievers.errors import InvalidArgumentError, MissingExtraError, StaleIndexError
from kg_retrievers.index.vector_store import Score, VectorStoreSearch, store_errors, tried_again
from kg_retrievers.paths import checked_path
from kg_retrievers.redaction import names_secret, without_secrets

#: The table or collection of names, if the address names none.
TABLE = "kg_retrievers_names"

#: How many signs the name of a table or collection has at least and at most, so that every store takes it.
SHORTEST, LONGEST = 3, 63

#: How a collection of Chroma is made. By default Chroma looks at 100 candidates, and links each name to 16 others.
HNSW = {"space": "l2", "ef_search": 400, "ef_construction": 200, "max_neighbors": 32}

_NAME = re.compile(rf"[A-Za-z_][A-Za-z0-9_]{{{SHORTEST - 1},{LONGEST - 1}}}")

_SCHEME = re.compile(r"[a-z][a-z+]*")

#: The schemes of servers that are spoken to over HTTP, and their names in the clients.
_OVER_HTTP = {"chroma": "http", "chroma+https": "https", "milvus": "http", "milvus+https": "https"}


class StoreAddress(NamedTuple):
    """The address of a vector store.

    Attributes:
        scheme: The part before "://", or "folder" for a folder.
        url: The address without the name of the collection, as the client takes it.
        collection: The table or collection.
        schema: The schema of the table, in PostgreSQL.
    """

    scheme: str
    url: str
    collection: str
    schema: str = "public"


def open_store(address: str, embeddings: Embeddings, *, create: bool = True) -> VectorStoreSearch:
    """Open a vector store.

    If it has no such table or collection, make it or refuse.

    | address | store | extra | password or token |
    |---|---|---|---|
    | `postgresql://user@host:5432/database?table=names&schema=public` | pgvector | `postgres` | PGPASSWORD, ~/.pgpass |
    | `chroma://host:8000/names`, `chroma+https://...` | Chroma | `chroma` | CHROMA_TOKEN |
    | `milvus://host:19530/names`, `milvus+https://...` | Milvus | `milvus` | MILVUS_TOKEN |
    | `names.db`, `names.db?collection=names` | Milvus Lite, in a folder | `milvus` | |

    PostgreSQL takes the options of libpq in the address, as `sslmode=verify-full`. A table that is made there or in
    Milvus is searched exactly, until you add an index. Chroma is always approximate. An opened store can be pickled.
    The process that loads it opens the address again, with the password of its own environment.

    Args:
        address: The address.
        embeddings: The model of the names. If a table is made, one text is embedded, to know how long vectors are.
        create: Whether a missing table or collection is made. False is for asking.

    Raises:
        InvalidArgumentError: If the address cannot be read, or holds a password.
        StaleIndexError: If there is no such table or collection, and `create` is false.
        MissingExtraError: If the extra is not installed.
        DatabaseUnavailableError: If the server cannot be reached, or PostgreSQL has no extension `vector`.
        DatabaseLoginError: If it lets this user not in, or not make the table.
    """
    parts = read_address(address)

    open_parts = {"postgresql": _postgres, "chroma": _chroma}.get(parts.scheme.partition("+")[0], _milvus)

    def open_it() -> VectorStoreSearch:
        with store_errors(f"open_store: {without_secrets(address)}"):
            store = VectorStoreSearch(*open_parts(parts, embeddings, create))
        store.opened_by = partial(open_store, create=create), (address, embeddings)
        return store

    return tried_again(open_it)


def read_address(address: str) -> StoreAddress:
    """Return the parts of a vector store's address.

    Raises:
        InvalidArgumentError: If it cannot be read, or holds a password. The message does not show it.

    Example:
        >>> read_address("postgresql://ann@localhost/films?table=names")
        StoreAddress(scheme='postgresql', url='postgresql://ann@localhost/films', collection='names', schema='public')
        >>> read_address("chroma://localhost:8000")
        StoreAddress(scheme='chroma', url='http://localhost:8000', collection='kg_retrievers_names', schema='public')
    """
    folder, _, collection = address.partition("?collection=")
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise _unreadable(address, " with a host and a port from 0 to 65535") from None
    beside_host = f"{parts.path}{parts.query}{parts.fragment}" if parts.netloc else ""
    has_password = parts.password is not None or "@" in beside_host  # which "/", "?" and "#" in a password move there
    if parts.password == "" and "@" not in beside_host and not names_secret(parts.query):
        raise InvalidArgumentError("open_store: the address has ':' after the user, and no password. Remove the ':'.")
    if has_password or names_secret(parts.query) or (parts.username and parts.scheme in _OVER_HTTP):
        raise InvalidArgumentError(
            "open_store: an address holds no password or token: it is shown in logs and lists of processes.",
            hint_python="Set an environment variable: PGPASSWORD (or the file ~/.pgpass), CHROMA_TOKEN, MILVUS_TOKEN.",
        )
    if "://" not in folder and folder.endswith(".db"):
        found = StoreAddress("folder", folder, collection or TABLE)
    elif parts.scheme == "postgresql":
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        table, schema = query.pop("table", TABLE), query.pop("schema", "public")
        url = urlunsplit(parts._replace(query=urlencode(query)))
        found = StoreAddress("postgresql", url, table, schema)
    elif parts.scheme in _OVER_HTTP and parts.hostname and not parts.query:
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        base = f"{_OVER_HTTP[parts.scheme]}://{host}{f':{port}' if port else ''}"
        found = StoreAddress(parts.scheme, base, unquote(parts.path).strip("/") or TABLE)
    else:
        raise _unreadable(address)
    for kind, name in (("table or collection", found.collection), ("schema", found.schema)):
        if not _NAME.fullmatch(name):
            wanted = f"the name of a {kind} of {SHORTEST} to {LONGEST} letters, digits and _"
            raise InvalidArgumentError(f"open_store: wanted {wanted}, no digit first, but got {name!r}.")
    return found


def _unreadable(address: str, wanted: str = "") -> InvalidArgumentError:
    scheme, got = address.partition("://")[0], ""
    if "@" not in address:  # before which there may be a password of any signs
        got = f", but got {address!r}"
    elif _SCHEME.fullmatch(scheme) and scheme not in ("postgresql", *_OVER_HTTP):
        got = f", but got one that begins with {scheme}://"
    return InvalidArgumentError(
        f"open_store: wanted the address of a vector store{wanted}{got}.",
        hint_python="Give one as postgresql://host/database (with a user: user@host), chroma://host:8000/collection, "
        "milvus://host:19530/collection or a folder that ends in .db.",
    )


def _postgres(address: StoreAddress, embeddings: Embeddings, create: bool) -> tuple[VectorStore, Score]:
    """Open a table of PostgreSQL, or make it."""
    from kg_retrievers.index.postgres_store import open_table  # it needs an extra

    store = open_table(address.url, address.schema, address.collection, embeddings, create)
    if store is None:
        raise _not_there(f"table {address.collection!r} in the schema {address.schema!r}")
    return store, "l2"


def _chroma(address: StoreAddress, embeddings: Embeddings, create: bool) -> tuple[VectorStore, Score]:
    """Open a collection of Chroma, or make it."""
    try:
        import chromadb
        from chromadb.config import Settings
        from langchain_chroma import Chroma
    except ImportError as cause:
        raise MissingExtraError("A vector store in Chroma", "chroma") from cause
    at, token = urlsplit(address.url), os.environ.get("CHROMA_TOKEN")
    client = chromadb.HttpClient(
        host=at.hostname or "",
        port=at.port or (443 if at.scheme == "https" else 8000),
        ssl=at.scheme == "https",
        headers={"Authorization": f"Bearer {token}"} if token else None,
        settings=Settings(anonymized_telemetry=False),
    )
    made: Any = {"hnsw": HNSW}
    try:
        store = Chroma(
            address.collection,
            client=client,
            embedding_function=embeddings,
            collection_configuration=made,
            create_collection_if_not_exists=create,
        )
    except chromadb.errors.NotFoundError as cause:
        raise _not_there(f"collection {address.collection!r}") from cause
    space = (store._collection.configuration.get("hnsw") or {}).get("space", "l2")
    return store, _score(address, space, {"l2": "squared_l2", "cosine": "cosine_distance"})


def _milvus(address: StoreAddress, embeddings: Embeddings, create: bool) -> tuple[VectorStore, Score]:
    """Open a collection of Milvus, or make it with the first names.

    The collection may be in a folder of Milvus Lite.
    """
    try:
        from langchain_milvus import Milvus
    except ImportError as cause:
        raise MissingExtraError("A vector store in Milvus", "milvus") from cause
    if address.scheme == "folder":
        _check_folder(checked_path(address.url), create)
    login = {"token": token} if (token := os.environ.get("MILVUS_TOKEN")) else {}
    store = Milvus(
        embeddings,
        collection_name=address.collection,
        connection_args={"uri": address.url, **login},
        index_params={"index_type": "FLAT", "metric_type": "L2", "params": {}},  # compares with every vector
        enable_dynamic_field=True,  # for the metadata
        consistency_level="Strong",  # others find at once what was written
    )
    metric = "L2"
    if store.client.has_collection(address.collection):
        metric = store.client.describe_index(address.collection, store._vector_field)["metric_type"]
    elif not create:
        raise _not_there(f"collection {address.collection!r}")
    return store, _score(address, metric, {"L2": "squared_l2", "COSINE": "cosine_similarity"})


def _check_folder(folder: Path, create: bool) -> None:
    """Check a folder of Milvus Lite before connecting, which would make it."""
    if not create and not folder.exists():
        raise _not_there(f"folder {folder}")
    if folder.is_file():
        raise InvalidArgumentError(f"open_store: {folder} is a file; wanted a folder of Milvus Lite. Name another.")
    if not folder.parent.is_dir():
        raise InvalidArgumentError(f"open_store: there is no folder {folder.parent} for {folder.name}. Make it.")


def _score(address: StoreAddress, metric: str, scores: Mapping[str, Score]) -> Score:
    """Return the kind of a collection's scores, by its metric."""
    if metric not in scores:
        raise InvalidArgumentError(
            f"open_store: the collection {address.collection!r} compares by {metric!r}; wanted one of "
            f"{', '.join(scores)}."
        )
    return scores[metric]


def _not_there(what: str) -> StaleIndexError:
    return StaleIndexError(
        f"open_store: there is no {what}.",
        hint_python="Check the address, or make it with create=True and load names into it: load_names(executor, "
        "embeddings, store).",
    )
