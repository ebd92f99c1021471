"""Define the base of all trained models.

It holds a configuration, weights, and a check of the index's embeddings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np

from kg_retrievers.core.checkpoint import load_checkpoint, save_checkpoint
from kg_retrievers.errors import InvalidArgumentError, ModelLoadError, ModelMismatchError
from kg_retrievers.graph.cache import Cache
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import GraphIndex
from kg_retrievers.index.graph_search import SAME_VECTOR

#: A text whose vector is kept with the weights, so that other embeddings are found out.
PROBE = "Who directed the film?"


class ModelConfig(Protocol):
    """A dataclass that holds the inputs of a model, and its sizes."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def dimension(self) -> int:
        """The length of the embeddings."""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each weight."""


Config = TypeVar("Config", bound=ModelConfig)


class TrainedModel(ABC, Generic[Config]):
    """A trained model that a retriever queries.

    Args:
        config: The inputs of the model, and its sizes.
        weights: float32 arrays of the shapes in `config.shapes`.
        probe: float32, shape (dimension): the vector of `PROBE` by the embeddings of the training.
        embeddings: The name of the embeddings of the training.
        training: The training data and the results on it, as values of JSON.

    Raises:
        InvalidArgumentError: If a weight is missing, of another shape or not finite, or there is one too many.
    """

    #: The method's name in checkpoints and on the shell.
    method: ClassVar[str]
    #: The name of the function that trains it.
    trainer: ClassVar[str]
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
        arrays = _checked_weights(type(self).__name__, config, {**weights, "probe": probe})
        self.config = config
        self.weights = {name: arrays[name] for name in config.shapes}
        self.probe = arrays["probe"]
        self.embeddings = embeddings
        self.training = dict(training or {})
        self._cache = Cache()

    def __repr__(self) -> str:
        """Show the configuration."""
        return f"{type(self).__name__}({self.config!r})"

    def save_pretrained(self, folder: str | Path) -> None:
        """Write `model.safetensors`, with the configuration in its metadata.

        One rename saves it. See `from_pretrained`.

        Raises:
            InvalidArgumentError: If `folder` holds a model of Hugging Face.
            FileWriteError: If `folder` is a file, or cannot be written.
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
        if not index.dimension:  # an empty graph has no vectors
            return
        self._cache.get("embeddings", (index.embeddings,), lambda: self._compare_vectors(index))

    def _compare_vectors(self, index: GraphIndex) -> None:
        vector = index.embed([PROBE])[0]
        if vector.shape != self.probe.shape or np.linalg.norm(vector - self.probe) > SAME_VECTOR:
            raise ModelMismatchError(
                f"{type(self).__name__}: it was trained with the embeddings {self.embeddings}, whose vectors have "
                f"{len(self.probe)} numbers, but {index!r} has others.",
                hint_python="Index the graph with the former, or train a model with the latter.",
                hint_shell="Index the graph with the former (--embeddings), or train a model with the latter.",
            )


def _checked_weights(who: str, config: ModelConfig, weights: Mapping[str, Array]) -> dict[str, Array]:
    """Return weights and probe as float32, once their names, shapes and values fit."""
    wanted = {**config.shapes, "probe": (config.dimension,)}
    with np.errstate(over="ignore"):  # what is too large becomes infinite
        arrays = {name: np.asarray(array, np.float32) for name, array in weights.items()}
    got = {name: array.shape for name, array in arrays.items()}
    for name in sorted(wanted.keys() | got.keys()):
        if wanted.get(name) != got.get(name):
            raise InvalidArgumentError(
                f"{who}: wanted the weight {name!r} with shape {wanted.get(name)}, but got {got.get(name)}."
            )
    for name in sorted(arrays):
        if not np.isfinite(arrays[name]).all():
            raise InvalidArgumentError(f"{who}: the weight {name!r} holds numbers that are not finite.")
    return arrays
