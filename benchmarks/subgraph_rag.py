r"""How many answers are among the first 100 triples of SubgraphRAG's scorer, and what it costs; no language model.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/subgraph_rag.py \
        [--sections metaqa topics pathquestion transfer serving] [--embeddings static hashed minilm]

Each section trains on 80 % of its questions, 10 % say when to stop, and the other 10 % are measured; which, is drawn
anew for each seed. MetaQA: all dev questions of 1, 2 and 3 hops, one model for all, which never sees a paraphrase; the
paraphrases are those of the measured 1-hop questions. "topics": no topic of a measured question occurs in training or
validation. "pathquestion": each of the two graphs for itself, by question. "transfer": trained on one set, measured on
another, all of it. The topic is given in training. It is not given where it is measured: it is linked, and a question
in which no entity is found counts as 0.

Models: "relations" is the default, with `hops=3`; "distances" is without relations that are followed, `hops=0`;
"published" is that with directed encodings and labels, each triple scored for itself, as in the paper, though narrower;
"untrained" are random weights; "cosine" ranks the same candidates by the cosine of question and triple.

Answer recall: the share of the gold answers that are an end of one of the first 100 triples. Path recall: the share
of the triples on shortest paths that are among them. Both in the mean over the questions of all seeds, with a
bootstrap interval over these, and the mean of each seed. `n`: of each seed, at most `--limit`, drawn. Loss, rate and
sizes were chosen once on 450 of MetaQA's dev questions drawn otherwise, some of which are among those measured here.
The time is that of the first seed; candidates are found once for all models, so that only the first row of a graph
tells how long training takes.

"serving": CPU of one question with the weights of a random model, by `GraphTripleScorer` and by a torch forward that
joins the vectors of each triple, encodings included, in one process and by one thread.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from langchain_core.embeddings import Embeddings
from question_splits import EMBEDDINGS, TASKS, Indexes, Task

from kg_retrievers import GraphIndex, KnowledgeGraph, Question
from kg_retrievers.algorithms.neighborhood import Neighborhood, neighborhood
from kg_retrievers.core.trained_model import PROBE
from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.index import EntityLinker, link_question
from kg_retrievers.methods.subgraph_rag import training as triple_training
from kg_retrievers.methods.subgraph_rag.model import (
    CandidateTriples,
    GraphTripleScorer,
    TripleScorer,
    TripleScorerConfig,
    shortest_path_triples,
)
from kg_retrievers.methods.subgraph_rag.training import NUM_EXAMPLES, train_triple_scorer

FIRST = 100
MAX_HOPS, MAX_NODES = 3, 2_000

#: What `train_triple_scorer` is given for each model.
MODELS: dict[str, dict[str, Any]] = {
    "relations": {},
    "distances": {"hops": 0},
    "published": {
        "hops": 0,
        "directed": True,
        "rounds": 2,
        "reverse_rounds": 2,
        "supervision": "directed",
        "loss": "binary",
        "batch_size": 1,
        "learning_rate": 0.001,
    },
}


class Measured(NamedTuple):
    """A question to be measured, with its candidates; both empty where no entity was found."""

    question: str
    masked: str
    seeds: np.ndarray[Any, Any]
    triples: np.ndarray[Any, Any]
    positive: np.ndarray[Any, Any]
    answers: tuple[int, ...]
    gold: int


def main() -> None:
    """Print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sections = ["metaqa", "topics", "pathquestion", "transfer", "serving"]
    parser.add_argument("--sections", nargs="+", choices=sections, default=["pathquestion", "serving"])
    parser.add_argument("--embeddings", nargs="+", choices=EMBEDDINGS, default=["hashed"])
    parser.add_argument("--models", nargs="+", choices=[*MODELS, "untrained", "cosine"], default=None)
    parser.add_argument("--seeds", type=int, default=3, help="how many, for the trained models (default: 3)")
    parser.add_argument("--limit", type=int, default=500, help="measured questions of each kind (default: 500)")
    parser.add_argument("--num-examples", type=int, default=NUM_EXAMPLES)
    parser.add_argument("--cache", type=Path, help="a file that keeps embeddings over several runs")
    arguments = parser.parse_args()
    found: dict[Any, Neighborhood] = {}

    def remembered(adjacency: Any, seeds: Any, **limits: Any) -> Neighborhood:
        key = (id(adjacency), tuple(seeds), *limits.values())
        if key not in found:
            found[key] = neighborhood(adjacency, seeds, **limits)
        return found[key]

    triple_training.neighborhood = remembered  # type: ignore[assignment]
    for section in arguments.sections:
        if section == "serving":
            serving()
            continue
        header = [
            "set",
            "embeddings",
            "model",
            "measured",
            "n",
            "answer recall@100",
            "95 %",
            "seeds",
            "path recall@100",
        ]
        print(f"\n| {' | '.join(header)} | training |\n|{'---|' * (len(header) + 1)}")
        for kind in arguments.embeddings:
            index_of = Indexes(kind, arguments.cache)
            for name, tasks in TASKS[section](index_of):
                for model in arguments.models or [*MODELS, "untrained", "cosine"]:
                    _show(section, name, kind, model, tasks, arguments)


