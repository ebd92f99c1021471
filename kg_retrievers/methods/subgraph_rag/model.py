"""SubgraphRAG's scorer of triples, and how it is served without torch.

M. Li, S. Miao, P. Li: Simple Is Effective: The Roles of Graphs and Large Language Models in Knowledge-Graph-Based
Retrieval-Augmented Generation. ICLR 2025, arXiv:2410.20724, sections 3.1 (directional distance encoding), 4 (shortest
paths) and 4.1 and appendix B.1, and the code published with it. Scores of entities that pass along weighted relations:
J. Shi, S. Cao, L. Hou, J. Li, H. Zhang: TransferNet: An Effective and Transparent Framework for Multi-hop Question
Answering over Relation Graph. EMNLP 2021, arXiv:2104.07302, and the code published with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field, field_validator

from kg_retrievers.core.trained_model import TrainedModel
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.cache import LocalLock
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.validation import checked_dataclass
from kg_retrievers.index import GraphIndex

#: How an entity is marked as one of the question's: not at all, by one number s, or by the paper's pair (1 - s, s).
Topic = Literal["none", "column", "pair"]

# By how many numbers each marks it.
_TOPIC_WIDTHS: dict[Topic, int] = {"none": 0, "column": 1, "pair": 2}

_ID = (
    r"/?m[./]0[0-9a-z_]+|/?g[./]1[0-9a-z_]+|[QPL][1-9]\d+|_:\S+|"
    r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|(0x)?(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{16,}"
)

#: Labels that are no words: ids of Freebase and Wikidata, blank nodes, UUIDs, long hexadecimal numbers, and IRIs that
#: end in such an id or in a number. The published code reads the ids of Freebase from a file.
IDENTIFIERS = rf"{_ID}|(https?|urn):\S*[/#:]({_ID}|\d{{3,}})"


@checked_dataclass
class TripleScorerConfig:
    """The inputs and sizes of a scorer.

    Attributes:
        dimension: The length of the embeddings.
        hidden: The width of the hidden layer. The dimension in the published code.
        rounds: The rounds of the distance encoding, see `CandidateTriples.distances`. The published code has 2, and 2
            reverse rounds.
        reverse_rounds: The rounds against the direction. 0 unless `directed`.
        directed: Whether the encoding follows the direction of triples, as the paper's does. Off by default: a directed
            encoding is blind if a path turns round, for example from a film to its director and back to another film.
        hops: How many hops the relation-aware encoding follows. 0 is the paper's model, without it.
        rank: The length of the vectors by whose product a question weighs a relation.
        identifiers: A regular expression. Entities whose whole label matches have no meaningful text and share one
            learned vector. "" for none, ".*" for all. It is run on every label, and a bad one can take forever: load
            models that you trust.
        topic: How the question's entities are marked. The paper's "MLP" has the topic "none", its "MLP + topic entity"
            the topic "pair", both without `rounds`, `reverse_rounds` and `hops`. Without the mark, only the words of
            the question say its subject: take `mask_entities=False`.
        mask_entities: Whether the question is embedded without its entities, `MASK` in their place. Not in the paper.

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
    def encoded(self) -> int:
        """The number of values that encode the place of an entity."""
        return _TOPIC_WIDTHS[self.topic] * (1 + self.rounds + self.reverse_rounds) + self.hops

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each weight.

        `question`, `head`, `relation`, `tail` and `bias` are the first layer. `head_structure` and `tail_structure` are
        its part for the encodings of an entity, and `steps` its part for the encoding of the triple itself. `output` is
        the second layer. `follow_*` weigh relations by the question. `identifier` stands for the text of entities
        without one.
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
        identifiers: A regular expression for such labels, as a whole. "" for none.
        entities: Ids of entities. All by default.
    """
    labels = graph.labels if entities is None else graph.labels[entities]
    if not identifiers:
        return np.zeros(len(labels), np.bool_)
    matches = re.compile(identifiers, re.DOTALL).fullmatch
    distinct, rows = np.unique(labels, return_inverse=True)
    return np.array([bool(matches(graph.names[label])) for label in distinct.tolist()], np.bool_)[rows]


def _means(start: Array, steps: list[tuple[tuple[Array, Array], int]]) -> list[Array]:
    """Return the start, then the means after each round of each way, which begins with the start again."""
    columns, nodes = [start], len(start)
    for (here, there), count in steps:
        degrees, values = np.maximum(np.bincount(there, minlength=nodes), 1), start
        for _ in range(count):
            values = np.bincount(there, values[here], nodes) / degrees
            columns.append(values)
    return columns


def shortest_path_triples(
    heads: Array, tails: Array, seeds: Array, answers: Array, *, nodes: int, directed: bool = False, max_hops: int = 4
) -> npt.NDArray[np.bool_]:
    """Mark the triples on the shortest paths between seeds and answers.

    Every shortest path of each pair of a seed and an answer counts, whichever way its triples point, with all parallel
    triples. A self-loop is on no path, and no path leads from a seed to itself as an answer.

    With `directed=True` a path follows its triples, from seed to answer or from answer to seed, whichever is shorter
    for the pair, or both if they are equally long. *Differs from the published code*, which always does so: if no
    triple has an inverse, this finds little, and for MetaQA's 2-hop questions nothing. In the published code, only the
    last of parallel triples counts, and a path may have any length.

    Cost: O(s * max_hops * m) for s seeds and m triples, however many answers.

    Args:
        heads: int, shape (m): entities in 0 ... nodes - 1.
        tails: int, shape (m).
        seeds: int, shape (s): entities. Repeated ones count once.
        answers: int, shape (a): entities.
        nodes: The number of entities.
        directed: Whether a path follows its triples.
        max_hops: The most triples in a path, 0 or more.

    Returns:
        bool, shape (m): the weak labels for a scorer of triples.

    Example:
        >>> heads, tails = np.array([0, 2, 2]), np.array([1, 1, 3])  # two films by one director, a genre
        >>> shortest_path_triples(heads, tails, np.array([0]), np.array([2]), nodes=4).tolist()
        [True, True, False]
    """
    far = max_hops + 1
    positive = np.zeros(len(heads), np.bool_)
    for seed in np.unique(seeds):
        ways = _ways(heads, tails, directed)
        distances = [_distances(*way, seed, answers, nodes, max_hops) for way in ways]
        shortest = np.min([distance[answers] for distance in distances], axis=0)
        for (here, there), distance in zip(ways, distances, strict=True):
            marked = np.zeros(nodes, np.bool_)
            marked[answers[(distance[answers] == shortest) & (shortest < far)]] = True
            for hop in range(distance[marked].max(initial=0), 0, -1):
                steps = np.flatnonzero(marked[there] & (distance[there] == hop) & (distance[here] == hop - 1))
                positive[steps % len(heads)] = True
                marked[here[steps]] = True
    return positive


def _ways(heads: Array, tails: Array, directed: bool) -> list[tuple[Array, Array]]:
    """Return the ends of steps along the triples and of steps against them, or of all in this order."""
    if directed:
        return [(heads, tails), (tails, heads)]
    return [(np.concatenate([heads, tails]), np.concatenate([tails, heads]))]


def _distances(here: Array, there: Array, seed: int, wanted: Array, nodes: int, max_hops: int) -> Array:
    """Return the steps from the seed to the wanted entities and all nearer ones, or max_hops + 1 if one is further."""
    distance = np.full(nodes, max_hops + 1)
    distance[seed] = 0
    for hop in range(max_hops):
        reached = there[(distance[here] == hop) & (distance[there] > max_hops)]
        if not len(reached) or distance[wanted].max(initial=0) <= max_hops:
            break
        distance[reached] = hop + 1
    return distance


#: How many values of the hidden layer are computed at once: so few that they stay in the processor's cache.
BLOCK = 1 << 17

#: How many entities are computed at once, the first time a graph is asked.
ENTITY_BLOCK = 16384

#: Up to this number of values, the parts of all entities are computed once and kept: 256 MB, half a million entities at
#: the default width. On larger graphs each question computes the parts of its entities, about 2,000, in some
#: milliseconds.
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

    def distances(self, config: TripleScorerConfig) -> npt.NDArray[np.float32]:
        """Return the directional distance encoding (DDE) of each entity.

        Column 0, s(0), is 1 for a seed and 0 for others. `rounds` columns follow: s(l + 1) of v is the mean of s(l)
        over the heads u of all triples (u, r, v), or 0 if there is none. Then `reverse_rounds` columns follow, which
        start again from s(0), with the mean over the tails u of all triples (v, r, u). Parallel triples count each. So
        s(l) of v is the probability that a random walk of l steps against the triples, in the reverse columns along
        them, ends at a seed.

        With `directed=False` each mean is over both, a self-loop counts twice, and there are only `rounds`. If no
        triple has an inverse, as in MetaQA, directed walks cannot get from a film by its director to another film.

        With the topic "pair", s(0) is the paper's pair, (1 - s, s), and so is all that follows: two columns instead of
        each one above. The two of a pair add up to the probability o(l) that such a walk does not get stuck, whatever
        the seeds. With the topic "none" there are no columns.

        *Differs from the paper* by default: s stands alone. With `directed=False` o(l) is 1 at both ends of every
        triple, so that a linear layer with a bias can do as much with one number as with the pair. With `directed=True`
        o(l) is less if a dead end is near, and this difference is left out.

        Cost: O((rounds + reverse_rounds) * m) for m triples.

        Returns:
            float32, shape (n, `config.encoded` - `config.hops`): in [0, 1].

        Example:
            >>> films, directors, by, her = np.array([0, 2]), np.array([1, 1]), np.array([0, 0]), np.array([0])
            >>> found = CandidateTriples(np.arange(3), films, by, directors, her)  # two films by one director
            >>> found.distances(TripleScorerConfig(8, rounds=1, reverse_rounds=1, directed=True, hops=0)).tolist()
            [[1.0, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.0]]
            >>> found.distances(TripleScorerConfig(8, rounds=2)).tolist()
            [[1.0, 0.0, 0.5], [0.0, 0.5, 0.0], [0.0, 0.0, 0.5]]
        """
        if config.topic == "none":
            return np.empty((len(self.entities), 0), np.float32)
        start = np.zeros(len(self.entities))
        start[self.seeds] = 1
        rounds = (config.rounds, config.reverse_rounds)
        steps = list(zip(_ways(self.heads, self.tails, config.directed), rounds, strict=False))
        columns = _means(start, steps)
        if config.topic == "pair":
            pairs = zip(_means(1 - start, steps), columns, strict=True)
            columns = [column for both in pairs for column in both]
        return np.stack(columns, axis=1).astype(np.float32)

    def follow(self, start: Any, weights: Any, relations: Array, add: Callable[[Array, Any], Any]) -> tuple[Any, Any]:
        """Return how well entities are reached from the seeds by relations that are worth following, hop by hop.

        x(0) is 1 for a seed and 0 for others. x(h + 1) = 1 - exp(-y), and y of v is the sum of weights[h, 0, r] *
        x(h)(u) over all triples (u, r, v) and of weights[h, 1, r] * x(h)(u) over all triples (v, r, u). One good way is
        enough, more add little, and other triples of an entity take nothing away. Parallel triples count each, and a
        self-loop once per direction.

        Ours: a distance encoding that distinguishes relations, while DDE treats them alike. TransferNet had the idea to
        pass scores of entities along weighted relations. *Differs from it*: y is cut smoothly rather than at 1, and the
        scores of all hops are features of entities. In TransferNet their mean, weighted by the question, is the answer.

        Cost: O(hops * m) for m triples.

        Args:
            start: x(0), an array or a tensor.
            weights: In [0, 1], shape (hops, 2, relations): how much hop h follows relation r, [h, 0, r] from head to
                tail and [h, 1, r] from tail to head.
            relations: int, shape (m): positions on the last axis of `weights`.
            add: Returns the sums of values by the entities at which they arrive.

        Returns:
            For each hop x(1) ..., in [0, 1], and the contribution of each triple.

        Example:
            >>> films, directors, by, her = np.array([0, 2]), np.array([1, 1]), np.array([0, 0]), np.array([0])
            >>> found = CandidateTriples(np.arange(3), films, by, directors, her)
            >>> there_and_back = np.array([[[1.0], [0.0]], [[0.0], [1.0]]])
            >>> start, add = np.array([1.0, 0.0, 0.0]), lambda at, values: np.bincount(at, values, 3)
            >>> [one.round(2).tolist() for one in found.follow(start, there_and_back, by, add)[0]]
            [[0.0, 0.63, 0.0], [0.47, 0.0, 0.47]]
        """
        x, reached, steps = start, [], []
        for along, against in weights:
            onward, back = along[relations] * x[self.heads], against[relations] * x[self.tails]
            mass = add(self.tails, onward) + add(self.heads, back)
            x = -_expm1(-mass)
            reached.append(x)
            steps.append(onward + back)
        return reached, steps


def _expm1(values: Any) -> Any:
    return np.expm1(values) if isinstance(values, np.ndarray) else values.expm1()


class TripleScorer(TrainedModel[TripleScorerConfig]):
    """A trained scorer of triples, which `SubgraphRAGRetriever` asks for the triples that matter.

    A network of one hidden layer sees the vectors of question, head, relation and tail, and the places of head and tail
    relative to the question's entities: `CandidateTriples.distances`, and `follow` by relations that the question
    weighs.

    *Differs from the paper* in `follow` (`hops=0` is without it), in the directions, which the encoding
    ignores by default, in the mark of the question's entities, one number instead of a pair, in the question, whose
    entities are masked, and in the width, see `TripleScorerConfig`. A training with `preset="paper"` makes the paper's
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

    The first layer is linear in its inputs side by side, so it is a sum of one part per input. The parts of entities
    and relations are computed once per graph, the part of the question once per question, and the parts of the
    encodings once per entity. A triple adds three rows up. This is exact, except for rounding.

    Cost: for a graph, 2 * labels * dimension * hidden multiplications, once, and 8 * hidden bytes per label. Beyond
    `MAX_KEPT` numbers, this is for a question and its labels. For a question, its `CandidateTriples`, and about 10 *
    hidden operations per triple.

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
        """The parts of all relations, shape (relations, hidden), and the vectors that weigh them, (relations, rank)."""
        weights, vectors = self.scorer.weights, self.index.relation_vectors
        size = (len(vectors), self.scorer.config.rank)
        weighed = vectors @ weights["follow_relation"] if self.scorer.config.hops else np.empty(size, np.float32)
        return vectors @ weights["relation"] + weights["bias"], weighed

    def score(self, question: str, triples: Array, seeds: Array) -> Array:
        """Return how much each triple matters to a question, in logits. Higher is better.

        Args:
            question: The question, with `MASK` in place of its entities.
            triples: Ids of the candidates, int, shape (m). The encodings see these triples alone.
            seeds: Ids of the entities that the question is about, int, shape (s).

        Returns:
            float32, shape (m), in the order of `triples`. Equal for triples that look the same.

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
        """Return the encodings of entities and, if relations are followed, of triples."""
        config, weights, size = self.scorer.config, self.scorer.weights, len(found.entities)
        distances = found.distances(config)
        if not config.hops:
            return distances, None
        asked = (question @ weights["follow_question"]).reshape(config.hops, 2, config.rank)
        follow = (1 + np.tanh((asked @ self._relations[1].T + weights["follow_bias"]) / 2)) / 2  # the logistic function
        start = np.zeros(size)
        start[found.seeds] = 1
        reached, steps = found.follow(start, follow, found.relations, lambda at, values: np.bincount(at, values, size))
        encodings = np.concatenate([distances, np.stack(reached, 1).astype(np.float32)], axis=1)
        return encodings, np.stack(steps, 1).astype(np.float32)


def _blocks(rows: int, width: int) -> Iterator[slice]:
    """Yield slices of some rows, each of about `BLOCK` numbers."""
    step = max(1, BLOCK // width)
    return (slice(start, start + step) for start in range(0, rows, step))


def _product(left: Array, right: Array) -> Array:
    """Return `left @ right`. BLAS would round equal rows in different ways, by their positions."""
    product: Array = np.einsum("ij,jk->ik", left, right)
    return product
