"""Questions of every shape, without a language model: in memory and in a database alike."""

from __future__ import annotations

from typing import Any

import pytest

from kg_retrievers import GraphIndex, KnowledgeGraph, SimGRAGRetriever, answer_chain, default_embeddings
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import LowConfidenceError, RefusalError

FACTS = [
    *[(ship, "home port", port) for ship, port in [("Aurora", "Oslo"), ("Borealis", "Oslo"), ("Vega", "Malmo")]],
    *[(ship, "length", length) for ship, length in [("Aurora", "120 m"), ("Borealis", "90 m"), ("Vega", "90 m")]],
    *[(ship, "built by", "Nordyard") for ship in ("Aurora", "Vega")],
    *[(port, "located in", "Norway") for port in ("Oslo", "Bergen")],
    *[(port, "depth", depth) for port, depth in [("Oslo", "12 m"), ("Bergen", "11 m"), ("Malmo", "7 m")]],
    *[(f"pilot {number}", "works in", "Oslo") for number in range(200)],
    ("Malmo", "located in", "Sweden"),
    ("Nordyard", "founded", "1921"),
    ("Nordyard", "director", "Ann Holt"),
    ("Oslo", "population", "709,000"),
]
KINDS = {
    "Port": ["Oslo", "Bergen", "Malmo"],
    "Ferry": ["Aurora", "Vega"],
    "Freighter": ["Borealis"],
    "Country": ["Norway", "Sweden"],
    "Shipyard": ["Nordyard"],
    "Person": ["Ann Holt", *(f"pilot {number}" for number in range(200))],
}
BELOW = [("Ferry", "rdfs:subClassOf", "Ship"), ("Freighter", "rdfs:subClassOf", "Ship")]


def typed() -> KnowledgeGraph:
    """The graph with types, of which two are below another."""
    types = {thing: [kind] for kind, things in KINDS.items() for thing in things}
    return KnowledgeGraph.from_triples([*FACTS, *BELOW], types=types)


@pytest.fixture(scope="module")
def index() -> GraphIndex:
    return GraphIndex.build(typed(), default_embeddings())


@pytest.fixture(scope="module")
def retriever(index: GraphIndex) -> SimGRAGRetriever:
    return SimGRAGRetriever.from_index(index, on_refusal="raise")


def table(columns: list[str], *rows: list[Any]) -> dict[str, Any]:
    return {"columns": columns, "rows": [*rows]}


SHAPES: list[tuple[str, Any, set[str]]] = [
    ("List all ports.", None, {"Oslo", "Bergen", "Malmo"}),
    ("Which ships are there?", None, {"Aurora", "Borealis", "Vega"}),
    ("ports in Norway", None, {"Oslo", "Bergen"}),
    ("How many ships are there?", 3, set()),
    ("number of ports", 3, set()),
    ("How many people live in Oslo?", None, {"709,000"}),
    ("What is the average depth of the ports?", 10, set()),
    ("total length of all ships", 300, set()),
    ("In what range do the lengths of the ships lie?", [90, 120], set()),
    (
        "How many ports are there per country?",
        table(["country", "count"], ["Norway", 2], ["Sweden", 1]),
        {"Norway", "Sweden"},
    ),
    (
        "average length of the ships by home port",
        table(["home port", "mean"], ["Oslo", 105], ["Malmo", 90]),
        {"Oslo", "Malmo"},
    ),
    (
        "What is the deepest port of each country?",
        table(["country", "entity 1", "max"], ["Norway", ["Oslo"], 12], ["Sweden", ["Malmo"], 7]),
        {"Norway", "Sweden"},
    ),
    ("Which port is deeper than 11 m?", None, {"Oslo"}),
    ("What share of the ports is not in Norway?", 100 / 3, set()),
    ("Top 2 ports by depth", [12, 11], {"Oslo", "Bergen"}),
    ("Which ship has the second-greatest length?", [90, 90], {"Borealis", "Vega"}),
    ("What percentage of the ports are in Norway?", 200 / 3, set()),
    ("What share of the ships are freighters?", 100 / 3, set()),
    (
        "Who built Vega, and when was it founded?",
        table(["built by", "founded"], ["Nordyard", 1921]),
        {"Nordyard", "1921"},
    ),
    (
        "the director and the founding year of Nordyard",
        table(["director", "founded"], ["Ann Holt", 1921]),
        {"Ann Holt", "1921"},
    ),
    ("Of the ships built by Nordyard, how many percent have their home port in Oslo?", 50, set()),
    ("On average, how many ships does a port have?", 1.5, set()),
    ("Nations: how many are there?", 2, set()),
    ("How many metres is Aurora long?", None, {"120 m"}),
    ("How many shipyards were founded in each decade?", table(["decade", "count"], ["1920s", 1]), set()),
    ("Nordyard: director, founding year", table(["director", "founded"], ["Ann Holt", 1921]), {"Ann Holt", "1921"}),
    ("Do Aurora and Borealis have the same home port?", True, set()),
    ("Were Aurora and Borealis built by the same shipyard?", None, set()),
    (
        "What do Aurora and Vega have in common?",
        table(["relation", "value"], ["type", "Ferry"], ["built by", "Nordyard"]),
        {"Nordyard"},
    ),
    (
        "What is the difference between Oslo and Bergen?",
        table(["relation", "Oslo", "Bergen"], ["depth", [12], [11]]),
        set(),
    ),
]


