"""Words near to those that name relations, by the token table."""

from __future__ import annotations

import numpy as np

from benchmarks.relation_scorer.natural import FUNCTION_WORDS
from benchmarks.relation_scorer.relations import Relation
from kg_retrievers.index.embeddings import TokenTable

#: Words that say how the parts of a question belong together; they stay.
_KEPT = FUNCTION_WORDS | {
    "share", "same", "common", "also", "fellow", "other", "together", "name", "tell", "give", "list", "know", "me",
    "both", "all",
}  # fmt: skip

#: How many of the most frequent words are looked at, and the least cosine of words that are near.
COMMON, NEAR = 18_000, 0.55


def near_words(table: TokenTable, known: dict[str, Relation]) -> dict[str, list[str]]:
    """Return words near to those that name relations, by the table."""
    tokens = [id for id, token in enumerate(table.tokens) if token.isalpha() and token.isascii() and len(token) > 2]
    common = tokens[:COMMON]
    rows = table.rows(common)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) + 1e-9
    at = {table.tokens[id]: position for position, id in enumerate(common)}
    words = {word for relation in known.values() for name in relation.names for word in name.split()}
    chosen = sorted(word for word in words if word in at and word not in _KEPT)
    near = {}
    for word in chosen:
        cosines = rows @ rows[at[word]]
        nearest = np.argsort(-cosines)[1:7]
        if some := [table.tokens[common[position]] for position in nearest if cosines[position] > NEAR]:
            near[word] = some
    return near
