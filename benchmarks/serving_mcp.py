"""What the server of `kg-retrievers mcp --http` does under load, beside the bare retriever in the same run.

    python -m benchmarks.serving_mcp [--seconds 60] [--clients 50] [--graph FILE]
    python -m benchmarks.serving_mcp --tools [--graph FILE]     # only the tokens of tools/list; the sample by default

As `benchmarks/serving.py` does, with the official SDK's client: each has a session of its own, and every fifth call is
a bad one. A bad call must be told as an error of the tool or of the protocol; a good one must give the answers of the
workflow in this process.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mcp import Client, MCPError

from benchmarks.serving import (
    ALONE,
    BAD_EVERY,
    DATA,
    SEED,
    Phase,
    bare_milliseconds,
    built_index,
    cpu_milliseconds,
    expected_answers,
    resident,
    started,
    watch_memory,
)
from kg_retrievers import GraphIndex, KnowledgeGraph, default_embeddings
from kg_retrievers.graph.verbalize import approximate_tokens
from kg_retrievers.sample import load_graph
from kg_retrievers.serving.examples import example_questions
from kg_retrievers.serving.mcp.server import GraphServer
from kg_retrievers.serving.service import GraphService

#: Calls that cannot be answered: the tool and its arguments.
BAD: tuple[tuple[str, dict[str, Any]], ...] = (
    ("ask", {"question": ""}),
    ("ask", {}),
    ("ask", {"question": ["a", "list"]}),
    ("ask", {"question": "Who?", "qestion": "Who?"}),
    ("ask", {"question": "x" * 100_000}),
    ("facts", {"entity": "Xyzzyplugh the Unheard-of"}),
    ("no_such_tool", {}),
)


async def ask(client: Client, question: str, expected: list[str], phase: Phase) -> None:
    """Ask a question and note what comes."""
    began = time.perf_counter()
    phase.requests["ask"] += 1
    try:
        result = await client.call_tool("ask", {"question": question})
    except Exception as error:
        phase.errors[f"ask: {type(error).__name__}"] += 1
        return
    phase.milliseconds.append(1000 * (time.perf_counter() - began))
    lines = getattr(result.content[0], "text", "").split("\n")
    said = next((line.removeprefix("Answer: ") for line in lines if line.startswith("Answer: ")), "")
    told = said.split("; ") if expected else []
    if result.is_error or told != expected[: len(told)] or bool(told) != bool(expected):  # a long list is cut
        phase.errors["ask: an error" if result.is_error else "ask: other answers"] += 1


async def err(client: Client, number: int, phase: Phase) -> None:
    """Make a call that cannot be answered."""
    name, arguments = BAD[number % len(BAD)]
    phase.requests["bad"] += 1
    try:
        result = await client.call_tool(name, arguments)
    except MCPError:
        return
    except Exception as error:
        phase.errors[f"{name} {arguments!r:.40}: {type(error).__name__}"] += 1
        return
    if not result.is_error:
        phase.errors[f"{name} {arguments!r:.40}: no error"] += 1


async def alone(address: str, expected: Mapping[str, list[str]]) -> Phase:
    """Ask one question after the other in one session."""
    phase, drawn, questions = Phase(), random.Random(SEED), list(expected)
    async with Client(address) as client:
        for _ in range(ALONE):
            question = drawn.choice(questions)
            await ask(client, question, expected[question], phase)
    return phase


async def load(address: str, expected: Mapping[str, list[str]], options: argparse.Namespace, pid: int) -> Phase:
    """Ask in many sessions at once for some seconds."""
    phase, ends, questions = Phase(cpu=-cpu_milliseconds(pid)), time.monotonic() + options.seconds, list(expected)

    async def one(number: int) -> None:
        drawn, sent = random.Random(SEED + number), number
        async with Client(address) as client:
            while time.monotonic() < ends:
                sent += 1
                if sent % BAD_EVERY == 0:
                    await err(client, sent // BAD_EVERY, phase)
                else:
                    question = drawn.choice(questions)
                    await ask(client, question, expected[question], phase)

    watching = asyncio.create_task(watch_memory(pid, phase))
    await asyncio.gather(*(one(number) for number in range(options.clients)))
    watching.cancel()
    phase.cpu += cpu_milliseconds(pid)
    return phase


async def measure(address: str, expected: Mapping[str, list[str]], options: argparse.Namespace, pid: int) -> None:
    """Run all phases and print what was seen."""
    bare = bare_milliseconds(options.retriever, list(expected))
    await alone(address, expected)  # builds, compiles, warms up
    began = resident(pid)
    phases = {"one client": await alone(address, expected)}
    name = f"{options.clients} sessions for {options.seconds:g} s"
    phases[name] = under_load = await load(address, expected, options, pid)
    phases["one client, afterwards"] = await alone(address, expected)
    print(f"bare retriever: {bare:.2f} ms, the median\n")
    print("| phase | questions | median ms | p95 ms | median / bare | errors |\n|---|---|---|---|---|---|")
    for name, phase in phases.items():
        print(phase.row(name, bare))
    print(f"\n{under_load.load(options.seconds, bare)}")
    print(f"errors by kind: { {name: dict(phase.errors) for name, phase in phases.items() if phase.errors} }")
    over_time = [f"{memory:.0f}" for seconds, memory in under_load.memory if round(seconds) % 10 == 0]
    print(f"memory in MB: before {began:.0f}; each 10 s {', '.join(over_time)}; after {resident(pid):.0f}")


async def count_tools(graph: KnowledgeGraph) -> None:
    """Print the estimated tokens of `tools/list`, in all and of each tool."""
    async with Client(GraphServer(GraphService(GraphIndex.build(graph, default_embeddings())))) as client:
        listed = await client.list_tools()
    print("| tool | tokens |\n|---|---|")
    for tool in listed.tools:
        print(f"| `{tool.name}` | {approximate_tokens(tool.model_dump_json(by_alias=True, exclude_none=True))} |")
    print(f"| `tools/list` | {approximate_tokens(listed.model_dump_json(by_alias=True, exclude_none=True)):,} |")


def main() -> None:
    """Start the server, measure, and stop it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="how long the clients ask (default: 60)")
    parser.add_argument("--clients", type=int, default=50, help="how many ask at once (default: 50)")
    parser.add_argument("--graph", type=Path, help="a file of triples (default: that of MetaQA)")
    parser.add_argument("--tools", action="store_true", help="only count the tokens of tools/list")
    options = parser.parse_args()
    if options.tools:
        return asyncio.run(count_tools(KnowledgeGraph.from_file(options.graph) if options.graph else load_graph()))
    options.graph = options.graph or DATA / "metaqa" / "kb.txt"
    for name in ("kg_retrievers.refusals", "mcp", "httpx"):
        logging.getLogger(name).setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options.retriever, index = built_index(options.graph, folder)
        expected = expected_answers(options.retriever, example_questions(options.retriever, 20))
        with started(folder, "mcp", index, "--http") as (port, process_id):
            asyncio.run(measure(f"http://127.0.0.1:{port}/mcp", expected, options, process_id))


if __name__ == "__main__":
    main()
