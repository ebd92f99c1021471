r"""RoG's planner, tuned: how often its first relation path is right, by the number of hops, the topic given.

    OMP_NUM_THREADS=1 python benchmarks/planner.py --llm FOLDER [--training N] [--measured N] [--sets ...] [--seed N]

`--llm` names any causal language model of Hugging Face, or a folder of one. For MetaQA, and for each of the two graphs
of PathQuestion, a planner is tuned on `--training` questions of each number of hops together, drawn by the seed, and
asked `--measured` others; a tenth of the former, and at least four, say when to stop.

"right": the answers of the first relation path are exactly those of the question, with the 95 % Wilson interval; "hit":
one of them is. "hops" counts how many relations the first paths have, "none" how many questions got no path. Rows: the
planner held to the walks that exist, by each score of `search`, and by a beam search over free text; the same language
model before it is tuned; and, without a language model, rog and simgrag, zero-shot, and rog with the questions of the
training as examples.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from transformers import logging as transformers_logging
from wilson import wilson_interval

from kg_retrievers import (
    CausalLM,
    GraphIndex,
    KnowledgeGraph,
    Question,
    RelationPathRetriever,
    SimGRAGRetriever,
    default_embeddings,
)
from kg_retrievers.core.checkpoint import holds_model
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.datasets import read_metaqa, read_pathquestion
from kg_retrievers.errors import RefusalError, RelationPathParseError
from kg_retrievers.methods.rog.adapted_lm import AdaptedLM
from kg_retrievers.methods.rog.planner import RelationPathPlanner
from kg_retrievers.methods.rog.training import train_planner

DATA = Path(os.environ.get("KG_RETRIEVERS_DATA", Path(__file__).parents[2] / "shared" / "data"))

ByHops = Mapping[int, Sequence[Question]]


class Set(NamedTuple):
    """Questions over one graph."""

    name: str
    index: GraphIndex
    training: list[Question]
    validation: list[Question]
    measured: dict[int, list[Question]]


def metaqa() -> tuple[Path, ByHops]:
    """Return MetaQA's graph and its dev questions by hops."""
    return DATA / "metaqa" / "kb.txt", {hops: read_metaqa(DATA / "metaqa", hops) for hops in (1, 2, 3)}


def pathquestion(hops: int) -> tuple[Path, ByHops]:
    """Return a graph of PathQuestion and its questions."""
    home = DATA / "pathquestion"
    return home / f"{hops}H-kb.txt", {hops: read_pathquestion(home / f"PQ-{hops}H.txt")}


SETS: dict[str, Callable[[], tuple[Path, ByHops]]] = {
    "metaqa": metaqa,
    "pathquestion-2": partial(pathquestion, 2),
    "pathquestion-3": partial(pathquestion, 3),
}


