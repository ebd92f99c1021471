"""Trained models on disk: what is saved comes back, and what is damaged or not wanted is refused with words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from broken_off import DIE_AT
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import load_file, save

from kg_retrievers.core.checkpoint import CONFIG, METADATA, WEIGHTS, load_checkpoint, read_header, save_checkpoint
from kg_retrievers.errors import FileFormatError, FileWriteError, InvalidArgumentError, ModelLoadError
from kg_retrievers.graph.storage.parts import folder_lock

Damage = Callable[[Path], object]

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
    assert os.listdir(folder) == [WEIGHTS]


def test_the_same_model_is_saved_as_the_same_bytes(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    save_checkpoint(one, "gnn-rag", CONFIG_OF_OURS, ARRAYS)
    save_checkpoint(two, "gnn-rag", CONFIG_OF_OURS, dict(reversed(ARRAYS.items())))
    assert (one / WEIGHTS).read_bytes() == (two / WEIGHTS).read_bytes()


def test_the_header_alone(tmp_path: Path) -> None:
    """Its digest changes with the configuration, the weights, their names, types and shapes."""
    header = read_header(saved(tmp_path / "model"))
    assert (header.method, header.config) == ("gnn-rag", {"steps": 2})
    digests = {header.digest}
    others = [
        ({"steps": 3}, {"w": np.ones(3)}),
        ({"steps": 2}, {"w": np.zeros(3)}),
        ({"steps": 2}, {"v": np.ones(3)}),
        ({"steps": 2}, {"w": np.ones((3, 1))}),
        ({"steps": 2}, {"w": np.ones(3).view(np.int64)}),
    ]
    for config, weights in others:
        save_checkpoint(tmp_path / "other", "gnn-rag", config, weights)
        digests.add(read_header(tmp_path / "other").digest)
    assert len(digests) == 6
    assert read_header(saved(tmp_path / "again")).digest == header.digest


# --- what cannot be saved ---


@pytest.mark.parametrize(
    ("config", "weights", "message"),
    [
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


@pytest.mark.parametrize("config", [{"model_type": "llama"}, {"model_type": "bert", "format_version": 1}], ids=str)
def test_a_model_of_hugging_face_is_not_written_over(tmp_path: Path, config: dict[str, Any]) -> None:
    (tmp_path / CONFIG).write_text(json.dumps(config))
    (tmp_path / WEIGHTS).write_bytes(b"theirs")
    with pytest.raises(
        InvalidArgumentError, match=r"holds a model of Hugging Face, which would be lost\. Name another"
    ):
        saved(tmp_path)
    assert (tmp_path / WEIGHTS).read_bytes() == b"theirs"


# --- what cannot be loaded ---


def with_header(**changes: object) -> Damage:
    """Return a function that changes the metadata of a saved file, and leaves its arrays."""

    def change(folder: Path) -> None:
        path = folder / WEIGHTS
        with safe_open(path, framework="numpy") as file:
            header = json.loads(file.metadata()[METADATA])
        path.write_bytes(save(load_file(path), {METADATA: json.dumps(header | changes)}))

    return change


def with_metadata(text: str, key: str = METADATA) -> Damage:
    """Return a function that writes other metadata."""
    return lambda folder: (folder / WEIGHTS).write_bytes(save({"w": np.ones(3)}, {key: text}))


def with_bytes(data: bytes) -> Damage:
    """Return a function that writes another file."""
    return lambda folder: (folder / WEIGHTS).write_bytes(data)


def flipped(folder: Path) -> None:
    """Change the last bit of the weights."""
    data = bytearray((folder / WEIGHTS).read_bytes())
    data[-1] ^= 1
    (folder / WEIGHTS).write_bytes(data)


DAMAGES: dict[str, tuple[Damage, str, str]] = {
    "no file": (lambda folder: (folder / WEIGHTS).unlink(), "", "no trained model is here: model.safetensors is miss"),
    "empty": (with_bytes(b""), WEIGHTS, "the weights are damaged, or cannot be read (Error while deserializing"),
    "pickle": (with_bytes(b"\x80\x04N."), WEIGHTS, "the weights are damaged, or cannot be read (Error while"),
    "cut": (lambda folder: os.truncate(folder / WEIGHTS, 70), WEIGHTS, "the weights are damaged, or cannot be read ("),
    "one bit": (flipped, WEIGHTS, "the weights are damaged, or not those of the configuration"),
    "other config": (with_header(config={"steps": 3}), WEIGHTS, "the weights are damaged, or not those of the conf"),
    "digest": (with_header(digest="1"), WEIGHTS, "the weights are damaged, or not those of the configuration"),
    "no header": (with_metadata("pt", "format"), "", "no trained model is here: model.safetensors holds no config"),
    "text": (with_metadata("steps: 2"), "", "no trained model is here: model.safetensors holds no configuration of"),
    "deep": (with_metadata("[" * 100_000), "", "no trained model is here: model.safetensors holds no configuration of"),
    "list": (with_metadata("[1]"), "", "no trained model is here: model.safetensors holds no configuration of this"),
    "version": (with_header(format_version="2"), "", "no trained model is here: model.safetensors holds no config"),
    "method": (with_header(method="rog"), "", "holds a model of 'rog', wanted one of 'gnn-rag'"),
}


@pytest.mark.parametrize(
    ("damage", "place", "message"), [pytest.param(*case, id=name) for name, case in DAMAGES.items()]
)
def test_damaged(tmp_path: Path, damage: Damage, place: str, message: str) -> None:
    damage(saved(tmp_path))
    with pytest.raises(ModelLoadError) as caught:
        load_checkpoint(tmp_path, "gnn-rag")
    assert str(caught.value).startswith(f"{tmp_path / place}: {message}")
    folder = "FOLDER" if message.startswith("holds a model of") else str(tmp_path)  # a model of another method stays
    assert str(caught.value).endswith(f", with output={folder!r}.")
    assert caught.value.hint_shell.endswith(
        f": kg-retrievers train gnn-rag --graph GRAPH --questions FILE --output {folder}"
    )
    assert isinstance(caught.value, FileFormatError)


@pytest.mark.parametrize("read", [read_header, lambda folder: load_checkpoint(folder, "gnn-rag")])
def test_a_later_format_asks_for_a_later_version(tmp_path: Path, read: Callable[[Path], object]) -> None:
    with_header(format_version=3, library_version="9.0")(saved(tmp_path))
    with pytest.raises(ModelLoadError) as caught:
        read(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path / WEIGHTS}: saved in format 3 by kg-retrievers 9.0, this one reads 2. "
        "Install a later version of kg-retrievers."
    )


@given(st.binary(max_size=60), st.sampled_from(["file", "metadata"]))
def test_any_bytes_are_loaded_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes, where: str) -> None:
    folder = tmp_path_factory.getbasetemp() / f"bytes in {where}"
    if where == "file":
        (saved(folder) / WEIGHTS).write_bytes(data)
    else:
        with_metadata(data.decode("latin-1"))(saved(folder))
    with pytest.raises(ModelLoadError):
        load_checkpoint(folder, "gnn-rag")


# --- kills and two writers --------------------------------------------------------------------------------------------

KILL_EVERYWHERE = """
import json, os, signal, sys
import numpy as np
from kg_retrievers.core.checkpoint import load_checkpoint, save_checkpoint

