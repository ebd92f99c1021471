"""The SDK's own client talks to `kg-retrievers mcp`, a process of its own, on stdio and over HTTP."""

import asyncio
import os
import re
import subprocess
import sys
from contextlib import contextmanager

import httpx2
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from kg_retrievers import GraphIndex, default_embeddings
from kg_retrievers.agents.bounds import DEFAULT_TOKENS, count_tokens
from kg_retrievers.sample import load_graph

TOKEN = "a-token-of-24-characters"
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "KG_RETRIEVERS_TOKEN"}

#: Calls, each with a part of its reply, and whether it is an error.
CALLS = [
    ("relations_of", {}, "171 entities, 326 facts", False),
    ("ask", {"question": "Who directed Her?"}, "Answer: Spike Jonze", False),
    ("ask", {"question": "Who is the mother of the moon?"}, "Next step: Call search_entities", False),
    ("facts", {"entity": "United States", "limit": 1000}, "United States: 38 facts", False),
    ("find_paths", {"entities": ["Her", "Alien"]}, "Chain 1:", False),
    ("run_pattern", {"triples": [["Her", "directed_by", "UNKNOWN person 1"]]}, "Answer: Spike Jonze", False),
    ("facts", {"entity": "Spike Jonz"}, "Did you mean: 'Spike Jonze'?", True),
    ("facts", {"entity": "Her", "limit": 0}, "limit must be greater than or equal to 1", True),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "films.index"
    GraphIndex.build(load_graph(), default_embeddings(), path=path)
    return str(path)


def command(folder, *more):
    return [sys.executable, "-m", "kg_retrievers.cli", "mcp", folder, *more]


def started_by_client(folder, *more, **environment):
    program, *arguments = command(folder, *more)
    return StdioServerParameters(command=program, args=arguments, env=ENVIRONMENT | environment)


def on_stdio(folder):
    return Client(started_by_client(folder))


@contextmanager
def serving(*arguments, **environment):
    """Start a server on a free port; yield its address."""
    process = subprocess.Popen(
        command(*arguments, "--http", "--port", "0"), stderr=subprocess.PIPE, text=True, env=ENVIRONMENT | environment
    )
    try:
        told = []
        for line in process.stderr:
            told.append(line)
            if found := re.search(r"MCP at (http://\S+/mcp);", line):
                yield found[1]
                break
        else:
            pytest.fail(f"the server ended: {told}")
    finally:
        process.terminate()
        process.stderr.close()
        process.wait(20)


@pytest.fixture(scope="module")
def address(folder):
    with serving(folder) as address:
        yield address


async def converse(client):
    """Make all calls, and look at each reply."""
    await client.list_tools()
    for tool, arguments, said, is_error in CALLS:
        reply = await client.call_tool(tool, arguments)
        assert (reply.is_error, said in reply.content[0].text) == (is_error, True), (tool, arguments, reply)
        assert count_tokens(reply.content[0].text) <= DEFAULT_TOKENS


@pytest.mark.heavy
async def test_a_conversation_on_stdio(folder):
    async with on_stdio(folder) as client:
        await converse(client)


async def test_a_conversation_over_http(address):
    async with Client(address) as client:
        await converse(client)


@pytest.mark.heavy
async def test_an_update_of_the_index_is_seen_after_a_restart(tmp_path):
    folder = tmp_path / "films.index"
    GraphIndex.build(load_graph(), default_embeddings(), path=folder)
    for answer in ("Spike Jonze", "Ann"):
        with serving(str(folder)) as address:
            for _ in range(2):
                async with Client(address) as client:
                    reply = await client.call_tool("ask", {"question": "Who directed Her?"})
                assert f"Answer: {answer}\n" in reply.content[0].text
                if ("Her", "directed_by", "Ann") not in GraphIndex.open(folder, default_embeddings()).graph:
                    [old] = load_graph().triples("Her", "directed_by")
                    GraphIndex.update(
                        folder, default_embeddings(), added=[("Her", "directed_by", "Ann")], removed=[old]
                    )


@pytest.mark.heavy
async def test_a_client_of_an_earlier_version_of_the_protocol_is_answered(folder, address):
    for client in (Client(address, mode="legacy"), on_stdio(folder)):
        client.mode = "legacy"
        async with client:
            reply = await client.call_tool("ask", {"question": "Who directed Her?"})
            assert "Answer: Spike Jonze\n" in reply.content[0].text


async def test_several_clients_are_answered_at_once(address):
    async def ask(question):
        async with Client(address) as client:
            return (await client.call_tool("ask", {"question": question})).content[0].text

    answers = await asyncio.gather(*(ask(f"Who directed {film}?") for film in ("Her", "Alien", "Rashomon") * 3))
    directors = ["Spike Jonze", "Ridley Scott", "Akira Kurosawa"] * 3
    assert all(f"Answer: {name}\n" in answer for name, answer in zip(directors, answers, strict=True))


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "films.example"}, 421),
        ({"origin": "https://films.example"}, 403),
        ({"content-type": "text/plain"}, 400),
    ],
)
def test_requests_of_foreign_pages_are_refused(address, headers, status):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    given = {"accept": "application/json, text/event-stream", **headers}
    assert httpx2.post(address, json=body, headers=given).status_code == status


@pytest.mark.heavy
def test_a_request_that_is_too_large_is_refused(address):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"x": "y" * 3_000_000}}
    headers = {"accept": "application/json, text/event-stream"}
    assert httpx2.post(address, json=body, headers=headers).status_code == 413


@pytest.mark.heavy
async def test_a_token_is_asked_for_where_one_is_set(folder):
    headers = {"authorization": f"Bearer {TOKEN}"}
    with serving(folder, KG_RETRIEVERS_TOKEN=TOKEN) as address:
        health = address.removesuffix("/mcp") + "/healthz"
        assert httpx2.get(health).json() == {"status": "ok"}
        assert httpx2.get(health, headers=headers).json()["entities"] > 0
        assert httpx2.post(address, json={}).status_code == 401
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(address, http_client=http)) as client,
        ):
            assert not (await client.call_tool("relations_of")).is_error


@pytest.mark.heavy
async def test_questions_are_not_logged(folder, tmp_path):
    with open(tmp_path / "log", "w+", encoding="utf-8") as log:
        async with Client(stdio_client(started_by_client(folder), errlog=log)) as client:
            for question in ("Who directed Her?", "Who directed Xyzzyplugh?"):
                await client.call_tool("ask", {"question": question})
        log.seek(0)
        assert "Who directed" not in log.read()


@pytest.mark.heavy
def test_nothing_but_the_protocol_reaches_stdout(folder):
    ended = subprocess.run(command(folder), input="", capture_output=True, text=True, timeout=120, env=ENVIRONMENT)
    assert (ended.returncode, ended.stdout) == (0, "")
