"""Merges subgraphs that overlap, and orders their triples (SG-RAG MOT).

A. O. M. Saleh, G. Tür, Y. Saygın: SG-RAG MOT: SubGraph Retrieval Augmented Generation with Merging and Ordering
Triplets for Knowledge Graph Multi-Hop Question Answering. Machine Learning and Knowledge Extraction 7(3), 2025, 74.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import chain, combinations

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Triple


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
