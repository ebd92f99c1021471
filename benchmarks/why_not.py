r"""Ask why entities are not found on MetaQA, and count how often a run with what is named changed finds them.

    OMP_NUM_THREADS=1 python benchmarks/why_not.py [--questions 30] [--methods simgrag rog ...] [--show]

Of every number of hops, a third of the questions is drawn. For each the retriever is asked why it does not find an
entity of the graph that is drawn, and why not the gold answers that it missed, the first of them. Without examples,
questions are read zero-shot; ":examples" reads them by 1,500 questions of the same set that are not asked. Rows count
cases by the first obstacle that is named; "-" where none is. Seconds are of `why_not` alone.
"""

from __future__ import annotations

import argparse
import random
import time
import traceback
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from question_splits import DATA

from kg_retrievers import GraphIndex, KnowledgeGraph, Question, default_embeddings, why_not
from kg_retrievers.core.documents import documents_answers
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.datasets import read_metaqa
from kg_retrievers.methods import registry

SEED = 20261123
METHODS = ("simgrag", "simgrag:examples", "rog", "rog:examples", "sg-rag", "sg-rag:examples", "kaping", "g-retriever")


class Case(NamedTuple):
    """An entity that is not found.

    Attributes:
        kind: "random" or "gold".
        why: The first reason; "-" where none is named, the class of the error where there is one.
        lifted: Whether the entity is found with all that is named changed.
        seconds: How long it took.
    """

    kind: str
    why: str
    lifted: bool
    seconds: float


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=30)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--show", action="store_true", help="print what is said of each case")
    arguments = parser.parse_args()
    index = GraphIndex.build(KnowledgeGraph.from_file(DATA / "metaqa" / "kb.txt"), default_embeddings())
    asked, examples = _drawn(arguments.questions)
    print("| method | entity | first reason | cases | lifted | median s | most s |\n|---|---|---|--:|--:|--:|--:|")
    for name in arguments.methods:
        method, _, kind = name.partition(":")
        given = {"examples": examples} if kind else {}
        retriever = registry.find_method(method).load_retriever().from_index(index, **given)
        _print_rows(name, list(_cases(retriever, asked, show=arguments.show)))


def _drawn(count: int) -> tuple[list[Question], list[Question]]:
    """Return the questions to ask, and examples."""
    draw = random.Random(SEED)
    asked, examples = list[Question](), list[Question]()
    for hops in (1, 2, 3):
        questions = draw.sample(read_metaqa(DATA / "metaqa", hops), count // 3 + 500)
        asked += questions[: count // 3]
        examples += questions[count // 3 :]
    return asked, examples


def _cases(retriever: BaseKGRetriever, asked: Sequence[Question], *, show: bool) -> Iterator[Case]:
    draw = random.Random(SEED)
    for question in asked:
        found = retriever.invoke(question.text)
        answers, facts = documents_answers(found), (fact for one in found for fact in one.metadata["triples"])
        seen = set(answers) if retriever.proposes_answers else {end for head, _, tail in facts for end in (head, tail)}
        entities = {"random": [draw.choice(list(retriever.graph.entities))], "gold": list(question.answers)}
        for kind, keys in entities.items():
            missed = next((key for key in keys if key not in seen), None)
            if missed is not None and (case := _case(retriever, question.text, kind, missed, show)) is not None:
                yield case


def _case(retriever: BaseKGRetriever, question: str, kind: str, entity: str, show: bool) -> Case | None:
    """Return what is said of an entity; None where it is found."""
    began = time.perf_counter()
    try:
        told = why_not(retriever, question, entity)
    except Exception as error:  # counted, like every other outcome
        traceback.print_exc()
        return Case(kind, type(error).__name__, False, time.perf_counter() - began)
    seconds = time.perf_counter() - began
    if show or not (told.found or told.lifted):
        print(f"\n{kind}, {seconds:.2f} s: {told}\n", flush=True)
    if told.found:
        return None
    return Case(kind, told.obstacles[0].why if told.obstacles else "-", told.lifted is True, seconds)


def _print_rows(name: str, cases: Sequence[Case]) -> None:
    grouped: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in cases:
        grouped[case.kind, case.why].append(case)
    rows: list[tuple[Any, list[Case]]] = [*sorted(grouped.items()), (("all", ""), list(cases))]
    for (kind, why), some in rows:
        seconds = sorted(case.seconds for case in some) or [0.0]
        lifted = sum(case.lifted for case in some)
        told = f"{len(some)} | {lifted} | {seconds[len(seconds) // 2]:.2f} | {seconds[-1]:.2f}"
        print(f"| {name} | {kind} | {why} | {told} |", flush=True)


if __name__ == "__main__":
    main()
