"""Training of SubgraphRAG's scorer of triples, with torch (extra `train`).

M. Li, S. Miao, P. Li: Simple Is Effective: The Roles of Graphs and Large Language Models in Knowledge-Graph-Based
Retrieval-Augmented Generation. ICLR 2025, arXiv:2410.20724, sections 3.1 and 4.
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
from kg_retrievers.methods.subgraph_rag.model import (
    CandidateTriples,
    GraphTripleScorer,
    TripleScorer,
    TripleScorerConfig,
    shortest_path_triples,
    without_text,
)
from kg_retrievers.training import fit
from kg_retrievers.training.dataset import TrainingQuestion, over_one_graph
from kg_retrievers.training.loop import Schedule, stream

try:
    import torch
except ImportError as cause:
    raise MissingExtraError("train_triple_scorer", "train") from cause

#: The most positive and negative triples of a question that are looked at if they are `sampled`. They stand for all.
#: The paper takes all.
MAX_POSITIVES, MAX_NEGATIVES = 256, 512

#: The triples that count as relevant: triples on shortest paths, whichever way their triples point ("undirected") or
#: along them ("directed"), or the triples that a question brings.
Supervision = Literal["undirected", "directed", "triples"]

#: The loss to minimise, see `train_triple_scorer`.
Loss = Literal["softmax", "binary"]


@checked_dataclass
class Supervising:
    """The candidates of a question, the relevant ones of them, and the loss to minimise."""

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


class TripleNetwork(fit.Learner[TripleScorer, Example]):
    """The scorer in torch: the same sums as in `GraphTripleScorer`, for some triples of a question.

    Args:
        index: The indexed graph.
        config: The inputs and sizes of the scorer.
        supervising: The supervision and the loss.
        rng: The random generator that draws the weights.
    """

    model_class, advice = TripleScorer, 'leave supervision at "undirected"'

    def __init__(
        self, index: GraphIndex, config: TripleScorerConfig, supervising: Supervising, rng: np.random.Generator
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
        """Return the number of candidates, or 0 if none is positive."""
        return len(example.triples) if example.positive.any() else 0

    def rank(self, model: GraphTripleScorer, example: Example) -> Array:
        """Return the entities in the order in which the triples name them."""
        scores = model.score(example.question.text, example.triples, np.array(example.question.seeds))
        ranked = example.triples[np.argsort(-scores, kind="stable")]
        entities, first = np.unique(self.index.graph.edges[ranked][:, [0, 2]], return_index=True)
        named: Array = entities[np.argsort(first)]
        return named

    def loss(self, example: Example, rng: np.random.Generator) -> torch.Tensor:
        """Return the loss of a question, estimated from some of its triples, or 0 if none is positive."""
        rows, weights = choose_triples(example.positive, rng, self._supervising.sampled)
        scores, positive, share = self.scores(example, rows), example.positive[rows], torch.from_numpy(weights)
        if not positive.any():  # the answers are beyond `max_nodes`
            return scores.sum() * 0
        relevant = torch.from_numpy(positive)
        if self._supervising.loss == "softmax":
            everything = torch.logsumexp(scores + share.log(), 0)
            return ((everything - scores) * share)[relevant].sum() / share[relevant].sum()
        entropy = torch.nn.functional.binary_cross_entropy_with_logits(
            scores, relevant.float(), weight=share, reduction="sum"
        )
        return entropy / share.sum()

    def scores(self, example: Example, rows: Array) -> torch.Tensor:
        """Return the scores of some triples of a question, by their positions."""
        of, found, chosen = self.parameters, example.found, torch.from_numpy(rows)
        heads, tails = torch.from_numpy(found.heads), torch.from_numpy(found.tails)
        distinct, relations = np.unique(found.relations, return_inverse=True)
        vectors = self._relations[torch.from_numpy(distinct)]
        question, structure = self.embedded[example.question.text], torch.from_numpy(example.distances)
        hidden = of["bias"] + question @ of["question"] + (vectors @ of["relation"])[relations[rows]]
        if self.config.hops:
            reached, steps = self._follow(question, vectors, found, relations)
            structure = torch.cat([structure, reached], 1)
            hidden = hidden + steps[chosen] @ of["steps"]
        for ends, name in ((heads[chosen], "head"), (tails[chosen], "tail")):
            entities, positions = torch.unique(ends, return_inverse=True)
            part = self._vectors(found.entities[entities.numpy()]) @ of[name]
            if self.config.encoded:
                part = part + structure[entities] @ of[f"{name}_structure"]
            hidden = hidden + part[positions]
        return hidden.relu() @ of["output"] + of["output_bias"]

    def _vectors(self, entities: Array) -> torch.Tensor:
        vectors = torch.from_numpy(self.index.entity_vectors(entities))
        return torch.where(self._nameless[torch.from_numpy(entities)][:, None], self.parameters["identifier"], vectors)

    def _follow(
        self, question: torch.Tensor, vectors: torch.Tensor, found: CandidateTriples, relations: Array
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return `CandidateTriples.follow` in torch: after each hop, (entities, hops), and by triple, (m, hops)."""
        of, nothing = self.parameters, torch.zeros(len(found.entities))
        asked = (question @ of["follow_question"]).view(self.config.hops, 2, self.config.rank)
        follow = torch.sigmoid(asked @ (vectors @ of["follow_relation"]).T + of["follow_bias"])
        start = nothing.index_fill(0, torch.from_numpy(found.seeds), 1.0)
        reached, steps = found.follow(
            start, follow, relations, lambda at, values: nothing.index_add(0, torch.from_numpy(at), values)
        )
        return torch.stack(reached, 1), torch.stack(steps, 1)


