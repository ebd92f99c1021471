"""Short forms of names: what they mean, and what speaks against them."""

from __future__ import annotations

import pytest

from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.graph import KnowledgeGraph, Known
from kg_retrievers.index import EntityLinker, GraphIndex, HashedEmbeddings, question_entities

TRIPLES = [
    ("Ann Lee", "works_for", "Acme Ltd."), ("Bob Stone", "works_for", "Acme Ltd."), ("Bob Reed", "leads", "Globex Co"),
    ("Ann Lee", "reports_to", "Bob Stone"), ("Acme Ltd.", "based_in", "Springfield (town)"),
    ("Springfield (town)", "in", "Ohio"), ("Springfield (film)", "by", "Ada Byron"), ("Springfield Bank", "in", "Ohio"),
    ("Contoso Manufacturing", "founded_by", "María Núñez García"), ("Bruce Wayne", "owns", "bbc films"),
    ("International Business Machines", "in", "Ohio"), ("Dune (1984)", "by", "Ada Byron"), ("Rex", "owns", "Rex Tyres"),
    *((f"{name} Moss", "works_for", "Rex Tyres") for name in ("Al", "Bea", "Cy", "Di", "Ed")),
]  # fmt: skip


@pytest.fixture(scope="module")
def linker() -> EntityLinker:
    graph = KnowledgeGraph.from_triples(TRIPLES)
    return EntityLinker(GraphIndex.build(graph, HashedEmbeddings()))


def found(linker: EntityLinker, question: str) -> list[tuple[str, str, list[str]]]:
    mentions = linker.link(question)
    return [(one.text, one.candidates[0].how, [each.entity for each in one.candidates]) for one in mentions]


@pytest.mark.parametrize(
    ("question", "text", "entities"),
    [
        ("Where is Acme?", "Acme", ["Acme Ltd."]),
        ("Who is the Acme CEO?", "Acme", ["Acme Ltd."]),
        ("Acme Employees", "Acme", ["Acme Ltd."]),
        ("Who is Ann's manager?", "Ann", ["Ann Lee"]),
        ("Who is Lee's manager?", "Lee", ["Ann Lee"]),
        ("What did Núñez García found?", "Núñez García", ["María Núñez García"]),
        ("What did Garcia found?", "Garcia", ["María Núñez García"]),
        ("Where is IBM?", "IBM", ["International Business Machines"]),
        ("Who does Bob report to?", "Bob", ["Bob Stone", "Bob Reed"]),
        ("Where is Springfield?", "Springfield", ["Springfield (town)", "Springfield (film)"]),
        ("where is springfield?", "springfield", ["Springfield (town)", "Springfield (film)"]),
        ("who is ann's manager?", "ann", ["Ann Lee"]),
        ("who works for acme", "acme", ["Acme Ltd."]),
        ("who reports to reed", "reed", ["Bob Reed"]),
    ],
)
def test_what_it_means(linker: EntityLinker, question: str, text: str, entities: list[str]) -> None:
    if question == "Acme Employees":
        graph = KnowledgeGraph.from_triples(TRIPLES, types={"Ann Lee": ["Employee"]})
        linker = EntityLinker(GraphIndex.build(graph, HashedEmbeddings()))
    assert found(linker, question) == [(text, "short", entities)]
    (mention,) = linker.link(question)
    assert {candidate.score for candidate in mention.candidates} == {0.75}


def test_a_full_name_comes_first(linker: EntityLinker) -> None:
    assert found(linker, "What does Rex own?") == [("Rex", "exact", ["Rex"])]
    assert found(linker, "Does Ann Lee report to Bob Stone?") == [
        ("Ann Lee", "exact", ["Ann Lee"]),
        ("Bob Stone", "exact", ["Bob Stone"]),
    ]
    assert found(linker, "Who is the Contoso Manufacturing CEO?") == [
        ("Contoso Manufacturing", "exact", ["Contoso Manufacturing"])
    ]


@pytest.mark.parametrize(
    ("question", "suggested"),
    [
        ("Who is Bruce Springsteen?", "Bruce Wayne"),
        ("who is bruce springsteen?", "Bruce Wayne"),
        ("Who is Clark Wayne?", "Bruce Wayne"),
        ("who is clark wayne?", "Bruce Wayne"),
        ("Who is Moss?", "Al Moss"),  # of five, nobody knows which one
        ("what was made in 1984", "Dune (1984)"),
        ("who made these films", "bbc films"),  # a word of English
    ],
)
def test_what_is_none(linker: EntityLinker, question: str, suggested: str) -> None:
    with pytest.raises(EntityLinkingError) as caught:
        linker.link(question)
    assert suggested in caught.value.suggestions


def test_initials_beside_a_name_are_none(linker: EntityLinker) -> None:
    assert found(linker, "Is Acme Ltd. an IBM?") == [("Acme Ltd.", "exact", ["Acme Ltd."])]


def test_a_pattern_gets_the_entity(linker: EntityLinker) -> None:
    (acme,) = question_entities(linker, "Where is Acme?")
    assert acme.term == Known("Acme", entity="Acme Ltd.")
    (springfield,) = question_entities(linker, "Where is Springfield?")
    assert (springfield.term, springfield.best) == (Known("Springfield"), 2)


@pytest.mark.parametrize(
    "question", ["Wer hat das Rad erfunden?", "Wie heißt du?", "Où est né Napoléon ?", "¿Quién descubrió América?"]
)
def test_other_languages_are_not_guessed_at(linker: EntityLinker, question: str) -> None:
    with pytest.raises(EntityLinkingError) as caught:
        linker.link(question)
    assert caught.value.suggestions == []
