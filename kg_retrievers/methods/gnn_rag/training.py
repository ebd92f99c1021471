"""Training of GNN-RAG's graph network, with torch (extra `train`).

C. Mavromatis, G. Karypis: GNN-RAG: Graph Neural Retrieval for Large Language Model Reasoning. arXiv:2405.20139,
sections 4.1 and 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from kg_retrievers.algorithms.neighborhood import neighborhood
from kg_retrievers.bulk import Workers
from kg_retrievers.core.checked import checked_dataclass
from kg_retrievers.datasets import Question
from kg_retrievers.errors import MissingExtraError
from kg_retrievers.graph import readable
from kg_retrievers.graph.adjacency import is_backward, label_count
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import GraphIndex
from kg_retrievers.methods.gnn_rag.message_passing import LocalAdjacency, pass_gradients, pass_messages
from kg_retrievers.methods.gnn_rag.model import (
    SMALL,
    GraphReasoner,
    GraphReasonerConfig,
    ReasonerOnGraph,
    Surroundings,
    along_first,
)
from kg_retrievers.methods.gnn_rag.tokens import check_tokens, embed_tokens
from kg_retrievers.training.dataset import TrainingQuestion, training_questions
from kg_retrievers.training.fit import (
    Learner,
    ModelTraining,
    check_arguments,
    drawn,
    take_num_examples,
    train_on_questions,
)
from kg_retrievers.training.own_graphs import over_one_graph
from kg_retrievers.training.schedule import Schedule, stream

try:
    import torch
except ImportError as cause:
    raise MissingExtraError("train_graph_reasoner", "train") from cause

#: How many questions a training looks at by default, each counted anew in every epoch.
NUM_EXAMPLES = 16_000

#: If at least this share of questions has its own entity as an answer, those entities are candidates too. The share is
#: counted on so many questions at most. On PathQuestion it is 1 to 6 % ("the child of her parent"), on MetaQA 0.
OWN_SHARE, LOOKED_AT = 0.005, 1_000

#: The share of the steps, the first ones, in which the learning rate rises.
WARM_UP = 0.05


@checked_dataclass
class _Neighborhood:
    """The size of the neighbourhood of a question's entities."""

    who: ClassVar[str] = "train_graph_reasoner"

    max_hops: int = Field(ge=1)
    max_nodes: int = Field(ge=1)


class Example(NamedTuple):
    """A question, the ids of the entities around its own, what joins them, and the positions of its answers."""

    question: TrainingQuestion
    nodes: Array
    around: Surroundings
    answers: Array


