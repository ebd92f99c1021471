"""Misspelt names: which windows are tried, what a name swallows, and what is suggested."""

from __future__ import annotations

import pytest

from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.index import EntityLinker, GraphIndex, HashedEmbeddings

TRIPLES = [
    ("Acme", "led_by", "Michael Douglas"), ("Acme Co", "led_by", "Tom Hanks"), ("Contoso Manufacturing", "in", "Ohio"),
    ("Globex Corporation", "in", "Ohio"), ("Persona", "in", "Ohio"), ("Michael", "in", "Ohio"),
]  # fmt: skip


@pytest.fixture(scope="module")
def linker() -> EntityLinker:
    return EntityLinker(GraphIndex.build(KnowledgeGraph.from_triples(TRIPLES), HashedEmbeddings()))


@pytest.mark.parametrize(
    ("question", "mentions"),
    [
        ("Who is the Acme CEO?", [("Acme", "Acme")]),
        ("Who is the Contoso Manufacturing CEO?", [("Contoso Manufacturing", "Contoso Manufacturing")]),
        ("Where is Michael Duoglas?", [("Michael Duoglas", "Michael Douglas")]),
        ("Where is Globex Corporaton?", [("Globex Corporaton", "Globex Corporation")]),
        ("where is tom hnaks?", [("tom hnaks", "Tom Hanks")]),
    ],
)
def test_a_word_that_a_name_lacks_is_not_swallowed(
    linker: EntityLinker, question: str, mentions: list[tuple[str, str]]
) -> None:
    assert [(one.text, one.candidates[0].entity) for one in linker.link(question)] == mentions


@pytest.mark.parametrize(
    ("question", "suggestions"),
    [
        ("Where is Globx?", ["Globex Corporation"]),  # a word of the name, nearly
        ("Where is Globex Inc?", ["Globex Corporation"]),
        ("Where is Mike Douglas?", ["Michael Douglas"]),
        ("which person was it?", ["Persona"]),  # a word of English, spelt right
        ("Where is Zanzibar?", []),
        ("Hello", []),
    ],
)
def test_suggestions_are_near_in_letters(linker: EntityLinker, question: str, suggestions: list[str]) -> None:
    with pytest.raises(EntityLinkingError) as caught:
        linker.link(question)
    assert caught.value.suggestions == suggestions
