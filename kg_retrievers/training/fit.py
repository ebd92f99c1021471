"""Train any model on questions with their answers, with torch (extra `train`)."""

from __future__ import annotations

import json
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial, wraps
from hashlib import blake2b
from importlib.metadata import version
from inspect import signature
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from kg_retrievers.core.checkpoint import holds_model
from kg_retrievers.core.trained_model import PROBE, TrainedModel
from kg_retrievers.datasets import Question, check_questions
from kg_retrievers.errors import FileWriteError, InvalidArgumentError, MissingExtraError, check_known
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import GraphIndex, check_at_hand, embedding_name
from kg_retrievers.index.question_keys import tell_unmatched
from kg_retrievers.paths import checked_path
from kg_retrievers.training.dataset import TrainingQuestion, TrainingQuestions, training_questions
from kg_retrievers.training.loop import Schedule, Trainer, forget_unfinished, stream

try:
    import torch
except ImportError as cause:
    raise MissingExtraError("Training a model", "train") from cause

_LOGGER = logging.getLogger(__name__)

Parameters = ParamSpec("Parameters")
Trained = TypeVar("Trained")


def takes_presets(
    presets: Mapping[str, Mapping[str, Any]],
) -> Callable[[Callable[Parameters, Trained]], Callable[Parameters, Trained]]:
    """Let a training take the settings of its `preset` unless they are passed as arguments.

    Args:
        presets: The arguments of each preset, by its name.

    Raises:
        InvalidArgumentError: From the training, if there is no such preset.

    Example:
        >>> @takes_presets({"paper": {"learning_rate": 1e-3}})
        ... def train(*, learning_rate=5e-3, preset=None):
        ...     return learning_rate
        >>> train(), train(preset="paper"), train(preset="paper", learning_rate=0.1)
        (0.005, 0.001, 0.1)
    """

    def decorated(train: Callable[Parameters, Trained]) -> Callable[Parameters, Trained]:
        @wraps(train)
        def with_preset(*args: Parameters.args, **given: Parameters.kwargs) -> Trained:
            preset: Any = given.get("preset")
            if preset is None:
                return train(*args, **given)
            check_known(train.__name__, [preset], presets, "preset")
            filled: Any = {**presets[preset], **given}
            return train(*args, **filled)

        return with_preset

    return decorated


def tell_other_embeddings(who: str, index: GraphIndex, wanted: str) -> None:
    """Warn if an index has other embeddings than a preset states."""
    if wanted not in (name := embedding_name(index.embeddings)):
        _LOGGER.warning("%s: the preset's embeddings are %s, but the index has %s.", who, wanted, name)


#: The most questions that validate.
VALIDATED = 500

#: The share of the questions that validate if no validation is given.
VALIDATION_SHARE = 0.1

#: How many questions are embedded in one call.
EMBEDDED_AT_ONCE = 256

#: How many triples of examples are kept from one epoch to the next, about 0.5 GB. Other examples are made again.
KEPT_TRIPLES = 10_000_000

Model = TypeVar("Model", bound=TrainedModel[Any])
Example = TypeVar("Example")


@dataclass(frozen=True)
class ModelTraining(Generic[Model]):
    """How a model was trained.

    Attributes:
        model: The model, as it was at the best validation.
        training: The questions that it was trained on.
        validation: The questions that validated it, at most `VALIDATED`, drawn at random.
        unsupervised: The number of questions in this call that supervise nothing, since none of their labels is among
            their candidates.
        history: The validation scores, in [0, 1], before the training and at each validation: the normalised
            discounted cumulative gain of the entities in the model's order.
        seconds: How long this call took.
    """

    model: Model
    training: TrainingQuestions
    validation: TrainingQuestions
    unsupervised: int
    history: list[float]
    seconds: float

    @property
    def best(self) -> float:
        """The best validation score. It is optimistic as an estimate, since it selected the model."""
        return max(self.history[1:])


