"""The loop of a training: its schedule, its optimizers, and the files with which it can go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Generic, Literal, TypeVar

import numpy as np
import rich.progress
from pydantic import Field
from rich.console import Console

from kg_retrievers.core.checkpoint import WEIGHTS, load_checkpoint, save_checkpoint
from kg_retrievers.errors import InvalidArgumentError, MissingExtraError, ModelLoadError
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.validation import checked_dataclass

try:
    import torch
except ImportError as cause:
    raise MissingExtraError("Training a model", "train") from cause

#: The share of the first learning rate that is left at the end, after a fall in a straight line.
LAST_RATE = 0.05

Item = TypeVar("Item")
Example = TypeVar("Example")


@dataclass
class Trainer(Generic[Item, Example]):
    """Train parameters in place, and restore them from the best validation, of equal ones the last.

    The same arguments give the same parameters on the same machine, even if a training goes on after an interruption.
    Torch runs on one thread, since small steps are slower on several.

    A subclass may override `optimizer`, `rate`, `step` and `format_score`. Validations count higher as better.

    Attributes:
        parameters: The tensors to train, by name. They require gradients.
        items: The items to train on.
        prepare: Makes an example of an item.
        loss: Returns the loss of a batch of examples. The second argument is the random generator that it draws from.
        validate: Returns how good the parameters are, higher is better.
        schedule: How long and how fast the model is trained.
        identity: Changes with everything that the result depends on. An unfinished training with another identity is
            refused.
        output: A folder that keeps the training in `unfinished` after each validation, to go on from there. None to
            keep nothing.
        progress: Whether to show a progress bar on stderr.
        buffers: Tensors that the training changes without gradients, under other names than the parameters.
        threads: The number of threads that torch runs on. None to leave it as it is.
    """

    parameters: dict[str, torch.Tensor]
    items: Sequence[Item]
    prepare: Callable[[Item], Example]
    loss: Callable[[Sequence[Example], np.random.Generator], torch.Tensor]
    validate: Callable[[], float]
    schedule: Schedule
    identity: str
    output: Path | None = None
    progress: bool = False
    buffers: dict[str, torch.Tensor] = field(default_factory=dict)
    threads: int | None = 1

    def run(self) -> list[float]:
        """Train, and return all validations. The first is the one before the training.

        Raises:
            InvalidArgumentError: If the output holds an unfinished training of something else.
            ModelLoadError: If the unfinished training in the output is damaged.
        """
        with _torch_threads(self.threads), _bar(shown=self.progress) as bar:
            optimizer = self.optimizer()
            state = self._restored(optimizer) or TrainingState([self.validate()], self._copied())
            begin = self.schedule.first_step(len(state.history) - 1)
            task = bar.add_task("Training", total=self.schedule.steps, completed=begin, score="")
            while not self._is_finished(state.history):
                bar.update(task, score=self.format_score(state.history[-1]))
                end = self.schedule.first_step(len(state.history))
                for step in range(begin, end):
                    for group in optimizer.param_groups:  # from the step alone, wherever a training began
                        group["lr"] = self.schedule.learning_rate * self.rate(step)
                    optimizer.zero_grad()
                    self.step(step, self._batch(step))
                    optimizer.step()
                    bar.advance(task)
                begin, state = end, self._validated(state)
                self._keep(state, optimizer)
            bar.update(task, completed=begin, score=self.format_score(state.history[-1]))
        self._set(state.best)
        return state.history

    def optimizer(self) -> torch.optim.Optimizer:
        """Return the optimizer of the parameters: Adam, or one with its state (`step`, `exp_avg` and `exp_avg_sq`)."""
        return torch.optim.Adam(self.parameters.values(), lr=self.schedule.learning_rate)

    def rate(self, step: int) -> float:
        """Return the learning rate of a step, the first being 0, as a share of the highest one."""
        steps = self.schedule.steps
        share = 1.0 if self.schedule.constant_rate else max(LAST_RATE, 1 - step / steps)
        return share * min(1.0, (step + 1) / max(1.0, self.schedule.warm_up * steps))

    def step(self, step: int, examples: Sequence[Example]) -> None:
        """Compute the gradients of some examples."""
        loss = self.loss(examples, stream(self.schedule.seed, "loss", step))
        if loss.requires_grad:  # not if nothing that is trained takes part, as in a graph prompt without a graph
            loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.parameters.values(), self.schedule.max_gradient)

    def format_score(self, score: float) -> str:
        """Return a validation as the progress bar shows it."""
        return f"{score:.3f}"

    def _is_finished(self, history: Sequence[float]) -> bool:
        """Tell whether all validations are done, or the last ones were not better."""
        done = len(history) - 1
        return done >= self.schedule.validations or done - int(np.argmax(history)) >= self.schedule.patience

    def _validated(self, state: TrainingState) -> TrainingState:
        history = [*state.history, self.validate()]
        # The first validation, before the training, never counts as the best; of equal ones the last does.
        is_best = history[-1] >= max(history[1:])
        return TrainingState(history, self._copied() if is_best else state.best)

    def _batch(self, step: int) -> list[Example]:
        """Return the examples of a step: a training takes all items in one order, then all in another."""
        size, count = self.schedule.batch_size, len(self.items)
        places = (divmod(position, count) for position in range(step * size, (step + 1) * size))
        return [self.prepare(self.items[order_of(count, self.schedule.seed, epoch)[place]]) for epoch, place in places]

    # --- an unfinished training -----------------------------------------------------------------------------------

    @property
    def _tensors(self) -> dict[str, torch.Tensor]:
        return {**self.parameters, **self.buffers}

    def _copied(self) -> dict[str, Array]:
        return {name: tensor.detach().cpu().numpy().copy() for name, tensor in self._tensors.items()}

    def _keep(self, state: TrainingState, optimizer: torch.optim.Optimizer) -> None:
        """Write the state of the training, the current weights, and the state of the optimizer."""
        if self.output is None:
            return
        arrays = {f"now.{name}": array for name, array in self._copied().items()}
        arrays |= {f"best.{name}": array for name, array in state.best.items()}
        for name, parameter in self.parameters.items():
            arrays |= {f"{part}.{name}": value.cpu().numpy() for part, value in optimizer.state[parameter].items()}
        config = {"identity": self.identity, "schedule": asdict(self.schedule), "history": state.history}
        save_checkpoint(self.output / UNFINISHED, UNFINISHED, config, arrays)

    def _restored(self, optimizer: torch.optim.Optimizer) -> TrainingState | None:
        """Take up an interrupted training. Return None if there is no unfinished one."""
        if self.output is None or not is_unfinished(self.output):
            return None
        folder = self.output / UNFINISHED
        try:
            config, arrays = load_checkpoint(folder, UNFINISHED)
        except ModelLoadError as cause:
            reason = "the unfinished training is damaged. Delete that folder to begin again."
            raise ModelLoadError(reason, folder) from cause
        if config.get("identity") != self.identity or config.get("schedule") != asdict(self.schedule):
            raise InvalidArgumentError(
                f"{folder} holds an unfinished training with other data or settings. Go on with the same ones, "
                "name another output, or delete that folder."
            )
        self._set(arrays, "now.")
        for name, parameter in self.parameters.items():
            if f"step.{name}" in arrays:
                kept = {part: torch.from_numpy(arrays[f"{part}.{name}"].copy()) for part in _OF_ADAM}
                moments = {part: tensor.to(parameter.device) for part, tensor in kept.items() if part != "step"}
                optimizer.state[parameter] = {"step": kept["step"], **moments}  # Adam counts on the CPU
        return TrainingState(config["history"], {name: arrays[f"best.{name}"] for name in self._tensors})

    @torch.no_grad()
    def _set(self, arrays: Mapping[str, Array], prefix: str = "") -> None:
        for name, tensor in self._tensors.items():
            tensor.copy_(torch.from_numpy(arrays[prefix + name]))


def _bar(*, shown: bool) -> rich.progress.Progress:
    """Return a progress bar of the steps, with the last validation next to it."""
    return rich.progress.Progress(
        *rich.progress.Progress.get_default_columns(),
        "validation {task.fields[score]}",
        console=Console(stderr=True),
        disable=not shown,
    )


@contextmanager
def _torch_threads(count: int | None) -> Iterator[None]:
    """Run torch on so many threads, and then on as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@checked_dataclass
