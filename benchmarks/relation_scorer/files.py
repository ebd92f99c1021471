"""The scorer's file: half precision for the network, single precision for the ranking and the confidence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.numpy import save

from benchmarks.relation_scorer.net import Net
from kg_retrievers.graph.columns import Array
from kg_retrievers.questions.zero_shot.ranking import CONFIDENCE_FEATURES, WALK_FEATURES

#: What the weights of the ranking and of the confidence are called.
WALKS, CONFIDENCE = "ranking.walks", "ranking.confidence"


def half_precision(net: Net) -> dict[str, Array]:
    """Return the weights of a network as the scorer gets them: rounded to half precision, with none for the ranking."""
    weights: dict[str, Array] = {
        name: tensor.to(torch.float16).numpy().astype(np.float32) for name, tensor in net.state_dict().items()
    }
    return weights | {
        WALKS: np.zeros(len(WALK_FEATURES), np.float32),
        CONFIDENCE: np.zeros(len(CONFIDENCE_FEATURES), np.float32),
    }


def read_scorer(path: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return the weights of a file, float32, and what it says of its training."""
    with safe_open(path, framework="numpy") as file:
        weights = {name: file.get_tensor(name).astype(np.float32) for name in file.keys()}  # noqa: SIM118
        said = (file.metadata() or {}).get("training", "{}")
    return weights, json.loads(said)


def write_scorer(path: Path, weights: Mapping[str, Array], training: Mapping[str, Any]) -> int:
    """Write weights with what is known of their training, and return the size of the file in bytes.

    Equal weights make equal files: the names are sorted, and all that is known is one entry.
    """
    tensors = {
        name: weights[name].astype(np.float32 if name in (WALKS, CONFIDENCE) else np.float16)
        for name in sorted(weights)
    }
    data = save(tensors, {"training": json.dumps(dict(training), sort_keys=True)})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return len(data)
