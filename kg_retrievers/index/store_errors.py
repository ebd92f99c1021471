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
    StaleIndexError,
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

#: What clients say where there is no code; the first that fits counts.
_SAID: tuple[tuple[str, type[DatabaseError]], ...] = (
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

_ADVICE: dict[type[DatabaseError], str] = {
    DatabaseUnavailableError: "Is it running, and is this its address?",
    DatabaseLoginError: "Give name and password of a user who may do this, by the environment: {login}.",
    DatabaseFullError: "Make room, and do it again: what was written stays.",
    DatabaseTimeoutError: "Try again, or let this user's statements take longer (statement_timeout of PostgreSQL).",
}

#: Where the password or token of a server is taken from, by the package whose error tells that it is wrong.
_LOGINS = {
    "psycopg": "PGPASSWORD or ~/.pgpass",
    "sqlalchemy": "PGPASSWORD or ~/.pgpass",
    "chromadb": "CHROMA_TOKEN",
    "httpx": "CHROMA_TOKEN",
    "pymilvus": "MILVUS_TOKEN",
    "grpc": "MILVUS_TOKEN",
}


@contextmanager
def store_errors(who: str) -> Iterator[None]:
    """Raise a typed error where the server of a vector store is away, lets nobody in, or has no room.

    Args:
        who: The name of the store, for the messages.

    Raises:
        DatabaseUnavailableError: If the server cannot be reached, or stopped meanwhile.
        DatabaseLoginError: If it wants another name or password, or the user may not do this.
        DatabaseFullError: If its disk is full.
        DatabaseTimeoutError: If it stopped what took longer than it allows.
        ModelCallError: If the client failed with an error of Python's own. Other errors pass, without secrets.
    """
    with client_errors(who):
        try:
            yield
        except KGRetrieversError:
            raise
        except Exception as cause:
            if (kind := kind_of(cause)) is None:
                raise
            hide_secrets(cause)
            reason = " ".join(str(cause).split()).partition(" (Background on this error")[0]
            reason = reason.partition(" [SQL: ")[0]
            advice = _ADVICE[kind].format(login=_login(cause))
            raise kind(f"{who}: {_VERBS[kind]} ({reason:.300}).", hint_python=advice) from cause


def not_there(what: str) -> StaleIndexError:
    """Return the error of a table, collection or folder that is not there, and is not to be made."""
    return StaleIndexError(
        f"open_store: there is no {what}.",
        hint_python="Check the address, or make it with create=True and load names into it: load_names(executor, "
        "embeddings, store).",
    )


_VERBS: dict[type[DatabaseError], str] = {
    DatabaseUnavailableError: "cannot connect to the server",
    DatabaseLoginError: "the server does not let this user in, or do this",
    DatabaseFullError: "the server has no room",
    DatabaseTimeoutError: "the server stopped a statement that took too long",
}


def kind_of(error: BaseException) -> type[DatabaseError] | None:
    """Return what went wrong, by the error and those that led to it; None where it is something else."""
    chain = _chain(error)
    for one in chain:
        state = getattr(one, "sqlstate", None)
        if isinstance(state, str):
            return next((kind for start, kind in _STATES.items() if state.startswith(start)), None)
    if not any(_is_of_client(one) for one in chain):
        return None
    said = " ".join(str(one) for one in chain)
    return next((kind for pattern, kind in _SAID if re.search(pattern, said, re.IGNORECASE)), None)


def _login(error: BaseException) -> str:
    """Return where the password or token of a server is taken from, by the packages of the errors."""
    packages = [type(one).__module__.partition(".")[0] for one in _chain(error)]
    return next((_LOGINS[one] for one in packages if one in _LOGINS), ", ".join(dict.fromkeys(_LOGINS.values())))


def _chain(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop(0)
        if one is not None and all(one is not seen for seen in chain):
            chain.append(one)
            waiting += [getattr(one, "orig", None), one.__cause__, one.__context__]
    return chain


def _is_of_client(error: BaseException) -> bool:
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] in _CLIENTS


def tried_again(call: Callable[[], Result]) -> Result:
    """Return what a call returns; it is repeated after `PAUSES` if its server could not be reached.

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
