"""What the server of `kg-retrievers serve` does under load, beside the bare retriever in the same run.

    python -m benchmarks.serving [--seconds 60] [--clients 50] [--silent 1000] [--graph FILE]

A server in a process of its own over MetaQA's graph (default: kb.txt in the folder named in KG_RETRIEVERS_DATA, or
../shared/data) with the shipped embeddings and no language model. Questions are the six that the server itself gives as
examples; every fifth request is a bad one, of ten kinds in turn. Four phases: one client alone; all clients for some
seconds; the clients alone again; and one client while connections are open that say nothing. A reply is an error where
it is not what such a request should get: another status, no end of the stream, or other answers than the retriever's.
Latency is wall milliseconds from the request to the end of the reply; memory is the resident set of the server.
On a machine that does other work besides, the CPU time says more than the latency does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import httpx

from kg_retrievers import GraphIndex, KnowledgeGraph, SimGRAGRetriever, build_workflow, default_embeddings

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from server_process import ServerProcess, free_port

DATA = Path(os.environ.get("KG_RETRIEVERS_DATA", Path(__file__).parents[2] / "shared" / "data"))
SEED = 20261123

#: Each so manieth request is a bad one.
BAD_EVERY = 5

#: How many questions are asked alone, by the retriever and over HTTP.
ALONE = 200


@dataclass(frozen=True)
class Bad:
    """A request that cannot be answered, and the statuses that say so."""

    name: str
    statuses: tuple[int, ...]
    body: bytes = b"{}"
    path: str = "/api/ask"
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})


def _json(**body: Any) -> bytes:
    return json.dumps(body).encode()


BAD = (
    Bad("empty question", (400,), _json(question=" ")),
    Bad("no JSON", (400,), b'{"question": "Who'),
    Bad("unknown key", (400,), _json(question="Who?", query="Who?")),
    Bad("unknown method", (400,), _json(question="Who?", method="simrag")),
    Bad("k of no sense", (400,), _json(question="Who?", k=-1)),
    Bad("100 kB of question", (413,), _json(question="x" * 100_000)),
    Bad("form in place of JSON", (415,), b"question=Who", headers={"Content-Type": "text/plain"}),
    Bad("unknown path", (404,), path="/api/nothing"),
    Bad("wrong verb", (405,), method="DELETE"),
    Bad("host of another site", (400, 403, 421), _json(question="Who?"), headers={"Host": "evil.example"}),
)

#: A question that nothing in the graph answers: no error, but a refusal in the stream.
UNKNOWN = "Who directed Xyzzyplugh the Unheard-of?"


@dataclass
class Phase:
    """What was seen in one phase."""

    milliseconds: list[float] = field(default_factory=list)
    requests: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    memory: list[tuple[float, float]] = field(default_factory=list)  # seconds from the start, MB
    cpu: float = 0.0  # milliseconds that the server used

    def row(self, name: str, bare: float) -> str:
        """Return a row of the table."""
        times = sorted(self.milliseconds)
        middle, late = median(times), times[int(0.95 * len(times))]
        wrong = sum(self.errors.values())
        return f"| {name} | {len(times)} | {middle:.1f} | {late:.1f} | {middle / bare:.1f} | {wrong} |"

    def load(self, seconds: float, bare: float) -> str:
        """Return how many questions were answered under load, and the CPU time of the server."""
        requests, rate = self.requests.total(), len(self.milliseconds) / seconds
        return (
            f"under load {rate:.1f} questions a second; the bare retriever alone {1000 / bare:.1f}\n"
            f"CPU of the server: {self.cpu / requests:.1f} ms a request, {self.cpu / seconds / 1000:.0%} of one core\n"
            f"in all under load: {requests} requests, {dict(self.requests)}"
        )


class Client:
    """Asks the server, and notes in a phase what it gets."""

    def __init__(self, http: httpx.AsyncClient, expected: Mapping[str, list[str]]) -> None:
        """Take the answers of the bare workflow by question."""
        self._http, self._expected = http, expected

    async def ask(self, question: str, phase: Phase) -> None:
        """Ask a question to the end of its stream."""
        began = time.perf_counter()
        phase.requests["question"] += 1
        try:
            response = await self._http.post("/api/ask", json={"question": question})
        except httpx.HTTPError as error:
            phase.errors[f"question: {type(error).__name__}"] += 1
            return
        phase.milliseconds.append(1000 * (time.perf_counter() - began))
        if problem := self._wrong(question, response):
            phase.errors[f"question: {problem}"] += 1

    def _wrong(self, question: str, response: httpx.Response) -> str:
        if response.status_code != 200:
            return f"status {response.status_code}"
        last = json.loads(response.text.splitlines()[-1])
        if last["event"] != "answer":
            return f"ends with {last['event']}"
        return "" if last["answers"] == self._expected[question] else "other answers"

    async def err(self, bad: Bad, phase: Phase) -> None:
        """Send a bad request."""
        phase.requests[bad.name] += 1
        try:
            response = await self._http.request(bad.method, bad.path, content=bad.body, headers=dict(bad.headers))
        except httpx.HTTPError as error:
            phase.errors[f"{bad.name}: {type(error).__name__}"] += 1
            return
        if response.status_code not in bad.statuses:
            phase.errors[f"{bad.name}: status {response.status_code}"] += 1


def resident(pid: int) -> float:
    """Return the resident set of a process, in MB."""
    (line,) = (one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def cpu_milliseconds(pid: int) -> float:
    """Return the CPU time that a process has used."""
    used = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return 1000 * sum(map(int, used)) / os.sysconf("SC_CLK_TCK")


async def watch_memory(pid: int, phase: Phase) -> None:
    """Note the memory each second."""
    began = time.monotonic()
    while True:
        phase.memory.append((time.monotonic() - began, resident(pid)))
        await asyncio.sleep(1)


async def load(client: Client, questions: Sequence[str], clients: int, seconds: float, pid: int) -> Phase:
    """Ask from many clients at once for some seconds."""
    phase, ends = Phase(cpu=-cpu_milliseconds(pid)), time.monotonic() + seconds

    async def one(number: int) -> None:
        drawn, sent = random.Random(SEED + number), number
        while time.monotonic() < ends:
            sent += 1
            if sent % BAD_EVERY == 0:
                await client.err(BAD[sent // BAD_EVERY % len(BAD)], phase)
            else:
                await client.ask(drawn.choice(questions), phase)

    watching = asyncio.create_task(watch_memory(pid, phase))
    await asyncio.gather(*(one(number) for number in range(clients)))
    watching.cancel()
    phase.cpu += cpu_milliseconds(pid)
    return phase


async def alone(client: Client, questions: Sequence[str]) -> Phase:
    """Ask one question after the other."""
    phase, drawn = Phase(), random.Random(SEED)
    for _ in range(ALONE):
        await client.ask(drawn.choice(questions), phase)
    return phase


@asynccontextmanager
async def silent_connections(port: int, number: int) -> AsyncIterator[list[asyncio.StreamReader]]:
    """Open connections that say nothing."""
    opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(number)]
    try:
        yield [reader for reader, _ in opened]
    finally:
        for _, writer in opened:
            writer.close()


async def measure(port: int, pid: int, expected: Mapping[str, list[str]], options: argparse.Namespace) -> None:
    """Run all phases and print what was seen."""
    questions, bare = list(expected), bare_milliseconds(options.retriever, list(expected))
    address = f"http://127.0.0.1:{port}"
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=options.clients)
    async with httpx.AsyncClient(base_url=address, timeout=120, limits=limits) as http:
        client = Client(http, expected)
        await alone(client, questions)  # builds, compiles, warms up
        began = resident(pid)
        phases = {"one client": await alone(client, questions)}
        name = f"{options.clients} clients for {options.seconds:g} s"
        phases[name] = under_load = await load(client, questions, options.clients, options.seconds, pid)
        phases["one client, afterwards"] = await alone(client, questions)
        after = resident(pid)
        async with silent_connections(port, options.silent) as readers:
            phases[f"one client, {options.silent} silent connections"] = await alone(client, questions)
            left = sum(not reader.at_eof() and reader.exception() is None for reader in readers)
    print(f"bare retriever: {bare:.2f} ms, the median\n")
    print("| phase | questions | median ms | p95 ms | median / bare | errors |\n|---|---|---|---|---|---|")
    for name, phase in phases.items():
        print(phase.row(name, bare))
    print(f"\n{under_load.load(options.seconds, bare)}")
    print(f"errors by kind: { {name: dict(phase.errors) for name, phase in phases.items() if phase.errors} }")
    over_time = [f"{memory:.0f}" for seconds, memory in under_load.memory if round(seconds) % 10 == 0]
    print(f"memory in MB: before {began:.0f}; each 10 s under load {', '.join(over_time)}; after {after:.0f}; ", end="")
    print(f"with silent connections {resident(pid):.0f}, of which {left} were left open by the server")


def bare_milliseconds(retriever: SimGRAGRetriever, questions: Sequence[str]) -> float:
    """Return the median of the retriever alone, in this process."""
    times, drawn = [], random.Random(SEED)
    for repeat in range(2 * ALONE):
        question, began = drawn.choice(questions), time.perf_counter()
        retriever.invoke(question)
        if repeat >= ALONE:
            times.append(1000 * (time.perf_counter() - began))
    return median(times)


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[tuple[int, int]]:
    """Start a command of ours that serves, and yield its port and process id; at the end, say what it wrote."""
    port, log = free_port(), folder / "log"
    command = [sys.executable, "-m", "kg_retrievers.cli", *arguments, "--port", str(port)]
    try:
        with ServerProcess(command, port, log) as server:
            yield port, server.process_id
    finally:
        lines = log.read_text(errors="replace").splitlines()
        print(f"the server wrote {len(lines)} lines, {sum('Traceback' in line for line in lines)} tracebacks")


def built_index(graph: Path, folder: Path) -> tuple[SimGRAGRetriever, str]:
    """Save an index; return a retriever over it, and its folder."""
    index = GraphIndex.build(KnowledgeGraph.from_file(graph), default_embeddings(), folder / "index")
    return SimGRAGRetriever.from_index(index), str(folder / "index")


def expected_answers(retriever: SimGRAGRetriever, questions: Sequence[str]) -> dict[str, list[str]]:
    """Return the answers of the workflow in this process, by question; one has none."""
    workflow = build_workflow(retriever)
    return {one: workflow.invoke({"question": one})["answers"] for one in [*questions, UNKNOWN]}


def main() -> None:
    """Start the server, measure, and stop it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="how long the clients ask (default: 60)")
    parser.add_argument("--clients", type=int, default=50, help="how many ask at once (default: 50)")
    parser.add_argument("--silent", type=int, default=1000, help="how many connections say nothing (default: 1000)")
    parser.add_argument("--graph", type=Path, default=DATA / "metaqa" / "kb.txt", help="a file of triples")
    options = parser.parse_args()
    logging.getLogger("kg_retrievers.refusals").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options.retriever, index = built_index(options.graph, folder)
        with started(folder, "serve", index) as (port, process_id):
            told = httpx.get(f"http://127.0.0.1:{port}/api/examples", timeout=120).json()["examples"]
            expected = expected_answers(options.retriever, told)
            asyncio.run(measure(port, process_id, expected, options))


if __name__ == "__main__":
    main()
