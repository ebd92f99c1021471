"""Trained models on disk: what is saved comes back, and what is damaged or not wanted is refused with words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays, scalar_dtypes
from safetensors.numpy import save

from kg_retrievers.core.checkpoint import CONFIG, WEIGHTS, load_checkpoint, save_checkpoint
from kg_retrievers.errors import FileFormatError, InvalidArgumentError, ModelLoadError

Damage = Callable[[Path], object]

TRAIN = "kg-retrievers train gnn-rag --graph ... --questions ... --output "
CONFIG_OF_OURS = {"z": 1, "a": [1.5, None, True], "encoder": {"name": "Übersetzer", "dimension": 2}}
ARRAYS = {
    "float32": np.arange(6, dtype=np.float32).reshape(2, 3),
    "float64": np.array([np.pi, np.nan, -np.inf]),
    "int64": np.array([[-(2**62)], [3]]),
    "int8": np.array([-1], np.int8),
    "bool": np.array([True, False]),
    "no rows": np.zeros((0, 3), np.float32),
    "one number": np.array(2.5),
    "transposed": np.arange(6, dtype=np.float32).reshape(2, 3).T,
    "every other": np.arange(6)[::2],
    "backwards": np.arange(3.0)[::-1],
}


def saved(folder: Path) -> Path:
    """Save a small model and return its folder."""
    save_checkpoint(folder, "gnn-rag", {"steps": 2}, {"w": np.ones(3)})
    return folder


def same(got: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Tell whether the names, and each array's type, shape and values, are the same."""
    return got.keys() == wanted.keys() and all(
        got[name].dtype == wanted[name].dtype
        and got[name].shape == wanted[name].shape
        and np.array_equal(got[name], wanted[name], equal_nan=wanted[name].dtype.kind == "f")
        for name in wanted
    )


# --- what is saved comes back ---


def test_round_trip(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "modèle 模型"
    save_checkpoint(folder, "gnn-rag", CONFIG_OF_OURS, ARRAYS)
    config, weights = load_checkpoint(str(folder), "gnn-rag")
    assert config == CONFIG_OF_OURS
    assert list(config) == list(CONFIG_OF_OURS)
    assert same(weights, ARRAYS)
    assert sorted(os.listdir(folder)) == [CONFIG, WEIGHTS]


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8"), max_size=5),
        arrays(scalar_dtypes().filter(lambda kind: kind.kind in "biuf"), array_shapes(min_dims=0, min_side=0)),
        max_size=3,
    )
)
def test_arrays_come_back(tmp_path_factory: pytest.TempPathFactory, weights: dict[str, Any]) -> None:
    folder = tmp_path_factory.getbasetemp() / "arrays"
    save_checkpoint(folder, "gnn-rag", {}, weights)
    config, got = load_checkpoint(folder, "gnn-rag")
    native = {name: array.astype(array.dtype.newbyteorder("=")) for name, array in weights.items()}
    assert config == {}
    assert same(got, native)


def test_the_config_can_be_read_by_eye(tmp_path: Path) -> None:
    text = (saved(tmp_path) / CONFIG).read_text("utf-8")
    assert text == (
        f'{{\n  "format_version": 1,\n  "library_version": "{version("kg-retrievers")}",\n  "method": "gnn-rag",\n'
        f'  "weights": "{json.loads(text)["weights"]}",\n  "steps": 2\n}}'
    )


def test_the_same_model_is_saved_as_the_same_bytes(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    save_checkpoint(one, "gnn-rag", CONFIG_OF_OURS, ARRAYS)
    save_checkpoint(two, "gnn-rag", CONFIG_OF_OURS, dict(reversed(ARRAYS.items())))
    assert [(one / name).read_bytes() for name in (CONFIG, WEIGHTS)] == [
        (two / name).read_bytes() for name in (CONFIG, WEIGHTS)
    ]


def test_a_later_model_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    saved(tmp_path)
    save_checkpoint(tmp_path, "subgraph-rag", {}, {"bias": np.zeros(2)})
    assert load_checkpoint(tmp_path, "subgraph-rag")[1].keys() == {"bias"}
    assert sorted(os.listdir(tmp_path)) == [CONFIG, WEIGHTS, "notes.txt"]


def test_no_torch_is_loaded() -> None:
    code = "import sys, kg_retrievers.core.checkpoint; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


# --- what is cut off ---


@pytest.mark.parametrize("cut_off", [0, 1])
@pytest.mark.parametrize("is_first", [True, False])
def test_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut_off: int, is_first: bool) -> None:
    """The replacement of the first or the second file is cut off."""
    folder = tmp_path / "model"
    if not is_first:
        saved(folder)
    replaced: list[str] = []

    def replace(source: Path, target: Path) -> None:
        if len(replaced) == cut_off:
            raise KeyboardInterrupt
        replaced.append(target.name)
        source.rename(target)

    with monkeypatch.context() as patched:
        patched.setattr("os.replace", replace)
        with pytest.raises(KeyboardInterrupt):
            save_checkpoint(folder, "gnn-rag", {"steps": 3}, {"w": np.zeros(3)})
    assert replaced == [WEIGHTS][:cut_off]
    assert not list(folder.glob("*.tmp"))
    if is_first:
        with pytest.raises(ModelLoadError, match=r"config\.json: cannot be read \(No such file"):
            load_checkpoint(folder, "gnn-rag")
    elif cut_off:
        with pytest.raises(ModelLoadError, match=r"safetensors: the weights are damaged, or not those of config\.json"):
            load_checkpoint(folder, "gnn-rag")
    else:
        config, weights = load_checkpoint(folder, "gnn-rag")
        assert (config, weights["w"].tolist()) == ({"steps": 2}, [1, 1, 1])


