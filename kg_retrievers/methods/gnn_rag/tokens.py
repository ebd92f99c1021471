"""The tokens of questions and relations as vectors: words by any embeddings, or the states of a language model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import readable
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import MASK, GraphIndex

#: "words": each word by itself, with the index's embeddings, whatever they are. "states": the states of the tokens in
#: their text, as in the paper; for embeddings that give states, as `local_embeddings` do.
Tokens = Literal["words", "states"]

#: What stands for a text as a whole: the mean of its tokens, or the state of the first one, which language models keep
#: for that.
Pooling = Literal["mean", "first"]

_WORD = re.compile(rf"[^\W_]+|{MASK}")


@runtime_checkable
class TokenStates(Protocol):
    """Embeddings that also give the states of tokens."""

    def embed_tokens(self, texts: list[str]) -> list[Array]:
        """Return the states of the tokens of each text, float32, shape (tokens, dimension)."""


def words(text: str) -> list[str]:
    """Return the words of a text, and the marks of its masked entities.

    Example:
        >>> words("Who directed _?")
        ['Who', 'directed', '_']
    """
    return _WORD.findall(text) or [text]


def check_tokens(index: GraphIndex, tokens: Tokens) -> None:
    """Check that an index has embeddings that give such tokens.

    Raises:
        InvalidArgumentError: If not.
    """
    if tokens == "states" and not isinstance(index.embeddings, TokenStates):
        raise InvalidArgumentError(
            f'tokens="states" needs embeddings with `embed_tokens`, but {index!r} has others.',
            hint_python='Index the graph with local_embeddings(...), or take tokens="words".',
            hint_shell="Index the graph with --embeddings local:MODEL, or take --field tokens=words.",
        )


def embed_tokens(index: GraphIndex, texts: Sequence[str], tokens: Tokens) -> list[Array]:
    """Return the vectors of the tokens of each text, float32, shape (tokens, dimension).

    Args:
        index: The index whose embeddings are asked.
        texts: The texts.
        tokens: What counts as a token.

    Raises:
        InvalidArgumentError: If the embeddings give no such tokens.
        StaleIndexError: If they do not fit the index.
    """
    check_tokens(index, tokens)
    if tokens == "states" and isinstance(index.embeddings, TokenStates):
        return _embed_states(index.embeddings, texts, index.dimension)
    of_texts = [words(text) for text in texts]
    distinct = list(dict.fromkeys(word for of_text in of_texts for word in of_text))
    vectors = dict(zip(distinct, index.embed(distinct), strict=True)) if distinct else {}
    return [np.stack([vectors[word] for word in of_text]) for of_text in of_texts]


def embed_relations(index: GraphIndex, tokens: Tokens, pooling: Pooling, *, reverse: bool = False) -> Array:
    """Return the vector of each relation of a graph, float32, shape (relations, dimension), from those of its tokens.

    Args:
        index: The index whose embeddings are asked.
        tokens: What counts as a token.
        pooling: What stands for all tokens.
        reverse: Whether the words are read from the last to the first.

    Raises:
        InvalidArgumentError: If the embeddings give no such tokens.
        StaleIndexError: If they do not fit the index.
    """
    texts = [readable(relation) for relation in index.graph.relations]
    if reverse:
        texts = [" ".join(reversed(text.split())) for text in texts]
    of_texts = embed_tokens(index, texts, tokens)
    pooled = [one.mean(axis=0) if pooling == "mean" else one[0] for one in of_texts]
    return np.array(pooled, np.float32).reshape(-1, index.dimension)


def _embed_states(embeddings: TokenStates, texts: Sequence[str], dimension: int) -> list[Array]:
    found = [np.asarray(states, np.float32) for states in embeddings.embed_tokens(list(texts))]
    shapes = [states.shape for states in found]
    fits = all(len(shape) == 2 and shape[0] and shape[1] == dimension for shape in shapes)
    if len(found) != len(texts) or not fits:
        raise InvalidArgumentError(
            f"{type(embeddings).__name__}.embed_tokens: wanted an array of shape (tokens, {dimension}) "
            f"for each of {len(texts)} texts, but got shapes {shapes[:9]}. Models whose tokens are not as long as "
            'their texts\' vectors serve with tokens="words" only.'
        )
    return found
