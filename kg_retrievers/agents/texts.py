"""Write results as texts for a model.

Everything that comes from the graph stands in a frame, as data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import singledispatch
from typing import Any

from kg_retrievers.agents import results
from kg_retrievers.core.facts_prompt import TOOL_MESSAGE
from kg_retrievers.core.stages import shown_confidence
from kg_retrievers.graph.verbalize import readable

#: Gives the text before a fact, such as "[3] ".
Mark = Callable[[results.Fact], str]


def _own_number(fact: results.Fact) -> str:
    return f"[{fact.number}] " if isinstance(fact, results.CitedFact) else ""


def text_of(result: results.Result, mark: Mark = _own_number) -> str:
    """Return a result as a text.

    Everything that comes from the graph stands in the frame of `TOOL_MESSAGE`.
    """
    lines = [*_lines(result, mark)]
    if result.truncated:
        lines.append("(A limit ended the search; there may be more.)")
    if result.left_out:
        lines.append(f"({result.left_out:,} more left out. {result.go_on()})")
    return TOOL_MESSAGE.format(evidence="\n".join(lines))


def _facts(facts: Iterable[results.Fact], mark: Mark) -> Iterable[str]:
    for fact in facts:
        sources = f" (from {'; '.join(fact.sources)})" if fact.sources else ""
        yield f"{mark(fact)}{fact.text}{sources}"


def _counted(facts: int) -> str:
    return f"{facts:,} {'fact' if facts == 1 else 'facts'}"


@singledispatch
def _lines(result: results.Result, mark: Mark) -> Iterable[str]:
    raise TypeError(f"{type(result).__name__} has no text.")


@_lines.register
def _answer(result: results.Answer, mark: Mark) -> Iterable[str]:
    yield f"Answer: {result.answer}"
    if result.refusal is not None:
        yield f"Why: {result.refusal.reason}"
        yield f"Next step: {result.refusal.next_step}"
    if isinstance(result.value, results.Table):
        yield " | ".join(result.value.columns)
        yield from (_row(row) for row in result.value.rows)
    if result.confidence is not None:
        yield f"Confidence: {shown_confidence(result.confidence)}"
    if result.supported is False:
        yield "Not supported: the cited facts do not name the answer."
    yield from _facts(result.citations, mark)


def _row(cells: Iterable[Any]) -> str:
    def said(cell: Any) -> str:
        return "" if cell is None else "; ".join(map(said, cell)) if isinstance(cell, list) else str(cell)

    return " | ".join(map(said, cells))


@_lines.register
def _entities(result: results.FoundEntities, mark: Mark) -> Iterable[str]:
    if not result.entities:
        yield f"Nothing is named {result.asked!r}. Try other words, or relations_of for the types of the graph."
    yield from map(_entity, result.entities)
    if result.nearest:
        yield "Nearest other names:" if result.entities else "The nearest names:"
        yield from map(_entity, result.nearest)


def _entity(one: results.FoundEntity) -> str:
    said = [one.label]
    said += [f"key {one.key}"] if one.key != one.label else []
    said += [", ".join(one.types)] if one.types else []
    said += [f"also called {'; '.join(one.aliases)}"] if one.aliases else []
    said += [_counted(one.facts)] if one.facts is not None else []
    return " | ".join(said)


@_lines.register
def _paths(result: results.FoundPaths, mark: Mark) -> Iterable[str]:
    for number, chain in enumerate(result.chains, 1):
        yield f"Chain {number}:"
        yield from _facts(chain.facts, mark)


@_lines.register
def _rows(result: results.QueryRows, mark: Mark) -> Iterable[str]:
    yield " | ".join(result.columns)
    yield from map(_row, result.rows)
    yield from _facts(result.facts, mark)


@_lines.register
def _schema(result: results.SchemaSummary, mark: Mark) -> Iterable[str]:
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
def _neighbors(result: results.Neighbors, mark: Mark) -> Iterable[str]:
    yield f"{result.entity.label}: {_counted(result.total)}"
    if result.types:
        yield f"Types: {'; '.join(result.types)}"
    if result.aliases:
        yield f"Also called: {'; '.join(result.aliases)}"
    yield from _facts(result.facts, mark)
    counts = (f"{readable(one.relation)} ({one.outgoing + one.incoming:,})" for one in result.relations)
    yield f"All relations: {'; '.join(counts)}"
