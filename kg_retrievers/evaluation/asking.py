"""Asks one question after the other and measures each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from time import perf_counter
from types import FunctionType
from typing import Any, Literal

from langchain_core.documents import Document
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig

from kg_retrievers.core.cost import CostCounter
from kg_retrievers.core.documents import documents_answers
from kg_retrievers.core.results import result_answers, result_value
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.core.trained_model import TrainedModel
from kg_retrievers.datasets import Question
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
from kg_retrievers.evaluation.metrics import question_metrics
from kg_retrievers.evaluation.predictions import score_prediction
from kg_retrievers.evaluation.records import Record
from kg_retrievers.graph import Triple
from kg_retrievers.graph.verbalize import approximate_tokens
from kg_retrievers.index import embedding_name
from kg_retrievers.index.reach import Reach

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


class Asker:
    """Asks one question after the other."""

    def __init__(self, retriever: BaseKGRetriever, answerer: Runnable[Any, Any] | None, topic: Topic) -> None:
        """Take the arguments of `evaluate`."""
        self.retriever, self.answerer, self.topic = retriever, answerer, topic

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
            for question in questions:
                if self._retrieve(question, {})[0]:
                    break

    def record(self, id: str, question: Question) -> Record:
        """Ask a question and measure."""
        counter = CostCounter()
        config: RunnableConfig = {"callbacks": [counter]}
        began = perf_counter()
        documents, reason, error = self._retrieve(question, config)
        latency = 1000 * (perf_counter() - began)
        prediction, error = self._answer(question, documents, config, error)
        said = self._read(prediction)
        answers = documents_answers(documents)
        triples = dict.fromkeys(Triple(*triple) for document in documents for triple in document.metadata["triples"])
        tokens = sum(approximate_tokens(document.page_content) for document in documents)
        value = result_value(documents)
        metrics = question_metrics(question, answers, triples, failed=error is not None, value=value)
        gold = list(question.answers)
        names = self._labels([*gold, *answers])
        return {
            "id": id,
            "question": question.text,
            "hops": question.hops,
            "kind": question.kind,
            "answerable": question.answerable,
            "gold": gold,
            "gold_value": question.value,
            "answers": answers,
            "value": value,
            "labels": {key: name for key, name in names.items() if name != key},
            "triples": len(triples),
            "tokens": tokens,
            "pattern": documents[0].metadata["details"].get("pattern") if documents else None,
            "prediction": prediction,
            "llm_calls": counter.llm_calls,
            "input_tokens": counter.input_tokens,
            "output_tokens": counter.output_tokens,
            "latency_ms": latency,
            "refused": error is None and (not documents or (said is not None and not _answered(said))),
            "reason": reason,
            "error": error,
            "metrics": metrics | _text_metrics(said, [names[key] for key in gold] or _texts(question)),
        }

    def _labels(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the labels of entities; what the graph lacks is its own."""
        index, distinct = self.retriever.index, tuple(dict.fromkeys(keys))
        return index.within(Reach(distinct), lambda: {key: index.graph.label(key) for key in distinct})

    def _retrieve(self, question: Question, config: RunnableConfig) -> tuple[list[Document], str | None, str | None]:
        """Return the evidence; why the question was refused; and what went wrong."""
        seeds = question.seed_entities if self.topic == "given" else ()
        given = {"seed_entities": list(seeds)} if seeds else {}
        try:
            return self.retriever.invoke(question.text, config, on_refusal="raise", **given), None, None
        except SearchBudgetError as error:  # it does not say that there is nothing
            return [], None, f"{type(error).__name__}: {error}"
        except RefusalError as error:
            return [], str(error), None
        except _OF_THE_RUN:
            raise
        except KGRetrieversError as error:
            return [], None, f"{type(error).__name__}: {error}"

    def _answer(
        self, question: Question, documents: list[Document], config: RunnableConfig, error: str | None
    ) -> tuple[str | list[str] | None, str | None]:
        """Return the reply of the answerer, and what went wrong."""
        if self.answerer is None:
            return None, error
        if not documents:
            return [], error
        try:
            reply = self.answerer.invoke({"question": question.text, "documents": documents}, config)
        except _OF_THE_RUN:
            raise
        except KGRetrieversError as caught:
            return [], f"{type(caught).__name__}: {caught}"
        answers = reply.get("answers") if isinstance(reply, Mapping) else reply
        if not isinstance(answers, str | list):
            raise InvalidArgumentError(
                f"evaluate: the answerer must return a text, a list of texts, or a mapping with such a list under "
                f"'answers', but returned {reply!r:.200}."
            )
        return answers, None

    def _read(self, prediction: str | list[str] | None) -> str | list[str] | None:
        """Return what a prediction says; of a text, the answers that `parse_answers` reads, one a line."""
        return "\n".join(self.retriever.parse_answers(prediction)) if isinstance(prediction, str) else prediction


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


def _texts(question: Question) -> list[str]:
    """Return the gold value of a question as texts, as answers say it; nothing where it has none."""
    return result_answers({"answers": [], "value": question.value})


def _answered(prediction: str | list[str]) -> bool:
    return bool("".join(prediction).strip())


def _text_metrics(prediction: str | list[str] | None, gold: Sequence[str]) -> dict[str, float | None]:
    """Return the metrics of a reply; a precision above 1, of several answers on one line, counts as 1."""
    if prediction is None or not gold:
        return {}
    scores = score_prediction(prediction, gold)
    precision, recall = min(scores["precision"], 1.0), scores["recall"]
    f1 = 2 * precision * recall / (precision + recall) if recall else 0.0
    return {f"text_{name}": value for name, value in (scores | {"precision": precision, "f1": f1}).items()}
