r"""How much of the answers each method finds where every question has a graph of its own; no language model.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/question_graphs.py \
        [--split question relation] [--folds 5] [--triples 2000] [--examples 2000] [--write FOLDER]

The set is made as RoG made its WebQSP: natural questions (145 of SimpleQuestions whose fact stands in FB15k-237), each
with triples within two hops of its topic: the `--triples` that a random walk with restarts at the topic (personalised
PageRank) takes most often.
Nothing looks at the answers; "coverage" is the share of questions with a gold answer in their graph. Entities and
answers are names, as in the published files; `--write` keeps the set as JSON lines that `--format webqsp` reads.

The questions are dealt into folds, by question, or by relation, so that no relation between a topic and an answer is in
two folds. Each fold is measured by models that the others trained, the next one saying when to stop, so all questions
are measured. Topics are given. Answer recall: the mean share of the gold answers at an end of a triple of the evidence,
with a bootstrap interval; hit: the share of questions with one there, with Wilson's; both of all questions, also those
whose graph lacks the answer. Proposed: the share with a gold answer among those that the method proposes.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
from question_splits import DATA, EMBEDDINGS, embeddings_of
from wilson import wilson_interval

from kg_retrievers import GraphIndex, KnowledgeGraph, Question, evaluate, read_questions
from kg_retrievers.algorithms.neighborhood import neighborhood
from kg_retrievers.algorithms.pagerank import personalized_pagerank
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.datasets import GraphQuestion, read_webqsp
from kg_retrievers.evaluation.records import Record
from kg_retrievers.evaluation.report import Report
from kg_retrievers.graph.columns import Array
from kg_retrievers.methods import registry

HOPS = 2

#: What is measured: a label, the method, and its fields. Triples: 10 and 100 of them, where a method ranks them.
MEASURED: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("kaping, 10 triples", "kaping", {"k": 10}),
    ("kaping, 100 triples", "kaping", {"k": 100}),
    ("subgraph-rag, 10 triples", "subgraph-rag", {"k": 10, "granularity": "triple"}),
    ("subgraph-rag, 100 triples", "subgraph-rag", {"k": 100, "granularity": "triple"}),
    ("gnn-rag", "gnn-rag", {}),
    ("g-retriever", "g-retriever", {}),
    ("simgrag", "simgrag", {}),
    ("rog", "rog", {}),
    ("neighborhood", "neighborhood", {}),
)


class Fold(NamedTuple):
    """Questions that are measured, and those that train what measures them."""

    training: list[GraphQuestion]
    validation: list[GraphQuestion]
    measured: list[GraphQuestion]


def main() -> None:
    """Print the set and the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", nargs="+", choices=("question", "relation"), default=["question", "relation"])
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--triples", type=int, default=2_000, help="the most triples of a graph")
    parser.add_argument("--examples", type=int, default=2_000, help="questions that a training looks at")
    parser.add_argument("--embeddings", choices=EMBEDDINGS, default="static")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", type=Path, help="a folder for the set as JSON lines, by relation, seed 0")
    arguments = parser.parse_args()
    rows, relations = make_set(arguments.triples)
    folder = arguments.write or Path(".")
    questions = [_question(row) for row in rows]
    _print_set(questions)
    if arguments.write:
        write_set(folder, rows, deal(relations, arguments.folds, arguments.seed))
    for split in arguments.split:
        groups = relations if split == "relation" else [str(position) for position in range(len(rows))]
        print(f"\nby {split}, {arguments.folds} folds, seed {arguments.seed}, {arguments.embeddings} embeddings")
        dealt = deal(groups, arguments.folds, arguments.seed)
        _measure(questions, dealt, arguments)


# --- the set ----------------------------------------------------------------------------------------------------------


