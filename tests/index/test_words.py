"""The words of names: how alike two texts are, and which words tell nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.index.names import FUNCTION_WORDS, likeness, words_of


def test_no_word_of_a_domain_is_a_function_word() -> None:
    assert not FUNCTION_WORDS & {"film", "films", "movie", "movies", "company", "people", "person"}


@given(st.text(), st.text(), st.floats(0, 1))
def test_a_least_likeness_only_cuts(a: str, b: str, least: float) -> None:
    share = likeness(a, b)
    assert 0 <= share <= 1
    assert likeness(a, b, least) == (share if share >= least else 0)
    assert likeness(a, a) == (1 if words_of(a) else 0)
