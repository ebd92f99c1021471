"""Gold answers as a user writes them: keys, labels, values, and names that match nothing."""

from __future__ import annotations

import pytest

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, Question
from kg_retrievers.index.question_keys import with_keys

GRAPH = KnowledgeGraph.from_triples(
    [("Q1", "made_by", "Q2"), ("Q1", "released", "2013-12-18"), ("Q1", "awards", "3"), ("Q4", "made_by", "Q5")],
    labels={"Q1": "Her", "Q2": "Spike Jonze", "Q4": "Dune", "Q5": "David Lynch", "Q6": "Dune"},
    aliases={"Q2": ["Adam Spiegel"]},
)
INDEX = GraphIndex.build(GRAPH, HashedEmbeddings(64))


@pytest.mark.parametrize(
    ("written", "answers", "value"),
    [
        (("Q2",), ("Q2",), None),
        (("Spike Jonze",), ("Q2",), None),
        (("Adam Spiegel", "David Lynch"), ("Q2", "Q5"), None),
        (("Spike Jonze", "Adam Spiegel"), ("Q2",), None),
        (("December 18, 2013",), ("2013-12-18",), None),
        (("3",), ("3",), None),
        (("12",), (), 12),
        (("yes",), (), True),
        (("No",), (), False),
        (("Dune",), ("Dune",), None),
        (("Nobody",), ("Nobody",), None),
    ],
)
def test_answers_are_keys_names_or_values(written: tuple[str, ...], answers: tuple[str, ...], value: object) -> None:
    [found] = with_keys(INDEX, [Question("Who?", answers=written)]).questions
    assert (found.answers, found.value) == (answers, value)


def test_names_of_question_entities_become_keys() -> None:
    [found] = with_keys(INDEX, [Question("Who made Her?", seed_entities=("Her",))]).questions
    assert found.seed_entities == ("Q1",)


def test_what_cannot_be_matched_is_counted_and_named() -> None:
    written = ["Q2", "yes", "Spike Jonz", "Dune", "Nobody", "Noone"]
    found = with_keys(INDEX, [Question(f"question {at}", answers=(name,)) for at, name in enumerate(written)])
    assert (found.answers, found.lost) == (6, 4)
    assert found.told == (
        "4 of 6 gold answers match no entity of the graph, or several: "
        "'Spike Jonz' (of 'question 2'; nearest: 'Q2', called 'Spike Jonze'); "
        "'Dune' (of 'question 3'; 2 entities bear it: 'Q4', 'Q6'); 'Nobody' (of 'question 4') and 1 more. "
        "Write keys, or names that one entity has."
    )


def test_nothing_is_told_if_all_is_matched() -> None:
    assert with_keys(INDEX, [Question("Who made Her?", answers=("Spike Jonze",)), Question("What?")]).told == ""


def test_a_name_of_two_entities_or_a_length_is_no_number() -> None:
    facts = [("f1", "directed by", "p"), ("f2", "directed by", "p")]
    graph = KnowledgeGraph.from_triples(facts, labels={"f1": "1984", "f2": "1984"})
    found = with_keys(
        GraphIndex.build(graph), [Question("Which?", answers=(text,)) for text in ("1984", "13 km", "13")]
    )
    assert [one.value for one in found.questions] == [None, None, 13]
    assert found.lost == 2


def test_a_name_that_is_answer_and_question_entity_is_one_lost_answer() -> None:
    found = with_keys(INDEX, [Question("Who is Noone?", seed_entities=("Noone",), answers=("Noone",))])
    assert (found.answers, found.lost) == (1, 1)
