"""Which relations the entities have to which a relation leads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from benchmarks.relation_scorer.natural import NaturalQuestion

#: The id of a relation, and whether it is asked for its subject: what an entity is that a walk goes on from.
Role = tuple[str, bool]


class Roles:
    """How alike what two hops start from is: by the entities of natural questions that play both roles."""

    def __init__(self, questions: Sequence[NaturalQuestion]) -> None:
        """Count the roles that entities share."""
        entities: dict[str, set[int]] = defaultdict(set)
        ids: dict[Role, int] = {}
        for question in questions:
            entities[question.topic].add(ids.setdefault((question.relation, question.backward), len(ids)))
            entities[question.answer].add(ids.setdefault((question.relation, not question.backward), len(ids)))
        counts = np.zeros((len(ids), len(ids)), np.float32)
        for roles in entities.values():
            some = list(roles)[:40]
            counts[np.ix_(some, some)] += 1
        scale = np.sqrt(np.maximum(counts.diagonal(), 1))
        direct = counts / scale[:, None] / scale
        unit = direct / (np.linalg.norm(direct, axis=1, keepdims=True) + 1e-6)
        self._ids = ids
        self._roles = list(ids)
        self._alike: dict[Role, list[str]] = {}
        self._likeness = direct + 0.5 * unit @ unit.T

    def __contains__(self, role: Role) -> bool:
        """Return whether a natural question has the role."""
        return role in self._ids

    def alike(self, role: Role) -> list[str]:
        """Return the relations that entities of a role have most likely."""
        if role not in self._alike:
            nearest = np.argsort(-self._likeness[self._ids[role]])[:20]
            self._alike[role] = [self._roles[position][0] for position in nearest.tolist()]
        return self._alike[role]

    def likeness(self, one: Role, other: Role) -> float:
        """Return how often entities of one role have the other, from 0 to some 1.5; 0.02 where that is unknown."""
        if one not in self._ids or other not in self._ids:
            return 0.02
        return float(self._likeness[self._ids[one], self._ids[other]])
