"""What SubgraphRAG's scorer of triples looks at, and its sizes.

M. Li, S. Miao, P. Li: Simple Is Effective: The Roles of Graphs and Large Language Models in Knowledge-Graph-Based
Retrieval-Augmented Generation. ICLR 2025, arXiv:2410.20724, sections 3.1 and 4.1 and appendix B.1.
"""

from __future__ import annotations

import re
from typing import Literal

import numpy as np
from pydantic import Field, field_validator

from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.validation import checked_dataclass

#: How an entity is marked as one of the question's: not at all, by one number s, or by the paper's pair (1 - s, s).
Topic = Literal["none", "column", "pair"]

#: The numbers of each.
_TOPIC_WIDTHS: dict[Topic, int] = {"none": 0, "column": 1, "pair": 2}

_ID = (
    r"/?m[./]0[0-9a-z_]+|/?g[./]1[0-9a-z_]+|[QPL][1-9]\d+|_:\S+|"
    r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|(0x)?(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{16,}"
)

#: Labels that are no words: ids of Freebase and Wikidata, blank nodes, UUIDs, long hexadecimal numbers, and IRIs that
#: end in one of these or in a number. The published code reads the ids of Freebase from a file.
IDENTIFIERS = rf"{_ID}|(https?|urn):\S*[/#:]({_ID}|\d{{3,}})"


@checked_dataclass
class TripleScorerConfig:
    """What a scorer looks at, and its sizes.

    Attributes:
        dimension: The length of the embeddings.
        hidden: The width of the hidden layer; the dimension in the published code.
        rounds: The rounds of the distance encoding; see `encode_distances`. The published code has 2, and 2 reverse
            rounds.
        reverse_rounds: The rounds against the direction; 0 unless `directed`.
        directed: Whether the encoding follows the direction of triples, as the paper's does. Off by default: a directed
            encoding is blind where a path turns round, as from a film to its director and back to another film.
        hops: How many hops the relation-aware encoding follows; 0 is the paper's model, without it.
        rank: The length of the vectors by whose product a question weighs a relation.
        identifiers: A regular expression; entities whose whole label matches have no meaningful text and share one
            learned vector. "" for none, ".*" for all. It is run on every label, and a bad one can take forever: load
            models that you trust.
        topic: How the question's entities are marked. The paper's "MLP" has the topic "none", its "MLP + topic entity"
            the topic "pair", both without `rounds`, `reverse_rounds` and `hops`. Without the mark, only the words of
            the question say its subject: take `mask_entities=False`.
        mask_entities: Whether the question is embedded without its entities, `MASK` in their place; not in the paper.

    Raises:
        InvalidArgumentError: If a value is out of range, the expression cannot be read, or distances are counted from
            entities that are not marked.
    """

    dimension: int = Field(ge=1)
    hidden: int = Field(default=64, ge=1)
    rounds: int = Field(default=4, ge=0)
    reverse_rounds: int = Field(default=0, ge=0)
    directed: bool = False
    hops: int = Field(default=3, ge=0)
    rank: int = Field(default=32, ge=1)
    identifiers: str = IDENTIFIERS
    topic: Topic = "column"
    mask_entities: bool = True

    @field_validator("identifiers")
    @classmethod
    def _checked_expression(cls, identifiers: str) -> str:
        try:
            re.compile(identifiers)
        except (re.error, OverflowError, RecursionError) as cause:
            raise ValueError(f"no regular expression ({cause})") from cause
        return identifiers

    def __post_init__(self) -> None:
        """Check that rounds against the direction have one, and that distances have something to start from."""
        if self.reverse_rounds and not self.directed:
            raise ValueError(f"reverse_rounds must be 0 unless directed is true, but got {self.reverse_rounds}.")
        if self.topic == "none" and (self.rounds or self.reverse_rounds):
            raise ValueError('topic must be "column" or "pair" unless rounds and reverse_rounds are 0, but got "none".')

    @property
    def topic_width(self) -> int:
        """By how many numbers an entity is marked as one of the question's or not."""
        return _TOPIC_WIDTHS[self.topic]

    @property
    def encoded(self) -> int:
        """How many numbers tell where an entity lies."""
        return self.topic_width * (1 + self.rounds + self.reverse_rounds) + self.hops

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each weight.

        `question`, `head`, `relation`, `tail` and `bias` are the first layer; `head_structure` and `tail_structure`
        its part for the encodings of an entity, `steps` that for the encoding of the triple itself; `output` is the
        second. `follow_*` weigh relations by the question. `identifier` stands for the text of entities without one.
        """
        d, wide = self.dimension, self.hidden
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("question", "head", "relation", "tail"), (d, wide))
        if self.encoded:
            shapes |= {"head_structure": (self.encoded, wide), "tail_structure": (self.encoded, wide)}
        shapes |= {"bias": (wide,), "output": (wide,), "output_bias": (), "identifier": (d,)}
        if self.hops:
            shapes |= {
                "steps": (self.hops, wide),
                "follow_question": (d, self.hops * 2 * self.rank),
                "follow_relation": (d, self.rank),
                "follow_bias": (self.hops, 2, 1),
            }
        return shapes


def without_text(graph: KnowledgeGraph, identifiers: str, entities: Array | None = None) -> Array:
    """Tell which entities have a label that is no words: bool, shape (entities).

    Args:
        graph: The graph.
        identifiers: A regular expression for such labels, as a whole; "" for none.
        entities: Ids of entities; all by default.
    """
    labels = graph.labels if entities is None else graph.labels[entities]
    if not identifiers:
        return np.zeros(len(labels), np.bool_)
    matches = re.compile(identifiers, re.DOTALL).fullmatch
    distinct, rows = np.unique(labels, return_inverse=True)
    return np.array([bool(matches(graph.names[label])) for label in distinct.tolist()], np.bool_)[rows]
