"""Who may ask a server: the names it goes by, the pages that may call it, and tokens with the view of each.

A server on this machine is reached by every page that a browser shows: by its address, or by a name that is made to
lead to it (DNS rebinding). So the headers `Host` and `Origin` are checked, and a server that others reach asks for a
token, which no browser sends by itself.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kg_retrievers.errors import InvalidArgumentError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

#: The names of this machine for itself.
LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))

#: The environment variable that holds the token, or a line for each.
TOKEN_VARIABLE = "KG_RETRIEVERS_TOKEN"

#: The path at which a server says whether it works. It needs no token.
HEALTH_PATH = "/healthz"

#: The fewest characters of a token, so that none can be guessed.
SHORTEST_TOKEN = 16

#: The values of `Sec-Fetch-Site` if the page of another site asks.
FOREIGN = frozenset(("cross-site", "same-site"))


#: A Host header: a name, or an address in brackets, and a port if wanted.
_HOST = re.compile(r"([a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")


@dataclass(frozen=True)
class Access:
    """Who may ask.

    Attributes:
        tokens: What a request shows as `Authorization: Bearer TOKEN`, with the arguments of `GraphIndex.view` for what
            it may see; none if every request of this machine may ask.
        hosts: The names that the server goes by, without port; None for any, which takes a token.
        open_paths: The paths that need no token, since they show nothing of the graph.
    """

    tokens: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    hosts: frozenset[str] | None = LOOPBACK
    open_paths: frozenset[str] = frozenset()

    @classmethod
    def of_binding(cls, host: str, tokens: str | None, open_paths: Iterable[str] = ()) -> Access:
        """Return who may ask a server that listens on an address.

        Args:
            host: The address or name.
            tokens: A token in each line, with its view behind it, if there are some: see `read_view`.
            open_paths: The paths that need no token.

        Raises:
            InvalidArgumentError: If others can reach the address, and there is no token; a token is too short; or a
                view cannot be read, or is missing behind one token and not behind another.
        """
        read = {} if tokens is None else _read_tokens(tokens)
        if is_loopback(host):
            return cls(read, LOOPBACK | {host}, frozenset(open_paths))
        if tokens is None:
            raise InvalidArgumentError(
                f"{host!r:.100} can be reached by others, and no token is set.",
                hint_python=f"{_MAKE_TOKEN} Or listen on 127.0.0.1.",
            )
        return cls(read, None, frozenset(open_paths))

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
        """Whether a request shows a token, once. Always true if there is none."""
        return not self.tokens or self.shown_token(headers) is not None

    def shown_token(self, headers: Iterable[tuple[bytes, bytes]]) -> str | None:
        """Return the token that a request shows, or None if it shows none, a wrong one or several."""
        values = [value.decode("latin-1") for name, value in headers if name == b"authorization"]
        kind, _, text = values[0].partition(" ") if len(values) == 1 else ("", "", "")
        shown = text.strip().encode("latin-1")
        same = [token for token in self.tokens if hmac.compare_digest(shown, token.encode())]  # takes as long for any
        return same[0] if same and kind.lower() == "bearer" else None


@dataclass(frozen=True)
class Refusal:
    """A refusal of a request: the HTTP status, the reason, and the next step."""

    status: int
    error: str
    next_step: str


#: How a token is made.
_MAKE_TOKEN = f"Set {TOKEN_VARIABLE}, or write a token into a file: openssl rand -hex 32 > FILE, and --token-file FILE."

#: How a view is written.
_MAKE_VIEW = 'Write a line such as: TOKEN {"view": {"tenant": "a"}, "as_of": "2015-06-30"}.'

_NO_TOKEN = Refusal(401, "The server asks for a token.", "Send it as `Authorization: Bearer TOKEN`.")


class AccessMiddleware:
    """Refuses the requests that an `Access` refuses, as JSON `{"error", "next_step"}`, and passes on all others.

    Args:
        app: The application that is asked then; any ASGI application.
        access: Who may ask.
        apps: What answers requests in its place, by the token that they show, or None; one for each token.
    """

    def __init__(self, app: ASGIApp, access: Access, apps: Mapping[str | None, ASGIApp] | None = None) -> None:
        """Keep the applications and who may ask them."""
        self.app, self.access, self.apps = app, access, apps

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        refused = self.access.refusal(scope["path"], scope["headers"]) if scope["type"] == "http" else None
        if refused is None:
            app = self.app
            if self.apps is not None and scope["type"] == "http":
                app = self.apps[self.access.shown_token(scope["headers"])]
            await app(scope, receive, send)
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


def read_object(text: str) -> dict[str, Any]:
    """Return a JSON object that has no key twice.

    Raises:
        ValueError: If the text is none.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(found := dict(pairs)) < len(pairs):
            raise ValueError
        return found

    try:
        found = json.loads(text, object_pairs_hook=once)
    except RecursionError:
        raise ValueError from None
    if not isinstance(found, dict):
        raise ValueError
    return found


