"""Results as texts for a model: what comes from the graph stands in a frame, as data."""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch

from kg_retrievers.core.facts_prompt import TOOL_MESSAGE
from kg_retrievers.core.stages import shown_confidence
from kg_retrievers.graph.verbalize import readable
from kg_retrievers.serving import results


def text_of(result: results.Result) -> str:
    """Return a result as a text, with all that comes from the graph in the frame of `TOOL_MESSAGE`."""
    lines = list(_lines(result))
    if result.left_out:
        lines.append(f"({result.left_out:,} more left out; a larger max_tokens shows more)")
    return TOOL_MESSAGE.format(evidence="\n".join(lines))


@singledispatch
def _lines(result: results.Result) -> Iterable[str]:
    raise TypeError(f"{type(result).__name__} has no text.")


@_lines.register
def _answer(result: results.Answer) -> Iterable[str]:
    yield f"Answer: {result.answer}"
    yield from _refusal(result)
    if result.confidence is not None:
        yield f"Confidence: {shown_confidence(result.confidence)}"
    if result.supported is False:
        yield "Not supported: the cited facts do not name the answer."
    if result.truncated:
        yield "The search was cut short; there may be more."
    yield from (f"[{fact.number}] {fact.text}" for fact in result.citations)


@_lines.register
def _evidence(result: results.FoundEvidence) -> Iterable[str]:
    yield from _refusal(result)
    for one in result.evidence:
        proposed = f", proposes {'; '.join(answer.label for answer in one.answers)}" if one.answers else ""
        yield f"Evidence {one.rank}, score {one.score:.3g}{proposed}:"
        yield from (fact.text for fact in one.facts)


@_lines.register
def _explained(result: results.Explained) -> Iterable[str]:
    yield from _refusal(result)
    yield from result.lines


@_lines.register
def _schema(result: results.SchemaSummary) -> Iterable[str]:
    entities = "" if result.entities is None else f"{result.entities:,} entities, "
    facts = "" if result.facts is None else f"{result.facts:,} facts, "
    yield f"{entities}{facts}{result.relation_count:,} relations, {result.type_count:,} types"
    for relation in result.relations:
        ends = f"{' or '.join(relation.head_types) or '?'} -> {' or '.join(relation.tail_types) or '?'}"
        values = "" if relation.least is None else f", {relation.least} to {relation.greatest}"
        yield f"{relation.relation}: {ends}{values} ({relation.facts:,})"
    if result.types:
        yield f"Types: {'; '.join(f'{kind.name} ({kind.count:,})' for kind in result.types)}"


@_lines.register
def _neighbors(result: results.Neighbors) -> Iterable[str]:
    yield f"{result.entity.label}: {result.total:,} {'fact' if result.total == 1 else 'facts'}"
    if result.types:
        yield f"Types: {'; '.join(result.types)}"
    if result.aliases:
        yield f"Also called: {'; '.join(result.aliases)}"
    yield from (fact.text for fact in result.facts)
    counts = (f"{readable(one.relation)} ({one.outgoing + one.incoming:,})" for one in result.relations)
    yield f"All relations: {'; '.join(counts)}"


def _refusal(result: results.Found) -> Iterable[str]:
    if result.refusal is not None:
        yield f"Why: {result.refusal.reason}"
        yield f"Next step: {result.refusal.next_step}"
