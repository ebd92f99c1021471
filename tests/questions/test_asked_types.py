"""The noun of a question that names a type of the graph limits what answers it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kg_retrievers import GraphIndex, KnowledgeGraph, SimGRAGRetriever, default_embeddings
from kg_retrievers.errors import NoEvidenceError
from kg_retrievers.graph import Pattern
from kg_retrievers.methods.sg_rag.retriever import CypherRetriever
from kg_retrievers.questions.reader import QuestionReader
from kg_retrievers.questions.reading import TypeNouns

FACTS = [
    ("Blue Jug", "maker", "Ann Lee"),
    ("Red Jug", "maker", "Ann Lee"),
    ("Winter Fair", "maker", "Ann Lee"),
    ("Summer Fair", "maker", "Ben Oak"),
    ("Spring Fair", "maker", "Ben Oak"),
    ("Loose Sheet", "maker", "Cleo Marsh"),
    ("Blue Jug", "made in year", "1890"),
    ("Red Jug", "made in year", "1912"),
    ("Winter Fair", "made in year", "1888"),
    ("Summer Fair", "made in year", "1925"),
    ("Spring Fair", "made in year", "1926"),
    ("Blue Jug", "on loan", "false"),
    ("Red Jug", "on loan", "true"),
    ("Winter Fair", "on loan", "false"),
    ("Summer Fair", "on loan", "false"),
    ("Spring Fair", "on loan", "true"),
    ("Blue Jug", "kept in", "East Hall"),
    ("Red Jug", "kept in", "East Hall"),
    ("Summer Fair", "kept in", "West Hall"),
]
JUGS, POSTERS, MAKERS = ("Blue Jug", "Red Jug"), ("Winter Fair", "Summer Fair", "Spring Fair"), ("Ann Lee", "Ben Oak")
TYPES = {key: ["Jug"] for key in JUGS} | {key: ["ex:ArtPoster"] for key in POSTERS} | {key: ["maker"] for key in MAKERS}
INDEX = GraphIndex.build(KnowledgeGraph.from_triples(FACTS, types=TYPES), default_embeddings())
UNTYPED = GraphIndex.build(KnowledgeGraph.from_triples(FACTS), default_embeddings())

QUESTIONS: list[tuple[str, object, set[str]]] = [
    ("Which posters did Ann Lee make?", None, {"Winter Fair"}),
    ("Which jugs did Ann Lee make?", None, {"Blue Jug", "Red Jug"}),
    ("Which art posters did Ben Oak make?", None, {"Summer Fair", "Spring Fair"}),
    ("List all JUGS that Ann Lee made.", None, {"Blue Jug", "Red Jug"}),
    ("How many posters did Ann Lee make?", 1, set()),
    ("How many posters are kept in the East Hall?", 0, set()),
    ("Are there any jugs by Ben Oak?", False, set()),
    ("Which posters were made before 1900?", None, {"Winter Fair"}),
    ("Which jugs are not on loan?", None, {"Blue Jug"}),
    ("Which maker made the most jugs?", 2, {"Ann Lee"}),
]


@pytest.fixture(scope="module")
def in_database() -> Iterator[CypherRetriever]:
    """The graph in LadybugDB."""
    pytest.importorskip("ladybug")
    from kg_retrievers.database.ladybug import LadybugExecutor

    with LadybugExecutor.from_graph(INDEX.graph) as executor:
        yield CypherRetriever.from_index(INDEX, executor=executor, min_confidence=0.0, on_refusal="raise")


@pytest.fixture(scope="module")
def in_memory() -> SimGRAGRetriever:
    """The graph in memory."""
    return SimGRAGRetriever.from_index(INDEX, min_confidence=0.0, on_refusal="raise")


def answers(retriever: SimGRAGRetriever | CypherRetriever, question: str) -> tuple[object, set[str]]:
    """Return the value and the answers of the first Document."""
    first = retriever.invoke(question)[0].metadata
    return first["value"], {*first["answers"]}


@pytest.mark.parametrize("held", ["in_memory", "in_database"])
@pytest.mark.parametrize(("question", "value", "found"), QUESTIONS)
def test_answers_are_of_the_type(
    request: pytest.FixtureRequest, held: str, question: str, value: object, found: set[str]
) -> None:
    """Of what the relations lead to, only things of the type that the noun names answer or count."""
    got, named = answers(request.getfixturevalue(held), question)
    assert got == value or (value is None and not isinstance(got, int))
    assert not found or named == found


def test_refuses_where_only_other_types_fit(in_memory: SimGRAGRetriever, in_database: CypherRetriever) -> None:
    """Ben Oak made posters alone: these are no jugs, and no farther relation or entity is taken for an answer."""
    for retriever in (in_memory, in_database):
        with pytest.raises(NoEvidenceError):
            retriever.invoke("Which jugs did Ben Oak make?")


def test_things_without_a_type_answer_where_none_of_the_type_does(in_memory: SimGRAGRetriever) -> None:
    """The graph may not say the type of everything."""
    assert answers(in_memory, "Which posters did Cleo Marsh make?")[1] == {"Loose Sheet"}


def pattern_of(index: GraphIndex, question: str) -> Pattern:
    """Return what a question is read as."""
    return QuestionReader(index).read(question).pattern


@pytest.mark.parametrize("question", [question for question, value, _ in QUESTIONS if value is not False])
def test_nothing_changes_without_types(question: str) -> None:
    """A graph without types has no typed patterns."""
    pattern = pattern_of(UNTYPED, question)
    assert pattern.typed is None
    assert all(node.type is None for node in pattern.nodes)


@pytest.mark.parametrize(
    "question", ["Which things did Ann Lee make?", "Who made Blue Jug?", "Which jug makers are there?"]
)
def test_other_nouns_say_no_type(question: str) -> None:
    """A noun that is the name of no type limits nothing."""
    assert TypeNouns(INDEX.graph).asked(question) is None


def test_typed_patterns_are_read_back() -> None:
    """`typed` is part of a pattern and of its JSON."""
    pattern = pattern_of(INDEX, "Which posters did Ann Lee make?")
    assert pattern.typed is True
    assert Pattern.from_dict(pattern.to_dict()) == pattern


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Which films star her?", "film"),
        ("What film did she make?", "film"),
        ("which FILM stars her", "film"),
        ("Tell me the films that she made", "film"),
        ("Name any cities of the north", "city"),
        ("Show me all oil paintings", "OilPainting"),
        ("Show me all paintings", "OilPainting"),
        ("Which people were born there?", "http://x.org/Person"),
        ("Which ski stations are there?", None),
        ("Which stations are there?", None),
        ("Which film genre is it?", None),
        ("Which film's director is it?", None),
        ("Which film stars were born there?", None),
        ("Which films and cities are there?", None),
        ("How many films?", None),
        ("Who made films?", None),
        ("Who made all films?", None),
        ("Who made the film that runs there?", None),
        ("The hall in which films run", None),
        ("What is the city of the film?", None),
    ],
)
def test_finds_the_noun(question: str, kind: str | None) -> None:
    """The noun after a word that asks, in singular or plural; "film genre" asks for no film."""
    names = ["film", "city", "OilPainting", "http://x.org/Person", "tram station", "bus_station"]
    graph = KnowledgeGraph.from_triples([("A", "beside", "B")], types={"A": names})
    assert TypeNouns(graph).asked(question) == kind
