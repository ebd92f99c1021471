"""The table of names: what is found by letters, words and initials; and that it may lie on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import EntityLinker, GraphIndex, HashedEmbeddings
from kg_retrievers.index.names import NameTable, name_columns

LABELS = {"m1": "The Matrix", "m2": "the-matrix", "m3": "$", "m4": "Bank of New York", "m5": "Ångström Unit"}


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    aliases = {"m1": ["Matrix, The"], "m4": ["BONY"]}
    return KnowledgeGraph.from_triples([(key, "in", "1999") for key in LABELS], labels=LABELS, aliases=aliases)


@pytest.fixture(scope="module")
def table(graph: KnowledgeGraph) -> NameTable:
    return NameTable(graph, name_columns(graph))


def texts(graph: KnowledgeGraph, names: Array) -> list[str]:
    return [graph.names[name] for name in names.tolist()]


def test_names_and_keys_by_letters_and_digits(table: NameTable) -> None:
    assert table.names("thematrix") == ["The Matrix", "the-matrix"]
    assert table.names("angstromunit") == ["Ångström Unit"]
    assert [table.names(key) for key in ("$", "m4", "1999", "matrix", "")] == [["$"], ["m4"], ["1999"], [], []]
    assert table.longest == len("bankofnewyork")


def test_names_by_words_and_initials(graph: KnowledgeGraph, table: NameTable) -> None:
    assert texts(graph, table.names_with("matrix")) == ["The Matrix", "the-matrix", "Matrix, The"]
    assert texts(graph, table.names_with("york")) == ["Bank of New York"]
    assert texts(graph, table.names_with("bony")) == [], "it has one word"
    assert texts(graph, table.names_with("m4")) == [], "a key has no words"
    assert [texts(graph, table.names_of_initials(text)) for text in ("bony", "bny", "tm")] == [
        ["Bank of New York"],
        ["Bank of New York"],
        [],
    ]


QUESTIONS = ["who made the matrix", "who runs Bank", "what is $ ?", "who owns BNY", "when was m5 found"]


def test_a_saved_index_holds_it(graph: KnowledgeGraph, tmp_path: Path) -> None:
    built = GraphIndex.build(graph, HashedEmbeddings(), tmp_path)
    opened = GraphIndex.open(tmp_path, HashedEmbeddings())
    assert isinstance(opened.name_table._hashes.base, np.memmap)
    assert [EntityLinker(opened).link(q) for q in QUESTIONS] == [EntityLinker(built).link(q) for q in QUESTIONS]
