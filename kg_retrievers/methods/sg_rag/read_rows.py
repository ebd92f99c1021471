"""The rows of queries, with the entities and facts in them at hand where the graph is connected."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kg_retrievers.database.executor import Executor
from kg_retrievers.database.values import EntityNode, Rows, triples_in
from kg_retrievers.errors import InvalidArgumentError, NoEvidenceError
from kg_retrievers.graph import Triple
from kg_retrievers.graph.parts import PartReader
from kg_retrievers.index import GraphIndex
from kg_retrievers.methods.sg_rag.queries import checked_executor

#: Runs a query of the state, with the most rows that are fetched.
RunQuery = Callable[[Mapping[str, Any], int], Rows]


def cache_rows(index: GraphIndex, run: RunQuery) -> RunQuery:
    """Return what runs each query once, and has what its rows name added to the part of the graph at hand.

    Args:
        index: The indexed graph.
        run: Runs a query.

    Raises:
        NoEvidenceError: If the part lacks something; the work is done again with it (`GraphIndex.attempts`).
    """
    kept: dict[str, Rows] = {}
    noted: set[str | Triple] = set()

    def run_once(query: Mapping[str, Any], most: int) -> Rows:
        key = repr((query["query"], query["parameters"], most))
        if key not in kept:
            kept[key] = run(query, most)
        rows = kept[key]
        if not index.is_connected:
            return rows
        facts = {triple for row in rows.rows for triple in triples_in(row)} - noted
        keys = {key for row in rows.rows for value in row for key in _keys_in(value)} - noted
        noted.update(facts, keys)
        if index.lacks(keys, facts):
            raise NoEvidenceError("CypherRetriever: the rows name what the part of the graph at hand lacks.")
        return rows

    return run_once


def _keys_in(value: Any) -> Iterator[str]:
    """Yield the keys of nodes in a value of a row; any text may be one."""
    if isinstance(value, EntityNode | str):
        yield value.key if isinstance(value, EntityNode) else value
    elif isinstance(value, list):
        for part in value:
            yield from _keys_in(part)


def checked_reader(reader: PartReader) -> Executor:
    """Return what reads a connected graph, once it is known to run queries.

    Raises:
        InvalidArgumentError: If it runs none.
    """
    try:
        executor = checked_executor(reader)
    except ValueError:
        executor = None
    if executor is None:
        raise InvalidArgumentError(
            f"CypherRetriever: {reader!r:.100} reads a connected graph, but runs no queries.",
            hint_python="Give what runs them as executor=, such as Neo4jExecutor(uri).",
        )
    return executor
