"""Question sets by the name of their format, whole or in part."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import Literal, get_args

from kg_retrievers.datasets.jsonl import read_questions
from kg_retrievers.datasets.metaqa import read_metaqa
from kg_retrievers.datasets.pathquestion import read_pathquestion
from kg_retrievers.datasets.types import Question
from kg_retrievers.datasets.webqsp import read_webqsp
from kg_retrievers.errors import InvalidArgumentError, QuestionsLoadError, named_arguments

QuestionFormat = Literal["metaqa", "pathquestion", "jsonl", "webqsp", "cwq"]

#: The hops of the published sets.
METAQA_HOPS, PATHQUESTION_HOPS = (1, 2, 3), (2, 3)

#: The end of a split of MetaQA's paraphrases, as in the names of their files: "dev_ntm".
PARAPHRASES = "_ntm"

_WHO = "read_question_set"


@named_arguments
def read_question_set(
    data: str | Path,
    format: QuestionFormat,
    *,
    split: str | None = None,
    only_hops: Collection[int] | None = None,
    limit: int | None = None,
    seed: int = 0,
) -> list[Question]:
    """Read questions, all or some of them.

    Args:
        data: "metaqa": the folder that holds `1-hop` and so on; "pathquestion": a file, or the folder of `PQ-2H.txt`
            and `PQ-3H.txt`; "jsonl": a file, or a folder with a file for each split, as `dev.jsonl`; "webqsp", "cwq":
            see `read_webqsp`.
        format: How it is written. Questions of "webqsp" and "cwq" are `GraphQuestion`.
        split: "metaqa": "dev" by default, "dev_ntm" for its paraphrases; "pathquestion": none; "jsonl", "webqsp",
            "cwq": of a folder.
        only_hops: Only questions that join so many facts; by default all that are there.
        limit: At most so many questions of each number of hops, drawn at random and left in their order.
        seed: Of what is drawn.

    Raises:
        InvalidArgumentError: If an argument is misspelt, or the set has no such split or hops.
        QuestionsLoadError: If a file is missing or malformed; names the line.
    """
    if format not in get_args(QuestionFormat):
        raise InvalidArgumentError(f"{_WHO}: format is one of {get_args(QuestionFormat)}, but got {format!r}.")
    if limit is not None and limit < 1:
        raise InvalidArgumentError(f"{_WHO}: the limit must be 1 or more, but got {limit}.")
    if format in _ONE_GRAPH:
        questions = _ONE_GRAPH[format](Path(data), split, only_hops)
        return questions if limit is None else _drawn(questions, limit, seed)
    if only_hops is not None:
        raise InvalidArgumentError(f"{_WHO}: questions of {format} do not say how many hops they take. Leave it out.")
    return draw_questions(read_webqsp(data, split), limit, seed)


def _metaqa(home: Path, split: str | None, only_hops: Collection[int] | None) -> list[Question]:
    there = [hop for hop in METAQA_HOPS if (home / f"{hop}-hop").is_dir()]
    if not there:
        raise QuestionsLoadError("wanted a folder that holds 1-hop, 2-hop or 3-hop.", home)
    name = split or "dev"
    plain = name.removesuffix(PARAPHRASES)
    wanted = _checked(only_hops or there, METAQA_HOPS, "MetaQA")
    return [one for hop in wanted for one in read_metaqa(home, hop, plain, paraphrases=plain != name)]


def _pathquestion(home: Path, split: str | None, only_hops: Collection[int] | None) -> list[Question]:
    if split is not None:
        raise InvalidArgumentError(f"{_WHO}: PathQuestion has no splits, but got {split!r}. Leave it out.")
    if not os.path.isdir(home):
        return _of_hops(read_pathquestion(home), only_hops, home)
    files = {hop: home / f"PQ-{hop}H.txt" for hop in PATHQUESTION_HOPS}
    there = [hop for hop, file in files.items() if file.is_file()] or PATHQUESTION_HOPS
    wanted = _checked(only_hops or there, PATHQUESTION_HOPS, "PathQuestion")
    return [one for hop in wanted for one in read_pathquestion(files[hop])]


def _jsonl(home: Path, split: str | None, only_hops: Collection[int] | None) -> list[Question]:
    if os.path.isdir(home):
        if split is None:
            there = sorted(file.stem for file in home.glob("*.jsonl"))
            raise InvalidArgumentError(f"{_WHO}: {home} is a folder; name one of its splits: {there}.")
        home /= f"{split}.jsonl"
    elif split is not None:
        raise InvalidArgumentError(f"{_WHO}: {home} is no folder, so it has no split {split!r}. Leave it out.")
    return _of_hops(read_questions(home), only_hops, home)


def _of_hops(questions: list[Question], only_hops: Collection[int] | None, home: Path) -> list[Question]:
    if only_hops is None:
        return questions
    there = sorted({question.hops for question in questions if question.hops})
    wanted = _checked(only_hops, there, str(home))
    return [question for question in questions if question.hops in wanted]


def _checked(wanted: Collection[int], there: Collection[int], who: str) -> list[int]:
    if not set(wanted) <= set(there):
        raise InvalidArgumentError(f"{_WHO}: {who} has the hops {list(there)}, but got {sorted(wanted)}.")
    return sorted(set(wanted))


_ONE_GRAPH: dict[str, Callable[[Path, str | None, Collection[int] | None], list[Question]]] = {
    "metaqa": _metaqa,
    "pathquestion": _pathquestion,
    "jsonl": _jsonl,
}


def _drawn(questions: Sequence[Question], limit: int, seed: int) -> list[Question]:
    random = Random(seed)
    by_hops: dict[int, list[int]] = {}
    for position, question in enumerate(questions):
        by_hops.setdefault(question.hops or 0, []).append(position)
    drawn: list[int] = []
    for _, positions in sorted(by_hops.items()):
        drawn += random.sample(positions, min(limit, len(positions)))
    return [questions[position] for position in sorted(drawn)]


def draw_questions(questions: Iterable[Question], limit: int | None, seed: int) -> list[Question]:
    """Return at most so many questions, drawn at random, in their order. No more are kept in memory."""
    random = Random(seed)
    kept: list[tuple[int, Question]] = []
    for position, question in enumerate(questions):
        if limit is None or position < limit:
            kept.append((position, question))
        elif (at := random.randrange(position + 1)) < limit:
            kept[at] = (position, question)
    return [question for _, question in sorted(kept, key=itemgetter(0))]
