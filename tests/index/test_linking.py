"""EntityLinker: what is found in questions, what is not, and what is most likely meant."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.index import EntityLinker, GraphIndex, HashedEmbeddings, LinkedEntity, Mention, names

FILMS = [
    "Her", "It", "Up", "Who", "What?", "The Film", "Film", "1984", "$", "!!!", "?", "Inferno", "INFERNO", "inferno",
    "Spider-Man", "The Matrix", "The Matrix Reloaded", "Matrix", "Amélie", "Some Mother's Son", "Indiana", "Diana",
    "What Is It?", "Not with My Wife, You Don't!", "The Girl in the Park", "Große Straße",
]  # fmt: skip
PEOPLE = ["Spike Jonze", "Tom Hanks", "Michael", "Ludwig_II_of_Bavaria", "Kirk Douglas", "Michael Douglas", "director"]


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    triples = [(film, "directed_by", person) for film in FILMS for person in PEOPLE[:2]]
    triples += [(person, "born_in", "place/1") for person in PEOPLE]
    triples += [("m1", "directed_by", "Tom Hanks"), ("m2", "directed_by", "Tom Hanks")]
    return KnowledgeGraph.from_triples(
        triples,
        labels={"m1": "Solaris", "m2": "Solaris", "place/1": "New York City"},
        aliases={"place/1": ["The Big Apple", "NYC"], "m2": ["Соля́рис"]},
    )


@pytest.fixture(scope="module")
def linker(graph: KnowledgeGraph) -> EntityLinker:
    return EntityLinker(GraphIndex.build(graph, HashedEmbeddings()))


def links(linker: EntityLinker, question: str) -> list[Mention]:
    """Return the mentions in a question; none if it is refused."""
    with suppress(EntityLinkingError):
        return linker.link(question)
    return []


def found(linker: EntityLinker, question: str) -> list[tuple[str, str, list[str]]]:
    """Return the text, the manner and the best entities of each mention, having checked the positions."""
    mentions = links(linker, question)
    assert [mention.start for mention in mentions] == sorted(mention.start for mention in mentions)
    assert sorted(mention.rank for mention in mentions) == list(range(1, len(mentions) + 1))
    for mention in mentions:
        assert question[mention.start : mention.end] == mention.text
        scores = [candidate.score for candidate in mention.candidates]
        assert scores == sorted(scores, reverse=True)
        assert all(0 < score <= 1 for score in scores)
    return [(mention.text, mention.candidates[0].how, best(mention)) for mention in mentions]


def best(mention: Mention) -> list[str]:
    return [one.entity for one in mention.candidates if one.score == mention.candidates[0].score]


def topic(mentions: Sequence[Mention]) -> Mention:
    return next(mention for mention in mentions if mention.rank == 1)


# --- exact and caseless -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "text", "how", "entities"),
    [
        ("who directed Spider-Man?", "Spider-Man", "exact", ["Spider-Man"]),
        ("who directed spider-man?", "spider-man", "case", ["Spider-Man"]),
        ("who directed spiderman?", "spiderman", "case", ["Spider-Man"]),
        ("who directed amelie", "amelie", "case", ["Amélie"]),
        ("who directed Ame\u0301lie", "Ame\u0301lie", "case", ["Amélie"]),
        ("who directed grosse strasse", "grosse strasse", "case", ["Große Straße"]),
        ("who directed some mothers son", "some mothers son", "case", ["Some Mother's Son"]),
        ("the wife of Ludwig II of Bavaria", "Ludwig II of Bavaria", "case", ["Ludwig_II_of_Bavaria"]),
        ("who was born in the big apple", "the big apple", "case", ["place/1"]),
        ("who was born in NYC", "NYC", "exact", ["place/1"]),
        ("who directed Solaris", "Solaris", "exact", ["m1", "m2"]),
        ("кто снял Солярис", "Солярис", "case", ["m2"]),
        ("who directed 1984", "1984", "exact", ["1984"]),
        ("what genre is $ in", "$", "exact", ["$"]),
        ("who directed What Is It?", "What Is It?", "exact", ["What Is It?"]),
        ("Tom Hanks's films", "Tom Hanks", "exact", ["Tom Hanks"]),
    ],
)
def test_one_mention(linker: EntityLinker, question: str, text: str, how: str, entities: list[str]) -> None:
    assert found(linker, question) == [(text, how, entities)]


def test_the_longest_wins_then_the_first(linker: EntityLinker) -> None:
    assert found(linker, "who made The Matrix Reloaded") == [("The Matrix Reloaded", "exact", ["The Matrix Reloaded"])]
    assert found(linker, "who directed the matrix") == [("the matrix", "case", ["The Matrix"])]
    texts = [text for text, *_ in found(linker, "did Tom Hanks or Spike Jonze direct Her and Up in 1984")]
    assert texts == ["Tom Hanks", "Spike Jonze", "Her", "Up", "1984"]


def test_a_name_that_differs_in_blanks_gives_way(linker: EntityLinker) -> None:
    assert found(linker, "who starred in Diana") == [("Diana", "exact", ["Diana"])]
    assert found(linker, "was spider man filmed in dianas home") == [("spider man", "case", ["Spider-Man"])]


def test_names_that_differ_by_case_are_candidates_with_lower_scores(linker: EntityLinker) -> None:
    (mention,) = linker.link("who directed INFERNO")
    assert mention.candidates[0] == LinkedEntity("INFERNO", "INFERNO", 1.0, "exact")
    assert {(one.entity, one.score, one.how) for one in mention.candidates[1:]} == {
        ("Inferno", 0.9, "case"),
        ("inferno", 0.9, "case"),
    }


# --- function words ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        ("who gave her the thing, what is it and who is up?", []),
        ("What is it?", []),
        ("Who was it?", []),
        ("who directed Her", ["Her"]),
        ("who directed It and Up?", ["It", "Up"]),
        ("which of them is The Film", ["The Film"]),
        ("It stars Tom Hanks", ["Tom Hanks"]),
        ("her", ["her"]),
        ("Who", ["Who"]),
        ("?", ["?"]),
    ],
)
def test_function_words(linker: EntityLinker, question: str, texts: list[str]) -> None:
    assert [text for text, *_ in found(linker, question)] == texts


def test_words_of_the_schema_only_where_there_is_nothing_else(linker: EntityLinker) -> None:
    assert [text for text, *_ in found(linker, "who was the director of inferno")] == ["inferno"]
    assert [text for text, *_ in found(linker, "who was it by the director")] == ["director"]


# --- words and names ---


@pytest.fixture(scope="module")
def words() -> EntityLinker:
    """A graph with films that are called by words."""
    triples = [("Her", "directed_by", "Spike Jonze"), ("Her", "has_genre", "Drama"), ("Jaws", "has_tags", "ginger")]
    triples += [("Together", "directed_by", "Lukas Moodysson"), ("Adaptation", "directed_by", "Spike Jonze")]
    triples += [("Prince", "acted_in", "Her"), ("The Way", "has_genre", "Western"), ("X-Men", "in", "1984")]
    return EntityLinker(GraphIndex.build(KnowledgeGraph.from_triples(triples), HashedEmbeddings()))


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        ("who acted together with Spike Jonze", ["Spike Jonze"]),
        ("who acted together with Spike Jonse", ["Spike Jonse"]),
        ("Who acted Together with Spike Jonze", ["Together", "Spike Jonze"]),
        ("who acted together with spike jonze", ["together", "spike jonze"]),
        ("who acted together in 1984", ["together", "1984"]),  # nor does a number
        ("did Lukas Moodysson direct together", ["Lukas Moodysson", "together"]),  # a fact joins them
        ("is adaptation like Her", ["adaptation", "Her"]),  # two facts do
        ("which drama films did Lukas Moodysson direct", ["drama", "Lukas Moodysson"]),  # a fact points at it
        ("which ginger films did Lukas Moodysson direct", ["ginger", "Lukas Moodysson"]),  # it agrees in case
        ("what has prince to do with Lukas Moodysson", ["Lukas Moodysson"]),
        ("is Lukas Moodysson on the way", ["Lukas Moodysson", "the way"]),  # two words
        ("did Lukas Moodysson see x-men", ["Lukas Moodysson", "x-men"]),
    ],
)
def test_words_beside_names(words: EntityLinker, question: str, texts: list[str]) -> None:
    assert [text for text, *_ in found(words, question)] == texts


# --- rank -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "likeliest"),
    [
        ("is inferno by Tom Hanks", "Tom Hanks"),
        ("is the matrix reloaded like Her", "Her"),
        ("Michael wrote about the matrix", "the matrix"),
        ("did Tom Hanks know Spike Jonse", "Tom Hanks"),
        ("is Diana like Indiana", "Indiana"),
    ],
)
def test_the_likeliest_topic(linker: EntityLinker, question: str, likeliest: str) -> None:
    assert topic(linker.link(question)).text == likeliest


# --- fuzzy ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "text", "entity"),
    [
        ("who is Spike Jonez?", "Spike Jonez", "Spike Jonze"),
        ("Mtrix Reloaded was by whom", "Mtrix Reloaded", None),
        ("films with Michael Duoglas please", "Michael Duoglas", "Michael Douglas"),
        ("what year was The Girl ink the Park released", "The Girl ink the Park", "The Girl in the Park"),
        ("who was born in New Yrok City", "New Yrok City", "place/1"),
    ],
)
def test_typos(linker: EntityLinker, question: str, text: str, entity: str | None) -> None:
    if entity is None:
        with pytest.raises(EntityLinkingError, match="Did you mean: 'The Matrix Reloaded'"):
            linker.link(question)
    else:
        assert found(linker, question) == [(text, "fuzzy", [entity])]
        assert linker.link(question)[0].candidates[0].score < 0.8


# --- nothing ----------------------------------------------------------------------------------------------------------


def test_nothing_found(linker: EntityLinker) -> None:
    question = "who acted with Tim Hunks in the sea"
    with pytest.raises(
        EntityLinkingError, match=rf"No entity .* in '{question}'\. Did you mean: 'Tom Hanks'"
    ) as caught:
        linker.link(question)
    assert caught.value.suggestions == ["Tom Hanks"], "no other name is like a part of the question"


@pytest.mark.parametrize("question", ["", " \n"])
def test_empty_question(linker: EntityLinker, question: str) -> None:
    with pytest.raises(InvalidArgumentError, match="the question is empty"):
        linker.link(question)


# --- resolve ----------------------------------------------------------------------------------------------------------


def test_resolve(linker: EntityLinker) -> None:
    assert linker.resolve(["m1", "Her", "NYC", "New York City", "m1"]) == ["m1", "Her", "place/1", "place/1", "m1"]
    assert linker.resolve([]) == []
    with pytest.raises(EntityLinkingError, match=r"'Solaris' is the name of several .* one of the keys \['m1', 'm2'\]"):
        linker.resolve(["Solaris"])
    with pytest.raises(EntityLinkingError, match=r"'Tom Hank' is no entity .* Did you mean: 'Tom Hanks'"):
        linker.resolve(["Her", "Tom Hank"])
    with pytest.raises(EntityLinkingError, match="'' is no entity key, label or alias of the graph"):
        linker.resolve([""])
    with pytest.raises(InvalidArgumentError, match="wanted a list of entity keys, but got the text 'Her'"):
        linker.resolve("Her")


# --- in general -------------------------------------------------------------------------------------------------------


@given(st.text(min_size=1))
def test_any_text_is_a_question(linker: EntityLinker, question: str) -> None:
    if question.strip():
        links(linker, question)


@given(st.sampled_from(PEOPLE[:-1] + FILMS[11:]))
def test_every_name_is_found_in_a_sentence(linker: EntityLinker, name: str) -> None:
    assert topic(linker.link(f"tell me about {name} and so on")).candidates[0].entity == name


def test_from_many_threads(graph: KnowledgeGraph) -> None:
    linker = EntityLinker(GraphIndex.build(graph, HashedEmbeddings()))
    questions = ["who is Spike Jonez?", "who directed Solaris", "did Tom Hanks direct Her", "who was born in NYC"] * 8
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(linker.link, questions)) == [linker.link(question) for question in questions]


# --- MetaQA -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def metaqa_linker(metaqa_graph: KnowledgeGraph) -> EntityLinker:
    return EntityLinker(GraphIndex.build(metaqa_graph, HashedEmbeddings()))


@pytest.mark.real
@pytest.mark.parametrize("hops", [1, 2, 3])
def test_topics_of_metaqa(metaqa_linker: EntityLinker, data_dir: Path, hops: int) -> None:
    lines = (data_dir / "metaqa" / f"{hops}-hop" / "qa_dev.txt").read_text("utf-8").splitlines()[::10]
    right = 0
    for line in lines:
        question = line.partition("\t")[0]
        wanted = re.search(r"\[(.*)\]", question)
        assert wanted
        mentions = links(metaqa_linker, question.replace("[", "").replace("]", ""))
        right += bool(mentions) and topic(mentions).candidates[0].entity == wanted[1]
    assert right / len(lines) >= 0.997


@pytest.mark.parametrize("size", [1, 3])
def test_names_are_read_in_batches_as_all_at_once(
    graph: KnowledgeGraph, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = names.name_columns(graph)
    monkeypatch.setattr(names, "BATCH", size)
    for name, column in names.name_columns(graph).items():
        assert (name, column.dtype, column.tolist()) == (name, whole[name].dtype, whole[name].tolist())
