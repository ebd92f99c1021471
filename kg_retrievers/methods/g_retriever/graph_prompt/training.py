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
from typing import Any, ClassVar

from langchain_core.embeddings import Embeddings
from pydantic import Field

from kg_retrievers.core.trained_model import PROBE
from kg_retrievers.errors import InvalidArgumentError, MissingExtraError
from kg_retrievers.graph.validation import checked_dataclass
from kg_retrievers.methods.g_retriever.graph_prompt.config import GraphPromptConfig, Setting
from kg_retrievers.methods.g_retriever.graph_prompt.encoders import TextVectors
from kg_retrievers.methods.g_retriever.graph_prompt.examples import GraphPromptExample
from kg_retrievers.methods.g_retriever.graph_prompt.language_model import CausalLM
from kg_retrievers.methods.g_retriever.graph_prompt.model import KEPT_VECTORS, GraphPromptModel
from kg_retrievers.methods.g_retriever.graph_prompt.network import GraphPromptNetwork, Precision, Prompt
from kg_retrievers.methods.g_retriever.graph_prompt.prompts import VERSION

try:
    import torch

    from kg_retrievers.training.fit import VALIDATION_SHARE, checked_output
    from kg_retrievers.training.loop import Schedule, Trainer, forget_unfinished, stream
except ModuleNotFoundError as cause:
    raise MissingExtraError("train_graph_prompt", "graph-prompt") from cause


