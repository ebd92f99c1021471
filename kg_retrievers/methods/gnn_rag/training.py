"""Train GNN-RAG's graph network, with torch (extra `train`).

C. Mavromatis, G. Karypis: GNN-RAG: Graph Neural Retrieval for Large Language Model Reasoning. arXiv:2405.20139,
sections 4.1 and 4.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from kg_retrievers.algorithms.neighborhood import neighborhood
from kg_retrievers.datasets import Question
from kg_retrievers.errors import MissingExtraError, named_arguments
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.validation import checked_dataclass
from kg_retrievers.index import GraphIndex
from kg_retrievers.methods.gnn_rag.model import (
    GraphReasoner,
    GraphReasonerConfig,
    LocalAdjacency,
    ReasonerOnGraph,
    Reasoning,
    Surroundings,
    check_tokens,
    embed_relations,
    embed_tokens,
)
from kg_retrievers.training import fit
from kg_retrievers.training.dataset import TrainingQuestion, over_one_graph, training_questions
from kg_retrievers.training.loop import Schedule, stream

try:
    import torch
except ImportError as cause:
    raise MissingExtraError("train_graph_reasoner", "train") from cause


class Example(NamedTuple):
    """A question, the ids of the entities around its own, the entries between them, and its answers' positions."""

    question: TrainingQuestion
    nodes: Array
    around: Surroundings
    answers: Array


