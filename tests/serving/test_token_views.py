"""Each token sees its own view of a graph, whichever way it asks."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from web_server import WebServer

from kg_retrievers import GraphIndex, KnowledgeGraph, default_embeddings
from kg_retrievers.datasets import Question
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.serving.access import HEALTH_PATH, Access
from kg_retrievers.serving.mcp.server import http_app
from kg_retrievers.serving.service import GraphService
from kg_retrievers.serving.web.app import OPEN_PATHS, PAGE, make_app

#: A token of each tenant, and one that sees all.
A, B, ALL = "token-of-tenant-a", "token-of-tenant-b", "token-of-all-tenants"
TOKENS = f'{A} {{"view": {{"tenant": ["a", null]}}}}\n{B} {{"view": {{"tenant": ["b", null]}}}}\n{ALL} {{}}\n'

#: The names that the facts of each tenant alone hold; the last, an alias, is shown to nobody who does not ask for it.
NAMES = {
    A: ["anselm", "quarry", "alderworks", "foreman of", "amberdesk", "quarrel source", "artisan", "old anselm"],
    B: ["brunhilde", "stoker", "birchworks", "captain of", "berylhall", "bistro source", "boatman", "old brunhilde"],
}
FACTS: list[Any] = [
    ("Anselm Quarry", "foreman of", "Alderworks", {"tenant": "a", "amberdesk": 7, "source": "quarrel source"}),
    ("Anselm Quarry", "lives in", "Dover", {"tenant": "a"}),
    ("Brunhilde Stoker", "captain of", "Birchworks", {"tenant": "b", "berylhall": 8, "source": "bistro source"}),
    ("Brunhilde Stoker", "lives in", "Dover", {"tenant": "b"}),
    ("Carol Finch", "lives in", "Dover"),
]

#: Questions and names that come near to those of both tenants, and repeat none of them.
QUESTIONS = [
    "Who is forman of Alderwork?",
    "Who is captan of Birchwork?",
    "Who lives in Dover?",
    "How many live in Dover?",
    "Where does Ansel Quary live?",
    "Where does Brunhild Stokr live?",
]
NEAR = ["Ansel Quary", "Brunhild Stokr", "Old Ansel", "Old Brunhild", "Alderwork", "Birchwork", "Dover", "Carol Finch"]


@pytest.fixture(scope="module")
def service() -> GraphService:
    types = {"Anselm Quarry": ["artisan"], "Brunhilde Stoker": ["boatman"], "Carol Finch": ["clerk"]}
    aliases = {"Anselm Quarry": ["Old Anselm"], "Brunhilde Stoker": ["Old Brunhilde"]}
    graph = KnowledgeGraph.from_triples(FACTS, types=types, aliases=aliases)
    return GraphService(GraphIndex.build(graph, default_embeddings()))


@pytest.fixture(scope="module")
def page(service: GraphService) -> Iterator[WebServer]:
    with WebServer(make_app(service, access=Access.of_binding("127.0.0.1", TOKENS, OPEN_PATHS))) as running:
        yield running


@pytest.fixture(scope="module")
def mcp(service: GraphService) -> Iterator[str]:
    with WebServer(http_app(service, Access.of_binding("127.0.0.1", TOKENS, [HEALTH_PATH]))) as running:
        yield running.address + "mcp"


def bodies(path: str, methods: list[str]) -> list[dict[str, Any]]:
    """What is sent to a path by POST."""
    asked: list[dict[str, Any]] = [
        {"question": question, "method": method} for question in QUESTIONS[:3] for method in methods
    ]
    asked += [{"question": question} for question in QUESTIONS[3:]]
    seeded: list[dict[str, Any]] = [
        {"question": "Who lives there?", "method": "neighborhood", "seed_entities": [name]} for name in NEAR
    ]
    pattern = json.dumps({"triples": [[{"unknown": "x"}, "captan of", "Birchwork"]], "target": "x"})
    edited = [{"question": "Who?", "method": "simgrag", "edited": {"pattern": pattern}}]
    query = json.dumps([{"query": "MATCH (n)-[r]->(m) RETURN r", "parameters": {}}])
    edited += [{"question": "Who lives in Dover?", "method": "sg-rag", "edited": {"cypher": query}}]
    return {
        "/api/ask": [*asked, *seeded, *edited],
        "/api/expand": [{"entity": name, "facts": []} for name in NEAR],
        "/api/why-not": [{"question": question, "entity": name} for question in QUESTIONS[:3] for name in NEAR],
    }[path]


def all_replies(page: WebServer, token: str) -> Iterator[str]:
    """The replies of all routes to a token."""
    app = make_app(GraphService(GraphIndex.build(KnowledgeGraph.from_triples(FACTS), default_embeddings())))
    assert app.apps is not None
    paths = {route.path for route in app.apps[None].routes} - {*PAGE}  # type: ignore[attr-defined]
    with httpx.Client(base_url=page.address, headers={"Authorization": f"Bearer {token}"}, timeout=120) as client:
        methods = [one["name"] for one in client.get("/api/about").json()["methods"]]
        assert {"simgrag", "sg-rag", "rog", "kaping", "neighborhood"} <= {*methods}
        for path in sorted(paths | {"/api/nothing"}):
            names = NEAR if path == "/api/entities" else [""]
            replies = [client.get(path, params={"text": name} if name else {}) for name in names]
            if replies[0].status_code == 405:
                replies += [client.post(path, json=body) for body in bodies(path, methods)]
            assert all(reply.status_code < 500 for reply in replies), path
            yield from (reply.text for reply in replies)


def check(replies: list[str], token: str) -> None:
    """Check that a token sees its own names, and none of the other tenant."""
    text = "\n".join(replies).casefold()
    for one, names in NAMES.items():
        seen = [name for name in names if name in text]
        assert seen[:7] == names[:7] if token in (one, ALL) else not seen, seen


@pytest.mark.parametrize("token", [A, B, ALL])
def test_no_route_of_the_page_shows_what_a_token_may_not_see(page: WebServer, token: str) -> None:
    check([*all_replies(page, token)], token)


@asynccontextmanager
async def connected(mcp: str, token: str) -> AsyncIterator[Client]:
    headers = {"authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=120) as http,
        Client(streamable_http_client(mcp, http_client=http)) as client,
    ):
        yield client


@pytest.mark.parametrize("token", [A, B, ALL])
async def test_no_tool_shows_what_a_token_may_not_see(mcp: str, token: str) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [("relations_of", {}), ("nothing", {}), ("ask", {"qestion": "Who?"})]
    calls += [("ask", {"question": one}) for one in QUESTIONS]
    calls += [("relations_of", {"words": word}) for word in ("captan of", "forman of")]
    calls += [("search_entities", one) for name in NEAR for one in ({"text": name}, {"type": name})]
    calls += [(tool, {"entity": name}) for name in NEAR for tool in ("describe_entity", "relations_of", "facts")]
    calls += [("facts", {"entity": name, "relation": "captan of"}) for name in NEAR]
    calls += [("find_paths", {"entities": [name, other]}) for name in NEAR for other in ("Dover", "Carol Finch")]
    patterns = [[["UNKNOWN x 1", relation, name]] for relation in ("captan of", "lives in") for name in NEAR]
    patterns += [[["UNKNOWN x 1", "UNKNOWN relation 1", "UNKNOWN y 1"]], [["UNKNOWN x 1", "lives in", "UNKNOWN y 1"]]]
    calls += [("run_pattern", {"triples": pattern}) for pattern in patterns]
    async with connected(mcp, token) as client:
        tools = (await client.list_tools()).tools
        assert {name for name, _ in calls} - {"nothing"} == {tool.name for tool in tools}
        replies = [tool.model_dump_json() for tool in tools]
        replies += [(await client.call_tool(name, arguments)).model_dump_json() for name, arguments in calls]
    check(replies, token)


def test_a_session_of_one_token_is_closed_to_another(mcp: str) -> None:
    started = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    accepts = {"Accept": "application/json, text/event-stream"}

    def send(token: str, method: str, **more: Any) -> httpx.Response:
        headers = accepts | {"Authorization": f"Bearer {token}"} | more.pop("headers", {})
        body = {"jsonrpc": "2.0", "id": 1, "method": method, **more}
        return httpx.post(mcp, json=body, headers=headers, timeout=60)

    session = {"Mcp-Session-Id": send(A, "initialize", params=started).headers["mcp-session-id"]}
    assert send(A, "tools/list", headers=session).status_code == 200
    assert send(B, "tools/list", headers=session).status_code == 404


def test_sizes_are_those_of_the_view(page: WebServer, mcp: str) -> None:
    for address in (page.address, mcp.removesuffix("mcp")):
        tokens = [{"Authorization": f"Bearer {one}"} for one in (A, B, ALL, "no-token-of-this")]
        none, *told, wrong = [httpx.get(address + "healthz", headers=one).json() for one in ({}, *tokens)]
        assert none == {"status": "ok"}
        assert [(one["entities"], one["triples"]) for one in told] == [(4, 3), (4, 3), (6, 5)]
        assert wrong.keys() == {"status"}


@pytest.mark.parametrize(
    ("view", "message"),
    [
        ('{"view": {"tenat": "a"}}', "line 2: view: no fact has the attribute 'tenat'; did you mean 'tenant'?"),
        ('{"view": {"tenant": "c"}}', "line 2: view: no fact satisfies these conditions."),
        ('{"as_of": "soon"}', "line 2: view: as_of must be a date"),
        ('{"as_of": "2001", "validity": ["since", "until"]}', "line 2: view: validity: no fact has the attribute"),
    ],
)
def test_a_view_that_cannot_be_made_stops_the_server(service: GraphService, view: str, message: str) -> None:
    access = Access.of_binding("127.0.0.1", f"{ALL} {{}}\n{A} {view}", OPEN_PATHS)
    for make in (make_app, http_app):
        with pytest.raises(InvalidArgumentError, match="the token in line 2") as raised:
            make(service, access=access)
        assert message in str(raised.value)
        assert A not in str(raised.value)


def test_labelled_examples_do_not_go_with_views(service: GraphService, tmp_path: Path) -> None:
    taught = GraphService(service.index, examples=[Question("Who is captain of Birchworks?")])
    with pytest.raises(InvalidArgumentError, match="examples may name entities that the view hides"):
        taught.view(where={"tenant": "a"})
    assert taught.view() is taught
