"""A causal language model of Hugging Face, a fingerprint that tells it from others, and low-rank adapters in it.

The adapters are those of E. Hu et al., LoRA: Low-Rank Adaptation of Large Language Models, ICLR 2022, arXiv:2106.09685,
as peft computes them (extra `graph-prompt`).
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any, Self

from kg_retrievers.core.checkpoint import read_header
from kg_retrievers.errors import InvalidArgumentError, MissingExtraError, ModelLoadError, ModelMismatchError
from kg_retrievers.graph.cache import LocalLock

try:
    import torch
    from jinja2 import TemplateError
    from peft import LoraConfig, get_peft_model, get_peft_model_state_dict, set_peft_model_state_dict
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging
except ModuleNotFoundError as cause:  # of a package that is there but broken, its own error says more
    raise MissingExtraError("A language model that reads graph prompts", "graph-prompt") from cause

#: How many values of each weight make its digest, which tells one language model from another.
LOOKED_AT = 16

#: The day that a chat template gets, if it asks for one: the same in training and in all answers.
DATE = "26 Jul 2024"

#: Stands for what a user says, to find what a chat template puts around it.
_CONTENT = "GRAPH-AND-QUESTION"


class CausalLM:
    """A language model and its tokenizer. Its weights are frozen, and it is put into evaluation mode.

    Args:
        model: A causal language model of transformers, without adapters.
        tokenizer: Its tokenizer.
        name: Its name on Hugging Face, or its folder.
        revision: Which version of it.

    Raises:
        InvalidArgumentError: If the model has adapters already, or the tokenizer has no token that ends a text.
    """

    def __init__(self, model: Any, tokenizer: Any, *, name: str, revision: str | None = None) -> None:
        """Freeze the model and take its fingerprint."""
        if tokenizer.eos_token_id is None:
            raise InvalidArgumentError(
                f"CausalLM: the tokenizer of {name} has no token that ends a text, so an answer would have no end. Set "
                "its eos_token, or take another model."
            )
        self.model, self.tokenizer = model, tokenizer
        self.name, self.revision = name, revision
        self.check_bare()
        model.requires_grad_(False).eval()
        marks = [mark for mark in tokenizer.get_added_vocab() if len(mark) > 1 and not mark.isspace()]
        within = "|".join(f"(?<={re.escape(mark[0])})(?={re.escape(mark[1:])})" for mark in sorted(marks))
        self._within_marks = re.compile(within or "(?!)")
        self.fingerprint = _fingerprint(model, tokenizer)
        self._lock = LocalLock()

    @classmethod
    def load(
        cls, name: str | Path, *, revision: str | None = None, dtype: str = "auto", device: str | None = None
    ) -> Self:
        """Load a language model, from safetensors alone and without running code that comes with it.

        Load a language model that is spread over several devices, or quantised, with transformers, and hand it to
        `CausalLM`.

        Args:
            name: Its name on Hugging Face, or a folder.
            revision: Which version of it: a branch, tag or commit.
            dtype: The type of its weights: "float32", "bfloat16", or "auto" for the type in which they are stored.
            device: "cpu", "cuda", "cuda:1" ...; None for a GPU where there is one.

        Raises:
            InvalidArgumentError: If there is no such `dtype`.
            ModelLoadError: If the model cannot be loaded.
        """
        types = ("auto", "float32", "bfloat16")
        if dtype not in types:
            raise InvalidArgumentError(f"CausalLM.load: dtype is one of {list(types)}, but got {dtype!r}.")
        where = device or ("cuda" if torch.cuda.is_available() else "cpu")
        name = str(Path(name).resolve()) if Path(name).is_dir() else str(name)
        given: dict[str, Any] = {"revision": revision, "trust_remote_code": False}
        kind: Any = dtype if dtype == "auto" else getattr(torch, dtype)
        try:
            with _without_bars():
                tokenizer: Any = AutoTokenizer.from_pretrained(name, **given)
                load: Any = AutoModelForCausalLM.from_pretrained
                model, info = load(name, **given, use_safetensors=True, dtype=kind, output_loading_info=True)
            if info["missing_keys"]:
                raise ValueError(f"its file has no weights {sorted(info['missing_keys'])[:3]}.")
            model = model.to(where)
        except (OSError, ValueError, KeyError, ImportError, RuntimeError, AssertionError, SafetensorError) as cause:
            raise ModelLoadError(
                f"{_missing(Path(name))}{cause!s:.300}",
                name,
                hint_python="Name another one: llm=...",
                hint_shell="Put it back, or name another model.",
            ) from cause
        return cls(model, tokenizer, name=name, revision=getattr(model.config, "_commit_hash", None) or revision)

    def __repr__(self) -> str:
        """Show the name and the number of weights."""
        return f"CausalLM({self.name!r}, {sum(weight.numel() for weight in self.model.parameters()):,} weights)"

    def check_bare(self) -> None:
        """Check that the model has no adapters.

        Raises:
            InvalidArgumentError: If it has.
        """
        if getattr(self.model, "peft_config", None):
            raise InvalidArgumentError(
                f"CausalLM: {self.name} has adapters already, of an earlier training or checkpoint. Load it anew: "
                "CausalLM.load(...)."
            )

    def check_trained_with(self, who: str, trained_with: Mapping[str, Any], folder: Path) -> None:
        """Check that this is the language model of a training.

        Args:
            who: Whose training, for messages.
            trained_with: The name and the fingerprint of the language model of the training.
            folder: Where the trained model is.

        Raises:
            ModelMismatchError: If it is another one.
        """
        what = {"hidden_size": "vectors of {} numbers", "vocabulary": "a vocabulary {}", "weights": "weights {}"}
        for key, text in what.items():
            if self.fingerprint[key] != trained_with[key]:
                raise ModelMismatchError(
                    f"{who}: {folder} was trained with {trained_with['name']}, which has "
                    f"{text.format(trained_with[key])}, but {self!r} has {text.format(self.fingerprint[key])}.",
                    hint_python="Hand in the former (llm=...), or train a model with the latter.",
                    hint_shell="Put the former in its place, or train a model with the latter.",
                )

    @property
    def dtype(self) -> str:
        """The type of its weights, as "float32" or "bfloat16"."""
        return str(self.model.dtype).removeprefix("torch.")

    @property
    def device(self) -> torch.device:
        """The device of the inputs."""
        device: torch.device = self.model.get_input_embeddings().weight.device
        return device

    @property
    def hidden_size(self) -> int:
        """The length of the vectors of its tokens."""
        return int(self.fingerprint["hidden_size"])

    @property
    def max_tokens(self) -> int:
        """The most tokens that it reads and writes in all."""
        config = self.model.config.get_text_config()
        limits = (getattr(config, "max_position_embeddings", None), self.tokenizer.model_max_length)
        return int(min(limit for limit in limits if limit))

    @property
    def stops(self) -> tuple[int, ...]:
        """The tokens that end an answer; the first is the one that ends it in training."""
        more = getattr(self.model.generation_config, "eos_token_id", None)
        more = [] if more is None else [more] if isinstance(more, int) else more
        return tuple(dict.fromkeys([self.tokenizer.eos_token_id, *more]))

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Return the tokens of a text, nothing added.

        Args:
            text: The text.
            special: Whether special tokens that are written out, as "</s>", are read as special tokens rather than as
                text; never for what comes from a graph or a user.
        """
        parts = [text] if special else self._within_marks.split(text)
        with self._lock:  # a tokenizer must not be used by two threads at once
            rows = [self.tokenizer(part, add_special_tokens=False, verbose=False)["input_ids"] for part in parts]
        return list(chain(*rows))

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without special ones."""
        with self._lock:
            text: str = self.tokenizer.decode(
                list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
        return text

    def around(self, chat: bool | None) -> tuple[str, str]:
        """Return the texts before and after what a user says.

        Args:
            chat: Whether to take the chat template; None where there is one.

        Raises:
            InvalidArgumentError: If it is asked for and there is none, or it does not hold what the user says once.
        """
        template = getattr(self.tokenizer, "chat_template", None)
        if chat and not template:
            raise InvalidArgumentError(
                f"{self!r}: its tokenizer has no chat template.",
                hint_python="Pass chat=False.",
                hint_shell="Pass --field chat=false.",
            )
        if not template or chat is False:
            return self.tokenizer.bos_token or "", ""
        said = [{"role": "user", "content": _CONTENT}]
        try:
            text = self.tokenizer.apply_chat_template(
                said, tokenize=False, add_generation_prompt=True, enable_thinking=False, date_string=DATE
            )
        except (TemplateError, ValueError, TypeError) as cause:
            text = f"({cause!s:.200})"
        before, *after = text.split(_CONTENT)
        if len(after) != 1:
            raise InvalidArgumentError(
                f"{self!r}: its chat template must hold what the user says once, but gives {text!r:.300}.",
                hint_python="Pass chat=False, or say what stands around it: before=..., after=...",
                hint_shell="Pass --field chat=false, or say what stands around it: --field before=... and after=...",
            )
        return before, after[0]


@contextmanager
def _without_bars() -> Iterator[None]:
    """Show no progress bars of transformers."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def _missing(path: Path) -> str:
    """Return what a path does not hold."""
    with suppress(ModelLoadError):
        own = read_header(path).config.get("language_model")
        named = f"; its own is {own.get('name')}" if isinstance(own, dict) else ""
        return f"a trained model of this package, which is no language model{named}. "
    what = "no causal language model could be loaded from there, with a tokenizer and weights as safetensors: "
    return what if path.is_dir() else f"there is no such folder, and, as a name on Hugging Face, {what}"


