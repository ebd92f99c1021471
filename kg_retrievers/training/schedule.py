"""How long and how fast a training goes on, and what it draws."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from kg_retrievers.core.checked import checked_dataclass


@checked_dataclass
class Schedule:
    """How long and how fast a model is trained.

    Attributes:
        num_examples: How many examples are looked at in all, each counted anew in every epoch.
        validations: How often the model is validated, after equal shares of the steps.
        patience: After how many validations without a better one the training ends.
        batch_size: How many examples make one step.
        learning_rate: The highest learning rate of Adam: at the first step, or after those of `warm_up`.
        seed: The seed of all random numbers.
        warm_up: The share of the steps, the first ones, in which the learning rate rises.
        constant_rate: Whether it stays at its highest, instead of falling in a straight line.

    Raises:
        InvalidArgumentError: If a value is out of range.
    """

    num_examples: int = Field(ge=1)
    validations: int = Field(ge=1)
    patience: int = Field(ge=1)
    batch_size: int = Field(ge=1)
    learning_rate: float = Field(gt=0, lt=1)
    seed: int = Field(ge=0)
    warm_up: float = Field(default=0.0, ge=0, le=1)
    constant_rate: bool = False

    @property
    def steps(self) -> int:
        """The number of steps, at least one for each validation."""
        return max(self.num_examples // self.batch_size, self.validations)

    def first_step(self, validations: int) -> int:
        """Return the first step after so many validations."""
        return validations * self.steps // self.validations


def stream(seed: int, purpose: Literal["split", "weights", "order", "loss"], number: int = 0) -> np.random.Generator:
    """Return random numbers that are independent of those for another purpose or of another number."""
    key = (("split", "weights", "order", "loss").index(purpose), number)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def order_of(items: int, seed: int, epoch: int) -> npt.NDArray[np.int64]:
    """Return the order in which an epoch looks at items."""
    return stream(seed, "order", epoch).permutation(items)


def first_epoch(items: int, schedule: Schedule) -> npt.NDArray[np.int64]:
    """Return the items that a training looks at first, each once, as many as it looks at."""
    return order_of(items, schedule.seed, 0)[: schedule.steps * schedule.batch_size]
