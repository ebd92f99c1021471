"""GNN-RAG's graph network, and how it is served without torch.

C. Mavromatis, G. Karypis: GNN-RAG: Graph Neural Retrieval for Large Language Model Reasoning. arXiv:2405.20139,
sections 4.1 and 4.2. The network comes from the same authors' ReaRev: Adaptive Reasoning for Question Answering over
Knowledge Graphs. Findings of EMNLP 2022, arXiv:2210.13650.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from kg_retrievers.algorithms.compiled import compiled_entry
from kg_retrievers.algorithms.local_walk import triples_between
from kg_retrievers.core.trained_model import TrainedModel
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Adjacency, readable
from kg_retrievers.graph.adjacency import Edges, is_backward, relation_of
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.validation import checked_dataclass
from kg_retrievers.index import MASK, GraphIndex

#: "words": each word by itself, with any embeddings of the index. "states": the states of the tokens in their text, as
#: in the paper. This needs embeddings with a method `embed_tokens`, such as `local_embeddings`, which returns an array
#: of shape (tokens, dimension) for each text.
Tokens = Literal["words", "states"]

#: The vector of a text as a whole: the mean of its tokens, or the state of the first one, which language models keep
#: for that.
Pooling = Literal["mean", "first"]

_WORD = re.compile(rf"[^\W_]+|{MASK}")


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
    if tokens == "states" and not hasattr(index.embeddings, "embed_tokens"):
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
        tokens: The kind of tokens.

    Raises:
        InvalidArgumentError: If the embeddings give no such tokens.
        StaleIndexError: If they do not fit the index.
    """
    check_tokens(index, tokens)
    if tokens == "states":
        return _embed_states(index.embeddings, texts, index.dimension)
    of_texts = [words(text) for text in texts]
    distinct = list(dict.fromkeys(word for of_text in of_texts for word in of_text))
    vectors = dict(zip(distinct, index.embed(distinct), strict=True)) if distinct else {}
    return [np.stack([vectors[word] for word in of_text]) for of_text in of_texts]


def embed_relations(index: GraphIndex, tokens: Tokens, pooling: Pooling, *, reverse: bool = False) -> Array:
    """Return the vector of each relation, float32, shape (relations, dimension), from its tokens.

    Args:
        index: The index whose embeddings are asked.
        tokens: The kind of tokens.
        pooling: How one vector stands for all tokens.
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


def _embed_states(embeddings: Any, texts: Sequence[str], dimension: int) -> list[Array]:
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


#: The source of the vectors of relations that are followed against their direction. "weights": a product of their own
#: with the vectors of the same words. "words": the same product with the vectors of the words in reverse, as in the
#: published code.
Inverse = Literal["weights", "words"]

#: Which gate renews an instruction: one that all share, or its own, as in ReaRev (arXiv:2210.13650).
Gates = Literal["shared", "own"]

#: The endings of the names of the weights that read a question forwards, and backwards.
WAYS = ("", "_reverse")


@checked_dataclass
class GraphReasonerConfig:
    """The inputs and sizes of a reasoner.

    Attributes:
        dimension: The length of the embeddings.
        width: The length of all vectors inside.
        instructions: How many parts of a question are distinguished (K). 3 for MetaQA in the published code.
        layers: How many hops are reasoned over (L). 3 for MetaQA in the published code.
        stages: How often the hops are reasoned over, each time with instructions that the last time has changed (T). 2
            for MetaQA in the published code. A second stage doubled the time and found no more on training questions of
            MetaQA.
        tokens: The tokens of questions and relations that are read, see `Tokens`.
        relative: Whether a sender counts by its probability relative to the likeliest sender's (ours), or by the
            probability itself.
        mask_seeds: Whether the entities of the question are never candidates, as in the published code for all sets but
            one.
        norms: Whether the vector of an entity is divided by the root of its mean square in each layer, and attention by
            the root of `width` (ours).
        pooling: How one vector stands for a question, with `tokens="states"`, and for a relation as a whole.
        inverse: The source of the vectors of relations that are followed against their direction.
        gates: Which gate renews an instruction, with `stages` above 1.
        mask_entities: Whether the question is read without its entities, `MASK` in their place. Not in the paper.

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
        """The shape of each weight. Names with a dot belong to a `torch.nn.GRU`."""
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