class Learner(ABC, Generic[Model, Example]):
    """Learns the parameters of a model from questions."""

    #: By name. They require gradients.
    parameters: dict[str, torch.Tensor]
    #: The class of the model that they make.
    model_class: type[Model]
    #: Its configuration.
    config: Any
    #: The indexed graph.
    index: GraphIndex
    #: Whether a question whose answer is its own entity supervises.
    own_entities: bool = False
    #: Whether questions are read without their entities.
    mask_entities: bool = True
    #: A further step if no question supervises: the end of a sentence.
    advice: str
    #: The embedded questions, by text.
    embedded: dict[str, torch.Tensor]

    @property
    def weights(self) -> dict[str, Array]:
        """The parameters as they are now."""
        return {name: parameter.detach().numpy().copy() for name, parameter in self.parameters.items()}

    def embed(self, texts: Sequence[str]) -> None:
        """Embed the questions that will be asked, each once, `EMBEDDED_AT_ONCE` in a call."""
        distinct = list(dict.fromkeys(texts))
        for start in range(0, len(distinct), EMBEDDED_AT_ONCE):
            block = distinct[start : start + EMBEDDED_AT_ONCE]
            self.embedded |= zip(block, map(torch.from_numpy, self.embed_questions(block)), strict=True)

    @abstractmethod
    def embed_questions(self, texts: Sequence[str]) -> Iterable[Array]:
        """Return the model's input for each question."""

    @abstractmethod
    def example(self, question: TrainingQuestion) -> Example:
        """Return the example of a question."""

    @abstractmethod
    def size(self, example: Example) -> int:
        """Return the number of triples of an example, or 0 if it supervises nothing."""

    @abstractmethod
    def loss(self, example: Example, rng: np.random.Generator) -> torch.Tensor:
        """Return the loss of a question, or 0, with gradients, if it supervises nothing."""

    @abstractmethod
    def rank(self, model: Any, example: Example) -> Array:
        """Return the ids of entities as the model orders them, best first. `model` is on the index."""


def drawn(shape: tuple[int, ...], rng: np.random.Generator) -> torch.Tensor:
    """Draw a weight as torch's linear layers do, uniformly within one over the root of the inputs."""
    bound = shape[-2 if len(shape) > 1 else 0] ** -0.5
    return torch.from_numpy(rng.uniform(-bound, bound, shape).astype(np.float32))


def check_arguments(
    train: Callable[..., Any],
    config_class: type[Any],
    index: object,
    questions: object,
    validation: object,
    config: dict[str, Any],
) -> None:
    """Check the arguments that all trainings share.

    Args:
        train: The function that was called.
        config_class: The dataclass of the model's settings.
        index: The indexed graph.
        questions: The questions to train on.
        validation: The questions that decide when to stop, or None.
        config: The settings that were given.

    Raises:
        InvalidArgumentError: If one is wrong.
    """
    who = train.__name__
    known = {field.name for field in fields(config_class)} - {"dimension"}
    check_known(who, config, sorted(known.union(signature(train).parameters) - {"config"}))
    if not isinstance(index, GraphIndex):
        raise InvalidArgumentError(f"{who}: wanted a GraphIndex, but got {index!r:.100}.")
    check_questions(questions, who)
    check_questions(validation or [], who)
    check_at_hand(who, index)


