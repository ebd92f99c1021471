"""Presets of trainings: named settings, as those of a paper, that arguments given by hand overrule."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.index import GraphIndex, embedding_name

_LOGGER = logging.getLogger(__name__)

Parameters = ParamSpec("Parameters")
Trained = TypeVar("Trained")


def takes_presets(
    presets: Mapping[str, Mapping[str, Any]],
) -> Callable[[Callable[Parameters, Trained]], Callable[Parameters, Trained]]:
    """Let a training take the settings of its `preset` where they are not given by hand.

    Args:
        presets: The arguments of each preset, by its name.

    Raises:
        InvalidArgumentError: From the training, if there is no such preset.

    Example:
        >>> @takes_presets({"paper": {"learning_rate": 1e-3}})
        ... def train(*, learning_rate=5e-3, preset=None):
        ...     return learning_rate
        >>> train(), train(preset="paper"), train(preset="paper", learning_rate=0.1)
        (0.005, 0.001, 0.1)
    """

    def decorated(train: Callable[Parameters, Trained]) -> Callable[Parameters, Trained]:
        @wraps(train)
        def with_preset(*args: Parameters.args, **given: Parameters.kwargs) -> Trained:
            preset: Any = given.get("preset")
            if preset is None:
                return train(*args, **given)
            if preset not in presets:
                raise InvalidArgumentError(
                    f"{train.__name__}: there is no preset {preset!r:.100}; it has {', '.join(presets)}."
                )
            filled: Any = {**presets[preset], **given}
            return train(*args, **filled)

        return with_preset

    return decorated


def tell_other_embeddings(who: str, index: GraphIndex, wanted: str) -> None:
    """Warn where an index has other embeddings than those that a preset states."""
    if wanted not in (name := embedding_name(index.embeddings)):
        _LOGGER.warning("%s: the preset's embeddings are %s, but the index has %s.", who, wanted, name)
