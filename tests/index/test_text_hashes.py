"""Hashes of texts: those of parts are those of the same texts alone, and other texts have others."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.index.name_table import RunningHash, codes_of, halved, hashes_of


@given(st.lists(st.text(), max_size=5), st.data())
def test_a_part_has_the_hash_of_its_text(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    running = RunningHash(codes_of(pieces)).between(np.array([start]), np.array([end]))
    assert running.tolist() == hashes_of([text[start:end]]).tolist()


def test_other_texts_have_other_hashes() -> None:
    some = ["", "a", "b", "aa", "ab", "ba", "\0", "\0\0", "é", "宮"]
    assert len(set(hashes_of(some).tolist())) == len(some)
    assert len(set(halved(hashes_of(some)).tolist())) == len(some)
