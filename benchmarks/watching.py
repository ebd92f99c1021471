"""What it costs to be watched: a question with handlers, against the same question without.

    python -m benchmarks.watching [--repeats N]

Every way asks the same questions of the sample graph, interleaved, in one process: SimGRAG by `invoke` and as a
workflow. CPU milliseconds per question (median), and the ratio to the way without a handler. Spans go to a provider
whose processor keeps nothing; lines go to a logger whose handler formats and keeps nothing.
"""

from __future__ import annotations

import argparse
import io
import logging
import time
from collections.abc import Sequence
from statistics import median
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from kg_retrievers import (
    Counts,
    GraphIndex,
    SimGRAGRetriever,
    Spans,
    build_workflow,
    default_embeddings,
    generate_questions,
    log_events,
)
from kg_retrievers.sample import load_graph
from kg_retrievers.telemetry.watching import Together


def handlers() -> dict[str, list[BaseCallbackHandler]]:
    """Return the ways to watch."""
    provider, logger = TracerProvider(), logging.getLogger("benchmark")
    provider.add_span_processor(SpanProcessor())
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(logging.StreamHandler(io.StringIO()))
    spans, lines = Spans(provider), log_events(logger)
    return {
        "nobody": [],
        "a handler of LangChain that does nothing": [BaseCallbackHandler()],
        "Counts": [Counts()],
        "log_events": [lines],
        "Spans": [spans],
        "all three, in one": [Together((Counts(), lines, spans))],
    }


def main() -> None:
    """Ask in every way and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, help="how often each question is asked (default: 5)")
    repeats = parser.parse_args().repeats
    logging.getLogger("kg_retrievers.refusals").setLevel(logging.ERROR)
    graph = load_graph()
    retriever = SimGRAGRetriever.from_index(GraphIndex.build(graph, default_embeddings()))
    questions = [question.text for question in generate_questions(graph)][:40]
    workflow = build_workflow(retriever)
    print(f"n = {len(questions)} questions x {repeats}\n")
    print("| watched by | invoke, CPU ms | ratio | workflow, CPU ms | ratio |\n|---|---|---|---|---|")
    alone = timed(retriever, questions, repeats)
    flow = timed(workflow, [{"question": one} for one in questions], repeats)
    for name in alone:
        first, second = median(alone[name]), median(flow[name])
        print(
            f"| {name} | {first:.2f} | {first / median(alone['nobody']):.2f} "
            f"| {second:.2f} | {second / median(flow['nobody']):.2f} |"
        )


def timed(asked: Any, inputs: Sequence[Any], repeats: int) -> dict[str, list[float]]:
    """Return the CPU milliseconds of each question, by the way that it is watched."""
    ways = handlers()
    times: dict[str, list[float]] = {name: [] for name in ways}
    for repeat in range(repeats + 1):
        for one in inputs:
            for name, watching in ways.items():
                began = time.process_time()
                asked.invoke(one, {"callbacks": watching})
                if repeat:  # the first round compiles, loads and warms up
                    times[name].append(1000 * (time.process_time() - began))
    return times


if __name__ == "__main__":
    main()