def drawn(name: str, training: int, measured: int, seed: int) -> Set:
    """Draw the questions of a set."""
    path, by_hops = SETS[name]()
    rng = random.Random(seed)
    learned, validating, asked = list[Question](), list[Question](), dict[int, list[Question]]()
    for hops, questions in by_hops.items():
        some = rng.sample(list(questions), training + measured)
        held_out = max(4, training // 10)
        validating += some[:held_out]
        learned += some[held_out:training]
        asked[hops] = some[training:]
    index = GraphIndex.build(KnowledgeGraph.from_file(path), default_embeddings())
    return Set(name, index, learned, validating, asked)


class Tally:
    """What is counted of the first relation paths."""

    def __init__(self) -> None:
        """Count nothing yet."""
        self.n = self.right = self.hit = 0
        self.hops = Counter[int]()

    def add(self, answers: Sequence[str], gold: Sequence[str], hops: int) -> None:
        """Count one question; 0 hops where there is no path."""
        self.n += 1
        self.right += bool(answers) and set(answers) == set(gold)
        self.hit += bool(set(answers) & set(gold))
        self.hops[hops] += 1

    def row(self) -> str:
        """Return the figures."""
        low, high = wilson_interval(self.right, self.n)
        lengths = " ".join(f"{hops or 'none'}:{count}" for hops, count in sorted(self.hops.items()))
        return f"right {self.right:3d}/{self.n} [{low:.2f}, {high:.2f}]  hit {self.hit:3d}/{self.n}  hops {lengths}"


def measure(retriever: BaseKGRetriever, questions: Sequence[Question]) -> Tally:
    """Ask questions, each with its topic."""
    tally = Tally()
    for question in questions:
        try:
            found = retriever.invoke(question.text, seed_entities=list(question.seed_entities), k=1)
        except (RefusalError, RelationPathParseError):
            found = []
        metadata: dict[str, Any] = found[0].metadata if found else {}
        path = metadata.get("details", {}).get("relation_path") or []
        tally.add(metadata.get("answers") or [], question.answers, len(path))
    return tally


def retrievers(one: Set, planner: RelationPathPlanner, untuned: RelationPathPlanner) -> Iterator[tuple[str, Any]]:
    """Yield what is measured."""
    from_index = partial(RelationPathRetriever.from_index, one.index)
    for score in ("walks", "sum", "mean"):
        yield f"tuned, walks, score {score}", from_index(proposer=planner.on(one.index, score=score))
    yield "tuned, free", from_index(proposer=planner.on(one.index, decoding="free"))
    for score in ("walks", "sum"):
        yield f"untuned, walks, score {score}", from_index(proposer=untuned.on(one.index, score=score))
    yield "rog, zero-shot", from_index()
    yield "rog, examples", from_index(examples=one.training)
    yield "simgrag, zero-shot", SimGRAGRetriever.from_index(one.index)


def main() -> None:
    """Train and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llm", required=True)
    parser.add_argument("--training", type=int, default=40)
    parser.add_argument("--measured", type=int, default=20)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--supervision", choices=("best", "shortest"), default="best")
    parser.add_argument("--work", type=Path, help="a folder that keeps the planners (default: none is kept)")
    parser.add_argument("--rows", nargs="+", default=[""], help="rows whose name begins with one of these")
    arguments = parser.parse_args()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    for name in arguments.sets:
        report(drawn(name, arguments.training, arguments.measured, arguments.seed), arguments)


def report(one: Set, arguments: argparse.Namespace) -> None:
    """Print the table of a set."""
    planner = trained(one, arguments)
    untuned = RelationPathPlanner(AdaptedLM(CausalLM.load(arguments.llm)))
    for label, retriever in retrievers(one, planner, untuned):
        if not label.startswith(tuple(arguments.rows)):
            continue
        for hops, questions in one.measured.items():
            began = time.monotonic()
            tally = measure(retriever, questions)
            seconds = (time.monotonic() - began) / len(questions)
            print(f"{label:<28} {hops} hops  {tally.row()}  {seconds:.2f} s", flush=True)


def trained(one: Set, arguments: argparse.Namespace) -> RelationPathPlanner:
    """Return the planner of a set, trained or kept."""
    folder = arguments.work and arguments.work / f"{one.name}-{arguments.supervision}-{arguments.seed}"
    if folder and holds_model(folder):
        return RelationPathPlanner.from_pretrained(folder)
    count = arguments.epochs * len(one.training)
    tuned = train_planner(
        one.index,
        one.training,
        one.validation,
        llm=CausalLM.load(arguments.llm),
        num_examples=count,
        learning_rate=arguments.learning_rate,
        validations=arguments.epochs,
        seed=arguments.seed,
        supervision=arguments.supervision,
        output=folder,
    )
    history = " ".join(f"{loss:.3f}" for loss in tuned.history)
    print(f"\n{one.name}: trained on {tuned.questions}, {tuned.seconds:.0f} s, validation loss {history}", flush=True)
    return tuned.model


if __name__ == "__main__":
    main()
