"""Changes of a graph by what was read from RDF: labels, types, relations, blank nodes and prefixes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kg_retrievers.errors import InvalidArgumentError
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


IN_FULL = """
<http://museum.example/id/o1> <http://museum.example/terms#madeBy> <http://museum.example/id/klee> .
<http://museum.example/id/o1> <http://museum.example/terms#hangsIn> <http://museum.example/id/g3> .
"""


def test_an_iri_has_the_key_of_the_graph_whatever_a_file_calls_it(read: Read) -> None:
    graph = read(MUSEUM)
    for addition in (read(IN_FULL, ".nt"), read(MUSEUM.replace("ex:", "e:").replace("mus:", "m:") + IN_FULL)):
        changed = graph.with_changes(added=addition)
        assert [*changed.triples("ex:o1", tail="ex:g3")] == [("ex:o1", "hangs in", "ex:g3")]
        assert ("ex:o1", "mus:madeBy", "ex:klee") in changed
        assert not [key for key in changed.entities if "museum.example" in key or key.startswith("e:")]
        assert changed.prefixes == graph.prefixes
        assert changed.types_of("ex:o1") == ["painting"]


def test_a_prefix_with_another_meaning_is_no_prefix_of_the_graph(read: Read) -> None:
    other = "@prefix ex: <http://other.example/> . @prefix mus: <http://museum.example/terms#> ."
    changed = read(MUSEUM).with_changes(added=read(f"{other} ex:o1 a ex:Car ; mus:hangsIn ex:g3 ; ex:has ex:o2 ."))
    assert ("http://other.example/o1", "hangs in", "http://other.example/g3") in changed
    assert (changed.label("ex:g3"), changed.label("http://other.example/g3")) == ("Modern Wing", "g3")
    assert changed.types_of("http://other.example/o1") == ["Car"]
    assert changed.type_ids["Car"] == "http://other.example/Car"
    assert (
        changed.with_changes(removed=read(f"{other} ex:o1 ex:has ex:o2 .")).entities.find("http://other.example/o2") < 0
    )


def test_facts_are_removed_by_iri(read: Read) -> None:
    changed = read(MUSEUM).with_changes(removed=read(IN_FULL.splitlines()[2], ".nt"))
    assert not [*changed.triples(tail="ex:g3")]


def test_a_table_of_iris_joins_what_has_prefixes(read: Read, tmp_path: Path) -> None:
    table = tmp_path / "more.tsv"
    table.write_text(
        "http://museum.example/id/o1\thangs in\thttp://museum.example/id/g4\nHer\tmade by\tKlee: a painter\n"
    )
    changed = read(MUSEUM).with_changes(added=KnowledgeGraph.from_file(table))
    assert ("ex:o1", "hangs in", "http://museum.example/id/g4") in changed
    assert ("Her", "made by", "Klee: a painter") in changed


def test_blank_nodes_of_two_files_are_others(read: Read) -> None:
    graph = read(MUSEUM)
    changed = graph.with_changes(added=read(f'{PREFIXES} ex:o2 mus:size [ mus:unit "in" ], [ mus:unit "cm" ] .'))
    assert [triple.tail for triple in changed.triples("_:b0", "mus:unit")] == ["cm"]
    assert sorted(triple.tail for triple in changed.triples("ex:o2")) == ["_:b1", "_:b2"]
    assert (changed.label("_:b1"), len(changed)) == ("size (unit: in)", len(graph) + 4)
    again = changed.with_changes(added=[("_:b1", "mus:height", "40")])
    assert [triple.tail for triple in again.triples("_:b1", "mus:height")] == ["40"]


def test_blank_nodes_remove_no_fact_of_another_file(read: Read) -> None:
    removal = read(f'{PREFIXES} ex:o1 mus:hangsIn ex:g3 . [] mus:unit "cm" .')
    with pytest.raises(InvalidArgumentError, match=r"\('_:b0', .* A blank node of one file is none of another"):
        read(MUSEUM).with_changes(removed=removal)
    assert len(read(MUSEUM).with_changes(removed=[("_:b0", "mus:unit", "cm")])) == len(read(MUSEUM)) - 1


def test_a_graph_in_one_named_by_a_blank_node_is_a_source_of_its_own(read: Read) -> None:
    text = PREFIXES + " _:g {{ ex:{0} mus:in ex:b }}"
    changed = read(text.format("a"), ".trig").with_changes(added=read(text.format("c"), ".trig"))
    assert [changed.sources(triple) for triple in changed.triples()] == [["_:g0"], ["_:g1"]]


def test_what_else_a_graph_says_stays_when_its_keys_change(read: Read, tmp_path: Path) -> None:
    path = tmp_path / "loans.trig"
    path.write_text(
        f"""{PREFIXES.replace("ex:", "e:").replace("mus:", "m:")}
        e:loans {{ e:o1 m:lentTo e:tate ; m:code "1234" . }} e:more {{ e:o1 m:lentTo e:tate }}
        e:tate {LABEL} "Tate", "Tate Gallery" . e:o1 m:on "2024-05-01"^^m:day ."""
    )
    addition = KnowledgeGraph.from_rdf(path, text_relations=["m:code"])
    changed = read(MUSEUM).with_changes(added=addition)
    assert changed.sources(("ex:o1", "mus:lentTo", "ex:tate")) == ["ex:loans", "ex:more"]
    assert (changed.label("ex:tate"), changed.aliases("ex:tate")) == ("Tate", ["Tate Gallery"])
    assert (changed.datatype("2024-05-01"), changed.text_relations) == ("mus:day", ("mus:code",))
    assert changed.duplicates == addition.duplicates == 1
