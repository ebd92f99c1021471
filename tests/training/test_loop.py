"""The training loop: batches, early stopping, learning rates, and going on after an interruption."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from broken_off import DIE_AT, full_disk
from training_task import HELD_OUT, INDEX, LEARNED, interrupted, same

from kg_retrievers.errors import FileWriteError, InvalidArgumentError, ModelLoadError
from kg_retrievers.methods.subgraph_rag.model import TripleScorer
from kg_retrievers.methods.subgraph_rag.training import train_triple_scorer
from kg_retrievers.training.loop import LAST_RATE, UNFINISHED, Schedule, Trainer

SCHEDULE: dict[str, Any] = {
    "num_examples": 40,
    "validations": 5,
    "patience": 5,
    "batch_size": 4,
    "learning_rate": 0.1,
    "seed": 0,
}
ITEMS = list(range(10))


class Toy:
    """Two weights that are drawn to the items; validations are scripted, by default how near they are to 4.5."""

    def __init__(self, script: Sequence[float] | None = None) -> None:
        generator = torch.Generator().manual_seed(0)
        self.parameters = {
            name: torch.randn(shape, generator=generator).requires_grad_() for name, shape in (("a", (3,)), ("b", ()))
        }
        self.script = script
        self.seen: list[dict[str, Any]] = []
        self.batches: list[list[int]] = []

    def loss(self, examples: Sequence[float], rng: np.random.Generator) -> torch.Tensor:
        self.batches.append([int(example) for example in examples])
        noise = float(rng.normal(0, 0.1))
        wanted = torch.tensor(examples) + noise
        return ((self.parameters["a"].sum() + self.parameters["b"] - wanted) ** 2).mean()

    def weights(self) -> dict[str, Any]:
        return {name: parameter.detach().numpy().copy() for name, parameter in self.parameters.items()}

    def validate(self) -> float:
        self.seen.append(self.weights())
        if self.script is not None:
            return self.script[len(self.seen) - 1]
        return -abs(float(self.seen[-1]["a"].sum() + self.seen[-1]["b"]) - 4.5)

    def trainer(self, output: Path | None = None, **arguments: Any) -> Trainer[int, float]:
        schedule = {name: arguments.pop(name, value) for name, value in SCHEDULE.items()}
        return Trainer(
            **{
                "parameters": self.parameters,
                "items": ITEMS,
                "prepare": float,
                "loss": self.loss,
                "validate": self.validate,
                "schedule": Schedule(**schedule),
                "identity": "toy",
                "output": output,
            }
            | arguments
        )


@pytest.mark.parametrize(
    ("script", "patience", "rounds", "best"),
    [
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], 9, 5, 5),
        ([0.1, 0.5, 0.3, 0.4, 0.2, 0.1], 9, 5, 1),
        ([0.1, 0.5, 0.3, 0.4, 0.2, 0.1], 2, 3, 1),
        ([0.1, 0.5, 0.5, 0.5, 0.9, 0.9], 3, 5, 5),  # of equal ones the last counts
        ([0.1, 0.5, 0.5, 0.5, 0.9, 0.9], 2, 3, 3),
        ([0.9, 0.5, 0.6, 0.7, 0.8, 0.9], 1, 1, 1),  # before the training nothing counts
        ([0.9, 0.5, 0.6, 0.7, 0.8, 0.9], 5, 5, 5),
        ([-3.0, -2.0, -4.0, -1.0, -1.5, -9.0], 2, 5, 3),
        ([0.0] * 6, 3, 3, 3),
    ],
)
def test_it_ends_and_restores_the_best_round(script: list[float], patience: int, rounds: int, best: int) -> None:
    toy = Toy(script)
    assert toy.trainer(patience=patience).run() == script[: rounds + 1]
    assert len(toy.seen) == rounds + 1
    assert same(toy.weights(), toy.seen[best])
    assert not any(same(toy.seen[best], other) for place, other in enumerate(toy.seen) if place != best)


def test_each_item_once_an_epoch() -> None:
    """In another order each time, which the seed says, in batches of one size."""
    toy, other = Toy(), Toy()
    toy.trainer().run()
    visited = [item for batch in toy.batches for item in batch]
    assert {len(batch) for batch in toy.batches} == {4}
    epochs = [visited[start : start + 10] for start in range(0, 40, 10)]
    assert all(sorted(epoch) == ITEMS for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 4
    other.trainer(seed=1).run()
    assert [item for batch in other.batches for item in batch] != visited


def test_one_item_and_few_examples() -> None:
    """A round has one step at least."""
    toy = Toy()
    assert len(toy.trainer(items=[3], num_examples=1).run()) == 6
    assert toy.batches == [[3] * 4] * 5


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The learning rates of all steps, as they are taken."""
    taken: list[float] = []

    class Watched(torch.optim.Adam):
        def step(self, *arguments: Any) -> Any:
            taken.append(self.param_groups[0]["lr"])
            return super().step(*arguments)

    monkeypatch.setattr(torch.optim, "Adam", Watched)
    return taken


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("warm_up", [0.0, 0.3, 1.0])
def test_learning_rates(rates: list[float], warm_up: float) -> None:
    """They rise at first and fall in a straight line."""
    Toy().trainer(schedule=Schedule(**SCHEDULE, warm_up=warm_up)).run()
    wanted = [0.1 * max(LAST_RATE, 1 - step / 10) * min(1, (step + 1) / max(1, 10 * warm_up)) for step in range(10)]
    assert rates == pytest.approx(wanted)