@pytest.mark.parametrize(("question", "value", "answers"), SHAPES, ids=[shape[0] for shape in SHAPES])
def test_a_question_of_each_shape(retriever: SimGRAGRetriever, question: str, value: Any, answers: set[str]) -> None:
    if question.startswith("Were"):  # Borealis has no builder
        with pytest.raises(RefusalError):
            retriever.invoke(question)
        return
    metadata = retriever.invoke(question)[0].metadata
    found = metadata["value"]
    assert (pytest.approx(found) if isinstance(value, float) else found) == value
    assert {*metadata["answers"]} == answers


def test_chains_join_things(retriever: SimGRAGRetriever) -> None:
    (document,) = retriever.invoke("How is Aurora connected to Vega?")
    assert document.page_content == "Aurora -> built by -> Nordyard\nVega -> built by -> Nordyard"
    assert document.metadata["details"]["paths"] == [["Aurora", [0, 1]]]
    assert document.metadata["details"]["chains"] == 1
    (document,) = retriever.invoke("How is Borealis connected to Vega?")  # both are 90 m long, which joins nothing
    assert "90 m" not in document.page_content
    assert len(document.metadata["triples"]) == 4
    (through,) = retriever.invoke("How are Oslo and Nordyard connected through a ship?")
    assert through.metadata["answers"] == ["Aurora"]
    with pytest.raises(RefusalError):
        retriever.invoke("How is Sweden connected to Ann Holt through a country?")


def test_a_description_keeps_to_its_budget(retriever: SimGRAGRetriever) -> None:
    (document,) = retriever.invoke("Tell me about Oslo.")
    metadata = document.metadata
    assert document.page_content.startswith("Types: Port\nLeft out: ")
    assert metadata["details"]["left_out"] == {
        "-works in": 200 - sum(r == "works in" for _, r, _ in metadata["triples"])
    }
    assert {"located in", "depth", "population", "home port"} <= {relation for _, relation, _ in metadata["triples"]}
    assert metadata["truncated"]


def test_an_overview_counts_kinds_without_classes(retriever: SimGRAGRetriever) -> None:
    value = retriever.invoke("What is in this graph?")[0].metadata["value"]
    assert value["rows"][:3] == [["Person", 201], ["Port", 3], ["Ship", 3]]
    about = retriever.invoke("What can I ask about a port?")[0].metadata["value"]
    assert ["depth", 3, 12] in about["rows"]
    assert {row[0] for row in about["rows"]} >= {"located in", "home port (of)"}