class LocalAdjacency(NamedTuple):
    """The adjacency entries between some entities of a graph, with positions as ids, see `Adjacency`.

    Attributes:
        indptr: int64, shape (n + 1): row v is `indptr[v]:indptr[v + 1]`.
        neighbors: int32, shape (entries): positions of the entities at the other end.
        labels: int32, shape (entries): the labels of the graph's adjacency. Equal ones stand together in a row.
    """

    indptr: Array
    neighbors: Array
    labels: Array


def local_adjacency(adjacency: Adjacency, nodes: Array) -> LocalAdjacency:
    """Return the adjacency entries between some entities.

    Cost: linear in the triples of which one of the entities is the head, and sorts those between them.

    Args:
        adjacency: The graph, both directions.
        nodes: Ids of entities, int, shape (n), each once.
    """
    order = np.argsort(nodes)
    ascending = nodes[order]
    edges = Edges(adjacency)[triples_between(adjacency, ascending)]
    for column in (0, 2):
        edges[:, column] = order[np.searchsorted(ascending, edges[:, column])]
    local = Adjacency.of_edges(edges, len(nodes))
    return LocalAdjacency(local.indptr.astype(np.int64), local.neighbors, local.labels.astype(np.int32))


@compiled_entry
def pass_messages(adjacency: LocalAdjacency, weights: Array, messages: Array, received: Array) -> None:
    """Add to each entity the messages of its neighbors: `received[v] += sum(weights[u] * messages[label])`.

    Cost: one addition per entry, and `width` additions per distinct label at an entity whose neighbors have weights.

    Args:
        adjacency: The entries. `labels` are rows of `messages`.
        weights: float32, shape (n): the weight of each sender.
        messages: float32, shape (labels, width).
        received: float32, shape (n, width). The messages are added to it.
    """
    indptr, neighbors, labels = adjacency.indptr, adjacency.neighbors, adjacency.labels
    width = messages.shape[1]
    for v in range(len(indptr) - 1):
        i, end = indptr[v], indptr[v + 1]
        while i < end:
            label = labels[i]
            total = np.float64(weights[neighbors[i]])  # twice as precise, so that the order of triples hardly matters
            i += 1
            while i < end and labels[i] == label:
                total += weights[neighbors[i]]
                i += 1
            weight = np.float32(total)
            if weight != 0:
                for j in range(width):
                    received[v, j] += weight * messages[label, j]


@compiled_entry
def add_products(states: Array, weights: Array, sums: Array) -> None:
    """Add `states @ weights` to `sums`. Equal rows get equal results, which BLAS rounds by their positions.

    Args:
        states: float32, shape (n, width).
        weights: float32, shape (width, m).
        sums: float32, shape (n, m). The products are added to it.
    """
    for v in range(states.shape[0]):
        for k in range(states.shape[1]):
            state = states[v, k]
            if state != 0:
                for j in range(weights.shape[1]):
                    sums[v, j] += state * weights[k, j]


#: Added to the mean square of an entity's vector before its root divides the vector.
SMALL = 0.01


class Surroundings(NamedTuple):
    """The entities around the seeds of a question, by position, and the entries that join them.

    Attributes:
        adjacency: The entries between them. Its `labels` are positions in `labels` below, not ascending at an entity.
        labels: int64, shape (l): the labels of the graph's adjacency that occur, labels of tails first.
        distinct: The same entries, with each label once per entity.
        seeds: int64, shape (s): the positions of the seeds.
    """

    adjacency: LocalAdjacency
    labels: Array
    distinct: LocalAdjacency
    seeds: Array

    @classmethod
    def of(cls, adjacency: Adjacency, nodes: Array, seeds: Sequence[int] | Array) -> Surroundings:
        """Cut the surroundings of the seeds out of a graph.

        Args:
            adjacency: The graph, both directions.
            nodes: Ids of entities, int, shape (n), ascending, the seeds among them.
            seeds: Ids of entities, shape (s).
        """
        found = local_adjacency(adjacency, nodes)
        labels, positions = np.unique(found.labels, return_inverse=True)
        order = np.argsort(~is_backward(labels), kind="stable")  # messages come to tails along triples
        positions = np.argsort(order)[positions].astype(np.int32)
        is_first = np.ones(len(positions), np.bool_)
        is_first[1:] = positions[1:] != positions[:-1]
        is_first[found.indptr[:-1][np.diff(found.indptr) > 0]] = True
        indptr = np.concatenate([[0], np.cumsum(is_first)])[found.indptr]
        distinct = LocalAdjacency(indptr, found.neighbors[is_first], positions[is_first])
        here = found._replace(labels=positions)
        return cls(here, labels[order].astype(np.int64), distinct, np.searchsorted(nodes, seeds))


