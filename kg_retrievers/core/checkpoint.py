"""Trained models on disk: a folder with the weights, `model.safetensors`, and what belongs to them, `config.json`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from kg_retrievers.errors import InvalidArgumentError, ModelLoadError
from kg_retrievers.graph.columns import Array

#: Raised by one with every change of the layout; a folder of a later version is refused.
FORMAT_VERSION = 1

CONFIG, WEIGHTS = "config.json", "model.safetensors"

#: What `save_checkpoint` itself writes into the config.
_OWN_KEYS = ("format_version", "library_version", "method", "weights")


def save_checkpoint(folder: str | Path, method: str, config: Mapping[str, Any], weights: Mapping[str, Array]) -> None:
    """Write a trained model to a folder, in place of an earlier one there.

    Each file is replaced in one step, the config last. It holds a digest of the weights, so that files of two models,
    as after an interruption between the two steps, are never loaded together. Other files in the folder stay.

    Args:
        folder: The folder; it is made where it is missing.
        method: Whose model it is, as the command line calls the method.
        config: What else is needed to use the model: values of JSON, no NaN or infinity.
        weights: Arrays of any shape, by name. They keep their type: bool, or integers and floats of up to 64 bits.

    Raises:
        InvalidArgumentError: If the config is not JSON or has a key that is written here, the weights are no such
            arrays, or there is a file in place of the folder, or a model of Hugging Face in it.
    """
    folder = Path(folder)
    if taken := [key for key in _OWN_KEYS if key in config]:
        raise InvalidArgumentError(f"save_checkpoint: it writes {taken} into the config itself. Rename them.")
    try:
        # Of an array in another order, safetensors would save the elements as they lie in memory.
        data = save({name: np.asarray(array, order="C") for name, array in weights.items()})
    except SafetensorError as cause:
        raise InvalidArgumentError(
            f"save_checkpoint: wanted weights that are arrays of numbers, but {cause}"
        ) from cause
    own = dict(zip(_OWN_KEYS, (FORMAT_VERSION, version("kg-retrievers"), method, _digest(data)), strict=True))
    try:
        text = json.dumps({**own, **config}, indent=2, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as cause:
        raise InvalidArgumentError(f"save_checkpoint: wanted a config of JSON values, but {cause}.") from cause
    check_own_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as cause:
        raise InvalidArgumentError(f"save_checkpoint: {folder} is a file, or inside of one. Name a folder.") from cause
    _replace(folder / WEIGHTS, data)
    _replace(folder / CONFIG, text)


def check_own_folder(folder: Path) -> None:
    """Check that no model of Hugging Face is written over.

    Raises:
        InvalidArgumentError: If the folder holds the config of one.
    """
    if "model_type" in read_config(folder):
        raise InvalidArgumentError(
            f"save_checkpoint: {folder} holds a model of Hugging Face, which would be lost. Name another folder."
        )


def read_config(folder: Path) -> dict[str, Any]:
    """Return the config in a folder, of whatever model it is; an empty one where there is none to be read."""
    try:
        config = json.loads((folder / CONFIG).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return config if isinstance(config, dict) else {}


def load_checkpoint(folder: str | Path, method: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return config and weights as `save_checkpoint` was given them.

    Args:
        folder: The folder.
        method: Whose model is wanted.

    Raises:
        ModelLoadError: If there is no such folder, a file is missing or damaged, the two do not belong together, or
            the model is one of another method or was saved by a later version of this package.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     save_checkpoint(folder, "subgraph-rag", {"rounds": 2}, {"bias": np.zeros(1, np.float32)})
        ...     load_checkpoint(folder, "subgraph-rag")
        ({'rounds': 2}, {'bias': array([0.], dtype=float32)})
    """
    folder = Path(folder)
    train = f"kg-retrievers train {method} --graph ... --questions ... --output {folder}"
    again = f"Copy the whole folder again, or train the model: {train}"
    if not folder.is_dir():
        what = "a file, but no folder" if folder.exists() else "no such folder"
        raise ModelLoadError(f"{what}; no model is saved there. Train it: {train}", folder)
    try:
        config = json.loads(_read(folder / CONFIG, again))
    except (ValueError, RecursionError) as cause:
        raise ModelLoadError(f"the config is no valid JSON. {again}", folder / CONFIG) from cause
    if not isinstance(config, dict) or not isinstance(config.get("format_version"), int):
        raise ModelLoadError(f"not the config of a model of this package. Train one: {train}", folder / CONFIG)
    saved_as, by, whose, digest = (config.pop(key, None) for key in _OWN_KEYS)
    if saved_as > FORMAT_VERSION:
        raise ModelLoadError(
            f"saved in format {saved_as} by kg-retrievers {by!s:.20}, this one reads {FORMAT_VERSION}. "
            "Upgrade it: pip install --upgrade kg-retrievers",
            folder / CONFIG,
        )
    if whose != method:
        raise ModelLoadError(f"holds a model of {whose!r:.50}, wanted one of {method!r}. Train it: {train}", folder)
    data = _read(folder / WEIGHTS, again)
    if _digest(data) != digest:
        raise ModelLoadError(f"the weights are damaged, or not those of {CONFIG}. {again}", folder / WEIGHTS)
    try:
        return config, load(data)
    except (SafetensorError, KeyError, ValueError) as cause:
        raise ModelLoadError(
            f"the weights are no arrays that safetensors and numpy can read. Train the model: {train}", folder / WEIGHTS
        ) from cause


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _read(path: Path, advice: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as cause:
        raise ModelLoadError(f"cannot be read ({cause.strerror}). {advice}", path) from cause


def _replace(path: Path, data: bytes) -> None:
    """Write a file so that a reader finds the old one or the new one, never a part."""
    written = path.with_name(f"{path.name}.{uuid4().hex}.tmp")
    try:
        with open(written, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(written, path)
    except BaseException:
        written.unlink(missing_ok=True)
        raise
