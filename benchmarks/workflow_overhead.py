"""What the workflow of a retriever costs over the retriever alone, without a language model.

    python benchmarks/workflow_overhead.py [--limit N] [--repeats N]

SimGRAG with labelled examples, hashed embeddings, no topic given; every way asks the same questions of MetaQA dev,
interleaved, in one process. Figures are milliseconds of CPU per question (median), and their ratio to the retriever.
The bare stages are the floor: the same two runnables, called one after the other. "LangGraph alone" is a graph of as
many nodes that do nothing, after the retriever. Data: the folder named in KG_RETRIEVERS_DATA (default ../shared/data).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from kg_retrievers import (
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    SimGRAGRetriever,
    answer_chain,
    build_workflow,
    cited_answer_chain,
)
from kg_retrievers.datasets import read_metaqa

DATA = Path(os.environ.get("KG_RETRIEVERS_DATA", Path(__file__).parents[2] / "shared" / "data"))
SEED = 20261121


def main() -> None:
    """Ask in every way and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=int, default=200, help="how many questions (default: 200)")
    parser.add_argument("--repeats", type=int, default=3, help="how often each is asked (default: 3)")
    options = parser.parse_args()
    every = [question for hop in (1, 2, 3) for question in read_metaqa(DATA / "metaqa", hop)]
    random.Random(SEED).shuffle(every)
    questions, examples = every[: options.limit], every[options.limit : options.limit + 1000]
    index = GraphIndex.build(KnowledgeGraph.from_file(DATA / "metaqa" / "kb.txt"), HashedEmbeddings())
    retriever = SimGRAGRetriever.from_index(index, examples=examples)
    ways = ways_to_ask(retriever)
    times: dict[str, list[float]] = {name: [] for name in ways}
    for ask in ways.values():
        ask(questions[0].text)  # compiles, loads, warms up
    for _ in range(options.repeats):
        for question in questions:
            for name, ask in ways.items():
                began = time.process_time()
                ask(question.text)
                times[name].append(1000 * (time.process_time() - began))
    bare = median(times["retriever.invoke"])
    print(f"n = {len(questions)} questions x {options.repeats}\n")
    print("| way to ask | CPU ms, median | over the retriever, ms | ratio |\n|---|---|---|---|")
    for name, taken in times.items():
        print(f"| {name} | {median(taken):.2f} | {median(taken) - bare:+.2f} | {median(taken) / bare:.2f} |")


def ways_to_ask(retriever: SimGRAGRetriever) -> dict[str, Callable[[str], Any]]:
    """Return the ways, each as a function of the question."""
    workflow, kept = build_workflow(retriever), build_workflow(retriever, checkpointer=InMemorySaver())
    answer, cited = answer_chain(retriever), cited_answer_chain(retriever)
    loop, threads = asyncio.new_event_loop(), iter(range(10**9))

    def stages(question: str) -> None:
        state = retriever.initial_state(question)
        for stage in retriever.stages:
            state |= stage.run.invoke(state)

    def idle(state: dict[str, Any]) -> dict[str, Any]:
        return {}

    nodes = [*workflow.builder.nodes][:-1]  # the last one refuses, and is not reached
    empty = StateGraph(dict)
    for here in nodes:
        empty.add_node(here, idle)
    for here, there in pairwise([START, *nodes, END]):
        empty.add_edge(here, there)
    framework = empty.compile()

    def langgraph_alone(question: str) -> None:
        retriever.invoke(question)
        framework.invoke({"question": question})

    def with_checkpoints(question: str) -> None:
        kept.invoke({"question": question}, {"configurable": {"thread_id": str(next(threads))}})

    return {
        "the bare stages": stages,
        "retriever.invoke": retriever.invoke,
        "retriever.ainvoke": lambda question: loop.run_until_complete(retriever.ainvoke(question)),
        "answer_chain": answer.invoke,
        "cited_answer_chain": cited.invoke,
        "retriever.invoke, then LangGraph alone": langgraph_alone,
        "workflow.invoke": lambda question: workflow.invoke({"question": question}),
        "workflow.ainvoke": lambda question: loop.run_until_complete(workflow.ainvoke({"question": question})),
        "workflow.invoke, checkpoints in memory": with_checkpoints,
    }


if __name__ == "__main__":
    main()