class GraphReasoner(TrainedModel[GraphReasonerConfig]):
    """A trained graph network that finds the answers among the entities around a question's entities.

    `GNNRAGRetriever` asks it.

    The question becomes `instructions` vectors, each a mean of its tokens with weights of attention (equations 4 to 6).
    Entities start as the sum of the relations at them (section 4.2), so that the network carries over to entities that
    it has not seen. In each of `layers`, an entity receives from each neighbour, for each instruction i and relation r,
    `relu(W r * i)`, weighed by the neighbour's probability at this point. Its new vector comes from the old one and
    from the messages of either direction. It gives the entity's probability by a softmax over all entities. With
    `mask_seeds`, the question's own entities are left out. At first all probability is with the question's entities.
    With `stages` above 1 this is done again, with instructions that a gate has renewed by the vectors of the question's
    entities.

    A triple that is followed against its direction counts as another relation, whose vector is another product of the
    same words. Each entity also sends to itself.

    *Differs from the published code* by default:

    - `relative`: a sender counts by its relative probability.
    - `norms`: in each layer the vector of an entity is divided by the root of its mean square, and attention by the
      root of `width`. Without this, most trainings on questions of three hops end far from the best.
    - `tokens`: without a language model, the tokens are words. Recurrent networks of torch's kind (GRU) read them, one
      from each end, and their states are added to the words.
    - `pooling`: with a language model, a question is the mean of its tokens rather than its first one.
    - `inverse`: inverse relations have weights of their own, rather than their words in reverse.
    - `gates`: all instructions share one gate.
    - `mask_entities`: questions are read without their entities.
    - `stages`: there is one stage.

    A training with `preset="paper"` has none of these differences.

    *Also with the preset*, the messages, and their products with the weights that mix them, are computed once for each
    relation in the neighbourhood, not for each triple, which gives the same result. The first vectors count a relation
    at an entity once, as the formula of section 4.2 does, while the code counts triples. A relation is its first token,
    as in equation 3, while the code pools tokens by attention. An entity's triple to itself has a vector of its own.
    Nothing is dropped out in a training. The paper's other reasoners, NSM and GraftNet, are not here. For its arguments
    see `TrainedModel`.
    """

    method = "gnn-rag"
    trainer = "train_graph_reasoner"
    config_class = GraphReasonerConfig

    def on(self, index: GraphIndex) -> ReasonerOnGraph:
        """Return the reasoner for the questions to a graph.

        Raises:
            ModelMismatchError: If the index has other embeddings than those the reasoner was trained with.
        """
        return ReasonerOnGraph(self, index)


