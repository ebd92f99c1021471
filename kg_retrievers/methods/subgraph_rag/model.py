"""SubgraphRAG's scorer of triples: its configuration, and how it is served without torch.

M. Li, S. Miao, P. Li: Simple Is Effective: The Roles of Graphs and Large Language Models in Knowledge-Graph-Based
Retrieval-Augmented Generation. ICLR 2025, arXiv:2410.20724, section 3.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from pydantic import Field, field_validator

from kg_retrievers.core.checked import checked_dataclass
from kg_retrievers.core.trained_model import TrainedModel
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.cache import LocalLock
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import GraphIndex
from kg_retrievers.methods.subgraph_rag.distance_encoding import encode_distances, follow_relations

_ID = (
    r"/?m[./]0[0-9a-z_]+|/?g[./]1[0-9a-z_]+|[QPL][1-9]\d+|_:\S+|"
    r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|(0x)?(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{16,}"
)

#: Labels that are no words: ids of Freebase and Wikidata, blank nodes, UUIDs, long hexadecimal numbers, and IRIs that
#: end in one of these or in a number. The published code reads the ids of Freebase from a file.
IDENTIFIERS = rf"{_ID}|(https?|urn):\S*[/#:]({_ID}|\d{{3,}})"

#: How many values of the hidden layer are computed at once: so few that they stay in the processor's cache.
BLOCK = 1 << 17

#: How many entities are computed at once, the first time a graph is asked.
ENTITY_BLOCK = 16384

#: Up to so many numbers, those of all entities are computed once and kept: 256 MB, half a million entities at the
#: default width. On larger graphs each question computes those of its entities, about 2,000, in some milliseconds.
MAX_KEPT = 1 << 25


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

    Raises:
        InvalidArgumentError: If a value is out of range, or the expression cannot be read.
    """

    dimension: int = Field(ge=1)
    hidden: int = Field(default=64, ge=1)
    rounds: int = Field(default=4, ge=0)
    reverse_rounds: int = Field(default=0, ge=0)
    directed: bool = False
    hops: int = Field(default=3, ge=0)
    rank: int = Field(default=32, ge=1)
    identifiers: str = IDENTIFIERS

    @field_validator("identifiers")
    @classmethod
    def _checked_expression(cls, identifiers: str) -> str:
        try:
            re.compile(identifiers)
        except (re.error, OverflowError, RecursionError) as cause:
            raise ValueError(f"no regular expression ({cause})") from cause
        return identifiers

    def __post_init__(self) -> None:
        """Check that rounds against the direction have one."""
        if self.reverse_rounds and not self.directed:
            raise ValueError(f"reverse_rounds must be 0 unless directed is true, but got {self.reverse_rounds}.")

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each weight.

        `question`, `head`, `relation`, `tail` and `bias` are the first layer; `head_structure` and `tail_structure`
        its part for the encodings of an entity, `steps` that for the encoding of the triple itself; `output` is the
        second. `follow_*` weigh relations by the question. `identifier` stands for the text of entities without one.
        """
        d, wide, encoded = self.dimension, self.hidden, 1 + self.rounds + self.reverse_rounds + self.hops
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("question", "head", "relation", "tail"), (d, wide))
        shapes |= {"head_structure": (encoded, wide), "tail_structure": (encoded, wide)}
        shapes |= {"bias": (wide,), "output": (wide,), "output_bias": (), "identifier": (d,)}
        if self.hops:
            shapes |= {
                "steps": (self.hops, wide),
                "follow_question": (d, self.hops * 2 * self.rank),
                "follow_relation": (d, self.rank),
                "follow_bias": (self.hops, 2, 1),
            }
        return shapes


class CandidateTriples(NamedTuple):
    """The triples around the seeds of a question, with their entities by position, so that the work depends on them.

    Attributes:
        entities: int, shape (n): the ids of the entities in the graph, ascending.
        heads: int64, shape (m): positions in `entities`, as `tails` and `seeds`.
        relations: int64, shape (m): ids of relations of the graph.
        tails: int64, shape (m).
        seeds: int64, shape (s).
    """

    entities: Array
    heads: Array
    relations: Array
    tails: Array
    seeds: Array

    @classmethod
    def of(cls, graph: KnowledgeGraph, triples: Array, seeds: Array) -> CandidateTriples:
        """Cut triples, their entities and the seeds out of a graph.

        Args:
            graph: The graph.
            triples: Ids of triples, int, shape (m).
            seeds: Ids of entities, int, shape (s).
        """
        heads, relations, tails = graph.edges[triples].T
        entities, positions = np.unique(np.concatenate([heads, tails, seeds]), return_inverse=True)
        parts = np.split(positions, [len(heads), 2 * len(heads)])
        return cls(entities, parts[0], relations.astype(np.int64), parts[1], parts[2])


class TripleScorer(TrainedModel[TripleScorerConfig]):
    """A trained scorer of triples; `SubgraphRAGRetriever` asks it which triples matter to a question.

    A network of one hidden layer sees the vectors of question, head, relation and tail, and where head and tail lie
    relative to the question's entities: `encode_distances`, and `follow_relations` by relations that the question
    weighs.

    *Differs from the paper* in `follow_relations` (`hops=0` is without it), in the directions, which the encoding
    ignores by default, and in the width; see `TripleScorerConfig`. For its arguments see `TrainedModel`.
    """

    method = "subgraph-rag"
    trainer = "train_triple_scorer"
    config_class = TripleScorerConfig

    def on(self, index: GraphIndex) -> GraphTripleScorer:
        """Return the scorer of the triples of a graph.

        Raises:
            ModelMismatchError: If the index has other embeddings than those the scorer was trained with.
        """
        return GraphTripleScorer(self, index)


class GraphTripleScorer:
    """A scorer on one graph. Safe to share between threads.

    The first layer is linear in its inputs side by side, so it is a sum of a part for each: those of entities and
    relations are computed once a graph, that of the question once a question, those of the encodings once an entity;
    a triple adds three rows up. This is exact, but for rounding.

    Cost: for a graph, 2 * labels * dimension * hidden multiplications, once, and 8 * hidden bytes a label; beyond
    `MAX_KEPT` numbers, for a question and its labels. For a question, `encode_distances` and `follow_relations`, and
    some 10 * hidden operations a triple.

    Args:
        scorer: The scorer.
        index: The indexed graph.

    Raises:
        ModelMismatchError: If the index has other embeddings than those the scorer was trained with.
    """

    def __init__(self, scorer: TripleScorer, index: GraphIndex) -> None:
        """Check that they fit."""
        scorer.check_embeddings(index)
        self.scorer, self.index = scorer, index
        self._made: tuple[Array, Array] | None = None
        self._lock = LocalLock()

    def _parts(self, entities: Array) -> tuple[Array, Array]:
        """Return the parts of the labels of entities as head and as tail, (2, labels, hidden), and the row of each."""
        graph = self.index.graph
        if self.index.is_connected or len(graph.entities) * self.scorer.config.hidden > MAX_KEPT:
            return self._make_parts(entities)
        with self._lock:
            if self._made is None:
                self._made = self._make_parts(np.arange(len(graph.entities)))
            parts, rows = self._made
            return parts, rows[entities]

    def _make_parts(self, entities: Array) -> tuple[Array, Array]:
        weights, graph = self.scorer.weights, self.index.graph
        nameless = without_text(graph, self.scorer.config.identifiers, entities)
        labels = np.where(nameless, -1, graph.labels[entities])
        # Once a label, and once for all without one: equal rows are not computed at two positions of a product.
        labels, first, rows = np.unique(labels, return_index=True, return_inverse=True)
        parts = np.empty((2, len(labels), self.scorer.config.hidden), np.float32)
        for start in range(0, len(labels), ENTITY_BLOCK):
            block = slice(start, start + ENTITY_BLOCK)
            vectors = self.index.entity_vectors(entities[first[block]])
            vectors = np.where(labels[block, None] < 0, weights["identifier"], vectors)
            parts[0, block], parts[1, block] = vectors @ weights["head"], vectors @ weights["tail"]
        return parts, rows

    @cached_property
    def _relations(self) -> tuple[Array, Array]:
        """The parts of all relations, shape (relations, hidden), and what weighs them, (relations, rank)."""
        weights, vectors = self.scorer.weights, self.index.relation_vectors
        size = (len(vectors), self.scorer.config.rank)
        weighed = vectors @ weights["follow_relation"] if self.scorer.config.hops else np.empty(size, np.float32)
        return vectors @ weights["relation"] + weights["bias"], weighed

    def score(self, question: str, triples: Array, seeds: Array) -> Array:
        """Return how much each triple matters to a question, in logits: the higher the more.

        Args:
            question: The question, with `MASK` in place of its entities.
            triples: Ids of the candidates, int, shape (m). The encodings see these triples alone.
            seeds: Ids of the entities that the question is about, int, shape (s).

        Returns:
            float32, shape (m), in the order of `triples`; the same for triples that look the same.

        Raises:
            StaleIndexError: If the embeddings do not fit the index.
            InvalidArgumentError: If scores are not finite.
        """
        weights = self.scorer.weights
        found = CandidateTriples.of(self.index.graph, triples, seeds)
        vector = self.index.embed([question])[0]
        encodings, steps = self._encode(vector, found)
        parts, rows = self._parts(found.entities)
        of_heads, of_tails = parts[:, rows]
        of_heads += _product(encodings, weights["head_structure"])
        of_tails += _product(encodings, weights["tail_structure"])
        of_relations = self._relations[0] + vector @ weights["question"]
        scores = np.empty(len(triples), np.float32)
        for block in _blocks(len(triples), self.scorer.config.hidden):
            hidden = of_heads[found.heads[block]]
            hidden += of_tails[found.tails[block]]
            hidden += of_relations[found.relations[block]]
            if steps is not None:
                hidden += _product(steps[block], weights["steps"])
            np.maximum(hidden, 0, out=hidden)
            np.einsum("ij,j->i", hidden, weights["output"], out=scores[block])
        if not np.isfinite(scores).all():
            raise InvalidArgumentError("TripleScorer: its weights are so large that scores are not finite.")
        return scores + weights["output_bias"]

    def _encode(self, question: Array, found: CandidateTriples) -> tuple[Array, Array | None]:
        """Return the encodings of entities and, where relations are followed, of triples."""
        config, weights, size = self.scorer.config, self.scorer.weights, len(found.entities)
        distances = encode_distances(
            found.heads,
            found.tails,
            found.seeds,
            nodes=size,
            rounds=config.rounds,
            reverse_rounds=config.reverse_rounds,
            directed=config.directed,
        )
        if not config.hops:
            return distances, None
        asked = (question @ weights["follow_question"]).reshape(config.hops, 2, config.rank)
        follow = (1 + np.tanh((asked @ self._relations[1].T + weights["follow_bias"]) / 2)) / 2  # the logistic function
        reached = follow_relations(found.heads, found.relations, found.tails, found.seeds, follow, nodes=size)
        steps = np.empty((len(found.heads), config.hops), np.float32)
        for hop, (along, against) in enumerate(follow):
            steps[:, hop] = along[found.relations] * reached[hop, found.heads]
            steps[:, hop] += against[found.relations] * reached[hop, found.tails]
        return np.concatenate([distances, reached[1:].T.astype(np.float32)], axis=1), steps


def _blocks(rows: int, width: int) -> Iterator[slice]:
    """Yield slices of some rows, each of about `BLOCK` numbers."""
    step = max(1, BLOCK // width)
    return (slice(start, start + step) for start in range(0, rows, step))


def _product(left: Array, right: Array) -> Array:
    """Return `left @ right`. BLAS would round equal rows in different ways, by their positions."""
    product: Array = np.einsum("ij,jk->ik", left, right)
    return product


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
