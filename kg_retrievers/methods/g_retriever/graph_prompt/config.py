"""The configuration of a graph prompt: its parts, their sizes, and the three settings of the paper."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.validation import checked_dataclass

Encoder = Literal["transformer", "gat", "gcn"]

#: "frozen": the language model stays as it is and reads the graph as soft tokens. "prompt-tuning": it reads learned
#: tokens instead, the same for each question. "lora": it is tuned by low-rank adapters, and reads the graph.
Setting = Literal["frozen", "prompt-tuning", "lora"]

#: The changes of each setting. Appendix B.3: 10 learned tokens stand for the graph if there is no graph encoder. The
#: rank of the adapters is taken from the published code.
SETTINGS: dict[Setting, dict[str, Any]] = {
    "frozen": {},
    "prompt-tuning": {"encoder": None, "soft_tokens": 10},
    "lora": {"lora_rank": 8},
}


@checked_dataclass
class GraphPromptConfig:
    """The input of a language model, and the network that makes its soft tokens.

    The values come from the paper (appendix B.1) and the code published with it. With 10 `soft_tokens`, no encoder is
    its ablation "w/o graph encoder". No projection, and no graph in words, are the other two of table 6.

    Attributes:
        encoder: The graph network. None for learned soft tokens, the same for each question.
        width: The width of the encoder's layers, a multiple of the `heads` for "transformer".
        layers: The number of layers, at least 2.
        heads: The number of heads of attention, without effect on "gcn".
        projection: The width of the hidden layer between encoder and language model. None for no projection: then the
            encoder's last layer is as wide as the language model.
        soft_tokens: How many tokens stand for a graph. 0 only without an encoder, for no soft prompt.
        show_graph: Whether the language model reads the graph in words, too.
        max_context_tokens: The most tokens of the graph in words.
        max_answer_tokens: The most tokens of an answer in training, the end not counted. Room is kept for so many.
        lora_rank: The rank of the adapters in the language model. 0 for none, which leaves all its weights as they are.
        lora_alpha: Divided by the rank, it is the factor of an adapter.
        lora_dropout: The share of an adapter's inputs that is left out in training.
        lora_targets: The names of the language model's linear layers that get an adapter.
        around: The texts before the soft tokens and after the question, with special tokens. None to take them from the
            language model: its chat template, or the token that begins a text, and nothing.

    Raises:
        InvalidArgumentError: If a value is out of range.
    """

    encoder: Encoder | None = "transformer"
    width: int = Field(default=1024, ge=1)
    layers: int = Field(default=4, ge=2)
    heads: int = Field(default=4, ge=1)
    projection: int | None = Field(default=2048, ge=1)
    soft_tokens: int = Field(default=1, ge=0)
    show_graph: bool = True
    max_context_tokens: int = Field(default=512, ge=1)
    max_answer_tokens: int = Field(default=32, ge=1)
    lora_rank: int = Field(default=0, ge=0)
    lora_alpha: int = Field(default=16, ge=1)
    lora_dropout: float = Field(default=0.05, ge=0, lt=1)
    lora_targets: tuple[str, ...] = Field(default=("q_proj", "v_proj"), min_length=1, strict=False)  # a list will do
    around: tuple[str, str] | None = Field(default=None, strict=False)

    def __post_init__(self) -> None:
        """Check that the sizes fit the encoder."""
        if self.encoder is not None and not self.soft_tokens:
            raise ValueError("soft_tokens must be greater than or equal to 1 with an encoder, but got 0.")
        if self.encoder == "transformer" and self.width % self.heads:
            raise ValueError(f"width must be a multiple of heads={self.heads}, but got {self.width}.")

    @classmethod
    def of(cls, setting: Setting, **changes: Any) -> Self:
        """Return one of the paper's settings, with changes.

        Raises:
            InvalidArgumentError: If there is no such setting, or a value is out of range.

        Example:
            >>> lora_alone = GraphPromptConfig.of("lora", encoder=None, soft_tokens=0)
            >>> lora_alone.lora_rank, GraphPromptConfig.of("prompt-tuning").soft_tokens
            (8, 10)
        """
        if setting not in SETTINGS:
            raise InvalidArgumentError(f"GraphPromptConfig: setting is one of {list(SETTINGS)}, but got {setting!r}.")
        return cls(**{**SETTINGS[setting], **changes})
