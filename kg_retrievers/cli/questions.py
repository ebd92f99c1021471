"""The command `questions`."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import kg_retrievers
from kg_retrievers.cli.options import Graph, Json, Reading, Seed, new_file, option
from kg_retrievers.cli.show import grid, note, show, status
from kg_retrievers.cli.sources import Source, read_graph
from kg_retrievers.errors import InvalidArgumentError


def questions(
    graph: Graph,
    output: Annotated[str, option("FILE", "A new file, as JSON lines.", parser=new_file)],
    reading: Reading,
    count: Annotated[int, option("N", "How many (default: 1000).", min=1)] = 1000,
    seed: Seed = 0,
    as_json: Json = False,
) -> int:
    """Write questions with answers and patterns from a graph alone.

    Example: kg-retrievers questions films.csv --output questions.jsonl
    """
    path, source = Path(output), Source(graph, reading)
    if path.exists():
        raise InvalidArgumentError(f"{output} is there already. Name a new file: --output ...")
    loaded = read_graph(source)
    with status("writing questions"):
        written = kg_retrievers.generate_questions(loaded, count, seed=seed)
    kg_retrievers.datasets.write_questions(path, written)
    kinds = dict(sorted(Counter(str(question.kind) for question in written).items()))
    if len(written) < count:
        note(f"{count:,} questions were asked for, but the graph gives no more than {len(written):,}")
    if as_json:
        print(json.dumps({"output": output, "questions": len(written), "kinds": kinds}), flush=True)
        return 0
    show(
        f"Wrote {len(written):,} questions to {output}, such as: {written[0].text}",
        grid(*kinds.items()),
        f"Use them as examples: {source.command('ask', 'Who ...?', '--examples', output)}",
        f"Train on them: kg-retrievers train subgraph-rag --graph {graph} --questions {output} --output MODEL",
    )
    return 0
