"""The columns of the table of names: equal to what plain Python makes of each name."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import names as module
from kg_retrievers.index.names import (
    NAME_COLUMNS,
    OF_INITIALS,
    halved,
    hashes_of,
    initials_of,
    name_columns,
    parts_of,
    words_of,
)

TEXTS = st.text(st.sampled_from("aB1 _-.'\tÉİßǅ宮の\u0301\U0001d49c½\0"), min_size=1, max_size=12).filter(str.strip)
NAMES = st.one_of(TEXTS, st.sampled_from(["Bank of New York", "the The THE", "a b c d e f g h i", "!!!", "$ $"]))


def plain_columns(graph: KnowledgeGraph) -> dict[str, Array]:
    """Make the columns name by name."""
    size, rows, words = len(graph.names), [], set()
    keys = [(size + id, key) for id, key in enumerate(graph.entities) if key not in graph.names]
    for id, text in [*enumerate(graph.names), *keys]:
        rows.append((int(halved(hashes_of(["".join(parts_of(text))]))[0]), id))
        of_name = words_of(text)
        if id >= size or len(of_name) < 2:
            continue
        words |= {(int(half), id) for half in halved(hashes_of(of_name))}
        words |= {(int(half), id) for half in halved(hashes_of(sorted(initials_of(of_name))) ^ OF_INITIALS)}
    distinct = sorted({word for word, _ in words})
    counts = [sum(one == word for one, _ in words) for word in distinct]
    texts = [*graph.names, *graph.entities]
    return {
        "hashes": np.array([half for half, _ in sorted(rows)], np.uint32),
        "ids": np.array([id for _, id in sorted(rows)], np.int32),
        "words": np.array(distinct, np.uint32),
        "word_starts": np.append(0, np.cumsum(counts)).astype(np.int32),
        "word_names": np.array([id for _, id in sorted(words)], np.int32),
        "longest": np.array([max((len("".join(parts_of(text))) for text in texts), default=0)], np.int64),
    }


@given(st.lists(NAMES, max_size=12), st.dictionaries(st.integers(0, 11), NAMES), st.sampled_from([1, 3, 100]))
def test_as_plain_python(keys: list[str], labels: dict[int, str], batch: int) -> None:
    of_keys = {keys[at]: label for at, label in labels.items() if at < len(keys)}
    graph = KnowledgeGraph.from_triples([(key, "in", key) for key in keys], labels=of_keys)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BATCH", batch)
        found = name_columns(graph)
    wanted = plain_columns(graph)
    assert list(found) == list(NAME_COLUMNS)
    for name in NAME_COLUMNS:
        assert found[name].tolist() == wanted[name].tolist(), name
        assert found[name].dtype == wanted[name].dtype, name


def test_words_that_fold_to_several_letters() -> None:
    graph = KnowledgeGraph.from_triples([("Straße nach Ⅳ", "in", "ﬁne Art")])
    found = name_columns(graph)
    wanted = halved(hashes_of(["strassenachiv", "fineart"]))
    assert sorted(found["hashes"].tolist()) == sorted(wanted.tolist())