def _fingerprint(model: Any, tokenizer: Any) -> dict[str, Any]:
    """Return the fingerprint of a language model: its size, and digests of the vocabulary and of some weights.

    The weights are read as bfloat16, so that it does not depend on the type in which they are loaded.
    """
    weights = blake2b(digest_size=8)
    for name, weight in sorted(model.named_parameters()):
        some = weight.detach().flatten()[:LOOKED_AT].to(torch.bfloat16).to("cpu", torch.float32)
        weights.update(f"{name}{tuple(weight.shape)}".encode() + some.numpy().tobytes())
    words = json.dumps(sorted(tokenizer.get_vocab().items())).encode()
    return {
        "hidden_size": int(model.get_input_embeddings().weight.shape[1]),
        "vocabulary": blake2b(words, digest_size=8).hexdigest(),
        "weights": weights.hexdigest(),
    }


def add_adapters(lm: CausalLM, *, rank: int, alpha: int, dropout: float, targets: Sequence[str]) -> Any:
    """Return a language model with adapters, in evaluation mode; its own weights stay as they are.

    Args:
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
                f"GraphPromptConfig: {lm!r} has no linear layers {target!r} to adapt. It has: {last}.",
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


def _is_linear(module: torch.nn.Module) -> bool:
    """Whether a layer is linear: torch's, GPT-2's transposed one, or a quantised one, which are named after it."""
    return isinstance(module, torch.nn.Linear) or type(module).__name__.startswith(("Linear", "Conv1D"))
