"""Training of SubgraphRAG's scorer of triples, with torch (extra `train`).

M. Li, S. Miao, P. Li: Simple Is Effective: The Roles of Graphs and Large Language Models in Knowledge-Graph-Based
Retrieval-Augmented Generation. ICLR 2025, arXiv:2410.20724, sections 3.1 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from kg_retrievers.algorithms.neighborhood import neighborhood
from kg_retrievers.bulk import Workers
from kg_retrievers.core.checked import checked_dataclass
from kg_retrievers.datasets import Question
from kg_retrievers.errors import MissingExtraError
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import GraphIndex
from kg_retrievers.methods.subgraph_rag.distance_encoding import encode_distances, shortest_path_triples
from kg_retrievers.methods.subgraph_rag.model import (
    CandidateTriples,
    GraphTripleScorer,
    TripleScorer,
    TripleScorerConfig,
    without_text,
)
from kg_retrievers.training.dataset import TrainingQuestion
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
    raise MissingExtraError("train_triple_scorer", "train") from cause

#: How many questions a training looks at by default, each counted anew in every epoch.
NUM_EXAMPLES = 16_000

#: The most positive and negative triples of a question that are looked at; they stand for all. The paper takes all.
MAX_POSITIVES, MAX_NEGATIVES = 256, 512

#: Whether supervision paths follow the direction of their triples.
Supervision = Literal["undirected", "directed"]

#: What is minimised; see `train_triple_scorer`.
Loss = Literal["softmax", "binary"]


@checked_dataclass
class _ExampleOptions:
    """The candidates of a question, and which of them count as relevant."""

    who: ClassVar[str] = "train_triple_scorer"

    supervision: Supervision
    loss: Loss
    max_hops: int = Field(ge=1)
    max_nodes: int | None = Field(ge=1)


class Example(NamedTuple):
    """A question with its candidates: their ids, their ends, how far these are away, and which are relevant."""

    question: TrainingQuestion
    triples: Array
    found: CandidateTriples
    distances: Array
    positive: Array


def train_triple_scorer(
    index: GraphIndex,
    questions: Sequence[Question],
    validation: Sequence[Question] | None = None,
    *,
    output: str | Path | None = None,
    max_hops: int = 3,
    max_nodes: int | None = 2_000,
    supervision: Supervision = "undirected",
    loss: Loss = "softmax",
    num_examples: int = NUM_EXAMPLES,
    batch_size: int = 8,
    learning_rate: float = 5e-3,
    validations: int = 12,
    patience: int = 4,
    seed: int = 0,
    progress: bool = False,
    workers: Workers | None = None,
    embedding_cache: str | Path | None = None,
    **config: Any,
) -> ModelTraining[TripleScorer]:
    """Train a scorer of triples on questions and their answers.

    The triples on all shortest paths between the entities and the answers of a question count as relevant, within its
    candidates: `neighborhood` by `max_hops` and `max_nodes`, which `SubgraphRAGRetriever` then takes, too. With the
    loss "softmax" (ours), the scores of a question's candidates are a distribution that should be uniform over the
    positive triples: only their order counts. "binary" is the paper's loss (equation 2): each candidate by itself.

    *Differs from the paper* in undirected paths, all of parallel triples, the loss, and questions that are embedded
    without their entities. *Differs from the code published with it* in `MAX_POSITIVES` and `MAX_NEGATIVES` triples of
    a question, drawn and weighted so that they stand for all, in steps of eight questions instead of one, with a
    learning rate of 0.005 that falls in a straight line instead of one of 0.001 that stays, and in what says when to
    stop: how high the answers stand rather than how many positive triples are among the first 100. Near to it come
    `directed=True, rounds=2, reverse_rounds=2, hops=0, supervision="directed", loss="binary", batch_size=1,
    learning_rate=0.001` and a `hidden` of the embeddings' dimension. In MetaQA's graph that finds no path for a
    question of two hops.

    With `output` the training is kept there after each validation, and the same call goes on after an interruption;
    in the end the scorer is saved there. The same arguments give the same scorer on the same machine.

    Args:
        index: The indexed graph.
        questions: With answers; entities that are not given are looked for. Those with a graph of their own
            (`GraphQuestion`) are trained on over these: of the index, only the embeddings are used then.
        validation: Questions that say when to stop; by default a tenth of the others, drawn at random.
        output: A folder for the scorer, which must hold none; by default nothing is saved.
        max_hops: How far candidates are from the entities; also the longest path.
        max_nodes: The most entities among the candidates; None for no limit.
        supervision: Whether paths follow their triples; see `shortest_path_triples`.
        loss: "softmax" or "binary".
        num_examples: How many questions the training looks at, each counted anew in every epoch.
        batch_size: How many questions make one step.
        learning_rate: The learning rate of Adam at the first step.
        validations: How often the scorer is validated.
        patience: After how many validations without a better one the training ends.
        seed: The seed of all random numbers.
        progress: Whether to show a progress bar on stderr.
        workers: Processes that find entities and candidates before the training, `LocalWorkers` or `RayWorkers`.
        embedding_cache: A file that keeps the vectors of names from one run to the next, for questions with graphs.
        **config: Fields of `TripleScorerConfig` but the dimension.

    Raises:
        InvalidArgumentError: If nothing can be trained on, an argument is out of range, the names of the index are in a
            vector store, or the output holds a model or an unfinished training of something else.
        ModelLoadError: If the unfinished training in the output is damaged.
    """
    num_examples = take_num_examples(num_examples, config)
    check_arguments(train_triple_scorer, TripleScorerConfig, index, questions, validation, config)
    index, questions, validation = over_one_graph("train_triple_scorer", index, questions, validation, embedding_cache)
    options = _ExampleOptions(supervision, loss, max_hops, max_nodes)
    settings = TripleScorerConfig(dimension=index.dimension, **config)
    schedule = Schedule(num_examples, validations, patience, batch_size, learning_rate, seed)
    network = _Network(index, settings, loss, stream(seed, "weights"), max_hops, max_nodes, supervision == "directed")
    return train_on_questions(
        network,
        questions,
        validation,
        who="train_triple_scorer",
        max_hops=max_hops,
        output=output,
        schedule=schedule,
        facts=asdict(options),
        progress=progress,
        workers=workers,
    )


class _Network(Learner[TripleScorer, Example]):
    """The scorer in torch: the same sums as in `GraphTripleScorer`, for some triples of several questions at once."""

    model_class, advice = TripleScorer, 'leave supervision at "undirected"'

    def __init__(
        self,
        index: GraphIndex,
        config: TripleScorerConfig,
        loss: str,
        rng: np.random.Generator,
        max_hops: int = 3,
        max_nodes: int | None = None,
        directed: bool = False,
    ) -> None:
        self.index, self.config, self._loss = index, config, loss
        self._max_hops, self._max_nodes, self._directed = max_hops, max_nodes, directed
        self._nameless = torch.from_numpy(without_text(index.graph, config.identifiers))
        self._relations = torch.from_numpy(np.array(index.relation_vectors))
        self.embedded = {}
        weights = {name: _drawn(shape, rng) for name, shape in config.shapes.items()}
        weights["identifier"].zero_()  # so that it says nothing where no entity teaches it
        self.parameters = {name: weight.requires_grad_() for name, weight in weights.items()}

    def embed_questions(self, texts: Sequence[str]) -> Array:
        """Return the vector of each question."""
        return self.index.embed(texts)

    def example(self, question: TrainingQuestion) -> Example:
        """Return the candidates of a question, and which are positive."""
        near = neighborhood(
            self.index.graph.adjacency, question.seeds, max_hops=self._max_hops, max_nodes=self._max_nodes
        )
        found = CandidateTriples.of(self.index.graph, near.triples, np.array(question.seeds))
        answers = np.flatnonzero(np.isin(found.entities, question.answers))
        paths = shortest_path_triples(
            found.heads,
            found.tails,
            found.seeds,
            answers,
            nodes=len(found.entities),
            directed=self._directed,
            max_hops=self._max_hops,
        )
        distances = encode_distances(
            found.heads,
            found.tails,
            found.seeds,
            nodes=len(found.entities),
            rounds=self.config.rounds,
            reverse_rounds=self.config.reverse_rounds,
            directed=self.config.directed,
        )
        return Example(question, near.triples, found, distances, paths.positive)

    def size(self, example: Example) -> int:
        """Return the number of candidates, or 0 where none is positive."""
        return len(example.triples) if example.positive.any() else 0

    def rank(self, model: GraphTripleScorer, example: Example) -> Array:
        """Return the entities in the order in which the triples name them."""
        scores = model.score(example.question.text, example.triples, np.array(example.question.seeds))
        ranked = example.triples[np.argsort(-scores, kind="stable")]
        entities, first = np.unique(self.index.graph.edges[ranked][:, [0, 2]], return_index=True)
        named: Array = entities[np.argsort(first)]
        return named

    def loss(self, examples: Sequence[Example], rng: np.random.Generator) -> torch.Tensor:
        """Return the mean loss of some questions, each estimated from some of its triples."""
        chosen = [_chosen(example.positive, rng) for example in examples]
        scores = self._scores(examples, [rows for rows, _ in chosen])
        total = scores.sum() * 0
        ends = np.cumsum([len(rows) for rows, _ in chosen]).tolist()
        for example, (rows, weights), end in zip(examples, chosen, ends, strict=True):
            of_one = scores[end - len(rows) : end]
            positive = torch.from_numpy(example.positive[rows])
            if not positive.any():  # the answers are beyond `max_nodes`
                continue
            share = torch.from_numpy(weights)
            if self._loss == "softmax":
                everything = torch.logsumexp(of_one + share.log(), 0)
                total = total + ((everything - of_one) * share)[positive].sum() / share[positive].sum()
            else:
                entropy = torch.nn.functional.binary_cross_entropy_with_logits(
                    of_one, positive.float(), weight=share, reduction="sum"
                )
                total = total + entropy / share.sum()
        return total / len(examples)

    def _scores(self, examples: Sequence[Example], chosen: Sequence[Array]) -> torch.Tensor:
        """Return the scores of the chosen triples, those of the first question first."""
        of = self.parameters
        sizes = [len(example.found.entities) for example in examples]
        starts = np.cumsum([0, *sizes[:-1]])

        def joined(column: str) -> torch.Tensor:
            parts = [getattr(one.found, column) + start for one, start in zip(examples, starts, strict=True)]
            return torch.from_numpy(np.concatenate(parts))

        heads, tails, seeds = joined("heads"), joined("tails"), joined("seeds")
        relations = torch.from_numpy(np.concatenate([one.found.relations for one in examples]))
        entities = torch.from_numpy(np.concatenate([one.found.entities for one in examples]))
        lengths = [len(one.triples) for one in examples]
        owners = torch.from_numpy(np.repeat(np.arange(len(examples)), lengths))
        begins = np.cumsum([0, *lengths[:-1]])
        rows = torch.from_numpy(np.concatenate([part + begin for part, begin in zip(chosen, begins, strict=True)]))
        questions = torch.stack([self.embedded[one.question.text] for one in examples])
        structure = torch.from_numpy(np.concatenate([one.distances for one in examples]))
        hidden = of["bias"] + (questions @ of["question"])[owners[rows]]
        hidden = hidden + (self._relations @ of["relation"])[relations[rows]]
        if self.config.hops:
            reached, steps = self._follow(questions, heads, relations, tails, seeds, owners, len(entities))
            structure = torch.cat([structure, reached], 1)
            hidden = hidden + steps[rows] @ of["steps"]
        for ends, name in ((heads[rows], "head"), (tails[rows], "tail")):
            distinct, positions = torch.unique(ends, return_inverse=True)
            part = self._vectors(entities[distinct]) @ of[name] + structure[distinct] @ of[f"{name}_structure"]
            hidden = hidden + part[positions]
        return hidden.relu() @ of["output"] + of["output_bias"]

    def _vectors(self, entities: torch.Tensor) -> torch.Tensor:
        vectors = torch.from_numpy(self.index.entity_vectors(entities.numpy()))
        return torch.where(self._nameless[entities][:, None], self.parameters["identifier"], vectors)

    def _follow(
        self,
        questions: torch.Tensor,
        heads: torch.Tensor,
        relations: torch.Tensor,
        tails: torch.Tensor,
        seeds: torch.Tensor,
        owners: torch.Tensor,
        entities: int,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what `follow_relations` gives after each hop, (entities, hops), and the steps, (triples, hops)."""
        of, hops = self.parameters, self.config.hops
        asked = (questions @ of["follow_question"]).view(len(questions), hops, 2, self.config.rank)
        follow = torch.sigmoid(asked @ (self._relations @ of["follow_relation"]).T + of["follow_bias"])
        weights = follow.permute(0, 3, 1, 2)[owners, relations]
        reached = torch.zeros(entities).index_fill(0, seeds, 1.0)
        all_reached, all_steps = [], []
        for hop in range(hops):
            along, against = reached[heads] * weights[:, hop, 0], reached[tails] * weights[:, hop, 1]
            mass = torch.zeros(entities).index_add(0, tails, along).index_add(0, heads, against)
            reached = -torch.expm1(-mass)
            all_reached.append(reached)
            all_steps.append(along + against)
        return torch.stack(all_reached, 1), torch.stack(all_steps, 1)


def _drawn(shape: tuple[int, ...], rng: np.random.Generator) -> torch.Tensor:
    """Draw a weight; biases are 0."""
    return torch.zeros(shape) if len(shape) in (0, 3) else drawn(shape, rng)


def _chosen(positive: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw triples of a question; return their positions, and how many triples each stands for."""
    positions, weights = [], []
    for rows, most in ((np.flatnonzero(positive), MAX_POSITIVES), (np.flatnonzero(~positive), MAX_NEGATIVES)):
        drawn = rng.choice(rows, most, replace=False) if len(rows) > most else rows
        positions.append(drawn)
        weights.append(np.full(len(drawn), len(rows) / max(len(drawn), 1), np.float32))
    return np.concatenate(positions), np.concatenate(weights)
