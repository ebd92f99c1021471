"""SubgraphRAG's scorer of triples in torch (extra `train`): what a training changes, and what it minimises.

M. Li, S. Miao, P. Li: Simple Is Effective: The Roles of Graphs and Large Language Models in Knowledge-Graph-Based
Retrieval-Augmented Generation. ICLR 2025, arXiv:2410.20724, sections 3.1 and 4 and appendix B.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field

from kg_retrievers.algorithms.neighborhood import neighborhood
from kg_retrievers.errors import MissingExtraError
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.validation import checked_dataclass
from kg_retrievers.index import GraphIndex
from kg_retrievers.methods.subgraph_rag.config import TripleScorerConfig, without_text
from kg_retrievers.methods.subgraph_rag.distance_encoding import shortest_path_triples
from kg_retrievers.methods.subgraph_rag.model import CandidateTriples, GraphTripleScorer, TripleScorer
from kg_retrievers.training.dataset import TrainingQuestion
from kg_retrievers.training.fit import Learner, drawn

try:
    import torch
except ImportError as cause:
    raise MissingExtraError("train_triple_scorer", "train") from cause

#: The most positive and negative triples of a question that are looked at where they are `sampled`; they stand for all.
#: The paper takes all.
MAX_POSITIVES, MAX_NEGATIVES = 256, 512

#: Which triples count as relevant: those on shortest paths, whichever way their triples point or along them, or those
#: that a question brings.
Supervision = Literal["undirected", "directed", "triples"]

#: What is minimised; see `train_triple_scorer`.
Loss = Literal["softmax", "binary"]


@checked_dataclass
class Supervising:
    """The candidates of a question, which of them count as relevant, and what is minimised."""

    who: ClassVar[str] = "train_triple_scorer"

    supervision: Supervision = "undirected"
    loss: Loss = "softmax"
    max_hops: int = Field(default=3, ge=1)
    max_nodes: int | None = Field(default=None, ge=1)
    sampled: bool = True


class Example(NamedTuple):
    """A question with its candidates: their ids, their ends, how far these are away, and which are relevant."""

    question: TrainingQuestion
    triples: Array
    found: CandidateTriples
    distances: Array
    positive: Array


class TripleNetwork(Learner[TripleScorer, Example]):
    """The scorer in torch: the same sums as in `GraphTripleScorer`, for some triples of several questions at once.

    Args:
        index: The indexed graph.
        config: What the scorer looks at, and its sizes.
        supervising: What is learned.
        rng: What draws the weights.
    """

    model_class, advice = TripleScorer, 'leave supervision at "undirected"'

    def __init__(
        self,
        index: GraphIndex,
        config: TripleScorerConfig,
        supervising: Supervising,
        rng: np.random.Generator,
    ) -> None:
        """Draw the weights."""
        self.index, self.config, self._supervising = index, config, supervising
        self.mask_entities = config.mask_entities
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
        options = self._supervising
        near = neighborhood(
            self.index.graph.adjacency, question.seeds, max_hops=options.max_hops, max_nodes=options.max_nodes
        )
        found = CandidateTriples.of(self.index.graph, near.triples, np.array(question.seeds))
        relevant = self._relevant(question, near.triples, found)
        return Example(question, near.triples, found, found.distances(self.config), relevant)

    def _relevant(self, question: TrainingQuestion, triples: Array, found: CandidateTriples) -> Array:
        """Return which candidates are positive: bool, shape (candidates)."""
        options = self._supervising
        if options.supervision == "triples":
            return np.isin(triples, question.triples)
        answers = np.flatnonzero(np.isin(found.entities, question.answers))
        return shortest_path_triples(
            found.heads,
            found.tails,
            found.seeds,
            answers,
            nodes=len(found.entities),
            directed=options.supervision == "directed",
            max_hops=options.max_hops,
        )

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
        chosen = [choose_triples(example.positive, rng, self._supervising.sampled) for example in examples]
        scores = self.scores(examples, [rows for rows, _ in chosen])
        total = scores.sum() * 0
        ends = np.cumsum([len(rows) for rows, _ in chosen]).tolist()
        for example, (rows, weights), end in zip(examples, chosen, ends, strict=True):
            of_one = scores[end - len(rows) : end]
            positive = torch.from_numpy(example.positive[rows])
            if not positive.any():  # the answers are beyond `max_nodes`
                continue
            share = torch.from_numpy(weights)
            if self._supervising.loss == "softmax":
                everything = torch.logsumexp(of_one + share.log(), 0)
                total = total + ((everything - of_one) * share)[positive].sum() / share[positive].sum()
            else:
                entropy = torch.nn.functional.binary_cross_entropy_with_logits(
                    of_one, positive.float(), weight=share, reduction="sum"
                )
                total = total + entropy / share.sum()
        return total / len(examples)

    def scores(self, examples: Sequence[Example], chosen: Sequence[Array]) -> torch.Tensor:
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
            part = self._vectors(entities[distinct]) @ of[name]
            if self.config.encoded:
                part = part + structure[distinct] @ of[f"{name}_structure"]
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


def choose_triples(positive: Array, rng: np.random.Generator, sampled: bool = True) -> tuple[Array, Array]:
    """Draw triples of a question; return their positions, and how many triples each stands for.

    Args:
        positive: bool, shape (m): which are relevant.
        rng: What draws them.
        sampled: Whether there are `MAX_POSITIVES` and `MAX_NEGATIVES` at most.
    """
    positions, weights = [], []
    for rows, most in ((np.flatnonzero(positive), MAX_POSITIVES), (np.flatnonzero(~positive), MAX_NEGATIVES)):
        chosen = rng.choice(rows, most, replace=False) if sampled and len(rows) > most else rows
        positions.append(chosen)
        weights.append(np.full(len(chosen), len(rows) / max(len(chosen), 1), np.float32))
    return np.concatenate(positions), np.concatenate(weights)
