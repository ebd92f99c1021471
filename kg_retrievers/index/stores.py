"""Opens the vector store that an address names: PostgreSQL with pgvector, Chroma, Milvus."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from langchain_core.embeddings import Embeddings

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.index.embeddings import embed
from kg_retrievers.index.store_errors import store_errors, tried_again
from kg_retrievers.index.vector_store import VectorStoreSearch
from kg_retrievers.redaction import names_secret, without_secrets

#: The table or collection of names, where the address names none.
TABLE = "kg_retrievers_names"

#: How many signs the name of a table or collection has at least and at most, so that every store takes it.
SHORTEST, LONGEST = 3, 63

_NAME = re.compile(rf"[A-Za-z_][A-Za-z0-9_]{{{SHORTEST - 1},{LONGEST - 1}}}")

_SCHEME = re.compile(r"[a-z][a-z+]*")

#: The schemes of servers that are spoken to over HTTP, and what stands for each in their clients.
_OVER_HTTP = {"chroma": "http", "chroma+https": "https", "milvus": "http", "milvus+https": "https"}


class StoreAddress(NamedTuple):
    """Where a vector store is.

    Attributes:
        scheme: The part before "://"; "folder" for a folder.
        url: The address without the name of the collection, as the client takes it.
        collection: The table or collection.
        schema: The schema of the table, in PostgreSQL.
    """

    scheme: str
    url: str
    collection: str
    schema: str = "public"


def open_store(address: str, embeddings: Embeddings, *, create: bool = True) -> VectorStoreSearch:
    """Open a vector store; where it has no such table or collection, make it or refuse.

    | address | store | extra | password or token |
    |---|---|---|---|
    | `postgresql://user@host:5432/database?table=names&schema=public` | pgvector | `postgres` | PGPASSWORD, ~/.pgpass |
    | `chroma://host:8000/names`, `chroma+https://...` | Chroma | `chroma` | CHROMA_TOKEN |
    | `milvus://host:19530/names`, `milvus+https://...` | Milvus | `milvus` | MILVUS_TOKEN |
    | `names.db`, `names.db?collection=names` | Milvus Lite, in a folder | `milvus` | |

    PostgreSQL takes the options of libpq in the address, as `sslmode=verify-full`. What is made there and in Milvus is
    searched exactly, until you add an index; Chroma is always approximate. What is opened can be pickled: the process
    that loads it opens the address again, with the password of its own environment.

    Args:
        address: The address.
        embeddings: The model of the names: one text is embedded where a table is made, to know how long vectors are.
        create: Whether the table or collection is made where there is none; False is for asking.

    Raises:
        InvalidArgumentError: If the address cannot be read, or holds a password.
        StaleIndexError: If there is no such table or collection, and `create` is false.
        MissingExtraError: If the extra is not installed.
        DatabaseUnavailableError: If the server cannot be reached, or PostgreSQL has no extension `vector`.
        DatabaseLoginError: If it lets this user not in, or not make the table.
    """
    parts = read_address(address)

    def open_it() -> VectorStoreSearch:
        with store_errors(f"open_store: {without_secrets(address)}"):
            store = _OPENERS[parts.scheme.partition("+")[0]](parts, embeddings, create)
        store.opened_by = partial(open_store, create=create), (address, embeddings)
        return store

    return tried_again(open_it)


def read_address(address: str) -> StoreAddress:
    """Return what the address of a vector store says.

    Raises:
        InvalidArgumentError: If it cannot be read, or holds a password; the message does not show it.

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


def next_collection(address: str) -> str:
    """Return the address of another table or collection in the same store.

    Example:
        >>> next_collection("postgresql://ann@localhost/films?table=names")
        'postgresql://ann@localhost/films?table=names_2'
        >>> next_collection("names.db?collection=names_2")
        'names.db?collection=names_3'
    """
    found = read_address(address)
    stem, _, number = found.collection.rpartition("_")
    if not (stem and number.isdecimal()):
        stem, number = found.collection, "1"
    number = str(int(number) + 1)
    name = f"{stem[: LONGEST - 1 - len(number)]}_{number}"
    parts = urlsplit(address)
    if found.scheme == "folder":
        return f"{found.url}?collection={name}"
    if found.scheme == "postgresql":
        return urlunsplit(parts._replace(query=urlencode({**dict(parse_qsl(parts.query)), "table": name}, safe="/")))
    return urlunsplit(parts._replace(path=f"/{name}"))


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


def _postgres(address: StoreAddress, embeddings: Embeddings, create: bool) -> VectorStoreSearch:
    from kg_retrievers.index.postgres_store import open_postgres

    def dimension() -> int:
        return int(embed(embeddings, ["a name"]).shape[1])

    make = dimension if create else None
    store = open_postgres(address.url, address.schema, address.collection, embeddings, make)
    return VectorStoreSearch(store, "l2")


def _chroma(address: StoreAddress, embeddings: Embeddings, create: bool) -> VectorStoreSearch:
    from kg_retrievers.index.chroma_store import open_chroma

    return VectorStoreSearch(*open_chroma(address.url, address.collection, embeddings, create))


def _milvus(address: StoreAddress, embeddings: Embeddings, create: bool) -> VectorStoreSearch:
    from kg_retrievers.index.milvus_store import open_milvus

    return VectorStoreSearch(*open_milvus(address.url, address.collection, embeddings, create))


_OPENERS: dict[str, Callable[[StoreAddress, Embeddings, bool], VectorStoreSearch]] = {
    "postgresql": _postgres,
    "chroma": _chroma,
    "milvus": _milvus,
    "folder": _milvus,
}
