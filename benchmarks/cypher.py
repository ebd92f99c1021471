"""Cypher retrieval on MetaQA without a language model: templates from examples with answers, on an embedded database.

    python benchmarks/cypher.py [--sections schema examples paraphrases] [--embeddings static hashed minilm] [--limit N]

Data: the folder named in KG_RETRIEVERS_DATA (default ../shared/data). The examples are 80 % of the dev questions, all
hops together, with nothing but their answers and topics; measured is on the other 20 %, the paraphrases with examples
from all plain 1-hop questions. Needs the extra `ladybug`. Each figure comes with its number of questions and, where
questions were drawn, a 95 % bootstrap interval.

`hit`: a gold answer is among the answers; `exact`: they are the gold answers; `matching rate`: the share of the gold
answers in the extractive answer (SG-RAG, equation 1). `database`: the time of the queries of one question, from the
check of their text to rows of triples, on the clock and of all threads' CPU; `end to end`: that of `invoke`.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from question_splits import EMBEDDINGS, Indexes

from kg_retrievers import ExtractiveAnswerer, GraphIndex, KnowledgeGraph, Question, evaluate
from kg_retrievers.database.ladybug import LadybugExecutor
from kg_retrievers.datasets import read_metaqa
from kg_retrievers.graph import Known, Pattern
from kg_retrievers.methods.sg_rag.retriever import CypherRetriever
from kg_retrievers.methods.sg_rag.writers import TemplateCypherWriter
from kg_retrievers.questions.labelling import label_examples

DATA = Path(os.environ.get("KG_RETRIEVERS_DATA", Path(__file__).parents[2] / "shared" / "data"))
SEED = 20261120
HOPS = (1, 2, 3)


class Timed:
    """An executor that remembers how long its queries took."""

    def __init__(self, executor: LadybugExecutor) -> None:
        """Take the executor."""
        self.executor, self.dialect = executor, executor.dialect
        self.schema = executor.schema
        self.milliseconds: list[float] = []
        self.cpu_milliseconds: list[float] = []
        self.truncated = 0

    def run(self, *arguments: Any, **named: Any) -> Any:
        """Run a query."""
        began, cpu_began = time.perf_counter(), time.process_time()
        rows = self.executor.run(*arguments, **named)
        self.milliseconds.append(1000 * (time.perf_counter() - began))
        self.cpu_milliseconds.append(1000 * (time.process_time() - cpu_began))
        self.truncated += rows.truncated
        return rows


def main() -> None:
    """Run the sections asked for and print Markdown tables."""
    sections = {"schema": schema, "examples": examples, "paraphrases": paraphrases}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sections", nargs="+", choices=sections, default=list(sections))
    parser.add_argument("--embeddings", nargs="+", choices=EMBEDDINGS, default=["hashed", "minilm"])
    parser.add_argument("--limit", type=int, help="measure at most this many questions of each set, drawn at random")
    parser.add_argument("--cache", type=Path, help="a file that keeps embeddings over several runs")
    parser.add_argument("--database", type=Path, help="a file that keeps the database over several runs")
    arguments = parser.parse_args()
    graph = KnowledgeGraph.from_file(DATA / "metaqa" / "kb.txt")
    print(f"MetaQA: {graph}\n")
    if arguments.database and arguments.database.exists():
        executor = LadybugExecutor(arguments.database)
    else:
        executor = LadybugExecutor.from_graph(graph, arguments.database)
    for kind in arguments.embeddings:
        index = Indexes(kind, arguments.cache)(DATA / "metaqa" / "kb.txt")
        for name in arguments.sections:
            if name != "schema" or kind == arguments.embeddings[0]:
                sections[name](index, executor, kind, arguments.limit)


def split(questions: Sequence[Question]) -> tuple[list[Question], list[Question]]:
    """Split 80 / 20 by question, with a fixed seed; examples keep their answers and topics only."""
    shuffled = list(questions)
    random.Random(SEED).shuffle(shuffled)
    cut = len(shuffled) * 4 // 5
    return [replace(question, pattern=None, kind=None) for question in shuffled[:cut]], shuffled[cut:]


def steps(pattern: Pattern) -> tuple[tuple[str, bool], ...]:
    """Return the relations of a walk from its known node, each with whether it is crossed from head to tail."""
    here, left, found = next(node for node in pattern.nodes if isinstance(node, Known)), list(pattern.triples), []
    while left:
        triple = next(triple for triple in left if here in (triple.head, triple.tail))
        left.remove(triple)
        assert isinstance(triple.relation, Known)
        found.append((triple.relation.text, triple.head == here))
        here = triple.tail if triple.head == here else triple.head
    return tuple(found)


def schema(index: GraphIndex, executor: LadybugExecutor, kind: str, limit: int | None) -> None:
    """Print how many examples get the template of their question type from their answers alone."""
    print("### Templates from answers")
    print("\n| hop | question types | examples | given their type's template |")
    print("|---|---|---|---|")
    for hop in HOPS:
        questions = read_metaqa(DATA / "metaqa", hop)
        types = {question.kind: steps(question.pattern) for question in questions if question.pattern}
        labelled = label_examples(index, [replace(question, pattern=None) for question in questions])
        right = [
            example.pattern is not None and steps(example.pattern) == types[question.kind]
            for example, question in zip(labelled, questions, strict=True)
        ]
        print(f"| {hop} | {len(types)} | {len(right)} | {np.mean(right):.4f} |", flush=True)
    print()


def examples(index: GraphIndex, executor: LadybugExecutor, kind: str, limit: int | None) -> None:
    """Examples from 80 %, measured on 20 %."""
    parts = {hop: split(read_metaqa(DATA / "metaqa", hop)) for hop in HOPS}
    began = time.process_time()
    writer = TemplateCypherWriter(index, [question for known, _ in parts.values() for question in known])
    print(f"({sum(len(known) for known, _ in parts.values())} examples: {time.process_time() - began:.0f} s of CPU)\n")
    header(f"Examples from 80 % of dev, measured on 20 % ({kind})")
    for hop, (_, measured) in parts.items():
        for topic in ("given", "linked"):
            row(f"{hop}-hop", index, writer, executor, drawn(measured, limit), topic)
    print()


def paraphrases(index: GraphIndex, executor: LadybugExecutor, kind: str, limit: int | None) -> None:
    """Examples from the plain 1-hop questions, measured on their published paraphrases."""
    known = [replace(question, pattern=None, kind=None) for question in read_metaqa(DATA / "metaqa", 1)]
    writer = TemplateCypherWriter(index, known)
    measured = drawn(read_metaqa(DATA / "metaqa", 1, paraphrases=True), limit)
    header(f"Examples from the plain 1-hop questions, measured on their paraphrases ({kind})")
    for topic in ("given", "linked"):
        row("1-hop, paraphrased", index, writer, executor, measured, topic)
    print()


def drawn(questions: Sequence[Question], limit: int | None) -> list[Question]:
    """Return the questions, or as many as the limit says, drawn with a fixed seed."""
    return (
        list(questions)[:limit] if limit is None else random.Random(SEED).sample(questions, min(limit, len(questions)))
    )


def header(title: str) -> None:
    print(f"### {title}\n")
    print("| set | topic | n | hit | exact | matching rate | truncated | database ms | of CPU | end to end ms |")
    print("|---|---|---|---|---|---|---|---|---|---|")


def row(
    name: str, index: GraphIndex, writer: Any, executor: LadybugExecutor, measured: list[Question], topic: Any
) -> None:
    """Measure, and print a row."""
    timed = Timed(executor)
    retriever = CypherRetriever(index=index, writer=writer, executor=timed)
    report = evaluate(retriever, measured, answerer=ExtractiveAnswerer(), topic=topic)
    times = timed.milliseconds
    figures = []
    for metric in ("hit", "exact_match", "text_recall"):
        interval = report.intervals.get(metric)
        shown = f" [{interval[0]:.4f}, {interval[1]:.4f}]" if interval else ""
        figures.append(f"{report.metrics[metric]:.4f}{shown}")
    latency = [report.metrics[f"latency_ms_{part}"] or 0.0 for part in ("p50", "p95")]
    cells = [
        name,
        "given" if topic == "given" else "not given",
        str(len(measured)),
        *figures,
        str(timed.truncated),
        f"{np.quantile(times, 0.5):.2f}, 95 %: {np.quantile(times, 0.95):.1f}",
        f"{np.quantile(timed.cpu_milliseconds, 0.5):.2f}",
        f"{latency[0]:.1f}, 95 %: {latency[1]:.1f}",
    ]
    print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
