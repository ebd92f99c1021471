"""Save trained models to disk.

A model is one file in a folder, `model.safetensors`, with the configuration in its metadata.

One rename saves it.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from kg_retrievers.errors import Hints, InvalidArgumentError, ModelLoadError
from kg_retrievers.file_writing import raise_write_errors, remove_unfinished, write_file
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.storage.parts import folder_lock

#: Every change of the layout raises it by one. A model of a later layout is refused.
FORMAT_VERSION = 2

WEIGHTS = "model.safetensors"

#: The key of the file's metadata whose value is the header, as JSON. One key alone, since several have no fixed order.
METADATA = "kg_retrievers"

#: The configuration of a model of Hugging Face.
CONFIG = "config.json"


class Header(BaseModel, strict=True):
    """The description of the saved model in a folder.

    Attributes:
        format_version: The layout of the file.
        method: The name of the method whose model it is.
        config: The other values that its use needs, as JSON.
        digest: Hexadecimal digits that change with the configuration and the weights.
    """

    format_version: int
    method: str = ""
    digest: str = ""
    config: dict[str, Any] = {}


def save_checkpoint(folder: str | Path, method: str, config: Mapping[str, Any], weights: Mapping[str, Array]) -> None:
    """Write a trained model to a folder, in place of an earlier one there.

    The file is replaced in one step, so that a reader finds the earlier model or this one. The call removes the
    leftovers of a save that was killed. Other files stay.

    Args:
        folder: The folder. It is made if it is missing.
        method: The name of the method whose model it is.
        config: The other values that the use of the model needs, as JSON, without NaN or infinity.
        weights: Arrays of any shape, by name. They keep their type: bool, or integers and floats of up to 64 bits.

    Raises:
        InvalidArgumentError: If the config is not JSON, the weights are no such arrays, or the folder holds a model of
            Hugging Face.
        FileWriteError: If another process writes there, the disk is full, the folder is a file, or this user may not
            write there. An earlier model is whole then.
    """
    folder = Path(folder)
    data = _serialize(method, config, weights)
    if _is_of_hugging_face(folder):
        raise InvalidArgumentError(
            f"save_checkpoint: {folder} holds a model of Hugging Face, which would be lost. Name another folder."
        )
    with raise_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with folder_lock(folder):
            remove_unfinished(folder)
            write_file(folder / WEIGHTS, data)


def load_checkpoint(folder: str | Path, method: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return config and weights as `save_checkpoint` was given them.

    Args:
        folder: The folder.
        method: The method whose model is expected.

    Raises:
        ModelLoadError: If the folder holds no model, a damaged one, one of another method, or one that a later version
            of this package saved.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     save_checkpoint(folder, "subgraph-rag", {"rounds": 2}, {"bias": np.zeros(1, np.float32)})
        ...     load_checkpoint(folder, "subgraph-rag")
        ({'rounds': 2}, {'bias': array([0.], dtype=float32)})
    """
    folder = Path(folder)
    with _open(folder, method) as file:
        header = _read_header(folder, file, method)
        if header.method != method:
            raise ModelLoadError(
                f"holds a model of {header.method!r:.50}, wanted one of {method!r}.",
                folder,
                **_train(Path("FOLDER"), method, "Give it to its own method, or train one into another folder"),
            )
        try:
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no dictionary
        except (SafetensorError, TypeError, ValueError) as cause:
            raise ModelLoadError(
                "the weights are no arrays that safetensors and numpy can read.",
                folder / WEIGHTS,
                **_train(folder, method),
            ) from cause
    if header.digest != _digest(header.config, weights):
        raise ModelLoadError(
            "the weights are damaged, or not those of the configuration.", folder / WEIGHTS, **_copy(folder, method)
        )
    return header.config, weights


def read_header(folder: str | Path) -> Header:
    """Read the header of a saved model of any method.

    The weights are not read.

    Args:
        folder: A folder that `save_checkpoint` wrote.

    Raises:
        ModelLoadError: If the folder holds no model, a damaged one, or one that a later version of this package saved.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     save_checkpoint(folder, "subgraph-rag", {"rounds": 2}, {"bias": np.zeros(1, np.float32)})
        ...     read_header(folder).method
        'subgraph-rag'
    """
    folder = Path(folder)
    with _open(folder, "METHOD") as file:
        return _read_header(folder, file, "METHOD")


