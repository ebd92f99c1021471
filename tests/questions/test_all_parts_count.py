"""A question about theatres is answered with all that it says, or refused."""

from __future__ import annotations

from typing import Any

import pytest

from kg_retrievers import GraphIndex, KnowledgeGraph, SimGRAGRetriever, default_embeddings
from kg_retrievers.errors import LowConfidenceError
from kg_retrievers.questions.follow_up import FollowUpReader, Turn

PLAYS = {"Night Ferry": "comedy", "Salt Roads": "comedy", "The Glass Owl": "tragedy"}
LED = [("Petra Vogl", 1999, 2004), ("Jonas Reiter", 2004, 2010), ("Mia Sand", 2010, 2015)]
THEATRES = {"Astra Theatre": ("450", "1921"), "Borealis Hall": ("1200", "1955")}
IN_2005 = "Who led the Astra Theatre in 2005?"

#: 2005 is a thing of the graph, too.
FACTS: list[Any] = [
    *(("Ann Lindqvist", "wrote", play) for play in PLAYS),
    *((play, "genre", genre) for play, genre in PLAYS.items()),
    *((who, "led", "Astra Theatre", {"since": since, "until": until}) for who, since, until in LED),
    *((theatre, "capacity", capacity) for theatre, (capacity, _) in THEATRES.items()),
    *((theatre, "opened in", year) for theatre, (_, year) in THEATRES.items()),
    ("The Glass Owl", "first performed", "2005"),
    ("Ann Lindqvist", "born in", "Linz"),
]
TYPES = {
    "Ann Lindqvist": ["Playwright"],
    "2005": ["Year"],
    **{play: ["Play"] for play in PLAYS},
    **{theatre: ["Theatre"] for theatre in THEATRES},
    **{who: ["Director"] for who, _, _ in LED},
}


@pytest.fixture(scope="module")
def index() -> GraphIndex:
    return GraphIndex.build(KnowledgeGraph.from_triples(FACTS, types=TYPES), default_embeddings())


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("Which comedies did Ann Lindqvist write?", {"Night Ferry", "Salt Roads"}),
        ("List the tragedies by Ann Lindqvist", {"The Glass Owl"}),
        ("Which plays did Ann Lindqvist write?", {*PLAYS}),
        (IN_2005, {"Jonas Reiter"}),
        ("Who led the Astra Theatre before 2005?", {"Petra Vogl", "Jonas Reiter"}),
        ("Which play was first performed in 2005?", {"The Glass Owl"}),
    ],
)
def test_a_genre_and_a_year_limit_the_answers(index: GraphIndex, question: str, answers: set[str]) -> None:
    assert {*SimGRAGRetriever.from_index(index).invoke(question)[0].metadata["answers"]} == answers


@pytest.mark.parametrize(
    "question",
    [
        "What is the ticket price of the Astra Theatre?",
        "How much does a ticket for the Astra Theatre cost?",
        "How tall is the Astra Theatre?",
        "Where was Ann Lindqvist born in 2005?",
    ],
)
def test_what_the_graph_does_not_say_is_refused(index: GraphIndex, question: str) -> None:
    with pytest.raises(LowConfidenceError):
        SimGRAGRetriever.from_index(index, on_refusal="raise").invoke(question)


@pytest.mark.parametrize(
    ("asked", "answers", "question", "whole"),
    [
        ("List all theatres", [*THEATRES], "which is the oldest?", "which of the theatres is the oldest?"),
        ("Who wrote Night Ferry?", ["Ann Lindqvist"], "Where was she born?", "Where was Ann Lindqvist born?"),
        ("Where was Ann Lindqvist born?", ["Linz"], "What did she write?", "What did Ann Lindqvist write?"),
        (IN_2005, ["Jonas Reiter"], "What else did he lead?", "What did Jonas Reiter lead?"),
        (IN_2005, ["Jonas Reiter"], "Who led it in 2000?", "Who led Astra Theatre in 2000?"),
    ],
)
def test_a_follow_up_points_to_things_of_any_type(
    index: GraphIndex, asked: str, answers: list[str], question: str, whole: str
) -> None:
    assert FollowUpReader(index).read(question, [Turn(question=asked, entities=[], answers=answers)]) == whole
