"""What GNN-RAG's graph network looks at, and its sizes.

C. Mavromatis, G. Karypis: GNN-RAG: Graph Neural Retrieval for Large Language Model Reasoning. arXiv:2405.20139,
sections 4.1 and 4.2.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kg_retrievers.core.checked import checked_dataclass
from kg_retrievers.methods.gnn_rag.tokens import Pooling, Tokens

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
