"""Questions as models are trained on them: which can be used, and why others cannot."""

from __future__ import annotations

import pytest

from kg_retrievers.datasets import Question
from kg_retrievers.graph import Triple
from kg_retrievers.index import GraphIndex, HashedEmbeddings
from kg_retrievers.testing import tiny_graph
from kg_retrievers.training.dataset import TrainingQuestion, TrainingQuestions, training_questions

TINY = GraphIndex.build(tiny_graph(), HashedEmbeddings(32))


def found_in(*questions: Question, max_hops: int = 3) -> TrainingQuestions:
    return training_questions(TINY, questions, max_hops)


def places(*keys: str) -> tuple[int, ...]:
    return tuple(TINY.graph.entities.find(key) for key in keys)


def test_entities_are_given_or_linked() -> None:
    """What is given counts, and nothing else that the question names."""
    found = found_in(
        Question("Who directed Her?", answers=("Spike Jonze",)),
        Question("Did Spike Jonze direct Her?", ("Her",), ("Spike Jonze",)),
        Question("Who directed it?", ("Her",), ("Spike Jonze",)),
        Question("Who directed Dune?", answers=("Denis Villeneuve", "David Lynch")),
    )
    dunes = places("Dune (1984)", "Dune (2021)")
    assert found == TrainingQuestions(
        [
            TrainingQuestion("Who directed _?", places("Her"), places("Spike Jonze"), 0),
            TrainingQuestion("Did Spike Jonze direct _?", places("Her"), places("Spike Jonze"), 0),
            TrainingQuestion("Who directed it?", places("Her"), places("Spike Jonze"), 0),
            TrainingQuestion("Who directed _?", dunes, places("Denis Villeneuve", "David Lynch"), 0),
        ],
        0,
        0,
        0,
    )
    assert str(found) == "4 questions"


def test_whole_questions_and_their_gold_triples() -> None:
    """Of the triples those in the graph, by their ids."""
    fact = next(iter(TINY.graph.triples("Her", "directed_by")))
    question = Question("Who directed Her?", ("Her",), ("Spike Jonze",), triples=(Triple("x", "y", "z"), fact))
    (found,) = training_questions(TINY, [question], 3, mask_entities=False).usable
    assert found.text == "Who directed Her?"
    assert [TINY.graph.triple(triple) for triple in found.triples] == [fact]


def test_why_questions_are_left_out() -> None:
    found = found_in(
        Question("Who directed it?", answers=("Spike Jonze",)),  # names nothing
        Question("Who directed Her?", ("Hero",), ("Spike Jonze",)),  # what is given is not looked for
        Question("Who directed Her?", answers=("Hero",)),
        Question("Who directed Her?"),
        Question("Who directed Her?", answers=("Denis Villeneuve",)),  # in another part of the graph
        Question("Who starred in Her?", answers=("Her",)),  # nothing to find
        Question("What is a Western?", answers=("Her",)),  # without facts
        Question("Who wrote Adaptation?", answers=("Charlie Kaufman",)),
    )
    assert found.usable == [TrainingQuestion("Who wrote _?", places("Adaptation"), places("Charlie Kaufman"), 0)]
    assert (found.without_entities, found.without_answers, found.unreachable) == (2, 2, 3)
    assert str(found) == (
        "1 question; not used: 2 name no entity of the graph, 2 have no answer that is a key of the graph, "
        "3 have no answer near their entities"
    )


def test_answers_and_entities_that_are_not_in_the_graph() -> None:
    """Those that are stay; missing answers are counted, repeated ones are not."""
    found = found_in(
        Question("Who starred in Amélie?", ("Amelie", "Amélie"), ("Audrey Tautou", "Nobody", "Audrey Tautou", "None"))
    )
    assert found.usable == [TrainingQuestion("Who starred in _?", places("Amélie"), places("Audrey Tautou"), 2)]


def test_an_entity_may_be_one_of_several_answers() -> None:
    found = found_in(Question("What did Spike Jonze make?", answers=("Spike Jonze", "Her")))
    assert [question.answers for question in found.usable] == [places("Spike Jonze", "Her")]


def test_own_entities_may_count_as_answers() -> None:
    """Where they stand, and no answer that is in another part of the graph."""
    asked = Question("Who starred in Her?", answers=("Her",)), Question("Who?", ("Her",), ("Denis Villeneuve",))
    found = training_questions(TINY, asked, 3, own_entities=True)
    assert found == TrainingQuestions([TrainingQuestion("Who starred in _?", places("Her"), places("Her"), 0)], 0, 0, 1)


@pytest.mark.parametrize(("max_hops", "usable"), [(0, 0), (1, 0), (2, 0), (3, 1), (99, 1)])
def test_answers_beyond_max_hops(max_hops: int, usable: int) -> None:
    """Her, Spike Jonze, Adaptation, Charlie Kaufman."""
    found = found_in(Question("Who?", ("Her",), ("Charlie Kaufman",)), max_hops=max_hops)
    assert (len(found.usable), found.unreachable) == (usable, 1 - usable)
