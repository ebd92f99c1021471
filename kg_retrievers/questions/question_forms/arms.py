"""What is found for the parts of a form, and how sure a reading is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kg_retrievers.questions.question_forms.asking import Way

#: How many classes a noun may mean, of those nearest to it.
MOST_CLASSES = 5

#: The least nearness of a noun to the relation of a number for the number to be meant rather than a count.
SAME_NAME = 0.45

#: The least for it to be meant at all.
MAY_NAME = 0.25

#: How sure a reading is, as a logit, beside the shares of its walks and its class: the logit of the zero-shot
#: generator's confidence, and how near the noun is to the class beyond `NEAR`.
RATED_WEIGHT, NEAR_WEIGHT, NEAR, CERTAIN = 0.4, 6.0, 0.35, 3.0

#: How much the likelihood of a walk to values says of the class: it rather says which value of this class is meant.
VALUE_WEIGHT = 0.5

#: In place of `CERTAIN` for counts: "how many" often asks for a number that the graph lacks.
CERTAIN_COUNT = 1.4


class UnreadError(Exception):
    """A form whose relations are not found."""


@dataclass
class Arms:
    """What is said of the things of one class, with how likely all of it is."""

    group: int
    log: float
    near: float
    ways: list[tuple[str, object, Way]] = field(default_factory=list)

    def add(self, role: str, what: object, way: Way | None) -> bool:
        """Add a walk; False where there is none."""
        if way is None:
            return False
        self.ways.append((role, what, way))
        self.log += way.log * (VALUE_WEIGHT if role in ("value", "limit") else 1.0)
        return True


def sureness(ways: Sequence[Way], share: float = 1.0, near: float = NEAR, certain: float = CERTAIN) -> float:
    """Return how likely a reading is right, in [0, 1].

    Args:
        ways: Its walks.
        share: How likely its class is among all that were compared.
        near: How near the noun is to the class.
        certain: The logit of what is sure where nothing speaks for it or against it.
    """
    least = min((way.share for way in ways), default=1.0)
    rated = max(min((way.confidence for way in ways), default=0.0), 1e-3)
    logit = RATED_WEIGHT * float(np.log(rated / (1.001 - rated))) + NEAR_WEIGHT * (near - NEAR)
    return float(share * least / (1 + np.exp(-logit - certain)))
