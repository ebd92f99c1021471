"""Asks a retriever a question and measures what it says and what it costs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Literal, TypedDict

from kg_retrievers import GraphIndex, Question
from kg_retrievers.core.documents import documents_answers
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import KGRetrieversError
from kg_retrievers.evaluation.measuring import exact_match, f1, hit
from kg_retrievers.methods import registry

#: Whether the entities of a question are handed over, or found in its text.
Topic = Literal["given", "linked"]

#: How many names of gold answers and answers a row shows.
SHOWN = 20


class Row(TypedDict):
    """One question, as the file of `--output` holds it.

    Attributes:
        set: The set.
        topic: Whether the topic was given or linked.
        setting: "plain"; "lacking" where the graph lacks a relation of the question; "examples" with examples; "speed"
            where only the time is of interest.
        answerable: Whether the graph holds the answer.
        answers: Their names, at most `SHOWN`; without regard to the confidence.
        confidence: What the retriever says; 1 where it says nothing. None without answers.
        source: Who wrote the pattern.
        reason: Why there is no answer.
    """

    set: str
    topic: Topic
    setting: str
    kind: str | None
    question: str
    answerable: bool
    gold: list[str]
    answers: list[str]
    answered: bool
    confidence: float | None
    source: str | None
    pattern: list[Any] | None
    hit: float
    exact: float
    f1: float
    reason: str | None
    cpu_ms: float


def build_retriever(method: str, index: GraphIndex, examples: Sequence[Question] = ()) -> BaseKGRetriever:
    """Return a retriever that answers whatever its confidence."""
    retriever = registry.find_method(method).load_retriever()
    given: dict[str, Any] = {"examples": list(examples)} if examples else {}
    built: BaseKGRetriever = retriever.from_index(index, min_confidence=0.0, **given)
    return built


def default_threshold(method: str) -> float:
    """Return the confidence below which the method refuses by default."""
    default: float = registry.find_method(method).load_retriever().model_fields["min_confidence"].default
    return default


def ask(retriever: BaseKGRetriever, question: Question, topic: Topic, *, of: str, setting: str) -> Row:
    """Ask and measure; the CPU time is that of the retrieval, on all threads."""
    seeds: dict[str, Any] = (
        {"seed_entities": list(question.seed_entities)} if topic == "given" and question.seed_entities else {}
    )
    began, reason = time.process_time(), None
    try:
        documents = retriever.invoke(question.text, on_refusal="raise", **seeds)
    except KGRetrieversError as error:
        documents, reason = [], f"{type(error).__name__}: {error}"
    cpu_ms = 1000 * (time.process_time() - began)
    answers, gold, label = documents_answers(documents), question.answers, retriever.graph.label
    metadata = documents[0].metadata if documents else {}
    value = metadata.get("value")
    answered = bool(answers) or value is not None
    pattern = metadata.get("details", {}).get("pattern") or {}
    said = metadata.get("confidence")
    return {
        "set": of,
        "topic": topic,
        "setting": setting,
        "kind": question.kind,
        "question": question.text,
        "answerable": question.answerable and setting != "lacking",
        "gold": list(map(label, gold[:SHOWN])) if question.value is None else [str(question.value)],
        "answers": list(map(label, answers[:SHOWN])) if value is None else [str(value)],
        "answered": answered,
        "confidence": (1.0 if said is None else said) if answered else None,
        "source": pattern.get("source"),
        "pattern": pattern.get("triples"),
        **_figures(question, answers, value),
        "reason": reason,
        "cpu_ms": cpu_ms,
    }


def _figures(question: Question, answers: Sequence[str], value: object) -> dict[str, float]:
    """Return hit, exact and F1 of answers, or of the value that is asked for."""
    if question.value is not None:
        right = float(type(value) is type(question.value) and value == question.value)
        return {"hit": right, "exact": right, "f1": right}
    if not question.answers:
        return {"hit": 0.0, "exact": 0.0, "f1": 0.0}
    gold = question.answers
    return {"hit": hit(gold, answers), "exact": exact_match(gold, answers), "f1": f1(gold, answers)}
