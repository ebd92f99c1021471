"""Every way to ask gives the same triples in the same order, under any hash seed and from any thread."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_ASK = """
import asyncio, json, random, sys
from concurrent.futures import ThreadPoolExecutor
from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, SimGRAGRetriever, as_llama_index, build_workflow
from kg_retrievers.datasets import read_metaqa

folder, count = sys.argv[1], int(sys.argv[2])
graph = KnowledgeGraph.from_file(f"{folder}/kb.txt")
every = [question for hop in (1, 2, 3) for question in read_metaqa(folder, hop)]
drawn = random.Random(20261121).sample(every, 300)
examples, questions = drawn[:100], [question.text for question in drawn[100 : 100 + count]]
index = GraphIndex.build(graph, HashedEmbeddings())
retriever = SimGRAGRetriever.from_index(index, examples=examples, k=2)
workflow, bridge = build_workflow(retriever), as_llama_index(retriever)


def triples(documents):
    return [document.metadata["triples"] for document in documents]


async def in_turn(ask):
    return [await ask(question) for question in questions]


async def at_once(ask):
    return await asyncio.gather(*map(ask, questions))


async def by_retriever(question):
    return triples(await retriever.ainvoke(question))


async def by_workflow(question):
    return triples((await workflow.ainvoke({"question": question}))["documents"])


async def by_bridge(question):
    return triples([node.node for node in await bridge.aretrieve(question)])


found = {
    "sync": [triples(retriever.invoke(question)) for question in questions],
    "async": asyncio.run(in_turn(by_retriever)),
    "async at once": asyncio.run(at_once(by_retriever)),
    "workflow": [triples(workflow.invoke({"question": question})["documents"]) for question in questions],
    "workflow async": asyncio.run(in_turn(by_workflow)),
    "LlamaIndex": [triples([node.node for node in bridge.retrieve(question)]) for question in questions],
    "LlamaIndex async": asyncio.run(in_turn(by_bridge)),
}
with ThreadPoolExecutor(8) as threads:
    found["threads"] = [triples(documents) for documents in threads.map(retriever.invoke, questions)]
    outputs = threads.map(lambda question: workflow.invoke({"question": question}), questions)
    found["workflow, threads"] = [triples(output["documents"]) for output in outputs]
    nodes = threads.map(bridge.retrieve, questions)
    found["LlamaIndex, threads"] = [triples([node.node for node in one]) for one in nodes]
print(json.dumps(found))
"""


@pytest.mark.real
@pytest.mark.parametrize("count", [30, pytest.param(200, marks=pytest.mark.heavy)])
def test_questions_of_metaqa(data_dir: Path, count: int) -> None:
    lists: list[Any] = []
    for seed in ("1", "2"):
        command = [sys.executable, "-c", _ASK, str(data_dir / "metaqa"), str(count)]
        done = subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert len(found["sync"]) == count
        assert sum(map(bool, found["sync"])) > 0.95 * count
        for way, got in found.items():
            assert got == found["sync"], way
        lists.append(found["sync"])
    assert lists[0] == lists[1]
