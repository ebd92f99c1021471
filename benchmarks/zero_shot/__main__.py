r"""How well a retriever answers on graphs that nobody taught: no language model, nothing trained on the graph.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.zero_shot [--method simgrag] [--own FOLDER ...]

Run it in the root of the checkout. Sets: the natural questions on FB15k-237, MetaQA's dev questions of 1 to 3 hops and
the paraphrases of those of one, PathQuestion of 2 and 3 hops, and folders of one's own with `graph.tsv`,
`questions.jsonl`, `unanswerable.jsonl` and `examples.jsonl`. All questions are asked without a threshold; whether the
default one (`min_confidence`) lets an answer through follows from its confidence. "lacking" are questions to graphs
without a relation of their gold path (see `question_sets.py`), and the unanswerable ones of one's own folders. Wrong
is an answer that holds no gold answer. `--output` gets a row a question, as JSON lines; see `asking.Row`.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from benchmarks.zero_shot import measures
from benchmarks.zero_shot.asking import Row, Topic, ask, build_retriever, default_threshold
from benchmarks.zero_shot.indexes import EmbeddingsName, Indexer, default_cache
from benchmarks.zero_shot.question_sets import (
    PUBLISHED,
    BuildIndex,
    QuestionSet,
    lacking,
    large_vocabulary,
    own_set,
    published_sets,
)

#: Questions that are asked before the clock counts: the first search compiles.
WARM_UP = 10


def main() -> None:
    """Ask, print the tables and write the rows."""
    arguments = _arguments()
    indexer = Indexer(arguments.embeddings, arguments.cache)
    sets = list(published_sets(arguments.sets, arguments.n, indexer))
    sets += [own_set(folder, indexer) for folder in arguments.own]
    rows = []
    with open(arguments.output or "/dev/null", "w", encoding="utf-8") as file:
        for row in _asked(sets, arguments):
            rows.append(row)
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    threshold = default_threshold(arguments.method)
    if arguments.min_confidence is not None:
        threshold = arguments.min_confidence
    print(f"{arguments.method}, embeddings {arguments.embeddings}, threshold {threshold}\n")
    print(measures.answer_table(rows, threshold), "\n\nReliability: hit / exact (n) by confidence\n")
    print(measures.reliability_table(rows))
    if arguments.own:
        print("\n" + measures.kind_table(rows, threshold, [one.name for one in sets if one.own]))
    times = {
        one.name: [row["cpu_ms"] for row in rows if row["set"] == one.name and row["setting"] == "plain"][WARM_UP:]
        for one in sets
        if one.name.startswith("metaqa")
    }
    if arguments.speed:
        times |= _large_vocabulary(arguments.method, indexer)
    if times:
        print("\n" + measures.speed_table(times))


def _asked(sets: list[QuestionSet], arguments: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for each question and topic."""
    for one in sets:
        settings = {"plain": build_retriever(arguments.method, one.source.index)}
        if one.examples:
            settings["examples"] = build_retriever(arguments.method, one.source.index, one.examples)
        for setting, retriever in settings.items():
            for topic in arguments.topic:
                for question in (*one.questions, *one.unanswerable):
                    yield ask(retriever, question, topic, of=one.name, setting=setting)
    published = [one for one in sets if not one.own]
    for index, asked in lacking(published, arguments.lacking) if arguments.lacking else ():
        retriever = build_retriever(arguments.method, index)
        for name, question in asked:
            for topic in arguments.topic:
                yield ask(retriever, question, topic, of=name, setting="lacking")


def _large_vocabulary(method: str, build: BuildIndex) -> dict[str, list[float]]:
    """Return the CPU times of questions to a graph of 5,000 relations."""
    index, questions = large_vocabulary(build)
    retriever = build_retriever(method, index)
    rows = [ask(retriever, question, "linked", of="5,000 relations", setting="plain") for question in questions]
    return {"5,000 relations": [row["cpu_ms"] for row in rows[WARM_UP:]]}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.zero_shot", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--method", default="simgrag", help="a method that needs nothing: simgrag, cypher, ...")
    parser.add_argument("--embeddings", choices=get_args(EmbeddingsName), default="default")
    parser.add_argument("--sets", nargs="*", choices=PUBLISHED, default=list(PUBLISHED))
    parser.add_argument("--own", nargs="+", type=Path, default=[], metavar="FOLDER", help="folders of one's own")
    parser.add_argument("--topic", nargs="+", choices=get_args(Topic), default=list(get_args(Topic)))
    parser.add_argument("--n", type=int, default=300, help="questions of each published set; 0 for all")
    parser.add_argument("--lacking", type=int, default=100, help="of these, questions to graphs that lack a relation")
    parser.add_argument("--min-confidence", type=float, help="another threshold than the default one")
    parser.add_argument("--no-speed", dest="speed", action="store_false", help="leave out the graph of 5,000 relations")
    parser.add_argument("--cache", type=Path, default=default_cache(), help="the folder that keeps vectors")
    parser.add_argument("--output", type=Path, help="a file of JSON lines, a row a question")
    return parser.parse_args()


if __name__ == "__main__":
    main()
