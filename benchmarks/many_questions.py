"""Many questions at once: a batch and threads against a loop of single questions.

    OMP_NUM_THREADS=1 python -m benchmarks.many_questions [--graph metaqa | 1M | 4.3M] [--questions 100]
        [--kinds KIND ...]
    OMP_NUM_THREADS=1 python -m benchmarks.many_questions --long [--questions 20000] [--seconds 120]

With `--long`, each registered method is asked many questions about the sample graph, one after the other, in a process
of its own; trained methods have drawn weights. The first figures of memory and descriptors are those after a tenth of
the questions, when caches are full.

Each round asks the same questions in every way, one after the other, with nothing kept from before; a ratio is the
median of those of the rounds. CPU is that of all threads. Where several threads may compute a matrix product, they spin
between products, and a question costs several times as much. Data of MetaQA: the folder named in KG_RETRIEVERS_DATA
(default ../shared/data).
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.documents import Document

from benchmarks.synthetic_graph import SIZES, synthetic_graph
from kg_retrievers import GraphIndex, KnowledgeGraph, SimGRAGRetriever
from kg_retrievers.datasets import Question, read_metaqa
from kg_retrievers.errors import KGRetrieversError
from kg_retrievers.index import HashedEmbeddings, default_embeddings, linker_of
from kg_retrievers.methods.registry import METHODS, find_method
from kg_retrievers.sample import load_graph

DATA = Path(os.environ.get("KG_RETRIEVERS_DATA", Path(__file__).parents[2] / "shared" / "data"))
SEED = 20261123

#: How many pairs of runs are compared, and how many examples of MetaQA are known.
PAIRS, EXAMPLES = 3, 4_000

#: How many questions a method is asked for long, and by how many MB its memory may grow from a tenth of them on.
LONG, GROWTH = 20_000, 20

#: How many threads ask.
THREADS = (2, 8)

Ask = Callable[[list[str]], list[list[Document]]]


class Cost(NamedTuple):
    """CPU and wall milliseconds a question, and what was found."""

    cpu: float
    wall: float
    found: list[list[Document]]


def measure_many(retriever: SimGRAGRetriever, questions: Sequence[str], pairs: int = 1) -> dict[str, Any]:
    """Return what questions cost in a loop, in a batch and in threads; CPU and wall in milliseconds a question.

    Raises:
        AssertionError: If a way gives other Documents than the loop.
    """
    asked = list(questions)
    ways = _ways(retriever)
    ways["loop"](asked[: max(1, len(asked) // 10)])  # loads what was compiled
    rounds = []
    for _ in range(pairs):
        measured = {name: _cost(retriever, ask, asked) for name, ask in ways.items()}
        expected = measured["loop"].found
        if others := [name for name, cost in measured.items() if cost.found != expected]:
            raise AssertionError(f"other Documents than those of a loop: {others}")
        rounds.append(measured)
    figures = {f"{name} {part}_ms": _median(rounds, name, part) for part in ("cpu", "wall") for name in ways}
    ratios = {f"loop / {name} {part}": _ratio(rounds, name, part) for part in ("cpu", "wall") for name in [*ways][1:]}
    return {"questions": len(asked), **figures, **ratios}


def _ways(retriever: SimGRAGRetriever) -> dict[str, Ask]:
    def loop(texts: list[str]) -> list[list[Document]]:
        return [retriever.invoke(text) for text in texts]

    def by(threads: int) -> Ask:
        def ask(texts: list[str]) -> list[list[Document]]:
            with ThreadPoolExecutor(threads) as pool:
                return list(pool.map(retriever.invoke, texts))

        return ask

    ways: dict[str, Ask] = {"loop": loop, "batch": retriever.batch}
    ways["abatch"] = lambda texts: asyncio.run(retriever.abatch(texts))
    return ways | {f"{threads} threads": by(threads) for threads in THREADS}


def _cost(retriever: SimGRAGRetriever, ask: Ask, questions: list[str]) -> Cost:
    retriever.index._texts.recent.clear()  # else the next one would not have to embed
    linker_of(retriever.index)._recent.clear()  # nor to link
    cpu, wall = time.process_time(), time.perf_counter()
    found = ask(questions)
    share = 1000 / len(questions)
    return Cost(share * (time.process_time() - cpu), share * (time.perf_counter() - wall), found)


def _median(rounds: Sequence[dict[str, Cost]], name: str, part: str) -> float:
    return round(statistics.median([_part(costs[name], part) for costs in rounds]), 2)


def _ratio(rounds: Sequence[dict[str, Cost]], name: str, part: str) -> float:
    ratios = [_part(costs["loop"], part) / _part(costs[name], part) for costs in rounds]
    return round(statistics.median(ratios), 2)


def _part(cost: Cost, part: str) -> float:
    return cost.cpu if part == "cpu" else cost.wall


def metaqa(kind: str, questions: int) -> tuple[SimGRAGRetriever, list[str]]:
    """Return a retriever on MetaQA, with examples or without, and questions of one to three hops."""
    index = GraphIndex.build(KnowledgeGraph.from_file(DATA / "metaqa" / "kb.txt"), default_embeddings())
    drawn: list[Question] = [question for hop in (1, 2, 3) for question in read_metaqa(DATA / "metaqa", hop)]
    random.Random(SEED).shuffle(drawn)
    examples = drawn[questions : questions + EXAMPLES] if kind == "examples" else None
    return SimGRAGRetriever.from_index(index, examples=examples), [one.text for one in drawn[:questions]]


def synthetic(size: str, kind: str, questions: int) -> tuple[SimGRAGRetriever, list[str]]:
    """Return a retriever on a synthetic graph, and questions that name an entity, exactly or with a typo."""
    drawn = synthetic_graph(*SIZES[size])
    heads, relations, tails = (column.tolist() for column in drawn[:3])
    names, kinds = drawn.entities, drawn.relation_names
    triples = ((names[h], kinds[r], names[t]) for h, r, t in zip(heads, relations, tails, strict=True))
    index = GraphIndex.build(KnowledgeGraph.from_triples(triples), default_embeddings())
    chosen = random.Random(SEED).sample(range(len(heads)), questions)
    asked = [(kinds[relations[at]], names[heads[at]]) for at in chosen]
    written = [(relation, name if kind == "exact" else _with_typo(name)) for relation, name in asked]
    retriever = SimGRAGRetriever.from_index(index, min_confidence=0.0)
    return retriever, [f"What is the {relation} of {name}?" for relation, name in written]


def _with_typo(name: str) -> str:
    """Leave out the middle letter of the longest word."""
    longest = max(name.split(), key=len)
    middle = len(longest) // 2
    return name.replace(longest, longest[:middle] + longest[middle + 1 :], 1)


def asked_for_long(name: str, questions: int, seconds: float) -> dict[str, Any]:
    """Ask a method questions one after the other, and return its memory and descriptors early and at the end."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from built_methods import built

    graph = load_graph()
    retriever = built(find_method(name), GraphIndex.build(graph, HashedEmbeddings(), triples=True))
    triples, draw = [*graph.triples()], random.Random(SEED)
    until, first, done = time.monotonic() + seconds, (0, 0), 0
    while done < questions and time.monotonic() < until:
        fact = draw.choice(triples)
        words = draw.choice(["What is the {1} of {0}?", "Who {1} {0}?", "What of {2} and {0}, number {3}?"])
        with suppress(KGRetrieversError):
            retriever.invoke(words.format(*fact, done))
        done += 1
        if not first[0] and (done >= questions / 10 or time.monotonic() > until - 0.9 * seconds):
            first = _held()
    last = _held()
    flat = last[0] - first[0] < GROWTH and last[1] <= first[1]
    return {
        "method": name,
        "questions": done,
        "MB": [first[0], last[0]],
        "descriptors": [first[1], last[1]],
        "flat": flat,
    }