# --- training and measuring -----------------------------------------------------------------------------------------


def _show(
    section: str, name: str, kind: str, model: str, task_of: Callable[[int], Task], arguments: argparse.Namespace
) -> None:
    """Print a row for each part that is measured, over all seeds."""
    recalls: dict[str, list[np.ndarray[Any, Any]]] = {}
    summary = "-"
    for seed in range(arguments.seeds if model in MODELS else 1):
        task = task_of(seed)
        scorer: TripleScorer | None = None
        if model in MODELS:
            settings = {"num_examples": arguments.num_examples, "seed": seed, **MODELS[model]}
            done = train_triple_scorer(task.index, task.training, task.validation, **settings)
            scorer = done.model
            summary = f"{done.seconds:.0f} s, {len(done.history) - 1} validations" if summary == "-" else summary
        elif model == "untrained":
            scorer = _random_scorer(task.index, TripleScorerConfig(task.index.dimension))
        for part, (index, questions) in task.measured.items():
            on_graph = scorer and scorer.on(index)
            rows = [_recalls(index, on_graph, one) for one in _measured(index, questions[: arguments.limit])]
            recalls.setdefault(part, []).append(np.array(rows))
    for part, by_seed in recalls.items():
        means = [rows.mean(axis=0) for rows in by_seed]
        answer, path = np.mean(means, axis=0)
        every = np.concatenate([rows[:, 0] for rows in by_seed])
        draws = np.random.default_rng(0).choice(every, (1000, len(every))).mean(axis=1)
        interval = "{:.3f} ... {:.3f}".format(*np.percentile(draws, [2.5, 97.5]))
        seeds = " ".join(f"{mean[0]:.3f}" for mean in means)
        row = [name, kind, model, part, len(by_seed[0]), f"{answer:.4f}", interval, seeds, f"{path:.3f}", summary]
        print(f"| {' | '.join(map(str, row))} |", flush=True)


_MEASURED: dict[tuple[int, Question], Measured] = {}


def _measured(index: GraphIndex, questions: Sequence[Question]) -> Iterator[Measured]:
    """Link questions, without their topics, and find their candidates, each once."""
    linker = EntityLinker(index)
    for question in questions:
        key = (id(index), question)
        if key not in _MEASURED:
            _MEASURED[key] = _prepared(index, linker, question)
        yield _MEASURED[key]


def _prepared(index: GraphIndex, linker: EntityLinker, question: Question) -> Measured:
    graph, none = index.graph, np.empty(0, np.int64)
    answers = tuple(graph.entities.find(key) for key in dict.fromkeys(question.answers) if key in graph.entities)
    gold = len(set(question.answers))
    try:
        keys, masked = link_question(linker, question.text)
    except EntityLinkingError:
        return Measured(question.text, question.text, none, none, none, answers, gold)
    seeds = np.array([graph.entities.find(key) for key in keys])
    triples = neighborhood(graph.adjacency, seeds, max_hops=MAX_HOPS, max_nodes=MAX_NODES).triples
    found = CandidateTriples.of(graph, triples, seeds)
    inside = np.flatnonzero(np.isin(found.entities, answers))
    paths = shortest_path_triples(found.heads, found.tails, found.seeds, inside, nodes=len(found.entities), max_hops=3)
    return Measured(question.text, masked, seeds, triples, paths, answers, gold)


def _recalls(index: GraphIndex, scorer: GraphTripleScorer | None, one: Measured) -> tuple[float, float]:
    """Return answer recall and path recall; without a scorer, by the cosine."""
    if not len(one.triples):
        return 0.0, 0.0
    if scorer is None:
        scores = index.triple_similarities(one.question, one.triples)
    else:
        scores = scorer.score(one.masked, one.triples, one.seeds)
    first = np.argsort(-scores, kind="stable")[:FIRST]
    ends = index.graph.edges[one.triples[first]][:, [0, 2]]
    answer = float(np.isin(one.answers, ends).sum()) / one.gold
    return answer, float(one.positive[first].sum() / max(one.positive.sum(), 1))


def _random_scorer(index: GraphIndex, config: TripleScorerConfig) -> TripleScorer:
    rng = np.random.default_rng(0)
    weights = {
        name: rng.uniform(-1, 1, shape).astype(np.float32) * (shape[0] if shape else 1) ** -0.5
        for name, shape in config.shapes.items()
    }
    return TripleScorer(config, weights, probe=index.embed([PROBE])[0], embeddings="random")


# --- serving --------------------------------------------------------------------------------------------------------


