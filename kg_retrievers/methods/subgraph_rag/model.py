"""SubgraphRAG's scorer of triples, and how it is served without torch.

M. Li, S. Miao, P. Li: Simple Is Effective: The Roles of Graphs and Large Language Models in Knowledge-Graph-Based
Retrieval-Augmented Generation. ICLR 2025, arXiv:2410.20724, section 3.1 and appendix B.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from kg_retrievers.core.trained_model import TrainedModel
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.cache import LocalLock
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import GraphIndex
from kg_retrievers.methods.subgraph_rag.config import TripleScorerConfig, without_text
from kg_retrievers.methods.subgraph_rag.distance_encoding import encode_distances, follow_relations

#: How many values of the hidden layer are computed at once: so few that they stay in the processor's cache.
BLOCK = 1 << 17

#: How many entities are computed at once, the first time a graph is asked.
ENTITY_BLOCK = 16384

#: Up to so many numbers, those of all entities are computed once and kept: 256 MB, half a million entities at the
#: default width. On larger graphs each question computes those of its entities, about 2,000, in some milliseconds.
MAX_KEPT = 1 << 25


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

    def distances(self, config: TripleScorerConfig) -> Array:
        """Return how far each entity is from the seeds, or whether it is one, as a network sees it.

        Returns:
            float32, shape (n, `config.encoded` - `config.hops`).
        """
        if not config.topic_width:
            return np.empty((len(self.entities), 0), np.float32)
        return encode_distances(
            self.heads,
            self.tails,
            self.seeds,
            nodes=len(self.entities),
            rounds=config.rounds,
            reverse_rounds=config.reverse_rounds,
            directed=config.directed,
            pair=config.topic_width == 2,
        )


class TripleScorer(TrainedModel[TripleScorerConfig]):
    """A trained scorer of triples; `SubgraphRAGRetriever` asks it which triples matter to a question.

    A network of one hidden layer sees the vectors of question, head, relation and tail, and where head and tail lie
    relative to the question's entities: `encode_distances`, and `follow_relations` by relations that the question
    weighs.

    *Differs from the paper* in `follow_relations` (`hops=0` is without it), in the directions, which the encoding
    ignores by default, in the mark of the question's entities, one number instead of a pair, in the question, whose
    entities are masked, and in the width; see `TripleScorerConfig`. A training with `preset="paper"` makes the paper's
    network. For its arguments see `TrainedModel`.
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
        if self.index.is_part or len(graph.entities) * self.scorer.config.hidden > MAX_KEPT:
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
            for part, name in zip(parts, ("head", "tail"), strict=True):
                part[block] = vectors @ weights[name]
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
        if encodings.shape[1]:
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
        distances = found.distances(config)
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
