"""Parts of a question set: drawn at random, or by the lists of positions that are published with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from kg_retrievers.datasets.graph_question import GraphQuestion
from kg_retrievers.datasets.types import Question, read_lines
from kg_retrievers.errors import InvalidArgumentError, QuestionsLoadError
from kg_retrievers.graph.columns import Array

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

    Questions with equal texts stay together, so that none is in two parts; the shares are of distinct texts. The split
    of the paper is `split_graphqa`.

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


def split_graphqa(questions: Sequence[GraphQuestion], *, by_graph: bool = False) -> SplitQuestions[GraphQuestion]:
    """Split ExplaGraphs or SceneGraphs 6:2:2, each question where G-Retriever's code puts it.

    That is a permutation by numpy's first generator with the seed 42, cut as scikit-learn cuts it: of the positions of
    ExplaGraphs, and for SceneGraphs of its images, permuted before.

    Args:
        questions: All questions of the set, in its order.
        by_graph: Whether questions that share a graph stay together, as those of SceneGraphs do.
    """
    keys: list[object] = [one.graph for one in questions] if by_graph else list(range(len(questions)))
    distinct = list(dict.fromkeys(keys))
    order = _permutation(len(distinct)) if by_graph else np.arange(len(distinct))
    rest, train = _cut(order, 0.4)
    test, validation = _cut(rest, 0.5)
    parts = [{distinct[position] for position in part.tolist()} for part in (train, validation, test)]
    split = ([one for one, key in zip(questions, keys, strict=True) if key in part] for part in parts)
    return SplitQuestions(*split)


def _permutation(count: int) -> Array:
    return np.random.RandomState(42).permutation(count)


def _cut(order: Array, share: float) -> tuple[Array, Array]:
    """Return a share of what is in an order, drawn at random, and the rest."""
    permuted, count = order[_permutation(len(order))], ceil(share * len(order))
    return permuted[:count], permuted[count:]


def read_indices(questions: Sequence[Asked], path: str | Path) -> list[Asked]:
    """Return the questions whose positions, from 0, a file lists, one a line, in the order of the set.

    G-Retriever writes such files, as `split/test_indices.txt`.

    Raises:
        QuestionsLoadError: If the file cannot be read, or a line is no position of a question; names the line.
    """
    positions = set()
    for line, text in read_lines(path):
        if not text.strip().isdecimal() or int(text) >= len(questions):
            raise QuestionsLoadError(
                f"wanted a number from 0 to {len(questions) - 1:,}, the position of a question, but got {text!r:.100}.",
                path,
                line,
            )
        positions.add(int(text))
    return [questions[position] for position in sorted(positions)]


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
