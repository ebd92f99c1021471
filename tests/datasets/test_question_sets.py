"""Question sets by the name of their format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kg_retrievers import read_question_set
from kg_retrievers.errors import InvalidArgumentError, QuestionsLoadError

PQ = {2: "q\tb(b/)\ta#r#m#s#b#<end>#b\n", 3: "q\tb(b/)\ta#r#m#s#n#t#b#<end>#b\n"}
ROWS = (
    '{"question": "none"}\n'
    '{"question": "one", "triples": [["a", "r", "b"]]}\n'
    '{"question": "two", "triples": [["a", "r", "b"], ["b", "r", "c"]]}\n'
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with small files of every format."""
    for hop in (1, 2):
        (tmp_path / f"{hop}-hop").mkdir()
        kind = "movie_to_actor" + "_to_movie" * (hop - 1)
        for split in ("dev", "train"):
            rows = "".join(f"{split} {number} about [X]\tY\n" for number in range(4))
            (tmp_path / f"{hop}-hop" / f"qa_{split}.txt").write_text(rows, "utf-8")
            (tmp_path / f"{hop}-hop" / f"qa_{split}_qtype.txt").write_text(f"{kind}\n" * 4, "utf-8")
    (tmp_path / "1-hop" / "qa_dev_ntm.txt").write_text("again [X]\tY\n" * 4, "utf-8")
    for hop, rows in PQ.items():
        (tmp_path / f"PQ-{hop}H.txt").write_text(rows, "utf-8")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "test.jsonl").write_text(ROWS, "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "arguments", "expected"),
    [
        (".", {"format": "metaqa"}, ["dev 0 about X", [1] * 4 + [2] * 4]),
        (".", {"format": "metaqa", "split": "train", "only_hops": [2]}, ["train 0 about X", [2] * 4]),
        (".", {"format": "metaqa", "split": "dev_ntm", "only_hops": (1,)}, ["again X", [1] * 4]),
        (".", {"format": "metaqa", "limit": 3}, [None, [1] * 3 + [2] * 3]),
        (".", {"format": "pathquestion"}, ["q", [2, 3]]),
        (".", {"format": "pathquestion", "only_hops": {3}}, ["q", [3]]),
        ("PQ-2H.txt", {"format": "pathquestion"}, ["q", [2]]),
        ("PQ-2H.txt", {"format": "pathquestion", "only_hops": [2]}, ["q", [2]]),
        ("mine", {"format": "jsonl", "split": "test"}, ["none", [None, 1, 2]]),
        ("mine/test.jsonl", {"format": "jsonl", "limit": 1}, ["none", [None, 1, 2]]),
        ("mine/test.jsonl", {"format": "jsonl", "only_hops": [2, 1]}, ["one", [1, 2]]),
    ],
)
def test_sets_are_read(folder: Path, path: str, arguments: dict[str, Any], expected: list[Any]) -> None:
    questions = read_question_set(folder / path, **arguments)
    assert [question.hops for question in questions] == expected[1]
    if expected[0]:
        assert questions[0].text == expected[0]


def test_a_limit_draws_by_the_seed_and_keeps_the_order(folder: Path) -> None:
    def drawn(seed: int) -> list[str]:
        return [one.text for one in read_question_set(str(folder), "metaqa", only_hops=[1], limit=2, seed=seed)]

    draws = [drawn(seed) for seed in range(20)]
    assert draws == [drawn(seed) for seed in range(20)]
    assert all(draw == sorted(set(draw)) for draw in draws)
    assert len({tuple(draw) for draw in draws}) == 6


@pytest.mark.parametrize(
    ("path", "arguments", "told"),
    [
        (".", {"format": "web"}, "format is one of ('metaqa', 'pathquestion', 'jsonl', 'webqsp'"),
        (".", {"format": "metaqa", "only_hops": [0, 4]}, "MetaQA has the hops [1, 2, 3], but got [0, 4]"),
        (".", {"format": "metaqa", "limit": 0}, "the limit must be an integer of 1 or more, but got 0"),
        (".", {"format": "pathquestion", "split": "dev"}, "PathQuestion has no splits, but got 'dev'"),
        (".", {"format": "pathquestion", "only_hops": [1]}, "PathQuestion has the hops [2, 3], but got [1]"),
        ("PQ-2H.txt", {"format": "pathquestion", "only_hops": [3]}, "has the hops [2], but got [3]"),
        ("mine", {"format": "jsonl"}, "is a folder; name one of its splits: ['test']"),
        ("mine/test.jsonl", {"format": "jsonl", "split": "dev"}, "is no folder, so it has no split 'dev'"),
        ("mine/test.jsonl", {"format": "jsonl", "only_hops": [3]}, "has the hops [1, 2], but got [3]"),
    ],
)
def test_sets_that_there_are_not(folder: Path, path: str, arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidArgumentError, match="read_question_set: ") as caught:
        read_question_set(folder / path, **arguments)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("path", "arguments", "told"),
    [
        (".", {"format": "metaqa", "split": "dve"}, "wanted 'qa_dve.txt' or 'vanilla/qa_dve.txt' here; there is: dev"),
        (".", {"format": "metaqa", "only_hops": [3]}, "3-hop: wanted .*; there is no such folder"),
        ("none", {"format": "metaqa"}, "none: wanted a folder that holds 1-hop, 2-hop or 3-hop"),
        ("1-hop", {"format": "metaqa"}, "1-hop: wanted a folder that holds 1-hop, 2-hop or 3-hop"),
        ("none", {"format": "pathquestion"}, "No such file"),
        ("none", {"format": "jsonl"}, "No such file"),
        ("mine", {"format": "jsonl", "split": "dev"}, "No such file"),
    ],
)
def test_files_that_there_are_not(folder: Path, path: str, arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(QuestionsLoadError, match=told):
        read_question_set(folder / path, **arguments)
