"""Who may ask a server: the names it goes by, the pages that may call it, and a token.

A server on this machine is reached by every page that a browser shows: by its address, or by a name that is made to
lead to it (DNS rebinding). So the headers `Host` and `Origin` are checked, and a server that others reach asks for a
token, which no browser sends by itself.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kg_retrievers.errors import InvalidArgumentError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

#: The names of this machine for itself.
LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))

#: The environment variable that holds the token.
TOKEN_VARIABLE = "KG_RETRIEVERS_TOKEN"

#: Where a server says whether it works; it needs no token.
HEALTH_PATH = "/healthz"

#: The fewest characters of a token, so that none can be guessed.
SHORTEST_TOKEN = 16

#: What `Sec-Fetch-Site` says where the page of another site asks.
FOREIGN = frozenset(("cross-site", "same-site"))


@dataclass(frozen=True)
class Access:
    """Who may ask.

    Attributes:
        token: What a request shows as `Authorization: Bearer TOKEN`; None where every request of this machine may ask.
        hosts: The names that the server goes by, without port; None for any, which takes a token.
        open_paths: The paths that need no token, since they show nothing of the graph.
    """

    token: str | None = None
    hosts: frozenset[str] | None = LOOPBACK
    open_paths: frozenset[str] = frozenset()

    @classmethod
    def of_binding(cls, host: str, token: str | None, open_paths: Iterable[str] = ()) -> Access:
        """Return who may ask a server that listens on an address.

        Args:
            host: The address or name.
            token: The token, if there is one.
            open_paths: The paths that need no token.

        Raises:
            InvalidArgumentError: If others can reach the address, and there is no token; or the token is too short.
        """
        if token is not None and (len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable()):
            raise InvalidArgumentError(
                f"the token has {len(token)} characters; wanted at least {SHORTEST_TOKEN}, all of them ASCII.",
                hint_python=_MAKE_TOKEN,
            )
        if is_loopback(host):
            return cls(token, LOOPBACK | {host}, frozenset(open_paths))
        if token is None:
            raise InvalidArgumentError(
                f"{host!r:.100} can be reached by others, and no token is set.",
                hint_python=f"{_MAKE_TOKEN} Or listen on 127.0.0.1.",
            )
        return cls(token, None, frozenset(open_paths))

    def refusal(self, path: str, headers: Sequence[tuple[bytes, bytes]]) -> Refusal | None:
        """Return why a request is refused, or None.

        Args:
            path: Its path.
            headers: Its headers, with names in small letters, as ASGI has them.
        """
        found: dict[str, list[str]] = {}
        for name, value in headers:
            found.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
        hosts = found.get("host", [])
        if len(hosts) != 1:
            return Refusal(400, "The request names no host, or several.", "Send one Host header.")
        if self.hosts is not None and _name_of(hosts[0]) not in self.hosts:
            return Refusal(
                421,
                "The server does not go by the name in the Host header.",
                f"Open it as {' or '.join(sorted(self.hosts - {'::1'}))}.",
            )
        if any(_foreign_origin(origin, hosts[0]) for origin in found.get("origin", [])):
            return Refusal(403, "The request comes from a page of another site.", "Open the page of this server.")
        if path in self.open_paths:
            return None
        if FOREIGN & {value.lower() for value in found.get("sec-fetch-site", [])}:
            return Refusal(403, "The request comes from a page of another site.", "Open the page of this server.")
        return None if self.shows_token(headers) else _NO_TOKEN

    def shows_token(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Whether a request shows the token, once; always where there is none."""
        if self.token is None:
            return True
        values = [value.decode("latin-1") for name, value in headers if name == b"authorization"]
        kind, _, shown = values[0].partition(" ") if len(values) == 1 else ("", "", "")
        same = hmac.compare_digest(shown.strip().encode("latin-1"), self.token.encode())  # takes as long for any
        return kind.lower() == "bearer" and same


@dataclass(frozen=True)
class Refusal:
    """Why a request is refused: the HTTP status, the reason, and what to do next."""

    status: int
    error: str
    next_step: str


#: How a token is made.
_MAKE_TOKEN = f"Set {TOKEN_VARIABLE}, or write a token into a file: openssl rand -hex 32 > FILE, and --token-file FILE."

_NO_TOKEN = Refusal(401, "The server asks for a token.", "Send it as `Authorization: Bearer TOKEN`.")


class AccessMiddleware:
    """Refuses the requests that an `Access` refuses, as JSON `{"error", "next_step"}`; passes on all others.

    Args:
        app: The application that is asked then; any ASGI application.
        access: Who may ask.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        """Keep the application and who may ask it."""
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        refused = self.access.refusal(scope["path"], scope["headers"]) if scope["type"] == "http" else None
        if refused is None:
            await self.app(scope, receive, send)
            return
        from starlette.responses import JSONResponse  # an extra, which the help does not need

        headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
        if refused.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        told = {"error": refused.error, "next_step": refused.next_step}
        await JSONResponse(told, refused.status, headers)(scope, receive, send)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address.

    Example:
        >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0"), is_loopback("films.example")
        (True, False, False)
    """
    if host.lower() in LOOPBACK:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_token(file: str | Path | None, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the token of a file, else that of the environment variable `KG_RETRIEVERS_TOKEN`, else None.

    Raises:
        InvalidArgumentError: If the file cannot be read.
    """
    if file is None:
        return environment.get(TOKEN_VARIABLE, "").strip() or None
    try:
        return Path(file).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"the file of the token, {str(file)!r:.200}, cannot be read: {error}.") from error


def _name_of(host: str) -> str:
    """Return the name in a Host header, in small letters and without port; nothing where it cannot be read."""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _foreign_origin(origin: str, host: str) -> bool:
    """Whether an origin is not the server that the Host header names."""
    scheme, separator, place = origin.partition("://")
    return scheme not in ("http", "https") or not separator or place.lower() != host.lower()
