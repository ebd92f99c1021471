"""Training with torch, whatever the model: rounds, early stopping, going on after an interruption (extra `train`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Generic, Literal, TypeVar

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from kg_retrievers.core.checkpoint import CONFIG, WEIGHTS, load_checkpoint, save_checkpoint
from kg_retrievers.errors import InvalidArgumentError, MissingExtraError, ModelLoadError
from kg_retrievers.graph.columns import Array

try:
    import torch
except ImportError as cause:
    raise MissingExtraError("Training a model", "train") from cause

#: The folder inside of the output that keeps an unfinished training, and the method of its checkpoint.
UNFINISHED = "unfinished"

#: How many examples are prepared ahead, on other threads.
AHEAD, THREADS = 16, 2

#: The learning rate falls to this share of the first one, in a straight line.
LAST_RATE = 0.05

#: The longest gradient (L2 norm) that counts as it is; longer ones are shortened to it.
MAX_GRADIENT = 1.0

Item = TypeVar("Item")
Example = TypeVar("Example")


@dataclass(frozen=True)
class Schedule:
    """How long and how fast is trained.

    Attributes:
        visits: How many examples are looked at in all, the same one in each epoch.
        validations: Into how many rounds the visits are split; after each the model is validated.
        patience: After how many rounds without a better validation it ends.
        batch_size: How many examples make one step.
        learning_rate: That of Adam at its highest: at the first step, or after those of `warm_up`.
        seed: Of all that is drawn.
        warm_up: In which share of the steps, the first ones, the learning rate rises to what it is.

    Raises:
        InvalidArgumentError: If a number is out of range.
    """

    visits: int
    validations: int
    patience: int
    batch_size: int
    learning_rate: float
    seed: int
    warm_up: float = 0.0

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("visits", "validations", "patience", "batch_size", "seed"):
            value, least = getattr(self, name), int(name != "seed")
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise InvalidArgumentError(
                    f"Schedule: {name} must be a whole number, {least} or more, but got {value!r}."
                )
        if not isinstance(self.learning_rate, float) or not 0 < self.learning_rate < 1:
            raise InvalidArgumentError(
                f"Schedule: learning_rate must be above 0 and below 1, but got {self.learning_rate!r}."
            )


@dataclass
class Trainer(Generic[Item, Example]):
    """Trains parameters in place, and leaves them as they were after the best round, of equal ones the last.

    The same arguments give the same parameters, also where a training goes on after an interruption, on the same
    machine. Torch runs on one thread, since small steps are slower on several.

    A class of this one may have another `optimizer`, `rate`, `step` and word for a validation.

    Attributes:
        parameters: By name; they require gradients.
        items: What is trained on.
        prepare: Makes an example of an item; called on other threads, ahead of the training.
        loss: The loss of a batch of examples, and what it draws from.
        validate: How good the parameters are, higher is better.
        schedule: How long and how fast.
        identity: Changes with everything that the result depends on; an unfinished training of another is refused.
        output: A folder that keeps each round in `unfinished`, to go on from there; None to keep nothing.
        progress: Whether to show a progress bar on stderr.
        buffers: What the training changes without gradients, by names other than those of the parameters.
        threads: On how many threads torch runs; None for as many as it does anyway.
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
    _best: dict[str, Array] = field(default_factory=dict, init=False)

    def run(self) -> list[float]:
        """Train, and return the validation after each round; the first is that before the training.

        Raises:
            InvalidArgumentError: If the output holds an unfinished training of something else.
            ModelLoadError: If what it holds is damaged.
        """
        with _torch_threads(self.threads), _threads() as threads:
            optimizer = self.optimizer()
            bar = Progress(
                TextColumn("Training"),
                BarColumn(),
                TaskProgressColumn(),
                TextColumn("validation {task.fields[score]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                disable=not self.progress,
            )
            with bar:
                task = bar.add_task("", total=self._steps, score="")
                history = self._restore(optimizer)
                if not history:
                    history, self._best = [self.validate()], self._copied()
                bar.update(task, completed=self._first_step(len(history) - 1), score=self.told(history[-1]))
                while len(history) <= self.schedule.validations and not self._is_stuck(history):
                    done = len(history) - 1
                    for step, examples in self._batches(threads, self._first_step(done), self._first_step(done + 1)):
                        for group in optimizer.param_groups:
                            group["lr"] = self.schedule.learning_rate * self.rate(step)
                        optimizer.zero_grad()
                        self.step(step, examples)
                        optimizer.step()
                        bar.advance(task)
                    history.append(self.validate())
                    if history[-1] >= max(history[1:]):  # of equal ones the last, and never that before the training
                        self._best = self._copied()
                    bar.update(task, score=self.told(history[-1]))
                    self._keep(optimizer, history)
        with torch.no_grad():
            for name, best in self._best.items():
                self._kept[name].copy_(torch.from_numpy(best))
        return history

    def optimizer(self) -> torch.optim.Optimizer:
        """Return what changes the parameters, as Adam does: with `step`, `exp_avg` and `exp_avg_sq` for its state."""
        return torch.optim.Adam(self.parameters.values(), lr=self.schedule.learning_rate)

    def rate(self, step: int) -> float:
        """Return which share of the highest learning rate a step has, the first being 0."""
        share = max(LAST_RATE, 1 - step / self._steps)
        return share * min(1.0, (step + 1) / max(1.0, self.schedule.warm_up * self._steps))

    def step(self, step: int, examples: Sequence[Example]) -> None:
        """Leave the gradients of some examples with the parameters."""
        loss = self.loss(examples, stream(self.schedule.seed, "loss", step))
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.parameters.values(), MAX_GRADIENT)

    def told(self, score: float) -> str:
        """Return what the progress bar says of a validation."""
        return f"{score:.3f}"

    @property
    def _kept(self) -> dict[str, torch.Tensor]:
        return {**self.parameters, **self.buffers}

    @property
    def _steps(self) -> int:
        return max(self.schedule.visits // self.schedule.batch_size, self.schedule.validations)

    def _first_step(self, finished: int) -> int:
        return finished * self._steps // self.schedule.validations

    def _is_stuck(self, history: Sequence[float]) -> bool:
        return len(history) - 1 - int(np.argmax(history)) >= self.schedule.patience

    def _batches(self, threads: ThreadPoolExecutor, first: int, last: int) -> Iterator[tuple[int, list[Example]]]:
        """Yield the batches of some steps, while those that follow are prepared."""
        size = self.schedule.batch_size
        visits = iter(range(first * size, last * size))
        waiting: deque[Future[Example]] = deque()
        for step in range(first, last):
            while len(waiting) < size + AHEAD and (visit := next(visits, None)) is not None:
                waiting.append(threads.submit(self.prepare, self.items[self._place(visit)]))
            yield step, [waiting.popleft().result() for _ in range(size)]

    def _place(self, visit: int) -> int:
        """Return which item a visit is of: all of them in one order, then in another."""
        epoch, place = divmod(visit, len(self.items))
        if epoch not in self._orders:
            self._orders = {epoch: stream(self.schedule.seed, "order", epoch).permutation(len(self.items))}
        return int(self._orders[epoch][place])

    def _copied(self) -> dict[str, Array]:
        return {name: tensor.detach().cpu().numpy().copy() for name, tensor in self._kept.items()}

    # --- an unfinished training -----------------------------------------------------------------------------------

    def _keep(self, optimizer: torch.optim.Optimizer, history: Sequence[float]) -> None:
        if self.output is None:
            return
        weights = {f"now.{name}": array for name, array in self._copied().items()}
        weights |= {f"best.{name}": array for name, array in self._best.items()}
        for name, parameter in self.parameters.items():
            weights |= {f"{part}.{name}": value.cpu().numpy() for part, value in optimizer.state[parameter].items()}
        config = {"identity": self.identity, "schedule": asdict(self.schedule), "history": list(history)}
        save_checkpoint(self.output / UNFINISHED, UNFINISHED, config, weights)

    def _restore(self, optimizer: torch.optim.Optimizer) -> list[float]:
        """Take up an unfinished training, if there is one; return its validations."""
        if self.output is None or not (self.output / UNFINISHED / CONFIG).exists():
            return []
        folder = self.output / UNFINISHED
        try:
            config, weights = load_checkpoint(folder, UNFINISHED)
        except ModelLoadError as cause:
            advice = "the unfinished training is damaged. Delete that folder to begin anew."
            raise ModelLoadError(advice, folder) from cause
        if config.get("identity") != self.identity or config.get("schedule") != asdict(self.schedule):
            raise InvalidArgumentError(
                f"{folder} holds an unfinished training with other data or settings. Go on with the same ones, name "
                "another output, or delete that folder."
            )
        try:
            with torch.no_grad():
                for name, tensor in self._kept.items():
                    tensor.copy_(torch.from_numpy(weights[f"now.{name}"]))
                for name, parameter in self.parameters.items():
                    if f"step.{name}" in weights:
                        state = {part: weights[f"{part}.{name}"].copy() for part in ("exp_avg", "exp_avg_sq")}
                        optimizer.state[parameter] = {
                            "step": torch.from_numpy(weights[f"step.{name}"].copy()),
                            **{part: torch.from_numpy(value).to(parameter.device) for part, value in state.items()},
                        }
            self._best = {name: weights[f"best.{name}"] for name in self._kept}
            return [float(score) for score in config["history"]]
        except (KeyError, TypeError, ValueError, RuntimeError) as cause:
            raise ModelLoadError(f"the unfinished training is damaged: {cause}. Delete that folder.", folder) from cause


def stream(seed: int, purpose: Literal["split", "weights", "order", "loss"], number: int = 0) -> np.random.Generator:
    """Return random numbers that are independent of those for another purpose or of another number."""
    key = (("split", "weights", "order", "loss").index(purpose), number)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def forget_unfinished(output: Path) -> None:
    """Delete the unfinished training in an output, once it is finished."""
    folder = output / UNFINISHED
    for name in (CONFIG, WEIGHTS):
        (folder / name).unlink(missing_ok=True)
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


@contextmanager
def _threads() -> Iterator[ThreadPoolExecutor]:
    """Give threads, and do not wait for what they have not begun."""
    threads = ThreadPoolExecutor(THREADS)
    try:
        yield threads
    finally:
        threads.shutdown(cancel_futures=True)


@contextmanager
def _torch_threads(count: int | None) -> Iterator[None]:
    """Run torch on so many threads, and then on as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