class ReasonerNetwork(fit.Learner[GraphReasoner, Example], Reasoning):
    """The reasoner in torch.

    Args:
        index: The indexed graph.
        config: The inputs and sizes of the reasoner.
        rng: The random generator that draws the weights.
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
        self.xp, self.index, self.config, self.own_entities = torch, index, config, not config.mask_seeds
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
        """Return the surroundings of a question's entities."""
        adjacency = self.index.graph.adjacency
        nodes = neighborhood(adjacency, question.seeds, max_hops=self._max_hops, max_nodes=self._max_nodes).nodes
        wanted = np.isin(nodes, question.answers)
        if self.config.mask_seeds:
            wanted &= ~np.isin(nodes, question.seeds)
        around = Surroundings.of(adjacency, nodes, question.seeds)
        return Example(question, nodes, around, np.flatnonzero(wanted))

    def size(self, example: Example) -> int:
        """Return the number of triples, or 0 if no answer is among the candidates."""
        return len(example.around.adjacency.labels) // 2 if len(example.answers) else 0

    def rank(self, model: ReasonerOnGraph, example: Example) -> Array:
        """Return the entities by falling probability."""
        scores = model.score(example.question.text, example.nodes, example.question.seeds)
        ranked: Array = example.nodes[np.argsort(-scores, kind="stable")]
        return ranked

    def loss(self, example: Example, rng: np.random.Generator) -> torch.Tensor:
        """Return the loss of a question, or 0 if no answer is among the candidates."""
        logarithms = self.logarithms(example)
        if not len(example.answers):
            return logarithms.sum() * 0
        return -logarithms[torch.from_numpy(example.answers)].mean() - float(np.log(len(example.answers)))

    def logarithms(self, example: Example) -> torch.Tensor:
        """Return the logarithms of the last probabilities, shape (n), far below 0 for masked entities."""
        tokens = self.embedded[example.question.text]
        logarithms: torch.Tensor = self.scores(tokens, example.around, len(example.nodes)).log_softmax(0)
        return logarithms

    def relation_vectors(self, relations: Array, *, reverse: bool = False) -> torch.Tensor:
        """Return the vectors of relations."""
        embedded = self._reversed_relations if reverse else self._relations
        return embedded[torch.from_numpy(relations)] @ self.parameters["token"] + self.parameters["token_bias"]

    def read(self, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the states of the recurrent networks."""
        weights = {name.removeprefix("gru."): one for name, one in self.parameters.items() if name.startswith("gru.")}
        read, last = torch.func.functional_call(self._gru, weights, (states,))
        return read.view(len(states), 2, -1).sum(1), last.sum(0)

    def passed(self, weights: torch.Tensor, messages: torch.Tensor, adjacency: LocalAdjacency) -> torch.Tensor:
        """Return the sums of `pass_messages`, with gradients for torch."""
        rows, labels = np.repeat(np.arange(len(weights)), np.diff(adjacency.indptr)), adjacency.labels
        is_first = np.diff(rows * (1 + len(messages)) + labels, prepend=-1) != 0  # of a label at an entity
        row, label = torch.from_numpy(rows[is_first]), torch.from_numpy(labels[is_first])
        pair, sender = torch.from_numpy(np.cumsum(is_first) - 1), torch.from_numpy(adjacency.neighbors)
        sums = weights.new_zeros(len(row)).index_add(0, pair, weights[sender])
        return messages.new_zeros(len(weights), messages.shape[1]).index_add(0, row, sums[:, None] * messages[label])

    def product(self, states: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """Return a product by BLAS."""
        return states @ weights

    def masked(self, scores: torch.Tensor, positions: Array) -> torch.Tensor:
        """Return scores of which some are far below the others."""
        return scores.index_fill(0, torch.from_numpy(positions), -1e9)

    def softmax(self, scores: torch.Tensor) -> torch.Tensor:
        """Return the probabilities."""
        return scores.softmax(0)


def _drawn(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> torch.Tensor:
    """Draw a weight. Biases are 0. Tokens come as unit vectors, and are brought to numbers of about one half."""
    if "bias" in name:
        return torch.zeros(shape)
    return fit.drawn(shape, rng) * (shape[0] ** 0.5 if name == "token" else 1.0)


#: How many questions a training looks at by default, counted again in every epoch.
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


#: Section 5: SBERT, in the published code this model, by its name on Hugging Face.
EMBEDDINGS = "all-MiniLM-L6-v2"

#: The preset of the paper.
TRAINING: Mapping[str, Mapping[str, Any]] = {
    "paper": {
        "tokens": "states",  #: equation 3: the tokens of a language model
        "pooling": "first",  #: equations 3 and 4: [CLS] pooling of questions and relations
        "inverse": "words",  #: the published code: the words of inverse relations in reverse
        "relative": False,  #: section 4.1: the probabilities as they are
        "norms": False,  #: nothing of ours
        "gates": "own",  #: the published code: one for each instruction
        "mask_entities": False,  #: section 4.2: the question as it is
        "width": 50,  #: the published code, and so are the settings below
        "instructions": 3,  #: CWQ and MetaQA, or 2 for WebQSP
        "layers": 3,  #: table 1, and the published code
        "stages": 2,  #: CWQ and MetaQA, or 3 for WebQSP
        "max_nodes": 2_000,  #: appendix D: m = 2,000
        "batch_size": 8,
        "learning_rate": 5e-4,
        "constant_rate": True,
    }
}


@named_arguments
@fit.takes_presets(TRAINING)
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
    constant_rate: bool = False,
    validations: int = 8,
    patience: int = 4,
    seed: int = 0,
    progress: bool = False,
    embedding_cache: str | Path | None = None,
    mask_seeds: bool | None = None,
    preset: Literal["paper"] | None = None,
    **config: Any,
) -> fit.ModelTraining[GraphReasoner]:
    """Train a graph network on questions and their answers.

    The candidates are the entities within `max_hops` of a question's entities, at most `max_nodes`. `GNNRAGRetriever`
    then takes these two values, too. The loss is the Kullback-Leibler divergence of the last probabilities from a
    uniform distribution over the answers among them, as in the published code. A question without an answer among them
    supervises nothing.

    `preset="paper"` trains the published network as the published code does: see `TRAINING`. Arguments that you pass
    win over the preset. It wants embeddings that give states of tokens, states `EMBEDDINGS`, and warns if the index has
    others.

    *Differs from the published code* by default in steps of four questions instead of eight, with a learning rate of
    0.003 that rises at first and then falls in a straight line instead of one of 0.0005 that stays. *Also with the
    preset*, nothing is dropped out, and the ranks of all answers decide when to stop, rather than whether one is first.

    With `output` the training is kept there after each validation, and the same call goes on after an interruption. In
    the end the model is saved there. The same arguments give the same model on the same machine.

    Args:
        index: The indexed graph.
        questions: With answers. The linker looks for entities that are not given. Questions with a graph of their own
            (`GraphQuestion`) are trained over these graphs, and only the embeddings of the index are used then.
        validation: Questions that decide when to stop. By default a tenth of the others, drawn at random.
        output: A folder for the model, which must hold none. By default nothing is saved.
        max_hops: How far candidates are from the entities.
        max_nodes: The most candidates.
        num_examples: How many questions the training looks at, counted again in every epoch.
        batch_size: How many questions make one step.
        learning_rate: The highest learning rate of Adam, after a twentieth of the steps (`WARM_UP`).
        validations: How often the model is validated.
        patience: After how many validations without a better one the training ends.
        seed: The seed of all random numbers.
        progress: Whether to show a progress bar on stderr.
        embedding_cache: A file that keeps the vectors of names from one run to the next, for questions with graphs.
        constant_rate: Whether the learning rate stays at its highest.
        preset: "paper" for the settings of the paper.
        mask_seeds: Whether the entities of a question are never candidates. None decides by the questions: they are
            never candidates if less than `OWN_SHARE` of at most `LOOKED_AT` questions have one of them as an answer.
        **config: Further fields of `GraphReasonerConfig`, except the dimension.

    Raises:
        InvalidArgumentError: If nothing can be trained on, an argument is out of range, the names of the index are in a
            vector store, its embeddings give no such tokens, or the output holds a model or an unfinished training of
            something else.
        ModelLoadError: If the unfinished training in the output is damaged.
    """
    fit.check_arguments(train_graph_reasoner, GraphReasonerConfig, index, questions, validation, config)
    index, questions, validation = over_one_graph("train_graph_reasoner", index, questions, validation, embedding_cache)
    limits = _Neighborhood(max_hops, max_nodes)
    if mask_seeds is None:
        mask_seeds = _own_share(index, questions, max_hops) < OWN_SHARE
    settings = GraphReasonerConfig(dimension=index.dimension, mask_seeds=mask_seeds, **config)
    check_tokens(index, settings.tokens)
    if preset:
        fit.tell_other_embeddings("train_graph_reasoner", index, EMBEDDINGS)
    warm_up = 0.0 if constant_rate else WARM_UP
    schedule = Schedule(num_examples, validations, patience, batch_size, learning_rate, seed, warm_up, constant_rate)
    return fit.train_on_questions(
        ReasonerNetwork(index, settings, stream(seed, "weights"), max_hops, max_nodes),
        questions,
        validation,
        who="train_graph_reasoner",
        max_hops=max_hops,
        output=output,
        schedule=schedule,
        facts=asdict(limits) | {"preset": preset},
        progress=progress,
    )


def _own_share(index: GraphIndex, questions: Sequence[Question], max_hops: int) -> float:
    """Return the share of some questions that have an entity of their own among their answers."""
    some = questions[:: -(-len(questions) // LOOKED_AT) or 1]
    usable = training_questions(index, some, max_hops, own_entities=True).usable
    return sum(not set(one.seeds).isdisjoint(one.answers) for one in usable) / max(1, len(usable))
