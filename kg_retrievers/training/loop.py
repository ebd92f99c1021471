"""The loop of a training: its schedule, its optimizers, and what it keeps on disk so that it can go on."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import rich.progress
from pydantic import Field
from rich.console import Console

from kg_retrievers.core.checked import checked_dataclass
from kg_retrievers.core.checkpoint import WEIGHTS, load_checkpoint, save_checkpoint
from kg_retrievers.errors import InvalidArgumentError, MissingExtraError, ModelLoadError
from kg_retrievers.graph.columns import Array

try:
    import torch
    from torch.optim.lr_scheduler import LambdaLR
except ImportError as cause:
    raise MissingExtraError("Training a model", "train") from cause

#: How many examples are prepared ahead, and on how many other threads.
AHEAD, THREADS = 16, 2

#: The share of the first learning rate that is left at the end, after a fall in a straight line.
LAST_RATE = 0.05

#: The longest gradient (L2 norm) that counts as it is; longer ones are shortened to it.
MAX_GRADIENT = 1.0

Item = TypeVar("Item")
Example = TypeVar("Example")


@dataclass
class Trainer(Generic[Item, Example]):
    """Trains parameters in place, and leaves them as they were at the best validation, of equal ones the last.

    The same arguments give the same parameters on the same machine, also where a training goes on after an
    interruption. Torch runs on one thread, since small steps are slower on several.

    A subclass may override `optimizer`, `rate`, `step` and `format_score`.

    Attributes:
        parameters: What is trained, by name; the tensors require gradients.
        items: What the model is trained on.
        prepare: Makes an example of an item; called on other threads, ahead of the training.
        loss: Returns the loss of a batch of examples; the second argument is what it draws from.
        validate: Returns how good the parameters are, higher is better.
        schedule: How long and how fast the model is trained.
        identity: Changes with everything that the result depends on; an unfinished training of another is refused.
        output: A folder that keeps the training in `unfinished` after each validation, to go on from there; None to
            keep nothing.
        progress: Whether to show a progress bar on stderr.
        buffers: What the training changes without gradients, by names other than those of the parameters.
        threads: The number of threads that torch runs on; None to leave it as it is.
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

    _orders: dict[int, Array] = field(default_factory=dict, init=False)

    def run(self) -> list[float]:
        """Train, and return all validations; the first is the one before the training.

        Raises:
            InvalidArgumentError: If the output holds an unfinished training of something else.
            ModelLoadError: If the unfinished training in the output is damaged.
        """
        with _torch_threads(self.threads), _pool() as pool, _Bar(self.schedule.steps, shown=self.progress) as bar:
            optimizer = self.optimizer()
            state = self._restored(optimizer) or TrainingState([self.validate()], self._copied())
            begin = self.schedule.first_step(len(state.history) - 1)
            scheduler = self._scheduler(optimizer, begin)
            bar.show(begin, self.format_score(state.history[-1]))
            while not self._is_finished(state.history):
                end = self.schedule.first_step(len(state.history))
                for step, examples in self._batches(pool, begin, end):
                    optimizer.zero_grad()
                    self.step(step, examples)
                    optimizer.step()
                    scheduler.step()
                    bar.advance()
                begin, state = end, self._validated(state)
                bar.show(end, self.format_score(state.history[-1]))
                self._keep(state, optimizer)
        with torch.no_grad():
            for name, best in state.best.items():
                self._tensors[name].copy_(torch.from_numpy(best))
        return state.history

    def optimizer(self) -> torch.optim.Optimizer:
        """Return what changes the parameters: Adam, or one with its state (`step`, `exp_avg` and `exp_avg_sq`)."""
        return torch.optim.Adam(self.parameters.values(), lr=self.schedule.learning_rate)

    def rate(self, step: int) -> float:
        """Return the learning rate of a step, the first being 0, as a share of the highest one."""
        steps = self.schedule.steps
        share = 1.0 if self.schedule.constant_rate else max(LAST_RATE, 1 - step / steps)
        return share * min(1.0, (step + 1) / max(1.0, self.schedule.warm_up * steps))

    def step(self, step: int, examples: Sequence[Example]) -> None:
        """Compute the gradients of some examples."""
        loss = self.loss(examples, stream(self.schedule.seed, "loss", step))
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.parameters.values(), MAX_GRADIENT)

    def format_score(self, score: float) -> str:
        """Return a validation as the progress bar shows it."""
        return f"{score:.3f}"

    def _scheduler(self, optimizer: torch.optim.Optimizer, step: int) -> LambdaLR:
        """Return what sets the learning rate of each step from this one on.

        Torch's chained schedulers compute each rate from the last one, so that the bits depend on where a training
        began; this one computes it from the step alone.
        """
        for group in optimizer.param_groups:
            group["initial_lr"] = self.schedule.learning_rate
        return LambdaLR(optimizer, self.rate, last_epoch=step - 1)

    def _is_finished(self, history: Sequence[float]) -> bool:
        """Tell whether all validations are done, or the last ones were not better."""
        done = len(history) - 1
        return done >= self.schedule.validations or done - int(np.argmax(history)) >= self.schedule.patience

    def _validated(self, state: TrainingState) -> TrainingState:
        history = [*state.history, self.validate()]
        # The first validation, before the training, never counts as the best; of equal ones the last does.
        is_best = history[-1] >= max(history[1:])
        return TrainingState(history, self._copied() if is_best else state.best)

    def _batches(self, pool: ThreadPoolExecutor, first: int, last: int) -> Iterator[tuple[int, list[Example]]]:
        """Yield the batches of some steps, while the next ones are prepared."""
        size = self.schedule.batch_size
        positions = iter(range(first * size, last * size))
        waiting: deque[Future[Example]] = deque()
        for step in range(first, last):
            while len(waiting) < size + AHEAD and (position := next(positions, None)) is not None:
                waiting.append(pool.submit(self.prepare, self.items[self._item_at(position)]))
            yield step, [waiting.popleft().result() for _ in range(size)]

    def _item_at(self, position: int) -> int:
        """Return the item at a position of the training: all items in one order, then all in another."""
        epoch, position = divmod(position, len(self.items))
        if epoch not in self._orders:
            self._orders = {epoch: order_of(len(self.items), self.schedule.seed, epoch)}
        return int(self._orders[epoch][position])

    # --- an unfinished training -----------------------------------------------------------------------------------

    @property
    def _tensors(self) -> dict[str, torch.Tensor]:
        return {**self.parameters, **self.buffers}

    def _copied(self) -> dict[str, Array]:
        return {name: tensor.detach().cpu().numpy().copy() for name, tensor in self._tensors.items()}

    def _keep(self, state: TrainingState, optimizer: torch.optim.Optimizer) -> None:
        if self.output is not None:
            unfinished = UnfinishedTraining(self.output, self.identity, self.schedule)
            unfinished.keep(state, self._copied(), self.parameters, optimizer)

    def _restored(self, optimizer: torch.optim.Optimizer) -> TrainingState | None:
        if self.output is None:
            return None
        unfinished = UnfinishedTraining(self.output, self.identity, self.schedule)
        return unfinished.restore(self._tensors, self.parameters, optimizer)


