"""The words of names: how alike two texts are, and how frequent a word is in English."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.index.names import FUNCTION_WORDS, english_share, likeness, telling_words, words_of


def test_frequent_words_first() -> None:
    shares = [english_share(word) for word in ("the", "of", "film", "genre", "xyzzyplugh", "")]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 0.1
    assert shares[3] > shares[4] == shares[5] == 0


def test_no_word_of_a_domain_is_a_function_word() -> None:
    assert not FUNCTION_WORDS & {"film", "films", "movie", "movies", "company", "people", "person"}


@given(st.text(), st.text(), st.floats(0, 1))
def test_a_least_likeness_only_cuts(a: str, b: str, least: float) -> None:
    share = likeness(a, b)
    assert 0 <= share <= 1
    assert likeness(a, b, least) == (share if share >= least else 0)
    assert likeness(a, a) == (1 if words_of(a) else 0)


@pytest.mark.parametrize(("text", "words"), [("Who is in Ohio?", {"ohio"}), ("It's an Élan GT", {"elan"}), ("", set())])
def test_telling_words(text: str, words: set[str]) -> None:
    assert telling_words(text) == words