class Schedule:
    """How long and how fast a model is trained.

    Attributes:
        num_examples: How many examples are looked at in all, each counted again in every epoch.
        validations: How often the model is validated, after equal shares of the steps.
        patience: After how many validations without a better one the training ends.
        batch_size: How many examples make one step.
        learning_rate: The highest learning rate of Adam: at the first step, or after the steps of `warm_up`.
        seed: The seed of all random numbers.
        warm_up: The share of the steps, the first ones, in which the learning rate rises.
        constant_rate: Whether it stays at its highest, instead of falling in a straight line.
        max_gradient: The longest gradient (L2 norm) that counts as it is. Longer ones are shortened to it.

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
    max_gradient: float = Field(default=1.0, ge=0, allow_inf_nan=False)

    @property
    def steps(self) -> int:
        """The number of steps, at least one for each validation."""
        return max(self.num_examples // self.batch_size, self.validations)

    def first_step(self, validations: int) -> int:
        """Return the first step after so many validations."""
        return validations * self.steps // self.validations


def stream(seed: int, purpose: Literal["split", "weights", "order", "loss"], number: int = 0) -> np.random.Generator:
    """Return random numbers that are independent of the numbers for another purpose or of another number."""
    key = (("split", "weights", "order", "loss").index(purpose), number)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


@lru_cache(maxsize=1)
def order_of(items: int, seed: int, epoch: int) -> list[int]:
    """Return the order in which an epoch looks at items."""
    order: list[int] = stream(seed, "order", epoch).permutation(items).tolist()
    return order


#: The folder inside of the output that keeps an unfinished training, and the method of its checkpoint.
UNFINISHED = "unfinished"

#: The values that Adam keeps of each parameter.
_OF_ADAM = ("step", "exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class TrainingState:
    """The state of a training after its last validation.

    Attributes:
        history: The validations so far.
        best: The weights of the best of them, by name.
    """

    history: list[float]
    best: dict[str, Array]


def is_unfinished(output: Path) -> bool:
    """Tell whether an output keeps an unfinished training."""
    return (output / UNFINISHED / WEIGHTS).exists()


def forget_unfinished(output: Path) -> None:
    """Delete the unfinished training in an output, once it is finished."""
    folder = output / UNFINISHED
    (folder / WEIGHTS).unlink(missing_ok=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
