"""Asks the questions about attributes of facts: how many are right, wrong and refused, by graph.

    python -m benchmarks.attribute_questions [--kept] [--show] [--record] [GRAPH ...]

No language model and no examples; entities are found in the questions. A value or a set of answers is right if it is
exactly that of `gold.py`. If the gold is empty, a refusal, an empty list, 0 or "no" is right.
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
from benchmarks.attribute_questions.gold import Statements, golds_of
from benchmarks.question_shapes.__main__ import OUTCOMES, cells, form
from kg_retrievers import GraphIndex, KnowledgeGraph, SimGRAGRetriever, default_embeddings
from kg_retrievers.errors import KGRetrieversError

#: Where the questions are.
HERE = Path(__file__).parent


def is_right(gold: Any, value: Any, answers: set[str], columns: int) -> bool:
    """Tell whether an answer is the gold one.

    Args:
        gold: A set of texts, a number or a truth value.
        value: The value of the answer, if it has one.
        answers: The labels of its entities.
        columns: How many things are asked for, such as two attributes.
    """
    if isinstance(gold, bool):
        return value is gold
    wanted = {form(one) for one in (gold if isinstance(gold, set) else [gold])}
    if isinstance(value, dict):
        rows = value["rows"]
        found = set().union(*(cells(cell) for row in rows for cell in row))
        return found == wanted and all(len(row) == columns for row in rows)
    return wanted in ({form(one) for one in answers}, set() if isinstance(value, bool | None) else cells(value))


def outcome(retriever: SimGRAGRetriever, row: Mapping[str, Any], golds: Sequence[Any]) -> tuple[str, str]:
    """Return whether a question is answered rightly, wrongly or not at all, and what was said."""
    try:
        first = retriever.invoke(row["question"], on_refusal="raise")[0].metadata
    except KGRetrieversError as error:
        return "right" if row.get("empty") else "refused", f"{type(error).__name__}: {error}"
    value, answers = first["value"], {retriever.graph.label(key) for key in first["answers"]}
    told = f"{value!r} {sorted(answers)} {first['confidence']} {first['details'].get('pattern')}"
    if row.get("empty"):
        none = value is not None and not (value["rows"] if isinstance(value, dict) else value)
        return "right" if none and not answers else "wrong", told
    wanted = zip(row.get("golds") or [row["gold"]], golds, strict=True)
    columns = [len(one["get"]) if isinstance(one["get"], list) else 1 for one, _ in wanted]
    right = any(is_right(gold, value, answers, size) for gold, size in zip(golds, columns, strict=True))
    return "right" if right else "wrong", told


def outcomes(folder: Path, show: bool) -> Iterator[str]:
    """Yield the outcomes of the questions of a folder, and print the questions that are not answered rightly."""
    graph = KnowledgeGraph.from_file(folder / "graph.jsonl")
    retriever = SimGRAGRetriever.from_index(GraphIndex.build(graph, default_embeddings()))
    facts = Statements(folder)
    for line in (folder / "questions.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        golds = golds_of(facts, row)
        result, told = outcome(retriever, row, golds)
        if show and result != "right":
            print(f"{folder.name} {result}: {row['question']}\n    {told[:600]}\n    GOLD {golds!r:.300}")
        yield result


def main() -> None:
    """Ask all questions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", help="the names of graphs; all by default")
    parser.add_argument("--kept", action="store_true", help="ask the graphs that are kept aside")
    parser.add_argument("--show", action="store_true", help="show the questions that are not answered rightly")
    parser.add_argument("--record", action="store_true", help="write the table of the docs")
    options = parser.parse_args()
    logging.getLogger("kg_retrievers").setLevel(logging.ERROR)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for folder in sorted((HERE / ("kept" if options.kept else "looked_at")).iterdir()):
        if options.graphs and folder.name not in options.graphs:
            continue
        for result in outcomes(folder, options.show):
            for name in (folder.name, "all"):
                counts[name][result] += 1
    for name, found in sorted(counts.items(), key=lambda item: item[0] == "all"):
        print(f"{name:12}", *(f"{one} {found[one]}" for one in OUTCOMES), f"of {found.total()}")
    if options.record:
        part = "kept" if options.kept else "looked-at"
        rows = figures.outcome_table("", part.replace("kept", "kept aside").replace("-", " "), {"all": "all"}, counts)
        run = figures.run_of(
            figures.this_command("benchmarks.attribute_questions"), n=f"{counts['all'].total()} questions"
        )
        figures.record(f"attribute-questions-{part}", rows, run)


if __name__ == "__main__":
    main()
