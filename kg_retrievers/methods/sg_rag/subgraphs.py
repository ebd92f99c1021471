"""Reads the rows of a query as subgraphs, merges those that overlap, and orders their triples.

Merging and ordering are SG-RAG MOT: A. O. M. Saleh, G. Tür, Y. Saygın: SG-RAG MOT: SubGraph Retrieval Augmented
Generation with Merging and Ordering Triplets for Knowledge Graph Multi-Hop Question Answering. Machine Learning and
Knowledge Extraction 7(3), 2025, 74.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import chain, combinations
from typing import Any, Literal, NamedTuple

import numpy as np

from kg_retrievers.database.values import EntityNode, Rows, triples_in
from kg_retrievers.errors import InvalidArgumentError, StaleIndexError
from kg_retrievers.graph import KnowledgeGraph, Triple
from kg_retrievers.graph.adjacency import label_of

#: How many rows `ties="overlap"` compares with each other; later ones stay as they are. For 300 rows that share a
#: triple, all pairs take less than a second.
MAX_MERGED = 300


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
    """Check that the graph holds all facts and answers; there may be thousands, so each name is looked up once."""
    facts = dict.fromkeys(triple for subgraph in subgraphs for triple in subgraph.triples)
    keys = dict.fromkeys(key for head, _, tail in facts for key in (head, tail))
    keys |= dict.fromkeys(key for subgraph in subgraphs for key in subgraph.answers)
    ids = {key: graph.entities.find(key) for key in keys}
    relation_ids = {name: graph.relations.find(name) for name in {fact.relation for fact in facts}}
    strange: Any = next((triple for triple in facts if not _is_fact(graph, triple, ids, relation_ids)), None)
    strange = strange or next((key for key, id in ids.items() if id < 0), None)
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


def _is_fact(graph: KnowledgeGraph, triple: Triple, ids: Mapping[str, int], relation_ids: Mapping[str, int]) -> bool:
    """Tell what `triple in graph` does, with the ids at hand."""
    head, tail, relation = ids[triple.head], ids[triple.tail], relation_ids[triple.relation]
    if min(head, tail, relation) < 0:
        return False
    adjacency = graph.adjacency
    tails = adjacency.neighbors[adjacency.entries_with(head, label_of(relation, False))]
    position = np.searchsorted(tails, tail)
    return bool(position < len(tails) and tails[position] == tail)


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


def grouped(
    subgraphs: Sequence[Subgraph], ties: Literal["merge", "break", "overlap"], overlap: float
) -> list[Sequence[Subgraph]]:
    """Return the rows that become one piece of evidence each; see `CypherRetriever.ties`."""
    if ties == "merge":
        return [subgraphs] if subgraphs else []
    if ties == "break":
        return [[subgraph] for subgraph in subgraphs]
    compared, rest = subgraphs[:MAX_MERGED], subgraphs[MAX_MERGED:]
    merged = merge_overlapping([subgraph.triples for subgraph in compared], overlap)
    groups = [[compared[position] for position in group] for group in merged]
    return [*groups, *([subgraph] for subgraph in rest)]


def merge_overlapping(subgraphs: Sequence[Collection[Hashable]], threshold: float) -> list[list[int]]:
    """Merge the two subgraphs that overlap most, until no two overlap by `threshold` or more.

    The overlap of two is the number of triples that they share, divided by the number in either; in [0, 1].

    Cost: O(p log p) for p pairs of subgraphs that share a triple, at most n^2.

    Args:
        subgraphs: The triples of each.
        threshold: In (0, 1]; 1 merges only equal subgraphs.

    Returns:
        The positions of the subgraphs in each group, ascending; groups by their first.

    Raises:
        InvalidArgumentError: If `threshold` is out of range.

    Example:
        >>> merge_overlapping([{"a", "b"}, {"x", "y"}, {"b", "c"}, {"a", "b", "c"}], 0.5)
        [[0, 2, 3], [1]]
    """
    if not 0 < threshold <= 1:
        raise InvalidArgumentError(f"merge_overlapping: threshold must be in (0, 1], but got {threshold}.")
    triples = {position: frozenset(subgraph) for position, subgraph in enumerate(subgraphs)}
    groups = {position: [position] for position in triples}
    holders: dict[Hashable, list[int]] = {}  # the groups that hold a triple, also those that were merged since
    for position, held in triples.items():
        for triple in held:
            holders.setdefault(triple, []).append(position)

    def entry(one: int, other: int) -> tuple[float, int, int]:
        shared = len(triples[one] & triples[other])
        return -shared / (len(triples[one]) + len(triples[other]) - shared), one, other

    pairs = {pair for of_triple in holders.values() for pair in combinations(of_triple, 2)}
    heap = [scored for pair in pairs if -(scored := entry(*pair))[0] >= threshold]
    heapify(heap)
    while heap:
        _, one, other = heappop(heap)
        if one not in groups or other not in groups:
            continue
        new = len(triples)
        groups[new] = groups.pop(one) + groups.pop(other)
        triples[new] = triples[one] | triples[other]
        for near in sorted({near for triple in triples[new] for near in holders[triple]} & groups.keys()):
            if -(scored := entry(near, new))[0] >= threshold:
                heappush(heap, scored)
        for triple in triples[new]:
            holders[triple].append(new)
    return sorted(sorted(group) for group in groups.values())


def breadth_first(triples: Iterable[Triple], starts: Sequence[str]) -> list[Triple]:
    """Return triples in the order in which a breadth-first search from some entities meets them.

    The search crosses triples either way, those of an entity in the order given. Where it ends with triples left, it
    begins again at the head of the first of them.

    Args:
        triples: The triples; repeated ones count once.
        starts: The entities where it begins; those that are in no triple are skipped.

    Example:
        >>> facts = [Triple("b", "r", "c"), Triple("a", "r", "b"), Triple("a", "r", "d")]
        >>> ["".join(triple) for triple in breadth_first(facts, ["a"])]
        ['arb', 'ard', 'brc']
    """
    around: dict[str, list[Triple]] = {}
    for triple in dict.fromkeys(triples):
        for end in dict.fromkeys((triple.head, triple.tail)):
            around.setdefault(end, []).append(triple)
    ordered: dict[Triple, None] = {}
    seen = set[str]()
    for start in chain(starts, around):
        waiting = deque([start])
        while waiting:
            if (here := waiting.popleft()) in seen or here not in around:
                continue
            seen.add(here)
            for triple in around[here]:
                ordered[triple] = None
                waiting.append(triple.tail if triple.head == here else triple.head)
    return list(ordered)