@dataclass(frozen=True)
class GraphPromptTraining:
    """How a graph prompt was trained.

    Attributes:
        model: The model, as it was at the best validation.
        history: The mean loss of the validation, before the training and after each epoch.
        examples: The number of examples that it was trained on.
        validation: The number of examples that validated it.
        cut: The number of both whose text of the graph lacks triples; the encoder is given them all.
        trained: The number of weights that were trained.
        weights: The number of all weights, those of the language model included.
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
        """The best validation loss. It is optimistic as an estimate, since it selected the model."""
        return min(self.history[1:])

    @property
    def share(self) -> float:
        """The share of the weights that was trained, in [0, 1]."""
        return self.trained / self.weights


@checked_dataclass
class _TrainingOptions:
    """The arguments of `train_graph_prompt` that say how a model is trained."""

    who: ClassVar[str] = "train_graph_prompt"

    precision: Precision | None
    epochs: int = Field(ge=1)
    batch_size: int = Field(ge=1)
    learning_rate: float = Field(gt=0, lt=1)
    last_rate: float = Field(ge=0, le=1)
    warm_up: float = Field(ge=0)
    weight_decay: float = Field(ge=0, allow_inf_nan=False)
    max_gradient: float = Field(ge=0, allow_inf_nan=False)
    patience: int = Field(ge=1)
    seed: int = Field(ge=0)

    def __post_init__(self) -> None:
        """Check that the learning rate does not rise for longer than the training lasts."""
        if self.warm_up > self.epochs:
            raise ValueError(f"warm_up must be at most epochs={self.epochs}, but got {self.warm_up:g}.")

    def schedule(self, examples: int) -> Schedule:
        """Return how long and how fast a model is trained on so many examples."""
        return Schedule(
            self.epochs * examples,
            self.epochs,
            self.patience,
            self.batch_size,
            self.learning_rate,
            self.seed,
            self.warm_up / self.epochs,
        )


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
    learning_rate: float = 1e-5,
    last_rate: float = 0.5,
    warm_up: float = 1.0,
    weight_decay: float = 0.05,
    max_gradient: float = 0.1,
    patience: int = 2,
    precision: Precision | None = None,
    chat: bool | None = None,
    seed: int = 0,
    progress: bool = False,
    **config: Any,
) -> GraphPromptTraining:
    """Train soft tokens, and adapters by choice, on questions with answers and retrieved graphs.

    The defaults are those of the paper (appendix B.1) and the code published with it. Loss: the mean over the examples
    of the mean of -log p over the tokens of the answer and its end; question and graph add nothing to it.

    *Differs from the published code* in gradients that are those of the whole batch: there, `grad_steps` only delays
    the learning rate; in a learning rate that rises from the first step; in answers that keep their capitals; and in
    the end of an answer, which does not take the place of its last token where this is cut.

    With `output` the training is kept there after each epoch, and the same call goes on after an interruption; in the
    end the model is saved there. The same arguments give the same model on the same machine, on a CPU.

    Args:
        llm: The language model, or its name on Hugging Face or folder. It stays as it is; with "lora", a language model
            that was handed in has adapters afterwards, and serves this model alone.
        embeddings: Embeddings for the names of entities and relations: those of an index, or any others.
        examples: The examples to learn; `graph_prompt_examples` makes them of questions.
        validation: Examples that say when to stop; by default a tenth of the others, drawn at random.
        output: A folder for the model, which must hold none; by default nothing is saved.
        setting: One of the paper's settings; see `Setting`.
        epochs: How often each example is looked at, at most; about, since all batches are full.
        batch_size: How many examples make one step, which decides the memory.
        learning_rate: The highest learning rate of AdamW.
        last_rate: The share of it to which the rate falls, along a cosine.
        warm_up: The number of epochs in which it rises at first.
        weight_decay: The weight decay of AdamW.
        max_gradient: The longest gradient (L2 norm) that counts as it is; longer ones are shortened to it.
        patience: After how many epochs without a better validation the training ends.
        precision: The type of the language model's weights, in which it computes: "bfloat16" takes half the memory,
            and less time where the processor has it; None for the type in which they are stored, or handed in.
        chat: Whether questions are put into the language model's chat template; None where it has one.
        seed: The seed of all random numbers.
        progress: Whether to show a progress bar on stderr.
        **config: Fields of `GraphPromptConfig`, as for the ablations of the paper.

    Raises:
        InvalidArgumentError: If there is nothing to train or to train on, an argument is out of range, the language
            model has no room for a question, or the output holds a model or an unfinished training of something else.
        ModelLoadError: If the language model cannot be loaded, or the unfinished training in the output is damaged.
    """
    began = time.monotonic()
    options = _TrainingOptions(
        precision=precision,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        last_rate=last_rate,
        warm_up=warm_up,
        weight_decay=weight_decay,
        max_gradient=max_gradient,
        patience=patience,
        seed=seed,
    )
    settings = _trainable_settings(setting, config)
    _check_examples(examples, validation)
    vectors, folder = TextVectors(embeddings), checked_output(options.who, output)
    parts = _split(examples, validation, seed)
    lm = llm if isinstance(llm, CausalLM) else CausalLM.load(llm, dtype=precision or "auto")
    settings = _with_surroundings(settings, lm, chat)
    probe = vectors.of([PROBE])[0]
    first = int(stream(seed, "weights").integers(2**63))
    network = GraphPromptNetwork(lm, settings, vectors, len(probe), seed=first)
    learned, validating = (
        [network.prompt(one.question, one.triples, one.labels, one.answers, entities=one.entities) for one in part]
        for part in parts
    )
    _embed((*learned, *validating), vectors, progress=progress)
    facts = {
        "examples": len(learned),
        "data": _digest(*parts),
        "setting": setting,
        "weight_decay": weight_decay,
        "last_rate": last_rate,
        "max_gradient": max_gradient,
        "dtype": lm.dtype,
        "device": lm.device.type,
    }
    trainer = PromptTrainer(
        parameters=network.parameters,
        buffers=network.buffers,
        items=learned,
        prepare=lambda prompt: prompt,
        loss=lambda some, _: network.losses(some, network.soft(some)).mean(),
        validate=lambda: -mean_loss(network, validating, batch_size),
        schedule=options.schedule(len(learned)),
        identity=json.dumps(
            [version("kg-retrievers"), VERSION, facts, asdict(settings), lm.fingerprint, probe.tolist()]
        ),
        output=folder,
        progress=progress,
        threads=None,
        network=network,
        last_rate=last_rate,
        weight_decay=weight_decay,
        max_gradient=max_gradient,
    )
    history = [-score for score in trainer.run()]
    network.train(False)
    network.vectors = TextVectors(embeddings, KEPT_VECTORS)
    training = {**facts, "schedule": asdict(trainer.schedule), "validation": history}
    model = GraphPromptModel(network, embeddings, probe, training=training)
    if folder:
        model.save_pretrained(folder)
        forget_unfinished(folder)
    trained = sum(weight.numel() for weight in network.parameters.values())
    frozen = sum(weight.numel() for weight in network.model.parameters() if not weight.requires_grad)
    cut = sum(prompt.shown < prompt.triples for prompt in (*learned, *validating)) if settings.show_graph else 0
    return GraphPromptTraining(
        model,
        history,
        examples=len(learned),
        validation=len(validating),
        cut=cut,
        trained=trained,
        weights=trained + frozen,
        seconds=time.monotonic() - began,
    )


def _embed(prompts: Sequence[Prompt], vectors: TextVectors, *, progress: bool) -> None:
    """Embed the names and relations of all graphs at once."""
    graphs = [prompt.graph for prompt in prompts if prompt.graph]
    if texts := dict.fromkeys(text for graph in graphs for text in (*graph.names, *graph.relations)):
        vectors.of(list(texts), progress=progress)


def _trainable_settings(setting: Setting, config: dict[str, Any]) -> GraphPromptConfig:
    settings = GraphPromptConfig.of(setting, **config)
    if not settings.soft_tokens and not settings.lora_rank:
        raise InvalidArgumentError(
            f"{_TrainingOptions.who}: with soft_tokens=0 and lora_rank=0 there is nothing to train. Raise one."
        )
    return settings


def _with_surroundings(settings: GraphPromptConfig, lm: CausalLM, chat: bool | None) -> GraphPromptConfig:
    """Take the texts before and after a question from the language model, where they are not given."""
    if settings.before is not None and settings.after is not None:
        return settings
    before, after = lm.around(chat)
    return replace(
        settings,
        before=before if settings.before is None else settings.before,
        after=after if settings.after is None else settings.after,
    )


#: The betas of AdamW, as in the published code.
BETAS = (0.9, 0.95)


@dataclass(kw_only=True)
class PromptTrainer(Trainer[Prompt, Prompt]):
    """Trains what makes the soft tokens of a language model, and its adapters; the validation is a negative loss.

    Attributes:
        network: The language model and what makes its soft tokens.
        last_rate: The share to which the learning rate falls.
        weight_decay: The weight decay of AdamW.
        max_gradient: The longest gradient that counts as it is.
    """

    network: GraphPromptNetwork
    last_rate: float
    weight_decay: float
    max_gradient: float

    def optimizer(self) -> torch.optim.Optimizer:
        """Return AdamW."""
        rate, decay = self.schedule.learning_rate, self.weight_decay
        return torch.optim.AdamW(self.parameters.values(), lr=rate, betas=BETAS, weight_decay=decay)

    def rate(self, step: int) -> float:
        """Return the share of a learning rate that rises in a straight line, then falls along a cosine."""
        warm = self.schedule.warm_up * self.schedule.steps
        if step < warm:
            return min(1.0, (step + 1) / warm)
        fallen = (step - warm) / max(1.0, self.schedule.steps - warm)
        return self.last_rate + (1 - self.last_rate) * (1 + math.cos(math.pi * fallen)) / 2

    def format_score(self, score: float) -> str:
        """Return the loss, of which the validation is the negative."""
        return f"loss {-score:.3f}"

    def step(self, step: int, examples: Sequence[Prompt]) -> None:
        """Compute the gradients of the mean loss."""
        device = self.network.lm.device
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(int(stream(self.schedule.seed, "loss", step).integers(2**63)))
            self.network.train(True)
            loss = self.network.losses(examples, self.network.soft(examples)).mean()
            if loss.requires_grad:  # not without a soft token and adapters
                loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.parameters.values(), self.max_gradient)


@torch.no_grad()
def mean_loss(network: GraphPromptNetwork, prompts: Sequence[Prompt], at_once: int) -> float:
    """Return the mean loss of prompts.

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
    """Return the examples to train on and to validate with; a single example is both."""
    if validation is not None:
        return list(examples), list(validation)
    if len(examples) == 1:
        return list(examples), list(examples)
    count = max(1, round(VALIDATION_SHARE * len(examples)))
    chosen = set(stream(seed, "split").permutation(len(examples))[:count].tolist())
    parts: tuple[list[GraphPromptExample], list[GraphPromptExample]] = [], []
    for position, example in enumerate(examples):
        parts[position in chosen].append(example)
    return parts


def _digest(*parts: Sequence[GraphPromptExample]) -> str:
    """Return 32 hexadecimal digits that change with the examples."""
    rows = [
        [[one.question, one.answers, one.triples, sorted(one.labels.items()), *one.entities] for one in part]
        for part in parts
    ]
    return blake2b(json.dumps(rows).encode(), digest_size=16).hexdigest()
