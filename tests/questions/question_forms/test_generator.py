"""Questions that need an operation become patterns with conditions, absent triples or an operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kg_retrievers import GraphIndex, KnowledgeGraph, SimGRAGRetriever, default_embeddings
from kg_retrievers.core.stages import MIN_CONFIDENCE
from kg_retrievers.errors import LowConfidenceError
from kg_retrievers.questions.question_forms.forms import tokens_of
from kg_retrievers.questions.question_forms.generator import QuestionFormGenerator
from kg_retrievers.questions.question_forms.grammar import read_form
from kg_retrievers.questions.reader import QuestionReader
from kg_retrievers.questions.zero_shot.generator import ZeroShotPatternGenerator

FACTS = [
    ("Long Bridge", "built_in", "1890"),
    ("Long Bridge", "crosses", "River Orle"),
    ("Long Bridge", "designed_by", "Ada Holm"),
    ("Old Bridge", "built_in", "1750"),
    ("Old Bridge", "crosses", "River Orle"),
    ("Old Bridge", "designed_by", "Per Lind"),
    ("Station Bridge", "built_in", "1931"),
    ("Station Bridge", "crosses", "River Tamm"),
    ("Station Bridge", "designed_by", "Ada Holm"),
    ("Ada Holm", "date_of_birth", "1850-02-01"),
    ("Per Lind", "date_of_birth", "1711-07-30"),
    ("Long Bridge", "has_toll", "true"),
    ("Old Bridge", "has_toll", "false"),
]
INDEX = GraphIndex.build(KnowledgeGraph.from_triples(FACTS), default_embeddings())
RETRIEVER = SimGRAGRetriever.from_index(INDEX, min_confidence=0.0)


@pytest.mark.parametrize(
    ("question", "value", "answers"),
    [
        ("How many bridges did Ada Holm design?", 2, set()),
        ("Was Old Bridge designed by Ada Holm?", False, set()),
        ("Was Long Bridge designed by Ada Holm?", True, set()),
        ("Was Long Bridge built before 1900?", True, set()),
        ("Does Long Bridge have a toll?", True, set()),
        ("Is Old Bridge older than Long Bridge?", True, set()),
        ("Which bridges were built before 1900?", None, {"Long Bridge", "Old Bridge"}),
        ("Which bridges were not built before 1900?", None, {"Station Bridge"}),
        ("Which bridges were built not after 1900?", None, {"Long Bridge", "Old Bridge"}),
        ("Which are the two oldest bridges?", [1750, 1890], {"Old Bridge", "Long Bridge"}),
        ("Which 2 bridges are the newest?", [1931, 1890], {"Station Bridge", "Long Bridge"}),
        ("Which bridge is the oldest?", 1750, {"Old Bridge"}),
        ("Who was born first, Ada Holm or Per Lind?", "1711-07-30", {"Per Lind"}),
        ("bridges designed by Ada Holm or Per Lind", None, {"Long Bridge", "Old Bridge", "Station Bridge"}),
        ("Who designed at least two bridges?", [2], {"Ada Holm"}),
        ("Which bridges were not designed by Ada Holm?", None, {"Old Bridge"}),
        ("Which bridges did Ada Holm design apart from Long Bridge?", None, {"Station Bridge"}),
        ("Could you tell me how many bridges Ada Holm designed?", 2, set()),
        ("Station Bridge was built after 1900, wasn't it?", True, set()),
        ("Which bridges were built in the 19th century?", None, {"Long Bridge"}),
        ("Please list the bridges that cross River Orle, except Old Bridge.", None, {"Long Bridge"}),
        ("I was told that Old Bridge was built before Long Bridge. Is that right?", True, set()),
        ("Which bridge was built most recently?", 1931, {"Station Bridge"}),
        ("Which bridges cross River Orle but were not designed by Ada Holm?", None, {"Old Bridge"}),
        ("Who designed two bridges or more?", [2], {"Ada Holm"}),
        ("Long Bridge vs Old Bridge: which is older?", 1750, {"Old Bridge"}),
        ("Which bridges are older than Long Bridge?", None, {"Old Bridge"}),
        ("Which bridges are newer than Old Bridge?", None, {"Long Bridge", "Station Bridge"}),
        ("Who designed more bridges than Per Lind?", [2], {"Ada Holm"}),
        ("How many bridges are newer than Old Bridge?", 2, set()),
    ],
)
def test_answers_by_form(question: str, value: Any, answers: set[str]) -> None:
    """Each form gives its value and its answers."""
    metadata = RETRIEVER.invoke(question)[0].metadata
    assert metadata["value"] == value
    assert {*metadata["answers"]} == answers


@pytest.fixture(scope="module")
def moons() -> SimGRAGRetriever:
    """Moons with numbers in units, and towers with two numbers of one measure."""
    moon = {"Orr": (40, "Ann Lee", "1891"), "Ime": (7, "Bo Rask", "1952"), "Tal": (12, "Bo Rask", "1960")}
    facts = [
        (name, relation, str(value))
        for name, values in moon.items()
        for relation, value in zip(("diameter_km", "discovered_by", "first_seen"), values, strict=True)
    ]
    for at, name in enumerate(("North Tower", "South Tower")):
        facts += [(name, "height_m", str(50 + at)), (name, "elevation_m", str(900 - at)), (name, "weight_kg", "9")]
    named = {"Moon": moon, "Tower": ["North Tower", "South Tower"], "Person": ["Ann Lee", "Bo Rask"]}
    types = {name: [kind] for kind, names in named.items() for name in names}
    index = GraphIndex.build(KnowledgeGraph.from_triples(facts, types=types), default_embeddings())
    return SimGRAGRetriever.from_index(index)


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("What is the smallest moon?", ["Ime"]),
        ("Which moon has the largest diameter?", ["Orr"]),
        ("Who discovered the largest moon?", ["Ann Lee"]),
        ("Who discovered something before 1900?", ["Ann Lee"]),
        ("What is the tallest tower?", None),
        ("What is the largest tower?", None),
    ],
)
def test_the_one_number_that_fits_an_adjective(
    moons: SimGRAGRetriever, question: str, answers: list[str] | None
) -> None:
    """If several numbers fit an adjective, or none does, the refusal names those that things of the kind have."""
    if answers is not None:
        assert moons.invoke(question)[0].metadata["answers"] == answers
        return
    with pytest.raises(LowConfidenceError, match=r"Did you mean: height m, elevation m, weight kg\?"):
        moons.invoke(question, on_refusal="raise")


@pytest.mark.parametrize(
    "question",
    ["Who designed Long Bridge?", "When was Old Bridge built?", "Is Long Bridge 's designer a man or a woman?"],
)
def test_plain_questions_stay(question: str) -> None:
    """A question without an operation gets the pattern of the zero-shot generator."""
    given = {"question": question}
    plain, cascade = ZeroShotPatternGenerator(INDEX).invoke(given), QuestionReader(INDEX).invoke(given).pattern
    assert (plain, plain.confidence) == (cascade, cascade.confidence)


@pytest.mark.parametrize(
    "question",
    [
        "Is Long Bridge not older?",
        "Is it true that Ada Holm never designed Long Bridge?",
        "Is it true that Ada Holm did not design Old Bridge?",
        "Was Long Bridge not designed by Ada Holm?",
        "Did Ada Holm design only Long Bridge?",
        "Was Long Bridge not built before 1900?",
        "Which bridges were not built between 1800 and 1900?",
        "How many people designed at least 2 bridges?",
        "How many bridges did each person design?",
        "How many bridges per person?",
        "Which bridges were built before 1800 or after 1900?",
        "Does Long Bridge have wifi?",
        "Does Long Bridge have as many designers as Old Bridge?",
        "Which bridges are two years older than Long Bridge?",
        "Which bridges older than Long Bridge cross River Orle?",
        "Who designed bridges older than Long Bridge?",
        "Which bridges are better than Long Bridge?",
        pytest.param(f"Who designed at least {'9' * 5000} bridges?", id="5000 digits"),
    ],
)
def test_refuses_what_it_cannot_read(question: str) -> None:
    """An operation that is not understood is never answered as if it were not there."""
    with pytest.raises(LowConfidenceError) as refused:
        RETRIEVER.invoke(question, on_refusal="raise")
    assert refused.value.unplaced


def test_a_value_of_another_kind_is_not_sure() -> None:
    pattern = QuestionReader(INDEX).read("How much did Long Bridge cost?").pattern
    assert (pattern.confidence or 0) < MIN_CONFIDENCE
    assert pattern.unplaced == ("cost",)


def test_long_questions_have_no_form() -> None:
    """A question of more than 200 words is not searched for a form."""
    question = "How many bridges did Ada Holm design? " + "word " * 200
    assert QuestionFormGenerator(ZeroShotPatternGenerator(INDEX)).read(question, []) is None
    assert read_form(tokens_of(question, []), lambda _: 0.0, ()) is None


def cities() -> GraphIndex:
    """Typed towns, of which some are capitals."""
    country = dict.fromkeys(["Arnheim", "Belmar", "Corvo"], "Nordland") | dict.fromkeys(["Delmo", "Elster"], "Sudland")
    facts = [(town, "country", land) for town, land in country.items()]
    facts += [("Nordland", "capital", "Arnheim"), ("Sudland", "capital", "Delmo")]
    facts += [("Ann Lee", "place of birth", "Belmar"), ("Bob Ray", "place of birth", "Elster")]
    types = {town: ["city"] for town in country} | {land: ["country"] for land in ("Nordland", "Sudland")}
    return GraphIndex.build(KnowledgeGraph.from_triples(facts, types=types), default_embeddings())


def test_what_is_absent_is_not_what_holds() -> None:
    """A relation that must not hold is not the one by which things are found."""
    retriever = SimGRAGRetriever.from_index(cities(), min_confidence=0.0)
    (document,) = retriever.invoke("Which cities in Nordland are not the capital of Nordland?")
    assert {*document.metadata["answers"]} == {"Belmar", "Corvo"}


@pytest.mark.parametrize(
    "question",
    ["Which cities in Nordland are not in Nordland?", "Which city is the capital of Nordland but not of Nordland?"],
)
def test_refuses_what_contradicts_itself(question: str) -> None:
    """No pattern states it, which is a refusal rather than an error from inside."""
    with pytest.raises(LowConfidenceError):
        QuestionReader(cities()).read(question)


KINDS = [
    *((one, "instance_of", "Bridge") for one in ("Long Bridge", "Old Bridge", "Station Bridge")),
    *((one, "instance_of", "Engineer") for one in ("Ada Holm", "Per Lind")),
    *((one, "instance_of", "River") for one in ("River Orle", "River Tamm")),
]


@pytest.mark.parametrize(
    ("question", "value", "answers"),
    [
        ("How many bridges did Ada Holm design?", 2, set()),
        ("Which bridge is the oldest?", 1750, {"Old Bridge"}),
        ("Which engineers designed at least two of the bridges?", [2], {"Ada Holm"}),
        ("Which bridges were built before 1900?", None, {"Long Bridge", "Old Bridge"}),
    ],
)
def test_kinds_of_things_are_nouns_for_these(question: str, value: object, answers: set[str]) -> None:
    graph = KnowledgeGraph.from_triples([*FACTS, *KINDS])
    retriever = SimGRAGRetriever.from_index(GraphIndex.build(graph, default_embeddings()), min_confidence=0.0)
    metadata = retriever.invoke(question, on_refusal="raise")[0].metadata
    assert (metadata["value"], {*metadata["answers"]}) == (value, answers)


@pytest.mark.parametrize(("ship", "has"), [("Aurora", True), ("Celia", False), ("Lloyd", None)])
def test_whether_there_is_any(ship: str, has: bool | None) -> None:
    """A ship without what others have has none, and of what is no ship nothing is said."""
    facts = [("Aurora", "built by", "Lloyd"), ("Brava", "built by", "Orion")]
    facts += [(one, "anchors in", "Lisbon") for one in ("Aurora", "Brava", "Celia")]
    index = GraphIndex.build(KnowledgeGraph.from_triples(facts), default_embeddings())
    documents = SimGRAGRetriever.from_index(index).invoke(f"Does {ship} have a builder?")
    assert [document.metadata["value"] for document in documents] == [has] * (has is not None)


#: A name, a place of birth, an employer and an occupation.
PEOPLE = [
    ("Ida Brandt", "Velmark", "Norrlicht", "painter"),
    ("Jon Aske", "Tessen", "Orvid", "engineer"),
    ("Kaja Lund", "Velmark", "Orvid", "painter"),
    ("Milo Rask", "Tessen", "Norrlicht", "engineer"),
    ("Nora Vik", "Halden", "Pelagor", "painter"),
    ("Per Sund", "Halden", "Norrlicht", "engineer"),
]


@pytest.fixture(scope="module")
def people() -> SimGRAGRetriever:
    """A retriever over them."""
    names = ("born in", "works at", "occupation")
    facts = [(who, name, value) for who, *values in PEOPLE for name, value in zip(names, values, strict=True)]
    facts += [(who, "instance of", "person") for who, *_ in PEOPLE]
    graph = KnowledgeGraph.from_triples(facts)
    return SimGRAGRetriever.from_index(GraphIndex.build(graph, default_embeddings()))


@pytest.mark.parametrize(
    ("question", "negative"),
    [
        ("Which people were not born in Velmark, which is a town?", "were born in Velmark is a town"),
        ("Name the players by whom no cup has been won twice.", "cup has been won twice"),
        ("Which people without a job were born in Velmark?", "job"),
        ("Which towns do not have a mayor and lie in Ostria?", "have a mayor lie in Ostria"),
        ("Which towns do not have a mayor and are in Ostria?", "have a mayor"),
    ],
)
def test_how_far_a_negative_word_reaches(question: str, negative: str) -> None:
    form = read_form(tokens_of(question, []), lambda word: 0.0, ())
    assert form is not None
    assert " ".join(token.text for token in form.negative) == negative


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("Which people were not born in Velmark and work at Norrlicht?", lambda b, w, o: b != "V" and w == "N"),
        ("Which people work at Norrlicht and were not born in Velmark?", lambda b, w, o: b != "V" and w == "N"),
        ("Who was not born in Halden and works at Norrlicht?", lambda b, w, o: b != "H" and w == "N"),
        ("Which people were never born in Velmark and work at Orvid?", lambda b, w, o: b != "V" and w == "O"),
        ("Which engineers were not born in Tessen and work at Norrlicht?", lambda b, w, o: b + w + o == "HNe"),
        ("Which people do not work at Norrlicht and were born in Velmark?", lambda b, w, o: b == "V" and w != "N"),
        ("Which people not born in Velmark work at Norrlicht?", lambda b, w, o: b != "V" and w == "N"),
        ("Which people were not born in Velmark and are painters?", lambda b, w, o: b != "V" and o == "p"),
        ("Which people were not born in Velmark, work at Norrlicht and are engineers?",
         lambda b, w, o: b != "V" and (w, o) == ("N", "e")),
        ("Which people were not born in Velmark and who work at Pelagor?", lambda b, w, o: b != "V" and w == "P"),
        # What the negative word reaches stays what must not hold.
        ("Which people were not born in Velmark and do not work at Norrlicht?", lambda b, w, o: b != "V" and w != "N"),
        ("Which people were not born in Velmark and Halden?", lambda b, w, o: b not in "VH"),
        ("Which people were not born in Velmark or in Halden?", lambda b, w, o: b not in "VH"),
    ],
)  # fmt: skip
def test_what_follows_a_negative_clause_is_a_condition(
    people: SimGRAGRetriever, question: str, wanted: Callable[[str, str, str], bool]
) -> None:
    (document,) = people.invoke(question, on_refusal="raise")
    found = {who for who, born, works, job in PEOPLE if wanted(born[0], works[0], job[0])}
    assert {*document.metadata["answers"]} == found != set()
