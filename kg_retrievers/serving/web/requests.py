"""How a request is read, and the reply to one that cannot be answered.

A request holds never more than is needed. A reply without an answer is JSON with the reason and the next step, never a
traceback.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse

from kg_retrievers import errors
from kg_retrievers.errors import InvalidArgumentError, KGRetrieversError
from kg_retrievers.graph.validation import reasons
from kg_retrievers.graph.verbalize import as_data
from kg_retrievers.questions.follow_up import MOST_TURNS, Turn
from kg_retrievers.serving.workers import BusyError

_LOGGER = logging.getLogger(__name__)

#: The most characters of a reason.
LONGEST_REASON = 2_000

#: The HTTP status of each kind of error. The first that fits counts.
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

#: The next step if an error names none.
NEXT_STEP = "Look at the schema for what the graph holds, and at /api/about for the methods."


class RequestError(KGRetrieversError):
    """A request cannot be read. `status` is the HTTP status."""

    def __init__(self, status: int, message: str, next_step: str) -> None:
        """Keep the status beside the message and what to do next."""
        super().__init__(message, hint_python=next_step)
        self.status = status


def describe(error: Exception) -> dict[str, Any]:
    """Return an error as JSON: `{"error", "next_step", "status"}`.

    An error that no user can mend is logged under a number, and the user gets the number.
    """
    if not isinstance(error, KGRetrieversError):
        number = uuid4().hex[:8]
        _LOGGER.error("request %s failed", number, exc_info=error)
        told = f"Ask again; the server's log has the cause under {number}."
        return {"error": _UNKNOWN, "next_step": told, "status": 500}
    is_command = "kg-retrievers " in error.hint_shell
    message, hint = as_data(error.message), as_data(NEXT_STEP if is_command else error.hint_shell or NEXT_STEP)
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    status = error.status if isinstance(error, RequestError) else status
    return {"error": message[:LONGEST_REASON], "next_step": hint[:LONGEST_REASON], "status": status}


def error_response(error: Exception) -> JSONResponse:
    """Return the response for an error."""
    told = describe(error)
    status = told.pop("status")
    headers = {"Retry-After": "5"} if status == 503 else None
    return JSONResponse(told, status, headers=headers)


#: The most bytes of a body, and the most seconds that it may take.
BODY_BYTES, BODY_SECONDS = 65_536, 10.0

#: The most characters of a question, of the name of an entity or a method, and of a text that a person edits.
QUESTION, NAME, EDITED = 2_000, 1_000, 30_000

#: The most pieces of evidence of an answer.
MOST_EVIDENCE = 50

Question = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=QUESTION)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=NAME)]
EditedTexts = Annotated[dict[str, Annotated[str, StringConstraints(max_length=EDITED)]], Field(max_length=1)]
Body = TypeVar("Body", bound="Strict")


class Strict(BaseModel):
    """An object of JSON without further keys, whose values are of their types as they are."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Ask(Strict):
    """A question.

    Attributes:
        question: It.
        method: The method that is asked; the server's default where none is named.
        k: How much evidence is wanted.
        min_confidence: How likely right the answers must be.
        seed_entities: The entities that it is about.
        turns: The last questions before it, as the answers gave them under "turn".
        edited: What a person wrote in place of a stage, as a text, by its key in the state: see `FORMS`.
    """

    question: Question
    method: Name | None = None
    k: Annotated[int, Field(ge=1, le=MOST_EVIDENCE)] | None = None
    min_confidence: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    seed_entities: Annotated[list[Name], Field(max_length=20)] | None = None
    turns: Annotated[list[Turn], Field(max_length=MOST_TURNS)] = Field(default_factory=list)
    edited: EditedTexts = Field(default_factory=dict)


async def read_body(request: Request, kind: type[Body], most: int = BODY_BYTES) -> Body:
    """Return the body of a request.

    Args:
        request: The request.
        kind: What its body holds.
        most: The most bytes of it.

    Raises:
        RequestError: If it is no JSON, too large, too slow, or of another form.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RequestError(415, "The body is not said to be JSON.", "Send Content-Type: application/json.")
    try:
        async with asyncio.timeout(BODY_SECONDS):
            content = await _read(request, most)
    except TimeoutError:
        raise RequestError(408, "The body took too long.", "Send it at once.") from None
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        form = ", ".join(kind.model_fields)
        raise RequestError(400, f"The body cannot be used: {_told(error)}", f"Its keys are {form}.") from None


def _told(error: ValidationError) -> str:
    if any(problem["type"] == "json_invalid" for problem in error.errors()):
        return "it is no JSON."
    return reasons(error, {})


async def _read(request: Request, most: int) -> bytes:
    stated = request.headers.get("content-length", "0")
    if not (stated.isascii() and stated.isdecimal() and len(stated) < 20) or int(stated) > most:
        raise _too_large(most)
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > most:
            raise _too_large(most)
    return bytes(content)


def _too_large(most: int) -> RequestError:
    return RequestError(413, f"The body has more than {most:,} bytes.", "Send a shorter one.")


# --- what a person edits: the work of a stage as JSON -----------------------------------------------------------------
#
# `read_text` checks the form alone. The retriever checks the content like the reply of a model.

_PATTERN = (
    'As JSON: {"triples": [["Her", "directed_by", {"unknown": "director"}]], "target": "director"}. '
    'With "directed": true or "typed": true, directions or types count.'
)

#: How the editable keys of the state are written.
FORMS: dict[str, str] = {
    "pattern": _PATTERN,
    "readings": _PATTERN,
    "relation_paths": 'As JSON, the better one first: [{"relations": [["starring", "backward"], '
    '["has_genre", "forward"]]}]. With "either", a relation is crossed both ways.',
    "cypher": "As JSON, queries that only read and return relationships: "
    '[{"query": "MATCH (f)-[r:starring]->(p) WHERE p.key = $name RETURN r", "parameters": {"name": "Amy Adams"}}].',
}

# How something came about. Nobody edits it.
_ABOUT = frozenset(("source", "from", "score", "confidence", "unplaced", "nearest", "lacking", "truncated"))


def write_text(key: str, value: Any) -> str:
    """Return the likeliest reading, a pattern, paths or queries of a state as JSON, with a line for each part."""
    if key == "readings":
        return write_text("pattern", value[0])
    if isinstance(value, list):
        parts = [json.dumps(_without_origin(one), ensure_ascii=False) for one in value]
        return "[\n{}\n]".format(",\n".join(parts))
    kept = _without_origin(value).items()
    parts = [f"{json.dumps(name)}: {json.dumps(part, ensure_ascii=False)}" for name, part in kept]
    return "{{\n{}\n}}".format(",\n".join(parts))


def _without_origin(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in value.items() if name not in _ABOUT}


def read_text(key: str, text: str) -> Any:
    """Return the data that a person wrote under a key of `FORMS`.

    Raises:
        InvalidArgumentError: If nobody can edit this key, or the text is no JSON.
    """
    if key not in FORMS:
        raise InvalidArgumentError(f"{key!r:.100} cannot be edited; {', '.join(FORMS)} can.")
    try:
        read = json.loads(text)
        return [read] if key == "readings" else read
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"This is no JSON: {error}.", hint_python=FORMS[key]) from None
