"""Find the names, relations, types and triples nearest to a text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from langchain_core.embeddings import Embeddings

from kg_retrievers.algorithms.candidates import Candidates
from kg_retrievers.datasets import check_length
from kg_retrievers.errors import InvalidArgumentError, StaleIndexError
from kg_retrievers.graph import KnowledgeGraph, readable
from kg_retrievers.graph.cache import LocalLock, Recent
from kg_retrievers.graph.columns import Array, StringTable, distinct
from kg_retrievers.graph.validation import check_integer
from kg_retrievers.index.embeddings import embed, embedding_name
from kg_retrievers.index.exact_search import ExactSearch
from kg_retrievers.index.parts import Search, triple_texts

#: How far every other name is at least from a text that equals a name. Embeddings may be blind to case, and MetaQA has
#: 3,081 groups of names that differ by case only. Rounding alone gives equal texts distances of up to 5e-4.
EXACT_NAME_MARGIN = 1e-3


def find_nearest(
    search: Search,
    table: StringTable,
    texts: Sequence[str],
    k: int,
    embed: Callable[[Sequence[str]], Array],
    exact: Callable[[str], Sequence[int]],
) -> list[Candidates]:
    """Find the ids of a table that are nearest to each text.

    Args:
        search: Finds vectors of the table.
        table: The names.
        texts: The texts.
        k: How many to find for each, 1 or more. A text that equals so many is not embedded.
        embed: Embeds texts.
        exact: Returns the ids that a text equals.

    Raises:
        InvalidArgumentError: If k is less than 1, `texts` is one text, or a text is too long and no name.
        StaleIndexError: If the embeddings do not fit the index.
    """
    if isinstance(texts, str):
        raise InvalidArgumentError(f"GraphIndex: wanted a list of texts, but got the text {texts!r}.")
    check_integer(k, "GraphIndex: k")
    if not len(table) or not texts:
        return [Candidates(np.empty(0, np.int32), np.empty(0, np.float32)) for _ in texts]

    equal = {text: exact(text) for text in texts}
    for text in texts:
        if not equal[text]:
            check_length(text, "GraphIndex: a text")
    vague = [text for text in texts if len(equal[text]) < min(k, len(table))]  # those of the others are all found
    rows = {}
    if vague and len(search):  # else none of the names can be found
        found = search.search(embed([readable(text) for text in vague]), min(k, len(table)))
        rows = dict(zip(vague, zip(*found, strict=True), strict=True))
    nothing = np.empty(0, np.int64), np.empty(0, np.float32)
    return [_exact_first(*rows.get(text, nothing), equal[text]) for text in texts]


def ids_by_text(table: StringTable) -> dict[str, list[int]]:
    """Map each string to its ids, also by its readable form.

    A readable form is left out if it is another string of the table.
    """
    ids: dict[str, list[int]] = {}
    for id, string in enumerate(table):
        ids.setdefault(readable(string), []).append(id)
    return ids | {string: [id] for id, string in enumerate(table)}


def _exact_first(ids: Array, distances: Array, exact: Sequence[int]) -> Candidates:
    """Give exact matches a distance of 0, and others the margin.

    Missing exact matches take the place of the last ones.
    """
    if exact:
        others = ~np.isin(ids, exact)
        rest = max(len(ids) - len(exact), 0)
        far = np.maximum(distances[others][:rest], np.float32(EXACT_NAME_MARGIN))
        ids = np.concatenate([exact, ids[others][:rest]])
        distances = np.concatenate([np.zeros(len(exact), np.float32), far])
    return sorted_candidates(ids, distances)


def sorted_candidates(ids: Array, distances: Array) -> Candidates:
    """Sort by distance, then id, and keep each id once."""
    order = np.lexsort((ids, distances))
    _, first = np.unique(ids[order], return_index=True)
    kept = order[np.sort(first)]
    return Candidates(ids[kept].astype(np.int32), distances[kept])


#: The largest distance between two embeddings of one text by the same model: machines and batches round differently.
#: Other models are at a distance of about 1.
SAME_VECTOR = 0.05

#: How many vectors of recent texts are kept, since the parts of a question and further questions repeat them.
RECENT_TEXTS = 1024


class TextVectors:
    """Embed texts that the index does not hold, and keep recent ones.

    It checks that the model is the same as for the index.

    Args:
        embeddings: The model.
        dimension: The length of the vectors of the index.
        held: Returns the vectors of the index by their texts.

    Attributes:
        probe: A text and its vector in the index, which the first call compares. None if there is none.
    """

    def __init__(self, embeddings: Embeddings, dimension: int, held: Callable[[], Mapping[str, Array]]) -> None:
        """Begin without recent texts."""
        self.probe: tuple[str, Array] | None = None
        self._recent: Recent[Array] = Recent(RECENT_TEXTS)
        self._embeddings, self._dimension, self._held = embeddings, dimension, held

    def embed(self, texts: Sequence[str]) -> Array:
        """Embed texts.

        See `GraphIndex.embed`.
        """
        probe, held = self.probe, self._held()
        rows = {text: held[text] for text in texts if text in held}
        recent = self._recent.get_all(texts)
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
        self._recent.keep(recent)
        rows |= recent
        return np.array([rows[text] for text in texts], np.float32).reshape(-1, self._dimension)

    def embed_new(self, texts: Sequence[str]) -> Array:
        """Embed texts and keep none of them."""
        return self.checked(embed(self._embeddings, texts, batch_size=len(texts)))

    def checked(self, vectors: Array) -> Array:
        """Return vectors of the embeddings as they are.

        Raises:
            StaleIndexError: If they differ in length from the vectors of the index.
        """
        if vectors.shape[1] != self._dimension:
            raise StaleIndexError(
                f"GraphIndex: its vectors have {self._dimension} numbers, but {embedding_name(self._embeddings)} "
                f"gives {vectors.shape[1]}. Open it with the embeddings it was built with, or build it again."
            )
        return vectors


#: How many triples are embedded at once.
TRIPLE_BATCH = 1024

#: Similarities of triples are rounded to so many decimals. One text embedded in two batches has cosines that differ by
#: up to 2e-7 (MiniLM): of 6 decimals, up to 3 % of them would still differ, of 5 only 0.3 %.
SIMILARITY_DECIMALS = 5


class TripleVectors:
    """The vectors of the triples of a graph, made when they are first needed. Safe to share between threads.

    Args:
        graph: The graph.
        dimension: The length of the vectors.
        embed: Embeds texts.
        search: The vectors of all triples, if they are made.
    """

    def __init__(
        self, graph: KnowledgeGraph, dimension: int, embed: Callable[[Sequence[str]], Array], search: Search | None
    ) -> None:
        """Take the parts that are made."""
        self._graph, self._dimension, self._embed = graph, dimension, embed
        self._whole = search
        # The vectors that are made, in the order in which they were needed; behind them is room for more.
        self._vectors, self._count = np.empty((0, dimension), np.float32), 0
        # The row of each triple, counted from 1; 0 where it is not made. The system keeps what is never written.
        self._rows = np.zeros(len(graph) if search is None else 0, np.int32)
        self._lock = LocalLock()

    def search(self) -> Search | None:
        """Return the vectors of all triples, or None unless all are embedded."""
        if self._whole is None and 0 < len(self._graph) == self._count:
            self._whole = ExactSearch(self._vectors[: self._count], self._rows - 1)
        return self._whole

    def similarities(self, direction: Array, triples: Array | None) -> Array:
        """Return the cosine of a vector and each given triple.

        See `GraphIndex.triple_similarities`.

        Args:
            direction: A unit vector.
            triples: Ids of triples. None stands for all.
        """
        direction = direction.astype(np.float64)
        ids = np.arange(len(self._graph)) if triples is None else triples
        vectors, rows = self._made(ids)
        # In float64, so that it does not matter which rows are beside a row; BLAS threads would wait for each other.
        if triples is None:
            cosines: Array = np.einsum("ij,j->i", vectors, direction)[rows]
        else:
            cosines = np.einsum("ij,j->i", vectors[rows], direction)
        return (np.round(cosines, SIMILARITY_DECIMALS) + 0.0).astype(np.float32)  # 0.0 instead of -0.0

    def _made(self, ids: Array) -> tuple[Array, Array]:
        """Return vectors, and the rows of some triples among them.

        Missing vectors are made.
        """
        if (whole := self.search()) is not None:
            return whole.vectors, ids if whole.rows is None else whole.rows[ids]
        rows = self._rows[ids]
        if rows.all():  # nobody waits for a model that makes others
            return self._vectors, rows - 1
        with self._lock:
            new = distinct(ids[self._rows[ids] == 0])
            if (needed := self._count + len(new)) > len(self._vectors):  # make room for as many again
                larger = np.empty((min(len(self._graph), 2 * needed), self._dimension), np.float32)
                larger[: self._count] = self._vectors[: self._count]
                self._vectors = larger
            for start in range(0, len(new), TRIPLE_BATCH):
                batch = new[start : start + TRIPLE_BATCH]
                end = self._count + len(batch)
                self._vectors[self._count : end] = self._embed(triple_texts(self._graph, batch))
                self._rows[batch] = np.arange(self._count, end) + 1
                self._count = end
            return self._vectors[: self._count], self._rows[ids] - 1


class PartNames(ExactSearch):
    """The names of a part of a connected graph.

    Each is embedded when it is needed, and some can be found.

    Args:
        graph: The part.
        found: The ids of the names that a search may find.
        embed: Embeds texts.
    """

    def __init__(self, graph: KnowledgeGraph, found: Array, embed: Callable[[Sequence[str]], Array]) -> None:
        """Begin without vectors."""
        self._graph, self._found, self._embed = graph, found, embed

    def __len__(self) -> int:
        """The number of names that can be found."""
        return len(self._found)

    def vectors_of(self, ids: Array) -> Array:
        """Return the vectors of some names, float32, shape (n, d)."""
        return self._embed([readable(self._graph.names[id]) for id in ids.tolist()])

    def search(self, vectors: Array, k: int) -> tuple[Array, Array]:
        """Find the nearest names.

        See `ExactSearch.search`.
        """
        ids, distances = ExactSearch(self.vectors_of(self._found)).search(vectors, k)
        return self._found[ids], distances
