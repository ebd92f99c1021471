"""The encoder's file: int8 rows with a scale each for matrices, half precision for the rest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from kg_retrievers.graph.columns import Array


def quantized(weights: Mapping[str, Array]) -> dict[str, Array]:
    """Return the tensors of the file: of each large matrix int8 rows and `NAME.scales`."""
    found: dict[str, Array] = {}
    for name, tensor in weights.items():
        if tensor.ndim < 2 or name in ("ends", "positions"):
            found[name] = tensor.astype(np.float16)
            continue
        scales = np.maximum(np.abs(tensor).max(axis=-1) / 127, 1e-8).astype(np.float16)
        rows = np.round(tensor / scales[..., None].astype(np.float32))
        found[name], found[f"{name}.scales"] = np.clip(rows, -127, 127).astype(np.int8), scales
    return found


def write_encoder(path: Path, weights: Mapping[str, Array], training: Mapping[str, Any]) -> int:
    """Write weights with what is known of their training, and return the size of the file in bytes."""
    tensors = quantized(weights)
    data = save(
        {name: tensors[name] for name in sorted(tensors)}, {"training": json.dumps(dict(training), sort_keys=True)}
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return len(data)
