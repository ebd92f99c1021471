"""Reads the rows of a query as subgraphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from kg_retrievers.database.values import EntityNode, Rows, triples_in
from kg_retrievers.errors import StaleIndexError
from kg_retrievers.graph import KnowledgeGraph, Triple

#: What to do on the shell where the database and the indexed graph differ.
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

    The answers of a row stand in the column `target`, or in the first one where there is no `target`. A node is an
    answer; a text is, in this order, the key of an end of the row's facts, the label of such ends, or any key.

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
    """Check that the graph holds all facts and answers."""
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
