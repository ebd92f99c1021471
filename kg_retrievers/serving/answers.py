"""From Documents, answers, refusals and schemas to results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from langchain_core.documents import Document

from kg_retrievers.chains.cited_answer import CitedAnswer
from kg_retrievers.core.documents import documents_answers, is_table, result_answers
from kg_retrievers.core.replies import refusal_of
from kg_retrievers.errors import LowConfidenceError, RefusalError
from kg_retrievers.explanation import Explanation, WhyNot
from kg_retrievers.graph import Triple
from kg_retrievers.graph.verbalize import attribute_words, triple_lines, words_with
from kg_retrievers.index import GraphIndex
from kg_retrievers.serving import results
from kg_retrievers.serving.bounds import MOST_ITEMS
from kg_retrievers.serving.results import shorten, shown

F = TypeVar("F", bound=results.Found)
OneFact = TypeVar("OneFact", bound=results.Fact)

#: What to do next where an error says nothing of it.
NEXT_STEP = "Look at the schema, name an entity of the graph, and ask for a relation that it has."


def answer_of(question: str, cited: CitedAnswer, documents: Sequence[Document], method: str) -> results.Answer:
    """Return an answer from what a cited answer chain says of these Documents."""
    answers, citations = _named_answers(cited["answers"], documents), cited["citations"]
    return results.Answer(
        question=question,
        method=method,
        answer=cited["answer"],
        answers=answers[:MOST_ITEMS],
        citations=[
            results.CitedFact(
                number=one["number"],
                triple=Triple(*one["triple"]),
                text=one["text"],
                sources=(one.get("sources") or [])[:MOST_ITEMS] or None,
            )
            for one in citations[:MOST_ITEMS]
        ],
        explanation=cited["explanation"],
        supported=cited.get("supported"),
        confidence=documents[0].metadata["confidence"],
        value=_value(cited.get("value")),
        truncated=_is_truncated(documents),
        left_out=max(len(answers) - MOST_ITEMS, 0) + max(len(citations) - MOST_ITEMS, 0),
    )


def _is_truncated(documents: Sequence[Document]) -> bool:
    return any(document.metadata["truncated"] for document in documents)


def refused(kind: type[F], question: str, refusal: RefusalError, method: str) -> F:
    """Return the result of this kind for a question that was refused."""
    reason = results.Refusal(reason=refusal.message, next_step=refusal.hint_python or NEXT_STEP)
    about: dict[str, Any] = {"question": question, "method": method, "refusal": reason}
    if issubclass(kind, results.Answer):
        about["answer"] = refusal_of(refusal)
        about["confidence"] = refusal.confidence if isinstance(refusal, LowConfidenceError) else None
    return kind(**about)


def evidence_of(question: str, documents: Sequence[Document], method: str) -> results.FoundEvidence:
    """Return the evidence that some Documents hold."""
    return results.FoundEvidence(
        question=question,
        method=method,
        evidence=[_evidence(document.metadata) for document in documents],
        truncated=_is_truncated(documents),
        left_out=sum(max(len(document.metadata["triples"]) - MOST_ITEMS, 0) for document in documents),
    )


def _evidence(metadata: Mapping[str, Any]) -> results.Evidence:
    labels, triples = metadata["labels"], metadata["triples"][:MOST_ITEMS]
    sources = metadata.get("sources") or [None] * len(triples)
    attributes = metadata.get("attributes") or [None] * len(triples)
    return results.Evidence(
        rank=metadata["rank"],
        score=metadata["score"],
        answers=[results.Named(key=key, label=labels[key]) for key in metadata["answers"][:MOST_ITEMS]],
        facts=[
            fact_of(results.Fact, triple, labels, where, sets)
            for triple, where, sets in zip(triples, sources, attributes, strict=False)
        ],
        confidence=metadata["confidence"],
        value=_value(metadata["value"]),
    )


def _value(value: Any) -> Any:
    if is_table(value):
        rows = value["rows"]
        return {"columns": value["columns"], "rows": rows[:MOST_ITEMS], "left_out": max(len(rows) - MOST_ITEMS, 0)}
    return value[:MOST_ITEMS] if isinstance(value, list) else value


def explained_document(question: str, explanation: Explanation, method: str) -> results.Explained:
    """Return how a Document was found."""
    truncated, lines = explanation.metadata["truncated"], explanation.text.split("\n")
    left_out = max(len(lines) - MOST_ITEMS, 0)
    return results.Explained(
        question=question, method=method, lines=lines[:MOST_ITEMS], left_out=left_out, truncated=truncated
    )


def explained_absence(told: WhyNot, method: str) -> results.Explained:
    """Return why an entity is not found, or that it is."""
    lines = told.text.split("\n")
    return results.Explained(
        question=told.question,
        method=method,
        entity=results.Named(key=told.entity, label=told.label),
        found=told.found,
        lines=lines[:MOST_ITEMS],
        left_out=max(len(lines) - MOST_ITEMS, 0),
        change=told.change.in_python if told.change else None,
    )


def fact_of(
    kind: type[OneFact],
    triple: Sequence[str],
    labels: Mapping[str, str],
    sources: Sequence[str] | None,
    attributes: Sequence[Mapping[str, Any]] | None = None,
    **more: Any,
) -> OneFact:
    """Return a fact of a kind, in keys and in words."""
    head, relation, tail = triple
    shown = Triple(*map(shorten, (labels.get(head, head), relation, labels.get(tail, tail))))
    sets = [*(attributes or ())][:MOST_ITEMS]
    (text,) = triple_lines([shown], said=words_with({shown: sets}))
    return kind(
        triple=Triple(head, relation, tail),
        text=text,
        sources=[*(sources or ())][:MOST_ITEMS] or None,
        attributes=attribute_words(sets) or None,
        **more,
    )


def _named_answers(names: Sequence[str], documents: Sequence[Document]) -> list[results.Named]:
    """Return answers with their keys: those that the best evidence proposes, or the entities that a model names."""
    labels = {key: label for document in documents for key, label in document.metadata["labels"].items()}
    best = documents[0].metadata
    if best["answers"] and list(names) == result_answers(best):
        return [results.Named(key=key, label=labels[key]) for key in best["answers"]]
    keys = [*reversed([*labels]), *reversed(documents_answers(documents))]
    by_label = {shown(labels[key]).casefold(): key for key in keys}
    return [results.Named(key=by_label.get(shown(name).casefold()), label=name) for name in names]


def schema_of(index: GraphIndex, methods: Sequence[str]) -> results.SchemaSummary:
    """Return the relations, types and sources of a graph; of a connected one, as far as the index knows them.

    Args:
        index: The indexed graph.
        methods: The methods that questions can be asked by.
    """
    schema = index.whole.graph.schema()
    return results.SchemaSummary(
        entities=None if index.is_connected else schema.entities,
        facts=index.triple_count,
        relation_count=len(schema.relations),
        type_count=len(schema.types),
        relations=[
            results.RelationSummary(
                relation=one.relation,
                facts=one.triples,
                head_types=list(one.head_types[:MOST_ITEMS]),
                tail_types=list(one.tail_types[:MOST_ITEMS]),
                least=one.least,
                greatest=one.greatest,
            )
            for one in schema.relations[:MOST_ITEMS]
        ],
        types=_counted(schema.types),
        sources=_counted(schema.sources),
        attributes=_counted(schema.attributes),
        methods=list(methods),
        left_out=sum(max(len(items) - MOST_ITEMS, 0) for items in (schema.relations, schema.types, schema.sources)),
    )


def _counted(counts: Mapping[str, int]) -> list[results.Counted]:
    return [results.Counted(name=name, count=count) for name, count in list(counts.items())[:MOST_ITEMS]]
