"""The address of a Neo4j database, and the login. Name and password come from the environment, and go nowhere else."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.redaction import names_secret


def address_in(uri: str) -> str:
    """Return scheme, host and port of a URI.

    Raises:
        InvalidArgumentError: If there is no host, or a name or password is in it; the message does not show them.
    """
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if host is None or "@" in uri or names_secret(parts.query):
        raise InvalidArgumentError(
            "Neo4jExecutor: wanted a URI as in 'neo4j://localhost:7687', without user name and password; these are "
            "read from the environment variables NEO4J_USERNAME and NEO4J_PASSWORD."
        )
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{f':{port}' if port else ''}"


def credentials() -> tuple[str, str] | None:
    """Return NEO4J_USERNAME and NEO4J_PASSWORD; None if neither is set.

    Raises:
        InvalidArgumentError: If only one of them is.
    """
    name, password = os.environ.get("NEO4J_USERNAME"), os.environ.get("NEO4J_PASSWORD")
    if (name is None) != (password is None):
        missing = "NEO4J_USERNAME" if name is None else "NEO4J_PASSWORD"
        raise InvalidArgumentError(f"Neo4jExecutor: the environment variable {missing} is not set. Set it, or neither.")
    return (name, password) if name is not None and password is not None else None
