"""What goes wrong with the server of a vector store, as typed errors, whatever its client raises."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from kg_retrievers.deadline import seconds_left
from kg_retrievers.errors import (
    DatabaseError,
    DatabaseFullError,
    DatabaseLoginError,
    DatabaseTimeoutError,
    DatabaseUnavailableError,
    KGRetrieversError,
)
from kg_retrievers.foreign import client_errors
from kg_retrievers.redaction import hide_secrets

Result = TypeVar("Result")

#: After how many seconds a call is tried again, if the server could not be reached.
PAUSES = (0.1, 0.4)

#: The clients whose errors are read; those of other packages pass as they are.
_CLIENTS = ("asyncpg", "chromadb", "grpc", "httpcore", "httpx", "psycopg", "pymilvus", "sqlalchemy")

#: PostgreSQL's codes (its manual, appendix A), by their beginnings.
_STATES: dict[str, type[DatabaseError]] = {
    "08": DatabaseUnavailableError,
    "28": DatabaseLoginError,
    "3D000": DatabaseUnavailableError,
    "42501": DatabaseLoginError,
    "53100": DatabaseFullError,
    "53": DatabaseUnavailableError,
    "57014": DatabaseTimeoutError,
    "57P": DatabaseUnavailableError,
}

#: The messages of clients without codes; the first that fits counts.
_MESSAGES: tuple[tuple[str, type[DatabaseError]], ...] = (
    (
        r"authentication failed|no password supplied|pg_hba\.conf|role \".*\" does not exist|permission denied"
        r"|unauthori[sz]ed|forbidden|auth check failure|\b40[13]\b",
        DatabaseLoginError,
    ),
    (r"no space left|disk full|database or disk is full|could not extend file", DatabaseFullError),
    (
        r"connect|terminat|shutting down|starting up|server closed|unreachable|unavailable|disconnected"
        r"|refused|reset by peer|timed? ?out|does not exist on the server|\b50[234]\b"
        r"|resol(?:ve|ution)|name or service not known|getaddrinfo|nodename",
        DatabaseUnavailableError,
    ),
)

#: What happened, and what to do next.
_ADVICE: dict[type[DatabaseError], tuple[str, str]] = {
    DatabaseUnavailableError: ("cannot connect to the server", "Is it running, and is this its address?"),
    DatabaseLoginError: (
        "the server does not let this user in, or do this",
        "Give name and password of a user who may do this, by the environment: PGPASSWORD or ~/.pgpass of PostgreSQL, "
        "CHROMA_TOKEN, MILVUS_TOKEN.",
    ),
    DatabaseFullError: ("the server has no room", "Make room, and do it again: what was written stays."),
    DatabaseTimeoutError: (
        "the server stopped a statement that took too long",
        "Try again, or let this user's statements take longer (statement_timeout of PostgreSQL).",
    ),
}


@contextmanager
def store_errors(who: str) -> Iterator[None]:
    """Raise a typed error if the server of a vector store is away, lets nobody in, or has no room.

    Args:
        who: The name of the store, for the messages.

    Raises:
        DatabaseUnavailableError: If the server cannot be reached, or stopped meanwhile.
        DatabaseLoginError: If it wants another name or password, or the user may not do this.
        DatabaseFullError: If its disk is full.
        DatabaseTimeoutError: If it stopped a statement that took longer than it allows.
        ModelCallError: If the client failed with an error of Python's own. Other errors pass, without secrets.
    """
    with client_errors(who):
        try:
            yield
        except KGRetrieversError:
            raise
        except Exception as cause:
            if (kind := _kind_of(cause)) is None:
                raise
            hide_secrets(cause)
            reason = " ".join(str(cause).split()).partition(" (Background on this error")[0].partition(" [SQL: ")[0]
            happened, advice = _ADVICE[kind]
            raise kind(f"{who}: {happened} ({reason:.300}).", hint_python=advice) from cause


def _kind_of(error: BaseException) -> type[DatabaseError] | None:
    """Return the kind of an error, by the error and those that led to it; None for any other error."""
    chain = _chain(error)
    for one in chain:
        state = getattr(one, "sqlstate", None)
        if isinstance(state, str):
            return next((kind for start, kind in _STATES.items() if state.startswith(start)), None)
    if not any(isinstance(one, OSError) or type(one).__module__.partition(".")[0] in _CLIENTS for one in chain):
        return None
    said = " ".join(str(one) for one in chain)
    return next((kind for pattern, kind in _MESSAGES if re.search(pattern, said, re.IGNORECASE)), None)


def _chain(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop(0)
        if one is not None and all(one is not seen for seen in chain):
            chain.append(one)
            waiting += [getattr(one, "orig", None), one.__cause__, one.__context__]
    return chain


def tried_again(call: Callable[[], Result]) -> Result:
    """Return the result of a call; it is repeated after `PAUSES` if its server could not be reached.

    Raises:
        DatabaseUnavailableError: If the server could not be reached the last time either.
    """
    for pause in PAUSES:
        try:
            return call()
        except DatabaseUnavailableError:
            if seconds_left() <= pause:
                raise
            time.sleep(pause)
    return call()
