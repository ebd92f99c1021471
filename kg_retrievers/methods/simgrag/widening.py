"""Matches a pattern by the stricter rule first, and once more by the wider one where nothing fits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from kg_retrievers.graph.revisits import Revisits
from kg_retrievers.methods.simgrag.matching import Match

#: Distances that differ by less are equal.
SAME_DISTANCE = 1e-6


def find_widening(
    find: Callable[[Literal["known", "none"], float], list[Match]], revisits: Revisits, max_distance: float
) -> tuple[list[Match], int]:
    """Return the matches of a pattern, best first, and how many of the first are found by the wider rule alone.

    Where unknowns may not be entities that the pattern names, but that is not certain, and the best match has a
    distance above 0, matches without this rule that are nearer come first.

    Args:
        find: From which nodes must be different, and the largest distance, to the matches.
        revisits: Whether unknowns may be entities that the pattern names.
        max_distance: The largest distance of a match.
    """
    found = find("none" if revisits.allowed else "known", max_distance)
    if revisits.certain or (found and found[0].distance < SAME_DISTANCE):
        return found, 0
    nearest = found[0].distance if found else max_distance
    wider = [match for match in find("none", nearest) if not found or match.distance < nearest - SAME_DISTANCE]
    return wider + found, len(wider)
