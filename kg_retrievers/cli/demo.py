"""The command `demo`."""

from __future__ import annotations

import shlex
from pathlib import Path

from rich.text import Text

from kg_retrievers.cli.ask import ask
from kg_retrievers.cli.options import Given, Reading
from kg_retrievers.cli.show import show
from kg_retrievers.cli.sources import Source

#: The graph that comes with the package, and questions over it.
SAMPLE = Path(__file__).parents[1] / "sample"


def demo() -> int:
    """Ask the sample graph a few questions. No download, no API key.

    Example: kg-retrievers demo
    """
    graph, examples = str(SAMPLE / "graph.jsonl"), str(SAMPLE / "questions.jsonl")
    show(
        "A small graph of films comes with the package. SimGRAG turns a question into a small pattern and finds the "
        "part of the graph that is nearest to it. Nothing is downloaded, no API key is used."
    )
    for question, k, uses_examples in (
        ("Which films did Christopher Nolan direct?", None, False),
        ("Which science fiction films star Amy Adams?", None, False),
        ("Who directed Dune?", 2, False),
        ("What kind of film is Inception?", None, True),
        ("Who wrote other films by the director of Barbie?", None, True),
    ):
        command = ["ask", graph, question]
        command += [] if k is None else ["--k", str(k)]
        command += ["--examples", examples] if uses_examples else []
        show(Text(f"\n$ kg-retrievers {shlex.join(command)}\n", style="bold"))
        given = Given(examples=examples if uses_examples else None)
        ask(Source(graph, Reading()), question, given, k=k)
    show(
        "\nNow your own graph, a FILE with a triple a line: .csv, .tsv, head|relation|tail or .jsonl",
        "\n  kg-retrievers info FILE",
        "  kg-retrievers ask FILE 'Who ...?'",
        "  kg-retrievers ask FILE 'Who ...?' --llm openai:gpt-4.1-mini",
    )
    return 0
