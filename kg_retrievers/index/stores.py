"""Opens a vector store by its address: PostgreSQL with pgvector."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from langchain_core.embeddings import Embeddings

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.index.embeddings import embed
from kg_retrievers.index.store_errors import store_errors
from kg_retrievers.index.vector_store import VectorStoreSearch
from kg_retrievers.redaction import names_secret

#: Where names are, unless the address says it.
TABLE = "kg_retrievers_names"


def open_store(url: str, embeddings: Embeddings) -> VectorStoreSearch:
    """Open a vector store by its address; its table or collection is made where there is none."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    if parts.password is not None or names_secret(parts.query):
        raise InvalidArgumentError("open_store: wanted an address without a password.")
    from kg_retrievers.index.postgres_store import open_postgres

    schema, table = query.pop("schema", "public"), query.pop("table", TABLE)
    address = urlunsplit(parts._replace(query=urlencode(query)))
    with store_errors("PostgresStore"):
        store = open_postgres(address, schema, table, embeddings, lambda: embed(embeddings, ["a name"]).shape[1])
    return VectorStoreSearch(store, "l2")
