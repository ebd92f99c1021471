r"""How often GNN-RAG's graph network has the answer first, and what it costs; no language model.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/gnn_rag.py \
        [--sections metaqa topics pathquestion layer latency] [--embeddings static hashed minilm]

"metaqa", "topics", "pathquestion", "transfer": see `question_splits.py`. One model for all hops, trained with the
defaults of `train_graph_reasoner` but for `--num-examples` and `--field`. The measured tenth is the same for all seeds,
which draw anew what is trained on, and the weights. The topic is given in training. Where it is measured, it is given
with `--topic`; else it is linked, and a question in which no entity is found counts as 0. "first": the first answer
that the retriever proposes, the likeliest candidate, is a gold answer. "list": one of the candidates is; and their F1.
All are means over questions and seeds, the first with a bootstrap interval over the questions, each with all its
seeds, and the mean of each seed. `n`: of each seed, at most `--limit`.
The loss and the steps were chosen on 450 of MetaQA's dev questions drawn otherwise, of which about a tenth is among
those measured here; the rule for `mask_seeds`, how vectors and attention are scaled, and the rate, on training
questions of PathQuestion.

"layer": CPU of the reasoning of a question, forward and with gradients, by this package and by a straightforward
rendering of the published layer, which computes a message for each fact, and goes question by question; equal weights,
random graphs, one thread. Vectors are `--width` long, 50 as in the published code.

"latency": CPU of one question of MetaQA through `GNNRAGRetriever`, end to end and by stages, with random weights of
the default sizes, which give more candidates than trained ones, or with the model of a folder (`--model`).
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from question_splits import DATA, EMBEDDINGS, TASKS, Indexes, Task

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from reference_reasoner import PerFactReasoner

from kg_retrievers import GNNRAGRetriever, GraphIndex, GraphReasoner, HashedEmbeddings, KnowledgeGraph, Question
from kg_retrievers.core.checkpoint import holds_model
from kg_retrievers.core.trained_model import PROBE
from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.methods.gnn_rag.model import GraphReasonerConfig, Surroundings, embed_tokens
from kg_retrievers.methods.gnn_rag.training import NUM_EXAMPLES, Example, ReasonerNetwork, train_graph_reasoner
from kg_retrievers.training.dataset import TrainingQuestion

Row = tuple[float, float, float]


def main() -> None:
    """Print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sections = [*TASKS, "layer", "latency"]
    parser.add_argument("--sections", nargs="+", choices=sections, default=["pathquestion", "layer", "latency"])
    parser.add_argument("--embeddings", nargs="+", choices=EMBEDDINGS, default=["hashed"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--topic", action="store_true", help="give the topic where it is measured, too")
    parser.add_argument("--limit", type=int, default=None, help="measured questions of each kind (default: all)")
    parser.add_argument("--num-examples", type=int, default=NUM_EXAMPLES)
    parser.add_argument("--field", action="append", default=[], metavar="NAME=VALUE", help="of the training, in JSON")
    parser.add_argument("--save", type=Path, help="a folder that keeps the models, and goes on from there")
    parser.add_argument("--width", type=int, default=50, help='of the vectors for "layer"')
    parser.add_argument("--model", type=Path, help='a trained model for "latency"')
    parser.add_argument("--cache", type=Path, help="a file that keeps embeddings over several runs")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for section in arguments.sections:
        if section in TASKS:
            _train_and_measure(section, arguments)
        else:
            {"layer": layer, "latency": latency}[section](arguments)


# --- training and measuring -----------------------------------------------------------------------------------------


def _train_and_measure(section: str, arguments: argparse.Namespace) -> None:
    print("\n| set | embeddings | measured | n | first | 95 % | seeds | list | F1 of list | training |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for kind in arguments.embeddings:
        for name, task_of in TASKS[section](Indexes(kind, arguments.cache)):
            _show(f"{section}-{kind}", name, kind, task_of, arguments)


def _show(folder: str, name: str, kind: str, task_of: Callable[[int], Task], arguments: argparse.Namespace) -> None:
    """Print a row for each part that is measured, over all seeds."""
    found: dict[str, list[np.ndarray[Any, Any]]] = {}
    trainings = []
    fields = {key: json.loads(value) for key, _, value in (field.partition("=") for field in arguments.field)}
    for seed in arguments.seeds:
        task = _drawn(task_of(0), seed)
        output = arguments.save and arguments.save / f"{folder}-{name.replace(' ', '-')}-{seed}"
        if output and holds_model(output):
            model = GraphReasoner.from_pretrained(output)
            trainings.append("before")
        else:
            settings = {"num_examples": arguments.num_examples, "seed": seed, "output": output, **fields}
            done = train_graph_reasoner(task.index, task.training, task.validation, **settings)
            model = done.model
            trainings.append(f"{done.seconds:.0f} s, {len(done.history) - 1} validations")
        for part, (index, questions) in task.measured.items():
            retriever = GNNRAGRetriever.from_index(index, model=model)
            rows = [_measure(retriever, question, arguments.topic) for question in questions[: arguments.limit]]
            found.setdefault(part, []).append(np.array(rows))
    for part, by_seed in found.items():
        means = [rows.mean(axis=0) for rows in by_seed]
        first, listed, f1 = np.mean(means, axis=0)
        every = np.mean([rows[:, 0] for rows in by_seed], axis=0)
        draws = np.random.default_rng(0).choice(every, (1000, len(every))).mean(axis=1)
        interval = "{:.4f} ... {:.4f}".format(*np.percentile(draws, [2.5, 97.5]))
        seeds = " ".join(f"{mean[0]:.4f}" for mean in means)
        row = [name, kind, part, len(by_seed[0]), f"{first:.4f}", interval, seeds, f"{listed:.4f}", f"{f1:.3f}"]
        print(f"| {' | '.join(map(str, row))} | {'; '.join(trainings)} |", flush=True)


def _drawn(task: Task, seed: int) -> Task:
    """Draw anew which of the questions that are not measured are trained on, and which say when to stop."""
    if not seed:
        return task
    others = [*task.training, *task.validation]
    order = random.Random(seed).sample(others, len(others))
    return task._replace(training=order[: len(task.training)], validation=order[len(task.training) :])


def _measure(retriever: GNNRAGRetriever, question: Question, topic: bool = False) -> Row:
    """Return whether the first answer is right, whether one of all candidates is, and the F1 of these."""
    state = retriever.initial_state(question.text, seed_entities=question.seed_entities if topic else None)
    try:
        for stage in retriever.stages:
            state |= stage.run.invoke(state)
    except EntityLinkingError:
        return 0.0, 0.0, 0.0
    keys, gold = [key for key, _ in state["candidates"]["entities"]], set(question.answers)
    right = len(gold.intersection(keys))
    return float(bool(gold.intersection(state["answers"][:1]))), float(right > 0), 2 * right / (len(keys) + len(gold))


# --- the layer ------------------------------------------------------------------------------------------------------


def layer(arguments: argparse.Namespace) -> None:
    """Print the time of the reasoning of a question by both ways."""
    print(
        "\n| entities | facts | batch | forward, per fact | ours | ratio | served | step, per fact | ours | ratio | |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for size in (500, 2_000):
        index = _random_index(size)
        config = GraphReasonerConfig(index.dimension, arguments.width, instructions=2, layers=3, stages=3)
        model = random_reasoner(index, config)
        network = ReasonerNetwork(index, config, np.random.default_rng(0), max_nodes=size)
        network.parameters = {name: torch.tensor(weight).requires_grad_() for name, weight in model.weights.items()}
        plain, served = PerFactReasoner(model), model.on(index)
        relations = torch.from_numpy(np.stack([one.mean(axis=0) for one in embed_tokens(index, _relations(), "words")]))
        for count in (1, 8, 16):
            _show_layer(index, network, plain, served, relations, size, count)


def _show_layer(
    index: GraphIndex, network: Any, plain: PerFactReasoner, served: Any, relations: torch.Tensor, size: int, count: int
) -> None:
    text, everything = "what is the first of the second of _", np.arange(size)
    asked = [TrainingQuestion(text, (seed,), (seed + 1,), 0) for seed in range(count)]
    network.embed([text])
    examples = [
        Example(one, everything, Surroundings.of(index.graph.adjacency, everything, one.seeds), np.array(one.answers))
        for one in asked
    ]
    tokens = torch.from_numpy(embed_tokens(index, [text], "words")[0])
    facts = torch.from_numpy(index.graph.edges.astype(np.int64))

    def ours() -> torch.Tensor:
        return torch.cat([network.logarithms(example) for example in examples])

    def per_fact() -> torch.Tensor:
        rows = [plain(tokens, relations, facts, size, torch.tensor(one.seeds)) for one in asked]
        return torch.cat(rows)

    def step(way: Callable[[], torch.Tensor]) -> None:
        places = torch.tensor([size * number + one.answers[0] for number, one in enumerate(asked)])
        (-way()[places].mean()).backward()  # type: ignore[no-untyped-call]

    def forward(way: Callable[[], torch.Tensor]) -> None:
        with torch.no_grad():
            way()

    with torch.no_grad():
        difference = float((ours().exp() - per_fact().exp()).abs().max())
    ways: dict[str, Callable[[], object]] = {
        "forward, per fact": partial(forward, per_fact),
        "forward": partial(forward, ours),
        "served": lambda: [served.score(text, everything, one.seeds) for one in asked],
        "step, per fact": partial(step, per_fact),
        "step": partial(step, ours),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(9):
        for name, way in ways.items():
            times[name].append(_milliseconds(way) / count)
    slow, fast, numpy, slow_step, fast_step = (statistics.median(times[name][1:]) for name in ways)
    row = [f"{size:,}", f"{len(facts):,}", count, f"{slow:.1f}", f"{fast:.1f}", f"**{slow / fast:.1f}**"]
    row += [f"{numpy:.1f}", f"{slow_step:.1f}", f"{fast_step:.1f}", f"**{slow_step / fast_step:.1f}**"]
    print(f"| {' | '.join(map(str, row))} | {difference:.0e} |", flush=True)


def _relations() -> list[str]:
    return [f"relation {number}" for number in range(100)]


def _random_index(size: int) -> GraphIndex:
    """Index a random graph with three facts an entity, so four with those to itself."""
    rng = np.random.default_rng(0)
    kinds = _relations()
    rows = [
        (f"entity {v}", kinds[rng.integers(len(kinds))], f"entity {u}")
        for v in range(size)
        for u in rng.integers(0, size, 3)
    ]
    return GraphIndex.build(KnowledgeGraph.from_triples(rows), HashedEmbeddings())


# --- one question ---------------------------------------------------------------------------------------------------


def latency(arguments: argparse.Namespace) -> None:
    """Print the time of a question by stages."""
    index = GraphIndex.build(KnowledgeGraph.from_file(DATA / "metaqa" / "kb.txt"), HashedEmbeddings())
    model: Any = arguments.model or random_reasoner(index, GraphReasonerConfig(index.dimension))
    retriever = GNNRAGRetriever.from_index(index, model=model)
    print("\n| questions | n | " + " | ".join(stage.name for stage in retriever.stages) + " | `invoke`, p50 | p95 |")
    print("|---|---|---|---|---|---|---|")
    for hops in (1, 2, 3):
        task = next(iter(TASKS["metaqa"](Indexes("hashed", arguments.cache))))[1](0)
        questions = [question.text for question in task.measured[f"{hops}-hop"][1][:100]]
        retriever.invoke(questions[0])
        by_stage: list[list[float]] = []
        whole = [_milliseconds(lambda text=text: retriever.invoke(text)) for text in questions]  # type: ignore[misc]
        for text in questions:
            state: dict[str, Any] = {"question": text, "k": retriever.k}
            times = []
            for stage in retriever.stages:
                began = time.process_time()
                state |= stage.run.invoke(state)
                times.append(1000 * (time.process_time() - began))
            by_stage.append(times)
        stages = [f"{statistics.median(times):.1f}" for times in zip(*by_stage, strict=True)]
        row = [f"{hops}-hop", len(questions), *stages, f"{statistics.median(whole):.1f}"]
        print(f"| {' | '.join(map(str, row))} | {np.percentile(whole, 95):.1f} |", flush=True)


def _milliseconds(way: Callable[[], object]) -> float:
    began = time.process_time()
    way()
    return 1000 * (time.process_time() - began)


def random_reasoner(index: GraphIndex, config: GraphReasonerConfig) -> GraphReasoner:
    """Return a reasoner with random weights."""
    rng = np.random.default_rng(0)
    weights = {
        name: rng.uniform(-1, 1, shape).astype(np.float32) * shape[-2 if len(shape) > 1 else 0] ** -0.5
        for name, shape in config.shapes.items()
    }
    return GraphReasoner(config, weights, probe=index.embed([PROBE])[0], embeddings="random")


if __name__ == "__main__":
    main()
