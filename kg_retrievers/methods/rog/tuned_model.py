"""The base of RoG's two tuned models, the planner and the reader: what is kept of them, and how."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from kg_retrievers.methods.rog.adapted_lm import AdaptedLM, AdapterConfig
from kg_retrievers.training.causal_lm import CausalLM


class TunedModel:
    """A language model with adapters that were trained for one task.

    Args:
        adapted: The language model with its adapters.
        training: What it was trained on, and how well it did; values of JSON.
    """

    #: Its name in checkpoints and on the shell.
    method: ClassVar[str]
    #: The name of the function that trains it.
    trainer: ClassVar[str]
    #: The class of its configuration.
    config_class: ClassVar[type[Any]] = AdapterConfig

    def __init__(self, adapted: AdaptedLM, *, training: Mapping[str, Any] | None = None) -> None:
        """Take the language model."""
        self.adapted = adapted
        self.training = dict(training or {})

    def __repr__(self) -> str:
        """Show the language model."""
        return f"{type(self).__name__}({self.adapted.lm!r})"

    @property
    def fingerprint(self) -> str:
        """32 hexadecimal digits that change with the adapters and the language model."""
        return self.adapted.digest

    def save_pretrained(self, folder: str | Path) -> None:
        """Write the adapters: `model.safetensors`, with the configuration in its metadata, in one rename.

        The language model itself is not written. The folder `adapter` gets a copy for peft.

        Raises:
            InvalidArgumentError: If `folder` is a file, or holds a model of Hugging Face.
            FileWriteError: If the disk is full, or this user may not write there.
        """
        self.adapted.save(Path(folder), self.method, self.training)

    @classmethod
    def from_pretrained(cls, folder: str | Path, llm: str | Path | CausalLM | None = None) -> Self:
        """Read what `save_pretrained` wrote.

        Args:
            folder: The folder.
            llm: The language model of the training, or its name or folder; None to load it under the name it had.

        Raises:
            ModelLoadError: If there is no such model, it is damaged, or its language model cannot be loaded.
            ModelMismatchError: If it is another language model than that of the training.
        """
        adapted, training = AdaptedLM.read(cls.__name__, Path(folder), cls.method, llm)
        return cls(adapted, training=training)
