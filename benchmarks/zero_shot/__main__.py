r"""How well a retriever answers on graphs that nobody taught: no language model, nothing trained on the graph.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.zero_shot [--method simgrag] [--own FOLDER ...]

Run it in the root of the checkout. Sets: the natural questions on FB15k-237, MetaQA's dev questions of 1 to 3 hops and
the paraphrases of those of one, PathQuestion of 2 and 3 hops, and folders of one's own with `graph.tsv`,
`questions.jsonl`, `unanswerable.jsonl` and `examples.jsonl`. All questions are asked without a threshold; whether the
default one (`min_confidence`) lets an answer through follows from its confidence. "lacking" are questions to graphs
without a relation of their gold path (see `question_sets.py`), and the unanswerable ones of one's own folders. Wrong
is an answer that holds no gold answer. `--output` gets a row a question, as JSON lines; see `asking.Row`. `--record`
writes a table of the docs: with published sets a row for each set, without them the figures of all graphs together.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from benchmarks import figures
from benchmarks.zero_shot import measures
from benchmarks.zero_shot.asking import Row, Topic, ask, build_retriever, default_threshold
from benchmarks.zero_shot.indexes import EmbeddingsName, Indexer, default_cache
from benchmarks.zero_shot.question_sets import (
    PUBLISHED,
    lacking,
    large_vocabulary,
    own_set,
    published_sets,
)


def main() -> None:
    """Ask, print the tables and write the rows."""
    arguments = _arguments()
    threshold = arguments.min_confidence
    if threshold is None:
        threshold = default_threshold(arguments.method)
    if arguments.read:
        rows = [json.loads(line) for line in arguments.read.read_text(encoding="utf-8").splitlines()]
    else:
        rows = []
        with open(arguments.output or os.devnull, "w", encoding="utf-8") as file:
            for row in _asked(arguments):
                rows.append(row)
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        print(f"{arguments.method}, embeddings {arguments.embeddings}\n")
    titles = {
        f"Answers; the threshold is {threshold}": measures.answer_table(rows, threshold),
        "By threshold: answered / wrong of these / lacking refused": measures.threshold_table(rows),
        "By confidence: hit / exact (n)": measures.reliability_table(rows),
        "By kind, at the threshold": measures.kind_table(rows, threshold),
        "CPU ms of one question": measures.speed_table(rows),
    }
    for title, table in titles.items():
        print(f"{title}\n\n{table}\n")
    if arguments.record:
        _record([row for row in rows if row["topic"] == "linked"], threshold, arguments)


def _record(rows: list[Row], threshold: float, arguments: argparse.Namespace) -> None:
    """Write a table of the docs."""
    asked = [row for row in rows if row["setting"] == "plain" and row["answerable"] and row["kind"] != "claim"]
    if arguments.sets:
        name, table, mode = "graphs-nobody-taught", measures.set_lines(rows, threshold), figures.SIMGRAG
    else:
        folder = arguments.own[0].parent.name
        name, table, mode = (
            f"own-graphs-{folder}",
            measures.own_lines(rows, threshold, folder),
            figures.SIMGRAG_EXAMPLES,
        )
    command = figures.this_command("benchmarks.zero_shot")
    command = re.sub(r"(\S+/)\w+(?: \1\w+)+", r"\1*", re.sub(r" --output \S+", "", command))  # as it is typed
    figures.record(name, table, figures.run_of(command, n=f"{len(asked):,} questions", mode=mode, seed=0))


def _asked(arguments: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for each question and topic."""
    indexer = Indexer(arguments.embeddings, arguments.cache)
    published = list(published_sets(arguments.sets, arguments.n, indexer))
    for one in [*published, *(own_set(folder, indexer) for folder in arguments.own)]:
        settings = {"plain": build_retriever(arguments.method, one.source.index)}
        if one.examples:
            settings["examples"] = build_retriever(arguments.method, one.source.index, one.examples)
        for setting, retriever in settings.items():
            for topic in arguments.topic:
                for question in (*one.questions, *one.unanswerable):
                    yield ask(retriever, question, topic, of=one.name, setting=setting)
    for index, asked in lacking(published, arguments.lacking) if arguments.lacking else ():
        retriever = build_retriever(arguments.method, index)
        for name, question in asked:
            for topic in arguments.topic:
                yield ask(retriever, question, topic, of=name, setting="lacking")
    if arguments.speed:
        index, questions = large_vocabulary(indexer)
        retriever = build_retriever(arguments.method, index)
        for question in questions:
            yield ask(retriever, question, "linked", of="5,000 relations", setting="speed")


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
    parser.add_argument("--read", type=Path, help="ask nothing, and print the tables of such a file")
    parser.add_argument("--record", action="store_true", help="write the table of the docs, without --read")
    arguments = parser.parse_args()
    if arguments.read and arguments.record:
        parser.error("--record writes the commit of this checkout, which may not be that of the rows to --read.")
    return arguments


if __name__ == "__main__":
    main()