class Reasoning(ABC):
    """The formulas of the network, in numpy to serve it and in torch to train it."""

    #: numpy or torch.
    xp: Any
    #: The weights by name, in numpy or torch.
    parameters: Any
    config: GraphReasonerConfig

    @abstractmethod
    def relation_vectors(self, relations: Array, *, reverse: bool = False) -> Any:
        """Return the vectors of relations, (relations, width), with their words in reverse if `reverse`."""

    @abstractmethod
    def read(self, states: Any) -> tuple[Any, Any]:
        """Return the recurrent networks' states of each token, (tokens, width), and of all, (width).

        The networks read from both ends.
        """

    @abstractmethod
    def passed(self, weights: Any, messages: Any, adjacency: LocalAdjacency) -> Any:
        """Return the messages that entities receive, (n, width): see `pass_messages`."""

    @abstractmethod
    def product(self, states: Any, weights: Any) -> Any:
        """Return `states @ weights`. Equal rows must be equal if the network is served."""

    @abstractmethod
    def masked(self, scores: Any, positions: Array) -> Any:
        """Return scores of which some are so low that they get no probability."""

    @abstractmethod
    def softmax(self, scores: Any) -> Any:
        """Return the probabilities of entities."""

    def scores(self, tokens: Any, around: Surroundings, entities: int) -> Any:
        """Return the last scores of some entities, (n), whose softmax is their probability.

        Args:
            tokens: The vectors of the question's tokens.
            around: The entities.
            entities: Their number.
        """
        xp, of, config = self.xp, self.parameters, self.config
        along = int(is_backward(around.labels).sum())
        beginning, matched = self._match_labels(around.labels, along)
        instructions = self._instruct(tokens)
        states = _relu(self.passed(xp.ones(entities, dtype=xp.float32), beginning @ of["begin"], around.distinct))
        scores = at_seeds = xp.zeros(entities, dtype=xp.float32)
        at_seeds[around.seeds] = 1 / len(around.seeds)
        for stage in range(config.stages):
            if stage:
                instructions = self._renew(instructions, states[around.seeds].sum(0))
            likely = at_seeds
            for rows, keep, bias, receive in zip(matched, of["keep"], of["bias"], of["receive"], strict=True):
                sent = _relu(rows[:, None] * instructions).reshape(len(rows), -1)
                messages = xp.concatenate([sent[:along] @ receive[0], sent[along:-1] @ receive[1]])
                if config.relative:
                    likely = likely / xp.clip(likely.max(), 1e-30, None)
                own = self.product(states, keep) + bias + likely[:, None] * (sent[-1] @ (receive[0] + receive[1]))
                states = _relu(own + self.passed(likely, messages, around.adjacency))
                if config.norms:
                    squares = xp.einsum("ij,ij->i", states, states)
                    states = states / xp.sqrt(squares / config.width + SMALL)[:, None]
                scores = xp.einsum("ij,j->i", states, of["score"])
                if config.mask_seeds:
                    scores = self.masked(scores, around.seeds)
                likely = self.softmax(scores)
        return scores

    def _match_labels(self, labels: Array, along: int) -> tuple[Any, Any]:
        """Return the vectors that entities begin with, (l, width), and the vectors to match, (layers, l + 1, width).

        The first `along` labels are of tails. The last row of the second stands for an entity itself.
        """
        xp, of, relations = self.xp, self.parameters, relation_of(labels)
        vectors = self.relation_vectors(relations)
        if self.config.inverse == "words":
            against = self.relation_vectors(relations[along:], reverse=True)
            turned, beginning = xp.concatenate([vectors[:along], against]), vectors
        else:
            to_tails = vectors[:along] @ of["along"] + of["along_bias"]
            turned = beginning = xp.concatenate([to_tails, vectors[along:] @ of["against"] + of["against_bias"]])
        return beginning, xp.concatenate([turned, of["loop"][None]]) @ of["match"] + of["match_bias"][:, None]

    def _instruct(self, tokens: Any) -> Any:
        """Return the instructions, (K, width)."""
        xp, of, config = self.xp, self.parameters, self.config
        states = tokens @ of["token"] + of["token_bias"]
        summary = states[0] if config.pooling == "first" else states.mean(0)
        if config.tokens == "words":
            read, summary = self.read(states)
            states = states + read
        sharpness = config.width**-0.5 if config.norms else 1.0
        instructions, last = [], summary * 0
        for ask, bias in zip(of["ask"], of["ask_bias"], strict=True):
            asked = summary @ ask + bias
            joined = xp.concatenate([last, asked, last * asked, asked - last]) @ of["join"] + of["join_bias"]
            attention = states @ (joined * of["attend"] * sharpness)
            attention = xp.exp(attention - attention.max())
            last = (attention / attention.sum()) @ states
            instructions.append(last)
        return xp.stack(instructions)

    def _renew(self, instructions: Any, seeds: Any) -> Any:
        xp, of = self.xp, self.parameters
        there = instructions * 0 + seeds
        joined = xp.concatenate([instructions, there, instructions - there], axis=1)
        if self.config.gates == "own":
            gate, new = (xp.einsum("ki,kij->kj", joined, of[name]) for name in ("gate", "renew"))
        else:
            gate, new = joined @ of["gate"], joined @ of["renew"]
        gate = (1 + xp.tanh((gate + of["gate_bias"]) / 2)) / 2
        return gate * (new + of["renew_bias"]) + (1 - gate) * instructions


def _relu(values: Any) -> Any:
    return values * (values > 0)


