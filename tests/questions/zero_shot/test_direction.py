"""Which of two ends is above the other, by the words of claims, questions and relations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kg_retrievers.questions.zero_shot.direction import agrees, asked_end, claimed, relation_says, stem_of

#: Marks texts that are read the wrong way round, or not at all.


def rows(above: bool | None, texts: str, *marks: pytest.MarkDecorator) -> list[Any]:
    """Return a row of a table for each of some texts."""
    return [pytest.param(text.strip(), above, marks=marks) for text in texts.split(";")]


@pytest.mark.parametrize(
    "forms",
    [
        *("supervised supervisor supervises supervising", "taught teachers teaches teach", "led leads leader leading"),
        *(
            "bosses boss",
            "reported report",
            "studied studies",
            "tributaries tributary",
            "succeeded succeed",
            "owner owns",
        ),
    ],
)
def test_forms_of_a_word_have_one_stem(forms: str) -> None:
    assert len({stem_of(word) for word in forms.split()}) == 1


CLAIMS = [
    *rows(
        True, "did [x] train [y]; [X] manages [Y].; was [y] taught by [x]; [y] works for [x]; is [x] the boss of [y]"
    ),
    *rows(True, "is [x] [y]'s boss; is [x] the parent company of [y]; is [y] the successor of [x]"),
    *rows(False, "was [x] trained by [y]; is [x] supervised by the team of [y]; was [y] succeeded by [x]"),
    *rows(False, "is [x] a tributary of [y]; [x] flows into [y]; is [y] the boss of [x]; the boss of [x] is [y]"),
    *rows(
        False,
        "is [y] [x]’s mentor; is [x] a direct report of [y]; does [x] report to [y]; does [x] really have [y] as boss",
    ),
    *rows(True, "does [y] have [x] as a mentor; [y]'s boss is [x]; does [x] look after [y]"),
    *rows(False, "does [x] have [y] as boss; is [x]'s boss [y]; has [x] a boss named [y]"),
    *rows(None, "is [x] older than [y]; [x] is near [y]; [x] married [y]"),
]


def test_texts_without_two_ends_or_words_do_not_tell() -> None:
    assert not any(map(claimed, ["", "[x]", "[x] [y]", "who trained [x]", "is [x] [y]", "[x], [y] and [x] met"]))
    assert not any(map(asked_end, ["", "who trained whom", "where was [x] born", "[x]"]))
    assert relation_says("") is None


QUESTIONS = [
    *rows(True, "who trained [x]; who was [x] trained by; [x] is trained by whom; who has [x] been trained by"),
    *rows(True, "whom does [x] report to; who is the one that [x] reports to; which river does [x] flow into"),
    *rows(True, "who is the boss of [x]; [x] 's boss; what is the parent company of [x]; whom did [x] succeed"),
    *rows(False, "who did [x] train; who was trained by [x]; who reports to [x]; who is [x]'s successor"),
    *rows(False, "who are the direct reports of [x]; what are the tributaries of the [x]; what does [x] own"),
    *rows(False, "who is the successor of [x]; which students did [x] teach; who has [x] as boss"),
    *rows(True, "who does [x] have as boss; what is [x] part of; which river is [x] a tributary of"),
    *rows(False, "whose boss is [x]; who is [x] the boss of; who is [x] supervising; who are [x]'s direct reports"),
]


RELATIONS = [
    *rows(True, "manages; teaches; owner of; has part; replaced by; successor; succeeded by; direct report; student"),
    *rows(False, "trained by; reports to; subsidiary of; tributary of; doctoral supervisor; manager; has boss"),
    *rows(False, "parent company; student of; part of; flows into; member of; Owned By"),
    *rows(False, "boss"),
    *rows(None, "genre; located in"),
]


TOLD = [(claimed, CLAIMS), (asked_end, QUESTIONS), (relation_says, RELATIONS)]


@pytest.mark.parametrize(("read", "text", "above"), [(read, *row.values) for read, told in TOLD for row in told])
def test_texts_say_which_end_is_above(read: Callable[[str], Any], text: str, above: bool | None) -> None:
    """A claim and a relation say it of the head, a question of the answer."""
    said = read(text)
    assert said
    assert said.above is above


@pytest.mark.parametrize(
    ("claim", "relation", "expected"),
    [
        *(("is [x] the boss of [y]", "reports to", False), ("is [y] the boss of [x]", "reports to", True)),
        *(("did [x] train [y]", "trained by", False), ("was [x] trained by [y]", "trained by", True)),
        *(("is [x] the successor of [y]", "succeeded by", False), ("is [x] [y]'s mentor", "student", True)),
        *(("is [x] the boss of [y]", "genre", None), ("is [x] near [y]", "reports to", None)),
    ],
)
def test_a_claim_agrees_with_a_relation(claim: str, relation: str, expected: bool | None) -> None:
    said, of_relation = claimed(claim), relation_says(relation)
    assert said
    assert of_relation
    assert agrees(said, of_relation) is expected
