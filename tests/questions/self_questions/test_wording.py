"""Shapes in words: each way to say them, by the form of the relation."""

from __future__ import annotations

from random import Random

import pytest

from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.adjacency import label_of
from kg_retrievers.questions.self_questions.shapes import Names, Shape, Walk
from kg_retrievers.questions.self_questions.wording import QuestionWriter

FACTS = [
    ("Her", "directed_by", "Jonze"),
    ("Her", "release_date", "2013-12-18"),
    ("Her", "seats sold", "12"),
    ("Her", "number_of_seats", "90"),
    ("Jonze", "born_in", "Rockville"),
    ("Jonze", "studiedAt", "Lee High"),
    ("Jonze", "founded", "1999"),
    ("Rockville", "seat of", "Montgomery"),
    ("Her", "colonized", "Mars"),
]
GRAPH = KnowledgeGraph.from_triples(FACTS, types={"Her": ["film"], "Rockville": ["place"], "Jonze": ["person"]})


def said(start: str, *steps: tuple[str, bool], number: int = 1000) -> set[str]:
    """Return the ways to ask where the steps from an entity lead."""
    labels = tuple(label_of(GRAPH.relations.find(relation), backward) for relation, backward in steps)
    walk = Walk(GRAPH.entities.find(start), labels, (1,) * len(labels))
    writer = QuestionWriter(GRAPH, Names(GRAPH), Random(0))
    return {writer.write(Shape((walk,), (0,))) for _ in range(number)}


@pytest.mark.parametrize(
    ("start", "steps", "some"),
    [
        (
            "Her",
            [("directed_by", False)],
            [
                "Who directed Her?",
                "Who was Her directed by?",
                "Name the director of Her.",
                "who is Her's director",
                "Which person directed Her?",
                "Tell me the person who directed Her.",
            ],
        ),
        (
            "Jonze",
            [("directed_by", True)],
            ["What did Jonze direct?", "Which film was directed by Jonze?", "the film directed by Jonze"],
        ),
        ("Her", [("release_date", False)], ["What is Her's release date?", "which release date does Her have"]),
        ("2013-12-18", [("release_date", True)], ["Which film has the release date 2013-12-18?"]),
        ("Her", [("number_of_seats", False)], ["How many seats does Her have?", "Name the number of seats of Her."]),
        ("Jonze", [("born_in", False)], ["Where was Jonze born?", "Which place was Jonze born in?"]),
        ("Rockville", [("born_in", True)], ["Who was born in Rockville?", "Find the person born in Rockville"]),
        ("Jonze", [("studiedAt", False)], ["What did Jonze study at?", "the one that Jonze studied at"]),
        ("Lee High", [("studiedAt", True)], ["Who studied at Lee High?"]),
        ("Jonze", [("founded", False)], ["When was Jonze founded?"]),
        ("Rockville", [("seat of", False)], ["What is Rockville the seat of?", "Which one is Rockville seat of?"]),
        ("Montgomery", [("seat of", True)], ["What is the seat of Montgomery?", "Montgomery's seat"]),
        ("Her", [("colonized", False)], ["What is the one that Her colonized?", "What was colonized by Her?"]),
        ("Mars", [("colonized", True)], ["What colonized Mars?", "Which film colonized Mars?"]),
        (
            "Her",
            [("directed_by", False), ("born_in", False)],
            ["Where was the director of Her born?", "Where was the person who directed Her born?"],
        ),
        (
            "Her",
            [("directed_by", False), ("directed_by", True)],
            ["What was directed by the director of Her?", "the film directed by Her's director"],
        ),
    ],
    ids=str,
)
def test_ways_to_ask(start: str, steps: list[tuple[str, bool]], some: list[str]) -> None:
    assert set(some) <= said(start, *steps)


def test_a_name_keeps_its_letters_and_marks() -> None:
    graph = KnowledgeGraph.from_triples([("iPhone Jr.", "maker", "Acme?")])
    names = Names(graph)
    writer = QuestionWriter(graph, names, Random(0))
    for start, backward in ((0, False), (1, True)):
        shape = Shape((Walk(start, (label_of(0, backward),), (1,)),), (1 - start,))
        assert all(names[start] in writer.write(shape) for _ in range(300))


def test_both_names_of_a_conjunction_are_said() -> None:
    walks = (
        Walk(GRAPH.entities.find("Jonze"), (label_of(0, True),), (2,)),
        Walk(GRAPH.entities.find("Mars"), (label_of(GRAPH.relations.find("colonized"), True),), (2,)),
    )
    writer = QuestionWriter(GRAPH, Names(GRAPH), Random(0))
    texts = {writer.write(Shape(walks, (0,), revisits=False)) for _ in range(200)}
    assert {
        "Which film was directed by Jonze and colonized Mars?",
        "What was directed by Jonze and colonized Mars?",
    } <= texts
    assert all("Jonze" in text and "Mars" in text for text in texts)
