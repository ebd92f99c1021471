"""Small lists of films, questions and claims that several tests share."""

from __future__ import annotations

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, Question
from kg_retrievers.graph import Pattern, Unknown

FACTS = [(f"Film {number}", "directed_by", f"Person {number}") for number in range(14)]
INDEX = GraphIndex.build(KnowledgeGraph.from_triples(FACTS), HashedEmbeddings())
#: Of the even ones each holds, of the odd ones none.
CLAIMS = [
    Question(
        f"Person {number - number % 2} directed Film {number}.",
        pattern=Pattern.of((f"Film {number}", "directed_by", Unknown("x"))),
        value=number % 2 == 0,
        kind="one-hop" if number < 7 else "existence",
    )
    for number in range(14)
]

#: Of `kg_retrievers.testing.tiny_graph`.
TINY_EXAMPLES = [
    Question("Who starred in Alien Resurrection?", answers=("Dominique Pinon",)),
    Question("Who directed Her?", answers=("Spike Jonze",)),
    Question("Who directed Adaptation?", answers=("Spike Jonze",)),
]

BY, GENRE, WRITTEN = "directed_by", "has_genre", "written_by"
FILMS = [
    ("Her", BY, "Spike Jonze"),
    ("Her", GENRE, "Drama"),
    ("Adaptation", BY, "Spike Jonze"),
    ("Adaptation", WRITTEN, "Charlie Kaufman"),
]
