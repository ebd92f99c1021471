"""What all trained models share: a configuration, weights, and what tells whether an index has the right embeddings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np

from kg_retrievers.core.checkpoint import load_checkpoint, save_checkpoint
from kg_retrievers.errors import InvalidArgumentError, ModelLoadError, ModelMismatchError
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import GraphIndex

#: A text whose vector is kept with the weights, to tell other embeddings.
PROBE = "Who directed the film?"

#: How far vectors of the same embeddings may be apart, for other machines and batches round otherwise.
SAME_VECTOR = 0.05


class ModelConfig(Protocol):
    """A dataclass of what a model looks at, and its sizes."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def dimension(self) -> int:
        """The length of the embeddings."""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each weight."""


Config = TypeVar("Config", bound=ModelConfig)


class TrainedModel(ABC, Generic[Config]):
    """A trained model; a retriever asks it.

    Args:
        config: What it looks at.
        weights: float32 arrays, as `config.shapes` says.
        probe: float32, shape (dimension): the vector of `PROBE` by the embeddings that it was trained with.
        embeddings: What these are called.
        training: What it was trained on, and how well it did; values of JSON.

    Raises:
        InvalidArgumentError: If a weight is missing, of another shape or not finite, or there is one too many.
    """

    #: The method's name in checkpoints and on the shell.
    method: ClassVar[str]
    #: The class of its configuration.
    config_class: ClassVar[type[Any]]

    def __init__(
        self,
        config: Config,
        weights: Mapping[str, Array],
        *,
        probe: Array,
        embeddings: str,
        training: Mapping[str, Any] | None = None,
    ) -> None:
        """Check the weights."""
        who = type(self).__name__
        wanted = {**config.shapes, "probe": (config.dimension,)}
        with np.errstate(over="ignore"):  # what is too large is not finite then
            arrays = {name: np.asarray(array, np.float32) for name, array in {**weights, "probe": probe}.items()}
        got = {name: array.shape for name, array in arrays.items()}
        if wrong := sorted(name for name in wanted.keys() | got.keys() if wanted.get(name) != got.get(name)):
            name = wrong[0]
            raise InvalidArgumentError(
                f"{who}: wanted the weight {name!r} with shape {wanted.get(name)}, but got {got.get(name)}."
            )
        if strange := sorted(name for name, array in arrays.items() if not np.isfinite(array).all()):
            raise InvalidArgumentError(f"{who}: the weight {strange[0]!r} holds numbers that are not finite.")
        self.config = config
        self.weights = {name: arrays[name] for name in config.shapes}
        self.probe = arrays["probe"]
        self.embeddings = embeddings
        self.training = dict(training or {})

    def __repr__(self) -> str:
        """The configuration."""
        return f"{type(self).__name__}({self.config!r})"

    def save_pretrained(self, folder: str | Path) -> None:
        """Write `config.json` and `model.safetensors`; see `from_pretrained`.

        Raises:
            InvalidArgumentError: If `folder` is a file.
        """
        config = {"embeddings": self.embeddings, **asdict(self.config), "training": self.training}
        save_checkpoint(folder, self.method, config, {**self.weights, "probe": self.probe})

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Self:
        """Read what `save_pretrained` wrote.

        Raises:
            ModelLoadError: If there is no model of this method, or it is damaged.
        """
        config, weights = load_checkpoint(folder, cls.method)
        try:
            known = {field.name: config[field.name] for field in fields(cls.config_class)}
            return cls(
                cls.config_class(**known),
                {name: array for name, array in weights.items() if name != "probe"},
                probe=weights["probe"],
                embeddings=str(config["embeddings"]),
                training=config["training"],
            )
        except (KeyError, TypeError, ValueError) as cause:
            raise ModelLoadError(
                f"config and weights are not those of a {cls.method} model: {cause}", folder
            ) from cause

    @abstractmethod
    def on(self, index: GraphIndex) -> Any:
        """Return the model ready for the questions to a graph.

        Raises:
            ModelMismatchError: If the index has other embeddings than those the model was trained with.
        """

    def check_embeddings(self, index: GraphIndex) -> None:
        """Check that an index has the embeddings that the model was trained with.

        Raises:
            ModelMismatchError: If not.
        """
        vector = index.embed([PROBE])[0] if index.dimension else self.probe  # none where the graph is empty
        if vector.shape != self.probe.shape or np.linalg.norm(vector - self.probe) > SAME_VECTOR:
            raise ModelMismatchError(
                f"{type(self).__name__}: it was trained with the embeddings {self.embeddings}, whose vectors have "
                f"{len(self.probe)} numbers, but {index!r} has others. Index the graph with the former, or train a "
                "model with the latter."
            )
