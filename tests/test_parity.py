"""All questions at once give the same triples in the same order as one by one, under any hash seed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, SimGRAGRetriever, as_llama_index, build_workflow
from kg_retrievers.datasets import read_metaqa
from kg_retrievers.testing.other_process import call_in_other_process, load_test_file

#: The triples of each Document of each question.
Found = list[list[Any]]


def retriever_and_questions(folder: str, count: int) -> tuple[SimGRAGRetriever, list[str]]:
    """Return a retriever on MetaQA with 100 labelled examples, and other questions."""
    every = [question for hop in (1, 2, 3) for question in read_metaqa(folder, hop)]
    drawn = random.Random(20261121).sample(every, 300)
    index = GraphIndex.build(KnowledgeGraph.from_file(f"{folder}/kb.txt"), HashedEmbeddings())
    retriever = SimGRAGRetriever.from_index(index, examples=drawn[:100], k=2, min_confidence=0)
    return retriever, [question.text for question in drawn[100 : 100 + count]]


def triples(documents: Sequence[Document]) -> list[Any]:
    return [document.metadata["triples"] for document in documents]


def ask_one_by_one(folder: str, count: int) -> Found:
    """Return what `invoke` finds."""
    retriever, questions = retriever_and_questions(folder, count)
    return [triples(retriever.invoke(question)) for question in questions]


def ask_at_once(folder: str, count: int) -> dict[str, Found]:
    """Return what is found where all questions are asked at once, in each way; the contract asks one by one."""
    retriever, questions = retriever_and_questions(folder, count)
    workflow, bridge = build_workflow(retriever), as_llama_index(retriever)

    def by_workflow(question: str) -> list[Any]:
        return triples(workflow.invoke({"question": question})["documents"])

    def by_bridge(question: str) -> list[Any]:
        return triples([node.node for node in bridge.retrieve(question)])

    async def at_once() -> Found:
        return [triples(found) for found in await asyncio.gather(*map(retriever.ainvoke, questions))]

    found = {"async at once": asyncio.run(at_once())}
    with ThreadPoolExecutor(8) as threads:
        found["threads"] = [triples(documents) for documents in threads.map(retriever.invoke, questions)]
        found["workflow, threads"] = list(threads.map(by_workflow, questions))
        found["LlamaIndex, threads"] = list(threads.map(by_bridge, questions))
    return found


@pytest.mark.real
@pytest.mark.parametrize("count", [10, pytest.param(200, marks=pytest.mark.heavy)])
def test_questions_of_metaqa(data_dir: Path, count: int) -> None:
    folder = str(data_dir / "metaqa")
    expected = ask_one_by_one(folder, count)
    assert len(expected) == count
    assert sum(map(bool, expected)) >= 0.9 * count
    call_in_other_process(load_test_file, __file__, __name__)
    found = call_in_other_process(ask_at_once, folder, count)  # under another hash seed
    assert len(found) == 4
    for way, got in found.items():
        assert got == expected, way