class _RandomVectors(Embeddings):
    """A random vector for each text, of the length of MiniLM's; only their number matters to the time."""

    dimension = 384

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [np.random.default_rng(list(text.encode())).standard_normal(self.dimension).tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def serving() -> None:
    """Print the time of one question by both ways."""
    torch.set_num_threads(1)
    print("\n| triples | hidden | hops | torch, ms CPU | numpy, ms CPU | ratio | largest difference |")
    print("|---|---|---|---|---|---|---|")
    for size in (4_000, 40_000):
        rng = np.random.default_rng(0)
        ends = rng.integers(0, size // 3, (size, 2)).tolist()
        relations = (rng.zipf(1.5, size) % 500).tolist()
        rows = [(f"entity {a}", f"relation {r}", f"entity {b}") for (a, b), r in zip(ends, relations, strict=True)]
        index = GraphIndex.build(KnowledgeGraph.from_triples(rows), _RandomVectors())
        asked = "Who?", np.arange(len(index.graph)), np.array([0, 1])
        for hidden in (384, 64):
            for hops in (0, 3):
                config = TripleScorerConfig(384, hidden=hidden, hops=hops, rounds=2, reverse_rounds=2, directed=True)
                scorer = _random_scorer(index, config).on(index)
                plain = _StraightForward(scorer)
                ways = {"torch": partial(plain.score, *asked), "numpy": partial(scorer.score, *asked)}
                difference = float(np.abs(ways["torch"]() - ways["numpy"]()).max())
                times: dict[str, list[float]] = {name: [] for name in ways}
                for _ in range(7):
                    for name, way in ways.items():
                        began = time.process_time()
                        way()
                        times[name].append(1000 * (time.process_time() - began))
                slow, fast = (statistics.median(times[name]) for name in ("torch", "numpy"))
                print(
                    f"| {len(index.graph):,} | {hidden} | {hops} | {slow:.1f} | {fast:.1f} | {slow / fast:.1f} | "
                    f"{difference:.1e} |",
                    flush=True,
                )


class _StraightForward:
    """The scorer in torch as one writes it down: the vectors of each triple side by side, then two linear layers."""

    def __init__(self, scorer: GraphTripleScorer) -> None:
        self._graph, self._index, self._config = scorer.index.graph, scorer.index, scorer.scorer.config
        self._weights = {name: torch.from_numpy(array) for name, array in scorer.scorer.weights.items()}
        self._entities = torch.from_numpy(self._index.entity_vectors(np.arange(len(self._graph.entities))))
        self._relations = torch.from_numpy(np.array(self._index.relation_vectors))
        of = self._weights
        parts = [of[name] for name in ("question", "head", "relation", "tail", "head_structure", "tail_structure")]
        self._first = torch.cat([*parts, *([of["steps"]] if self._config.hops else [])]).T.contiguous()

    @torch.no_grad()
    def score(self, question: str, triples: np.ndarray[Any, Any], seeds: np.ndarray[Any, Any]) -> Any:
        of = self._weights
        heads, relations, tails = (torch.from_numpy(column) for column in self._graph.edges[triples].T.astype(np.int64))
        asked = torch.from_numpy(self._index.embed([question])[0])
        structure = [torch.zeros(len(self._entities)).index_fill(0, torch.from_numpy(seeds), 1.0)]
        for here, there, rounds in (
            (heads, tails, self._config.rounds),
            (tails, heads, self._config.reverse_rounds),
        ):
            degrees = torch.zeros(len(self._entities)).index_add(0, there, torch.ones(len(there))).clamp(min=1)
            values = structure[0]
            for _ in range(rounds):
                values = torch.zeros(len(self._entities)).index_add(0, there, values[here]) / degrees
                structure.append(values)
        steps = []
        if self._config.hops:
            weighed = (asked @ of["follow_question"]).view(self._config.hops, 2, -1)
            follow = torch.sigmoid(weighed @ (self._relations @ of["follow_relation"]).T + of["follow_bias"])
            reached = structure[0]
            for along, against in follow:
                there, back = along[relations] * reached[heads], against[relations] * reached[tails]
                mass = torch.zeros(len(self._entities)).index_add(0, tails, there).index_add(0, heads, back)
                reached = 1 - torch.exp(-mass)
                structure.append(reached)
                steps.append(there + back)
        encoded = torch.stack(structure, 1)
        parts = [asked.expand(len(triples), -1), self._entities[heads], self._relations[relations]]
        parts += [self._entities[tails], encoded[heads], encoded[tails]]
        joined = torch.cat([*parts, *([torch.stack(steps, 1)] if steps else [])], 1)
        hidden = torch.nn.functional.linear(joined, self._first, of["bias"]).relu()
        return (hidden @ of["output"] + of["output_bias"]).numpy()


if __name__ == "__main__":
    main()
