"""Changes of a graph by what was read from RDF: labels, types, relations, blank nodes and prefixes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kg_retrievers.graph import KnowledgeGraph

Read = Callable[..., KnowledgeGraph]

MUSEUM = """
@prefix ex: <http://museum.example/id/> . @prefix mus: <http://museum.example/terms#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:g3 rdfs:label "Modern Wing" .
ex:o1 a mus:Painting ; rdfs:label "Red Mountain" ; mus:hangsIn ex:g3 ; mus:size [ mus:unit "cm" ; mus:height 40 ] .
mus:Painting rdfs:label "painting" . mus:hangsIn rdfs:label "hangs in" .
"""
PREFIXES = "@prefix ex: <http://museum.example/id/> . @prefix mus: <http://museum.example/terms#> ."
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Reads RDF from a text."""

    def from_text(text: str, suffix: str = ".ttl") -> KnowledgeGraph:
        path = tmp_path / f"graph{suffix}"
        path.write_text(text)
        return KnowledgeGraph.from_rdf(path)

    return from_text


def test_the_end_of_an_iri_replaces_no_label(read: Read) -> None:
    added = read(f"{PREFIXES} ex:o16 a mus:Painting ; mus:hangsIn ex:g3 .")
    changed = read(MUSEUM).with_changes(added=added)
    assert (changed.label("ex:g3"), changed.label("ex:o16")) == ("Modern Wing", "o16")
    assert changed.types_of("ex:o16") == ["painting"]
    assert [triple.relation for triple in changed.triples(head="ex:o16")] == ["hangs in"]
    renamed = changed.with_changes(added=read(f'{PREFIXES} ex:g3 {LABEL} "West Wing" .'))
    assert renamed.label("ex:g3") == "West Wing"


def test_the_end_of_an_iri_replaces_no_label_of_a_relation_or_type(read: Read) -> None:
    named = f'<http://x.example/made> {LABEL} "made by" .\n'
    kind = f'<http://x.example/Work> {LABEL} "work" .\n'
    fact = "<http://x.example/{0}> <http://x.example/made> <http://x.example/klee> .\n"
    fact += "<http://x.example/{0}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://x.example/Work> .\n"
    plain, labelled = read(fact.format("a"), ".nt"), read(fact.format("b") + named + kind, ".nt")
    for changed in (plain.with_changes(added=labelled), labelled.with_changes(added=plain)):
        assert list(changed.relations) == ["made by"]
        assert list(changed.types) == ["work"]
        assert changed.type_ids == {"work": "http://x.example/Work"}


def test_two_types_with_one_label_stay_apart(read: Read) -> None:
    one = read(f'{PREFIXES} ex:a a mus:Film ; mus:in ex:b . mus:Film {LABEL} "film" .')
    other = read(f'{PREFIXES} ex:c a mus:Movie ; mus:in ex:b . mus:Movie {LABEL} "film" .')
    changed = one.with_changes(added=other)
    assert (changed.types_of("ex:a"), changed.types_of("ex:c")) == (["film (mus:Film)"], ["film (mus:Movie)"])
    again = changed.with_changes(types={"ex:c": ["mus:Film"]})
    assert again.types_of("ex:c") == ["film"]
    by_name = one.with_changes(added=[("ex:d", "mus:in", "ex:b")], types={"ex:d": ["film"]})
    assert (by_name.types_of("ex:d"), by_name.type_ids) == (["film"], {"film": "mus:Film"})
