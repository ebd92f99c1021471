"""What is asked of the best of some things: the answer is never the best thing itself."""

from __future__ import annotations

import pytest

from kg_retrievers import GraphIndex, KnowledgeGraph, SimGRAGRetriever, default_embeddings
from kg_retrievers.errors import RefusalError

#: The kites: their maker, weight in grams, the day of their first flight, the club that flies them and their designer.
KITES = {
    "Red Heron": ("Lumen Loft", 940, "1987-05-02", "Dune Flyers", "Ida Brandt"),
    "Blue Swift": ("Lumen Loft", 120, "2004-08-19", "Pier Club", "Ole Strand"),
    "Old Gull": ("Carver Kites", 610, "1952-03-30", "Pier Club", "Ida Brandt"),
    "Grey Owl": ("Carver Kites", 1300, "1999-10-11", "Dune Flyers", None),
}
FACTS = [
    (kite, relation, str(value))
    for kite, values in KITES.items()
    for relation, value in zip(("made by", "weight", "first flown", "flown at", "designed by"), values, strict=True)
    if value is not None
]
FACTS += [("Dune Flyers", "members", "40"), ("Pier Club", "members", "75"), ("Pier Club", "opened", "1931")]
FACTS += [("Dune Flyers", "opened", "1968"), ("Dune Flyers", "based in", "Skagen"), ("Pier Club", "based in", "Deal")]
FACTS += [("Lumen Loft", "workers", "9"), ("Carver Kites", "workers", "31")]
TYPES = {
    "kite": [*KITES],
    "workshop": ["Lumen Loft", "Carver Kites"],
    "club": ["Dune Flyers", "Pier Club"],
    "person": ["Ida Brandt", "Ole Strand"],
    "town": ["Skagen", "Deal"],
}


@pytest.fixture(scope="module")
def retriever() -> SimGRAGRetriever:
    types = {name: [kind] for kind, names in TYPES.items() for name in names}
    graph = KnowledgeGraph.from_triples(FACTS, types=types)
    return SimGRAGRetriever.from_index(GraphIndex.build(graph, default_embeddings()), on_refusal="raise")


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("Which workshop made the heaviest kite?", ["Carver Kites"]),
        ("What workshop made the lightest kite?", ["Lumen Loft"]),
        ("By which workshop was the heaviest kite made?", ["Carver Kites"]),
        ("Who designed the lightest kite?", ["Ole Strand"]),
        ("At which club is the lightest kite flown?", ["Pier Club"]),
        ("Which club is the heaviest kite flown at?", ["Dune Flyers"]),
        ("When was the heaviest kite first flown?", ["1999-10-11"]),
        ("Where is the club with the most members based?", ["Deal"]),
        ("In which town is the oldest club based?", ["Deal"]),
        ("When was the club with the fewest members opened?", ["1968"]),
        ("Which kites were made by the workshop with the most workers?", ["Old Gull", "Grey Owl"]),
        ("How heavy is the oldest kite?", ["610"]),
        ("What is the weight of the oldest kite?", ["610"]),
        ("What is the name of the heaviest kite?", ["Grey Owl"]),
        ("Which kite is the heaviest?", ["Grey Owl"]),
        ("Which kite made by Lumen Loft is the heaviest?", ["Red Heron"]),
        ("Which two kites were made by Lumen Loft?", ["Red Heron", "Blue Swift"]),
    ],
)
def test_what_is_asked_of_the_best(retriever: SimGRAGRetriever, question: str, answers: list[str]) -> None:
    """The best thing is found among all of its kind, and the question goes on from there."""
    assert retriever.invoke(question)[0].metadata["answers"] == answers


@pytest.mark.parametrize(
    "question",
    [
        "Who designed the heaviest kite?",  # nobody is known, though others have designers
        "How many kites does the oldest club fly?",
        "Who made the two heaviest kites?",
        "Which kite of the oldest club is the heaviest?",
        "Did Lumen Loft make the heaviest kite?",
        "Which captain flew the heaviest kite?",
    ],
)
def test_what_cannot_be_read_of_the_best_is_refused(retriever: SimGRAGRetriever, question: str) -> None:
    """If the best thing has no such fact, or more is asked than one step from it, nothing is answered."""
    with pytest.raises(RefusalError):
        retriever.invoke(question)
