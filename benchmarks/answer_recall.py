"""How many of the gold answers are among the first triples, without a topic and without a language model.

    python benchmarks/answer_recall.py [--sets metaqa pathquestion] [--embeddings static hashed minilm] [--limit 1000]

Answer recall at 10, 25, 50 and 100 triples, in the order of the method: the share of the gold answers that are an end
of one of these, in the mean over the questions, with a 95 % bootstrap interval at 100. Each Document is one triple, so
that all methods are cut alike. A question in which no entity is found counts as 0.

MetaQA: `--limit` dev questions a hop, drawn with a fixed seed; the prizes were chosen on questions that are drawn after
the first 1,000. PathQuestion: the first half of the shuffled questions of each file, at most `--limit`; the prizes were
chosen on the second half. The first run with MiniLM embeds all triples, which takes long; `--cache FILE` keeps them.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from question_splits import EMBEDDINGS, embeddings_of

from kg_retrievers import (
    GraphIndex,
    KnowledgeGraph,
    PCSTRetriever,
    Question,
    TripleSimilarityRetriever,
)
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.datasets import read_metaqa, read_pathquestion

DATA = Path(os.environ.get("KG_RETRIEVERS_DATA", Path(__file__).parents[2] / "shared" / "data"))
SEED = 20261121
SIZES = (10, 25, 50, 100)


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=["metaqa", "pathquestion"], default=["metaqa", "pathquestion"])
    parser.add_argument("--embeddings", nargs="+", choices=EMBEDDINGS, default=["hashed"])
    parser.add_argument("--limit", type=int, default=1000, help="questions of each number of hops (default: 1000)")
    parser.add_argument("--cache", type=Path, help="a file that keeps embeddings over several runs")
    parser.add_argument(
        "--methods",
        nargs="+",
        default=["cosine", "prizes of paths"],
        help="parts of the names of methods to run; PCST for the other prizes and costs that were tried, too, which "
        "are slow on 1,000 questions (default: %(default)s)",
    )
    arguments = parser.parse_args()
    print(f"| questions | n | embeddings | method | {' | '.join(f'@{size}' for size in SIZES)} | 95 % | ms CPU |")
    print(f"|---|---|---|---|{'---|' * (len(SIZES) + 2)}")
    for kind in arguments.embeddings:
        for name, index, questions in _tasks(arguments, kind):
            for method, retriever in _methods(index).items():
                if any(part in method for part in arguments.methods):
                    print(
                        f"| {name} | {len(questions)} | {kind} | {method} | {_measure(retriever, questions)} |",
                        flush=True,
                    )


def _methods(index: GraphIndex) -> dict[str, BaseKGRetriever]:
    def pcst(**fields: object) -> BaseKGRetriever:
        return PCSTRetriever.from_index(index, granularity="triple", k=SIZES[-1], on_refusal="empty", **fields)

    def cosine(**fields: object) -> BaseKGRetriever:
        return TripleSimilarityRetriever.from_index(index, k=SIZES[-1], on_refusal="empty", **fields)

    return {
        "cosine, whole graph": cosine(scope="graph"),
        "cosine, 3 hops": cosine(max_hops=3),
        "PCST, prizes of paths": pcst(),
        "PCST, paths, 5 x the cost": pcst(edge_cost=0.5),
        "PCST, published prizes, 3 hops": pcst(prizes="published"),
        "PCST, paper's prizes, 3 hops": pcst(prizes="paper"),
        "PCST, published prizes, whole graph": pcst(prizes="published", scope="graph", pruning="gw"),
    }


def _tasks(arguments: argparse.Namespace, kind: str) -> Iterator[tuple[str, GraphIndex, list[Question]]]:
    """Yield the name of each set, its index and its questions."""
    if "metaqa" in arguments.sets:
        index = _index(DATA / "metaqa" / "kb.txt", kind, arguments.cache)
        for hops in (1, 2, 3):
            questions = _shuffled(read_metaqa(DATA / "metaqa", hops))
            yield f"MetaQA {hops}-hop", index, questions[: arguments.limit]
    if "pathquestion" in arguments.sets:
        for hops in (2, 3):
            index = _index(DATA / "pathquestion" / f"{hops}H-kb.txt", kind, arguments.cache)
            questions = _shuffled(read_pathquestion(DATA / "pathquestion" / f"PQ-{hops}H.txt"))
            yield f"PathQuestion {hops}-hop", index, questions[: len(questions) // 2][: arguments.limit]


def _index(path: Path, kind: str, cache: Path | None) -> GraphIndex:
    embeddings = embeddings_of(kind)
    return GraphIndex.build(KnowledgeGraph.from_file(path), embeddings, cache=cache, triples=True)


def _shuffled(questions: Sequence[Question]) -> list[Question]:
    return random.Random(SEED).sample(questions, len(questions))


def _measure(retriever: BaseKGRetriever, questions: Sequence[Question]) -> str:
    """Return the recalls, an interval and the time as cells of a table."""
    retriever.invoke(questions[0].text)  # compiles, and loads what is loaded once
    began = time.process_time()
    found = [
        [document.metadata["triples"][0] for document in retriever.invoke(question.text)] for question in questions
    ]
    milliseconds = 1000 * (time.process_time() - began) / len(questions)
    recalls = np.array(
        [
            [_recall(question.answers, triples[:size]) for size in SIZES]
            for question, triples in zip(questions, found, strict=True)
        ]
    )
    means = np.random.default_rng(SEED).choice(recalls[:, -1], (2000, len(recalls))).mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    cells = [f"{mean:.3f}" for mean in recalls.mean(axis=0)]
    return " | ".join([*cells, f"{low:.3f} ... {high:.3f}", f"{milliseconds:.0f}"])


def _recall(gold: Sequence[str], triples: Sequence[Sequence[str]]) -> float:
    ends = {end for head, _, tail in triples for end in (head, tail)}
    return len(ends.intersection(gold)) / len(set(gold))


if __name__ == "__main__":
    main()