def make_set(most: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Return rows in RoG's layout, and of each the relation from the topic to its answers."""
    graph = KnowledgeGraph.from_file(DATA / "fb15k-237" / "train.txt", entities=DATA / "fb15k-237" / "entities.tsv")
    asked = read_questions(DATA / "relation_language" / "fb237_questions_dev.jsonl")
    rows = [_row(graph, question, number, most) for number, question in enumerate(asked)]
    return rows, [_relation(graph, question) for question in asked]


def _row(graph: KnowledgeGraph, question: Question, number: int, most: int) -> dict[str, Any]:
    seeds = np.array([graph.entities.find(key) for key in question.seed_entities])
    kept = around(graph, seeds, most)
    named = ((graph.label(head), relation, graph.label(tail)) for head, relation, tail in map(graph.triple, kept))
    return {
        "id": f"FB237-{number}",
        "question": question.text,
        "answer": [graph.label(key) for key in question.answers],
        "q_entity": [graph.label(key) for key in question.seed_entities],
        "a_entity": [graph.label(key) for key in question.answers],
        "graph": [list(triple) for triple in named],
    }


def around(graph: KnowledgeGraph, seeds: Array, most: int) -> list[int]:
    """Return the triples within `HOPS` of the seeds, at most so many: those that the random walk takes most often."""
    near = neighborhood(graph.adjacency, seeds, max_hops=HOPS).triples
    degrees = np.diff(graph.adjacency.indptr)
    taken = personalized_pagerank(graph.adjacency, seeds) / np.maximum(degrees, 1)
    flow = taken[graph.edges[near][:, [0, 2]]].sum(axis=1)
    kept: list[int] = np.sort(near[np.argsort(-flow, kind="stable")[:most]]).tolist()
    return kept


def _relation(graph: KnowledgeGraph, question: Question) -> str:
    """Return the relation that leads from the topic to most of the answers."""
    counts: dict[str, int] = {}
    for topic in question.seed_entities:
        for answer in question.answers:
            joining = [*graph.triples(head=topic, tail=answer), *graph.triples(head=answer, tail=topic)]
            for relation in {triple.relation for triple in joining}:
                counts[relation] = counts.get(relation, 0) + 1
    return max(sorted(counts), key=lambda relation: counts[relation], default="")


def deal(groups: Sequence[str], folds: int, seed: int) -> list[list[int]]:
    """Return the positions of each fold; equal groups stay together, and the largest are dealt first."""
    by_group: dict[str, list[int]] = {}
    for position, group in enumerate(groups):
        by_group.setdefault(group, []).append(position)
    order = sorted(by_group)
    Random(seed).shuffle(order)
    dealt: list[list[int]] = [[] for _ in range(folds)]
    for group in sorted(order, key=lambda name: -len(by_group[name])):
        min(dealt, key=len).extend(by_group[group])
    return [sorted(fold) for fold in dealt]


def write_set(folder: Path, rows: Sequence[dict[str, Any]], dealt: Sequence[Sequence[int]]) -> None:
    """Write the first fold as test, the second as validation, and the others as training."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = {"test": dealt[0], "validation": dealt[1], "train": sorted(at for fold in dealt[2:] for at in fold)}
    for name, positions in parts.items():
        lines = [json.dumps(rows[position], ensure_ascii=False) + "\n" for position in positions]
        (folder / f"{name}.jsonl").write_text("".join(lines), "utf-8")
    print(f"written to {folder}: {len(list(read_webqsp(folder, 'train')))} training questions are read back")


def _question(row: dict[str, Any]) -> GraphQuestion:
    return GraphQuestion(
        row["question"],
        seed_entities=tuple(row["q_entity"]),
        answers=tuple(dict.fromkeys(row["answer"])),
        graph=KnowledgeGraph.from_triples(row["graph"]),
        id=row["id"],
    )


def _print_set(questions: Sequence[GraphQuestion]) -> None:
    covered = sum(any(answer in one.graph.entities for answer in one.answers) for one in questions)
    triples, entities = ([len(part) for part in parts] for parts in zip(*map(_sizes, questions), strict=True))
    print(
        f"{len(questions)} questions; triples of a graph: mean {np.mean(triples):,.0f}, most {max(triples):,}; "
        f"entities: mean {np.mean(entities):,.0f}; coverage {covered / len(questions):.3f}"
    )


def _sizes(question: GraphQuestion) -> tuple[KnowledgeGraph, Any]:
    return question.graph, question.graph.entities


# --- the measurement --------------------------------------------------------------------------------------------------


def _measure(questions: Sequence[GraphQuestion], dealt: Sequence[Sequence[int]], arguments: argparse.Namespace) -> None:
    records: dict[str, list[Record]] = {}
    header: Any = None
    for fold in _folds(questions, dealt):
        for label, retriever in _retrievers(fold, arguments):
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "evaluate: the graph holds no gold answer")  # the coverage tells
                report = evaluate(retriever, fold.measured, method=label, seed=arguments.seed)
            records.setdefault(label, []).extend(report.records)
            header = report.settings
    print("| method | n | answer recall | hit | proposed | triples | ms p50 |\n|---|---|---|---|---|---|---|")
    for label, made in records.items():
        print(_line(label, made, header, arguments.seed))


def _folds(questions: Sequence[GraphQuestion], dealt: Sequence[Sequence[int]]) -> Iterator[Fold]:
    for position in range(len(dealt)):
        other = (position + 1) % len(dealt)
        training = [at for number, fold in enumerate(dealt) if number not in (position, other) for at in fold]
        parts = (training, dealt[other], dealt[position])
        yield Fold(*([questions[at] for at in part] for part in parts))


def _retrievers(fold: Fold, arguments: argparse.Namespace) -> Iterator[tuple[str, BaseKGRetriever]]:
    index = GraphIndex.build(fold.training[0].graph, embeddings_of(arguments.embeddings))
    models: dict[str, Any] = {}
    for label, name, fields in MEASURED:
        method = registry.find_method(name)
        if method.trainer and name not in models:
            began = time.perf_counter()
            train = method.load_trainer()
            given = {"num_examples": arguments.examples, "seed": arguments.seed}
            models[name] = train(index, fold.training, fold.validation, **given).model
            print(f"  {name}: {len(fold.training)} questions in {time.perf_counter() - began:.0f} s", flush=True)
        given = {"model": models[name]} if name in models else {}
        yield label, method.load_retriever().from_index(index, **given, **fields)


def _line(label: str, records: Sequence[Record], settings: Any, seed: int) -> str:
    header: Any = {"format": "", "method": label, "seed": seed, "proposes_answers": True, "settings": settings}
    report = Report.from_header(header, list(records))
    recalls = [record["metrics"]["answer_recall"] or 0.0 for record in records]
    found, count = sum(recall > 0 for recall in recalls), len(recalls)
    proposed = [record["metrics"]["hit"] for record in records]
    low, high = report.intervals["answer_recall"] or (0, 0)
    hit_low, hit_high = wilson_interval(found, count)
    said = "-" if all(not record["answers"] for record in records) else f"{np.mean([hit or 0 for hit in proposed]):.3f}"
    figures = report.metrics
    return (
        f"| {label} | {count} | {np.mean(recalls):.3f} ({low:.3f}-{high:.3f}) | {found / count:.3f} "
        f"({hit_low:.3f}-{hit_high:.3f}) | {said} | {figures['triples_mean']:.0f} | {figures['latency_ms_p50']:.0f} |"
    )


if __name__ == "__main__":
    main()