folder = sys.argv[1]

def save(rounds):
    save_checkpoint(folder, "subgraph-rag", {"rounds": rounds}, {"w": np.full(1000, rounds, np.float32)})

found, step, done = [], 0, False
while not done:
    step += 1
    save(1)
    process = os.fork()
    if not process:
        die_at(step)
        save(2)
        os._exit(0)
    done = os.waitpid(process, 0)[1] == 0
    config, weights = load_checkpoint(folder, "subgraph-rag")
    assert (weights["w"] == config["rounds"]).all()
    found.append(config["rounds"])
    save(3)
    assert os.listdir(folder) == ["model.safetensors"], os.listdir(folder)
print(json.dumps(found))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_killed_at_every_step_of_a_save(tmp_path: Path) -> None:
    """The earlier model or the new one opens, and the next save sweeps what is left."""
    command = [sys.executable, "-c", DIE_AT + KILL_EVERYWHERE, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found) == {1, 2}
    assert found == sorted(found), "one step is the save"


def test_a_second_writer_of_a_model_is_told(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, "gnn-rag", {}, {"w": np.zeros(1, np.float32)})
    with folder_lock(tmp_path), pytest.raises(FileWriteError, match=f"process {os.getpid()} is writing there"):
        save_checkpoint(tmp_path, "gnn-rag", {}, {"w": np.ones(1, np.float32)})
    assert load_checkpoint(tmp_path, "gnn-rag")[1]["w"].tolist() == [0]