def _drawn(shape: tuple[int, ...], rng: np.random.Generator) -> torch.Tensor:
    """Draw a weight. Biases are 0."""
    return torch.zeros(shape) if len(shape) in (0, 3) else fit.drawn(shape, rng)


def choose_triples(positive: Array, rng: np.random.Generator, sampled: bool = True) -> tuple[Array, Array]:
    """Draw triples of a question. Return their positions, and how many triples each stands for.

    Args:
        positive: bool, shape (m): whether each is relevant.
        rng: The random generator that draws them.
        sampled: Whether there are `MAX_POSITIVES` and `MAX_NEGATIVES` at most.
    """
    positions, weights = [], []
    for rows, most in ((np.flatnonzero(positive), MAX_POSITIVES), (np.flatnonzero(~positive), MAX_NEGATIVES)):
        chosen = rng.choice(rows, most, replace=False) if sampled and len(rows) > most else rows
        positions.append(chosen)
        weights.append(np.full(len(chosen), len(rows) / max(len(chosen), 1), np.float32))
    return np.concatenate(positions), np.concatenate(weights)


#: How many questions a training looks at by default, counted again in every epoch.
NUM_EXAMPLES = 16_000

#: Section 4.1: the model that embeds questions, entities and relations, by its name on Hugging Face. It brings code of
#: its own: `local_embeddings(EMBEDDINGS, trust_remote_code=True)` runs that code.
EMBEDDINGS = "Alibaba-NLP/gte-large-en-v1.5"

#: The preset of the paper.
TRAINING: Mapping[str, Mapping[str, Any]] = {
    "paper": {
        "topic": "pair",  #: section 3.1: a one-hot encoding of being a topic entity or not
        "directed": True,  #: section 3.1: along the triples, and against them
        "rounds": 2,  #: the published configuration
        "reverse_rounds": 2,
        "hops": 0,  #: nothing of ours
        "hidden": 1024,  #: the published code: as wide as the vectors of `EMBEDDINGS`
        "mask_entities": False,  #: section 3.1: the question as it is
        "supervision": "directed",  #: the published code: paths follow their triples
        "loss": "binary",  #: equation 2, factorised
        "sampled": False,  #: equation 2: all triples
        "max_nodes": None,  #: appendix B.1: all triples within some hops
        "batch_size": 1,  #: the published configuration, as the two below
        "learning_rate": 1e-3,
        "constant_rate": True,
    }
}


