"""A small task for the trainings: questions on 30 films, and what the tests of trainings share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kg_retrievers.datasets import Question
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.index import GraphIndex, HashedEmbeddings

TEMPLATES = {
    "directed_by": "who directed {}?",
    "starred_actor": "who acted in {}?",
    "release_year": "when was {} released?",
}
FILMS = [f"Film {first}{second}" for first in "abcdef" for second in "aeiou"]


def films() -> KnowledgeGraph:
    """Return 30 films, each with a director, one or two actors and a year that others share."""
    return KnowledgeGraph.from_triples(
        fact
        for number, film in enumerate(FILMS)
        for fact in (
            (film, "directed_by", f"Director {number % 12}"),
            (film, "starred_actor", f"Actor {number % 9}"),
            (film, "starred_actor", f"Actor {number * 7 % 9}"),
            (film, "release_year", str(1980 + number % 8)),
        )
    )


INDEX = GraphIndex.build(films(), HashedEmbeddings(128))


def asked(graph: KnowledgeGraph, names: Sequence[str]) -> list[Question]:
    """Return three questions on each film."""
    return [
        Question(words.format(film), (film,), tuple(triple.tail for triple in graph.triples(film, relation)))
        for film in names
        for relation, words in TEMPLATES.items()
    ]


LEARNED, HELD_OUT = asked(INDEX.graph, FILMS[:20]), asked(INDEX.graph, FILMS[20:])


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Tell whether weights are the same bit for bit."""
    return one.keys() == other.keys() and all(one[name].tobytes() == other[name].tobytes() for name in one)


def interrupted(calls: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that can be called some times and is interrupted then."""
    left = [calls]

    def call(*arguments: Any) -> Any:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return function(*arguments)

    return call
