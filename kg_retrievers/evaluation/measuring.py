"""Measures what a question got: from the evidence and the reply to the record that a file keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.documents import Document

from kg_retrievers.core.cost import CostCounter
from kg_retrievers.core.documents import documents_answers, result_answers, result_value
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.datasets import Question
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.evaluation.metrics import label_in_evidence, question_metrics
from kg_retrievers.evaluation.predictions import score_prediction
from kg_retrievers.evaluation.records import Record
from kg_retrievers.graph import Triple
from kg_retrievers.graph.verbalize import approximate_tokens, lone_entities_of
from kg_retrievers.index import GraphIndex, PartRequest


def record_of(
    id: str,
    question: Question,
    retriever: BaseKGRetriever,
    documents: list[Document],
    reply: Any,
    *,
    reason: str | None,
    error: str | None,
    pattern: dict[str, Any] | None,
    cost: CostCounter,
    latency: float,
) -> Record:
    """Return the record of a question that was asked.

    Args:
        id: Its position in the run.
        question: The question, with keys of entities.
        retriever: The retriever over the graph that it is about.
        documents: The evidence.
        reply: What the answerer replied; None without one.
        reason: Why the question was refused; else None.
        error: What went wrong; else None.
        pattern: The first pattern that a stage made, if one did.
        cost: The calls of language models.
        latency: The wall time of the retrieval, in milliseconds.
    """
    triples = dict.fromkeys(Triple(*triple) for one in documents for triple in one.metadata["triples"])
    value = verdict_value(reply) if is_verdict(reply) else result_value(documents)
    prediction = None if reply is None else predicted_answers(reply)
    said = retriever.parse_answers(prediction) if isinstance(prediction, str) else prediction
    refused = not documents if said is None else not "".join(said).strip()
    gold, answers, alone = list(question.answers), documents_answers(documents), lone_entities_of(documents)
    names = _labels(retriever.index, [*gold, *answers])
    wanted = [names[key] for key in gold] or result_answers({"answers": [], "value": question.value})
    ranked = list(dict.fromkeys(key for document in documents for key in document.metadata["answers"]))
    metrics = question_metrics(question, answers, triples, alone=alone, value=value, ranked=ranked)
    if said is not None and wanted:
        metrics |= _text_metrics("\n".join(said) if isinstance(prediction, str) else said, wanted)
    if question.answerable and wanted:
        metrics["label_in_evidence"] = label_in_evidence(wanted, documents)
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
        "labels": {key: names[key] for key in (*gold, *answers) if names[key] != key},
        "seed_entities": list(question.seed_entities),
        "triples": len(triples),
        "nodes": len({key for head, _, tail in triples for key in (head, tail)} | set(alone)),
        "tokens": sum(approximate_tokens(document.page_content) for document in documents),
        "pattern": documents[0].metadata["details"].get("pattern") if documents else pattern,
        "prediction": prediction,
        "llm_calls": cost.llm_calls,
        "input_tokens": cost.input_tokens,
        "output_tokens": cost.output_tokens,
        "latency_ms": latency,
        "refused": error is None and refused,
        "reason": reason,
        "error": error,
        "metrics": metrics,
    }


def _text_metrics(said: str | Sequence[str], wanted: Sequence[str]) -> dict[str, float | None]:
    """Return the metrics of a reply; a precision above 1, of several answers on one line, counts as 1."""
    scores = score_prediction(said, wanted)
    precision, recall = min(scores["precision"], 1.0), scores["recall"]
    f1 = 2 * precision * recall / (precision + recall) if recall else 0.0
    return {f"text_{name}": value for name, value in (scores | {"precision": precision, "f1": f1}).items()}


def _labels(index: GraphIndex, keys: Sequence[str]) -> dict[str, str]:
    """Return the labels of entities; an entity that the graph lacks has its key."""
    distinct = tuple(dict.fromkeys(keys))
    graph = index.part(PartRequest(distinct)).graph
    return {key: graph.label(key) for key in distinct}


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