def train_graph_reasoner(
    index: GraphIndex,
    questions: Sequence[Question],
    validation: Sequence[Question] | None = None,
    *,
    output: str | Path | None = None,
    max_hops: int = 3,
    max_nodes: int = 2_000,
    num_examples: int = NUM_EXAMPLES,
    batch_size: int = 4,
    learning_rate: float = 3e-3,
    validations: int = 8,
    patience: int = 4,
    seed: int = 0,
    progress: bool = False,
    workers: Workers | None = None,
    embedding_cache: str | Path | None = None,
    mask_seeds: bool | None = None,
    **config: Any,
) -> ModelTraining[GraphReasoner]:
    """Train a graph network on questions and their answers.

    The candidates are the entities within `max_hops` of those of a question, at most `max_nodes`, which
    `GNNRAGRetriever` then takes, too. Loss: the Kullback-Leibler divergence of the last probabilities from a uniform
    distribution over the answers among them, as in the published code; a question without one supervises nothing.

    *Differs from the published code* in steps of four questions instead of eight, with a learning rate of 0.003 that
    rises at first and then falls in a straight line instead of one of 0.0005 that stays, without dropout; and in what
    says when to stop: how high all answers stand, rather than whether one is first.

    With `output` the training is kept there after each validation, and the same call goes on after an interruption;
    in the end the model is saved there. The same arguments give the same model on the same machine.

    Args:
        index: The indexed graph.
        questions: With answers; entities that are not given are looked for. Those with a graph of their own
            (`GraphQuestion`) are trained on over these: of the index, only the embeddings are used then.
        validation: Questions that say when to stop; by default a tenth of the others, drawn at random.
        output: A folder for the model, which must hold none; by default nothing is saved.
        max_hops: How far candidates are from the entities.
        max_nodes: The most candidates.
        num_examples: How many questions the training looks at, each counted anew in every epoch.
        batch_size: How many questions make one step.
        learning_rate: The highest learning rate of Adam, after a twentieth of the steps (`WARM_UP`).
        validations: How often the model is validated.
        patience: After how many validations without a better one the training ends.
        seed: The seed of all random numbers.
        progress: Whether to show a progress bar on stderr.
        workers: Processes that find entities and candidates before the training, `LocalWorkers` or `RayWorkers`.
        embedding_cache: A file that keeps the vectors of names from one run to the next, for questions with graphs.
        mask_seeds: Whether the entities of a question are never candidates; None where less than `OWN_SHARE` of the
            questions, of `LOOKED_AT` at most, have one of them as an answer.
        **config: Further fields of `GraphReasonerConfig`, but the dimension.

    Raises:
        InvalidArgumentError: If nothing can be trained on, an argument is out of range, the names of the index are in a
            vector store, its embeddings give no such tokens, or the output holds a model or an unfinished training of
            something else.
        ModelLoadError: If the unfinished training in the output is damaged.
    """
    num_examples = take_num_examples(num_examples, config)
    check_arguments(train_graph_reasoner, GraphReasonerConfig, index, questions, validation, config)
    index, questions, validation = over_one_graph("train_graph_reasoner", index, questions, validation, embedding_cache)
    limits = _Neighborhood(max_hops, max_nodes)
    if mask_seeds is None:
        mask_seeds = _own_share(index, questions, max_hops) < OWN_SHARE
    settings = GraphReasonerConfig(dimension=index.dimension, mask_seeds=mask_seeds, **config)
    check_tokens(index, settings.tokens)
    schedule = Schedule(num_examples, validations, patience, batch_size, learning_rate, seed, WARM_UP)
    return train_on_questions(
        _Network(index, settings, stream(seed, "weights"), max_hops, max_nodes),
        questions,
        validation,
        who="train_graph_reasoner",
        max_hops=max_hops,
        output=output,
        schedule=schedule,
        facts=asdict(limits),
        progress=progress,
        workers=workers,
    )


