"""A small sentence encoder: short texts as unit vectors, in which the order of words counts. numpy only.

BERT as MiniLM has it (Wang et al. 2020, arXiv:2002.10957): the states of the tokens pass some layers of self-attention,
and their mean is the vector of the text. Weights are stored as int8, a scale per row, and computed in float32.

Trained by `benchmarks/sentence_encoder` (see `docs/model-card.md`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np
from langchain_core.embeddings import Embeddings

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.columns import Array
from kg_retrievers.index.embeddings import TokenTable, embed, read_packaged, token_table
from kg_retrievers.questions.zero_shot.scorer import OTHER, TOPIC, Network, gelu, unit

#: The encoder of the package.
ENCODER = Path(__file__).parent / "sentence_encoder.safetensors"

#: The longest text in tokens. The rest of a longer one is not read.
MAX_TOKENS = 64

#: How many texts are remembered with their vectors.
REMEMBERED = 1_024

#: The places of a step in a walk, each with a matrix of its own.
ROLES = ("only", "first", "middle", "last")

#: The number of attention heads.
HEADS = 12


def read_phrase(question: str) -> str:
    """Return a masked question as the encoder reads it.

    Example:
        >>> read_phrase("Who trained [x] in [y]")
        'Who trained x in y'
    """
    return question.replace(TOPIC, "x").replace(OTHER, "y")


class SentenceEncoder(Network):
    """Encodes short English texts. Threads may share one.

    Args:
        weights: float32, by the names of the file. Layers are numbered from 0.
        table: Its tokens are the rows of "tokens".
    """

    def __init__(self, weights: Mapping[str, Array], table: TokenTable) -> None:
        """Count the layers."""
        super().__init__(weights, 1e-12)
        self._table = table
        self._remembered: Callable[[str], Array] = lru_cache(maxsize=REMEMBERED)(self._vector)
        self._layers = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("layers."))

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        return int(self._weights["positions"].shape[1])

    def vectors(self, texts: Sequence[str]) -> Array:
        """Return a unit vector for each text, float32 of shape (texts, dimension). Equal texts have equal vectors."""
        return (
            np.stack([self._remembered(text) for text in texts]) if texts else np.empty((0, self.dimension), np.float32)
        )

    def place(self, step: Array, place: str) -> Array:
        """Return the vector of a step in one of the places `ROLES`."""
        return np.asarray(step @ self._weights["roles"][ROLES.index(place)])

    def _vector(self, text: str) -> Array:
        """Return the vector of a text. Each goes alone, so that others do not change how its sums are rounded."""
        w, ids = self._weights, np.array(self._table.token_ids(text)[: MAX_TOKENS - 2], np.int64)
        x = np.concatenate([w["ends"][:1], w["tokens"][ids] * w["token_scales"][ids, None], w["ends"][1:]])
        x = self._normed("norm", x + w["positions"][: len(x)])
        for layer in range(self._layers):
            x = self._layer(f"layers.{layer}", x)
        return unit(x.mean(axis=0))

    def _layer(self, name: str, x: Array) -> Array:
        x = self._normed(f"{name}.norm1", x + self._attended(name, x, HEADS))
        hidden = gelu(self._linear(f"{name}.up", x))
        return self._normed(f"{name}.norm2", x + self._linear(f"{name}.down", hidden))


def places(walk: Sequence[int]) -> list[tuple[str, int]]:
    """Return each step of a walk with its place, one of `ROLES`."""
    if len(walk) == 1:
        return [("only", walk[0])]
    return [("first", walk[0]), *(("middle", step) for step in walk[1:-1]), ("last", walk[-1])]


class Encoder(Protocol):
    """An encoder of questions and walks: `SentenceEncoder`, or `EmbeddingsEncoder` over a model of your own."""

    def vectors(self, texts: Sequence[str]) -> Array:
        """Return a unit vector for each text."""

    def place(self, step: Array, place: str) -> Array:
        """Return the vector of a step in one of the places `ROLES` of a walk."""


class EmbeddingsEncoder:
    """Any LangChain embeddings as the encoder. The ranking is fitted to the cosines of the package's own encoder.

    Args:
        embeddings: For sentences, such as `local_embeddings(model)`.

    Raises:
        InvalidArgumentError: If it is none.
    """

    def __init__(self, embeddings: Embeddings) -> None:
        """Keep the embeddings."""
        if not isinstance(embeddings, Embeddings):
            raise InvalidArgumentError(
                "QuestionReader: encoder must be LangChain embeddings, as local_embeddings(folder) gives them, "
                f"but got {embeddings!r:.100}."
            )
        self._embeddings = embeddings

    def vectors(self, texts: Sequence[str]) -> Array:
        """Return a unit vector for each text."""
        return embed(self._embeddings, list(texts))

    def place(self, step: Array, place: str) -> Array:
        """Return the vector of a step, the same in each place."""
        return step


class StepMeanings:
    """The vectors of the steps of a graph, each encoded when it is first needed.

    Args:
        phrases: The steps in words, by label.
        encoder: Encodes them.
    """

    def __init__(self, phrases: Sequence[str], encoder: Encoder) -> None:
        """Begin with none."""
        self._phrases, self._encoder = phrases, encoder
        self._steps: dict[int, Array] = {}
        self._placed: dict[tuple[str, int], Array] = {}

    def joined(self, walks: Sequence[Sequence[int]]) -> Array:
        """Return a unit vector for each walk, (walks, dimension): the sum of those of its steps, each by its place."""
        new = sorted({label for walk in walks for label in walk if label not in self._steps})
        self._steps |= zip(new, self._encoder.vectors([self._phrases[label] for label in new]), strict=True)
        sums = [np.sum([self._in_place(*one) for one in places(walk)], axis=0) for walk in walks]
        return unit(np.stack(sums))

    def _in_place(self, place: str, label: int) -> Array:
        key = place, label
        if key not in self._placed:
            self._placed[key] = self._encoder.place(self._steps[label], place)
        return self._placed[key]


@lru_cache(maxsize=1)
def sentence_encoder() -> SentenceEncoder:
    """Return the encoder of the package, read once for each process.

    Raises:
        IndexLoadError: If the file is missing or damaged.
    """
    return read_packaged(
        ENCODER, "sentence encoder", lambda stored: SentenceEncoder(read_weights(stored), token_table())
    )


def read_weights(stored: Mapping[str, Array]) -> dict[str, Array]:
    """Return weights in float32: int8 rows times their scales. The vectors of tokens stay int8."""
    weights: dict[str, Array] = {}
    for name, tensor in stored.items():
        if name == "tokens" or name.endswith(".scales"):
            continue
        scales = stored.get(f"{name}.scales")
        weights[name] = tensor.astype(np.float32) * (1 if scales is None else scales.astype(np.float32)[..., None])
    return weights | {"tokens": stored["tokens"], "token_scales": stored["tokens.scales"].astype(np.float32)}
