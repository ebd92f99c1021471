"""BaseModelRetriever: the base of methods that score a neighbourhood with a trained model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import field_validator

from kg_retrievers.core.neighborhood_retriever import BaseNeighborhoodRetriever
from kg_retrievers.core.retriever import Examples, LanguageModel
from kg_retrievers.core.stages import QuestionShape
from kg_retrievers.core.trained_model import TrainedModel
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.index import GraphIndex


class BaseModelRetriever(BaseNeighborhoodRetriever):
    """A retriever with a trained model."""

    #: The class of its model.
    model_class: ClassVar[type[TrainedModel[Any]]]
    suits: ClassVar[frozenset[QuestionShape]] = frozenset({"one entity", "several entities"})

    #: Always the neighbourhood of the question's entities, as in the training.
    scope: Literal["neighborhood"] = "neighborhood"
    #: The trained model, or the folder of one.
    model: Any

    @field_validator("model", mode="plain")
    @classmethod
    def _checked_model(cls, model: object) -> TrainedModel[Any]:
        if isinstance(model, str | Path):
            return cls.model_class.from_pretrained(model)
        if isinstance(model, cls.model_class):
            return model
        kind = cls.model_class
        train = f"kg-retrievers train {kind.method} --graph GRAPH --questions FILE --output FOLDER"
        raise InvalidArgumentError(
            f"wanted a trained {kind.__name__} (of a training, its `.model`) or the folder of one, but got "
            f"{model!r:.100}.",
            hint_python=f"To train one on questions with answers: model={kind.trainer}(index, questions).model.",
            hint_shell=f"To train one on questions with answers: {train}; then --model FOLDER.",
        )

    @classmethod
    def fields_made_from(
        cls, index: GraphIndex, llm: LanguageModel, examples: Examples, model: Any, fields: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Load the model, and fill `max_hops` and `max_nodes` from its training.

        Values that the user gives stay.

        Raises:
            InvalidArgumentError: If the model is missing.
            ModelLoadError: If the folder holds no such model.
        """
        trained = cls.model_class.from_pretrained(model) if isinstance(model, str | Path) else model
        made: dict[str, Any] = {"model": trained}
        if isinstance(trained, cls.model_class):
            for name in ("max_hops", "max_nodes"):
                if name in trained.training and name not in fields:
                    made[name] = trained.training[name]
        return made

    def model_post_init(self, context: Any) -> None:
        """Check that the model fits the index.

        Raises:
            ModelMismatchError: If it was trained with other embeddings.
        """
        super().model_post_init(context)
        self._ready_model()

    def _ready_model(self) -> Any:
        """Return the model on the index."""
        return self._cache.get("model on index", (self.model, self.index), lambda: self.model.on(self.index))
