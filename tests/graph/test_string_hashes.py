"""Hashes of strings: all at once as one by one, and those that saved graphs hold."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.graph.columns import HASHED_BY_WORDS, StringTable, hash_of, hashes_of

LONG = "x" * HASHED_BY_WORDS


@given(st.lists(st.one_of(st.text(max_size=20), st.sampled_from([LONG, f"{LONG}y", "\0", "a\0", "a"]))))
def test_all_at_once_are_hashed_as_one_by_one(texts: list[str]) -> None:
    encoded = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, encoded)])
    found = hashes_of(offsets, np.frombuffer(b"".join(encoded), np.uint8))
    assert found.tolist() == [hash_of(text) for text in encoded]


def test_saved_graphs_hold_these_hashes() -> None:
    """Another hash would need another format: no name would be found in a graph that was saved before."""
    wanted = {
        "": 0,
        "a": 6110722307022594671,
        "Spike Jonze": 15755276294014205717,
        "Amélie": 4894668896513852883,
        LONG: 3011120948835925683,
        f"{LONG}x": 3947904110462928320,
    }
    assert {text: hash_of(text.encode()) for text in wanted} == wanted
    table = StringTable.from_strings([*wanted])
    assert [table.find(text) for text in wanted] == [*range(len(wanted))]