def checked_output(who: str, output: str | Path | None) -> Path | None:
    """Return the folder for a model, which must hold none, or None if nothing is saved.

    Raises:
        InvalidArgumentError: If it is a file, or holds a model.
    """
    folder = None if output is None else checked_path(output, FileWriteError)
    if folder and folder.exists() and not folder.is_dir():
        raise InvalidArgumentError(f"{who}: {folder} is a file. Name a folder.")
    if folder and holds_model(folder):
        raise InvalidArgumentError(f"{who}: {folder} holds a model already. Name another folder.")
    return folder


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
        learner: The learner to train.
        questions: With answers. Entities that are not given are linked.
        validation: Questions that decide when to stop. By default a tenth of the others, drawn at random.
        who: The function that was called, for messages.
        max_hops: The largest distance of an answer from the question's entities.
        output: A folder for the model, which must hold none. None to save nothing.
        schedule: How long and how fast the model is trained.
        facts: Facts that the model records of its training, in addition to the ones added here, as values of JSON.
        progress: Whether to show a progress bar on stderr.

    Raises:
        InvalidArgumentError: If nothing can be trained on, or the output holds a model or an unfinished training of
            something else.
        ModelLoadError: If the unfinished training in the output is damaged.
    """
    began, folder = time.monotonic(), checked_output(who, output)
    learned, validating = _split_questions(who, learner, questions, validation, max_hops, schedule.seed)
    _check_supervision(who, learner, learned, schedule)
    examples: _Examples[Example] = _Examples(learner)
    probe, name = learner.index.embed([PROBE])[0], embedding_name(learner.index.embeddings)

    def model(training: dict[str, Any]) -> Model:
        """Return the model as it is now."""
        given = {"probe": probe, "embeddings": name, "training": training}
        return learner.model_class(learner.config, learner.weights, **given)

    def validate() -> float:
        """Return the gain of the answers of the validation."""
        on_graph = model({}).on(learner.index)
        ranked = ((learner.rank(on_graph, examples.of(question)), question) for question in validating.usable)
        return float(np.mean([_gain(order, question) for order, question in ranked]))

    learner.embed([question.text for question in (*learned.usable, *validating.usable)])
    rows = [[asdict(question) for question in part.usable] for part in (learned, validating)]
    data = json.dumps([learner.index.fingerprint, rows]).encode()
    digest = blake2b(data, digest_size=16).hexdigest()
    facts = {**facts, "questions": len(learned.usable), "data": digest}
    trainer = Trainer(
        parameters=learner.parameters,
        items=learned.usable,
        prepare=examples.of,
        loss=lambda some, rng: torch.stack([learner.loss(one, rng) for one in some]).mean(),
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
    unsupervised = len(examples.unsupervised.intersection(learned.usable))
    return ModelTraining(trained, learned, validating, unsupervised, history, time.monotonic() - began)


def _check_supervision(who: str, learner: Learner[Any, Any], learned: TrainingQuestions, schedule: Schedule) -> None:
    """Check that some question supervises, of no more than the training looks at."""
    some = learned.usable[:: -(-len(learned.usable) // schedule.num_examples)]
    if not any(learner.size(learner.example(question)) for question in some):
        raise InvalidArgumentError(
            f"{who}: of {replace(learned, usable=some)}, none has what it should teach among its candidates. Raise "
            f"max_nodes or max_hops, or {learner.advice}."
        )


def _split_questions(
    who: str,
    learner: Learner[Any, Any],
    questions: Sequence[Question],
    validation: Sequence[Question] | None,
    max_hops: int,
    seed: int,
) -> tuple[TrainingQuestions, TrainingQuestions]:
    """Return the questions to train on and to validate with, at most `VALIDATED`. A single question is both."""
    own, masks = learner.own_entities, learner.mask_entities
    find = partial(training_questions, learner.index, max_hops=max_hops, own_entities=own, mask_entities=masks)
    learned = find(questions)
    given = learned if validation is None else find(validation)
    for what, asked, part in (("train on", questions, learned), ("validate with", validation or (), given)):
        if not part.usable:
            hint = tell_unmatched(learner.index, asked) if part.without_answers else ""
            raise InvalidArgumentError(
                f"{who}: there is nothing to {what}: {part}. A question needs answers within "
                f"{max_hops} hops of an entity that is given or named in it.{hint}"
            )
    count = min(VALIDATED, len(given.usable))
    if validation is None:
        count = min(count, max(1, int(len(given.usable) * VALIDATION_SHARE)))
    chosen = set(stream(seed, "split").permutation(len(given.usable))[:count].tolist())
    validating = replace(given, usable=_chosen(given, chosen))
    if validation is None and len(learned.usable) > 1:
        others = set(range(len(learned.usable))) - chosen
        learned = replace(learned, usable=_chosen(learned, others))
        validating = TrainingQuestions(validating.usable, 0, 0, 0)
    return learned, validating


def _chosen(questions: TrainingQuestions, positions: set[int]) -> list[TrainingQuestion]:
    return [question for position, question in enumerate(questions.usable) if position in positions]


def _gain(ranked: Array, question: TrainingQuestion) -> float:
    """Return the normalised discounted cumulative gain of the answers among entities, best first.

    The entities of the question do not count, unless they are answers.
    """
    ranked = ranked[~np.isin(ranked, question.seeds) | np.isin(ranked, question.answers)]
    ranks, best = np.flatnonzero(np.isin(ranked, question.answers)), np.arange(len(question.answers) + question.missing)
    return float((1 / np.log2(2 + ranks)).sum() / (1 / np.log2(2 + best)).sum())


class _Examples(Generic[Example]):
    """Makes examples of questions.

    It keeps the first examples that supervise, `KEPT_TRIPLES` triples in all. It makes the others again each time.

    Attributes:
        unsupervised: The questions whose examples supervise nothing.
    """

    def __init__(self, learner: Learner[Any, Example]) -> None:
        self._learner = learner
        self._kept: dict[TrainingQuestion, Example] = {}
        self._room = KEPT_TRIPLES
        self.unsupervised = set[TrainingQuestion]()

    def of(self, question: TrainingQuestion) -> Example:
        """Return the example of a question."""
        if question in self._kept:
            return self._kept[question]
        made = self._learner.example(question)
        size = self._learner.size(made)
        if not size:
            self.unsupervised.add(question)
        elif size <= self._room:
            self._room -= size
            self._kept[question] = made
        return made
