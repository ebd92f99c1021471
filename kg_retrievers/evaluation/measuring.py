"""Measures what a question got: from the evidence and the reply to the record that a file keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document

from kg_retrievers.core.cost import CostCounter
from kg_retrievers.core.documents import documents_answers, result_answers, result_value
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.datasets import Question
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.evaluation.metrics import label_in_evidence, question_metrics
from kg_retrievers.evaluation.predictions import score_prediction
from kg_retrievers.evaluation.records import Record, Step
from kg_retrievers.evaluation.steps import StageTrace
from kg_retrievers.graph import Triple
from kg_retrievers.graph.verbalize import approximate_tokens, lone_entities_of
from kg_retrievers.index import GraphIndex, PartRequest


@dataclass(frozen=True)
class Asked:
    """A question that was asked, and what came of it.

    Attributes:
        question: The question, with keys of entities.
        retriever: The retriever over the graph that it is about.
        documents: The evidence.
        reply: What the answerer replied; None without one.
        reason: Why the question was refused; else None.
        error: What went wrong; else None.
        step: Where the retrieval ended, if it was refused or failed.
        trace: What the stages found on their way.
        cost: The calls of language models.
        latency: The wall time of the retrieval, in milliseconds.
    """

    question: Question
    retriever: BaseKGRetriever
    documents: list[Document]
    reply: Any
    reason: str | None
    error: str | None
    step: Step | None
    trace: StageTrace
    cost: CostCounter
    latency: float

    @property
    def triples(self) -> dict[Triple, None]:
        """The distinct triples of the evidence, in their order."""
        return dict.fromkeys(Triple(*triple) for one in self.documents for triple in one.metadata["triples"])

    @property
    def value(self) -> Any:
        """What an operation gave, or a verdict says."""
        return verdict_value(self.reply) if is_verdict(self.reply) else result_value(self.documents)

    @property
    def pattern(self) -> dict[str, Any] | None:
        """The pattern that led to the best evidence, or that nothing fits."""
        return self.documents[0].metadata["details"].get("pattern") if self.documents else self.trace.pattern

    @property
    def prediction(self) -> str | list[str] | None:
        """The answers in the reply; None without answerer."""
        return None if self.reply is None else predicted_answers(self.reply)

    @property
    def said(self) -> list[str] | None:
        """The answers in the reply one by one: of a text, those that the retriever's `parse_answers` reads."""
        prediction = self.prediction
        return self.retriever.parse_answers(prediction) if isinstance(prediction, str) else prediction

    @property
    def is_refused(self) -> bool:
        """Whether no answer was given, on purpose."""
        if self.error is not None:
            return False
        if self.said is not None:
            return not "".join(self.said).strip()
        return not self.documents


def record_of(id: str, asked: Asked) -> Record:
    """Return the record of a question that was asked."""
    question, documents, triples = asked.question, asked.documents, asked.triples
    gold, answers = list(question.answers), documents_answers(documents)
    names, gold_in_graph = _look_up(asked.retriever.index, [*gold, *answers], gold)
    wanted = [names[key] for key in gold] or _texts(question)
    nodes = {key for head, _, tail in triples for key in (head, tail)} | set(lone_entities_of(documents))
    return {
        "id": id,
        "question": question.text,
        "hops": question.hops,
        "kind": question.kind,
        "answerable": question.answerable,
        "gold": gold,
        "gold_value": question.value,
        "answers": answers,
        "value": asked.value,
        "labels": {key: names[key] for key in (*gold, *answers) if names[key] != key},
        "seed_entities": list(question.seed_entities),
        "linked": asked.trace.linked,
        "gold_in_graph": gold_in_graph,
        "triples": len(triples),
        "nodes": len(nodes),
        "tokens": sum(approximate_tokens(document.page_content) for document in documents),
        "pattern": asked.pattern,
        "prediction": asked.prediction,
        "llm_calls": asked.cost.llm_calls,
        "input_tokens": asked.cost.input_tokens,
        "output_tokens": asked.cost.output_tokens,
        "latency_ms": asked.latency,
        "refused": asked.is_refused,
        "reason": asked.reason,
        "error": asked.error,
        "step": asked.step,
        "metrics": _graph_metrics(asked, answers) | _text_metrics(asked, wanted) | _name_metrics(asked, wanted),
    }


