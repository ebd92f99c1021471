"""Names in a vector store: in PostgreSQL, and in memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from postgres import Postgres

from kg_retrievers.errors import InvalidArgumentError, StaleIndexError
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import HashedEmbeddings, VectorStoreSearch, embed
from kg_retrievers.index.names import words_of
from kg_retrievers.index.server_names import MAX_KEYS, ServerNames, StoredName, letters_of
from kg_retrievers.index.stores import open_store

NAMES = ["Her", "Spike Jonze", "Amélie", "her", "Adaptation", "Being John Malkovich", "$", "HER", "H. E. R.", "hér"]
TABLES = count()


class Counting(HashedEmbeddings):
    """Hashed embeddings that remember what they embedded."""

    def __init__(self) -> None:
        super().__init__(64)
        self.texts: list[str] = []

    def embed_array(self, texts: list[str]) -> Array:  # type: ignore[override]
        self.texts += texts
        return super().embed_array(texts)


def stored(names: list[str]) -> list[StoredName]:
    return [StoredName(name, (f"key of {name}",)) for name in names]


def in_memory(embeddings: Embeddings) -> ServerNames:
    return ServerNames(VectorStoreSearch(InMemoryVectorStore(embeddings), "cosine_similarity"), embeddings)


@pytest.fixture
def address(postgres: Postgres) -> str:
    return f"{postgres.url()}?table=names_{next(TABLES)}"


@pytest.fixture
def embeddings() -> Counting:
    return Counting()


@pytest.fixture
def names(address: str, embeddings: Counting) -> ServerNames:
    return ServerNames(open_store(address, embeddings), embeddings)


def test_names_are_found_by_their_letters_and_digits(names: ServerNames) -> None:
    names.add(stored(NAMES), batch_size=3)
    found = names.written_as(["HÉR", "amelie", "spike  jonze!", "$", "nobody", ""])
    assert {text: [one.name for one in same] for text, same in found.items()} == {
        "HÉR": ["Her", "her", "HER", "H. E. R.", "hér"],
        "amelie": ["Amélie"],
        "spike  jonze!": ["Spike Jonze"],
        "$": ["$"],
        "nobody": [],
        "": [],
    }
    assert names.written_as([]) == {}


@given(st.lists(st.text("abÄä .-1", max_size=4), max_size=40), st.lists(st.text("abÄä .-1", max_size=4), max_size=5))
def test_written_as_finds_what_a_scan_finds(texts: list[str], asked: list[str]) -> None:
    names = in_memory(HashedEmbeddings(8))
    names.add([*stored(["the first"]), *stored(texts)], batch_size=7)
    for text, found in names.written_as(asked).items():
        same = [other for other in dict.fromkeys(texts) if letters_of(other) == letters_of(text)]
        assert [one.name for one in found] == same
        assert words_of(text) or all(other.strip() == text.strip() for other in same)


def test_a_name_gets_further_keys(names: ServerNames, embeddings: Counting) -> None:
    names.add([StoredName("Her", ("b",)), StoredName("Her", ("a", "b")), StoredName("her", ("c",))])
    assert names.add([StoredName("Her", ("a",))]) == 0
    assert names.add([StoredName("Her", ("d",)), StoredName("new", ("e",))]) == 2
    assert names.written_as(["her"])["her"] == [StoredName("Her", ("a", "b", "d")), StoredName("her", ("c",))]
    many = tuple(f"{number:04}" for number in range(MAX_KEYS + 1))
    names.add([StoredName("Untitled", many), StoredName("Full", many[:MAX_KEYS])])
    assert names.written_as(["untitled", "full"]) == {
        "untitled": [StoredName("Untitled", many[:MAX_KEYS], True)],
        "full": [StoredName("Full", many[:MAX_KEYS])],
    }
    assert names.add([StoredName("Untitled", ("another",))]) == 0
    assert names.about is not None
    assert names.about.count == 5
    assert names.nearest(embed(embeddings, ["Her"]), 1)[0][0].name.keys == ("a", "b", "d")


def test_loading_goes_on_where_it_was_broken_off(address: str, embeddings: Counting) -> None:
    """After a break within a batch, in which some of its rows were written, too."""
    texts = [f"name {number}" for number in range(50)]

    def breaking() -> Iterator[StoredName]:
        yield from stored(texts[:25])
        raise KeyboardInterrupt

    first = ServerNames(open_store(address, embeddings), embeddings)
    with pytest.raises(KeyboardInterrupt):
        first.add(breaking(), position="25", batch_size=10)
    assert first.about is not None
    assert (first.about.count, first.about.position) == (20, "")

    again = ServerNames(open_store(address, embeddings), embeddings)
    assert again.add(stored(texts), position="50", batch_size=7) == 30
    assert sorted(text for text in embeddings.texts if text in texts) == sorted(texts)
    assert again.about is not None
    assert (again.about.count, again.about.position) == (50, "50")
    assert again.add(stored(texts)) == 0
    assert (again.about.count, again.about.position) == (50, None)


def test_other_embeddings_are_refused(address: str, names: ServerNames, embeddings: Counting) -> None:
    with pytest.raises(StaleIndexError, match="holds no names"):
        names.written_as(["Her"])
    names.add(stored(["Her"]))
    other = HashedEmbeddings(64)
    others = ServerNames(open_store(address, other), other)
    for use in (lambda: others.written_as(["Her"]), lambda: others.add(stored(["it"]))):
        with pytest.raises(StaleIndexError, match=r"embedded by .*Counting.*but got .*HashedEmbeddings"):
            use()
    with pytest.raises(InvalidArgumentError, match=r"vectors of 64 numbers.*but got shape \(1, 3\)"):
        names.nearest(np.ones((1, 3), np.float32), 2)


def test_names_that_are_hard_to_store(names: ServerNames) -> None:
    hard = ["", " ", "\0", "a\0b", "😀", "ß", "'; DROP TABLE x; --", "%s :id {}", "x" * 10_000]
    names.add(stored(hard))
    found = names.written_as(hard)
    assert {name for name in hard if name not in [one.name for one in found[name]]} == set()
    assert names.about is not None
    assert names.about.count == len(hard)
