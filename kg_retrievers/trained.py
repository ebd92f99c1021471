"""TrainedRetriever: what methods share that ask a trained model about the neighbourhood of a question's entities."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from langchain_core.language_models import BaseLanguageModel
from pydantic import PrivateAttr, field_validator

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.index import GraphIndex
from kg_retrievers.models import TrainedModel
from kg_retrievers.questions import Question
from kg_retrievers.seeded import SeededRetriever


class TrainedRetriever(SeededRetriever):
    """A retriever with a trained model."""

    #: The class of its model.
    model_class: ClassVar[type[TrainedModel[Any]]]

    #: Always the neighbourhood of the question's entities, as in the training.
    scope: Literal["neighborhood"] = "neighborhood"
    #: The trained model, or the folder of one.
    model: TrainedModel[Any]

    _on_index: tuple[TrainedModel[Any], GraphIndex, Any] | None = PrivateAttr(default=None)

    @field_validator("model", mode="plain")
    @classmethod
    def _checked_model(cls, model: object) -> TrainedModel[Any]:
        if isinstance(model, str | Path):
            return cls.model_class.from_pretrained(model)
        if isinstance(model, cls.model_class):
            return model
        raise InvalidArgumentError(
            f"wanted a trained {cls.model_class.__name__} (of a training, its `.model`) or the folder of one. To train "
            f"one on questions with answers: kg-retrievers train {cls.model_class.method} --graph GRAPH --questions "
            "FILE --output FOLDER, then model=FOLDER, or --model FOLDER on a shell"
        )

    @classmethod
    def from_index(
        cls,
        index: GraphIndex,
        *,
        llm: BaseLanguageModel[Any] | None = None,
        examples: Sequence[Question] | None = None,
        model: Any = None,
        **fields: Any,
    ) -> Self:
        """Build the retriever, with the `max_hops` and `max_nodes` that the model was trained with.

        Args:
            index: The indexed graph.
            llm: Not used; the method asks no language model.
            examples: Not used; a training makes a model of them.
            model: A trained model, or its folder.
            **fields: Fields of the retriever.

        Raises:
            InvalidArgumentError: If the model is missing, or a field is wrong.
            ModelLoadError: If the folder holds no such model.
            ModelMismatchError: If it was trained with other embeddings.
        """
        retriever = cls(index=index, model=model, **fields)
        for name in ("max_hops", "max_nodes"):
            if name in retriever.model.training and name not in fields:
                setattr(retriever, name, retriever.model.training[name])
        return retriever

    def model_post_init(self, context: Any) -> None:
        """Check that the model fits the index.

        Raises:
            ModelMismatchError: If it was trained with other embeddings.
        """
        super().model_post_init(context)
        self._ready_model()

    def _ready_model(self) -> Any:
        """Return the model on the index."""
        made = self._on_index
        if made is None or made[0] is not self.model or made[1] is not self.index:
            made = self._on_index = (self.model, self.index, self.model.on(self.index))
        return made[2]
