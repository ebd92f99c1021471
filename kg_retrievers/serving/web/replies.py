"""What the server says where it gives no answer: JSON with the reason and the next step, never a traceback."""

from __future__ import annotations

import logging
from typing import Any
from uuid import uuid4

from starlette.responses import JSONResponse

from kg_retrievers import errors
from kg_retrievers.errors import KGRetrieversError
from kg_retrievers.graph.shown_text import as_data
from kg_retrievers.serving.workers import BusyError

_LOGGER = logging.getLogger(__name__)

#: The most characters of a reason.
LONGEST_REASON = 2_000

#: The HTTP status of each kind of error; the first that fits.
_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (BusyError, 503),
    (errors.RefusalError, 422),
    (errors.MissingExtraError, 501),
    (errors.DatabaseUnavailableError, 503),
    (errors.DatabaseLoginError, 503),
    (errors.DatabaseTimeoutError, 504),
    (errors.BudgetError, 504),
    (errors.DatabaseQueryError, 422),
    (errors.ModelCallError, 502),
    (errors.InvalidArgumentError, 400),
    (errors.ReplyError, 400),
    (errors.PatternError, 400),
    (errors.QuerySafetyError, 400),
)

#: Said of an error that is a mistake in this package.
_UNKNOWN = "The server failed at this request."

#: What to do next where an error says nothing of it.
NEXT_STEP = "Look at the schema for what the graph holds, and at /api/about for the methods."


class RequestError(KGRetrieversError):
    """A request cannot be read. `status` is that of HTTP."""

    def __init__(self, status: int, message: str, next_step: str) -> None:
        """Keep the status beside the message and what to do next."""
        super().__init__(message, hint_python=next_step)
        self.status = status


def describe(error: Exception) -> dict[str, Any]:
    """Return an error as JSON: `{"error", "next_step", "status"}`.

    One that no user can mend is logged under a number, and the number is what the user is told.
    """
    if not isinstance(error, KGRetrieversError):
        number = uuid4().hex[:8]
        _LOGGER.error("request %s failed", number, exc_info=error)
        told = f"Ask again; the server's log has the cause under {number}."
        return {"error": _UNKNOWN, "next_step": told, "status": 500}
    message, hint = as_data(error.message), as_data(error.hint_shell or NEXT_STEP)
    return {"error": message[:LONGEST_REASON], "next_step": hint[:LONGEST_REASON], "status": _status_of(error)}


def error_response(error: Exception) -> JSONResponse:
    """Return the response for an error."""
    told = describe(error)
    status = told.pop("status")
    headers = {"Retry-After": "5"} if status == 503 else None
    return JSONResponse(told, status, headers=headers)


def _status_of(error: KGRetrieversError) -> int:
    if isinstance(error, RequestError):
        return error.status
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
