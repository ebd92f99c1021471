"""The rows of queries, and the entities and facts in them that a part of a connected graph lacks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from kg_retrievers.database.executor import Executor
from kg_retrievers.database.values import EntityNode, Rows, triples_in
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Triple
from kg_retrievers.graph.parts import PartReader
from kg_retrievers.index import GraphIndex
from kg_retrievers.methods.sg_rag.queries import checked_executor

#: Runs a query of the state, with the most rows that are fetched.
RunQuery = Callable[[Mapping[str, Any], int], Rows]


class LackingRowsError(Exception):
    """The rows of a query name entities or facts that a part of a connected graph lacks."""

    def __init__(self, keys: Collection[str], facts: Collection[Triple]) -> None:
        """Take what is lacking."""
        super().__init__("The rows name what the part of the graph lacks.")
        self.keys, self.facts = keys, facts


class RowCache:
    """Runs each query once.

    Args:
        run: Runs a query.
    """

    def __init__(self, run: RunQuery) -> None:
        """Begin empty."""
        self._run = run
        self._rows: dict[str, Rows] = {}
        self._looked_up: set[str | Triple] = set()

    def run(self, index: GraphIndex, query: Mapping[str, Any], most: int) -> Rows:
        """Return the rows of a query.

        Raises:
            LackingRowsError: If they name entities or facts that a part of a connected graph lacks, unless these were
                looked for already.
        """
        key = repr((query["query"], query["parameters"], most))
        if key not in self._rows:
            self._rows[key] = self._run(query, most)
        rows = self._rows[key]
        if index.reader is None:
            return rows
        facts = {triple for row in rows.rows for triple in triples_in(row)} - self._looked_up
        keys = {key for row in rows.rows for value in row for key in _keys_in(value)} - self._looked_up
        self._looked_up.update(facts, keys)
        if index.holding(keys, facts) is not index:
            raise LackingRowsError(keys, facts)
        return rows


def _keys_in(value: Any) -> Iterator[str]:
    """Yield the keys of nodes in a value of a row; any text may be one."""
    if isinstance(value, EntityNode | str):
        yield value.key if isinstance(value, EntityNode) else value
    elif isinstance(value, list):
        for part in value:
            yield from _keys_in(part)


def checked_reader(reader: PartReader) -> Executor:
    """Return the reader of a connected graph as an executor of queries.

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
