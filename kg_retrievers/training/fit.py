"""Training of any model on questions with their answers, with torch (extra `train`)."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from hashlib import blake2b
from importlib.metadata import version
from inspect import signature
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np

from kg_retrievers.core.checkpoint import CONFIG
from kg_retrievers.core.trained_model import PROBE, TrainedModel
from kg_retrievers.datasets import Question
from kg_retrievers.errors import InvalidArgumentError, MissingExtraError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import GraphIndex, embedding_name
from kg_retrievers.index.question_entities import describe_unknown_answer
from kg_retrievers.training.dataset import TrainingQuestion, TrainingQuestions, training_questions
from kg_retrievers.training.loop import Schedule, Trainer, forget_unfinished, stream

try:
    import torch
except ImportError as cause:
    raise MissingExtraError("Training a model", "train") from cause

#: How many questions validate, at most.
VALIDATED = 500

#: The share of the questions that validate where none are given.
VALIDATION_SHARE = 0.1

#: How many triples of examples are kept from one epoch to the next, about 0.5 GB; what is beyond is made anew.
KEPT_TRIPLES = 10_000_000

Model = TypeVar("Model", bound=TrainedModel[Any])
Example = TypeVar("Example")


@dataclass(frozen=True)
class ModelTraining(Generic[Model]):
    """How a model was trained.

    Attributes:
        model: The model, as it was after the best validation.
        training: The questions that it was trained on.
        validation: Those that validated it, at most `VALIDATED`, drawn at random.
        untaught: How many of the questions that this call looked at teach nothing: what they should teach is not among
            their candidates.
        history: How high the answers to the validation stand, before the training and after each round, in [0, 1]: the
            normalised discounted cumulative gain of the entities in the model's order.
        seconds: How long this call took.
    """

    model: Model
    training: TrainingQuestions
    validation: TrainingQuestions
    untaught: int
    history: list[float]
    seconds: float

    @property
    def best(self) -> float:
        """The best validation, that of the model; too good as an estimate, since it was chosen by it."""
        return max(self.history[1:])


class Learner(ABC, Generic[Model, Example]):
    """The parameters of a model, and how a question changes them."""

    #: By name; they require gradients.
    parameters: dict[str, torch.Tensor]
    #: The class of the model that they make.
    model_class: type[Model]
    #: Its configuration.
    config: Any
    #: The indexed graph.
    index: GraphIndex
    #: Whether a question teaches something whose answer is its own entity.
    own_entities: bool = False
    #: What else to do where none teaches anything, in words.
    advice: str

    @property
    def weights(self) -> dict[str, Array]:
        """The parameters as they are now."""
        return {name: parameter.detach().numpy().copy() for name, parameter in self.parameters.items()}

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> None:
        """Embed the questions that will be asked."""

    @abstractmethod
    def example(self, question: TrainingQuestion) -> Example:
        """Return what is looked at of a question; called by several threads."""

    @abstractmethod
    def size(self, example: Example) -> int:
        """Return the number of triples of an example, or 0 where it teaches nothing."""

    @abstractmethod
    def loss(self, examples: Sequence[Example], rng: np.random.Generator) -> torch.Tensor:
        """Return the mean loss of some questions."""

    @abstractmethod
    def rank(self, model: Any, example: Example) -> Array:
        """Return the numbers of entities as the model orders them, best first; `model` is on the index."""


def drawn(shape: tuple[int, ...], rng: np.random.Generator) -> torch.Tensor:
    """Draw a weight as torch's linear layers do, uniformly within one over the root of the inputs."""
    bound = shape[-2 if len(shape) > 1 else 0] ** -0.5
    return torch.from_numpy(rng.uniform(-bound, bound, shape).astype(np.float32))