def _held() -> tuple[int, int]:
    """Return the resident memory of this process in MB, and its open descriptors."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1_000_000, len(os.listdir("/proc/self/fd"))


def long_runs(questions: int, seconds: float) -> Iterator[dict[str, Any]]:
    """Ask each registered method for long, in a process of its own."""
    for method in METHODS:
        command = [sys.executable, "-m", "benchmarks.many_questions", "--method", method.name]
        command += ["--questions", str(questions), "--seconds", str(seconds)]
        ended = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
        failed = {"method": method.name, "error": ended.stderr[-300:], "flat": False}
        yield json.loads(ended.stdout.splitlines()[-1]) if ended.returncode == 0 else failed


def main() -> None:
    """Measure and print a line of JSON for each kind of questions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", choices=["metaqa", *SIZES], default="metaqa")
    parser.add_argument("--questions", type=int)
    parser.add_argument("--long", action="store_true", help="ask each registered method for long")
    parser.add_argument("--method", choices=[method.name for method in METHODS], help="ask one method for long")
    parser.add_argument("--seconds", type=float, default=120, help="the most seconds of a method (default 120)")
    parser.add_argument("--kinds", nargs="+", help="of metaqa: zero-shot, examples; of the others: exact, vague")
    arguments = parser.parse_args()
    logging.getLogger("kg_retrievers").setLevel(logging.ERROR)
    if arguments.method:
        print(json.dumps(asked_for_long(arguments.method, arguments.questions or LONG, arguments.seconds)))
    if arguments.long:
        for found in long_runs(arguments.questions or LONG, arguments.seconds):
            print(json.dumps(found), flush=True)
    if arguments.method or arguments.long:
        return
    questions = arguments.questions or 100
    on_metaqa = arguments.graph == "metaqa"
    for kind in arguments.kinds or (["zero-shot", "examples"] if on_metaqa else ["exact", "vague"]):
        if on_metaqa:
            retriever, asked = metaqa(kind, questions)
        else:
            retriever, asked = synthetic(arguments.graph, kind, questions)
        print(json.dumps({"graph": arguments.graph, "kind": kind, **measure_many(retriever, asked, PAIRS)}), flush=True)


if __name__ == "__main__":
    main()
