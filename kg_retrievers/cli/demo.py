"""The command `demo`."""

from __future__ import annotations

import shlex
from pathlib import Path

from rich.text import Text

from kg_retrievers.cli.shell import run
from kg_retrievers.cli.show import show

#: The graph that comes with the package, and questions over it.
SAMPLE = Path(__file__).parents[1] / "sample"


def demo() -> int:
    """Ask the sample graph a few questions. No download, no API key.

    Example: kg-retrievers demo
    """
    examples = ("--examples", str(SAMPLE / "questions.jsonl"))
    show(
        "A small graph of films comes with the package. SimGRAG turns a question into a small pattern and finds the "
        "part of the graph that is nearest to it. Nothing is downloaded, no API key is used."
    )
    for question, *more in (
        ("Which films did Christopher Nolan direct?",),
        ("Which science fiction films star Amy Adams?",),
        ("Who directed Dune?", "--k", "2"),
        ("What kind of film is Inception?", *examples),
        ("Who wrote other films by the director of Barbie?", *examples),
    ):
        command = ["ask", str(SAMPLE / "graph.jsonl"), question, *more]
        show(Text(f"\n$ kg-retrievers {shlex.join(command)}\n", style="bold"))
        run(command)
    show(
        "\nNow your own graph, a FILE with a triple a line: .csv, .tsv, head|relation|tail or .jsonl",
        "\n  kg-retrievers info FILE",
        "  kg-retrievers ask FILE 'Who ...?'",
        "  kg-retrievers ask FILE 'Who ...?' --llm openai:gpt-4.1-mini",
    )
    return 0