def _graph_metrics(asked: Asked, answers: Sequence[str]) -> dict[str, float | None]:
    """Return the metrics that compare entities and triples of the graph."""
    ranked = list(dict.fromkeys(key for document in asked.documents for key in document.metadata["answers"]))
    return question_metrics(
        asked.question,
        answers,
        asked.triples,
        alone=lone_entities_of(asked.documents),
        value=asked.value,
        ranked=ranked,
    )


def _text_metrics(asked: Asked, wanted: Sequence[str]) -> dict[str, float | None]:
    """Return the metrics of a reply; a precision above 1, of several answers on one line, counts as 1."""
    if asked.said is None or not wanted:
        return {}
    said = "\n".join(asked.said) if isinstance(asked.prediction, str) else asked.said
    scores = score_prediction(said, wanted)
    precision, recall = min(scores["precision"], 1.0), scores["recall"]
    f1 = 2 * precision * recall / (precision + recall) if recall else 0.0
    return {f"text_{name}": value for name, value in (scores | {"precision": precision, "f1": f1}).items()}


def _name_metrics(asked: Asked, wanted: Sequence[str]) -> dict[str, float | None]:
    """Return the metric that looks for names in the text of the evidence."""
    if not (asked.question.answerable and wanted):
        return {}
    return {"label_in_evidence": label_in_evidence(wanted, asked.documents)}


def _look_up(index: GraphIndex, keys: Sequence[str], gold: Sequence[str]) -> tuple[dict[str, str], bool | None]:
    """Return the labels of entities, that of what the graph lacks its own; and whether it holds a gold one."""
    distinct = tuple(dict.fromkeys(keys))
    graph = index.part(PartRequest(distinct)).graph
    held = any(key in graph.entities for key in gold) if gold else None
    return {key: graph.label(key) for key in distinct}, held


def _texts(question: Question) -> list[str]:
    """Return the gold value of a question as texts, as answers say it; nothing where it has none."""
    return result_answers({"answers": [], "value": question.value})


def is_verdict(reply: object) -> bool:
    """Tell whether a reply is a verdict on a claim, as `FactVerifier` gives it."""
    return isinstance(reply, Mapping) and isinstance(reply.get("verdict"), str)


def verdict_value(reply: Mapping[str, Any]) -> bool | None:
    """Return whether a claim holds by its verdict, or None if the evidence does not say.

    Example:
        >>> verdict_value({"verdict": "refuted"}), verdict_value({"verdict": "not enough evidence"})
        (False, None)
    """
    return {"supported": True, "refuted": False}.get(reply["verdict"])


def predicted_answers(reply: object) -> str | list[str]:
    """Return the answers in a reply: a text, a list, or a list under "answers"; of a verdict "yes" or "no".

    Raises:
        InvalidArgumentError: If it holds no answers.

    Example:
        >>> predicted_answers({"answers": ["Spike Jonze"]}), predicted_answers({"verdict": "supported"})
        (['Spike Jonze'], ['yes'])
    """
    if isinstance(reply, Mapping) and is_verdict(reply):
        return result_answers({"answers": [], "value": verdict_value(reply)})
    answers = reply.get("answers") if isinstance(reply, Mapping) else reply
    if not isinstance(answers, str | list):
        raise InvalidArgumentError(
            f"evaluate: the answerer must return a text, a list of texts, or a mapping with such a list under "
            f"'answers', or with a 'verdict', but returned {reply!r:.200}."
        )
    return answers
