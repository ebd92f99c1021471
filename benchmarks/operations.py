"""Asks the questions of `benchmarks/operation_questions`: how many are right, wrong and refused, by kind.

    python -m benchmarks.operations [--held-out] [--show] [--record]
    python -m benchmarks.operations --folder benchmarks/operation_questions/fit/chess ... [--show]

Entities are found in the questions. An answer is right if it is the exact value, or exactly the set of entities.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import figures
from kg_retrievers import GraphIndex, KnowledgeGraph, SimGRAGRetriever, default_embeddings
from kg_retrievers.errors import KGRetrieversError
from kg_retrievers.sample import load_graph

#: Where the questions are.
QUESTIONS = Path(__file__).parent / "operation_questions"

#: The names of the graphs.
GRAPHS = ("sample", "huts", "newspapers")

OUTCOMES = ("right", "wrong", "refused")

#: How the docs call the kinds of questions.
KINDS = {
    "count": "how many",
    "polar": "whether",
    "superlative": "the most, the oldest",
    "comparative": "X or Y, more than",
    "condition": "before, over, between",
    "negation": "not, without",
    "both_either": "both, either, neither",
    "at_least": "at least, exactly",
    "all": "all",
}


def load_named_graph(name: str) -> KnowledgeGraph:
    """Return one of the graphs of the questions."""
    return load_graph() if name == "sample" else KnowledgeGraph.from_file(QUESTIONS / name / "graph.tsv")


def outcome(retriever: SimGRAGRetriever, row: Mapping[str, Any]) -> tuple[str, str]:
    """Return whether a question is answered rightly, wrongly or not at all, and what was said."""
    try:
        documents = retriever.invoke(row["question"], on_refusal="raise")
    except KGRetrieversError as error:
        return "refused", f"{type(error).__name__}: {error}"
    metadata = documents[0].metadata
    value, answers = metadata.get("value"), list(metadata["answers"])
    said = f"{value!r} {answers} {metadata['confidence']} {metadata['details']['pattern']}"
    if row["value"] is not None:
        right = type(value) is type(row["value"]) and value == row["value"]
    else:
        right = {*answers} == {*row["answers"]}
    return ("right" if right else "wrong"), said


def outcomes(sources: Sequence[tuple[str, KnowledgeGraph, Path]]) -> Iterator[tuple[str, Mapping[str, Any], str, str]]:
    """Yield each question with its graph, its outcome and what was said.

    Args:
        sources: The names of graphs, the graphs and the files of their questions.
    """
    for name, graph, questions in sources:
        retriever = SimGRAGRetriever.from_index(GraphIndex.build(graph, default_embeddings()))
        for line in questions.read_text("utf-8").splitlines():
            row = json.loads(line)
            yield name, row, *outcome(retriever, row)


def sources_of(folders: Sequence[Path], part: str) -> list[tuple[str, KnowledgeGraph, Path]]:
    """Return the graphs and questions of folders; where there are none, the given part of the usual ones."""
    if folders:
        return [(path.name, KnowledgeGraph.from_file(path / "graph.tsv"), path / "questions.jsonl") for path in folders]
    return [(name, load_named_graph(name), QUESTIONS / name / f"{part}.jsonl") for name in GRAPHS]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the shares by kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held-out", action="store_true", help="ask the held-out half")
    parser.add_argument("--show", action="store_true", help="show each question of the half to look at")
    parser.add_argument("--folder", type=Path, nargs="+", default=[], help="ask the questions of these folders instead")
    parser.add_argument("--record", action="store_true", help="write the table of the docs")
    options = parser.parse_args(arguments)
    logging.disable(logging.WARNING)
    sources = sources_of(options.folder, "held_out" if options.held_out else "dev")
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for name, row, result, said in outcomes(sources):
        counts[row["kind"]][result] += 1
        counts["all"][result] += 1
        if options.show and not options.held_out:
            print(f"{result:8} {name:10} {row['kind']:12} {row['question']}\n         {said}")
    print(f"{'kind':14}{'n':>5}" + "".join(f"{name:>10}" for name in OUTCOMES))
    for kind in sorted(counts, key=lambda kind: (kind == "all", kind)):
        of_kind, total = counts[kind], counts[kind].total()
        print(f"{kind:14}{total:5}" + "".join(f"{of_kind[name] / total:10.2f}" for name in OUTCOMES))
    if options.record:
        part = "-".join(path.name for path in options.folder) or ("held-out" if options.held_out else "dev")
        title = {"dev": "looked at", "held-out": "kept aside"}.get(part, part)
        rows = figures.outcome_table("kind", title, KINDS, counts)
        run = figures.run_of(figures.this_command("benchmarks.operations"), n=f"{counts['all'].total()} questions")
        figures.record(f"operations-{part}", rows, run)


if __name__ == "__main__":
    main()
