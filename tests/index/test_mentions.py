"""The windows of a question that are names, what overlaps, and that the work is linear in the question."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import pytest

from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.index import EntityLinker, GraphIndex, HashedEmbeddings

NAMES = ["Her", "Tom Hanks", "Spider-Man", "$", "!!!", "1984", "Together", "Drama", "ginger"]
GRAPH = KnowledgeGraph.from_triples([(name, "in", "Tom Hanks") for name in NAMES])


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
    "part", ["Tom Hanks ", "tom hanks and together ", "blah blub ", "Xyzzy Blurb said ", "! ", "Hanks ", "Drama "]
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
