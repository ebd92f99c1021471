"""Load causal language models of Hugging Face, with fingerprints and low-rank adapters.

A fingerprint distinguishes one language model from another. The adapters follow E. Hu et al., LoRA: Low-Rank Adaptation
of Large Language Models, ICLR 2022, arXiv:2106.09685, as peft computes them (extra `graph-prompt`).
"""

from __future__ import annotations

import json
import re
import warnings
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

from kg_retrievers.errors import InvalidArgumentError, MissingExtraError, ModelLoadError, named_arguments
from kg_retrievers.graph.cache import LocalLock
from kg_retrievers.methods.g_retriever.graph_prompt.config import GraphPromptConfig
from kg_retrievers.paths import checked_path

try:
    import torch
    from peft import LoraConfig, get_peft_model
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM, AutoTokenizer, TextIteratorStreamer
except ModuleNotFoundError as cause:  # of a package that is there but broken, its own error says more
    raise MissingExtraError("A language model that reads graph prompts", "graph-prompt") from cause

#: How many values of each weight make the fingerprint, which distinguishes one language model from another.
LOOKED_AT = 16

#: The day that a chat template gets, if it asks for one: the same in training and in all answers.
DATE = "26 Jul 2024"

#: Stands for a user's message, to find the text that a chat template puts around it.
_CONTENT = "GRAPH-AND-QUESTION"


class CausalLM:
    """A language model and its tokenizer. Its weights are frozen, and it is put into evaluation mode.

    Args:
        model: A causal language model of transformers, without adapters.
        tokenizer: Its tokenizer.
        name: Its name on Hugging Face, or its folder.
        revision: Which version of it.

    Attributes:
        fingerprint: 16 hexadecimal digits that change with the vocabulary and the weights.

    Raises:
        InvalidArgumentError: If the tokenizer has no token that ends a text.
    """

    @named_arguments
    def __init__(self, model: Any, tokenizer: Any, *, name: str, revision: str | None = None) -> None:
        """Freeze the model and take its fingerprint."""
        if tokenizer.eos_token_id is None:
            raise InvalidArgumentError(
                f"CausalLM: the tokenizer of {name} has no token that ends a text, so an answer would have no end. Set "
                "its eos_token, or take another model."
            )
        self.model, self.tokenizer = model.requires_grad_(False).eval(), tokenizer
        self.name, self.revision = name, revision
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

        Load a quantised language model with transformers, and hand it to `CausalLM`.

        Args:
            name: Its name on Hugging Face, or a folder.
            revision: Which version of it: a branch, tag or commit.
            dtype: The type of its weights, such as "float32" and "bfloat16", or "auto" for the type in which they are
                stored.
            device: "cpu", "cuda", "cuda:1" and so on. None for the choice of transformers, which takes a GPU if there
                is one.

        Raises:
            ModelLoadError: If the model cannot be loaded.
        """
        is_folder = checked_path(name, ModelLoadError).is_dir()
        name = str(Path(name).resolve()) if is_folder else str(name)
        safe: dict[str, Any] = {"revision": revision, "trust_remote_code": False}
        load: Any = partial(AutoModelForCausalLM.from_pretrained, use_safetensors=True, output_loading_info=True)
        try:
            tokenizer = AutoTokenizer.from_pretrained(name, **safe)
            model, info = load(name, **safe, dtype=dtype, device_map=device or "auto")
            if info["missing_keys"]:
                raise ValueError(f"its file has no weights {sorted(info['missing_keys'])[:3]}.")
        except (OSError, ValueError, KeyError, ImportError, RuntimeError, AssertionError, SafetensorError) as cause:
            where = "" if is_folder else "there is no such folder, and, as a name on Hugging Face, "
            raise ModelLoadError(
                f"{where}no causal language model could be loaded from there, with a tokenizer and weights as "
                f"safetensors: {cause!s:.300}",
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

    @property
    def dtype(self) -> str:
        """The type of its weights, such as "float32" or "bfloat16"."""
        return str(self.model.dtype).removeprefix("torch.")

    @property
    def device(self) -> torch.device:
        """The device of the inputs."""
        return torch.device(self.model.device)

    @property
    def hidden_size(self) -> int:
        """The length of the vectors of its tokens."""
        return int(self.model.get_input_embeddings().weight.shape[1])

    @property
    def max_tokens(self) -> int:
        """The most tokens that it reads and writes in all."""
        config = self.model.config.get_text_config()
        limits = (getattr(config, "max_position_embeddings", None), self.tokenizer.model_max_length)
        return int(min(limit for limit in limits if limit))

    @property
    def stops(self) -> tuple[int, ...]:
        """The tokens that end an answer. The first is the one that ends it in training."""
        more = self.model.generation_config.eos_token_id
        more = [] if more is None else [more] if isinstance(more, int) else more
        return tuple(dict.fromkeys([self.tokenizer.eos_token_id, *more]))

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Return the tokens of a text, nothing added.

        Args:
            text: The text.
            special: Whether special tokens that are written out, such as "</s>", are read as special tokens rather than
                as text. Never set it for text from a graph or a user.
        """
        parts = [text] if special else self._within_marks.split(text)
        with self._lock:  # a tokenizer must not be used by two threads at once
            rows = self.tokenizer(parts, add_special_tokens=False, verbose=False)["input_ids"]
        return [token for row in rows for token in row]

    def streamer(self) -> TextIteratorStreamer:
        """Return a streamer that takes tokens on one thread, and yields their text on another."""
        return TextIteratorStreamer(self.tokenizer, skip_special_tokens=True)

    def around(self) -> tuple[str, str]:
        """Return the texts before and after a user's message, from the chat template if there is one.

        Raises:
            InvalidArgumentError: If the template does not hold the user's message exactly once.
        """
        if not self.tokenizer.chat_template:
            return self.tokenizer.bos_token or "", ""
        said = [{"role": "user", "content": _CONTENT}]
        text = self.tokenizer.apply_chat_template(
            said, tokenize=False, add_generation_prompt=True, enable_thinking=False, date_string=DATE
        )
        before, *after = text.split(_CONTENT)
        if len(after) != 1:
            raise InvalidArgumentError(
                f"{self!r}: its chat template must hold what the user says once, but gives {text!r:.300}.",
                hint_python="Say what stands around it: around=(before, after).",
            )
        return before, after[0]


