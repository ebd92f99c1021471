"""The operation of a pattern over the rows of its queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from kg_retrievers.database.values import EntityNode, Rows
from kg_retrievers.errors import InvalidArgumentError, SearchBudgetError
from kg_retrievers.graph import KnowledgeGraph, Triple
from kg_retrievers.graph.operations import Operation
from kg_retrievers.methods.sg_rag.subgraphs import stale_index, subgraphs_of
from kg_retrievers.questions.operations import SHOWN, compared, operation_result, shown_details

#: Runs a query of the state: its rows, as many as an operation takes or as evidence takes.
RunQuery = Callable[[Mapping[str, Any], bool], Rows]


#: The most rows of a query.
MAX_ROWS = 100_000


class Found(NamedTuple):
    """The rows of the first query that has some, else of the last.

    Attributes:
        query: The query, as the state holds it.
        rows: Its rows.
        tried: How many queries ran.
    """

    query: Mapping[str, Any]
    rows: Rows
    tried: int


class Operated(NamedTuple):
    """What an operation gives.

    Attributes:
        value: What it gives; see `Evidence.value`.
        answers: The keys of the entities that answer, the best first.
        triples: Facts that it rests on.
        truncated: Whether a count may be higher.
        query: The last query whose rows it is from.
        details: Of how many targets the facts are shown, how many queries ran, and what else is to be said.
    """

    value: Any
    answers: tuple[str, ...]
    triples: tuple[Triple, ...]
    truncated: bool
    query: Mapping[str, Any]
    details: dict[str, Any]


def operate(queries: Sequence[Mapping[str, Any]], run: RunQuery, graph: KnowledgeGraph) -> Operated | None:
    """Apply the operation that queries state; None where nothing in the graph says what it gives.

    Args:
        queries: Queries with one "operation", run in this order until one has rows; those of each "side" by themselves.
        run: Runs a query. For bindings, its columns are `target` and `by`.
        graph: The graph of the database.

    Raises:
        SearchBudgetError: If there are more rows than fetched, so that only a count is known, as "at least".
    """
    operation = Operation.from_dict(queries[0]["operation"])
    if operation.kind == "compare":
        return _compare(operation, queries, run, graph)
    found = _first_with_rows(queries, run, "facts" in queries[0])
    details = {"tried": found.tried, "rows": len(found.rows)}
    if operation.kind == "exists":
        triples = _facts(found.rows, graph)
        return Operated(bool(found.rows.rows), (), triples, False, found.query, details)
    if found.rows.truncated and operation.kind != "count":
        raise _too_many(found.rows, operation.kind)
    bindings = _bindings(found.rows, graph)
    if operation.by and any(len(row) < 2 for row in bindings):
        raise InvalidArgumentError(
            f"CypherRetriever: the operation {operation.kind!r} needs the columns 'target' and 'by' of its query, the "
            "keys of what is chosen and of what it is chosen by."
        )
    result = operation_result(operation, bindings, graph)
    if operation.kind != "count" and not result.answers:
        return None
    details |= shown_details(result, truncated=found.rows.truncated)
    triples = _shown(found.query, result.support, run, graph)
    answers = tuple(graph.entities[entity] for entity in result.answers)
    return Operated(result.value, answers, triples, found.rows.truncated, found.query, details)


def _compare(
    operation: Operation, queries: Sequence[Mapping[str, Any]], run: RunQuery, graph: KnowledgeGraph
) -> Operated | None:
    """Compare what two unknowns are, each found by queries of its own."""
    sides, triples, tried = list[list[int]](), dict[Triple, None](), 0
    for name in operation.by:
        of_side = [query for query in queries if query.get("side") == name]
        if not of_side:
            raise InvalidArgumentError(f"CypherRetriever: no query finds the side {name!r} of the comparison.")
        found = _first_with_rows(of_side, run, True)
        tried += found.tried
        if found.rows.truncated:
            raise _too_many(found.rows, operation.kind)
        sides.append([row[0] for row in _bindings(found.rows, graph)])
        triples |= dict.fromkeys(_shown(found.query, sorted(set(sides[-1])), run, graph))
    truth, support = compared(operation, sides, graph)
    if truth is None:
        return None
    shown = sum(min(SHOWN, len(set(side))) for side in sides)
    details = {"tried": tried, "shown": min(shown, len(support)), "of": len(support)}
    return Operated(truth, (), tuple(triples), False, found.query, details)


def _first_with_rows(queries: Sequence[Mapping[str, Any]], run: RunQuery, bindings: bool) -> Found:
    for tried, query in enumerate(queries, 1):  # noqa: B007 - the last one is returned where none has rows
        rows = run(query, bindings)
        if rows.rows:
            break
    return Found(query, rows, tried)


def _bindings(rows: Rows, graph: KnowledgeGraph) -> list[tuple[int, ...]]:
    """Return the ids of `target` and, if it is there, `by` of each row; rows without one of them are left out."""
    columns = [rows.columns.index("target") if "target" in rows.columns else 0]
    columns += [rows.columns.index("by")] if "by" in rows.columns else []
    ids: dict[Any, int] = {}
    found = []
    for row in rows.rows:
        keys = [value.key if isinstance(value := row[column], EntityNode) else value for column in columns]
        if None not in keys:
            found.append(tuple(_id(key, ids, graph) for key in keys))
    return found


def _id(key: Any, ids: dict[Any, int], graph: KnowledgeGraph) -> int:
    if key not in ids:
        ids[key] = graph.entities.find(key) if isinstance(key, str) else -1
    if ids[key] < 0:
        raise stale_index(key)
    return ids[key]


def _shown(
    query: Mapping[str, Any], support: Sequence[int], run: RunQuery, graph: KnowledgeGraph
) -> tuple[Triple, ...]:
    """Return the facts of the first of some targets, by the query for facts that a query for bindings brings."""
    facts = query.get("facts")
    if not support or facts is None:
        return ()
    keys = [graph.entities[entity] for entity in support[:SHOWN]]
    return _facts(run({**facts, "parameters": {**facts["parameters"], facts["shown"]: keys}}, False), graph)


def _facts(rows: Rows, graph: KnowledgeGraph) -> tuple[Triple, ...]:
    return tuple(dict.fromkeys(triple for row in subgraphs_of(rows, graph) for triple in row.triples))


def _too_many(rows: Rows, kind: str) -> SearchBudgetError:
    count = len(rows.rows)
    most = f"max_bindings={MAX_ROWS}"
    if count >= MAX_ROWS:
        hints = (
            "No more are fetched: narrow the conditions, or ask SimGRAGRetriever.",
            "No more are fetched: narrow the question, or: --method simgrag",
        )
    else:
        hints = (
            f"Raise it up to {most}, or narrow the conditions.",
            f"Raise it up to --field {most}, or narrow the question.",
        )
    return SearchBudgetError(
        f"CypherRetriever: there are more than max_bindings={count} bindings, so that {kind!r} is not known.",
        hint_python=hints[0],
        hint_shell=hints[1],
    )
