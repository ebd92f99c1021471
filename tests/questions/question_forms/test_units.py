"""Questions in the unit that the name of a relation says, and in another one, which is refused."""

from __future__ import annotations

from typing import Any

import pytest

from kg_retrievers import (
    GraphIndex,
    KGRetriever,
    KnowledgeGraph,
    Pattern,
    Question,
    SimGRAGRetriever,
    Unknown,
    default_embeddings,
)
from kg_retrievers.errors import LowConfidenceError
from kg_retrievers.testing import ScriptedChatModel

COLUMNS = {
    "Boat": ("length (m)", "weight_lb", "price_usd", "speed_kmh", "built by"),
    "Lake": ("area_km2", "depth in metres", "salt_percent", "located in"),
    "Crossing": ("durationMinutes", "rowed in", "crosses", "date"),
}
ROWS = {
    "Boat": [
        ("Swift", "12", "220", "9000", "31", "North Yard"),
        ("Heron", "8", "180", "4500", "24", "North Yard"),
        ("Otter", "5", "90", "1200", "18", "South Yard"),
    ],
    "Lake": [
        ("Lake Orr", "41", "120", "3", "Norway"),
        ("Lake Tam", "7", "35", "11", "Norway"),
        ("Lake Uve", "150", "260", "4", "Sweden"),
    ],
    "Crossing": [
        ("Dawn Crossing", "95", "Swift", "Lake Orr", "1999-05-01"),
        ("Dusk Crossing", "140", "Heron", "Lake Tam", "2010-07-02"),
        ("Noon Crossing", "61", "Otter", "Lake Uve", "2015-08-03"),
    ],
}


@pytest.fixture(scope="module")
def retriever() -> SimGRAGRetriever:
    """Boats, lakes and crossings. The names of their relations say the units."""
    facts = [
        (name, relation, value)
        for kind, rows in ROWS.items()
        for name, *values in rows
        for relation, value in zip(COLUMNS[kind], values, strict=True)
    ]
    types = {row[0]: [kind] for kind, rows in ROWS.items() for row in rows}
    types |= {"North Yard": ["Yard"], "South Yard": ["Yard"]}
    index = GraphIndex.build(KnowledgeGraph.from_triples(facts, types=types), default_embeddings())
    return SimGRAGRetriever.from_index(index, on_refusal="raise")


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How long is Swift?", ["12"]),
        ("How long is Swift in metres?", ["12"]),
        ("How many m long is Swift?", ["12"]),
        ("Which boats are longer than 6?", ["Swift", "Heron"]),
        ("Which yards built boats longer than 6 m?", ["North Yard"]),
        ("How heavy is Heron in pounds?", ["180"]),
        ("Which boats weigh less than 200 lb?", ["Heron", "Otter"]),
        ("How much does Heron cost in dollars?", ["4500"]),
        ("How many dollars does the boat Heron cost?", ["4500"]),
        ("How fast is Swift in km/h?", ["31"]),
        ("How big is Lake Orr in square kilometres?", ["41"]),
        ("Is Lake Orr deeper than 50 metres?", True),
        ("Is there a lake deeper than 300 m?", False),
        ("What is the min depth of the lakes?", 35),
        ("How many minutes did the Dawn Crossing take?", ["95"]),
        ("Which crossings before 2012 took more than 90 minutes?", ["Dawn Crossing", "Dusk Crossing"]),
        ("What is the average depth of the lakes in m?", 415 / 3),
        ("What percentage of the lakes are deeper than 100 metres?", 200 / 3),
    ],
)
def test_the_unit_of_a_name_is_answered(retriever: SimGRAGRetriever, question: str, expected: Any) -> None:
    """A number answers as before without a unit, or in the unit of the relation, in words or as a symbol."""
    metadata = retriever.invoke(question)[0].metadata
    value = metadata["answers"] if isinstance(expected, list) else metadata["value"]
    assert value == (pytest.approx(expected) if isinstance(expected, float) else expected)


@pytest.mark.parametrize(
    ("question", "asked", "own"),
    [
        ("How long is Swift in feet?", "feet", "m"),
        ("Which yards built boats longer than 6 yards?", "yards", "m"),
        ("How heavy is Heron in kg?", "kg", "lb"),
        ("Which boats weigh less than 200g?", "g", "lb"),
        ("What is the total weight of the boats in tons?", "tons", "lb"),
        ("Which boats cost more than 2000 euros?", "euros", "usd"),
        ("How fast is Swift in mph?", "mph", "kmh"),
        ("How big is Lake Orr in acres?", "acres", "km2"),
        ("Is Lake Orr deeper than 50 feet?", "feet", "metres"),
        ("What percentage of the lakes are deeper than 100 km?", "km", "metres"),
        ("How many hours did the Dawn Crossing take?", "hours", "minutes"),
        ("How many hour did the Dawn Crossing take?", "hour", "minutes"),
        ("Which crossings before 2012 took more than two hours?", "hours", "minutes"),
        ("Which crossings took more than 2 days?", "days", "minutes"),
        ("How many weeks deep is Lake Orr?", "weeks", "metres"),
    ],
)
def test_another_unit_is_refused(retriever: SimGRAGRetriever, question: str, asked: str, own: str) -> None:
    """Nothing is converted: the refusal names both units."""
    with pytest.raises(LowConfidenceError, match=f"asks in '{asked}', but .* is in '{own}'.*Ask in {own}"):
        retriever.invoke(question)


def test_the_default_method_says_why(retriever: SimGRAGRetriever) -> None:
    """A document of a refused question names both units, too."""
    (document, *_) = KGRetriever.from_index(retriever.index).invoke("How long is Swift in feet?")
    assert document.metadata["answers"] == []
    assert "'feet', but 'length (m)' is in 'm'" in document.metadata["details"]["why"]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What is the average salt percent of the lakes?", 6),
        ("What is the average salt percentage of the lakes located in Norway?", 7),
        ("What is the highest salt percent of the lakes?", 11),
        ("How many lakes have a salt percent above 3?", 2),
        ("What is the salt percent of Lake Tam?", ["11"]),
        ("How many percent salt has Lake Tam?", ["11"]),
        ("Which lakes have more than 5 percent salt?", ["Lake Tam"]),
        ("What percent of the lakes are in Norway?", 200 / 3),
        ("What percent of the lakes have a salt percent above 3?", 200 / 3),
    ],
)
def test_the_percent_of_a_relation_is_no_share(retriever: SimGRAGRetriever, question: str, expected: Any) -> None:
    """Beside a word of a relation's name, "percent" means the number of the relation."""
    test_the_unit_of_a_name_is_answered(retriever, question, expected)


def test_another_unit_is_refused_by_a_model_and_by_examples_too(retriever: SimGRAGRetriever) -> None:
    in_kg = "How heavy is Heron in kg?"
    pattern = Pattern.of(("Otter", "weight_lb", Unknown("weight")), target="weight")
    known = Question("How heavy is Otter in kg?", ("Otter",), ("90",), pattern)
    chooser = {"llm": ScriptedChatModel(replies=['{"choice": 1}'] * 9)}
    written = '{"triples": [["Heron", "weight_lb", "UNKNOWN weight 1"]], "target": "UNKNOWN weight 1"}'
    writer = {"llm": ScriptedChatModel(replies=[written] * 3), "asks_model": "always", "chooses": False}
    for given in (chooser, writer, {"examples": [known]}):
        other = SimGRAGRetriever.from_index(retriever.index, **given)
        with pytest.raises(LowConfidenceError, match="asks in 'kg', but 'weight lb' is in 'lb'"):
            other.invoke(in_kg, on_refusal="raise")