def _own_share(index: GraphIndex, questions: Sequence[Question], max_hops: int) -> float:
    """Return the share of some questions that have an entity of their own among their answers."""
    some = questions[:: -(-len(questions) // LOOKED_AT) or 1]
    usable = training_questions(index, some, max_hops, own_entities=True).usable
    return sum(not set(one.seeds).isdisjoint(one.answers) for one in usable) / max(1, len(usable))


class _Messages(torch.autograd.Function):
    """`pass_messages` and its gradient."""

    @staticmethod
    def forward(context: Any, weights: torch.Tensor, messages: torch.Tensor, adjacency: LocalAdjacency) -> torch.Tensor:
        context.save_for_backward(weights, messages)
        context.adjacency = adjacency
        received = np.zeros((len(weights), messages.shape[1]), np.float32)
        pass_messages(adjacency, weights.detach().numpy(), messages.detach().numpy(), received)
        return torch.from_numpy(received)

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, None]:
        weights, messages = context.saved_tensors
        of_weights, of_messages = pass_gradients(
            context.adjacency, weights.numpy(), messages.numpy(), gradients[0].contiguous().numpy()
        )
        return torch.from_numpy(of_weights), torch.from_numpy(of_messages), None


def _passed(weights: torch.Tensor, messages: torch.Tensor, adjacency: LocalAdjacency) -> torch.Tensor:
    received: torch.Tensor = _Messages.apply(weights.contiguous(), messages.contiguous(), adjacency)  # type: ignore[no-untyped-call]
    return received


class _Batch(NamedTuple):
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
    def of(cls, examples: Sequence[Example]) -> _Batch:
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


class _Network(Learner[GraphReasoner, Example]):
    """The reasoner in torch: the same sums as in `ReasonerOnGraph`, for several questions at once."""

    model_class, advice = GraphReasoner, "pass mask_seeds=False"

    def __init__(
        self,
        index: GraphIndex,
        config: GraphReasonerConfig,
        rng: np.random.Generator,
        max_hops: int = 3,
        max_nodes: int = 2_000,
    ) -> None:
        self.index, self.config, self.own_entities = index, config, not config.mask_seeds
        self._max_hops, self._max_nodes = max_hops, max_nodes
        self.parameters = {name: _drawn(name, shape, rng).requires_grad_() for name, shape in config.shapes.items()}
        relations = embed_tokens(index, [readable(relation) for relation in index.graph.relations], config.tokens)
        means = [torch.from_numpy(tokens.mean(axis=0)) for tokens in relations]
        self._relations = torch.stack(means) if means else torch.empty(0, config.dimension)
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
        batch = _Batch.of(examples)
        logarithms = self.logarithms(batch, [example.question.text for example in examples])
        total = logarithms.sum() * 0
        for example, start in zip(examples, batch.starts, strict=True):
            if count := len(example.answers):
                total = total - logarithms[torch.from_numpy(example.answers + start)].mean() - np.log(count)
        return total / len(examples)

    def logarithms(self, batch: _Batch, texts: Sequence[str]) -> torch.Tensor:
        """Return the logarithms of the last probabilities, shape (n); far below 0 for what is masked."""
        of, config = self.parameters, self.config
        vectors = self._relations @ of["token"] + of["token_bias"]
        against, along = vectors @ of["against"] + of["against_bias"], vectors @ of["along"] + of["along_bias"]
        # In the order of the labels of one relation. Written into rows by label, gradients would round differently.
        turned = [along if is_backward(label) else against for label in range(label_count(1))]
        relations = torch.stack(turned, 1).view(-1, config.width)
        matched = torch.cat([relations, of["loop"][None]]) @ of["match"] + of["match_bias"][:, None]
        instructions = self._instruct(texts)
        begin = (relations @ of["begin"])[batch.labels]
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
                states = states / (states.square().mean(1, keepdim=True) + float(SMALL)).sqrt()
                logarithms = self._log_softmax(states @ of["score"], batch, len(texts))
                likely = logarithms.exp()
        return logarithms

    def _instruct(self, texts: Sequence[str]) -> torch.Tensor:
        """Return the instructions, (questions, K, width)."""
        of, config = self.parameters, self.config
        tokens = torch.nn.utils.rnn.pad_sequence([self.embedded[text] for text in texts], batch_first=True)
        lengths = torch.tensor([len(self.embedded[text]) for text in texts])
        there = torch.arange(tokens.shape[1]) < lengths[:, None]
        states = (tokens @ of["token"] + of["token_bias"]) * there[..., None]
        summary = states.sum(1) / lengths[:, None]
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
            attention = (states @ (joined * of["attend"] * config.width**-0.5)[..., None])[..., 0].masked_fill(
                ~there, -torch.inf
            )
            last = (attention.softmax(1)[:, None] @ states)[:, 0]
            instructions.append(last)
        return torch.stack(instructions, 1)

    def _renew(self, instructions: torch.Tensor, seeds: torch.Tensor) -> torch.Tensor:
        of = self.parameters
        there = seeds[:, None].expand_as(instructions)
        joined = torch.cat([instructions, there, instructions - there], 2)
        gate = torch.sigmoid(joined @ of["gate"] + of["gate_bias"])
        return gate * (joined @ of["renew"] + of["renew_bias"]) + (1 - gate) * instructions

    def _log_softmax(self, scores: torch.Tensor, batch: _Batch, questions: int) -> torch.Tensor:
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
