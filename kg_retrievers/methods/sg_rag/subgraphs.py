"""The rows of a query as subgraphs of the indexed graph, each with its answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from kg_retrievers.database.values import EntityNode, Rows, triples_in
from kg_retrievers.errors import StaleIndexError
from kg_retrievers.graph import KnowledgeGraph, Triple
from kg_retrievers.graph.adjacency import label_of


class Subgraph(NamedTuple):
    """The number of a row, from 1, its facts in stored direction, and the keys of its answers."""

    row: int
    triples: list[Triple]
    answers: list[str]


def subgraphs_of(rows: Rows, graph: KnowledgeGraph) -> list[Subgraph]:
    """Return the rows that hold facts.

    The answers of a row are in the column `target`, else in the first one: nodes; keys, or what ends of its facts are
    called; or keys of others.

    Raises:
        StaleIndexError: If there is a fact or a node in the rows that the graph does not hold.
    """
    column = rows.columns.index("target") if "target" in rows.columns else 0
    found = []
    for number, row in enumerate(rows.rows, 1):
        if triples := triples_in(row):
            answers = dict.fromkeys(_entities(row[column], triples, graph))
            found.append(Subgraph(number, triples, list(answers)))
    facts = dict.fromkeys(triple for subgraph in found for triple in subgraph.triples)
    keys = dict.fromkeys(key for head, _, tail in facts for key in (head, tail))
    keys |= dict.fromkeys(key for subgraph in found for key in subgraph.answers)
    numbers = {key: graph.entities.find(key) for key in keys}
    relations = {name: graph.relations.find(name) for name in {fact.relation for fact in facts}}
    strange: Any = next((triple for triple in facts if not _is_fact(graph, triple, numbers, relations)), None)
    strange = strange or next((key for key, number in numbers.items() if number < 0), None)
    if strange is not None:
        raise StaleIndexError(
            f"CypherRetriever: the database holds {strange!r}, which is not in the indexed graph. It has changed since "
            "the graph was indexed, or holds another one.",
            hint_python="Index the graph of this database again.",
            hint_shell="Index the graph of this database again, with the same --key if one was given, or name another "
            "--database.",
        )
    return found


def _is_fact(graph: KnowledgeGraph, triple: Triple, numbers: Mapping[str, int], relations: Mapping[str, int]) -> bool:
    """As `triple in graph`, with the numbers known; there may be thousands to look up."""
    head, tail, relation = numbers[triple.head], numbers[triple.tail], relations[triple.relation]
    if min(head, tail, relation) < 0:
        return False
    adjacency = graph.adjacency
    tails = adjacency.neighbors[adjacency.entries_with(head, label_of(relation, False))]
    position = np.searchsorted(tails, tail)
    return bool(position < len(tails) and tails[position] == tail)


def _entities(value: Any, facts: Sequence[Triple], graph: KnowledgeGraph) -> Iterator[str]:
    if isinstance(value, EntityNode):
        yield value.key
    elif isinstance(value, str):
        ends = dict.fromkeys(key for head, _, tail in facts for key in (head, tail))
        of_facts = [value] if value in ends else [key for key in ends if graph.label(key) == value]
        yield from of_facts or [value] * (value in graph.entities)
    elif isinstance(value, list):
        for part in value:
            yield from _entities(part, facts, graph)
