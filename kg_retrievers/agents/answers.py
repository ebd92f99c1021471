"""From answers, errors and schemas to results, in the words of an agent."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, TypeVar

from langchain_core.documents import Document

from kg_retrievers.agents import results
from kg_retrievers.agents.bounds import MOST_ITEMS
from kg_retrievers.agents.results import shorten, shown
from kg_retrievers.chains.cited_answer import CitedAnswer
from kg_retrievers.core.documents import best_answers, documents_answers, is_table, why_unsure
from kg_retrievers.core.replies import refusal_of
from kg_retrievers.errors import KGRetrieversError, LowConfidenceError, RefusalError
from kg_retrievers.graph import Triple
from kg_retrievers.graph.verbalize import attribute_words, triple_lines, words_with
from kg_retrievers.index import GraphIndex
from kg_retrievers.index.hints import looks_foreign

OneFact = TypeVar("OneFact", bound=results.Fact)

#: The texts that models read, in `prompts.toml`.
TEXTS: Mapping[str, Any] = tomllib.loads((files(__package__) / "prompts.toml").read_text("utf-8"))

#: The next step of an agent, by the name of the error.
STEPS: Mapping[str, str] = TEXTS["steps"]

#: The next step of an agent about evidence that proposes no answer.
UNSURE_STEP = f"Look for the answer in the facts below. If it is not there: {STEPS['LowConfidenceError']}"


def told(error: KGRetrieversError, question: str = "") -> results.Refusal:
    """Return the reason of an error and the next step of an agent.

    Example:
        >>> from kg_retrievers.errors import NoEvidenceError
        >>> told(NoEvidenceError("SimGRAGRetriever: nothing fits.", hint_python="Raise k=.")).reason
        'nothing fits.'
    """
    step = next(STEPS[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in STEPS)
    if isinstance(error, RefusalError):
        step = _in_english(question) + step
    return results.Refusal(reason=error.plain_message, next_step=step)


def _in_english(question: str) -> str:
    return "Ask in English, with the names as they are. " if question and looks_foreign(question) else ""


def refused(question: str, refusal: RefusalError) -> results.Answer:
    """Return the answer to a question that was refused."""
    confidence = refusal.confidence if isinstance(refusal, LowConfidenceError) else None
    return results.Answer(answer=refusal_of(refusal), confidence=confidence, refusal=told(refusal, question))


def answer_of(cited: CitedAnswer, documents: Sequence[Document]) -> results.Answer:
    """Return the answer of a cited answer chain from these Documents as a result."""
    answers, citations = _named_answers(cited["answers"], documents), cited["citations"]
    answering = [one for one in documents if one.metadata["answers"] or one.metadata.get("value") is not None]
    why, asked = "" if answers else why_unsure(documents), documents[0].metadata["question"]
    return results.Answer(
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
        value=value_of(cited.get("value")),
        refusal=results.Refusal(reason=why, next_step=_in_english(asked) + UNSURE_STEP) if why else None,
        truncated=any(one.metadata["truncated"] for one in answering or documents[:1]),
        left_out=max(len(answers) - MOST_ITEMS, 0) + max(len(citations) - MOST_ITEMS, 0),
    )


def value_of(value: Any) -> Any:
    """Return the value of an operation or a query, cut for a result.

    It keeps as many items as a result may hold.
    """
    if is_table(value):
        rows = value["rows"]
        return {"columns": value["columns"], "rows": rows[:MOST_ITEMS], "left_out": max(len(rows) - MOST_ITEMS, 0)}
    return value[:MOST_ITEMS] if isinstance(value, list) else value


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
    """Return answers with their keys.

    These are the answers of the best evidence, or the entities that a model names.
    """
    labels = {key: label for document in documents for key, label in document.metadata["labels"].items()}
    best = documents_answers(documents)
    if best and list(names) == best_answers(documents):
        return [results.Named(key=key, label=labels[key]) for key in best]
    keys = [*reversed([*labels]), *reversed(documents_answers(documents))]
    by_label = {shown(labels[key]).casefold(): key for key in keys}
    return [results.Named(key=by_label.get(shown(name).casefold()), label=name) for name in names]


def schema_of(
    index: GraphIndex, methods: Sequence[str] = (), *, words: str = "", most: tuple[int, int] = (MOST_ITEMS, MOST_ITEMS)
) -> results.SchemaSummary:
    """Return the relations, types and sources of a graph.

    For a connected graph, these are the parts that the index knows.

    Args:
        index: The indexed graph.
        methods: The methods that questions can be asked by.
        words: Only the relations and types nearest to these words, the nearest first.
        most: The most relations and types that are near to words.
    """
    schema = index.whole.graph.schema()
    relations, types = schema.relations, schema.types
    if words:
        [near], [kinds] = index.nearest_relations([words], most[0]), index.whole.nearest_types([words], most[1])
        by_name = {one.relation: one for one in relations}
        names = [index.graph.relations[id] for id in near.ids.tolist()]
        relations = tuple(by_name[name] for name in names if name in by_name)
        types = {name: types[name] for name in (index.whole.graph.types[id] for id in kinds.ids.tolist())}
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
            for one in relations[:MOST_ITEMS]
        ],
        types=_counted(types),
        sources=_counted(schema.sources),
        attributes=_counted(schema.attributes),
        methods=list(methods),
        left_out=sum(max(len(items) - MOST_ITEMS, 0) for items in (relations, types, schema.sources)),
    )


def _counted(counts: Mapping[str, int]) -> list[results.Counted]:
    return [results.Counted(name=name, count=count) for name, count in list(counts.items())[:MOST_ITEMS]]
