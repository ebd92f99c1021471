"""Training of a graph prompt, with torch (extra `graph-prompt`).

X. He, Y. Tian, Y. Sun, N. Chawla, T. Laurent, Y. LeCun, X. Bresson, B. Hooi: G-Retriever: Retrieval-Augmented
Generation for Textual Graph Understanding and Question Answering. NeurIPS 2024, arXiv:2402.07630, section 6 and
appendix B.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings

from kg_retrievers.errors import InvalidArgumentError, MissingExtraError, named_arguments
from kg_retrievers.graph.validation import check_integer
from kg_retrievers.index.embeddings import embed
from kg_retrievers.methods.g_retriever.graph_prompt.config import GraphPromptConfig, Setting
from kg_retrievers.methods.g_retriever.graph_prompt.examples import GraphPromptExample
from kg_retrievers.methods.g_retriever.graph_prompt.language_model import CausalLM
from kg_retrievers.methods.g_retriever.graph_prompt.model import GraphPromptModel
from kg_retrievers.methods.g_retriever.graph_prompt.network import GraphPromptNetwork, Precision, Prompt, TextVectors
from kg_retrievers.methods.g_retriever.graph_prompt.prompts import VERSION
from kg_retrievers.training.fit import VALIDATION_SHARE, checked_output
from kg_retrievers.training.loop import Schedule, Trainer, forget_unfinished, stream

try:
    import torch
except ImportError as cause:
    raise MissingExtraError("Training a graph prompt", "graph-prompt") from cause


@dataclass(frozen=True)
class GraphPromptTraining:
    """How a graph prompt was trained.

    Attributes:
        model: The model, as it was at the best validation.
        history: The mean loss of the validation, before the training and after each epoch.
        cut: The number of examples, with the validation, whose text of the graph lacks triples. The encoder gets all
            triples.
        trained: The number of weights that were trained.
        weights: The number of all weights, including the language model's.
    """

    model: GraphPromptModel
    history: list[float]
    cut: int
    trained: int
    weights: int

    @property
    def best(self) -> float:
        """The best validation loss. It is optimistic as an estimate, since it selected the model."""
        return min(self.history[1:])

    @property
    def share(self) -> float:
        """The share of the weights that was trained, in [0, 1]."""
        return self.trained / self.weights


@named_arguments
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
    warm_up: float = 0.1,
    max_gradient: float = 0.1,
    patience: int = 2,
    precision: Precision | None = None,
    seed: int = 0,
    progress: bool = False,
    **config: Any,
) -> GraphPromptTraining:
    """Train soft tokens, and adapters by choice, on questions with answers and retrieved graphs.

    The defaults come from the paper (appendix B.1) and the code published with it. The loss is the mean of -log p over
    the tokens of the answers of a batch and their ends. Question and graph add nothing to it.

    *Differs from the published code*: the gradients are of the whole batch, while `grad_steps` of the code only delays
    the learning rate. The learning rate rises from the first step. Answers keep their capitals. If an answer is cut,
    its end does not take the place of its last token.

    With `output` the training is kept there after each epoch, and the same call goes on after an interruption. In the
    end the model is saved there. The same arguments give the same model on the same machine, on a CPU.

    Args:
        llm: The language model, or its name on Hugging Face or folder. It stays as it is. With "lora", a language model
            that was handed in has adapters afterwards, and serves this model alone.
        embeddings: Embeddings for the names of entities and relations, of an index or any others.
        examples: The examples to learn. `graph_prompt_examples` makes them of questions.
        validation: Examples that decide when to stop. By default a tenth of the others, drawn at random.
        output: A folder for the model, which must hold none. By default nothing is saved.
        setting: One of the paper's settings, see `Setting`.
        epochs: How often each example is looked at, at most. It is an approximate number, since all batches are full.
        batch_size: How many examples make one step, which decides the memory.
        learning_rate: The highest learning rate of AdamW. It falls along a cosine to half of it.
        warm_up: The share of the steps, the first ones, in which it rises.
        max_gradient: The longest gradient (L2 norm) that counts as it is. Longer ones are shortened to it.
        patience: After how many epochs without a better validation the training ends.
        precision: The type of the language model's weights, in which it computes: "bfloat16" takes half the memory, and
            less time if the processor supports it. None for the type in which they are stored, or handed in.
        seed: The seed of all random numbers.
        progress: Whether to show a progress bar on stderr.
        **config: Fields of `GraphPromptConfig`, as for the ablations of the paper.

    Raises:
        InvalidArgumentError: If there is nothing to train or to train on, an argument is out of range, the language
            model has no room for a question, or the output holds a model or an unfinished training of something else.
        ModelLoadError: If the language model cannot be loaded, or the unfinished training in the output is damaged.
    """
    who = "train_graph_prompt"
    settings = GraphPromptConfig.of(setting, **config)
    if not settings.soft_tokens and not settings.lora_rank:
        raise InvalidArgumentError(f"{who}: with soft_tokens=0 and lora_rank=0 there is nothing to train. Raise one.")
    check_integer(epochs, f"{who}: epochs")
    if not examples or (validation is not None and not validation):
        raise InvalidArgumentError(f"{who}: wanted one or more examples in each list, but got an empty one.")
    folder, parts = checked_output(who, output), _split(examples, validation, seed)
    count = len(parts[0])
    schedule = Schedule(
        epochs * count, epochs, patience, batch_size, learning_rate, seed, warm_up, max_gradient=max_gradient
    )
    vectors = TextVectors(embeddings)
    lm = llm if isinstance(llm, CausalLM) else CausalLM.load(llm, dtype=precision or "auto")
    if settings.around is None:
        settings = replace(settings, around=lm.around())
    network = GraphPromptNetwork(lm, settings, vectors, seed=int(stream(seed, "weights").integers(2**63)))
    learned, validating = (
        [network.prompt(one.question, one.triples, one.labels, one.answers, entities=one.entities) for one in part]
        for part in parts
    )
    graphs = [prompt.graph for prompt in (*learned, *validating) if prompt.graph]
    texts = list({text: None for graph in graphs for text in (*graph.names, *graph.relations)})
    vectors.known |= zip(texts, embed(embeddings, texts, progress=progress), strict=True)
    data = json.dumps([[asdict(one) for one in part] for part in parts], sort_keys=True).encode()
    digest = blake2b(data, digest_size=16).hexdigest()
    facts = {"examples": count, "data": digest, "setting": setting, "dtype": lm.dtype}
    about = [version("kg-retrievers"), VERSION, facts, asdict(settings), lm.fingerprint, vectors.probe.tolist()]
    trainer = PromptTrainer(
        parameters=network.parameters,
        buffers=network.buffers,
        items=learned,
        prepare=lambda prompt: prompt,
        loss=network.loss_in_training,
        validate=lambda: -mean_loss(network, validating, batch_size),
        schedule=schedule,
        identity=json.dumps(about),
        output=folder,
        progress=progress,
        threads=None,
    )
    history = [-score for score in trainer.run()]
    network.train(False)
    vectors.known.clear()
    training = {**facts, "schedule": asdict(schedule), "validation": history}
    model = GraphPromptModel(network, training=training)
    if folder:
        model.save_pretrained(folder)
        forget_unfinished(folder)
    trained = sum(weight.numel() for weight in network.parameters.values())
    frozen = sum(weight.numel() for weight in network.model.parameters() if not weight.requires_grad)
    cut = sum(prompt.shown < prompt.triples for prompt in (*learned, *validating)) if settings.show_graph else 0
    return GraphPromptTraining(model, history, cut, trained, trained + frozen)


#: The betas and the weight decay of AdamW, and the share of the learning rate that is left in the end, as in the
#: published code.
BETAS, WEIGHT_DECAY, LAST_RATE = (0.9, 0.95), 0.05, 0.5


@dataclass(kw_only=True)
class PromptTrainer(Trainer[Prompt, Prompt]):
    """Trains the network that makes the soft tokens, and the adapters. The validation is a negative loss."""

    def optimizer(self) -> torch.optim.Optimizer:
        """Return AdamW."""
        rate = self.schedule.learning_rate
        return torch.optim.AdamW(self.parameters.values(), lr=rate, betas=BETAS, weight_decay=WEIGHT_DECAY)

    def rate(self, step: int) -> float:
        """Return the share of a learning rate that rises in a straight line, then falls along a cosine."""
        warm = self.schedule.warm_up * self.schedule.steps
        if step < warm:
            return min(1.0, (step + 1) / warm)
        fallen = (step - warm) / max(1.0, self.schedule.steps - warm)
        return LAST_RATE + (1 - LAST_RATE) * (1 + math.cos(math.pi * fallen)) / 2

    def format_score(self, score: float) -> str:
        """Return the loss, of which the validation is the negative."""
        return f"loss {-score:.3f}"


@torch.no_grad()
def mean_loss(network: GraphPromptNetwork, prompts: Sequence[Prompt], at_once: int) -> float:
    """Return the mean loss of prompts.

    Raises:
        InvalidArgumentError: If it is no finite number.
    """
    network.train(False)
    batches = [prompts[start : start + at_once] for start in range(0, len(prompts), at_once)]
    total = sum(float(network.loss(batch)) * len(batch) for batch in batches)
    if not math.isfinite(total):
        raise InvalidArgumentError(
            "train_graph_prompt: the loss on the validation is no finite number any more. Lower learning_rate, or load "
            'the language model as "float32".'
        )
    return total / len(prompts)


def _split(
    examples: Sequence[GraphPromptExample], validation: Sequence[GraphPromptExample] | None, seed: int
) -> tuple[list[GraphPromptExample], list[GraphPromptExample]]:
    """Return the examples to train on and to validate with. A single example is both."""
    if validation is not None:
        return list(examples), list(validation)
    count = max(1, round(VALIDATION_SHARE * len(examples)))
    shuffled = [examples[position] for position in stream(seed, "split").permutation(len(examples))]
    return shuffled[count:] or shuffled, shuffled[:count]
