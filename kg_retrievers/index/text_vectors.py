"""Vectors of the texts of questions, by the model that an index was built with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from langchain_core.embeddings import Embeddings

from kg_retrievers.errors import StaleIndexError
from kg_retrievers.graph.cache import LocalLock
from kg_retrievers.graph.columns import Array
from kg_retrievers.index.embeddings import embed, embedding_name

#: The largest distance between two embeddings of one text by the same model: machines and batches round differently.
#: Other models are at a distance of about 1.
SAME_VECTOR = 0.05

#: How many vectors of recent texts are kept, since the parts of a question and further questions repeat them.
RECENT_TEXTS = 1024


class TextVectors:
    """Embeds texts that the index does not hold, keeps recent ones, and checks that the model is that of the index.

    Args:
        embeddings: The model.
        dimension: The length of the vectors of the index.
        held: Returns the vectors of the index by their texts.

    Attributes:
        probe: A text and its vector in the index, which the first call compares; None where there is none.
        recent: The vectors of recent texts.
    """

    def __init__(self, embeddings: Embeddings, dimension: int, held: Callable[[], Mapping[str, Array]]) -> None:
        """Begin without recent texts."""
        self.probe: tuple[str, Array] | None = None
        self.recent: dict[str, Array] = {}
        self._embeddings, self._dimension, self._held = embeddings, dimension, held
        self._lock = LocalLock()

    def embed(self, texts: Sequence[str]) -> Array:
        """Embed texts; see `GraphIndex.embed`."""
        probe, held = self.probe, self._held()
        rows = {text: held[text] for text in texts if text in held}
        with self._lock:
            recent = {text: self.recent[text] for text in texts if text in self.recent}
        new = [text for text in dict.fromkeys(texts) if text not in rows and text not in recent]
        wanted = list(dict.fromkeys([*new, probe[0]])) if probe else new
        if wanted:
            recent |= zip(wanted, self.embed_new(wanted), strict=True)
        if probe and np.linalg.norm(recent.pop(probe[0]) - probe[1]) > SAME_VECTOR:
            raise StaleIndexError(
                f"GraphIndex: {embedding_name(self._embeddings)} gives another vector for {probe[0]!r} than the index "
                "holds: another model of that class. Open it with the one it was built with, or build it again."
            )
        self.probe = None  # once is enough
        with self._lock:
            for text, row in recent.items():
                self.recent.pop(text, None)
                self.recent[text] = row
            while len(self.recent) > RECENT_TEXTS:
                del self.recent[next(iter(self.recent))]
        rows |= recent
        return np.array([rows[text] for text in texts], np.float32).reshape(-1, self._dimension)

    def embed_new(self, texts: Sequence[str]) -> Array:
        """Embed texts and keep none of them."""
        return self.checked(embed(self._embeddings, texts, batch_size=len(texts)))

    def checked(self, vectors: Array) -> Array:
        """Return vectors of the embeddings as they are.

        Raises:
            StaleIndexError: If they are not as long as those of the index.
        """
        if vectors.shape[1] != self._dimension:
            raise StaleIndexError(
                f"GraphIndex: its vectors have {self._dimension} numbers, but {embedding_name(self._embeddings)} "
                f"gives {vectors.shape[1]}. Open it with the embeddings it was built with, or build it again."
            )
        return vectors
