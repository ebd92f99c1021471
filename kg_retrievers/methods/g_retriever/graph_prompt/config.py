"""What a graph prompt is made of, its sizes, and the three settings of the paper."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, Self, get_args

from kg_retrievers.errors import InvalidArgumentError

Encoder = Literal["transformer", "gat", "gcn"]

#: "frozen": the language model stays as it is and reads the graph as soft tokens. "prompt-tuning": it reads learned
#: tokens instead, the same for each question. "lora": it is tuned by low-rank adapters, and reads the graph.
Setting = Literal["frozen", "prompt-tuning", "lora"]

#: Appendix B.3: how many learned tokens stand for the graph, where there is no graph encoder.
LEARNED_TOKENS = 10

#: The rank of the adapters in the published code.
LORA_RANK = 8


@dataclass(frozen=True)
class GraphPromptConfig:
    """What is put in front of a language model, and what it reads.

    The values are those of the paper (appendix B.1) and the code published with it. With 10 `soft_tokens`, no encoder
    is its ablation "w/o graph encoder"; no projection, and no graph in words, are the other two of table 6.

    Attributes:
        encoder: The graph network; None for learned soft tokens, the same for each question.
        width: Of the encoder's layers, a multiple of the `heads`.
        layers: How many; at least 2.
        heads: Of attention; without effect on "gcn".
        projection: The width of the hidden layer between encoder and language model; None for no projection: then the
            encoder's last layer is as wide as the language model.
        soft_tokens: How many tokens stand for a graph; 0 only without an encoder, for no soft prompt.
        edges: Whether the encoder is given the edges.
        show_graph: Whether the language model reads the graph in words, too.
        show_question: Whether it reads the question.
        max_context_tokens: The most tokens of the graph in words.
        max_answer_tokens: The most tokens of an answer in training, the end not counted; room is kept for so many.
        lora_rank: Of the adapters in the language model; 0 for none, which leaves all of its weights as they are.
        lora_alpha: What is divided by the rank is the factor of an adapter.
        lora_dropout: In training, what share of an adapter's inputs is left out.
        lora_targets: Which linear layers of the language model get an adapter.
        before: What stands before the soft tokens, as text with special tokens; None to take it from the language
            model: its chat template, or else the token that begins a text.
        after: What stands after the question; None as for `before`.

    Raises:
        InvalidArgumentError: If a value is out of range.
    """

    encoder: Encoder | None = "transformer"
    width: int = 1024
    layers: int = 4
    heads: int = 4
    projection: int | None = 2048
    soft_tokens: int = 1
    edges: bool = True
    show_graph: bool = True
    show_question: bool = True
    max_context_tokens: int = 512
    max_answer_tokens: int = 32
    lora_rank: int = 0
    lora_alpha: int = 16
    lora_dropout: float = 0.05
    lora_targets: tuple[str, ...] = ("q_proj", "v_proj")
    before: str | None = None
    after: str | None = None

    def __post_init__(self) -> None:
        """Check the values."""
        least = {"width": 1, "layers": 2, "heads": 1, "soft_tokens": int(self.encoder is not None), "lora_rank": 0}
        least |= {"max_context_tokens": 1, "max_answer_tokens": 1, "lora_alpha": 1}
        for name, lowest in least.items():
            self._check_whole(name, lowest)
        if self.projection is not None:
            self._check_whole("projection", 1)
        for name in ("edges", "show_graph", "show_question"):
            if not isinstance(getattr(self, name), bool):
                raise self._wrong(name, "true or false")
        if self.encoder is not None and self.encoder not in get_args(Encoder):
            raise self._wrong("encoder", f"one of {list(get_args(Encoder))}, or None")
        if self.encoder == "transformer" and self.width % self.heads:
            raise self._wrong("width", f"a multiple of heads={self.heads}")
        if not isinstance(self.lora_dropout, float | int) or not 0 <= self.lora_dropout < 1:
            raise self._wrong("lora_dropout", "0 or more, and below 1")
        targets = self.lora_targets
        if not isinstance(targets, tuple) or not targets or not all(isinstance(name, str) for name in targets):
            raise self._wrong(
                "lora_targets",
                "names of layers",
                hint_python='Give a tuple, as in ("q_proj", "v_proj").',
                hint_shell="""Give --field 'lora_targets=["q_proj", "v_proj"]'.""",
            )
        for name in ("before", "after"):
            if not isinstance(getattr(self, name), str | None):
                raise self._wrong(name, "a text, or None")

    def _check_whole(self, name: str, least: int) -> None:
        value = getattr(self, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self._wrong(name, f"a whole number, {least} or more")

    def _wrong(self, name: str, wanted: str, **hints: str) -> InvalidArgumentError:
        got = getattr(self, name)
        return InvalidArgumentError(f"GraphPromptConfig: {name} must be {wanted}, but got {got!r}.", **hints)

    @classmethod
    def of(cls, setting: Setting, **changes: Any) -> Self:
        """Return one of the paper's settings, with changes.

        Raises:
            InvalidArgumentError: If there is no such setting or field, or a value is out of range.

        Example:
            >>> lora_alone = GraphPromptConfig.of("lora", encoder=None, soft_tokens=0)
            >>> lora_alone.lora_rank, GraphPromptConfig.of("prompt-tuning").soft_tokens
            (8, 10)
        """
        own: dict[str, dict[str, Any]] = {
            "frozen": {},
            "prompt-tuning": {"encoder": None, "soft_tokens": LEARNED_TOKENS},
            "lora": {"lora_rank": LORA_RANK},
        }
        if setting not in own:
            raise InvalidArgumentError(f"GraphPromptConfig: setting is one of {list(own)}, but got {setting!r}.")
        known = [field.name for field in fields(cls)]
        if unknown := sorted(set(changes) - set(known)):
            raise InvalidArgumentError(f"GraphPromptConfig: there is no field {unknown[0]!r}. There are: {known}.")
        if setting == "prompt-tuning" and changes.get("encoder") is not None:
            raise InvalidArgumentError(
                f"GraphPromptConfig: prompt tuning has no encoder, but got {changes['encoder']!r}.",
                hint_python='Leave it out, or take setting="frozen".',
                hint_shell="Leave it out, or take --setting frozen.",
            )
        return cls(**{**own[setting], **changes})