# --- what cannot be saved ---


@pytest.mark.parametrize(
    ("config", "weights", "message"),
    [
        (
            {"method": "x", "weights": 1},
            {},
            r"it writes \['method', 'weights'\] into the config itself\. Rename them\.",
        ),
        ({"f1": float("nan")}, {}, "wanted a config of JSON values, but Out of range float"),
        ({"f1": np.float32(1)}, {}, "wanted a config of JSON values, but Object of type float32"),
        ({"name": "\ud800"}, {}, "wanted a config of JSON values, but 'utf-8' codec"),
        ({}, {"w": np.array([object()])}, "wanted weights that are arrays of numbers, but "),
        ({}, {"w": np.array(["a"])}, "wanted weights that are arrays of numbers, but "),
    ],
)
def test_what_cannot_be_saved(tmp_path: Path, config: dict[str, Any], weights: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^save_checkpoint: {message}"):
        save_checkpoint(tmp_path / "model", "gnn-rag", config, weights)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("inside", ["", "model"])
def test_a_file_is_no_folder(tmp_path: Path, inside: str) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(InvalidArgumentError, match=r"is a file, or inside of one\. Name a folder\."):
        saved(file / inside)
    assert file.read_text() == "mine"


# --- what cannot be loaded ---


def with_config(**changes: object) -> Damage:
    """Return a function that changes values of a saved config."""

    def change(folder: Path) -> None:
        path = folder / CONFIG
        path.write_text(json.dumps({**json.loads(path.read_bytes()), **changes}))

    return change


def with_weights(data: bytes) -> Damage:
    """Return a function that puts other weights beside a config that agrees to them."""

    def change(folder: Path) -> None:
        (folder / WEIGHTS).write_bytes(data)
        with_config(weights=blake2b(data, digest_size=16).hexdigest())(folder)

    return change


#: An array of a type that numpy does not have.
BFLOAT16 = save({"w": np.ones(1, np.float16)}).replace(b'"F16"', b'"BF16"').replace(b" ", b"", 1)

DAMAGES: dict[str, tuple[Damage, str, str]] = {
    "no config": (lambda folder: (folder / CONFIG).unlink(), CONFIG, "cannot be read (No such file"),
    "no weights": (lambda folder: (folder / WEIGHTS).unlink(), WEIGHTS, "cannot be read (No such file"),
    "text": (lambda folder: (folder / CONFIG).write_text("steps: 2"), CONFIG, "the config is no valid JSON"),
    "cut": (lambda folder: os.truncate(folder / CONFIG, 9), CONFIG, "the config is no valid JSON"),
    "bytes": (lambda folder: (folder / CONFIG).write_bytes(b'"\xff'), CONFIG, "the config is no valid JSON"),
    "deep": (lambda folder: (folder / CONFIG).write_text("[" * 100_000), CONFIG, "the config is no valid JSON"),
    "list": (lambda folder: (folder / CONFIG).write_text("[1]"), CONFIG, "not the config of a model of this package"),
    "other": (lambda folder: (folder / CONFIG).write_text('{"a": 1}'), CONFIG, "not the config of a model of this"),
    "version": (with_config(format_version="1"), CONFIG, "not the config of a model of this package"),
    "method": (with_config(method="rog"), "", "holds a model of 'rog', wanted one of 'gnn-rag'"),
    "no method": (with_config(method=None), "", "holds a model of None, wanted one of 'gnn-rag'"),
    "digest": (with_config(weights=1), WEIGHTS, "the weights are damaged, or not those of config.json"),
    "cut weights": (lambda folder: os.truncate(folder / WEIGHTS, 70), WEIGHTS, "the weights are damaged, or not"),
    "empty": (with_weights(b""), WEIGHTS, "the weights are no arrays that safetensors and numpy can read"),
    "pickle": (with_weights(b"\x80\x04N."), WEIGHTS, "the weights are no arrays that safetensors and numpy can read"),
    "bfloat16": (with_weights(BFLOAT16), WEIGHTS, "the weights are no arrays that safetensors and numpy can read"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged(tmp_path: Path, name: str) -> None:
    damage, place, message = DAMAGES[name]
    damage(saved(tmp_path))
    with pytest.raises(ModelLoadError) as caught:
        load_checkpoint(tmp_path, "gnn-rag")
    assert str(caught.value).startswith(f"{tmp_path / place}: {message}")
    assert str(caught.value).endswith(f"{TRAIN}{tmp_path}")
    assert isinstance(caught.value, FileFormatError)


def test_a_later_format_asks_for_an_upgrade(tmp_path: Path) -> None:
    with_config(format_version=2, library_version="9.0")(saved(tmp_path))
    with pytest.raises(ModelLoadError) as caught:
        load_checkpoint(tmp_path, "gnn-rag")
    assert str(caught.value) == (
        f"{tmp_path / CONFIG}: saved in format 2 by kg-retrievers 9.0, this one reads 1. "
        "Upgrade it: pip install --upgrade kg-retrievers"
    )


def test_there_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadError, match=r"none: no such folder; no model is saved there\. Train it: kg-"):
        load_checkpoint(tmp_path / "none", "gnn-rag")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ModelLoadError, match=r"file: a file, but no folder; no model is saved there\. Train it: kg-"):
        load_checkpoint(tmp_path / "file", "gnn-rag")


@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_are_loaded_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, is_config: bool
) -> None:
    folder = saved(tmp_path_factory.getbasetemp() / "bytes")
    if is_config:
        (folder / CONFIG).write_bytes(data)
    else:
        with_weights(data)(folder)
    with pytest.raises(ModelLoadError):
        load_checkpoint(folder, "gnn-rag")
