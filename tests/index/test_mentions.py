"""The windows of a question that are names, what overlaps, and that the work is linear in the question."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.index import EntityLinker, GraphIndex, HashedEmbeddings
from kg_retrievers.index.names import NameTable, QuestionText, name_columns

NAMES = ["Her", "Tom Hanks", "Spider-Man", "$", "!!!", "1984", "Together", "Drama", "ginger"]
GRAPH = KnowledgeGraph.from_triples([(name, "in", "Tom Hanks") for name in NAMES])


def key_of(text: str) -> str:
    return "".join(token.word for token in QuestionText(text).tokens) or text


@given(st.lists(st.sampled_from([*NAMES, "spider", "man", "and", "?", " ", "-", "!"]), min_size=1))
def test_all_windows_that_are_names(parts: list[str]) -> None:
    question = " ".join(parts)
    if not question.strip():
        return
    table = NameTable(GRAPH, name_columns(GRAPH))
    text = QuestionText(question)
    found = {window[:2] for window in text.named_windows(table)}
    count = len(text.tokens)
    short = [(a, b) for a in range(count) for b in range(a, count) if len(text.text(a, b)) <= 2 * table.longest]
    assert found == {window for window in short if table.names(key_of(text.text(*window)))}


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count the calls of functions, also of compiled ones."""
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, argument: object) -> None:
        calls[event] += 1

    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize(
    "part",
    ["Tom Hanks ", "tom hanks and together ", "blah blub ", "Xyzzy Blurb said ", "! ", "Hanks ", "Drama "],
)
def test_the_work_is_linear(part: str) -> None:
    linker = EntityLinker(GraphIndex.build(GRAPH, HashedEmbeddings()))

    def link(question: str) -> None:
        with suppress(EntityLinkingError):
            linker.link(question)

    link(part * 10)
    work = []
    for times in (75, 300):
        with counted() as calls:
            link(part * times)
        work.append(calls["call"] + calls["c_call"])
    assert work[1] < 4.5 * work[0]
