"""Who may ask a server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.serving.access import Access, AccessMiddleware, is_loopback, read_token

TOKEN = "0123456789abcdef"
LOCAL = Access.of_binding("127.0.0.1", None)
REMOTE = Access.of_binding("0.0.0.0", TOKEN, open_paths=["/"])


def status(access: Access, path: str = "/api/about", **headers: str) -> int | None:
    """The status of the refusal of a request; None where it is let in."""
    sent = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    refused = access.refusal(path, sent)
    return refused and refused.status


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8000", "localhost:1", "[::1]:80", "LOCALHOST", "localhost."])
def test_names_of_this_machine_are_let_in(host: str) -> None:
    assert status(LOCAL, host=host) is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "evil.example@127.0.0.1",
        "127.0.0.1/",
        "127.0.0.1?a",
        "127.0.0.1:",
        "127.0.0.1:8000:1",
        " 127.0.0.1",
        "127.0.0.1#",
        "[::1",
        "",
    ],
)
def test_a_name_that_is_made_to_lead_here_is_refused(host: str) -> None:
    assert status(LOCAL, host=host) == 421


@pytest.mark.parametrize(
    ("access", "headers", "wanted"),
    [
        (LOCAL, [], 400),
        (LOCAL, [(b"host", b"localhost"), (b"host", b"evil.example")], 400),
        (REMOTE, [(b"host", b"a"), *[(b"authorization", f"Bearer {TOKEN}".encode())] * 2], 401),
    ],
)
def test_a_header_that_is_needed_comes_once(access: Access, headers: list[tuple[bytes, bytes]], wanted: int) -> None:
    refused = access.refusal("/api/about", headers)
    assert refused is not None
    assert refused.status == wanted


@pytest.mark.parametrize(
    ("headers", "wanted"),
    [
        ({"origin": "http://localhost:8000"}, None),
        ({"origin": "https://localhost:8000"}, None),
        ({"origin": "http://localhost:9000"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "file://localhost:8000"}, 403),
        ({"origin": "http://localhost:8000.evil.example"}, 403),
        ({"sec_fetch_site": "same-origin"}, None),
        ({"sec_fetch_site": "none"}, None),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
    ],
)
def test_pages_of_other_sites_are_refused(headers: dict[str, str], wanted: int | None) -> None:
    assert status(LOCAL, host="localhost:8000", **headers) == wanted


def test_a_link_on_another_site_leads_to_the_page() -> None:
    assert status(REMOTE, "/", host="films.example", sec_fetch_site="cross-site") is None


@pytest.mark.parametrize(
    ("authorization", "wanted"),
    [
        (f"Bearer {TOKEN}", None),
        (f"bearer  {TOKEN}", None),
        (f"Basic {TOKEN}", 401),
        (TOKEN, 401),
        (f"Bearer {TOKEN}0", 401),
        (f"Bearer {TOKEN[:-1]}", 401),
        ("Bearer \xe9", 401),
        ("Bearer ", 401),
    ],
)
def test_the_token_is_asked_for(authorization: str, wanted: int | None) -> None:
    assert status(REMOTE, host="films.example", authorization=authorization) == wanted
    assert status(REMOTE, host="films.example") == 401
    assert status(REMOTE, "/", host="films.example") is None


def test_an_address_that_others_reach_takes_a_token() -> None:
    for host in ("0.0.0.0", "::", "192.168.1.7", "films.example"):
        assert not is_loopback(host)
        with pytest.raises(InvalidArgumentError, match="no token is set"):
            Access.of_binding(host, None)


@pytest.mark.parametrize("token", ["short", "", "a" * 15, "å" * 20, "a" * 10 + "\n" + "b" * 10])
def test_a_token_that_can_be_guessed_or_not_be_sent_is_refused(token: str) -> None:
    with pytest.raises(InvalidArgumentError, match="at least 16"):
        Access.of_binding("0.0.0.0", token)


def test_each_token_has_a_line_with_its_view() -> None:
    access = Access.of_binding("0.0.0.0", f'{TOKEN} {{"view": {{"tenant": "a"}}}}\n0{TOKEN}\t{{"as_of": "2015"}}\n')
    assert access.tokens == {TOKEN: {"where": {"tenant": "a"}}, f"0{TOKEN}": {"as_of": "2015"}}
    for token in access.tokens:
        assert access.shown_token([(b"authorization", f"Bearer {token}".encode())]) == token
    assert status(access, host="a", authorization=f"Bearer 1{TOKEN}") == 401
    assert Access.of_binding("0.0.0.0", f"{TOKEN}\n0{TOKEN}").tokens == {TOKEN: {}, f"0{TOKEN}": {}}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "has no view, but others have"),
        (" no-json", "no view. Write a line such as: TOKEN"),
        (" null", "no view"),
        (' {"tenant": "a"}', "no view"),
        (' {"view": null}', "no view"),
        (' {"view": ["tenant"]}', "no view"),
        (' {"view": {"tenant": "a", "tenant": "b"}}', "no view"),
        (' {"as_of": 2015}', "no view"),
        (' {"validity": ["since", "until"]}', "no view"),
        (' {"as_of": "2015", "validity": ["since"]}', "no view"),
        (f" {'[' * 100_000}", "no view"),
        (" {}\n" + TOKEN, "line 3 is there before"),
    ],
)
def test_a_line_that_cannot_be_read_shows_nobody_anything(line: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message) as raised:
        Access.of_binding("127.0.0.1", f"first-{TOKEN} {{}}\n{TOKEN}{line}")
    assert TOKEN not in str(raised.value)


def test_a_token_comes_from_a_file_or_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n", "utf-8")
    assert read_token(file, {"KG_RETRIEVERS_TOKEN": "other"}) == TOKEN
    assert read_token(None, {"KG_RETRIEVERS_TOKEN": f" {TOKEN} "}) == TOKEN
    assert read_token(None, {"KG_RETRIEVERS_TOKEN": " "}) is None
    with pytest.raises(InvalidArgumentError, match="cannot be read"):
        read_token(tmp_path / "nothing")


def test_the_middleware_answers_what_it_refuses_and_passes_on_the_rest() -> None:
    asked: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        asked.append(scope["type"])

    async def nothing() -> dict[str, Any]:
        return {}

    def call(kind: str, **headers: bytes) -> list[Any]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": kind, "path": "/api", "headers": [(name.encode(), value) for name, value in headers.items()]}
        asyncio.run(AccessMiddleware(app, REMOTE)(scope, nothing, send))
        return sent

    start, body = call("http", host=b"a")
    assert start["status"] == 401
    assert (b"www-authenticate", b"Bearer") in start["headers"]
    assert set(json.loads(body["body"])) == {"error", "next_step"}
    assert call("websocket", host=b"a") == [{"type": "websocket.close", "code": 1008}]
    assert asked == []
    assert call("http", host=b"a", authorization=f"Bearer {TOKEN}".encode()) == []
    call("lifespan")
    assert asked == ["http", "lifespan"]