@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("Who built Vega, and what did it cost?", "what did it cost"),
        ("the director and the phone number of Nordyard", "phone number"),
        ("Who built Vega, when, where, how long is it, and who bought it?", "who bought"),
    ],
)
def test_no_part_is_left_out_in_silence(retriever: SimGRAGRetriever, question: str, part: str) -> None:
    with pytest.raises(LowConfidenceError) as refused:
        retriever.invoke(question)
    assert "has a part that was not understood" in str(refused.value)
    assert part in str(refused.value)


@pytest.mark.parametrize(
    "question", ["Tell me who wrote the book about Oslo.", "What links to the crew of Aurora and Vega?"]
)
def test_further_words_are_not_overheard(index: GraphIndex, question: str) -> None:
    documents = SimGRAGRetriever.from_index(index, min_confidence=0.0).invoke(question)
    kinds = {(one.metadata["details"]["pattern"].get("operation") or {}).get("kind") for one in documents}
    assert kinds.isdisjoint({"describe", "connect"})


@pytest.mark.parametrize(
    "question",
    [
        "What is the average salary of the ships?",
        "How many lighthouses are there?",
        "Which ship has the best safety record?",
        "Which ship is the longest, and who owns it?",
        "Which shipyards were founded last year?",
        "Which ports are deeper than 0.01 km?",
        "Which ports are deeper than 30 feet?",
        "What share of the ports by country?",
        "In which decade were the most shipyards founded?",
        "How many ports and ships are there?",
        "For each country except Norway, how many ports are there?",
        "What is the average depth of ports outside Norway?",
        "What is the population of the shallowest port?",
        "Which ports are deeper than average?",
        "What is the average depth and population of the ports?",
        "List the ports by depth from the shallowest to the deepest",
        "How many metres longer is Aurora than the longest ship?",
        "How many weeks long is Aurora?",
        "Which ships have the same decade of construction as Vega?",
    ],
)
def test_what_the_graph_lacks_is_refused(retriever: SimGRAGRetriever, question: str) -> None:
    with pytest.raises(RefusalError):
        retriever.invoke(question)


def test_a_long_list_beside_a_colon_ends(retriever: SimGRAGRetriever) -> None:
    """With a pattern that goes back, six names took minutes."""
    with pytest.raises(RefusalError):
        retriever.invoke("Nordyard: " + "director, " * 150 + "director 7")


def test_answers_show_tables(index: GraphIndex) -> None:
    answer = answer_chain(SimGRAGRetriever.from_index(index)).invoke("How many ports are there per country?")
    assert answer == "| country | count |\n| --- | --- |\n| Norway | 2 |\n| Sweden | 1 |"


def said(retriever: BaseKGRetriever, question: str) -> Any:
    """What a retriever says: values, answers and facts of all Documents, or its refusal."""
    try:
        documents = retriever.invoke(question)
    except RefusalError as error:
        return type(error).__name__
    return [
        (document.metadata["value"], {*document.metadata["answers"]}, {*map(tuple, document.metadata["triples"])})
        for document in documents
    ]


WHOLE = ["How is Aurora connected to Vega?", "Tell me about Nordyard.", "What is in this graph?"]


@pytest.mark.parametrize("kinds", ["types", "facts"])
def test_a_database_says_the_same(kinds: str) -> None:
    pytest.importorskip("ladybug")
    from kg_retrievers import CypherRetriever

    if kinds == "types":
        graph = typed()
    else:
        said_so = [(thing, "instance of", kind) for kind, things in KINDS.items() for thing in things]
        graph = KnowledgeGraph.from_triples([*FACTS, *said_so])
    index = GraphIndex.build(graph, default_embeddings())
    in_memory = SimGRAGRetriever.from_index(index, on_refusal="raise")
    in_database = CypherRetriever.from_index(index, on_refusal="raise")
    for question in [*(shape[0] for shape in SHAPES), *WHOLE]:
        assert without_facts(said(in_database, question)) == without_facts(said(in_memory, question)), question
    for question in WHOLE:
        assert said(in_database, question) == said(in_memory, question), question


def without_facts(outcome: Any) -> Any:
    return outcome if isinstance(outcome, str) else [one[:2] for one in outcome]
