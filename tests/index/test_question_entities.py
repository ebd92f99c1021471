"""What a question is about: entities given or found, and the question without them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph
from kg_retrievers.graph import Known
from kg_retrievers.index import EntityLinker, QuestionEntity, mask, question_entities
from kg_retrievers.index.linking import MASK, find_name
from kg_retrievers.testing import tiny_graph

DUNES = ("Dune (1984)", "Dune (2021)")


def linker_on(graph: KnowledgeGraph) -> EntityLinker:
    return EntityLinker(GraphIndex.build(graph, HashedEmbeddings()))


@pytest.fixture(scope="module")
def linker() -> EntityLinker:
    return linker_on(tiny_graph())


# --- found ---


def test_all_entities_of_a_label_fit_equally_well(linker: EntityLinker) -> None:
    (dune,) = question_entities(linker, "Who directed Dune?")
    assert (dune.name, dune.entities, dune.best, dune.given) == ("Dune", DUNES, 2, False)
    assert dune.term == Known("Dune")


def test_a_name_written_exactly_is_better_than_one_but_for_case() -> None:
    linker = linker_on(KnowledgeGraph.from_triples([("The Fly", "year", "1986"), ("The fly", "year", "1958")]))
    for name, keys in (("The fly", ("The fly", "The Fly")), ("The Fly", ("The Fly", "The fly"))):
        (found,) = question_entities(linker, f"When was {name} released?")
        assert (found.name, found.entities, found.best) == (name, keys, 1)
    (found,) = question_entities(linker, "When was the fly released?")
    assert (set(found.entities), found.best) == ({"The Fly", "The fly"}, 2)


def test_the_likeliest_comes_first_wherever_it_stands(linker: EntityLinker) -> None:
    question = "did spike jonze direct Her?"
    her, jonze = question_entities(linker, question)
    assert (her.entities, jonze.entities) == (("Her",), ("Spike Jonze",))
    assert [question[found.start : found.end] for found in (her, jonze)] == ["Her", "spike jonze"]
    assert [mention.text for mention in linker.link(question)] == ["spike jonze", "Her"]


def test_an_alias_is_found_under_its_own_name(linker: EntityLinker) -> None:
    (found,) = question_entities(linker, "What is the genre of Spirited Away?")
    assert (found.name, found.entities) == ("Spirited Away", ("Q155653",))


# --- given ---


def test_given(linker: EntityLinker) -> None:
    """What is given counts, and nothing else that the question names."""
    (found,) = question_entities(linker, "Did Spike Jonze direct Her?", ["Her"])
    assert found == QuestionEntity(start=23, end=26, name="Her", entities=("Her",), best=1, given=True)
    assert found.term == Known("Her", entity="Her")


@pytest.mark.parametrize(
    ("question", "span"),
    [
        ("Wer hat 千と千尋の神隠し gedreht?", (8, 16)),  # by its label
        ("Who directed Q155653?", (13, 20)),  # by its key
        ("Who directed SPIRITED AWAY?", (13, 26)),  # by an alias, whatever the case
        ("Who directed Spirited Away, 千と千尋の神隠し?", (28, 36)),  # the label before the alias
        ("Who directed Spirited Away (Q155653)?", (28, 35)),  # the key before the alias
        ("Who directed Spirited Awayness?", (31, 31)),  # not as a part of a word
    ],
)
def test_where_a_given_entity_stands(linker: EntityLinker, question: str, span: tuple[int, int]) -> None:
    (found,) = question_entities(linker, question, ["Q155653"])
    assert (found.start, found.end) == span
    assert found.name == "千と千尋の神隠し"
    assert found.term == Known("千と千尋の神隠し", entity="Q155653")


@pytest.mark.parametrize("keys", [DUNES, DUNES[::-1]])
def test_given_entities_of_one_label_are_one(linker: EntityLinker, keys: tuple[str, ...]) -> None:
    """Of several, any may be meant, so that no pattern pins one."""
    (found,) = question_entities(linker, "Who directed Dune?", keys)
    assert found == QuestionEntity(start=13, end=17, name="Dune", entities=keys, best=2, given=True)
    assert found.term == Known("Dune")


# --- without them ---


@given(st.text(max_size=30), st.lists(st.integers(0, 30), max_size=8), st.randoms(use_true_random=False))
def test_what_stands_between_the_spans_stays(question: str, cuts: list[int], random: object) -> None:
    marks = sorted({min(cut, len(question)) for cut in cuts})
    spans = list(zip(marks[::2], marks[1::2], strict=False))
    kept, end = [], 0
    for start, stop in spans:
        kept.append(question[end:start])
        end = stop
    expected = MASK.join([*kept, question[end:]])
    random.shuffle(spans)  # type: ignore[attr-defined]
    assert mask(question, spans) == " ".join(expected.split())


@pytest.mark.parametrize(
    ("name", "text", "span"),
    [
        ("Her", "is Her her?", (3, 6)),  # the first
        ("Her", "is Hero here?", None),
        ("Her", "is _Her_ here?", None),  # an underscore is a letter
        ("her", "HER", (0, 3)),
        ("C++ (a film)", "who made c++ (A Film)?", (9, 21)),  # no signs of a regular expression
        ("[REC]", "who made [REC]?", (9, 14)),
        ("!!!", "who is !!!", (7, 10)),
        ("Amélie", "Amélie?", (0, 6)),
        ("千と千尋", "千と千尋の神隠し", None),
        ("Her", "", None),
    ],
)
def test_find_name(name: str, text: str, span: tuple[int, int] | None) -> None:
    assert find_name(name, text) == span


@pytest.mark.parametrize(
    ("question", "span"),
    [
        ("Who directed alien resurection?", (13, 30)),  # misspelt
        ("What did Kaufman write?", (9, 16)),  # short
        ("Who directed alien-resurrection?", (13, 31)),  # in other signs
        ("Who is it?", (10, 10)),
        (" ", (1, 1)),
    ],
)
def test_where_a_given_entity_is_named_in_other_letters(
    linker: EntityLinker, question: str, span: tuple[int, int]
) -> None:
    (found,) = question_entities(
        linker, question, ["Charlie Kaufman" if "Kaufman" in question else "Alien Resurrection"]
    )
    assert (found.start, found.end, found.given) == (*span, True)
