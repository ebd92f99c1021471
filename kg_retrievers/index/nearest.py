"""What is nearest to texts: names by their vectors, with those that a text equals at a distance of 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kg_retrievers.algorithms.candidates import Candidates
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.columns import Array, StringTable
from kg_retrievers.graph.verbalize import readable
from kg_retrievers.index.vector_store import ExactSearch, NameSearch, stale_store

#: How far every other name is at least from a text that equals a name. Embeddings may be blind to case, and MetaQA has
#: 3,081 groups of names that differ by case only; rounding alone gives equal texts distances of up to 5e-4.
EXACT_NAME_MARGIN = 1e-3


def find_nearest(
    search: NameSearch,
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
        k: How many to find for each; 1 or more. A text that equals so many is not embedded.
        embed: Embeds texts.
        exact: Returns the ids that a text equals.

    Raises:
        InvalidArgumentError: If k is less than 1 or `texts` is one text.
        StaleIndexError: If the embeddings or the store do not fit the index.
    """
    if isinstance(texts, str):
        raise InvalidArgumentError(f"GraphIndex: wanted a list of texts, but got the text {texts!r}.")
    if k < 1:
        raise InvalidArgumentError(f"GraphIndex: k must be 1 or more, but got {k}.")
    if not len(table) or not texts:
        return [Candidates(np.empty(0, np.int32), np.empty(0, np.float32)) for _ in texts]

    def scan(texts: Sequence[str]) -> list[tuple[Array, Array]]:
        ids, distances = search.search(embed([readable(text) for text in texts]), min(k, len(table)))
        if not ids.size or ids.min() < 0 or ids.max() >= len(table):
            raise stale_store()
        return list(zip(ids, distances, strict=True))

    equal = {text: exact(text) for text in texts}
    vague = [text for text in texts if len(equal[text]) < min(k, len(table))]  # those of the others are all found
    rows = {}
    if vague and not (isinstance(search, ExactSearch) and not len(search)):  # else none of the names can be found
        rows = dict(zip(vague, scan(vague), strict=True))
    nothing = np.empty(0, np.int64), np.empty(0, np.float32)
    return [_exact_first(*rows.get(text, nothing), equal[text]) for text in texts]


def ids_by_text(table: StringTable) -> dict[str, list[int]]:
    """Map each string, and its readable form unless that is another string of the table, to its ids."""
    ids: dict[str, list[int]] = {}
    for id, string in enumerate(table):
        ids.setdefault(readable(string), []).append(id)
    return ids | {string: [id] for id, string in enumerate(table)}


def _exact_first(ids: Array, distances: Array, exact: Sequence[int]) -> Candidates:
    """Give exact matches a distance of 0, in place of the last where they are missing, and others the margin."""
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
