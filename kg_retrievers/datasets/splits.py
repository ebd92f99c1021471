"""Parts of a question set, drawn at random."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from random import Random
from typing import Generic, NamedTuple, TypeVar

from kg_retrievers.datasets.types import Question
from kg_retrievers.errors import InvalidArgumentError

Asked = TypeVar("Asked", bound=Question)

#: Training, validation and test, as G-Retriever splits ExplaGraphs (section 4.1 and table 2).
SHARES = (0.6, 0.2, 0.2)


class SplitQuestions(NamedTuple, Generic[Asked]):
    """The three parts of a question set, each in the order of the set."""

    train: list[Asked]
    validation: list[Asked]
    test: list[Asked]


def split_questions(
    questions: Sequence[Asked], shares: tuple[float, float, float] = SHARES, *, seed: int = 0
) -> SplitQuestions[Asked]:
    """Split questions into training, validation and test: 6:2:2 as G-Retriever, the same way for the same seed.

    Questions with equal texts stay together, so that none is in two parts. The shares are of distinct texts.

    Args:
        questions: The questions.
        shares: The shares of the three parts, which sum to 1.
        seed: Of the draw.

    Raises:
        InvalidArgumentError: If the shares are no three numbers from 0 that sum to 1.

    Example:
        >>> parts = split_questions([Question(f"Who made film {number}?") for number in range(10)])
        >>> [len(part) for part in parts]
        [6, 2, 2]
    """
    if len(shares) != 3 or min(shares) < 0 or abs(sum(shares) - 1) > 1e-9:
        raise InvalidArgumentError(f"split_questions: shares must be three from 0 that sum to 1, but got {shares!r}.")
    texts = list(dict.fromkeys(question.text for question in questions))
    Random(seed).shuffle(texts)
    ends = [round(shares[0] * len(texts)), round((shares[0] + shares[1]) * len(texts)), len(texts)]
    part_of = {text: sum(position >= end for end in ends) for position, text in enumerate(texts)}
    train, validation, test = ([one for one in questions if part_of[one.text] == part] for part in range(3))
    return SplitQuestions(train, validation, test)


def draw_questions(questions: Iterable[Asked], limit: int | None, seed: int) -> list[Asked]:
    """Return at most so many questions, drawn at random and left in their order; no more are kept in memory."""
    random = Random(seed)
    kept: list[tuple[int, Asked]] = []
    for position, question in enumerate(questions):
        if limit is None or position < limit:
            kept.append((position, question))
        elif (at := random.randrange(position + 1)) < limit:
            kept[at] = (position, question)
    return [question for _, question in sorted(kept, key=itemgetter(0))]