def checked_arguments(
    train: Callable[..., Any],
    config_class: type[Any],
    index: object,
    questions: object,
    validation: object,
    config: dict[str, Any],
    **limits: object,
) -> None:
    """Check what every training is given.

    Args:
        train: The function that was called.
        config_class: The dataclass of the model's settings.
        index: The indexed graph.
        questions: Those to train on.
        validation: Those that say when to stop, or None.
        config: The settings that were given.
        **limits: Numbers from 1, by the name of their arguments.

    Raises:
        InvalidArgumentError: If one is wrong.
    """
    who = train.__name__
    known = {field.name for field in fields(config_class)} - {"dimension"}
    if unknown := sorted(config.keys() - known):
        there = sorted(known.union(signature(train).parameters) - {"config"})
        raise InvalidArgumentError(f"{who}: there is no argument {unknown[0]!r}. There are: {there}.")
    if not isinstance(index, GraphIndex) or not all(map(_are_questions, (questions, validation or ()))):
        raise InvalidArgumentError(
            f"{who}: wanted a GraphIndex and lists of Questions, as `read_questions` gives them, but got "
            f"{index!r:.100}, {questions!r:.100} and {validation!r:.100}."
        )
    for name, limit in limits.items():
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
            raise InvalidArgumentError(f"{who}: {name} must be a whole number, 1 or more, but got {limit!r}.")
    if not index.keeps_names:
        raise InvalidArgumentError(
            f"{who}: the names of the index are in a vector store, and would be embedded again and again. "
            "Train on an index without one: GraphIndex.build(graph, embeddings)."
        )


def _are_questions(value: object) -> bool:
    return isinstance(value, Sequence) and all(isinstance(one, Question) for one in value)


