"""GNN-RAG's graph network, and how it is served without torch.

C. Mavromatis, G. Karypis: GNN-RAG: Graph Neural Retrieval for Large Language Model Reasoning. arXiv:2405.20139,
sections 4.1 and 4.2; the network is that of the same authors' ReaRev: Adaptive Reasoning for Question Answering over
Knowledge Graphs. Findings of EMNLP 2022, arXiv:2210.13650.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from kg_retrievers.core.trained_model import TrainedModel
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Adjacency
from kg_retrievers.graph.adjacency import is_backward, label_count, label_of
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import GraphIndex
from kg_retrievers.methods.gnn_rag.config import GraphReasonerConfig, check_tokens, embed_relations, embed_tokens
from kg_retrievers.methods.gnn_rag.message_passing import LocalAdjacency, add_products, local_adjacency, pass_messages

#: Added to the mean square of an entity's vector before its root divides the vector.
SMALL = np.float32(0.01)


class Surroundings(NamedTuple):
    """The entities around the seeds of a question, by position, and the entries that join them.

    Attributes:
        adjacency: The entries between them; its `labels` are positions in `labels` below, not ascending at an entity.
        labels: int64, shape (l): the labels of the graph's adjacency that occur, those of tails first.
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
        order = along_first(labels)
        positions = np.argsort(order)[positions].astype(np.int32)
        is_first = np.ones(len(positions), np.bool_)
        is_first[1:] = positions[1:] != positions[:-1]
        is_first[found.indptr[:-1][np.diff(found.indptr) > 0]] = True
        indptr = np.concatenate([[0], np.cumsum(is_first)])[found.indptr]
        distinct = LocalAdjacency(indptr, found.neighbors[is_first], positions[is_first])
        here = found._replace(labels=positions)
        return cls(here, labels[order].astype(np.int64), distinct, np.searchsorted(nodes, seeds))


def along_first(labels: Array) -> Array:
    """Return an order of labels, those of tails first; messages come to tails along triples."""
    return np.argsort(~is_backward(labels), kind="stable")


