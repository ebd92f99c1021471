"""Read the rows of queries as subgraphs, and apply the operation of a pattern to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kg_retrievers.database.values import EntityNode, Rows, triples_in
from kg_retrievers.errors import InvalidArgumentError, SearchBudgetError, StaleIndexError
from kg_retrievers.graph import Evidence, KnowledgeGraph, Pattern, Triple, Unknown
from kg_retrievers.graph.columns import Array, distinct
from kg_retrievers.graph.operations import Operation
from kg_retrievers.index import GraphIndex
from kg_retrievers.questions.around import evidence_around
from kg_retrievers.questions.fact_attributes import (
    ValueIds,
    compared_with_values,
    result_with_values,
    values_of_rows,
)
from kg_retrievers.questions.operations import SHOWN, bound_by, compared, operation_result

#: Runs a query of the state, with the most rows that are fetched.
RunQuery = Callable[[Mapping[str, Any], int], Rows]

#: The most rows of a query, and the most rows with attributes whose facts are shown.
MAX_ROWS, MAX_FACTS = 100_000, 1_000

#: A query, its rows, and how many queries ran before it or are it.
Found = tuple[Mapping[str, Any], Rows, int]

#: The last query of an operation, and its result.
Operated = tuple[Mapping[str, Any], Evidence]


#: The next step on the shell if the database and the indexed graph differ.
INDEX_AGAIN_ON_SHELL = (
    "Index the graph of this database again, with the same --key if one was given, or name another --database."
)


class Subgraph(NamedTuple):
    """The position of a row, from 1, its facts in stored direction, and the keys of its answers."""

    row: int
    triples: list[Triple]
    answers: list[str]


def subgraphs_of(rows: Rows, graph: KnowledgeGraph) -> list[Subgraph]:
    """Return the rows that hold facts.

    The answers of a row stand in the column `target`, or in the first one if there is no `target`. A node is an answer.
    A text is, in this order, the key of an end of the row's facts, the label of such ends, or any key.

    Raises:
        StaleIndexError: If the rows hold a fact or a node that the graph does not hold.
    """
    column = rows.columns.index("target") if "target" in rows.columns else 0
    found = []
    for position, row in enumerate(rows.rows, 1):
        if triples := triples_in(row):
            answers = dict.fromkeys(_entities(row[column], triples, graph))
            found.append(Subgraph(position, triples, list(answers)))
    _check_held(found, graph)
    return found


def _check_held(subgraphs: Sequence[Subgraph], graph: KnowledgeGraph) -> None:
    facts = dict.fromkeys(triple for subgraph in subgraphs for triple in subgraph.triples)
    keys = dict.fromkeys(key for subgraph in subgraphs for key in subgraph.answers)
    strange: Any = next((triple for triple in facts if triple not in graph), None)
    strange = strange or next((key for key in keys if key not in graph.entities), None)
    if strange is not None:
        raise stale_index(strange)


def stale_index(strange: Any) -> StaleIndexError:
    """Return the error for a fact or key that only the database holds."""
    return StaleIndexError(
        f"CypherRetriever: the database holds {strange!r}, which is not in the indexed graph. It has changed since "
        "the graph was indexed, or holds another one.",
        hint_python="Index the graph of this database again.",
        hint_shell=INDEX_AGAIN_ON_SHELL,
    )


def _entities(value: Any, facts: Sequence[Triple], graph: KnowledgeGraph) -> Iterator[str]:
    """Yield the keys of the entities that a value stands for."""
    if isinstance(value, EntityNode):
        yield value.key
    elif isinstance(value, str):
        ends = dict.fromkeys(key for head, _, tail in facts for key in (head, tail))
        of_facts = [value] if value in ends else [key for key in ends if graph.label(key) == value]
        yield from of_facts or [value] * (value in graph.entities)
    elif isinstance(value, list):
        for part in value:
            yield from _entities(part, facts, graph)


def operate(queries: Sequence[Mapping[str, Any]], run: RunQuery, graph: KnowledgeGraph, most: int) -> Operated | None:
    """Apply the operation that queries state, or return None if the graph does not hold its result.

    Args:
        queries: Queries with one "operation", run in this order until one has rows. The queries of each "side" run by
            themselves.
        run: Runs a query. For bindings, its columns are `target` and `by`.
        graph: The graph of the database.
        most: The most rows with facts.

    Raises:
        SearchBudgetError: If there are more than `MAX_ROWS` bindings, so that only a count is known, as "at least".
    """
    operation = Operation.from_dict(queries[0]["operation"])
    if operation.kind == "compare":
        return _compare(operation, queries, run, graph, most)
    pattern = _pattern_of(operation, queries[0].get("target", "target"))
    query, rows, tried = _first_with_rows(queries, run, most if operation.kind == "exists" else MAX_ROWS)
    details = {"tried": tried, "rows": len(rows)}
    if operation.kind == "exists":
        return query, Evidence(_facts(rows, graph), score=1.0, value=bool(rows.rows), details=details)
    if rows.truncated and (operation.kind != "count" or operation.group):
        raise _too_many(operation.kind)
    bindings = _bindings(rows, graph, [*bound_by(pattern)])
    whole = _all_of(query["whole"], run, graph) if operation.kind == "share" else None
    result = operation_result(pattern, bindings, graph, whole)
    if result.value is None and not result.answers:
        return None
    truncated = rows.truncated
    if truncated and (counted := query.get("count")):
        result, truncated = result._replace(value=int(run(counted, 1).rows[0][0])), False
    alone = {} if "facts" in query else {"lone_entities": [graph.entities[one] for one in result.support[:SHOWN]]}
    return query, Evidence(
        triples=_shown(query, result.support, run, graph, most),
        score=1.0,
        answers=tuple(graph.entities[entity] for entity in result.answers),
        truncated=truncated,
        value=result.value,
        details=details | alone | result.shown_details(truncated=truncated),
    )


def operate_with_attributes(queries: Sequence[Mapping[str, Any]], run: RunQuery, index: GraphIndex) -> Operated | None:
    """Apply the operation of a pattern with attributes, read from the facts in the graph of the index.

    Args:
        queries: As of `operate`. Each brings its pattern as "attributed".
        run: Runs a query.
        index: The index. Of a connected graph, the part of it that the pattern needs.

    Raises:
        SearchBudgetError: If there are more than `MAX_ROWS` bindings.
    """
    operation, values = Operation.from_dict(queries[0]["operation"]), ValueIds(index.graph)
    bound = partial(_bound, operation, run, index, values)
    if operation.kind == "compare":
        sides = [bound([query for query in queries if query.get("side") == name], [name]) for name in operation.by]
        ends = [one.rows[:, 0].tolist() for one in sides]
        truth, support = compared_with_values(operation, ends, values)
        triples = [triple for one in sides for triple in one.facts(index.graph, 1)]
        details = {**sides[-1].details, "shown": len(support), "of": len(support)}
        evidence = Evidence(tuple(dict.fromkeys(triples)), score=1.0, value=truth, details=details)
        return None if truth is None else (sides[-1].query, evidence)
    if operation.kind == "exists":
        one = bound(queries, [])
        facts = one.facts(index.graph, 0)
        return one.query, Evidence(facts, score=1.0, value=bool(len(one.rows)), details=one.details)
    one = bound(queries)
    wanted = len(bound_by(one.pattern))
    whole = None
    if operation.kind == "share":
        query, target = one.query["whole"], str(one.pattern.target)
        is_plain = "attributed" not in query
        whole = _all_of(query, run, index.graph) if is_plain else distinct(bound([query], [target]).rows[:, 0])
    result = result_with_values(one.pattern, np.unique(one.rows[:, :wanted], axis=0), values, whole)
    if result.value is None and not result.answers:
        return None
    shown = one._replace(rows=one.rows[np.isin(one.rows[:, 0], result.support[:SHOWN])])
    return one.query, Evidence(
        triples=shown.facts(index.graph, wanted),
        score=1.0,
        answers=tuple(index.graph.entities[entity] for entity in result.answers),
        value=result.value,
        details={**one.details, **result.shown_details()},
    )


class _Bound(NamedTuple):
    """The values of some unknowns of a pattern, with the ids of its facts, and the query that found them."""

    query: Mapping[str, Any]
    pattern: Pattern
    rows: Array
    details: Mapping[str, Any]

    def facts(self, graph: KnowledgeGraph, wanted: int) -> tuple[Triple, ...]:
        """Return the facts of the first rows, which stand behind some columns."""
        return tuple(map(graph.triple, dict.fromkeys(self.rows[:MAX_FACTS, wanted:].ravel().tolist())))


def _bound(
    operation: Operation,
    run: RunQuery,
    index: GraphIndex,
    values: ValueIds,
    some: Sequence[Mapping[str, Any]],
    names: Sequence[str] | None = None,
) -> _Bound:
    """Return the values of some unknowns by name, or of the operation, by the first query that finds something."""
    for tried, query in enumerate(some, 1):  # noqa: B007
        pattern = Pattern.from_dict(query["attributed"])
        if operation.kind != "compare":
            pattern = replace(pattern, operation=operation)
        rows = run(query, MAX_ROWS)
        if rows.truncated:
            raise _too_many(operation.kind)
        if index.narrowed:  # to the facts that may satisfy the conditions
            held = (row for row in rows.rows if all(triple in index.graph for triple in triples_in(row)))
            rows = replace(rows, rows=tuple(held))
        wanted = [*bound_by(pattern).values()] if names is None else names
        found = values_of_rows(pattern, values, _columns(pattern, rows, index.graph), wanted, facts=True)
        if len(found):
            break
    return _Bound(query, pattern, found, {"tried": tried, "rows": len(rows)})


def _all_of(query: Mapping[str, Any], run: RunQuery, graph: KnowledgeGraph) -> Array:
    """Return the ids of all things of which the targets of a share are a part."""
    rows = run(query, MAX_ROWS)
    if rows.truncated:
        raise _too_many("share")
    return _bindings(rows, graph, ["target"])[:, 0]


def _columns(pattern: Pattern, rows: Rows, graph: KnowledgeGraph) -> dict[str | int, Array]:
    """Return the ids of the unknown nodes and of the facts in the rows of a pattern with attributes."""
    names = [node.name for node in pattern.nodes if isinstance(node, Unknown)]
    found: dict[str | int, Array] = {}
    if names:
        columns = _bindings(rows, graph, [f"e{number}" for number in range(len(names))], each=True).T
        found |= zip(names, columns, strict=True)
    ids: dict[Triple, int] = {}
    for number in range(len(pattern.triples)):
        triples = [triples_in(value)[0] for value in rows.column(f"r{number}")]
        for triple in dict.fromkeys(triples):
            if triple not in ids:
                ids[triple] = graph.triple_id(triple)
                if ids[triple] < 0:
                    raise stale_index(triple)
        found[number] = np.array([ids[triple] for triple in triples], np.int64)
    return found


def _pattern_of(operation: Operation, target: str) -> Pattern:
    """Return the least pattern that has an operation. The columns alone hold the results of its query."""
    start = Unknown(target, "type")
    names = [name for name in dict.fromkeys(filter(None, (*operation.by, operation.group))) if name != target]
    triples = [(start, "relation", Unknown(name)) for name in names]
    operation = replace(operation, whole=None)  # a query of its own finds the whole
    return Pattern.of(*triples, alone=[] if triples else [start], target=target, operation=operation)


def find_around(
    queries: Sequence[Mapping[str, Any]], run: RunQuery, index: GraphIndex, k: int, most: int
) -> list[Evidence]:
    """Return the result of an operation about whole entities, from the facts around them.

    Args:
        queries: The queries for these facts. Of chains, the queries behind the first with rows are not run.
        run: Runs a query.
        index: The index. Of a connected graph, with the facts that `run` brings.
        k: The most chains.
        most: The most rows of a query.
    """
    pattern = Pattern.from_dict(queries[0]["around"])
    assert pattern.operation
    is_cut = False
    for query in queries:
        rows = run(query, most)
        subgraphs_of(rows, index.graph)
        is_cut |= rows.truncated
        if rows.rows and pattern.operation.kind == "connect":
            break
    found = evidence_around(index, pattern, k)
    return [replace(one, truncated=one.truncated or (is_cut and index.reader is not None)) for one in found]


def _compare(
    operation: Operation, queries: Sequence[Mapping[str, Any]], run: RunQuery, graph: KnowledgeGraph, most: int
) -> Operated | None:
    """Compare the values of two unknowns, each found by queries of its own."""
    sides, triples, tried = list[list[int]](), dict[Triple, None](), 0
    for name in operation.by:
        of_side = [query for query in queries if query.get("side") == name]
        if not of_side:
            raise InvalidArgumentError(f"CypherRetriever: no query finds the side {name!r} of the comparison.")
        query, rows, ran = _first_with_rows(of_side, run, MAX_ROWS)
        tried += ran
        if rows.truncated:
            raise _too_many(operation.kind)
        sides.append(_bindings(rows, graph, ["target"])[:, 0].tolist())
        triples |= dict.fromkeys(_shown(query, sorted(set(sides[-1])), run, graph, most))
    truth, support = compared(operation, sides, graph)
    if truth is None:
        return None
    shown = sum(min(SHOWN, len(set(side))) for side in sides)
    details = {"tried": tried, "shown": min(shown, len(support)), "of": len(support)}
    return query, Evidence(tuple(triples), score=1.0, value=truth, details=details)


def _first_with_rows(queries: Sequence[Mapping[str, Any]], run: RunQuery, most: int) -> Found:
    """Return the first query that has rows, otherwise the last one."""
    for tried, query in enumerate(queries, 1):  # noqa: B007
        rows = run(query, most)
        if rows.rows:
            break
    return query, rows, tried


def _bindings(rows: Rows, graph: KnowledgeGraph, names: Sequence[str], *, each: bool = False) -> Array:
    """Return the ids of the entities in some columns of each row, (rows, columns). Rows that lack one are left out.

    Rows are there once, unless `each` row is wanted.

    Raises:
        InvalidArgumentError: If the rows lack a column.
    """
    columns = dict(zip(names, range(len(rows.columns)), strict=False)) if len(names) == 1 else {}
    columns |= {name: rows.columns.index(name) for name in names if name in rows.columns}
    if missing := [name for name in names if name not in columns]:
        raise InvalidArgumentError(
            f"CypherRetriever: the operation needs the columns {list(names)} of its query, each with keys of entities, "
            f"but {missing[0]!r} is not among {list(rows.columns)}."
        )
    ids: dict[Any, int] = {}
    found = []
    for row in rows.rows:
        keys = [value.key if isinstance(value := row[columns[name]], EntityNode) else value for name in names]
        if None not in keys:
            found.append(tuple(_id(key, ids, graph) for key in keys))
    return np.array(found if each else [*dict.fromkeys(found)], np.int64).reshape(-1, len(names))


def _id(key: Any, ids: dict[Any, int], graph: KnowledgeGraph) -> int:
    if key not in ids:
        ids[key] = graph.entities.find(key) if isinstance(key, str) else -1
    if ids[key] < 0:
        raise stale_index(key)
    return ids[key]


def _shown(
    query: Mapping[str, Any], support: Sequence[int], run: RunQuery, graph: KnowledgeGraph, most: int
) -> tuple[Triple, ...]:
    """Return the facts of the first of some targets, by the query for facts that a query for bindings brings."""
    facts = query.get("facts")
    if not support or facts is None:
        return ()
    keys = [graph.entities[entity] for entity in support[:SHOWN]]
    return _facts(run({**facts, "parameters": {**facts["parameters"], facts["shown"]: keys}}, most), graph)


def _facts(rows: Rows, graph: KnowledgeGraph) -> tuple[Triple, ...]:
    return tuple(dict.fromkeys(triple for row in subgraphs_of(rows, graph) for triple in row.triples))


def _too_many(kind: str) -> SearchBudgetError:
    return SearchBudgetError(
        f"CypherRetriever: there are more than {MAX_ROWS} bindings, so that {kind!r} is not known.",
        hint_python="No more are fetched: narrow the conditions, or ask SimGRAGRetriever.",
        hint_shell="No more are fetched: narrow the question, or: --method simgrag",
    )
