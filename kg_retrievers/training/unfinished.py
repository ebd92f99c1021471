"""An unfinished training on disk: what it needs to go on, bit for bit as if it had not been interrupted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from kg_retrievers.core.checkpoint import WEIGHTS, load_checkpoint, save_checkpoint
from kg_retrievers.errors import InvalidArgumentError, ModelLoadError
from kg_retrievers.graph.columns import Array
from kg_retrievers.training.schedule import Schedule

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