def train_on_questions(
    learner: Learner[Model, Example],
    questions: Sequence[Question],
    validation: Sequence[Question] | None,
    *,
    who: str,
    max_hops: int,
    output: str | Path | None,
    schedule: Schedule,
    facts: dict[str, Any],
    progress: bool,
) -> ModelTraining[Model]:
    """Train a model on questions and their answers, and save it.

    Args:
        learner: What is trained.
        questions: With answers; entities that are not given are looked for.
        validation: Questions that say when to stop; by default a tenth of the others, drawn at random.
        who: The function that was called, for messages.
        max_hops: How far from its entities an answer counts.
        output: A folder for the model, which must hold none; None to save nothing.
        schedule: How long and how fast.
        facts: What the model says of its training, beside what is found out here; values of JSON.
        progress: Whether to show a progress bar on stderr.

    Raises:
        InvalidArgumentError: If nothing can be trained on, or the output holds a model or an unfinished training of
            something else.
        ModelLoadError: If the unfinished training in the output is damaged.
    """
    folder = None if output is None else Path(output)
    if folder and folder.exists() and not folder.is_dir():
        raise InvalidArgumentError(f"{who}: {folder} is a file. Name a folder.")
    if folder and (folder / CONFIG).exists():
        raise InvalidArgumentError(f"{who}: {folder} holds a model already. Name another folder.")
    began, index = time.monotonic(), learner.index
    find = partial(training_questions, index, max_hops=max_hops, own_entities=learner.own_entities)
    learned, validating = _split(who, index.graph, find, questions, validation, max_hops, schedule.seed)
    some = learned.usable[:: -(-len(learned.usable) // schedule.visits)]  # no more than the training looks at
    if not any(learner.size(learner.example(question)) for question in some):
        raise InvalidArgumentError(
            f"{who}: of {replace(learned, usable=some)}, none has what it should teach among its candidates. Raise "
            f"max_nodes or max_hops, or {learner.advice}."
        )
    examples = _Examples(learner)
    learner.embed([question.text for question in (*learned.usable, *validating.usable)])
    probe, name = index.embed([PROBE])[0], embedding_name(index.embeddings)

    def model(training: dict[str, Any]) -> Model:
        return learner.model_class(learner.config, learner.weights, probe=probe, embeddings=name, training=training)

    def validate() -> float:
        on_graph = model({}).on(index)
        gains = [_gain(learner.rank(on_graph, examples.of(question)), question) for question in validating.usable]
        return float(np.mean(gains))

    facts = {**facts, "questions": len(learned.usable), "data": _digest(index, learned, validating)}
    trainer = Trainer(
        parameters=learner.parameters,
        items=learned.usable,
        prepare=examples.of,
        loss=learner.loss,
        validate=validate,
        schedule=schedule,
        identity=json.dumps([version("kg-retrievers"), facts, asdict(learner.config), probe.tolist()]),
        output=folder,
        progress=progress,
    )
    history = trainer.run()
    trained = model({**facts, "schedule": asdict(schedule), "validation": history})
    if folder:
        trained.save_pretrained(folder)
        forget_unfinished(folder)
    untaught = (examples.seen - examples.taught).intersection(learned.usable)
    return ModelTraining(trained, learned, validating, len(untaught), history, time.monotonic() - began)


def _split(
    who: str,
    graph: KnowledgeGraph,
    find: Callable[[Sequence[Question]], TrainingQuestions],
    questions: Sequence[Question],
    validation: Sequence[Question] | None,
    max_hops: int,
    seed: int,
) -> tuple[TrainingQuestions, TrainingQuestions]:
    """Return what is trained on and what validates, at most `VALIDATED`; where there is one question, it is both."""
    learned = find(questions)
    given = learned if validation is None else find(validation)
    for what, asked, part in (("train on", questions, learned), ("validate with", validation or (), given)):
        if not part.usable:
            told = describe_unknown_answer(graph, asked) if part.without_answers else ""
            raise InvalidArgumentError(
                f"{who}: there is nothing to {what}: {part}. A question needs answers, by the keys of "
                f"the graph, within {max_hops} hops of an entity that is given or named in it.{told}"
            )
    count = min(VALIDATED, len(given.usable))
    if validation is None:
        count = min(count, max(1, int(len(given.usable) * VALIDATION_SHARE)))
    chosen = set(stream(seed, "split").permutation(len(given.usable))[:count].tolist())
    validating = replace(given, usable=[one for place, one in enumerate(given.usable) if place in chosen])
    if validation is None and len(learned.usable) > 1:
        learned = replace(learned, usable=[one for place, one in enumerate(learned.usable) if place not in chosen])
        validating = TrainingQuestions(validating.usable, 0, 0, 0)
    return learned, validating


def _digest(index: GraphIndex, *parts: TrainingQuestions) -> str:
    """Return 32 hexadecimal digits that change with the index and the questions."""
    rows = [[asdict(question) for question in part.usable] for part in parts]
    return blake2b(json.dumps([index.fingerprint, rows]).encode(), digest_size=16).hexdigest()


def _gain(ranked: Array, question: TrainingQuestion) -> float:
    """Return the normalised discounted cumulative gain of the answers among entities, best first.

    The entities of the question do not count, unless they are answers.
    """
    ranked = ranked[~np.isin(ranked, question.seeds) | np.isin(ranked, question.answers)]
    ranks, best = np.flatnonzero(np.isin(ranked, question.answers)), np.arange(len(question.answers) + question.missing)
    return float((1 / np.log2(2 + ranks)).sum() / (1 / np.log2(2 + best)).sum())


class _Examples(Generic[Example]):
    """Makes examples of questions. Called by several threads.

    Kept are the first that teach something, `KEPT_TRIPLES` triples in all; others are made anew each time.

    Attributes:
        seen: The questions of which examples were made.
        taught: Those of them that teach something.
    """

    def __init__(self, learner: Learner[Any, Example]) -> None:
        self._learner = learner
        self._kept: dict[TrainingQuestion, Example] = {}
        self._room, self._lock = KEPT_TRIPLES, Lock()
        self.seen, self.taught = set[TrainingQuestion](), set[TrainingQuestion]()

    def of(self, question: TrainingQuestion) -> Example:
        """Return the example."""
        if question in self._kept:
            return self._kept[question]
        made = self._learner.example(question)
        size = self._learner.size(made)
        with self._lock:
            self.seen.add(question)
            if size:
                self.taught.add(question)
            if question not in self._kept and 0 < size <= self._room:
                self._room -= size
                self._kept[question] = made
        return made
