"""The sizes of GNN-RAG's graph network, and the tokens of the texts that it reads.

C. Mavromatis, G. Karypis: GNN-RAG: Graph Neural Retrieval for Large Language Model Reasoning. arXiv:2405.20139,
sections 4.1 and 4.2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from pydantic import Field

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import readable
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.validation import checked_dataclass
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


#: Where the vectors of relations that are followed against their direction come from. "weights": a product of their
#: own with those of the same words. "words": the same product with those of the words in reverse, as in the published
#: code.
Inverse = Literal["weights", "words"]

#: Which gate renews an instruction: one that all share, or its own, as in ReaRev (arXiv:2210.13650).
Gates = Literal["shared", "own"]

#: The endings of the names of the weights that read a question forwards, and backwards.
WAYS = ("", "_reverse")


@checked_dataclass
class GraphReasonerConfig:
    """What a reasoner looks at, and its sizes.

    Attributes:
        dimension: The length of the embeddings.
        width: The length of all vectors inside.
        instructions: How many parts of a question are told apart (K); 3 for MetaQA in the published code.
        layers: How many hops are reasoned over (L); 3 for MetaQA in the published code.
        stages: How often they are, each time with instructions that the last time has changed (T); 2 for MetaQA in the
            published code. A second stage doubled the time and found no more on training questions of MetaQA.
        tokens: What is read of questions and relations; see `Tokens`.
        relative: Whether a sender counts by its probability relative to that of the likeliest (ours), or by the
            probability itself.
        mask_seeds: Whether the entities of the question are never candidates, as in the published code for all sets
            but one.
        norms: Whether the vector of an entity is divided by the root of its mean square in each layer, and attention by
            the root of `width` (ours).
        pooling: What stands for a question, with `tokens="states"`, and for a relation as a whole.
        inverse: Where the vectors of relations that are followed against their direction come from.
        gates: Which gate renews an instruction, with `stages` above 1.
        mask_entities: Whether the question is read without its entities, `MASK` in their place; not in the paper.

    Raises:
        InvalidArgumentError: If a value is out of range, or `pooling` is "first" for tokens that are words, of which
            the first does not stand for the others.
    """

    dimension: int = Field(ge=1)
    width: int = Field(default=50, ge=1)
    instructions: int = Field(default=3, ge=1)
    layers: int = Field(default=3, ge=1)
    stages: int = Field(default=1, ge=1)
    tokens: Tokens = "words"
    relative: bool = True
    mask_seeds: bool = True
    norms: bool = True
    pooling: Pooling = "mean"
    inverse: Inverse = "weights"
    gates: Gates = "shared"
    mask_entities: bool = True

    def __post_init__(self) -> None:
        """Check that a first token stands for its text."""
        if self.pooling == "first" and self.tokens == "words":
            raise ValueError('pooling must be "mean" where tokens is "words", but got "first".')

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each weight; names with a dot are those of a `torch.nn.GRU`."""
        d, parts, layers = self.width, self.instructions, self.layers
        shapes: dict[str, tuple[int, ...]] = {"token": (self.dimension, d), "token_bias": (d,)}
        if self.tokens == "words":
            for way in WAYS:
                shapes |= {f"gru.weight_ih_l0{way}": (3 * d, d), f"gru.weight_hh_l0{way}": (3 * d, d)}
                shapes |= {f"gru.bias_ih_l0{way}": (3 * d,), f"gru.bias_hh_l0{way}": (3 * d,)}
        shapes |= {"ask": (parts, d, d), "ask_bias": (parts, d), "join": (4 * d, d), "join_bias": (d,), "attend": (d,)}
        if self.inverse == "weights":
            shapes |= {"along": (d, d), "along_bias": (d,), "against": (d, d), "against_bias": (d,)}
        shapes |= {"loop": (d,)}
        shapes |= {"begin": (d, d), "match": (layers, d, d), "match_bias": (layers, d), "keep": (layers, d, d)}
        shapes |= {"receive": (layers, 2, parts * d, d), "bias": (layers, d), "score": (d,)}
        if self.stages > 1:
            each = (parts,) if self.gates == "own" else ()
            shapes |= {"renew": (*each, 3 * d, d), "renew_bias": (*each, d)}
            shapes |= {"gate": (*each, 3 * d, d), "gate_bias": (*each, d)}
        return shapes
