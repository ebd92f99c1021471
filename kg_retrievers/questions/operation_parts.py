"""The part of a pattern around one of its unknowns, such as one side of a comparison."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kg_retrievers.graph import Pattern, Term, Unknown


def part_of(pattern: Pattern, name: str) -> Pattern:
    """Return the part of a pattern that is joined to an unknown, which becomes its target, without an operation.

    Example:
        >>> pattern = Pattern.of(("Eiger", "height", Unknown("a")), ("Jungfrau", "height", Unknown("b")))
        >>> part_of(pattern, "b").to_dict()
        {'triples': [['Jungfrau', 'height', {'unknown': 'b'}]], 'target': 'b'}
    """
    reached: set[Term] = {node for node in pattern.nodes if isinstance(node, Unknown) and node.name == name}
    before = 0
    while len(reached) > before:
        before = len(reached)
        reached |= {node for h, _, t in pattern.triples if reached & {h, t} for node in (h, t)}
    unknown = {node for node in reached if isinstance(node, Unknown)}
    absent = [group for group in pattern.absent_groups() if unknown & _ends(group)]
    inside = reached | {node for group in absent for node in _ends(group)}
    names = {node.name for node in inside if isinstance(node, Unknown)}
    return replace(
        pattern,
        triples=tuple(triple for triple in pattern.triples if triple.head in reached),
        target=name,
        different=tuple(pair for pair in pattern.different if reached >= {*pair}),
        absent=tuple(triple for group in absent for triple in group),
        conditions=tuple(condition for condition in pattern.conditions if condition.unknown in names),
        operation=None,
    )


def _ends(group: Iterable[tuple[Term, Term, Term]]) -> set[Term]:
    return {node for head, _, tail in group for node in (head, tail)}
