"""The training of the adapters of a language model on texts, with torch (extra `graph-prompt`)."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from pydantic import Field

from kg_retrievers.core.checked import checked_dataclass
from kg_retrievers.errors import InvalidArgumentError, MissingExtraError
from kg_retrievers.methods.rog.adapted_lm import AdaptedLM, Text
from kg_retrievers.methods.rog.tuned_prompts import VERSION

try:
    import torch

    from kg_retrievers.training.adamw import AdamWTrainer
    from kg_retrievers.training.lora import switch_dropout
    from kg_retrievers.training.schedule import Schedule, stream
    from kg_retrievers.training.unfinished import forget_unfinished
except ImportError as cause:
    raise MissingExtraError("Training a language model", "graph-prompt") from cause


class _Saved(Protocol):
    """A model that can be saved."""

    def save_pretrained(self, folder: str | Path) -> None:
        """Write it to a folder."""


Model = TypeVar("Model", bound=_Saved)

#: The share of the steps in which the learning rate rises, and what it falls to, as a share of the highest.
WARM_UP, LAST_RATE = 0.05, 0.1

#: How much weights shrink in each step, and the largest norm of a step's gradient.
WEIGHT_DECAY, MAX_GRADIENT = 0.0, 1.0

#: The texts of one question.
Example = tuple[Text, ...]


@dataclass(frozen=True, kw_only=True)
class LanguageModelTuning(Generic[Model]):
    """How adapters of a language model were trained.

    Attributes:
        model: The model, as it was at the best validation.
        history: The validation losses, before the training and at each validation: the mean of -log p over the tokens
            to learn.
        questions: The number of questions that it was trained on.
        validation: The number of questions that validated it.
        left_out: How many others there were, by why they are not used.
        trained: The number of weights that were trained.
        weights: The number of all weights, those of the language model included.
        seconds: How long this call took.
    """

    model: Model
    history: list[float]
    questions: int
    validation: int
    left_out: dict[str, int]
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
class TuningOptions:
    """How adapters are trained; the arguments of `train_planner` and `train_path_reader` have their names."""

    who: ClassVar[str] = "train_planner, train_path_reader"

    num_examples: int = Field(default=2_000, ge=1)
    batch_size: int = Field(default=4, ge=1)
    learning_rate: float = Field(default=1e-3, gt=0, lt=1)
    validations: int = Field(default=4, ge=1)
    patience: int = Field(default=2, ge=1)
    seed: int = Field(default=0, ge=0)
    threads: int | None = Field(default=None, ge=1)

    @property
    def schedule(self) -> Schedule:
        """How long and how fast a model is trained."""
        return Schedule(
            self.num_examples,
            self.validations,
            self.patience,
            self.batch_size,
            self.learning_rate,
            self.seed,
            WARM_UP,
        )


def tune(
    adapted: AdaptedLM,
    learned: Sequence[Example],
    validating: Sequence[Example],
    options: TuningOptions,
    facts: dict[str, Any],
    output: Path | None,
    *,
    progress: bool,
) -> list[float]:
    """Train adapters in place, and return the losses of all validations.

    The loss of some questions is the mean of -log p over the tokens to learn, each question counted once: its texts
    share its weight.

    Args:
        adapted: The language model.
        learned: The texts of each question to train on.
        validating: Those of the questions that say when to stop.
        options: How they are trained.
        facts: What else the result depends on; values of JSON.
        output: A folder that keeps an unfinished training; None to keep nothing.
        progress: Whether to show a progress bar on stderr.
    """
    identity = [version("kg-retrievers"), VERSION, facts, asdict(adapted.config), adapted.lm.fingerprint]
    identity += [str(adapted.lm.model.dtype), asdict(options), adapted.lm.device.type]
    trainer = _TextTrainer(
        parameters=adapted.parameters,
        items=learned,
        prepare=lambda example: example,
        loss=lambda examples, _: _loss(adapted, examples),
        validate=lambda: -_validation_loss(adapted, validating, options),
        schedule=options.schedule,
        identity=json.dumps(identity),
        output=output,
        progress=progress,
        threads=options.threads,
        adapted=adapted,
        last_rate=LAST_RATE,
        weight_decay=WEIGHT_DECAY,
        max_gradient=MAX_GRADIENT,
    )
    history = [-score for score in trainer.run()]
    switch_dropout(adapted.model, False)
    return history


def tuned(
    model: Model,
    adapted: AdaptedLM,
    history: list[float],
    counts: tuple[int, int],
    left_out: dict[str, int],
    began: float,
    folder: Path | None,
) -> LanguageModelTuning[Model]:
    """Save a model that was trained, and say how.

    Args:
        model: The model.
        adapted: Its language model.
        history: The losses of all validations.
        counts: How many questions trained and validated it.
        left_out: How many others there were, by why they are not used.
        began: When the training began, by the monotonic clock.
        folder: Where to save it; None to save nothing.
    """
    if folder:
        model.save_pretrained(folder)
        forget_unfinished(folder)
    trained = sum(weight.numel() for weight in adapted.parameters.values())
    return LanguageModelTuning(
        model=model,
        history=history,
        questions=counts[0],
        validation=counts[1],
        left_out=left_out,
        trained=trained,
        weights=sum(weight.numel() for weight in adapted.model.parameters()),
        seconds=time.monotonic() - began,
    )


@dataclass(kw_only=True)
class _TextTrainer(AdamWTrainer[Example, Example]):
    """Trains the adapters of a language model."""

    adapted: AdaptedLM = field(repr=False)

    def step(self, step: int, examples: Sequence[Example]) -> None:
        """Compute the gradients of the loss; what dropout draws depends on the step alone."""
        device = self.adapted.lm.device
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(int(stream(self.schedule.seed, "loss", step).integers(2**63)))
            switch_dropout(self.adapted.model, True)
            super().step(step, examples)


def _loss(adapted: AdaptedLM, examples: Sequence[Example]) -> torch.Tensor:
    texts = [text for example in examples for text in example]
    weights = torch.tensor([text.weight for text in texts], device=adapted.lm.device)
    sizes = torch.tensor([float(len(text.label)) for text in texts], device=adapted.lm.device)
    return (adapted.losses(texts) * weights).sum() / (sizes * weights).sum()


@torch.no_grad()
def _validation_loss(adapted: AdaptedLM, examples: Sequence[Example], options: TuningOptions) -> float:
    switch_dropout(adapted.model, False)
    total = size = 0.0
    for start in range(0, len(examples), options.batch_size):
        texts = [text for example in examples[start : start + options.batch_size] for text in example]
        losses = adapted.losses(texts).tolist()
        total += sum(loss * text.weight for loss, text in zip(losses, texts, strict=True))
        size += sum(len(text.label) * text.weight for text in texts)
    if not math.isfinite(total):
        raise InvalidArgumentError(
            f"{options.who}: the loss on the validation is no finite number any more. Lower learning_rate, or load the "
            'language model as "float32".'
        )
    return total / size
