r"""What questions that a graph writes about itself bring, on questions that people wrote; no language model.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.self_questions [--limit 300] [--count 2000] \
        [--sets metaqa-1 metaqa-2 pathquestion-2] [--no-training] [--record]

`--count` questions are written from each graph with `--seed`; `--limit` questions of each set, drawn with this seed,
are asked with their topic given and with it linked. All default embeddings. None of a set's own questions is an
example or trained on, and nothing was chosen by what is measured here.

`simgrag` answers all questions (`min_confidence=0`): with nothing, with the written questions as examples in the
cascade, and with patterns of the written questions alone. `hit`: a gold answer is among those proposed; exact match:
they are the gold ones. `kaping` and `subgraph-rag`, trained on the written questions with `--num-examples`,
propose no answers: the share of the gold answers that are an end of the first 10 triples. All with 95 % bootstrap
intervals.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from benchmarks import figures
from benchmarks.question_splits import DATA
from kg_retrievers import (
    GraphIndex,
    KnowledgeGraph,
    Question,
    SimGRAGRetriever,
    SubgraphRAGRetriever,
    TripleSimilarityRetriever,
    default_embeddings,
    evaluate,
    generate_questions,
    read_question_set,
    train_triple_scorer,
)
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.questions.examples import ExamplePatternGenerator

#: The graph of each set, and how its questions are read.
SETS = {
    "metaqa-1": (DATA / "metaqa" / "kb.txt", "metaqa", DATA / "metaqa", 1),
    "metaqa-2": (DATA / "metaqa" / "kb.txt", "metaqa", DATA / "metaqa", 2),
    "pathquestion-2": (DATA / "pathquestion" / "2H-kb.txt", "pathquestion", DATA / "pathquestion", 2),
}

#: How many triples the methods that propose no answers return.
FIRST = 10


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--limit", type=int, default=300, help="questions of each set (default: 300)")
    parser.add_argument("--count", type=int, default=2000, help="questions that a graph writes (default: 2000)")
    parser.add_argument("--num-examples", type=int, default=8000, help="looked at in training (default: 8000)")
    parser.add_argument("--methods", nargs="+", default=[""], help="parts of the names of those to measure")
    parser.add_argument("--no-training", action="store_true", help="leave out what is trained")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", action="store_true", help="write the table of the docs, of linked topics")
    arguments = parser.parse_args()
    table: dict[str, list[str]] = {}
    print("| set | n | method | topic | hit | exact match | F1 | answer recall@10 |\n|---|---|---|---|---|---|---|---|")
    made: dict[Path, dict[str, BaseKGRetriever]] = {}
    for name in arguments.sets:
        graph, format, data, hops = SETS[name]
        if graph not in made:
            made[graph] = _retrievers(graph, arguments)
        drawn = read_question_set(data, format, only_hops=[hops], limit=arguments.limit, seed=arguments.seed)  # type: ignore[arg-type]
        for method, retriever in made[graph].items():
            if not any(part in method for part in arguments.methods):
                continue
            for topic in ("given", "linked"):
                cells = _show(name, method, retriever, drawn, topic)
            table.setdefault(method, [method]).append(cells[0] if retriever.proposes_answers else cells[-1])
    if arguments.record:
        head = ["method", *arguments.sets]
        rooms = ["kg_retrievers/methods", "kg_retrievers/questions", "kg_retrievers/training"]
        command = figures.this_command("benchmarks.self_questions")
        n = f"{arguments.limit} questions of each set"
        mode = "no language model, linked entities, no threshold"
        run = figures.run_of(command, n=n, mode=mode, seed=arguments.seed, depends_on=rooms)
        figures.record("self-questions", [head, *table.values()], run)


def _retrievers(path: Path, arguments: argparse.Namespace) -> dict[str, BaseKGRetriever]:
    """Return what is measured on a graph."""
    graph = KnowledgeGraph.from_file(path)
    began = time.process_time()
    written = generate_questions(graph, arguments.count, seed=arguments.seed)
    print(f"<!-- {path.name}: {len(written)} questions in {time.process_time() - began:.1f} s CPU -->", flush=True)
    index = GraphIndex.build(graph, default_embeddings())
    alone = ExamplePatternGenerator(index, written)
    retrievers: dict[str, BaseKGRetriever] = {
        "simgrag": SimGRAGRetriever.from_index(index, min_confidence=0),
        "simgrag, written examples": SimGRAGRetriever.from_index(index, examples=written, min_confidence=0),
        "simgrag, written examples alone": SimGRAGRetriever(index=index, pattern_generator=alone, min_confidence=0),
        "kaping": TripleSimilarityRetriever.from_index(index, max_hops=2, k=FIRST),
    }
    if not arguments.no_training:
        began = time.process_time()
        scorer = train_triple_scorer(index, written, num_examples=arguments.num_examples, seed=arguments.seed).model
        print(f"<!-- {path.name}: trained in {time.process_time() - began:.0f} s CPU -->", flush=True)
        trained = SubgraphRAGRetriever.from_index(index, model=scorer, granularity="triple", k=FIRST)
        retrievers["subgraph-rag, trained on written questions"] = trained
    return retrievers


def _show(name: str, method: str, retriever: BaseKGRetriever, questions: list[Question], topic: str) -> list[str]:
    """Print a row and return its figures."""
    report = evaluate(retriever, questions, topic=topic, method=method)  # type: ignore[arg-type]
    if errors := report.metrics["errors"]:
        raise SystemExit(f"{method}: {errors} errors")
    wanted = ("hit", "exact_match", "f1_macro") if retriever.proposes_answers else ("answer_recall",)
    cells = [_cell(report.metrics.get(key), report.intervals.get(key)) for key in wanted]
    cells = [*cells, "-"] if retriever.proposes_answers else ["-", "-", "-", *cells]
    print(f"| {name} | {len(questions)} | {method} | {topic} | {' | '.join(cells)} |", flush=True)
    return cells


def _cell(value: float | None, interval: object) -> str:
    if value is None:
        return "-"
    low, high = interval if isinstance(interval, list | tuple) else (value, value)
    return f"{figures.share(value)} [{figures.share(low)}-{figures.share(high)}]"


if __name__ == "__main__":
    main()
