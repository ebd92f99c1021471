"""Fits the ranking of whole walks, and the confidence, on simulated and public graphs and on graphs by hand."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from benchmarks.relation_scorer.examples import Examples
from benchmarks.relation_scorer.net import NEVER
from benchmarks.relation_scorer.public import freebase_sample, wikidata_sample
from benchmarks.relation_scorer.simulate import SimulatedQuestion, simulate
from benchmarks.zero_shot.question_sets import own_graph
from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import GraphIndex, HashedEmbeddings, question_entities
from kg_retrievers.index.embeddings import token_table
from kg_retrievers.questions.self_questions.generate import generate_questions
from kg_retrievers.questions.zero_shot.generator import ZeroShotPatternGenerator
from kg_retrievers.questions.zero_shot.ranking import CONFIDENCE_FEATURES, WALK_FEATURES
from kg_retrievers.questions.zero_shot.scorer import RelationScorer

#: How many graphs are simulated, with how many questions each.
GRAPHS, QUESTIONS = 8, 60

#: The weight of a question of a graph by hand beside a made one.
BY_HAND = 8.0

#: Of how many questions that are made of each graph by hand those for "others" are taken, how many, and their weight.
MADE, OTHERS, OF_OTHERS = 300, 10, 2.0

#: The least weight of the direction that words say. It is seldom against a walk in these questions, and then right.
LEAST_SAID = 2.5

#: How much more a question counts that no understanding answers.
UNANSWERED = 2.0

#: Weights of the features of a walk to begin with, 0 for others: the ranking decides whose ends are looked up.
FIRST_WEIGHTS = {
    "log probability": 0.6,
    "words covered": 2.0,
    "steps named": 1.5,
    "three steps": 1.0,
    "kind": 1.5,
    "ends named": 1.5,
    "relations repeated": -1.0,
    "relations repeated as asked": 2.0,
    "turns back as asked": 3.0,
    "meaning": 10.0,
    "type": 1.0,
    "said": 2.0,
    "measure": 1.0,
}

#: How often the ranking is fitted, and the steps of each fit.
ROUNDS, RANKING_STEPS, CONFIDENCE_STEPS = 2, 400, 1500

#: How much large weights of the ranking cost.
RANKING_DECAY = 3e-3


class _Recorder(ZeroShotPatternGenerator):
    """Keeps what the ranking and the confidence see."""

    def __init__(self, index: GraphIndex, scorer: RelationScorer) -> None:
        super().__init__(index, scorer=scorer)
        self.rankings: list[tuple[Array, list[set[str]]]] = []
        self.rated: list[tuple[Array, set[str]]] = []

    def _arm(self, question: str, slots: Any, *rest: Any) -> Any:
        arm = super()._arm(question, slots, *rest)
        if arm is not None and len(slots) == 1:
            self.rankings.append((arm.features, [self._names(ends) for ends in arm.ends]))
        return arm

    def _understanding(self, choice: Any, max_walks: int) -> Any:
        if all(walk == 0 for walk in choice.walks) or len(choice.arms) > 1:
            self.rated.append((choice.features(), self._names(choice.ends)))
        return super()._understanding(choice, max_walks)

    def _names(self, ends: Array) -> set[str]:
        return {self.index.graph.entities[entity] for entity in ends.tolist()}


class Rated(NamedTuple):
    """A question as the ranking and the confidence see it.

    Attributes:
        rankings: For the one entity of a question, the features of walks whose ends are known, and which are right.
        options: The features of each understanding, and whether its answers are right.
        weight: How much it counts.
    """

    rankings: list[tuple[Array, Array]]
    options: list[tuple[Array, bool]]
    weight: float


def rate(
    index: GraphIndex,
    scorer: RelationScorer,
    questions: Iterable[SimulatedQuestion],
) -> list[Rated]:
    """Ask questions, each with its entities and answers, and keep what the ranking and the confidence see."""
    generator = _Recorder(index, scorer)
    found = []
    for text, seeds, answers, weight in questions:
        generator.rankings, generator.rated = [], []
        try:
            generator.understand(*generator.asked_part(text, question_entities(generator.linker, text, seeds)))
        except EntityLinkingError:
            continue
        rankings = []
        if len(seeds) == 1 and answers:
            for features, ends in generator.rankings:
                right = np.array([of_walk == answers for of_walk in ends])
                rankings.append((features, np.concatenate([right, np.zeros(len(features) - len(ends), bool)])))
        options = [(features, bool(answers) and of_option == answers) for features, of_option in generator.rated]
        found.append(Rated(rankings, options, weight))
    return found


def fit_ranking(rated: Sequence[Rated]) -> Array:
    """Return the weights of a walk's features under which the right walks have the largest share.

    Right walks of two and three steps weigh more than there are of them, for how many steps are asked is not known.
    """
    rows = [(torch.from_numpy(f), torch.from_numpy(y), one.weight) for one in rated for f, y in one.rankings if y.any()]
    features = pad_sequence([f for f, *_ in rows], batch_first=True)
    right = pad_sequence([y for _, y, _ in rows], batch_first=True)
    present = pad_sequence([torch.ones(len(y), dtype=torch.bool) for _, y, _ in rows], batch_first=True)
    balanced = _balanced([_length(f[y][0]) for f, y, _ in rows], [weight for *_, weight in rows])
    weights = torch.tensor([FIRST_WEIGHTS.get(name, 0.0) for name in WALK_FEATURES], dtype=torch.float64)
    weights.requires_grad_()
    optimizer = torch.optim.Adam([weights], lr=0.05)
    for _ in range(RANKING_STEPS):
        logs = torch.log_softmax((features @ weights).masked_fill(~present, NEVER), 1)
        of_right = logs.masked_fill(~right, NEVER).logsumexp(1)
        loss = -(balanced * of_right).sum() / balanced.sum() + RANKING_DECAY * (weights**2).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return _array(weights)


def _length(features: torch.Tensor) -> int:
    """Return how many steps a walk has."""
    two, three = (int(features[WALK_FEATURES.index(name)]) for name in ("two steps", "three steps"))
    return 1 + two + 2 * three


def _balanced(groups: Sequence[int], weights: Sequence[float]) -> torch.Tensor:
    """Return weights whose sums are the square roots of those of the groups."""
    sums: dict[int, float] = defaultdict(float)
    for group, weight in zip(groups, weights, strict=True):
        sums[group] += weight
    return torch.tensor([w / sums[g] ** 0.5 for g, w in zip(groups, weights, strict=True)], dtype=torch.float64)


def fit_confidence(rated: Sequence[Rated]) -> Array:
    """Return the weights of a logistic regression of whether an understanding is right."""
    rows = [(features, right, _weight(one)) for one in rated for features, right in one.options]
    x = torch.from_numpy(np.stack([features for features, *_ in rows]))
    y = torch.tensor([float(right) for _, right, _ in rows], dtype=torch.float64)
    w = torch.tensor([weight for *_, weight in rows], dtype=torch.float64)
    weights = torch.zeros(len(CONFIDENCE_FEATURES), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([weights], lr=0.05)
    for _ in range(CONFIDENCE_STEPS):
        losses = torch.nn.functional.binary_cross_entropy_with_logits(x @ weights, y, reduction="none")
        loss = (w * losses).sum() / w.sum() + 1e-2 * (weights[1:] ** 2).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        with torch.no_grad():
            weights[CONFIDENCE_FEATURES.index("said")].clamp_(min=LEAST_SAID)
    return _array(weights)


def _weight(rated: Rated) -> float:
    """Return how much a question counts: more if no understanding of it is right."""
    return rated.weight * (1.0 if any(right for _, right in rated.options) else UNANSWERED)


def _array(weights: torch.Tensor) -> Array:
    array: Array = weights.detach().numpy()
    return array


def fit(scorer: RelationScorer, folder: Path, by_hand: Sequence[Path], *, seed: int) -> tuple[Array, Array]:
    """Return the weights of the ranking and of the confidence.

    Args:
        scorer: The scorer, with any weights for both.
        folder: The folder `relation_language` of the data; its held-out natural questions are used. Beside it is
            `freebase_sample`.
        by_hand: Folders of graphs with questions by hand.
        seed: Of all chance.
    """
    scorer.walk_weights = np.array([FIRST_WEIGHTS.get(name, 0.0) for name in WALK_FEATURES])
    scorer.confidence_weights = np.zeros(len(CONFIDENCE_FEATURES))
    random = Random(seed)
    examples = Examples(folder, token_table(), seed + 1000, held_out=True)
    simulated = [simulate(examples, random, QUESTIONS) for _ in range(GRAPHS)]
    graphs = [*simulated, *(read(examples, folder.parent, random) for read in (freebase_sample, wikidata_sample))]
    graphs += [read_by_hand(path) for path in by_hand]
    asked = [(GraphIndex.build(graph, HashedEmbeddings(64)), questions) for graph, questions in graphs]
    for _ in range(ROUNDS):  # the ranking decides whose ends are known
        scorer.walk_weights = fit_ranking([one for index, rows in asked for one in rate(index, scorer, rows)])
    return scorer.walk_weights, fit_confidence([one for index, rows in asked for one in rate(index, scorer, rows)])


#: The kinds of questions by hand that walks answer; None for those of no kind.
WALK_KINDS = frozenset(
    ["one_hop", "inverse", "two_hop", "three_hop", "intersection", "casual", "two_entities", "unanswerable", None]
)


def read_by_hand(folder: Path) -> tuple[KnowledgeGraph, list[SimulatedQuestion]]:
    """Return a graph with the questions by hand that walks answer, those without an answer, and some for "others"."""
    rows = [
        json.loads(line)
        for name in ("questions", "unanswerable")
        for line in (folder / f"{name}.jsonl").read_text("utf-8").splitlines()
    ]
    graph = own_graph(folder)
    asked = [
        SimulatedQuestion(row["question"], row["seed_entities"], set(row["answers"]), BY_HAND)
        for row in rows
        if row.get("kind") in WALK_KINDS and row["seed_entities"]
    ]
    others = [question for question in generate_questions(graph, MADE) if " other " in question.text][:OTHERS]
    return graph, asked + [
        SimulatedQuestion(question.text, list(question.seed_entities), set(question.answers), OF_OTHERS)
        for question in others
    ]
