"""A causal language model with adapters: what it learns, how likely it finds texts, and what it writes (PyTorch)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, Self

from pydantic import Field

from kg_retrievers.core.checked import checked_dataclass
from kg_retrievers.core.checkpoint import load_checkpoint, save_checkpoint
from kg_retrievers.errors import InvalidArgumentError, MissingExtraError, ModelLoadError, ModelMismatchError
from kg_retrievers.methods.rog.tuned_prompts import VERSION

try:
    import torch

    from kg_retrievers.methods.rog.likelihood import Reading
    from kg_retrievers.training.causal_lm import CausalLM
    from kg_retrievers.training.lora import adapter_weights, add_adapters, save_for_peft, set_adapters
except ImportError as cause:
    raise MissingExtraError("A tuned language model", "graph-prompt") from cause

#: The label of a token that is not learned.
_IGNORED = -100


@checked_dataclass
class AdapterConfig:
    """The adapters of a language model, and what stands around what it is told.

    *Differs from RoG*, which changes all weights of Llama-2-Chat-7B: adapters of rank 8 keep these as they are.

    Attributes:
        lora_rank: The rank of the adapters.
        lora_alpha: Divided by the rank, it is the factor of an adapter.
        lora_dropout: The share of an adapter's inputs that is left out in training.
        lora_targets: The names of the language model's linear layers that get an adapter.
        before: The text before what a user says, with special tokens; None to take it from the language model: its
            chat template, or else the token that begins a text.
        after: The text after it; None as for `before`.

    Raises:
        InvalidArgumentError: If a value is out of range.
    """

    lora_rank: int = Field(default=8, ge=1)
    lora_alpha: int = Field(default=16, ge=1)
    lora_dropout: float = Field(default=0.05, ge=0, lt=1)
    lora_targets: tuple[str, ...] = Field(default=("q_proj", "v_proj"), min_length=1)
    before: str | None = None
    after: str | None = None


class Text(NamedTuple):
    """A text to learn.

    Attributes:
        told: The tokens that are read before it.
        label: Its tokens, the end included.
        weight: How much it counts.
    """

    told: tuple[int, ...]
    label: tuple[int, ...]
    weight: float = 1.0


class AdaptedLM:
    """A language model with adapters, which alone are trained.

    Args:
        lm: The language model. It has adapters afterwards, and serves this object alone.
        config: The adapters.
        seed: Of their weights; at first they change nothing, whatever it is.

    Raises:
        InvalidArgumentError: If the language model has adapters already, or no linear layers of a name that gets some.
    """

    def __init__(self, lm: CausalLM, config: AdapterConfig | None = None, *, seed: int = 0) -> None:
        """Add the adapters."""
        lm.check_bare()
        self.lm, self.config = lm, _with_surroundings(config or AdapterConfig(), lm)
        with torch.random.fork_rng(devices=[lm.device] if lm.device.type == "cuda" else []):
            torch.manual_seed(seed)
            self.model: Any = add_adapters(
                "AdapterConfig",
                lm,
                rank=self.config.lora_rank,
                alpha=self.config.lora_alpha,
                dropout=self.config.lora_dropout,
                targets=self.config.lora_targets,
            )

    @property
    def parameters(self) -> dict[str, torch.Tensor]:
        """Everything that is trained, by name; the tensors require gradients."""
        return {name: weight for name, weight in self.model.named_parameters() if weight.requires_grad}

    @property
    def digest(self) -> str:
        """32 hexadecimal digits that change with the adapters and the language model."""
        found = blake2b(repr((self.lm.fingerprint, str(self.lm.model.dtype), self.config)).encode(), digest_size=16)
        for name, weight in sorted(self.parameters.items()):
            found.update(name.encode() + weight.detach().float().cpu().numpy().tobytes())
        return found.hexdigest()

    @property
    def end(self) -> int:
        """The token that ends what it writes."""
        return self.lm.stops[0]

    # --- on disk ----------------------------------------------------------------------------------------------------

    def save(self, folder: Path, method: str, training: Mapping[str, Any]) -> None:
        """Write the adapters to `model.safetensors`, the rest in its metadata, and a copy for peft.

        Raises:
            InvalidArgumentError: If `folder` is a file, or holds a model of Hugging Face.
            FileWriteError: If the disk is full, or this user may not write there.
        """
        named = {"name": self.lm.name, "revision": self.lm.revision, **self.lm.fingerprint}
        config = {"language_model": named, "words": VERSION, **asdict(self.config), "training": dict(training)}
        weights = {name: weight.detach().float().cpu().numpy() for name, weight in adapter_weights(self.model).items()}
        save_checkpoint(folder, method, config, weights)
        save_for_peft(self.model, self.lm.name, folder)

    @classmethod
    def read(
        cls, who: str, folder: Path, method: str, llm: str | Path | CausalLM | None
    ) -> tuple[Self, dict[str, Any]]:
        """Read what `save` wrote, and say what it was trained on.

        Args:
            who: What is read, for messages.
            folder: The folder.
            method: The method of the checkpoint.
            llm: The language model of the training, or its name or folder; None to load it under the name it had.

        Raises:
            ModelLoadError: If there is no such model, it is damaged, or its language model cannot be loaded.
            ModelMismatchError: If language model or words are others than in the training.
        """
        config, weights = load_checkpoint(folder, method)
        try:
            named, words, training = config["language_model"], config["words"], config["training"]
            known = {field.name: config[field.name] for field in fields(AdapterConfig)}
            settings = AdapterConfig(**{**known, "lora_targets": tuple(known["lora_targets"])})
            name, revision = named["name"], named["revision"]
        except (KeyError, TypeError, InvalidArgumentError) as cause:
            raise ModelLoadError(f"config and weights are not those of a {method} model: {cause}", folder) from cause
        if words != VERSION:
            raise ModelMismatchError(
                f"{who}: {folder} was trained on words of version {words!r:.20}, and these are of version {VERSION!r}. "
                "Train it again, or take the release of kg-retrievers that it was trained with."
            )
        if not isinstance(llm, CausalLM):
            llm = CausalLM.load(llm or name, revision=None if llm else revision)
        llm.check_trained_with(who, named, folder)
        adapted = cls(llm, settings)
        try:
            set_adapters(adapted.model, {key: torch.from_numpy(array) for key, array in weights.items()})
        except ValueError as cause:
            raise ModelLoadError(f"config and weights are not those of a {method} model: {cause}", folder) from cause
        return adapted, training

    # --- what is read and learned -----------------------------------------------------------------------------------

    def told(self, text: str, room: int) -> tuple[int, ...]:
        """Return the tokens of what a user says, with what stands around it.

        Args:
            text: What the user says.
            room: The most tokens of the reply.

        Raises:
            InvalidArgumentError: If the language model has no room for it.
        """
        before = self.lm.encode(self.config.before or "", special=True)
        after = self.lm.encode(self.config.after or "", special=True)
        tokens = (*before, *self.lm.encode(text), *after)
        if len(tokens) + room > self.lm.max_tokens:
            raise InvalidArgumentError(
                f"{self.lm!r} reads {self.lm.max_tokens:,} tokens in all, and {text!r:.100} with a reply of {room:,} "
                f"needs {len(tokens) + room:,}. Ask a shorter question, or show less evidence."
            )
        return tokens

    def losses(self, texts: Sequence[Text]) -> torch.Tensor:
        """Return the loss of each text, shape (texts): the sum of -log p over its tokens."""
        longest = max(len(text.told) + len(text.label) for text in texts)
        ids = torch.full((len(texts), longest), self.end)
        wanted = torch.full((len(texts), longest), _IGNORED)
        for row, text in enumerate(texts):
            size = len(text.told) + len(text.label)
            ids[row, :size] = torch.tensor(text.told + text.label)
            wanted[row, len(text.told) : size] = torch.tensor(text.label)
        # What follows a text does not change it: each token is read after those before it alone.
        first = min(len(text.told) for text in texts) - 1
        ids, wanted = ids.to(self.lm.device), wanted.to(self.lm.device)
        hidden = self.model(input_ids=ids, use_cache=False).logits[:, first:-1].float()
        wanted = wanted[:, first + 1 :]
        each = torch.nn.functional.cross_entropy(
            hidden.flatten(0, 1), wanted.flatten(), ignore_index=_IGNORED, reduction="none"
        )
        return each.view(wanted.shape).sum(1)

    # --- what is likely, and what is written ------------------------------------------------------------------------

    def reading(self, tokens: Sequence[int]) -> Reading:
        """Return what is likely to follow some tokens."""
        return Reading.of(self.model, self.end, tokens, None)

    @torch.no_grad()
    def write(self, told: Sequence[int], max_new_tokens: int) -> list[int]:
        """Return the most likely tokens, one after the other, up to the end, which is left out."""
        given: dict[str, Any] = {"input_ids": torch.tensor([told], device=self.lm.device)}
        written: list[int] = []
        for _ in range(max_new_tokens):
            found = self.model(**given, use_cache=True)
            token = int(found.logits[0, -1].argmax())
            if token in self.lm.stops:
                break
            written.append(token)
            given = {"input_ids": torch.tensor([[token]], device=self.lm.device)}
            given["past_key_values"] = found.past_key_values
        return written

    @torch.no_grad()
    def beams(self, told: Sequence[int], max_new_tokens: int, width: int) -> list[list[int]]:
        """Return the tokens of the texts that a beam search finds, best first, without their ends."""
        ids = torch.tensor([told], device=self.lm.device)
        found = self.model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=max_new_tokens,
            num_beams=width,
            num_return_sequences=width,
            do_sample=False,
            pad_token_id=self.end,
        )
        rows: list[list[int]] = found[:, len(told) :].tolist()
        return [[token for token in row if token not in self.lm.stops] for row in rows]


def _with_surroundings(config: AdapterConfig, lm: CausalLM) -> AdapterConfig:
    """Take the texts before and after what a user says from the language model, where they are not given."""
    if config.before is not None and config.after is not None:
        return config
    before, after = lm.around(None)
    return replace(
        config,
        before=before if config.before is None else config.before,
        after=after if config.after is None else config.after,
    )