def holds_model(folder: Path) -> bool:
    """Tell whether a folder holds a model, of this package or another."""
    return (folder / WEIGHTS).exists() or (folder / CONFIG).exists()


def _is_of_hugging_face(folder: Path) -> bool:
    """Tell whether `config.json` belongs to a model of Hugging Face."""
    try:
        config = json.loads((folder / CONFIG).read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(config, dict) and "model_type" in config


# --- writing ----------------------------------------------------------------------------------------------------------


def _serialize(method: str, config: Mapping[str, Any], weights: Mapping[str, Array]) -> bytes:
    # safetensors writes elements in memory order, so other layouts are copied first.
    arrays = {name: np.asarray(array, order="C") for name, array in weights.items()}
    arrays = {name: array.astype(array.dtype.newbyteorder("="), copy=False) for name, array in arrays.items()}
    try:
        header = {
            "format_version": FORMAT_VERSION,
            "library_version": version("kg-retrievers"),
            "method": method,
            "digest": _digest(config, arrays),
            "config": config,
        }
        text = json.dumps(header, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError) as cause:
        raise InvalidArgumentError(f"save_checkpoint: wanted a config of JSON values, but {cause}.") from cause
    try:
        return save(arrays, {METADATA: text})
    except SafetensorError as cause:
        raise InvalidArgumentError(
            f"save_checkpoint: wanted weights that are arrays of numbers, but {cause}"
        ) from cause


def _digest(config: Mapping[str, Any], arrays: Mapping[str, Array]) -> str:
    digest = blake2b(json.dumps(config).encode(), digest_size=16)
    for name, array in sorted(arrays.items()):
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


# --- reading ----------------------------------------------------------------------------------------------------------


@contextmanager
def _open(folder: Path, method: str) -> Iterator[Any]:
    """Open the weights of a folder."""
    path = folder / WEIGHTS
    if not os.path.exists(path):
        missing = f"{WEIGHTS} is missing" if os.path.isdir(folder) else "it is a file, not a folder"
        raise _no_model(missing if os.path.exists(folder) else "there is no such folder", folder, method)
    try:
        file = safe_open(path, framework="numpy")
    except (OSError, SafetensorError) as cause:
        raise ModelLoadError(
            f"the weights are damaged, or cannot be read ({cause}).", path, **_copy(folder, method)
        ) from cause
    with file:
        yield file


def _read_header(folder: Path, file: Any, method: str) -> Header:
    """Return the header of an open file."""
    text = (file.metadata() or {}).get(METADATA)
    if text is None:
        raise _no_model(f"{WEIGHTS} holds no configuration", folder, method)
    try:
        header = json.loads(text)
        if header["format_version"] > FORMAT_VERSION:  # before the rest, which may have another shape there
            raise ModelLoadError(
                f"saved in format {header['format_version']} by kg-retrievers {header.get('library_version')!s:.20}, "
                f"this one reads {FORMAT_VERSION}. Install a later version of kg-retrievers.",
                folder / WEIGHTS,
            )
        return Header.model_validate(header)
    except (KeyError, RecursionError, TypeError, ValueError) as cause:
        raise _no_model(f"{WEIGHTS} holds no configuration of this package", folder, method) from cause


# --- what to do next --------------------------------------------------------------------------------------------------


def _no_model(why: str, folder: Path, method: str) -> ModelLoadError:
    return ModelLoadError(f"no trained model is here: {why}.", folder, **_train(folder, method))


def _train(folder: Path, method: str, advice: str = "Train one") -> Hints:
    command = f"kg-retrievers train {method} --graph GRAPH --questions FILE --output {shlex.quote(str(folder))}"
    return {"hint_python": f"{advice}, with output={str(folder)!r}.", "hint_shell": f"{advice}: {command}"}


def _copy(folder: Path, method: str) -> Hints:
    return _train(folder, method, "Copy the whole folder again, or delete it and train the model anew")
