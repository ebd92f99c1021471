"""From what several retrievers found to one list: pure functions over evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Any

from kg_retrievers.graph import Evidence, Path, Triple
from kg_retrievers.graph.types import path_rows, read_paths
from kg_retrievers.graph.verbalize import lone_entities_of

#: What is added to a rank. G. Cormack, C. Clarke, S. Buettcher: Reciprocal rank fusion outperforms Condorcet and
#: individual rank learning methods (SIGIR 2009): 60, fixed in a pilot study.
RANK_OFFSET = 60

#: The keys of `details` that a union writes itself.
OWN_DETAILS = ("paths", "found_by", "parts_found_by", "failed")


@dataclass(frozen=True)
class MemberResult:
    """What one member found, the paths in it apart, and what that adds to a score."""

    member: str
    rank: int
    value: float
    evidence: Evidence
    paths: Sequence[Path]


def member_results(member: str, found: Sequence[Mapping[str, Any]], weight: float) -> list[MemberResult]:
    """Return what a member found, best first, with what each adds to a score.

    Args:
        member: Its name.
        found: The keys of `Evidence` each, triples as lists.
        weight: What it counts.
    """
    rows = sorted(found, key=lambda row: -row["score"])
    scores = [float(row["score"]) for row in rows]
    ranks: dict[float, int] = {}
    for rank, score in enumerate(scores, 1):
        ranks.setdefault(score, rank)
    results = []
    for row, score in zip(rows, scores, strict=True):
        triples = tuple(Triple(*triple) for triple in row["triples"])
        details = {**row["details"]}
        paths = read_paths(details.pop("paths", None), triples)
        evidence = Evidence(
            triples,
            score,
            tuple(row["answers"]),
            row["truncated"],
            row.get("confidence"),
            details=details,
            value=row.get("value"),
        )
        results.append(MemberResult(member, ranks[score], weight / (RANK_OFFSET + ranks[score]), evidence, paths))
    return results


def fuse(results: Sequence[MemberResult], *, single_triples: bool) -> list[Evidence]:
    """Return the evidence of all results, best first; what adds nothing to better evidence is left out.

    Args:
        results: In the order of the members.
        single_triples: Whether each triple is evidence of its own.
    """
    groups: dict[tuple[frozenset[Triple], str], list[MemberResult]] = {}
    for result in results:
        triples = result.evidence.triples
        value = json.dumps([result.evidence.value, [] if triples else lone_entities_of(result.evidence)])
        parts = [frozenset([one]) for one in triples] if single_triples and triples else [frozenset(triples)]
        for part in dict.fromkeys(parts):
            groups.setdefault((part, value), []).append(result)
    members = list(dict.fromkeys(result.member for result in results))
    evidence = [_fused(triples, of_triples, members, single_triples) for (triples, _), of_triples in groups.items()]
    evidence.sort(key=lambda item: (-item.score, not item.answers))
    return _without_parts(evidence)


def _fused(
    triples: frozenset[Triple], results: Sequence[MemberResult], members: Sequence[str], is_part: bool
) -> Evidence:
    """Make one of all evidence that holds these triples; a part of it has no paths."""
    results = sorted(results, key=lambda result: -result.value)  # of equal ones, the first member's stays first
    best = {result.member: result for result in reversed(results)}
    first = results[0].evidence
    found_by = {
        member: {
            "rank": best[member].rank,
            "score": best[member].evidence.score,
            "confidence": best[member].evidence.confidence,
            "details": dict(best[member].evidence.details),
        }
        for member in members
        if member in best
    }
    details = {name: value for name, value in first.details.items() if name not in OWN_DETAILS}
    stated = [one.evidence.confidence for one in results if one.evidence.confidence is not None]
    ordered = tuple(dict.fromkeys(triple for triple in first.triples if triple in triples))
    if paths := [] if is_part else dict.fromkeys(path for result in results for path in result.paths):
        details["paths"] = path_rows(paths, ordered)
    return Evidence(
        triples=ordered,
        score=fsum(result.value for result in best.values()),
        answers=tuple(dict.fromkeys(key for result in results for key in result.evidence.answers)),
        truncated=any(result.evidence.truncated for result in results),
        confidence=max(stated, default=None),
        details={**details, "found_by": found_by},
        value=first.value,
    )


def _without_parts(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Drop evidence that adds no triple and no answer to better evidence; record who found it there."""
    kept: list[Evidence] = []
    holders: dict[Triple, list[int]] = {}
    finders: dict[int, list[str]] = {}
    proposed: set[str] = set()
    for item in evidence:
        known = all(triple in holders for triple in item.triples) and (item.triples or not lone_entities_of(item))
        if known and item.value is None and proposed.issuperset(item.answers):
            for position in dict.fromkeys(position for triple in item.triples for position in holders[triple]):
                finders.setdefault(position, []).extend(item.details["found_by"])
            continue
        for triple in item.triples:
            holders.setdefault(triple, []).append(len(kept))
        proposed.update(item.answers)
        kept.append(item)
    for position, names in finders.items():
        whole = kept[position].details["found_by"]
        if parts := [name for name in dict.fromkeys(names) if name not in whole]:
            kept[position] = replace(kept[position], details={**kept[position].details, "parts_found_by": parts})
    return kept
