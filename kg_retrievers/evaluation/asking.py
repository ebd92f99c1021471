"""Asks one question after the other and measures each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from types import FunctionType
from typing import Any, Literal

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig

from kg_retrievers.core.cost import CostCounter
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.core.stages import STAGE_EVENT
from kg_retrievers.core.trained_model import TrainedModel
from kg_retrievers.datasets import GraphQuestion, Question
from kg_retrievers.errors import (
    BudgetError,
    DamagedDataError,
    DatabaseLoginError,
    DatabaseUnavailableError,
    InvalidArgumentError,
    KGRetrieversError,
    MissingExtraError,
    ModelMismatchError,
    RefusalError,
    SearchBudgetError,
    StaleIndexError,
)
from kg_retrievers.evaluation.identity import digest, identity
from kg_retrievers.evaluation.measuring import record_of
from kg_retrievers.evaluation.records import Record
from kg_retrievers.index import embedding_name
from kg_retrievers.index.question_indexes import QuestionIndexes

#: Whether a retriever is given the entities of a question, or has to find them in its text.
Topic = Literal["given", "linked"]

# These errors say that something is wrong with the run, not with one question.
_OF_THE_RUN = (
    InvalidArgumentError,
    MissingExtraError,
    ModelMismatchError,
    BudgetError,
    StaleIndexError,
    DamagedDataError,
    DatabaseUnavailableError,
    DatabaseLoginError,
)


class _PatternTrace(BaseCallbackHandler):
    """Keeps the first pattern that a stage of a retriever makes."""

    run_inline = True
    pattern: dict[str, Any] | None = None

    def on_custom_event(self, name: str, data: Mapping[str, Any], **_: object) -> None:
        """Keep the pattern of a stage."""
        if name == STAGE_EVENT and self.pattern is None:
            self.pattern = data.get("pattern")


class Asker:
    """Asks one question after the other."""

    def __init__(
        self,
        retriever: BaseKGRetriever,
        answerer: Runnable[Any, Any] | None,
        topic: Topic,
        embedding_cache: str | Path | None = None,
    ) -> None:
        """Take the arguments of `evaluate`."""
        self.retriever, self.answerer, self.topic = retriever, answerer, topic
        self._indexes = QuestionIndexes(retriever.index.embeddings, embedding_cache)

    def _over_graph_of(self, question: Question) -> BaseKGRetriever:
        """Return the retriever over the graph that a question is about."""
        if not isinstance(question, GraphQuestion):
            return self.retriever
        return self.retriever.with_index(self._indexes.of(question.graph))

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that the retriever and the answerer show."""
        fields = {name: getattr(self.retriever, name) for name in sorted(type(self.retriever).model_fields)}
        prompts = [identity(prompt) for _, prompt in sorted(self.retriever.prompts.items())]
        parts = {name: value for name, value in fields.items() if _is_part(value)} | {"answerer": self.answerer}
        return {
            "topic": self.topic,
            "retriever": type(self.retriever).__name__,
            "fields": {
                name: _setting(value)
                for name, value in fields.items()
                if name not in {"name", "tags", "metadata", "index"}
            },
            "prompts": digest(prompts),
            "parts": {name: identity(part) for name, part in parts.items() if part is not None},
            "embeddings": embedding_name(self.retriever.index.embeddings),
            "index": self.retriever.index.fingerprint,
            "answerer": None if self.answerer is None else self.answerer.get_name(),
            "version": version("kg-retrievers"),
        }

    def warm_up(self, questions: Sequence[Question]) -> None:
        """Ask until there is evidence, unless that costs calls of a language model."""
        if not any(stage.calls_model for stage in self.retriever.stages):
            for question in map(keyed, questions):
                if self._retrieve(self._over_graph_of(question), question, {})[0]:
                    break

    def record(self, id: str, question: Question) -> Record:
        """Ask a question and measure; the clock runs once the question's graph is indexed."""
        question = keyed(question)
        retriever = self._over_graph_of(question)
        cost, trace = CostCounter(), _PatternTrace()
        config: RunnableConfig = {"callbacks": [cost, trace]}
        began = perf_counter()
        documents, reason, error = self._retrieve(retriever, question, config)
        latency = 1000 * (perf_counter() - began)
        reply, error = self._reply(question, documents, config, error)
        return record_of(
            id,
            question,
            retriever,
            documents,
            reply,
            reason=reason,
            error=error,
            pattern=trace.pattern,
            cost=cost,
            latency=latency,
        )

    def _retrieve(
        self, retriever: BaseKGRetriever, question: Question, config: RunnableConfig
    ) -> tuple[list[Document], str | None, str | None]:
        """Return the evidence; why the question was refused; and what went wrong."""
        given = self.retriever.inputs_for(question)
        if self.topic == "linked":
            given.pop("seed_entities", None)
        try:
            return retriever.invoke(question.text, config, on_refusal="raise", **given), None, None
        except SearchBudgetError as error:  # it does not say that there is nothing
            return [], None, f"{type(error).__name__}: {error}"
        except RefusalError as error:
            return [], str(error), None
        except _OF_THE_RUN:
            raise
        except KGRetrieversError as error:
            return [], None, f"{type(error).__name__}: {error}"

    def _reply(
        self, question: Question, documents: list[Document], config: RunnableConfig, error: str | None
    ) -> tuple[Any, str | None]:
        """Return the reply of the answerer, and what went wrong; None without an answerer."""
        if self.answerer is None:
            return None, error
        if error or not (documents or getattr(self.answerer, "decides_without_evidence", False)):
            return [], error
        try:
            return self.answerer.invoke({"question": question.text, "documents": documents}, config), None
        except _OF_THE_RUN:
            raise
        except KGRetrieversError as caught:
            return [], f"{type(caught).__name__}: {caught}"


class AskBatch:
    """Asks batches of numbered questions; each process that gets a copy asks some unmeasured ones first."""

    def __init__(self, asker: Asker, warm_up: Sequence[Question]) -> None:
        """Take what asks, and the questions to warm up with."""
        self._asker, self._warm_up = asker, warm_up

    def __call__(self, numbered: Sequence[tuple[int, Question]]) -> list[Record]:
        """Return the records of some questions."""
        self._asker.warm_up(self._warm_up)
        self._warm_up = ()
        return [self._asker.record(str(number), question) for number, question in numbered]


def keyed(question: Question) -> Question:
    """Return a question with keys of entities in place of names, where it has a graph of its own."""
    return question.with_keys() if isinstance(question, GraphQuestion) else question


def _setting(field: object) -> Any:
    """Return a field as JSON holds it, where it is a plain value or a list of such; else its name or its class."""
    plain = bool | int | float | str | None
    if isinstance(field, list | tuple) and all(isinstance(item, plain) for item in field):
        return list(field)
    if isinstance(field, FunctionType):
        return f"{field.__module__}.{field.__qualname__}"
    return field if isinstance(field, plain) else type(field).__name__


def _is_part(field: object) -> bool:
    """Whether the figures depend on what a field holds, not only on its class: a generator, a model, retrievers."""
    if isinstance(field, list | tuple):
        return any(map(_is_part, field))
    return isinstance(field, Runnable | TrainedModel) and not isinstance(field, BasePromptTemplate)