@named_arguments
@fit.takes_presets(TRAINING)
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
    sampled: bool = True,
    num_examples: int = NUM_EXAMPLES,
    batch_size: int = 8,
    learning_rate: float = 5e-3,
    constant_rate: bool = False,
    validations: int = 12,
    patience: int = 4,
    seed: int = 0,
    progress: bool = False,
    embedding_cache: str | Path | None = None,
    preset: Literal["paper"] | None = None,
    **config: Any,
) -> fit.ModelTraining[TripleScorer]:
    """Train a scorer of triples on questions and their answers.

    The triples on all shortest paths between the entities and the answers of a question count as relevant, within its
    candidates. The candidates are the `neighborhood` by `max_hops` and `max_nodes`, which `SubgraphRAGRetriever` then
    takes, too. With the loss "softmax" (ours), the scores of a question's candidates are a distribution that should be
    uniform over the positive triples: only their order counts. "binary" is the paper's loss (equation 2): each
    candidate by itself.

    `preset="paper"` trains the paper's network as the paper does: see `TRAINING`. Arguments that you pass win over the
    preset. It states `EMBEDDINGS`, and warns if the index has others.

    *Differs from the paper* by default in undirected paths, all of parallel triples, the loss, and questions that are
    embedded without their entities. *Differs from the published code* in `MAX_POSITIVES` and `MAX_NEGATIVES` triples of
    a question, drawn and weighted so that they stand for all, in steps of eight questions instead of one, and in a
    learning rate of 0.005 that falls in a straight line instead of one of 0.001 that stays. *Also with the preset*,
    parallel triples are all positive, while the code keeps the last one. The answers decide when to stop: their ranks
    count, rather than the number of positive triples among the first 100. Directed paths find no triple for a question
    of two hops in MetaQA's graph.

    With `output` the training is kept there after each validation, and the same call goes on after an interruption. In
    the end the scorer is saved there. The same arguments give the same scorer on the same machine.

    Args:
        index: The indexed graph.
        questions: With answers. The linker looks for entities that are not given. Questions with a graph of their own
            (`GraphQuestion`) are trained over these graphs, and only the embeddings of the index are used then.
        validation: Questions that decide when to stop. By default a tenth of the others, drawn at random.
        output: A folder for the scorer, which must hold none. By default nothing is saved.
        max_hops: How far candidates are from the entities. Also the longest path.
        max_nodes: The most entities among the candidates. None for no limit.
        supervision: "undirected" or "directed": whether paths follow their triples, see `shortest_path_triples`.
            "triples": no paths, but a question's own `triples`.
        loss: "softmax" or "binary".
        sampled: Whether `MAX_POSITIVES` and `MAX_NEGATIVES` triples of a question stand for all.
        num_examples: How many questions the training looks at, counted again in every epoch.
        batch_size: How many questions make one step.
        learning_rate: The learning rate of Adam at the first step.
        constant_rate: Whether it stays, instead of falling in a straight line.
        validations: How often the scorer is validated.
        patience: After how many validations without a better one the training ends.
        seed: The seed of all random numbers.
        progress: Whether to show a progress bar on stderr.
        embedding_cache: A file that keeps the vectors of names from one run to the next, for questions with graphs.
        preset: "paper" for the settings of the paper.
        **config: Fields of `TripleScorerConfig`, except the dimension.

    Raises:
        InvalidArgumentError: If nothing can be trained on, an argument is out of range, the names of the index are in a
            vector store, or the output holds a model or an unfinished training of something else.
        ModelLoadError: If the unfinished training in the output is damaged.
    """
    fit.check_arguments(train_triple_scorer, TripleScorerConfig, index, questions, validation, config)
    index, questions, validation = over_one_graph("train_triple_scorer", index, questions, validation, embedding_cache)
    if preset:
        fit.tell_other_embeddings("train_triple_scorer", index, EMBEDDINGS)
    options = Supervising(supervision, loss, max_hops, max_nodes, sampled)
    settings = TripleScorerConfig(dimension=index.dimension, **config)
    schedule = Schedule(
        num_examples, validations, patience, batch_size, learning_rate, seed, constant_rate=constant_rate
    )
    return fit.train_on_questions(
        TripleNetwork(index, settings, options, stream(seed, "weights")),
        questions,
        validation,
        who="train_triple_scorer",
        max_hops=max_hops,
        output=output,
        schedule=schedule,
        facts=asdict(options) | {"preset": preset},
        progress=progress,
    )
