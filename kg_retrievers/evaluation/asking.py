"""Asks one question after the other and measures each."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
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
from kg_retrievers.evaluation.hops import hops_of
from kg_retrievers.evaluation.identity import digest, identity
from kg_retrievers.evaluation.metrics import question_metrics
from kg_retrievers.evaluation.predictions import score_prediction
from kg_retrievers.evaluation.records import Record, WrittenAnswer
from kg_retrievers.evaluation.replies import is_verdict, predicted_answers, verdict_value
from kg_retrievers.evaluation.sizes import sizes_of
from kg_retrievers.evaluation.steps import StageTrace, is_same_pattern
from kg_retrievers.evaluation.written import judge_answers, label_in_evidence, score_written
from kg_retrievers.graph import Known, Pattern, Triple
from kg_retrievers.index import GraphIndex, embedding_name
from kg_retrievers.index.question_indexes import QuestionIndexes
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
        counter, trace = CostCounter(), StageTrace()
        config: RunnableConfig = {"callbacks": [counter, trace]}
        began = perf_counter()
        documents, reason, error = self._retrieve(retriever, question, config)
        latency = 1000 * (perf_counter() - began)
        step = trace.step if reason or error else "answer"
        reply, error = self._reply(question, documents, config, error)
        prediction = None if reply is None else predicted_answers(reply)
        said = self._read(prediction)
        found = bool(documents) or self.retriever.closed_book
        answers = documents_answers(documents)
        ranked = list(dict.fromkeys(key for document in documents for key in document.metadata["answers"]))
        triples = dict.fromkeys(Triple(*triple) for document in documents for triple in document.metadata["triples"])
        value = verdict_value(reply) if is_verdict(reply) else result_value(documents)
        failed = error is not None
        metrics = question_metrics(question, answers, triples, failed=failed, value=value, ranked=ranked)
        gold = list(question.answers)
        pattern = documents[0].metadata["details"].get("pattern") if documents else trace.pattern
        patterns = _patterns(pattern, question)
        names, gold_in_graph = _look_up(retriever.index, [*gold, *answers, *_known_texts(patterns)], gold)
        wanted = [names[key] for key in gold] or _texts(question)
        written = self._judge(prediction, question, wanted, documents)
        return {
            "id": id,
            "question": question.text,
            "hops": hops_of(question),
            "kind": question.kind,
            "answerable": question.answerable,
            "gold": gold,
            "gold_value": question.value,
            "answers": answers,
            "value": value,
            "labels": {key: names[key] for key in (*gold, *answers) if names[key] != key},
            "seed_entities": list(question.seed_entities),
            "linked": trace.linked,
            "gold_in_graph": gold_in_graph,
            **sizes_of(documents, triples, question, self.retriever.style),
            "pattern": pattern,
            "right_pattern": is_same_pattern(*patterns, names) if patterns else None,
            "prediction": prediction,
            "written": written,
            "llm_calls": counter.llm_calls,
            "input_tokens": counter.input_tokens,
            "output_tokens": counter.output_tokens,
            "latency_ms": latency,
            "refused": error is None and not (found if said is None else _answered(said)),
            "reason": reason,
            "error": error,
            "step": step if reason or failed else None,
            "metrics": metrics
            | _text_metrics(said, wanted)
            | _metrics_of_names(written, wanted, documents, question, failed=failed),
        }

    def _judge(
        self, prediction: str | list[str] | None, question: Question, wanted: Sequence[str], documents: list[Document]
    ) -> list[WrittenAnswer] | None:
        """Return the answers in a reply, judged; None without answerer."""
        if prediction is None:
            return None
        answers = self.retriever.parse_answers(prediction) if isinstance(prediction, str) else prediction
        answers = [answer for answer in answers if answer.strip()]
        return judge_answers(answers, wanted if question.answerable else [], documents)

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
        closed_book = self.retriever.closed_book or getattr(self.answerer, "decides_without_evidence", False)
        if error or not (documents or closed_book):
            return [], error
        try:
            return self.answerer.invoke({"question": question.text, "documents": documents}, config), None
        except _OF_THE_RUN:
            raise
        except KGRetrieversError as caught:
            return [], f"{type(caught).__name__}: {caught}"

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


def keyed(question: Question) -> Question:
    """Return a question with keys of entities in place of names, where it has a graph of its own."""
    return question.with_keys() if isinstance(question, GraphQuestion) else question


def _look_up(index: GraphIndex, keys: Sequence[str], gold: Sequence[str]) -> tuple[dict[str, str], bool | None]:
    """Return the labels of entities, that of what the graph lacks its own; and whether it holds a gold one."""
    distinct = tuple(dict.fromkeys(keys))

    def looked_up() -> tuple[dict[str, str], bool | None]:
        held = any(key in index.graph.entities for key in gold) if gold else None
        return {key: index.graph.label(key) for key in distinct}, held

    return index.within(Reach(distinct), looked_up)


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


def _patterns(found: dict[str, Any] | None, question: Question) -> tuple[Pattern, Pattern] | None:
    """Return the pattern that was found and the gold one; None where one of them is not known."""
    return None if found is None or question.pattern is None else (Pattern.from_dict(found), question.pattern)


def _known_texts(patterns: Sequence[Pattern] | None) -> list[str]:
    return [node.text for pattern in patterns or () for node in pattern.nodes if isinstance(node, Known)]


def _metrics_of_names(
    written: Sequence[WrittenAnswer] | None,
    wanted: Sequence[str],
    documents: Sequence[Document],
    question: Question,
    *,
    failed: bool,
) -> dict[str, float | None]:
    """Return the metrics that look for names in texts; an error is no refusal of an unanswerable question."""
    metrics: dict[str, float | None] = {}
    if question.answerable and wanted:
        metrics["label_in_evidence"] = label_in_evidence(wanted, documents)
    if written is not None and (wanted or not question.answerable):
        metrics["score_h"] = score_written(written, question.answerable or failed)
    return metrics


def _text_metrics(prediction: str | list[str] | None, gold: Sequence[str]) -> dict[str, float | None]:
    """Return the metrics of a reply; a precision above 1, of several answers on one line, counts as 1."""
    if prediction is None or not gold:
        return {}
    scores = score_prediction(prediction, gold)
    precision, recall = min(scores["precision"], 1.0), scores["recall"]
    f1 = 2 * precision * recall / (precision + recall) if recall else 0.0
    return {f"text_{name}": value for name, value in (scores | {"precision": precision, "f1": f1}).items()}
