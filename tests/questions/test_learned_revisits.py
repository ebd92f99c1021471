from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, Known, Pattern, Question, Unknown
from kg_retrievers.questions.examples import learn_revisits

BY, STAR = "directed_by", "starring"
GRAPH = KnowledgeGraph.from_triples(
    [("Her", BY, "Jonze"), ("Her", STAR, "Adams"), ("Adaptation", BY, "Jonze"), ("Arrival", BY, "Villeneuve")],
    labels={"Adaptation": "Adaptation."},
)
INDEX = GraphIndex.build(GRAPH, HashedEmbeddings())
X, FILM = Unknown("x"), Unknown("film")


def others(question: str, answers: Sequence[str], name: str = "Her", **fields: Any) -> Question:
    pattern = Pattern.of((Known(name, **fields), BY, X), (FILM, BY, X), target="film")
    return Question(question, answers=tuple(answers), pattern=pattern)


def learned(*examples: Question) -> list[bool | None]:
    return [example.pattern and example.pattern.revisits for example in learn_revisits(INDEX, examples)]  # type: ignore[misc]


ELSE, ALL = "What else is by the director of {}?", "What is by the director of {}?"
ONWARD, BACK = others(ELSE.format("Her"), ["Adaptation"]), others(ALL.format("Her"), ["Adaptation", "Her"])


def test_answers_tell_whether_walks_return() -> None:
    assert learned(ONWARD) == [False]
    assert learned(BACK) == [True]
    assert learned(BACK, ONWARD) == [True, False]  # each template for itself
    assert learned() == []


def test_alike_questions_are_one_template() -> None:
    untold = others(ALL.format("Arrival"), [], "Arrival")
    assert learned(BACK, untold) == [True, True]
    against = others(ALL.format("Arrival"), ["Her"], "Arrival")
    assert learned(against, BACK) == [None, None]  # one for, one against
    by_key = others(ALL.format("Adaptation."), ["Adaptation", "Her"], "Adaptation.", entity="Adaptation")
    by_label = others(ALL.format("Adaptation."), ["Adaptation", "Her"], "Adaptation.")
    assert learned(by_key) == learned(by_label) == [True]


def test_what_is_stated_stays() -> None:
    assert BACK.pattern is not None
    stated = Question(
        BACK.text, answers=BACK.answers, pattern=Pattern.of(*BACK.pattern.triples, target="film", revisits=False)
    )
    assert learned(stated) == [False]
    assert learned(Question("Who?", answers=("Her",))) == [None]


@pytest.mark.parametrize(
    "pattern",
    [
        Pattern.of(("Her", BY, X), (FILM, BY, X), ("Her", STAR, "Adams"), target="film"),
        Pattern.of(("Her", BY, X), (FILM, Unknown("r"), X), target="film"),
        Pattern.of((FILM, BY, X), target="film"),
        Pattern.of(("Her", BY, X), (FILM, BY, X), target="x"),
        Pattern.of(("Her", BY, X), (FILM, BY, Unknown("y")), target="film"),
        Pattern.of(("Her", "born_in", X), target="x"),
        Pattern.of(("nobody", BY, X), (FILM, BY, X), target="film"),
    ],
)
def test_what_is_no_walk_of_the_graph_tells_nothing(pattern: Pattern) -> None:
    assert learned(Question("?", answers=("Her", "Adaptation"), pattern=pattern)) == [None]
