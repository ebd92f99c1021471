"""Training of a graph prompt, with torch (extra `graph-prompt`).

X. He, Y. Tian, Y. Sun, N. Chawla, T. Laurent, Y. LeCun, X. Bresson, B. Hooi: G-Retriever: Retrieval-Augmented
Generation for Textual Graph Understanding and Question Answering. NeurIPS 2024, arXiv:2402.07630, section 6 and
appendix B.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings

from kg_retrievers.core.checkpoint import CONFIG
from kg_retrievers.core.trained_model import PROBE
from kg_retrievers.errors import InvalidArgumentError, MissingExtraError
from kg_retrievers.methods.g_retriever.graph_prompt.causal_lm import CausalLM
from kg_retrievers.methods.g_retriever.graph_prompt.config import GraphPromptConfig, Setting
from kg_retrievers.methods.g_retriever.graph_prompt.encoders import TextVectors
from kg_retrievers.methods.g_retriever.graph_prompt.examples import GraphPromptExample
from kg_retrievers.methods.g_retriever.graph_prompt.model import KEPT_VECTORS, GraphPromptModel
from kg_retrievers.methods.g_retriever.graph_prompt.network import GraphPromptNetwork, Precision, Prompt
from kg_retrievers.methods.g_retriever.graph_prompt.prompts import VERSION

try:
    import torch

    from kg_retrievers.training.loop import Schedule, Trainer, forget_unfinished, stream
except ImportError as cause:
    raise MissingExtraError("train_graph_prompt", "graph-prompt") from cause

#: The share of the examples that validate where none are given.
VALIDATION_SHARE = 0.1

#: Of AdamW, as in the published code.
BETAS = (0.9, 0.95)


@dataclass(frozen=True)
class GraphPromptTraining:
    """How a graph prompt was trained.

    Attributes:
        model: The model, as it was after the best validation.
        history: The mean loss on the validation, before the training and after each epoch.
        examples: How many examples it was trained on.
        validation: How many validated it.
        cut: For how many of both the text of the graph has not all triples; the encoder is given them all.
        trained: How many weights were trained.
        weights: How many there are, those of the language model included.
        seconds: How long this call took.
    """

    model: GraphPromptModel
    history: list[float]
    examples: int
    validation: int
    cut: int
    trained: int
    weights: int
    seconds: float

    @property
    def best(self) -> float:
        """The best validation, that of the model; too good as an estimate, since it was chosen by it."""
        return min(self.history[1:])

    @property
    def share(self) -> float:
        """The share of the weights that was trained, in [0, 1]."""
        return self.trained / self.weights


def train_graph_prompt(
    llm: str | Path | CausalLM,
    embeddings: Embeddings,
    examples: Sequence[GraphPromptExample],
    validation: Sequence[GraphPromptExample] | None = None,
    *,
    output: str | Path | None = None,
    setting: Setting = "frozen",
    epochs: int = 10,
    batch_size: int = 4,
    micro_batch_size: int | None = None,
    learning_rate: float = 1e-5,
    last_rate: float = 0.5,
    warm_up: float = 1.0,
    weight_decay: float = 0.05,
    max_gradient: float = 0.1,
    patience: int = 2,
    precision: Precision = "float32",
    chat: bool | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: bool = False,
    **config: Any,
) -> GraphPromptTraining:
    """Train soft tokens, and adapters where they are asked for, on questions with answers and retrieved graphs.

    The defaults are those of the paper (appendix B.1) and the code published with it. Loss: the mean over the examples
    of the mean of -log p over the tokens of the answer and its end; nothing is learned of question or graph.

    *Differs from the published code* in gradients that are truly those of the whole batch, whatever goes through the
    language model at once: there, `grad_steps` only delays the learning rate; in a learning rate that rises from the
    first step; in answers that keep their capitals; and in the end of an answer, which does not take the place of its
    last token where this is cut.

    With `output` each epoch is kept there, and the same call goes on after an interruption; in the end the model is
    saved there. The same arguments give the same model on the same machine, on a CPU.

    Args:
        llm: The language model, or its name on Hugging Face or folder. It stays as it is; with "lora", one that was
            handed in has adapters afterwards, and serves this model alone.
        embeddings: Turn names of entities and relations into vectors, once for all: those of an index, or any others.
        examples: What is learned; `graph_prompt_examples` makes them of questions.
        validation: Examples that say when to stop; by default a tenth of the others, drawn at random.
        output: A folder for the model, which must hold none; by default nothing is saved.
        setting: One of the paper's; see `Setting`.
        epochs: How often each example is looked at, at most; about, since all batches are full.
        batch_size: How many examples make one step.
        micro_batch_size: How many of them go through the language model at once, which is what memory goes with; None
            for all. The graphs are encoded together, so that batch normalisation is the same.
        learning_rate: That of AdamW at its highest.
        last_rate: To which share of it the rate falls, along a cosine.
        warm_up: For how many epochs it rises at first.
        weight_decay: Of AdamW.
        max_gradient: The longest gradient (L2 norm) that counts as it is; longer ones are shortened to it.
        patience: After how many epochs without a better validation it ends.
        precision: In which numbers the language model computes: "bfloat16" is automatic mixed precision.
        chat: Whether questions are put into the language model's chat template; None where it has one.
        seed: Of all that is drawn.
        threads: On how many threads torch runs; None for as many as it does anyway.
        progress: Whether to show a progress bar on stderr.
        **config: Fields of `GraphPromptConfig`, as for the ablations of the paper.

    Raises:
        InvalidArgumentError: If there is nothing to train or to train on, an argument is out of range, the language
            model has no room for a question, or the output holds a model or an unfinished training of something else.
        ModelLoadError: If the language model cannot be loaded, or the unfinished training in the output is damaged.
    """
    who, began = "train_graph_prompt", time.monotonic()
    settings = GraphPromptConfig.of(setting, **config)
    if not settings.soft_tokens and not settings.lora_rank:
        raise InvalidArgumentError(f"{who}: with soft_tokens=0 and lora_rank=0 there is nothing to train. Raise one.")
    _check_examples(examples, validation)
    vectors = TextVectors(embeddings)
    counts = {"epochs": epochs, "micro_batch_size": micro_batch_size, "threads": threads}
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise InvalidArgumentError(f"{who}: seed must be a whole number, 0 or more, but got {seed!r}.")
    for name, count in counts.items():
        if count is None and name != "epochs":
            continue
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise InvalidArgumentError(f"{who}: {name} must be a whole number, 1 or more, but got {count!r}.")
    limits = {"last_rate": (last_rate, 1), "warm_up": (warm_up, epochs), "weight_decay": (weight_decay, math.inf)}
    for name, (value, most) in {**limits, "max_gradient": (max_gradient, math.inf)}.items():
        if not isinstance(value, int | float) or not 0 <= value <= most or value == math.inf:
            wanted = "0 or more, and finite" if most == math.inf else f"from 0 to {most}"
            raise InvalidArgumentError(f"{who}: {name} must be {wanted}, but got {value!r}.")
    folder = None if output is None else Path(output)
    if folder and folder.exists() and not folder.is_dir():
        raise InvalidArgumentError(f"{who}: {folder} is a file. Name a folder.")
    if folder and (folder / CONFIG).exists():
        raise InvalidArgumentError(f"{who}: {folder} holds a model already. Name another folder.")
    learned, validating = _split(examples, validation, seed)
    schedule = Schedule(epochs * len(learned), epochs, patience, batch_size, learning_rate, seed, warm_up / epochs)
    lm = llm if isinstance(llm, CausalLM) else CausalLM.load(llm)
    if settings.before is None or settings.after is None:
        before, after = lm.around(chat)
        settings = replace(
            settings,
            before=before if settings.before is None else settings.before,
            after=after if settings.after is None else settings.after,
        )
    probe = vectors.of([PROBE])[0]
    first = int(stream(seed, "weights").integers(2**63))
    network = GraphPromptNetwork(lm, settings, vectors, len(probe), seed=first, precision=precision)
    prompts, validation_prompts = (
        [network.prompt(one.question, one.triples, one.labels, one.answers) for one in part]
        for part in (learned, validating)
    )
    both = [*prompts, *validation_prompts]
    graphs = [prompt.graph for prompt in both if prompt.graph]
    if texts := list(dict.fromkeys(text for graph in graphs for text in (*graph.names, *graph.relations))):
        vectors.of(texts, progress=progress)
    facts = {
        "examples": len(learned),
        "data": _digest(learned, validating),
        "setting": setting,
        "weight_decay": weight_decay,
        "last_rate": last_rate,
        "max_gradient": max_gradient,
        "precision": precision,
        "dtype": str(lm.model.dtype),
        "device": lm.device.type,
        "micro_batch_size": micro_batch_size or batch_size,
    }
    identity = [version("kg-retrievers"), VERSION, facts, asdict(settings), lm.fingerprint, probe.tolist()]
    trainer = PromptTrainer(
        parameters=network.parameters,
        buffers=network.buffers,
        items=prompts,
        prepare=lambda prompt: prompt,
        loss=lambda some, _: network.losses(some, network.soft(some)).mean(),
        validate=lambda: -mean_loss(network, validation_prompts, micro_batch_size or batch_size),
        schedule=schedule,
        identity=json.dumps(identity),
        output=folder,
        progress=progress,
        threads=threads,
        network=network,
        micro_batch_size=micro_batch_size or batch_size,
        last_rate=last_rate,
        weight_decay=weight_decay,
        max_gradient=max_gradient,
    )
    history = [-score for score in trainer.run()]
    network.train(False)
    network.vectors = TextVectors(embeddings, KEPT_VECTORS)
    told = {**facts, "schedule": asdict(schedule), "validation": history}
    model = GraphPromptModel(network, embeddings, probe, training=told)
    if folder:
        model.save_pretrained(folder)
        forget_unfinished(folder)
    trained = sum(weight.numel() for weight in network.parameters.values())
    frozen = sum(weight.numel() for weight in network.model.parameters() if not weight.requires_grad)
    cut = sum(settings.show_graph and prompt.shown < prompt.triples for prompt in both)
    return GraphPromptTraining(
        model, history, len(learned), len(validating), cut, trained, trained + frozen, time.monotonic() - began
    )


@dataclass(kw_only=True)
class PromptTrainer(Trainer[Prompt, Prompt]):
    """Trains what is in front of a language model.

    Attributes:
        network: The language model and what makes its soft tokens.
        micro_batch_size: How many prompts go through the language model at once.
        last_rate: To which share the learning rate falls.
        weight_decay: Of AdamW.
        max_gradient: The longest gradient that counts as it is.
    """

    network: GraphPromptNetwork
    micro_batch_size: int
    last_rate: float
    weight_decay: float
    max_gradient: float

    def optimizer(self) -> torch.optim.Optimizer:
        """Return AdamW."""
        rate, decay = self.schedule.learning_rate, self.weight_decay
        return torch.optim.AdamW(self.parameters.values(), lr=rate, betas=BETAS, weight_decay=decay)

    def rate(self, step: int) -> float:
        """Return the share of a learning rate that rises in a straight line, then falls along a cosine."""
        warm = self.schedule.warm_up * self._steps
        if step < warm:
            return min(1.0, (step + 1) / warm)
        fallen = (step - warm) / (self._steps - warm)
        return self.last_rate + (1 - self.last_rate) * (1 + math.cos(math.pi * fallen)) / 2

    def told(self, score: float) -> str:
        """Return the loss; the validation is higher where it is lower."""
        return f"loss {-score:.3f}"

    def step(self, step: int, examples: Sequence[Prompt]) -> None:
        """Leave the gradients of the mean loss with the parameters, that of one micro-batch after the other.

        The graphs are encoded together, and the gradients of their soft tokens are collected first.
        """
        device = self.network.lm.device
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(int(stream(self.schedule.seed, "loss", step).integers(2**63)))
            self.network.train(True)
            soft = self.network.soft(examples)
            leaf = None if soft is None else soft.detach().requires_grad_()
            taken = 0
            for start in range(0, len(examples), self.micro_batch_size):
                some = examples[start : start + self.micro_batch_size]
                count = sum(map(self.network.has_soft, some))
                of_some = leaf[taken : taken + count] if leaf is not None and count else None
                taken += count
                loss = self.network.losses(some, of_some).sum() / len(examples)
                if loss.requires_grad:  # not without a soft token and adapters
                    loss.backward()  # type: ignore[no-untyped-call]
            if soft is not None and leaf is not None:
                soft.backward(leaf.grad)  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.parameters.values(), self.max_gradient)


@torch.no_grad()
def mean_loss(network: GraphPromptNetwork, prompts: Sequence[Prompt], at_once: int) -> float:
    """Return the mean loss of prompts, without a change of anything.

    Raises:
        InvalidArgumentError: If it is no finite number.
    """
    network.train(False)
    total = 0.0
    for start in range(0, len(prompts), at_once):
        some = prompts[start : start + at_once]
        total += float(network.losses(some, network.soft(some)).sum())
    if not math.isfinite(total):
        raise InvalidArgumentError(
            "train_graph_prompt: the loss on the validation is no finite number any more. Lower learning_rate, or load "
            'the language model as "float32".'
        )
    return total / len(prompts)


def _check_examples(*parts: object) -> None:
    for part in parts:
        wanted = isinstance(part, Sequence) and part and all(isinstance(one, GraphPromptExample) for one in part)
        if part is not None and not wanted:
            raise InvalidArgumentError(
                "train_graph_prompt: wanted lists of GraphPromptExamples with one or more in each, as "
                f"`graph_prompt_examples` makes them of questions, but got {part!r:.200}."
            )


def _split(
    examples: Sequence[GraphPromptExample], validation: Sequence[GraphPromptExample] | None, seed: int
) -> tuple[list[GraphPromptExample], list[GraphPromptExample]]:
    """Return what is trained on and what validates; where there is one example, it is both."""
    if validation is not None:
        return list(examples), list(validation)
    if len(examples) == 1:
        return list(examples), list(examples)
    count = max(1, round(VALIDATION_SHARE * len(examples)))
    chosen = set(stream(seed, "split").permutation(len(examples))[:count].tolist())
    parts: tuple[list[GraphPromptExample], list[GraphPromptExample]] = [], []
    for place, example in enumerate(examples):
        parts[place in chosen].append(example)
    return parts


def _digest(*parts: Sequence[GraphPromptExample]) -> str:
    """Return 32 hexadecimal digits that change with the examples."""
    rows = [[[one.question, one.answers, one.triples, sorted(one.labels.items())] for one in part] for part in parts]
    return blake2b(json.dumps(rows).encode(), digest_size=16).hexdigest()