def test_torch_has_its_threads_again() -> None:
    """A training runs on one thread; the number is as before even after an error."""
    before, inside = torch.get_num_threads(), list[int]()

    def fail() -> float:
        inside.append(torch.get_num_threads())
        raise KeyboardInterrupt

    torch.set_num_threads(2)
    with pytest.raises(KeyboardInterrupt):
        Toy().trainer(validate=fail).run()
    after = torch.get_num_threads()
    torch.set_num_threads(before)
    assert (inside, after) == ([1], 2)


def test_progress_is_shown_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    Toy().trainer().run()
    assert capsys.readouterr() == ("", "")
    Toy([0.125] * 6).trainer(progress=True).run()
    out, err = capsys.readouterr()
    assert out == ""
    assert "Training" in err
    assert "0.125" in err


@pytest.mark.parametrize(
    ("number", "message"),
    [
        ({"num_examples": 0}, "num_examples must be greater than or equal to 1, but got 0"),
        ({"batch_size": -8}, "batch_size must be greater than or equal to 1, but got -8"),
        ({"learning_rate": float("nan")}, "learning_rate must be less than 1, but got nan"),
        ({"warm_up": 1.5}, "warm_up must be less than or equal to 1, but got 1.5"),
    ],
    ids=str,
)
def test_schedules_out_of_range(number: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        Schedule(**(SCHEDULE | number))


# --- an unfinished training -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "calls"), [("validate", 1), ("validate", 2), ("validate", 4), ("loss", 1), ("loss", 3), ("loss", 9)]
)
def test_going_on(tmp_path: Path, where: str, calls: int) -> None:
    """Interrupted in any round, twice: the weights are those of a training without, bit for bit."""
    whole = Toy()
    expected = whole.trainer().run()
    for _ in range(2):
        toy = Toy()
        with pytest.raises(KeyboardInterrupt):
            toy.trainer(tmp_path, **{where: interrupted(calls, getattr(toy, where))}).run()
        calls = 1
    toy = Toy()
    assert toy.trainer(tmp_path).run() == expected
    assert same(toy.weights(), whole.weights())
    assert (tmp_path / UNFINISHED).is_dir()


def test_the_best_round_is_kept_through_an_interruption(tmp_path: Path) -> None:
    script = [0.1, 0.9, 0.2, 0.3, 0.4, 0.5]
    whole, toy = Toy(script), Toy(script)
    whole.trainer().run()
    with pytest.raises(KeyboardInterrupt):
        toy.trainer(tmp_path, validate=interrupted(4, toy.validate)).run()
    again = Toy(script[4:])
    assert again.trainer(tmp_path).run() == script
    assert same(again.weights(), whole.weights())
    assert same(again.weights(), whole.seen[1])