class ReasonerOnGraph(Reasoning):
    """A reasoner on one graph. Safe to share between threads.

    Cost: once per graph, relations * dimension * width multiplications. For a question and each layer of each stage,
    n * width ** 2 for n entities, and width for each relation at an entity, however many triples it has.

    Args:
        reasoner: The reasoner.
        index: The indexed graph.

    Raises:
        ModelMismatchError: If the index has other embeddings than those the reasoner was trained with.
        InvalidArgumentError: If its embeddings give no such tokens.
    """

    def __init__(self, reasoner: GraphReasoner, index: GraphIndex) -> None:
        """Check that they fit."""
        reasoner.check_embeddings(index)
        check_tokens(index, reasoner.config.tokens)
        self.xp, self.index, self.config, self.parameters = np, index, reasoner.config, reasoner.weights
        self._vectors: dict[bool, Array] = {}

    def score(self, question: str, nodes: Array, seeds: Sequence[int] | Array) -> Array:
        """Return how likely each entity is to be an answer.

        Args:
            question: The question, with `MASK` in place of its entities.
            nodes: Ids of the entities around the question's, int, shape (n), ascending. Triples between others are not
                seen.
            seeds: Ids of the entities that the question is about, int, shape (s), all among `nodes`.

        Returns:
            float64, shape (n), in the order of `nodes`: from 0 to 1, the same for entities that look the same. They sum
            to 1, or are 0 if no entity is left to be an answer, or if the question has none.

        Raises:
            StaleIndexError: If the embeddings do not fit the index.
            InvalidArgumentError: If a seed is not among the nodes, or scores are not finite.
        """
        if not len(seeds):
            return np.zeros(len(nodes))
        if not np.isin(seeds, nodes).all():
            raise InvalidArgumentError(
                f"ReasonerOnGraph: the seeds must be among the nodes, but got seeds {list(seeds)!r:.100} and "
                f"{len(nodes)} nodes without one of these. Take the neighbourhood of the seeds."
            )
        around = Surroundings.of(self.index.graph.adjacency, nodes, seeds)
        tokens = embed_tokens(self.index, [question], self.config.tokens)[0]
        likely = self.softmax(self.scores(tokens, around, len(nodes)))
        if not np.isfinite(likely).all():
            raise InvalidArgumentError("GraphReasoner: its weights are so large that scores are not finite.")
        return likely.astype(np.float64)

    def relation_vectors(self, relations: Array, *, reverse: bool = False) -> Array:
        """Return the vectors of relations, computed once per graph."""
        if reverse not in self._vectors:
            pooled = embed_relations(self.index, self.config.tokens, self.config.pooling, reverse=reverse)
            self._vectors[reverse] = pooled @ self.parameters["token"] + self.parameters["token_bias"]
        return self._vectors[reverse][relations]

    def read(self, states: Array) -> tuple[Array, Array]:
        """Return the states of the recurrent networks, as `torch.nn.GRU` has them."""
        onward, back = self._read(states, ""), self._read(states[::-1], "_reverse")
        return onward + back[::-1], onward[-1] + back[-1]

    def _read(self, tokens: Array, way: str) -> Array:
        of, d = self.parameters, self.config.width
        inputs = tokens @ of[f"gru.weight_ih_l0{way}"].T + of[f"gru.bias_ih_l0{way}"]
        weight, bias = of[f"gru.weight_hh_l0{way}"], of[f"gru.bias_hh_l0{way}"]
        state, states = np.zeros(d, np.float32), np.empty_like(tokens)
        for position, row in enumerate(inputs):
            own = weight @ state + bias
            reset, update = np.split((1 + np.tanh((row[: 2 * d] + own[: 2 * d]) / 2)) / 2, 2)
            new = np.tanh(row[2 * d :] + reset * own[2 * d :])
            state = states[position] = new + update * (state - new)
        return states

    def passed(self, weights: Array, messages: Array, adjacency: LocalAdjacency) -> Array:
        """Return the messages that entities receive."""
        received = np.zeros((len(weights), messages.shape[1]), np.float32)
        pass_messages(adjacency, weights, messages, received)
        return received

    def product(self, states: Array, weights: Array) -> Array:
        """Return a product that does not depend on positions."""
        sums = np.zeros((len(states), weights.shape[1]), np.float32)
        add_products(states, weights, sums)
        return sums

    def masked(self, scores: Array, positions: Array) -> Array:
        """Return scores of which some are minus infinity."""
        scores[positions] = -np.inf
        return scores

    def softmax(self, scores: Array) -> Array:
        """Return the probabilities, or 0 for all if none has a score."""
        if scores.max(initial=-np.inf) == -np.inf:
            return np.zeros_like(scores)
        powers = np.exp(scores - scores.max())
        shares: Array = powers / powers.sum()
        return shares