def _fingerprint(model: Any, tokenizer: Any) -> str:
    """Return a digest of the vocabulary and of some values of each weight.

    The weights are read as bfloat16, so that it does not depend on the type in which they are loaded.
    """
    digest = blake2b(json.dumps(sorted(tokenizer.get_vocab().items())).encode(), digest_size=8)
    for name, weight in sorted(model.named_parameters()):
        some = weight.detach().flatten()[:LOOKED_AT].to(torch.bfloat16).to("cpu", torch.float32)
        digest.update(f"{name}{tuple(weight.shape)}".encode() + some.numpy().tobytes())
    return digest.hexdigest()


def add_adapters(lm: CausalLM, config: GraphPromptConfig) -> Any:
    """Return a language model with adapters, in evaluation mode. Its own weights stay as they are.

    Raises:
        InvalidArgumentError: If the language model has no linear layers of the names in `lora_targets`.
    """
    adapters = LoraConfig(
        r=config.lora_rank,
        lora_alpha=config.lora_alpha,
        lora_dropout=config.lora_dropout,
        target_modules=list(config.lora_targets),
        task_type="CAUSAL_LM",
    )
    try:
        with warnings.catch_warnings(action="ignore", category=FutureWarning):  # of transformers, at peft
            return get_peft_model(lm.model, adapters).eval()
    except ValueError as cause:
        raise InvalidArgumentError(
            f"GraphPromptConfig: {lm!r} cannot be adapted: {cause!s:.300}",
            hint_python="Load it anew, and name linear layers of it: lora_targets=(...).",
        ) from cause
