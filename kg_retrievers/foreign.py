"""Clean the errors of clients that others wrote.

They hold no secrets, and none is a KeyError that says nothing to a user.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kg_retrievers.errors import KGRetrieversError, ModelCallError
from kg_retrievers.redaction import hide_secrets

#: Errors of a client that did not expect its server's data. Errors of its own classes pass.
_UNTYPED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


@contextmanager
def client_errors(who: str) -> Iterator[None]:
    """Let errors of a client pass without secrets.

    Python's own errors, which say nothing to a user, become typed.

    Raises:
        ModelCallError: In place of a TypeError, ValueError, KeyError and their like.
    """
    try:
        yield
    except KGRetrieversError:
        raise
    except Exception as error:
        hide_secrets(error)
        if not isinstance(error, _UNTYPED) or not type(error).__module__.startswith(("builtins", "json", "pydantic")):
            raise
        reason = " ".join(str(error).split())
        raise ModelCallError(
            f"{who}: the client failed on what its server sent ({type(error).__name__}: {reason:.200}). Check the "
            "address of the server, and whether it speaks the protocol of this client."
        ) from error
