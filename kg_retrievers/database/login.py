"""The addresses of servers, and logins. Name and password come from the environment, and go nowhere else."""

from __future__ import annotations

import os
from urllib.parse import SplitResult, urlsplit

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.redaction import names_secret


def address_in(uri: str) -> str:
    """Return scheme, host and port of a URI of Bolt.

    Raises:
        InvalidArgumentError: If there is no host, or a name or password is in it. The message does not show them.
    """
    parts = _parts_of(uri)
    if parts is None or "@" in uri:
        raise InvalidArgumentError(
            "Neo4jExecutor: wanted a URI as in 'neo4j://localhost:7687', without user name and password; these are "
            "read from the environment variables NEO4J_USERNAME and NEO4J_PASSWORD."
        )
    host = parts.hostname or ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{f':{parts.port}' if parts.port else ''}"


def checked_url(url: str) -> str:
    """Return the address of a SPARQL endpoint.

    Raises:
        InvalidArgumentError: If it is none, or a name or password is in it. The message does not show them.
    """
    parts = _parts_of(url)
    if parts is None or parts.scheme not in ("http", "https") or "@" in parts.netloc:
        raise InvalidArgumentError(
            "SparqlExecutor: wanted a URL as in 'http://localhost:7878/query', without user name and password; these "
            "are read from the environment variables SPARQL_USERNAME and SPARQL_PASSWORD, or SPARQL_TOKEN."
        )
    return url


def _parts_of(address: str) -> SplitResult | None:
    """Return the parts of an address.

    None without a host, or if its query names a secret.
    """
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        return None
    return None if parts.hostname is None or names_secret(parts.query) else parts


def credentials(who: str, prefix: str) -> tuple[str, str] | None:
    """Return the name and password in the environment, or None if neither is set.

    Args:
        who: The class that asks, for messages.
        prefix: The variables' beginning, before _USERNAME and _PASSWORD.

    Raises:
        InvalidArgumentError: If only one of them is set.
    """
    name, password = os.environ.get(f"{prefix}_USERNAME"), os.environ.get(f"{prefix}_PASSWORD")
    if (name is None) != (password is None):
        missing = f"{prefix}_USERNAME" if name is None else f"{prefix}_PASSWORD"
        raise InvalidArgumentError(f"{who}: the environment variable {missing} is not set. Set it, or neither.")
    return (name, password) if name is not None and password is not None else None