def read_view(text: str) -> dict[str, Any]:
    """Return the arguments of `GraphIndex.view` that a JSON object holds, whose keys are the options of the shell.

    Raises:
        ValueError: If the text is no such object.

    Example:
        >>> read_view('{"view": {"tenant": "a"}, "as_of": "2015-06-30", "validity": ["since", "until"]}')
        {'where': {'tenant': 'a'}, 'as_of': '2015-06-30', 'validity': ['since', 'until']}
    """
    found = read_object(text)
    kinds = {"view": dict, "as_of": str, "validity": list}
    if any(not isinstance(value, kinds.get(name, ())) for name, value in found.items()):
        raise ValueError
    names = found.get("validity", ["", ""])
    if len(names) != 2 or not all(isinstance(name, str) for name in names) or found.keys() == {"validity"}:
        raise ValueError
    return {"where" if name == "view" else name: value for name, value in found.items()}


def _read_tokens(text: str) -> dict[str, dict[str, Any]]:
    """Return the views of tokens, of which each has a line; no message shows what stands there."""
    views: dict[str, dict[str, Any] | None] = {}
    for number, line in enumerate(text.strip().splitlines() or [""], 1):
        token, *view = line.split(None, 1) or [""]
        who = f"the token in line {number}"
        if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
            raise InvalidArgumentError(
                f"{who} has {len(token)} characters; wanted at least {SHORTEST_TOKEN}, all of them ASCII.",
                hint_python=_MAKE_TOKEN,
            )
        if token in views:
            raise InvalidArgumentError(f"{who} is there before. Leave out one of the two.")
        try:
            views[token] = read_view(view[0]) if view else None
        except ValueError:
            raise InvalidArgumentError(f"{who} has something behind it that is no view. {_MAKE_VIEW}") from None
    without = [number for number, view_of in enumerate(views.values(), 1) if view_of is None]
    if 0 < len(without) < len(views):
        raise InvalidArgumentError(
            f"the token in line {without[0]} has no view, but others have. {_MAKE_VIEW} {{}} is the whole graph."
        )
    return {token: view_of or {} for token, view_of in views.items()}


def read_token(file: str | Path | None, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the tokens of a file, else those of the environment variable `KG_RETRIEVERS_TOKEN`, else None.

    Raises:
        InvalidArgumentError: If the file cannot be read.
    """
    if file is None:
        return environment.get(TOKEN_VARIABLE, "").strip() or None
    try:
        return Path(file).read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        raise InvalidArgumentError(f"the file of the token, {str(file)!r:.200}, cannot be read: {error}.") from error


def _name_of(host: str) -> str:
    """Return the name in a Host header, in small letters and without port; nothing if it has another form."""
    found = _HOST.fullmatch(host.lower())
    return found[1].strip("[]").rstrip(".") if found else ""


def _foreign_origin(origin: str, host: str) -> bool:
    """Whether an origin is not the server that the Host header names."""
    scheme, separator, place = origin.partition("://")
    return scheme not in ("http", "https") or not separator or place.lower() != host.lower()