class GraphReasoner(TrainedModel[GraphReasonerConfig]):
    """A trained graph network that finds the answers among the entities around a question's; `GNNRAGRetriever` asks it.

    The question becomes `instructions` vectors, each a mean of its tokens with weights of attention (equations 4 to 6).
    Entities start as the sum of the relations at them (section 4.2), so that the network carries over to entities that
    it has not seen. In each of `layers`, an entity receives from each neighbour, for each instruction i and relation r,
    `relu(W r * i)`, weighed by the neighbour's probability at this point. Its new vector comes from the old one and
    from what it received in either direction. It gives the entity's probability by a softmax over all entities, without
    the question's own where `mask_seeds`. At first all probability is with the question's entities. With `stages` above
    1 this is done again, with instructions that a gate has renewed by the vectors of the question's entities.

    A triple that is followed against its direction counts as another relation, whose vector is another product of the
    same words. Each entity also sends to itself.

    *Differs from the published code* by default: `relative`; in each layer the vector of an entity is divided by the
    root of its mean square, and attention by the root of `width`, without which most trainings on questions of three
    hops end far from the best (`norms`); without a language model, the tokens are words, read by recurrent networks of
    torch's kind (GRU), one from each end, whose states are added to the words (`tokens`); with one, a question is the
    mean of its tokens rather than its first one (`pooling`); inverse relations have weights of their own, rather than
    their words in reverse (`inverse`); all instructions share one gate (`gates`); questions are read without their
    entities (`mask_entities`); one stage. A training with `preset="paper"` has none of these differences.

    *Also with the preset*, the messages are computed once for each relation in the neighbourhood, not for each triple,
    which is the same, as their products with the weights that mix them are; the first vectors count a relation at an
    entity once, as the formula of section 4.2 does, where the code counts triples; a relation is its first token, as in
    equation 3, where the code pools tokens by attention; an entity's triple to itself has a vector of its own; nothing
    is dropped out in a training. The paper's other reasoners, NSM and GraftNet, are not here. For its arguments see
    `TrainedModel`.
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


class ReasonerOnGraph:
    """A reasoner on one graph. Safe to share between threads.

    Cost: once a graph, 2 * relations * layers * width ** 2 multiplications. For a question and each layer of each
    stage, n * width ** 2 for n entities, and width for each relation at an entity, however many triples it has.

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
        self.reasoner, self.index = reasoner, index

    @cached_property
    def _relations(self) -> tuple[Array, Array]:
        """The vectors that entities start from, (labels, width), and those to match, (layers, labels + 1, width).

        The labels are those of adjacency entries. The second are matched with instructions; their last row stands for
        an entity itself.
        """
        of, config = self.reasoner.weights, self.reasoner.config
        vectors = self._relation_vectors(reverse=False)
        if config.inverse == "weights":
            against, along = vectors @ of["against"] + of["against_bias"], vectors @ of["along"] + of["along_bias"]
            begin = _by_label(against @ of["begin"], along @ of["begin"])
        else:
            against, along = self._relation_vectors(reverse=True), vectors
            begin = _by_label(vectors @ of["begin"], vectors @ of["begin"])
        labels = _by_label(against, along)
        return begin, np.concatenate([labels, of["loop"][None]]) @ of["match"] + of["match_bias"][:, None]

    def _relation_vectors(self, *, reverse: bool) -> Array:
        """Return the vectors of all relations, (relations, width)."""
        of, config = self.reasoner.weights, self.reasoner.config
        pooled = embed_relations(self.index, config.tokens, config.pooling, reverse=reverse)
        vectors: Array = pooled @ of["token"] + of["token_bias"]
        return vectors

    def score(self, question: str, nodes: Array, seeds: Sequence[int] | Array) -> Array:
        """Return how likely each entity is to be an answer.

        Args:
            question: The question, with `MASK` in place of its entities.
            nodes: Ids of the entities around the question's, int, shape (n), ascending. Triples between others are not
                seen.
            seeds: Ids of the entities that the question is about, int, shape (s), all among `nodes`.

        Returns:
            float64, shape (n), in the order of `nodes`: from 0 to 1, the same for entities that look the same; they sum
            to 1, or are 0 where no entity is left to be an answer, or the question has none.

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
        instructions, states = self._instruct(question), self._begin(around, len(nodes))
        at_seeds = np.zeros(len(nodes), np.float32)
        at_seeds[around.seeds] = np.float32(1) / len(around.seeds)
        likely = at_seeds
        for stage in range(self.reasoner.config.stages):
            if stage:
                instructions = self._renew(instructions, states[around.seeds].sum(axis=0))
            likely = at_seeds
            for layer in range(self.reasoner.config.layers):
                states, likely = self._reason(layer, around, instructions, states, likely)
        if not np.isfinite(likely).all():
            raise InvalidArgumentError("GraphReasoner: its weights are so large that scores are not finite.")
        return likely.astype(np.float64)

    def _begin(self, around: Surroundings, entities: int) -> Array:
        """Return the vectors that the entities start with, (n, width), from the relations at them."""
        states = np.zeros((entities, self.reasoner.config.width), np.float32)
        pass_messages(around.distinct, np.ones(entities, np.float32), self._relations[0][around.labels], states)
        np.maximum(states, 0, out=states)
        return states

    def _reason(
        self, layer: int, around: Surroundings, instructions: Array, states: Array, likely: Array
    ) -> tuple[Array, Array]:
        """Return the vectors of the entities after a layer, (n, width), and their probabilities, (n)."""
        of, config = self.reasoner.weights, self.reasoner.config
        along, receive = int(is_backward(around.labels).sum()), of["receive"][layer]
        rows = self._relations[1][layer][np.append(around.labels, -1)]
        sent = np.maximum(rows[:, None] * instructions, 0).reshape(len(rows), -1)
        messages = np.concatenate([sent[:along] @ receive[0], sent[along:-1] @ receive[1]])
        if config.relative:
            likely = likely / max(likely.max(), np.float32(1e-30))
        new = of["bias"][layer] + likely[:, None] * (sent[-1] @ (receive[0] + receive[1]))
        add_products(states, of["keep"][layer], new)
        pass_messages(around.adjacency, likely, messages, new)
        states = np.maximum(new, 0, out=new)
        if config.norms:
            states /= np.sqrt(np.einsum("ij,ij->i", states, states) / config.width + SMALL)[:, None]
        return states, self._softmax(np.einsum("ij,j->i", states, of["score"]), around.seeds)

    def _instruct(self, question: str) -> Array:
        """Return the instructions, (K, width)."""
        of, config = self.reasoner.weights, self.reasoner.config
        states = embed_tokens(self.index, [question], config.tokens)[0] @ of["token"] + of["token_bias"]
        summary = states[0] if config.pooling == "first" else states.mean(axis=0)
        sharpness = np.float32(config.width**-0.5 if config.norms else 1)
        if config.tokens == "words":
            read, back = self._read(states, ""), self._read(states[::-1], "_reverse")
            states, summary = states + read + back[::-1], read[-1] + back[-1]
        instructions, last = [], np.zeros(config.width, np.float32)
        for part in range(config.instructions):
            asked = summary @ of["ask"][part] + of["ask_bias"][part]
            joined = np.concatenate([last, asked, last * asked, asked - last]) @ of["join"] + of["join_bias"]
            attention = states @ (joined * of["attend"] * sharpness)
            attention = np.exp(attention - attention.max())
            last = (attention / attention.sum()) @ states
            instructions.append(last)
        return np.stack(instructions)

    def _read(self, tokens: Array, way: str) -> Array:
        """Return the states of the recurrent network after each token, as `torch.nn.GRU` has them."""
        of, d = self.reasoner.weights, self.reasoner.config.width
        inputs = tokens @ of[f"gru.weight_ih_l0{way}"].T + of[f"gru.bias_ih_l0{way}"]
        weight, bias = of[f"gru.weight_hh_l0{way}"], of[f"gru.bias_hh_l0{way}"]
        state, states = np.zeros(d, np.float32), np.empty_like(tokens)
        for position, row in enumerate(inputs):
            own = weight @ state + bias
            reset, update = np.split(_logistic(row[: 2 * d] + own[: 2 * d]), 2)
            new = np.tanh(row[2 * d :] + reset * own[2 * d :])
            state = states[position] = new + update * (state - new)
        return states

    def _renew(self, instructions: Array, seeds: Array) -> Array:
        of = self.reasoner.weights
        there = np.broadcast_to(seeds, instructions.shape)
        joined = np.concatenate([instructions, there, instructions - there], axis=1)
        if self.reasoner.config.gates == "own":
            gate, new = (np.einsum("ki,kij->kj", joined, of[name]) for name in ("gate", "renew"))
        else:
            gate, new = joined @ of["gate"], joined @ of["renew"]
        gate = _logistic(gate + of["gate_bias"])
        renewed: Array = gate * (new + of["renew_bias"]) + (1 - gate) * instructions
        return renewed

    def _softmax(self, scores: Array, seeds: Array) -> Array:
        if self.reasoner.config.mask_seeds:
            scores[seeds] = -np.inf
        if scores.max(initial=-np.inf) == -np.inf:
            return np.zeros_like(scores)
        powers = np.exp(scores - scores.max())
        shares: Array = powers / powers.sum()
        return shares


def _by_label(against: Array, along: Array) -> Array:
    """Return rows of relations by the labels of adjacency entries.

    An entry without the direction bit is of a head: a message to the head goes against the triple.
    """
    ids, labels = np.arange(len(along)), np.empty((label_count(len(along)), along.shape[1]), np.float32)
    labels[label_of(ids, False)], labels[label_of(ids, True)] = against, along
    return labels


def _logistic(values: Array) -> Array:
    return (1 + np.tanh(values / 2)) / 2