@pytest.mark.parametrize("patience", [1, 5])
def test_what_is_finished_is_not_gone_on_with(tmp_path: Path, patience: int) -> None:
    """Whether it ended early or not, as when it was interrupted before the model was saved."""
    script = [0.2, 0.3, 0.1, 0.1, 0.1, 0.1]
    first, again = Toy(script), Toy([])
    history = first.trainer(tmp_path, patience=patience).run()
    assert again.trainer(tmp_path, patience=patience).run() == history
    assert same(again.weights(), first.weights())
    assert not again.batches
    assert not again.seen


def unfinished(folder: Path) -> Path:
    """Leave a training in a folder that was interrupted in its third round."""
    toy = Toy()
    with pytest.raises(KeyboardInterrupt):
        toy.trainer(folder, validate=interrupted(3, toy.validate)).run()
    return folder / UNFINISHED


@pytest.mark.parametrize(
    "other", [{"identity": "other"}, *({name: value * 2 or 1} for name, value in SCHEDULE.items())], ids=str
)
def test_another_training_is_refused(tmp_path: Path, other: dict[str, Any]) -> None:
    before = {path.name: path.read_bytes() for path in unfinished(tmp_path).iterdir()}
    with pytest.raises(InvalidArgumentError, match=r"unfinished training with other data or settings\. Go on with"):
        Toy().trainer(tmp_path, **other).run()
    assert {path.name: path.read_bytes() for path in (tmp_path / UNFINISHED).iterdir()} == before


def test_damaged_files(tmp_path: Path) -> None:
    file = unfinished(tmp_path) / "model.safetensors"
    file.write_bytes(b"")
    with pytest.raises(ModelLoadError, match=r"the unfinished training is damaged\. Delete that folder"):
        Toy().trainer(tmp_path).run()
    file.unlink()
    Toy().trainer(tmp_path).run()  # as if there were none


# --- kills and a full disk --------------------------------------------------------------------------------------------


def train_little(output: Path) -> None:
    """Train a scorer on a few questions, in two rounds."""
    train_triple_scorer(INDEX, LEARNED[:6], HELD_OUT[:3], output=output, num_examples=8, validations=2)


KILL_EVERYWHERE = """
import os, sys
from pathlib import Path
import torch
from test_loop import *
torch.set_num_threads(1)  # others would not live through a fork
train_little(Path(sys.argv[1], "whole"))
step, done, found = 0, False, []
while not done:
    step += 1
    folder = Path(sys.argv[1], str(step))
    process = os.fork()
    if not process:
        die_at(step)
        train_little(folder)
        os._exit(0)
    done = os.waitpid(process, 0)[1] == 0
    try:
        TripleScorer.from_pretrained(folder)
        found.append("whole")
    except ModelLoadError:
        found.append("none")
        train_little(folder)
    assert (folder / "model.safetensors").read_bytes() == Path(sys.argv[1], "whole/model.safetensors").read_bytes()
assert found == sorted(found) and {*found} == {"none", "whole"}, found
"""


@pytest.mark.heavy
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_training_that_is_killed_at_any_step_leaves_no_model_or_all_of_it(tmp_path: Path) -> None:
    """And the same call goes on."""
    command = [sys.executable, "-c", DIE_AT + KILL_EVERYWHERE, str(tmp_path)]
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("room", [0, 1_000, 700_000])
def test_a_training_tells_a_full_disk_and_goes_on(tmp_path: Path, room: int) -> None:
    with full_disk(room), pytest.raises(FileWriteError, match=r"cannot be written: .*Make room"):
        train_little(tmp_path)
    with pytest.raises(ModelLoadError, match="no trained model is here"):
        TripleScorer.from_pretrained(tmp_path)
    train_little(tmp_path)
    assert TripleScorer.from_pretrained(tmp_path).weights
