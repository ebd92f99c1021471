"""What replies to a choice are read as."""

from __future__ import annotations

import pytest

from kg_retrievers.questions.choosing import chosen_number


@pytest.mark.parametrize(
    ("reply", "number"),
    [
        ('{"choice": 2}', 2),
        ("<think>1 or 3?</think> Line 2.", 2),
        ("2", 2),
        ('{"choice": 4}', None),
        ('{"choice": -1}', None),
        ('{"choice": null, "count": 3}', None),
        ("None of the 3 lines", None),
        ("1 or 2", None),
        ("-1", None),
        ("", None),
    ],
)
def test_numbers(reply: str, number: int | None) -> None:
    assert chosen_number(reply, 3) == number
