"""GNN-RAG's graph network in torch (extra `train`): what a training changes, and what it minimises.

C. Mavromatis, G. Karypis: GNN-RAG: Graph Neural Retrieval for Large Language Model Reasoning. arXiv:2405.20139,
sections 4.1 and 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kg_retrievers.algorithms.neighborhood import neighborhood
from kg_retrievers.errors import MissingExtraError
from kg_retrievers.graph.adjacency import is_backward, label_count
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import GraphIndex
from kg_retrievers.methods.gnn_rag.config import GraphReasonerConfig, embed_relations, embed_tokens
from kg_retrievers.methods.gnn_rag.message_passing import LocalAdjacency
from kg_retrievers.methods.gnn_rag.model import SMALL, GraphReasoner, ReasonerOnGraph, Surroundings, along_first
from kg_retrievers.training.dataset import TrainingQuestion
from kg_retrievers.training.fit import Learner, drawn

try:
    import torch
except ImportError as cause:
    raise MissingExtraError("train_graph_reasoner", "train") from cause


class Example(NamedTuple):
    """A question, the ids of the entities around its own, what joins them, and the positions of its answers."""

    question: TrainingQuestion
    nodes: Array
    around: Surroundings
    answers: Array


def _passed(weights: torch.Tensor, messages: torch.Tensor, adjacency: LocalAdjacency) -> torch.Tensor:
    """Return what `pass_messages` adds, of which torch knows the gradients."""
    rows, labels = np.repeat(np.arange(len(weights)), np.diff(adjacency.indptr)), adjacency.labels
    is_first = np.diff(rows * (1 + len(messages)) + labels, prepend=-1) != 0  # of a label at an entity
    row, label = torch.from_numpy(rows[is_first]), torch.from_numpy(labels[is_first])
    pair, sender = torch.from_numpy(np.cumsum(is_first) - 1), torch.from_numpy(adjacency.neighbors)
    sums = weights.new_zeros(len(row)).index_add(0, pair, weights[sender])
    return messages.new_zeros(len(weights), messages.shape[1]).index_add(0, row, sums[:, None] * messages[label])


class Batch(NamedTuple):
    """Several questions side by side, with their entities and labels, one question's after another's.

    Attributes:
        adjacency: Entries between entities.
        distinct: One entry for each label at an entity.
        labels: int64, shape (l): labels of the graph, those of tails first, and
        labels_of: int64, shape (l): the question of each.
        along: How many labels are of tails.
        nodes_of: int64, shape (n): the question of each entity.
        seeds: int64, shape (s): positions of the questions' own entities.
        at_seeds: float32, shape (n): uniform over those of a question.
        starts: Where the entities of each question begin.
    """

    adjacency: LocalAdjacency
    distinct: LocalAdjacency
    labels: torch.Tensor
    labels_of: torch.Tensor
    along: int
    nodes_of: torch.Tensor
    seeds: torch.Tensor
    at_seeds: torch.Tensor
    starts: list[int]

    @classmethod
    def of(cls, examples: Sequence[Example]) -> Batch:
        """Join examples."""
        sizes = [len(example.nodes) for example in examples]
        starts = np.cumsum([0, *sizes[:-1]])
        counts = [len(example.around.labels) for example in examples]
        begins = np.cumsum([0, *counts[:-1]])
        labels = np.concatenate([example.around.labels for example in examples])
        order = along_first(labels)
        positions = np.argsort(order)

        def joined(parts: Sequence[LocalAdjacency]) -> LocalAdjacency:
            entries = np.cumsum([0, *(len(part.labels) for part in parts[:-1])])
            indptr = [part.indptr[1:] + entry for part, entry in zip(parts, entries, strict=True)]
            neighbors = [part.neighbors + start for part, start in zip(parts, starts, strict=True)]
            labels_here = [part.labels + begin for part, begin in zip(parts, begins, strict=True)]
            return LocalAdjacency(
                np.concatenate([np.zeros(1, np.int64), *indptr]),
                np.concatenate(neighbors).astype(np.int32),
                positions[np.concatenate(labels_here)].astype(np.int32),
            )

        seeds = [example.around.seeds + start for example, start in zip(examples, starts, strict=True)]
        at_seeds = np.zeros(sum(sizes), np.float32)
        for own in seeds:
            at_seeds[own] = 1 / len(own)
        return cls(
            joined([example.around.adjacency for example in examples]),
            joined([example.around.distinct for example in examples]),
            torch.from_numpy(labels[order]),
            torch.from_numpy(np.repeat(np.arange(len(examples)), counts)[order]),
            int(is_backward(labels).sum()),
            torch.from_numpy(np.repeat(np.arange(len(examples)), sizes)),
            torch.from_numpy(np.concatenate(seeds)),
            torch.from_numpy(at_seeds),
            starts.tolist(),
        )


class ReasonerNetwork(Learner[GraphReasoner, Example]):
    """The reasoner in torch: the same sums as in `ReasonerOnGraph`, for several questions at once.

    Args:
        index: The indexed graph.
        config: What the reasoner looks at, and its sizes.
        rng: What draws the weights.
        max_hops: How far candidates are from the question's entities.
        max_nodes: The most candidates.
    """

    model_class, advice = GraphReasoner, "pass mask_seeds=False"

    def __init__(
        self,
        index: GraphIndex,
        config: GraphReasonerConfig,
        rng: np.random.Generator,
        max_hops: int = 3,
        max_nodes: int = 2_000,
    ) -> None:
        """Draw the weights."""
        self.index, self.config, self.own_entities = index, config, not config.mask_seeds
        self._max_hops, self._max_nodes = max_hops, max_nodes
        self.parameters = {name: _drawn(name, shape, rng).requires_grad_() for name, shape in config.shapes.items()}
        self.mask_entities = config.mask_entities
        self._relations = torch.from_numpy(embed_relations(index, config.tokens, config.pooling))
        if config.inverse == "words":
            reversed_words = embed_relations(index, config.tokens, config.pooling, reverse=True)
            self._reversed_relations = torch.from_numpy(reversed_words)
        self.embedded = {}
        self._gru = torch.nn.GRU(config.width, config.width, batch_first=True, bidirectional=True)

    def embed_questions(self, texts: Sequence[str]) -> list[Array]:
        """Return the vectors of the tokens of each question."""
        return embed_tokens(self.index, texts, self.config.tokens)

    def example(self, question: TrainingQuestion) -> Example:
        """Return what is around the entities of a question."""
        adjacency = self.index.graph.adjacency
        nodes = neighborhood(adjacency, question.seeds, max_hops=self._max_hops, max_nodes=self._max_nodes).nodes
        wanted = np.isin(nodes, question.answers)
        if self.config.mask_seeds:
            wanted &= ~np.isin(nodes, question.seeds)
        around = Surroundings.of(adjacency, nodes, question.seeds)
        return Example(question, nodes, around, np.flatnonzero(wanted))

    def size(self, example: Example) -> int:
        """Return the number of triples, or 0 where no answer is among the candidates."""
        return len(example.around.adjacency.labels) // 2 if len(example.answers) else 0

    def rank(self, model: ReasonerOnGraph, example: Example) -> Array:
        """Return the entities by falling probability."""
        scores = model.score(example.question.text, example.nodes, example.question.seeds)
        ranked: Array = example.nodes[np.argsort(-scores, kind="stable")]
        return ranked

    def loss(self, examples: Sequence[Example], rng: np.random.Generator) -> torch.Tensor:
        """Return the mean loss of some questions."""
        batch = Batch.of(examples)
        logarithms = self.logarithms(batch, [example.question.text for example in examples])
        total = logarithms.sum() * 0
        for example, start in zip(examples, batch.starts, strict=True):
            if count := len(example.answers):
                total = total - logarithms[torch.from_numpy(example.answers + start)].mean() - np.log(count)
        return total / len(examples)

    def logarithms(self, batch: Batch, texts: Sequence[str]) -> torch.Tensor:
        """Return the logarithms of the last probabilities, shape (n); far below 0 for what is masked."""
        of, config = self.parameters, self.config
        relations, beginning = self._turned_relations()
        matched = torch.cat([relations, of["loop"][None]]) @ of["match"] + of["match_bias"][:, None]
        instructions = self._instruct(texts)
        begin = (beginning @ of["begin"])[batch.labels]
        states = _passed(torch.ones(len(batch.nodes_of)), begin, batch.distinct).relu()
        rows = [of_layer[batch.labels][:, None] for of_layer in matched]
        logarithms = states.new_empty(0)
        for stage in range(config.stages):
            if stage:
                at_seeds = torch.zeros(len(texts), config.width)
                at_seeds = at_seeds.index_add(0, batch.nodes_of[batch.seeds], states[batch.seeds])
                instructions = self._renew(instructions, at_seeds)
            likely, asked = batch.at_seeds, instructions[batch.labels_of]
            for layer in range(config.layers):
                sent = (rows[layer] * asked).relu().flatten(1)
                of_itself = (matched[layer, -1] * instructions).relu().flatten(1)
                receive = of["receive"][layer]
                messages = torch.cat([sent[: batch.along] @ receive[0], sent[batch.along :] @ receive[1]])
                if config.relative:
                    highest = torch.zeros(len(texts)).scatter_reduce(0, batch.nodes_of, likely, "amax")
                    likely = likely / highest.clamp_min(1e-30)[batch.nodes_of]
                own = states @ of["keep"][layer] + of["bias"][layer]
                own = own + likely[:, None] * (of_itself @ (receive[0] + receive[1]))[batch.nodes_of]
                states = (own + _passed(likely, messages, batch.adjacency)).relu()
                if config.norms:
                    states = states / (states.square().mean(1, keepdim=True) + float(SMALL)).sqrt()
                logarithms = self._log_softmax(states @ of["score"], batch, len(texts))
                likely = logarithms.exp()
        return logarithms

    def _turned_relations(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the vectors of relations in either direction, by label, and those that entities begin with."""
        of, config = self.parameters, self.config
        vectors = self._relations @ of["token"] + of["token_bias"]
        if config.inverse == "words":
            against, along = self._reversed_relations @ of["token"] + of["token_bias"], vectors
        else:
            against, along = vectors @ of["against"] + of["against_bias"], vectors @ of["along"] + of["along_bias"]
        # In the order of the labels of one relation. Written into rows by label, gradients would round differently.
        turned = [along if is_backward(label) else against for label in range(label_count(1))]
        relations = torch.stack(turned, 1).view(-1, config.width)
        if config.inverse == "weights":
            return relations, relations
        return relations, vectors.repeat_interleave(label_count(1), 0)

    def _instruct(self, texts: Sequence[str]) -> torch.Tensor:
        """Return the instructions, (questions, K, width)."""
        of, config = self.parameters, self.config
        tokens = torch.nn.utils.rnn.pad_sequence([self.embedded[text] for text in texts], batch_first=True)
        lengths = torch.tensor([len(self.embedded[text]) for text in texts])
        there = torch.arange(tokens.shape[1]) < lengths[:, None]
        states = (tokens @ of["token"] + of["token_bias"]) * there[..., None]
        summary = states[:, 0] if config.pooling == "first" else states.sum(1) / lengths[:, None]
        sharpness = config.width**-0.5 if config.norms else 1.0
        if config.tokens == "words":
            weights = {name.removeprefix("gru."): of[name] for name in of if name.startswith("gru.")}
            packed = torch.nn.utils.rnn.pack_padded_sequence(states, lengths, batch_first=True, enforce_sorted=False)
            read, last_read = torch.func.functional_call(self._gru, weights, (packed,))
            both, _ = torch.nn.utils.rnn.pad_packed_sequence(read, batch_first=True)
            states, summary = states + both.view(*states.shape[:2], 2, -1).sum(2), last_read.sum(0)
        instructions, last = [], torch.zeros(len(texts), config.width)
        for part in range(config.instructions):
            asked = summary @ of["ask"][part] + of["ask_bias"][part]
            joined = torch.cat([last, asked, last * asked, asked - last], 1) @ of["join"] + of["join_bias"]
            attention = (states @ (joined * of["attend"] * sharpness)[..., None])[..., 0].masked_fill(
                ~there, -torch.inf
            )
            last = (attention.softmax(1)[:, None] @ states)[:, 0]
            instructions.append(last)
        return torch.stack(instructions, 1)

    def _renew(self, instructions: torch.Tensor, seeds: torch.Tensor) -> torch.Tensor:
        of = self.parameters
        there = seeds[:, None].expand_as(instructions)
        joined = torch.cat([instructions, there, instructions - there], 2)
        if self.config.gates == "own":
            gate, new = (torch.einsum("qki,kij->qkj", joined, of[name]) for name in ("gate", "renew"))
        else:
            gate, new = joined @ of["gate"], joined @ of["renew"]
        gate = torch.sigmoid(gate + of["gate_bias"])
        return gate * (new + of["renew_bias"]) + (1 - gate) * instructions

    def _log_softmax(self, scores: torch.Tensor, batch: Batch, questions: int) -> torch.Tensor:
        """Return the logarithms of the softmax over the entities of each question."""
        if self.config.mask_seeds:
            scores = scores.index_fill(0, batch.seeds, -1e9)
        highest = torch.full((questions,), -torch.inf).scatter_reduce(0, batch.nodes_of, scores.detach(), "amax")
        scores = scores - highest[batch.nodes_of]
        return scores - torch.zeros(questions).index_add(0, batch.nodes_of, scores.exp()).log()[batch.nodes_of]


def _drawn(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> torch.Tensor:
    """Draw a weight; biases are 0. Tokens come as unit vectors, and are brought to numbers of about one half."""
    if "bias" in name:
        return torch.zeros(shape)
    return drawn(shape, rng) * (shape[0] ** 0.5 if name == "token" else 1.0)
