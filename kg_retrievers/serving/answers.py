"""From Documents, answers, refusals and schemas to results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from langchain_core.documents import Document

from kg_retrievers.chains.cited_answer import CitedAnswer
from kg_retrievers.core.cost import Cost as CountedCost
from kg_retrievers.core.documents import documents_answers, result_answers
from kg_retrievers.core.replies import refusal_of
from kg_retrievers.errors import LowConfidenceError, RefusalError
from kg_retrievers.explanation import Explanation, WhyNot
from kg_retrievers.graph import RelationSchema, Triple
from kg_retrievers.graph.verbalize import triple_lines
from kg_retrievers.index import GraphIndex
from kg_retrievers.serving.bounds import MOST_ITEMS, shorten, shown
from kg_retrievers.serving.results import (
    Answer,
    CitedFact,
    Cost,
    Counted,
    Evidence,
    Explained,
    Fact,
    Found,
    FoundEvidence,
    Named,
    Refusal,
    RelationSummary,
    SchemaSummary,
)

F = TypeVar("F", bound=Found)

#: What to do next where an error says nothing of it.
NEXT_STEP = "Look at the schema, name an entity of the graph, and ask for a relation that it has."


def answer_of(question: str, cited: CitedAnswer, documents: Sequence[Document], method: str) -> Answer:
    """Return an answer from what a cited answer chain says of these Documents."""
    first = documents[0].metadata
    answers = _named_answers(cited["answers"], documents)
    citations = [
        CitedFact(
            number=one["number"],
            triple=_triple(one["triple"]),
            text=shown(one["text"]),
            sources=_sources(one.get("sources")),
        )
        for one in cited["citations"][:MOST_ITEMS]
    ]
    return Answer(
        question=shown(question),
        method=method,
        answer=shown(cited["answer"]),
        answers=answers[:MOST_ITEMS],
        citations=citations,
        explanation=shown(cited["explanation"]),
        supported=cited.get("supported"),
        confidence=first["confidence"],
        value=_value(cited.get("value")),
        truncated=any(document.metadata["truncated"] for document in documents),
        left_out=max(len(answers) - MOST_ITEMS, 0) + max(len(cited["citations"]) - MOST_ITEMS, 0),
    )


def refused(kind: type[F], question: str, refusal: RefusalError, method: str) -> F:
    """Return the result of this kind for a question that was refused."""
    reason = Refusal(reason=shown(refusal.message), next_step=shown(refusal.hint_python) or NEXT_STEP)
    about: dict[str, Any] = {"question": shown(question), "method": method, "refusal": reason}
    if issubclass(kind, Answer):
        about["answer"] = refusal_of(refusal)
        about["confidence"] = refusal.confidence if isinstance(refusal, LowConfidenceError) else None
    return kind(**about)


def evidence_of(question: str, documents: Sequence[Document], method: str) -> FoundEvidence:
    """Return the evidence that some Documents hold."""
    kept = documents[:MOST_ITEMS]
    lost = sum(max(len(document.metadata["triples"]) - MOST_ITEMS, 0) for document in kept)
    return FoundEvidence(
        question=shown(question),
        method=method,
        evidence=[_evidence(document.metadata) for document in kept],
        truncated=any(document.metadata["truncated"] for document in documents),
        left_out=len(documents) - len(kept) + lost,
    )


def explained_document(question: str, explanation: Explanation, method: str) -> Explained:
    """Return how a Document was found."""
    lines = explanation.text.split("\n")
    return Explained(
        question=shown(question),
        method=method,
        lines=_lines(lines),
        truncated=explanation.metadata["truncated"],
        left_out=max(len(lines) - MOST_ITEMS, 0),
    )


def explained_absence(told: WhyNot, method: str) -> Explained:
    """Return why an entity is not found, or that it is."""
    return Explained(
        question=shown(told.question),
        method=method,
        entity=Named(key=shown(told.entity), label=shown(told.label)),
        found=told.found,
        lines=_lines(told.text.split("\n")),
        change=shown(told.change.in_python) if told.change else None,
    )


def _lines(lines: Sequence[str]) -> list[str]:
    return [shown(line) for line in lines[:MOST_ITEMS]]


def at_cost(found: F, cost: CountedCost) -> F:
    """Return a result with what it cost."""
    calls = Cost(llm_calls=cost["llm_calls"], input_tokens=cost["input_tokens"], output_tokens=cost["output_tokens"])
    return found.model_copy(update={"cost": calls, "seconds": round(cost["seconds"], 3)})


def fact_of(triple: Sequence[str], labels: Mapping[str, str], sources: Sequence[str] | None = None) -> Fact:
    """Return a fact, in keys and in words."""
    short = Triple(*(shorten(part) for part in triple))
    called = {shorten(key): shorten(labels.get(key, key)) for key in (triple[0], triple[2])}
    (text,) = triple_lines([short], called.__getitem__)
    return Fact(triple=_triple(short), text=text, sources=_sources(sources))


def _evidence(metadata: Mapping[str, Any]) -> Evidence:
    labels = metadata["labels"]
    triples = metadata["triples"][:MOST_ITEMS]
    sources = metadata.get("sources") or [None] * len(triples)
    return Evidence(
        rank=metadata["rank"],
        score=metadata["score"],
        answers=[Named(key=shown(key), label=shown(labels[key])) for key in metadata["answers"][:MOST_ITEMS]],
        facts=[fact_of(triple, labels, where) for triple, where in zip(triples, sources, strict=False)],
        confidence=metadata["confidence"],
        value=_value(metadata["value"]),
    )


def _named_answers(names: Sequence[str], documents: Sequence[Document]) -> list[Named]:
    """Return answers with their keys: those that the best evidence proposes, or the entities that a model names."""
    labels = {key: label for document in documents for key, label in document.metadata["labels"].items()}
    proposed = documents_answers(documents)
    if list(names) == result_answers(documents[0].metadata) and documents[0].metadata["answers"]:
        return [Named(key=shown(key), label=shown(labels[key])) for key in documents[0].metadata["answers"]]
    by_label = {shown(labels[key]).casefold(): key for key in [*reversed([*labels]), *reversed(proposed)]}
    keys = [by_label.get(shown(name).casefold()) for name in names]
    return [
        Named(key=None if key is None else shown(key), label=shown(name)) for name, key in zip(names, keys, strict=True)
    ]


def _triple(parts: Sequence[str]) -> tuple[str, str, str]:
    head, relation, tail = map(shown, parts)
    return head, relation, tail


def _sources(sources: Sequence[str] | None) -> list[str] | None:
    return [shown(source) for source in sources[:MOST_ITEMS]] if sources else None


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return [_value(one) for one in value[:MOST_ITEMS]]
    return shown(value) if isinstance(value, str) else value


def schema_of(index: GraphIndex, methods: Sequence[str]) -> SchemaSummary:
    """Return the relations, types and sources of a graph; of a connected one, as far as the index knows them.

    Args:
        index: The indexed graph.
        methods: The methods that questions can be asked by.
    """
    schema = index.whole.graph.schema()
    counts = (schema.relations, schema.types, schema.sources)
    return SchemaSummary(
        entities=None if index.is_connected else schema.entities,
        facts=index.triple_count,
        relation_count=len(schema.relations),
        type_count=len(schema.types),
        relations=[_relation(relation) for relation in schema.relations[:MOST_ITEMS]],
        types=_counted(schema.types),
        sources=_counted(schema.sources),
        methods=list(methods),
        left_out=sum(max(len(items) - MOST_ITEMS, 0) for items in counts),
    )


def _relation(relation: RelationSchema) -> RelationSummary:
    return RelationSummary(
        relation=shown(relation.relation),
        facts=relation.triples,
        head_types=[shown(name) for name in relation.head_types[:MOST_ITEMS]],
        tail_types=[shown(name) for name in relation.tail_types[:MOST_ITEMS]],
        least=None if relation.least is None else shown(relation.least),
        greatest=None if relation.greatest is None else shown(relation.greatest),
    )


def _counted(counts: Mapping[str, int]) -> list[Counted]:
    return [Counted(name=shown(name), count=count) for name, count in list(counts.items())[:MOST_ITEMS]]
