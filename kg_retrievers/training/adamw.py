"""Training of what a language model is given, or of its adapters: AdamW, whose rate rises and falls (extra `train`)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Generic, TypeVar

from kg_retrievers.errors import MissingExtraError

try:
    import torch

    from kg_retrievers.training.loop import Trainer
except ModuleNotFoundError as cause:
    raise MissingExtraError("Training a model", "train") from cause

#: The betas of AdamW, as in the code published with G-Retriever.
BETAS = (0.9, 0.95)

Item = TypeVar("Item")
Example = TypeVar("Example")


@dataclass(kw_only=True)
class AdamWTrainer(Trainer[Item, Example], Generic[Item, Example]):
    """Trains with AdamW; the validation is the negative of a loss.

    Attributes:
        last_rate: The share to which the learning rate falls.
        weight_decay: The weight decay of AdamW.
        max_gradient: The longest gradient that counts as it is.
    """

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