class _Bar:
    """A progress bar of the steps, with the last validation beside it."""

    def __init__(self, steps: int, *, shown: bool) -> None:
        self._bar = rich.progress.Progress(
            rich.progress.TextColumn("Training"),
            rich.progress.BarColumn(),
            rich.progress.TaskProgressColumn(),
            rich.progress.TextColumn("validation {task.fields[score]}"),
            rich.progress.TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not shown,
        )
        self._task = self._bar.add_task("", total=steps, score="")

    def __enter__(self) -> _Bar:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def show(self, step: int, score: str) -> None:
        self._bar.update(self._task, completed=step, score=score)

    def advance(self) -> None:
        self._bar.advance(self._task)


@contextmanager
def _pool() -> Iterator[ThreadPoolExecutor]:
    """Yield threads, and do not wait for what they have not begun."""
    pool = ThreadPoolExecutor(THREADS)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


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


#: The folder inside of the output that keeps an unfinished training, and the method of its checkpoint.
UNFINISHED = "unfinished"

#: What Adam keeps of each parameter, beside the number of steps.
_MOMENTS = ("exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class TrainingState:
    """The state of a training after its last validation.

    Attributes:
        history: The validations so far.
        best: The weights of the best of them, by name.
    """

    history: list[float]
    best: dict[str, Array]


@dataclass(frozen=True)
class UnfinishedTraining:
    """Keeps a training after each validation, and takes it up again.

    Args:
        output: The folder for the model; the training is kept in a folder inside of it.
        identity: Changes with everything that the result depends on; a training with another one is refused.
        schedule: How long and how fast the model is trained; the same.
    """

    output: Path
    identity: str
    schedule: Schedule

    @property
    def folder(self) -> Path:
        """Where the training is kept."""
        return self.output / UNFINISHED

    def keep(
        self,
        state: TrainingState,
        weights: Mapping[str, Array],
        parameters: Mapping[str, torch.Tensor],
        optimizer: torch.optim.Optimizer,
    ) -> None:
        """Write the state of the training, the current weights, and the state of the optimizer."""
        arrays = {f"now.{name}": array for name, array in weights.items()}
        arrays |= {f"best.{name}": array for name, array in state.best.items()}
        for name, parameter in parameters.items():
            moments = optimizer.state[parameter]
            arrays |= {f"{part}.{name}": value.cpu().numpy() for part, value in moments.items()}
        config = {"identity": self.identity, "schedule": asdict(self.schedule), "history": state.history}
        save_checkpoint(self.folder, UNFINISHED, config, arrays)

    def restore(
        self,
        tensors: Mapping[str, torch.Tensor],
        parameters: Mapping[str, torch.Tensor],
        optimizer: torch.optim.Optimizer,
    ) -> TrainingState | None:
        """Take up the training where it was interrupted.

        Args:
            tensors: What is trained, parameters and buffers; they are overwritten.
            parameters: The parameters among them, whose state the optimizer gets.
            optimizer: The optimizer.

        Returns:
            Its state; None if there is no unfinished training.

        Raises:
            InvalidArgumentError: If the unfinished training is another one.
            ModelLoadError: If it is damaged.
        """
        if not is_unfinished(self.output):
            return None
        config, arrays = self._load()
        if config.get("identity") != self.identity or config.get("schedule") != asdict(self.schedule):
            raise InvalidArgumentError(
                f"{self.folder} holds an unfinished training with other data or settings. Go on with the same ones, "
                "name another output, or delete that folder."
            )
        try:
            with torch.no_grad():
                for name, tensor in tensors.items():
                    tensor.copy_(torch.from_numpy(arrays[f"now.{name}"]))
            for name, parameter in parameters.items():
                if f"step.{name}" in arrays:
                    optimizer.state[parameter] = _optimizer_state(arrays, name, parameter.device)
            best = {name: arrays[f"best.{name}"] for name in tensors}
            return TrainingState([float(score) for score in config["history"]], best)
        except (KeyError, TypeError, ValueError, RuntimeError) as cause:
            raise ModelLoadError(
                f"the unfinished training is damaged: {cause}. Delete that folder.", self.folder
            ) from cause

    def _load(self) -> tuple[dict[str, Any], dict[str, Array]]:
        try:
            return load_checkpoint(self.folder, UNFINISHED)
        except ModelLoadError as cause:
            advice = "the unfinished training is damaged. Delete that folder to begin anew."
            raise ModelLoadError(advice, self.folder) from cause


def is_unfinished(output: Path) -> bool:
    """Tell whether an output keeps an unfinished training."""
    return (output / UNFINISHED / WEIGHTS).exists()


def forget_unfinished(output: Path) -> None:
    """Delete the unfinished training in an output, once it is finished."""
    folder = output / UNFINISHED
    (folder / WEIGHTS).unlink(missing_ok=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _optimizer_state(arrays: Mapping[str, Array], name: str, device: torch.device) -> dict[str, torch.Tensor]:
    """Return what Adam keeps of a parameter; it counts the steps on the CPU."""
    moments = {part: torch.from_numpy(arrays[f"{part}.{name}"].copy()).to(device) for part in _MOMENTS}
    return {"step": torch.from_numpy(arrays[f"step.{name}"].copy()), **moments}


#: The betas of AdamW, as in the code published with G-Retriever.
BETAS = (0.9, 0.95)


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
