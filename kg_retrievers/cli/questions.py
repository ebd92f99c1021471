"""The command `questions`."""

from __future__ import annotations

import argparse
import json
import shlex
from collections import Counter
from pathlib import Path

import kg_retrievers
from kg_retrievers.cli.load import read_graph
from kg_retrievers.cli.show import grid, note, show, status
from kg_retrievers.errors import InvalidArgumentError


def run(options: argparse.Namespace) -> int:
    """Write questions with answers and patterns from a graph alone."""
    output = Path(options.output)
    _check_output(output)
    graph = read_graph(options)
    with status("writing questions"):
        questions = kg_retrievers.generate_questions(graph, options.count, seed=options.seed, max_hops=options.max_hops)
    kg_retrievers.datasets.write_questions(output, questions)
    kinds = dict(sorted(Counter(str(question.kind) for question in questions).items()))
    if len(questions) < options.count:
        note(f"{options.count:,} questions were asked for, but the graph gives no more than {len(questions):,}")
    if options.json:
        print(json.dumps({"output": str(output), "questions": len(questions), "kinds": kinds}), flush=True)
        return 0
    show(
        f"Wrote {len(questions):,} questions to {output}, such as: {questions[0].text}",
        grid(*kinds.items()),
        f"Use them as examples: {_command('ask', options.graph, 'Who ...?', '--examples', output)}",
        "Train on them: "
        + _command("train", "subgraph-rag", "--graph", options.graph, "--questions", output, "--output", "MODEL"),
    )
    return 0


def _check_output(output: Path) -> None:
    """Check before the work that the file can be written, and that it replaces none."""
    if output.exists():
        raise InvalidArgumentError(f"{output} is there already. Name a new file: --output ...")
    if not output.parent.is_dir():
        raise InvalidArgumentError(f"{output.parent} is no folder. Name a file in a folder that is there: --output ...")


def _command(*arguments: object) -> str:
    return shlex.join(["kg-retrievers", *map(str, arguments)])
