from __future__ import annotations

import pytest

from kg_retrievers.graph import Known, Pattern, Unknown
from kg_retrievers.graph.pattern import Revisits, decide, decide_revisits, excludes_named

X, Y, Z = (Unknown(name) for name in "xyz")
R = Unknown("relation")


@pytest.mark.parametrize(
    ("triples", "allowed"),
    [
        ([("a", "r", X), (X, "s", Y), (Y, "r", Z)], True),
        ([(X, "r", "a"), (Y, "s", X)], True),  # backward twice
        ([("a", "r", X), (Y, "s", X)], False),
        ([("a", "r", X), (X, "s", Y), (Z, "s", Y)], False),
        ([(X, "r", "a"), (X, "s", "b")], True),  # a star: one step from each known node
        ([(X, "r", "a"), (X, "s", "b"), (X, "t", Y)], False),
        ([(X, "r", "a"), (X, "s", "b"), (Y, "t", X)], True),
        ([("a", R, X), (X, "r", Y)], False),  # the relation may lead either way
        ([("a", "r", X), (X, "s", Y), ("a", "t", Y)], False),  # a cycle
        ([(X, "r", Y), (Z, "r", Y)], True),  # nothing is named
    ],
)
def test_a_walk_with_both_directions_does_not_return(triples: list[tuple[object, ...]], allowed: bool) -> None:
    pattern = Pattern.of(*triples)  # type: ignore[arg-type]
    assert decide_revisits(pattern) == Revisits(allowed, certain=allowed)


def test_what_the_pattern_states_is_certain() -> None:
    back = Pattern.of(("Her", "by", X), (Y, "by", X), revisits=True)
    assert decide_revisits(back, "What else did they direct?") == Revisits(True, True)
    assert decide_revisits(Pattern.of(("Her", "by", X), revisits=False)) == Revisits(False, True)


def test_words_and_directions_together_are_certain() -> None:
    turning = Pattern.of(("Her", "by", X), (Y, "by", X))
    onward = Pattern.of(("Ann", "child", X), (X, "parent", Y))
    assert decide_revisits(turning, "What else did the director of Her direct?") == Revisits(False, True)
    assert decide_revisits(onward, "Who is the other parent of Ann's child?") == Revisits(False, False)
    assert decide(None, excluded=False, turning=False) == Revisits(True, True)


@pytest.mark.parametrize(
    ("question", "excludes"),
    [
        ("Who are the other cast members?", True),
        ("Who are the co-stars of Ann?", True),
        ("Who are the fellow students of Ann?", True),
        ("Who besides Ann is there?", True),
        ("Who lives in the same town as Ann?", True),
        ("What is the same?", False),
        ("Which company has a brother of Ann?", False),
    ],
)
def test_words_exclude_what_is_named(question: str, excludes: bool) -> None:
    assert excludes_named(question) is excludes


def test_words_of_names_do_not_exclude() -> None:
    pattern = Pattern.of((Known("The Other"), "sequel", X), (X, "sequel", Y))
    assert decide_revisits(pattern, "What is the sequel of the sequel of The Other?").allowed
    assert not decide_revisits(pattern, "What other sequel has the sequel of The Other?").allowed
    assert not excludes_named("Who knows The Others?", ["the others", ""])
