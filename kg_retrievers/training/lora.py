"""Low-rank adapters in a causal language model (extra `graph-prompt`).

E. Hu, Y. Shen, P. Wallis, Z. Allen-Zhu, Y. Li, S. Wang, L. Wang, W. Chen: LoRA: Low-Rank Adaptation of Large Language
Models. ICLR 2022, arXiv:2106.09685.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kg_retrievers.errors import InvalidArgumentError, MissingExtraError
from kg_retrievers.file_writing import raise_write_errors, write_file
from kg_retrievers.training.causal_lm import CausalLM

try:
    import torch
    from peft import LoraConfig, get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict
    from safetensors.torch import save
except ModuleNotFoundError as cause:
    raise MissingExtraError("Adapters of a language model", "graph-prompt") from cause

#: The folder inside of a model's that holds a copy of its adapters for peft, and the files in it. The word also stands
#: before the names of the adapters' weights in the model itself.
ADAPTER, ADAPTER_CONFIG, ADAPTER_WEIGHTS = "adapter", "adapter_config.json", "adapter_model.safetensors"


def add_adapters(who: str, lm: CausalLM, *, rank: int, alpha: int, dropout: float, targets: Sequence[str]) -> Any:
    """Return a language model with adapters, in evaluation mode; those of the language model itself are the same.

    Args:
        who: Whose setting `targets` is, for messages.
        lm: The language model.
        rank: The rank of the adapters, at least 1.
        alpha: Divided by the rank, it is the factor of an adapter.
        dropout: The share of an adapter's inputs that is left out in training, in [0, 1).
        targets: The names of the linear layers that get an adapter.

    Raises:
        InvalidArgumentError: If the language model has no linear layers of a name.
    """
    linear = [name for name, module in lm.model.named_modules() if _is_linear(module)]
    for target in targets:
        if not any(name == target or name.endswith(f".{target}") for name in linear):
            last = sorted({name.rpartition(".")[2] for name in linear})
            raise InvalidArgumentError(
                f"{who}: {lm!r} has no linear layers {target!r} that could be given adapters. It has: {last}.",
                hint_python="Name some of these: lora_targets=(...).",
                hint_shell="Name some of these: --field 'lora_targets=[...]'.",
            )
    adapters = LoraConfig(
        r=rank,
        lora_alpha=alpha,
        lora_dropout=dropout,
        target_modules=sorted(targets),
        bias="none",
        task_type="CAUSAL_LM",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of transformers, at what peft asks of it
        return get_peft_model(lm.model, adapters).eval()


def adapter_weights(model: Any) -> dict[str, torch.Tensor]:
    """Return the weights of the adapters in a language model, by name."""
    weights: dict[str, torch.Tensor] = get_peft_model_state_dict(model, save_embedding_layers=False)
    return weights


def set_adapters(model: Any, weights: Mapping[str, torch.Tensor]) -> None:
    """Take the weights of adapters.

    Raises:
        ValueError: If they are not those of this language model and configuration.
    """
    wanted = {name: weight.shape for name, weight in adapter_weights(model).items()}
    if wanted != {name: weight.shape for name, weight in weights.items()}:
        raise ValueError("its weights have other names or shapes than the configuration says")
    set_peft_model_state_dict(model, dict(weights))


def switch_dropout(model: Any, on: bool) -> None:
    """Switch the dropout of the adapters on or off; the language model itself never drops anything out."""
    for name, module in model.named_modules():
        if "lora_dropout" in name:
            module.train(on)


def save_for_peft(model: Any, name: str, folder: Path) -> None:
    """Write a copy of the adapters into the folder `adapter` of a model's, in the layout of peft, for other programs.

    Args:
        model: The language model with its adapters.
        name: The name of the language model.
        folder: The folder of the trained model.

    Raises:
        FileWriteError: If the disk is full, or this user may not write there.
    """
    with raise_write_errors(folder / ADAPTER):
        (folder / ADAPTER).mkdir(exist_ok=True)
    write_file(folder / ADAPTER / ADAPTER_CONFIG, _config_of_peft(model, name))
    copied = {key: weight.detach().cpu().contiguous() for key, weight in adapter_weights(model).items()}
    write_file(folder / ADAPTER / ADAPTER_WEIGHTS, save(copied, {"format": "pt"}))


def _config_of_peft(model: Any, name: str) -> str:
    """Return the configuration of the adapters as peft writes it, in JSON."""
    config = model.peft_config["default"].to_dict() | {"base_model_name_or_path": name}
    config |= {key: sorted(value) for key, value in config.items() if isinstance(value, set)}
    return json.dumps(config | {"inference_mode": True}, indent=2, sort_keys=True, default=str)


def _is_linear(module: torch.nn.Module) -> bool:
    """Whether a layer is linear: torch's, GPT-2's transposed one, or a quantised one, which are named after it."""
    return isinstance(module, torch.nn.Linear) or type(module).__name__.startswith(("Linear", "Conv1D"))
