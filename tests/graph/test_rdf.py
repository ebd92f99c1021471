"""RDF: what it is understood to say, in every format; hostile files; and a round trip."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyoxigraph
import pytest
import rdflib
from hypothesis import assume, given
from hypothesis import strategies as st

from kg_retrievers.errors import GraphLoadError, InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.iris import WELL_KNOWN, Prefixes
from kg_retrievers.graph.readers.opening import Limits
from kg_retrievers.graph.readers.rdf import annotations
from kg_retrievers.graph.readers.rdf.guards import MAX_DEPTH, DepthGuard, JsonGuard
from kg_retrievers.graph.values import is_valid

PREFIXES = """
@prefix dbo: <http://dbpedia.org/ontology/> . @prefix dbr: <http://dbpedia.org/resource/> .
@prefix ex: <http://example.org/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix schema: <http://schema.org/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
FILM = """
dbr:Her a dbo:Film ; rdfs:label "Her"@en, "Elle"@fr ; skos:altLabel "Her (2013)"@en, "Ella"@es ;
    dbo:director dbr:Spike_Jonze ; dbo:releaseDate "2013-12-18"^^xsd:date ; dbo:runtime 126 ;
    dbo:abstract "A writer falls\\nin \\"love\\"."@en, "Un écrivain."@fr ; dbo:tagline "Une histoire"@fr .
dbr:Spike_Jonze a dbo:Person ; skos:prefLabel "Adam Spiegel"@en ; rdfs:label "Spike Jonze"@en .
dbo:director rdfs:label "director"@en . dbo:Film rdfs:label "film"@en ; a owl:Class .
"""
XSD = "http://www.w3.org/2001/XMLSchema#"


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., KnowledgeGraph]:
    """Read a text as Turtle, or as the format of a suffix."""

    def call(text: str | bytes, suffix: str = "ttl", **options: Any) -> KnowledgeGraph:
        path = tmp_path / f"graph.{suffix}"
        content = text.encode() if isinstance(text, str) else text
        path.write_bytes(PREFIXES.encode() + content if suffix in ("ttl", "trig") else content)
        return KnowledgeGraph.from_rdf(path, **options)

    return call


Read = Callable[..., KnowledgeGraph]


def content(graph: KnowledgeGraph) -> tuple[Any, ...]:
    """Return all that a graph says, whatever the order in which it was read."""
    facts = sorted((*triple, graph.relation_id(triple.relation), *graph.sources(triple)) for triple in graph.triples())
    entities = [
        (key, graph.label(key), sorted(graph.aliases(key)), sorted(graph.types_of(key)), graph.datatype(key))
        for key in sorted(graph.entities)
    ]
    return facts, entities


# --- names ------------------------------------------------------------------------------------------------------------


def test_what_a_file_says(read: Read) -> None:
    graph = read(FILM)
    assert [*graph.triples("dbr:Her")] == [
        ("dbr:Her", "director", "dbr:Spike_Jonze"),
        ("dbr:Her", "dbo:releaseDate", "2013-12-18"),
        ("dbr:Her", "dbo:runtime", "126"),
        ("dbr:Her", "dbo:abstract", 'A writer falls\nin "love".'),
        ("dbr:Her", "dbo:tagline", "Une histoire"),
    ]
    assert graph.relation_id("director") == "dbo:director"
    assert graph.label("dbr:Her") == "Her"
    assert graph.aliases("dbr:Her") == ["Her (2013)"]
    assert graph.types_of("dbr:Her") == ["film"]
    assert graph.label("dbr:Spike_Jonze") == "Spike Jonze"
    assert graph.aliases("dbr:Spike_Jonze") == ["Adam Spiegel"]
    assert graph.types_of("dbr:Spike_Jonze") == ["dbo:Person"]
    assert "dbo:Film" not in graph.entities
    assert graph.prefixes == {name: WELL_KNOWN[name] for name in ("dbo", "dbr", "xsd")}


def test_reading_says_what_was_understood(read: Read, tmp_path: Path) -> None:
    graph = read(FILM)
    assert graph.reading.format == "Turtle"
    assert graph.reading.understood == {
        "labels": "rdfs:label 5, skos:prefLabel 1",
        "aliases": "2 by skos:altLabel, schema:alternateName, sdo:alternateName",
        "languages": "en, then no language",
        "types": "3 by rdf:type",
        "classes and properties": "2 describe types and relations and are no entities",
        "literals": "4 (@en 1, @fr 1, xsd:date 1, xsd:integer 1)",
    }
    assert graph.reading.left_out == {
        'names in other languages (languages=[..., "*"])': 2,
        'literals in other languages (languages=[..., "*"])': 1,
    }
    graph.save(tmp_path / "saved")
    opened = KnowledgeGraph.open(tmp_path / "saved")
    assert (opened.reading, opened.prefixes, content(opened)) == (graph.reading, graph.prefixes, content(graph))


@pytest.mark.parametrize(
    ("languages", "labels", "wanted"),
    [
        (["en"], '"Londres"@fr, "London"@en', "London"),
        (["en"], '"London GB"@en-GB, "Londres"@fr', "London GB"),
        (["en"], '"London GB"@en-GB, "London"@en', "London"),
        (["de", "en"], '"London"@en, "London (Stadt)"@de-AT', "London (Stadt)"),
        (["de"], '"London"@en, "LDN"', "LDN"),
        (["de"], '"Londra"@it, "London"@en', "London"),
        (["EN"], '"Londres"@fr, "London"@EN', "London"),
        (["de"], '"Londra"@it, "London"@mul', "London"),
        (["zh", "*"], '"Zonder"', "Zonder"),
        (["en"], '"B"@en, "A"@en', "A"),
    ],
)
def test_the_label_in_the_best_language(read: Read, languages: list[str], labels: str, wanted: str) -> None:
    for order in (labels, ", ".join(reversed(labels.split(", ")))):
        graph = read(f"ex:a ex:r ex:b . ex:b rdfs:label {order} .", languages=languages)
        assert graph.label("ex:b") == wanted


def test_the_label_by_the_best_predicate(read: Read) -> None:
    text = 'ex:a ex:r ex:b . ex:b schema:name "third" ; skos:prefLabel "second" ; rdfs:label "first" .'
    graph = read(text)
    assert (graph.label("ex:b"), graph.aliases("ex:b")) == ("first", ["second", "third"])
    by_name = read(text, label_predicates=["schema:name"])
    assert by_name.label("ex:b") == "third"
    assert ("ex:b", "rdfs:label", "first") in by_name


def test_the_end_of_an_iri_where_there_is_no_label(read: Read) -> None:
    graph = read("dbr:Am%C3%A9lie ex:r dbr:AC\\/DC, <urn:isbn:1>, <http://other.org/Blade_Runner>, [] .")
    assert {key: graph.label(key) for key in graph.entities} == {
        "dbr:Am%C3%A9lie": "Amélie",
        "dbr:AC/DC": "DC",
        "urn:isbn:1": "urn:isbn:1",
        "http://other.org/Blade_Runner": "Blade Runner",
        "_:b0": "unnamed r",
    }


def test_relations_and_types_with_one_label_stay_apart(read: Read) -> None:
    graph = read(
        'ex:a dbo:director ex:b ; ex:director ex:c . dbo:director rdfs:label "director" . ex:director rdfs:label '
        '"director" . ex:a a dbo:Film, ex:Film . dbo:Film rdfs:label "film" . ex:Film rdfs:label "film" .'
    )
    assert [*graph.relations] == ["director (dbo:director)", "director (ex:director)"]
    assert graph.types_of("ex:a") == ["film (dbo:Film)", "film (ex:Film)"]


def test_a_relation_without_prefix_is_called_by_the_end_of_its_iri(read: Read) -> None:
    graph = read("ex:a <http://other.org/born_in> ex:b ; <http://third.org#born_in> ex:c ; ex:r ex:d .")
    assert [*graph.relations] == ["born in (http://other.org/born_in)", "born in (http://third.org#born_in)", "ex:r"]


def test_properties_of_wikidata_are_called_by_their_entities(read: Read) -> None:
    graph = read(
        "@prefix wd: <http://www.wikidata.org/entity/> . @prefix wdt: <http://www.wikidata.org/prop/direct/> . "
        "wd:Q1 a <http://wikiba.se/ontology#Item> ; wdt:P57 wd:Q2 ; wdt:P31 wd:Q3 . wd:P57 rdfs:label 'director'@en . "
        "wd:Q3 rdfs:label 'film'@en ; wdt:P279 wd:Q4 . wd:Q4 rdfs:label 'work'@en . wd:Q5 wdt:P31 wd:Q4 ."
    )
    assert ("wd:Q1", "director", "wd:Q2") in graph
    assert sorted(graph.types[one] for one in graph.types_below["work"]) == ["film", "work"]
    assert graph.reading.understood["types"] == "2 by rdf:type, wdt:P31"
    assert graph.reading.left_out == {"types of all things, such as wikibase:Item and owl:Thing": 1}
    assert (graph.relation_id("director"), graph.types_of("wd:Q1")) == ("wdt:P57", ["film"])
    assert "wd:P57" not in graph.entities


WIKIDATA_RDF = """
@prefix wd: <http://www.wikidata.org/entity/> . @prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix wds: <http://www.wikidata.org/entity/statement/> . @prefix p: <http://www.wikidata.org/prop/> .
@prefix ps: <http://www.wikidata.org/prop/statement/> . @prefix pq: <http://www.wikidata.org/prop/qualifier/> .
@prefix pqv: <http://www.wikidata.org/prop/qualifier/value/> . @prefix wdv: <http://www.wikidata.org/value/> .
@prefix pr: <http://www.wikidata.org/prop/reference/> . @prefix wdref: <http://www.wikidata.org/reference/> .
@prefix wikibase: <http://wikiba.se/ontology#> . @prefix prov: <http://www.w3.org/ns/prov#> .
wds:2 a wikibase:Statement ; ps:P69 wd:Q6 ; pq:P580 "1971"^^xsd:gYear ; pqv:P580 wdv:1 ; pq:P512 wd:Q7 ; pq:P1 7 ;
    wikibase:rank wikibase:PreferredRank ; prov:wasDerivedFrom wdref:1 .
wd:Q42 wdt:P31 wd:Q5 ; p:P31 wds:1 ; wdt:P69 wd:Q6 ; p:P69 wds:2, wds:3 ; p:P9 wds:4 ; rdfs:label "Adams"@en .
wds:1 a wikibase:Statement, wikibase:BestRank ; ps:P31 wd:Q5 ; wikibase:rank wikibase:NormalRank .
wds:3 ps:P69 "none" ; wikibase:rank wikibase:DeprecatedRank . wds:4 a wikibase:Statement ; pq:P580 wd:Q5 .
wdref:1 a wikibase:Reference ; pr:P248 wd:Q9 . wdv:1 a wikibase:TimeValue ; wikibase:timePrecision 9 .
wd:P69 a wikibase:Property ; rdfs:label "educated at"@en . wd:P580 rdfs:label "start time"@en .
wd:Q5 rdfs:label "human"@en . wd:Q7 rdfs:label "BA"@en . wd:Q6 rdfs:label "St John's"@en .
"""


def snak(property: str, type: str, value: Any) -> dict[str, Any]:
    return {"snaktype": "value", "property": property, "datavalue": {"type": type, "value": value}}


def item(property: str, id: str) -> dict[str, Any]:
    return snak(property, "wikibase-entityid", {"entity-type": "item", "id": id})


def entity(id: str, label: str, **claims: Any) -> dict[str, Any]:
    kind = "item" if id.startswith("Q") else "property"
    return {"type": kind, "id": id, "labels": {"en": {"language": "en", "value": label}}, "claims": claims or []}


WIKIDATA_JSON = [
    entity(
        "Q42",
        "Adams",
        P31=[{"mainsnak": item("P31", "Q5"), "rank": "normal"}],
        P69=[
            {"mainsnak": item("P69", "Q6"), "rank": "preferred", "references": [{}], "qualifiers": {
                "P580": [snak("P580", "time", {"time": "+1971-00-00T00:00:00Z", "precision": 9})],
                "P512": [item("P512", "Q7")], "P1": [snak("P1", "quantity", {"amount": "+7", "unit": "1"})],
            }},
            {"mainsnak": snak("P69", "string", "none"), "rank": "deprecated"},
        ],
        P9=[{"mainsnak": {"snaktype": "novalue", "property": "P9"}, "rank": "normal"}],
    ),
    *(entity(id, label) for id, label in (("P69", "educated at"), ("P580", "start time"), ("Q5", "human"))),
    *(entity(id, label) for id, label in (("Q7", "BA"), ("Q6", "St John's"))),
]  # fmt: skip


@pytest.mark.parametrize("form", ["RDF", "lines", "document"])
def test_statements_of_wikidata_are_facts_with_their_qualifiers(read: Read, tmp_path: Path, form: str) -> None:
    if form == "RDF":
        graph = read(WIKIDATA_RDF)
    else:
        lines = "[\n" + ",\n".join(map(json.dumps, WIKIDATA_JSON)) + "\n]\n"
        document = json.dumps({"entities": {one["id"]: one for one in WIKIDATA_JSON}})
        (tmp_path / "w.json").write_text(lines if form == "lines" else document, encoding="utf-8")
        graph = KnowledgeGraph.from_file(tmp_path / "w.json")
    said = {fact: graph.attributes(fact) for fact in graph.triples()}
    assert said == {
        ("wd:Q42", "educated at", "wd:Q6"): [{"start time": "1971", "P512": "BA", "P1": 7, "rank": "preferred"}],
        ("wd:Q42", "educated at", "none"): [{"rank": "deprecated"}],
    }
    assert graph.relation_id("educated at") == "wdt:P69"
    assert (sorted(graph.entities), graph.types_of("wd:Q42")) == (["none", "wd:Q42", "wd:Q6", "wd:Q7"], ["human"])
    left = {"references of Wikidata": 1, "statements of Wikidata without a value": 1}
    assert left.items() <= graph.reading.left_out.items()


def test_a_line_that_is_no_entity_of_wikidata(tmp_path: Path) -> None:
    lines = [json.dumps(WIKIDATA_JSON[0]), '{"id": "Q1", "labels": {"en": {"value": 1}}}', "{", "[" * 100_000]
    (tmp_path / "w.json").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(GraphLoadError, match=r"w\.json:2: is no entity of Wikidata \(.*on_error"):
        KnowledgeGraph.from_file(tmp_path / "w.json")
    graph = KnowledgeGraph.from_rdf(tmp_path / "w.json", format="wikidata", on_error="skip", type_predicates=())
    assert (graph.skipped, ("wd:Q42", "wdt:P31", "wd:Q5") in graph) == (3, True)


# --- prefixes ---------------------------------------------------------------------------------------------------------


def test_what_a_file_declares_goes_before_well_known_prefixes(read: Read) -> None:
    graph = read("@prefix dbo: <http://mine.org/> . @prefix : <http://dbpedia.org/ontology/> . dbo:a :b <wd:Q1> .")
    assert [*graph.triples()] == [("dbo:a", ":b", "<wd:Q1>")]
    assert graph.prefixes == {"": "http://dbpedia.org/ontology/", "dbo": "http://mine.org/"}


def test_further_prefixes(read: Read) -> None:
    graph = read("<http://x.org/a#1> <http://x.org/r> <http://x.org/b> .\n", "nt", prefixes={"x": "http://x.org/"})
    assert [*graph.triples()] == [("x:a#1", "x:r", "x:b")]
    with pytest.raises(InvalidArgumentError, match="cannot stand for"):
        read(FILM, prefixes={"a:b": "http://x.org/"})


def is_iri(text: str) -> bool:
    try:
        return bool(pyoxigraph.NamedNode(text))
    except ValueError:
        return False


@given(
    st.one_of(
        st.sampled_from(
            ["wd:Q1", "dbr:AC/DC", "urn:x-name:a", "urn:x-name:wd%3AQ1", "urn:x-name:%C3", "http://a", "x:"]
        ),
        st.builds(
            str.__add__,
            st.sampled_from([*WELL_KNOWN.values(), "urn:x-name:", "ex:", "wd:", "http://e.org/"]),
            st.text(st.characters(exclude_characters='<>"{}|^`\\ ', exclude_categories=["Cs", "Cc", "Z"]), max_size=9),
        ),
    )
)
def test_a_short_form_stands_for_its_iri(iri: str) -> None:
    assume(is_iri(iri))
    for declared in ({}, {"ex": "http://e.org/", "wd": "http://e.org/w"}, {"": "http://e.org/", "http": "urn:x"}):
        prefixes = Prefixes(declared)
        assert prefixes.expand(prefixes.compact(iri)) == iri


# --- literals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "datatype", "wanted"),
    [
        ("2013-12-18", "date", ("2013-12-18", "2013-12-18", None)),
        ("2013-12-18+02:00", "date", ("2013-12-18", "2013-12-18", None)),
        ("2013-12-18T23:59:59.5Z", "dateTime", ("2013-12-18", "2013-12-18", None)),
        ("1987", "gYear", ("1987-01-01", "1987-12-31", None)),
        ("0987Z", "gYear", ("0987-01-01", "0987-12-31", None)),
        ("2024-02", "gYearMonth", ("2024-02-01", "2024-02-29", None)),
        ("126", "nonNegativeInteger", (None, None, 126)),
        ("-1.50", "decimal", (None, None, -1.5)),
        ("1e3", "double", (None, None, 1000)),
        ("1", "boolean", (None, None, True)),
    ],
)
def test_values_by_datatype(read: Read, text: str, datatype: str, wanted: tuple[Any, ...]) -> None:
    graph = read(f'ex:a ex:r "{text}"^^xsd:{datatype} .')
    value = graph.value(text)
    assert value is not None
    first, last, plain = wanted
    assert (value.first and value.first.isoformat(), value.last and value.last.isoformat()) == (first, last)
    assert plain is None or value.plain == plain
    assert graph.datatype(text) == f"xsd:{datatype}"
    columns = graph.value_columns
    entity = graph.entities.find(text)
    assert (columns.first[entity] > 0) == (first is not None)


def test_invalid_literals_are_counted(read: Read) -> None:
    graph = read('ex:a ex:r "many"^^xsd:integer, "12"^^xsd:integer, "x"^^ex:own .')
    assert graph.reading.understood["literals that their datatype does not allow"] == "1 taken as texts"
    assert not is_valid("many", f"{XSD}integer")


def test_a_text_with_several_datatypes_is_one_entity(read: Read) -> None:
    graph = read('ex:a ex:r "1987"^^xsd:gYear, "1987"^^xsd:integer, "1987"@en, "1987" .')
    assert len(graph) == 1
    assert graph.datatype("1987") == "@en"
    assert graph.reading.understood["texts with several datatypes"] == "1, each taken as one"


def test_a_literal_never_becomes_an_entity(read: Read) -> None:
    graph = read('ex:a ex:r "ex:a", "\\"ex:a\\"", "_:b0", [] .')
    assert [triple.tail for triple in graph.triples("ex:a")] == ['""ex:a""', '"ex:a"', '"_:b0"', "_:b0"]
    assert [graph.label(triple.tail) for triple in graph.triples("ex:a")] == ["ex:a", '"ex:a"', "_:b0", "unnamed r"]


def test_literals_can_be_dropped(read: Read) -> None:
    graph = read(FILM, literals="drop")
    assert [*graph.triples()] == [("dbr:Her", "director", "dbr:Spike_Jonze")]
    assert graph.reading.left_out['literals (literals="keep")'] == 5
    assert graph.label("dbr:Her") == "Her"


def test_literals_in_other_languages(read: Read) -> None:
    text = 'ex:a ex:about "en"@en, "fr"@fr ; ex:motto "it 1"@it, "it 2"@it, "fr"@fr .'
    assert [triple.tail for triple in read(text).triples()] == ["en", "fr"]
    assert [triple.tail for triple in read(text, languages=["it"]).triples()] == ["it 1", "it 2", "en"]
    assert len(read(text, languages=["en", "*"])) == 5


def test_the_direction_of_a_text_is_left_out(read: Read) -> None:
    graph = read('ex:a ex:r "x"@en--rtl .')
    assert graph.datatype("x") == "@en"
    assert graph.reading.left_out == {"directions of texts, of which the language stays": 1}


def test_empty_literals_are_counted(read: Read) -> None:
    assert read('ex:a ex:r "", "x" .').reading.left_out == {"empty texts": 1}


# --- blank nodes, lists, statements about facts -----------------------------------------------------------------------


def test_blank_nodes_are_numbered_in_order(read: Read) -> None:
    text = "_:z ex:r _:y . _:y ex:r _:z . [] ex:r ( 1 2 ) ."
    graph = read(text)
    assert [*graph.triples()][:2] == [("_:b0", "ex:r", "_:b1"), ("_:b1", "ex:r", "_:b0")]
    assert graph.reading.understood["blank nodes"] == "5 kept as _:b0 to _:b4"
    assert read("ex:a ex:r [] .").reading.understood["blank nodes"] == "1 kept as _:b0"
    dropped = read(text + " ex:a ex:r ex:b .", blank_nodes="drop")
    assert [*dropped.triples()] == [("ex:a", "ex:r", "ex:b")]
    assert dropped.reading.left_out == {'statements with blank nodes (blank_nodes="keep")': 7}


REIFIED = "rdf:subject ex:a ; rdf:predicate ex:r ; rdf:object ex:b"


@pytest.mark.parametrize(
    "text",
    [
        "<< ex:a ex:r ex:b >> ex:since 1999 ; ex:by ex:Bob . ex:a ex:r ex:b .",
        "ex:a ex:r ex:b {| ex:since 1999 ; ex:by ex:Bob |} .",
        "ex:a ex:r ex:b ~ ex:n {| ex:since 1999 |} . ex:n ex:by ex:Bob ; rdfs:comment 'fr'@fr, 'en'@en .",
        "ex:n rdf:reifies <<( ex:a ex:r ex:b )>> ; ex:since 1999 ; ex:by ex:Bob . ex:a ex:r ex:b .",
        f"ex:n a rdf:Statement ; {REIFIED} ; ex:since 1999 . ex:a ex:r ex:b . ex:n ex:by ex:Bob .",
        f"ex:a ex:r ex:b . [] {REIFIED} ; ex:since 1999 ; ex:by ex:Bob .",
    ],
)
def test_statements_about_a_fact_are_its_attributes(read: Read, text: str) -> None:
    graph = read(f"{text} ex:Bob rdfs:label 'Bob' . ex:by rdfs:label 'says' . ex:c ex:year '1999'^^xsd:gYear .")
    assert [*graph.triples()] == [("ex:a", "ex:r", "ex:b"), ("ex:c", "ex:year", "1999")]
    (said,) = graph.attributes(("ex:a", "ex:r", "ex:b"))
    assert said | {"comment": "en"} == {"since": 1999, "says": "Bob", "comment": "en"}
    assert "ex:n" not in graph.entities
    assert graph.datatype("1999") == "xsd:gYear"
    assert "says 1, since 1" in graph.reading.understood["attributes of facts"]


def test_values_of_attributes_are_typed(read: Read) -> None:
    graph = read(
        'ex:a ex:r ex:b {| ex:i +7 ; ex:d 0.5 ; ex:t true ; ex:day "2001-02-03"^^xsd:date ; ex:text "7" ; '
        'ex:at "2001-02-03T00:00:00Z"^^xsd:dateTime ; ex:many "a", 2 ; ex:odd "x"^^xsd:integer ; ex:s:i ex:c ; '
        'ex:inf "INF"^^xsd:double ; a ex:Claim ; ex:unknown [] ; rdfs:label "a claim" |} .'
    )
    assert graph.attributes(("ex:a", "ex:r", "ex:b")) == [
        {"i (ex:i)": 7, "d": 0.5, "t": True, "day": "2001-02-03", "text": "7", "at": "2001-02-03", "many": ["a", 2]}
        | {"odd": "x", "i (ex:s:i)": "ex:c", "inf": "INF", "type": "ex:Claim", "label": "a claim"}
    ]
    assert graph.reading.left_out == {"attributes whose values are blank nodes of which nothing is said": 1}
    assert [*graph.entities] == ["ex:a", "ex:b"]


def test_attributes_keep_to_the_named_graph_of_their_fact(read: Read) -> None:
    text = "ex:g { ex:a ex:r ex:b {| ex:n 1 |} } ex:a ex:r ex:b . << ex:a ex:r ex:b >> ex:n 2 . "
    graph = read(text + "ex:h { ex:c ex:r ex:d . } << ex:c ex:r ex:d >> ex:source ex:x .", "trig")
    assert graph.attributes(("ex:a", "ex:r", "ex:b")) == [{"n": 1, "source": "ex:g"}, {"n": 2}]
    assert graph.attributes(("ex:c", "ex:r", "ex:d")) == [{"ex:source": "ex:x", "source": "ex:h"}]


def test_what_is_said_about_a_fact_of_many_graphs_is_bounded(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annotations, "MOST_GRAPHS", 1)
    graph = read("ex:g { ex:a ex:r ex:b } ex:h { ex:a ex:r ex:b } << ex:a ex:r ex:b >> ex:n 1 .", "trig")
    assert graph.attributes(("ex:a", "ex:r", "ex:b")) == [{"source": "ex:h"}, {"n": 1, "source": "ex:g"}]
    assert [*graph.reading.left_out.values()] == [1]


def test_what_is_no_fact_has_no_attributes(read: Read) -> None:
    graph = read(
        "<< ex:a ex:r ex:no >> ex:n 1 . ex:claim rdf:reifies <<( ex:a ex:r ex:never )>> ; ex:n 2 . "
        "ex:a a ex:K {| ex:n 3 |} ; ex:r ex:b {| ex:n 4 {| ex:n 5 |} |} ; ex:says <<( ex:a ex:r 1 )>> . "
        "ex:s a rdf:Statement ; rdf:subject ex:a ; rdf:predicate ex:r ; rdf:object ex:no ."
    )
    assert len(graph) == 5
    assert graph.attributes(("ex:a", "ex:r", "ex:b")) == [{"n": 4}]
    assert {("ex:claim", "ex:n", "2"), ("ex:s", "rdf:subject", "ex:a")} < {*graph.triples()}
    assert graph.reading.left_out == {
        "statements about triples that the source does not state": 2,
        "statements about types and names": 1,
        "attributes of attributes": 1,
        "triple terms, which are statements about statements": 1,
    }


def test_classes_and_properties(read: Read) -> None:
    text = "ex:a a ex:K . ex:K a owl:Class . ex:Other a owl:Class . ex:Sub rdfs:subClassOf ex:K ; a owl:Class ."
    graph = read(text, schema="keep")
    assert [*graph.triples()] == [("ex:Sub", "rdfs:subClassOf", "ex:K")]
    assert (graph.types_of("ex:a"), graph.types_of("ex:Sub")) == (["ex:K"], ["owl:Class"])
    described = read(text)
    assert ([*described.entities], len(described)) == (["ex:a"], 0)
    assert described.reading.left_out == {'triples that describe classes and relations (schema="keep")': 1}
    assert len(read(text, type_predicates=())) == 5


# --- named graphs -----------------------------------------------------------------------------------------------------

GRAPHS = (
    "ex:a ex:r ex:b . ex:g { ex:a ex:r ex:b, ex:c } ex:h { ex:a ex:r ex:c ; rdfs:label 'A' } _:g { ex:a ex:r ex:d }"
)


def test_named_graphs_are_sources(read: Read) -> None:
    graph = read(GRAPHS, "trig")
    assert {triple.tail: graph.sources(triple) for triple in graph.triples()} == {
        "ex:b": ["ex:g"],
        "ex:c": ["ex:g", "ex:h"],
        "ex:d": ["_:g2"],
    }
    assert graph.label("ex:a") == "A"
    assert graph.reading.understood["graphs"] == "3 named ones, kept as sources of facts"


def test_named_graphs_can_be_chosen(read: Read) -> None:
    graph = read(GRAPHS, "trig", graphs=["ex:h"])
    assert [*graph.triples()] == [("ex:a", "ex:r", "ex:c")]
    assert graph.reading.left_out == {"statements of other graphs (graphs=None)": 4}
    default = read(GRAPHS, "trig", graphs=["default"])
    assert ([*default.triples()], default.source_names) == ([("ex:a", "ex:r", "ex:b")], [])
    with pytest.raises(
        InvalidArgumentError, match=r"no named graph 'http.*nowhere'; its named graphs are '_:g', 'http"
    ):
        read(GRAPHS, "trig", graphs=["ex:nowhere"])


# --- formats ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["nt", "nq", "trig", "rdf", "jsonld"])
def test_every_format_says_the_same(read: Read, suffix: str) -> None:
    """Of the files of pyoxigraph, and of those of rdflib."""
    expected, format = content(read(FILM)), pyoxigraph.RdfFormat.from_extension(suffix)
    triples = [*pyoxigraph.parse(PREFIXES + FILM, format=pyoxigraph.RdfFormat.TURTLE)]
    by_rdflib = rdflib.Dataset(default_union=True).parse(data=PREFIXES + FILM, format="turtle")
    names = {"nt": "nt", "nq": "nquads", "trig": "trig", "rdf": "xml", "jsonld": "json-ld"}
    assert format is not None
    written = pyoxigraph.serialize((quad.triple for quad in triples), format=format)
    assert content(read(written, suffix)) == expected
    assert content(read(by_rdflib.serialize(format=names[suffix]), suffix)) == expected


def test_formulas_of_n3_state_nothing(read: Read) -> None:
    graph = read("@prefix : <http://e.org/> . { :a :b :c } => { :d :e :f } . :x :y :z .", "n3")
    assert (":a", ":b", ":c") not in graph
    assert (":x", ":y", ":z") in graph
    assert graph.reading.left_out == {"statements within formulas, which state nothing": 2}


def test_a_graph_of_rdflib(read: Read) -> None:
    graph = rdflib.Graph().parse(data=PREFIXES + FILM, format="turtle")
    assert content(KnowledgeGraph.from_rdf(graph)) == content(read(FILM))
    dataset = rdflib.Dataset()
    dataset.parse(data=PREFIXES + GRAPHS, format="trig")
    graph = KnowledgeGraph.from_rdf(dataset)
    assert ("ex:a", "ex:r", "ex:b") in graph
    assert graph.sources(("ex:a", "ex:r", "ex:c")) == ["ex:g", "ex:h"]
    assert graph.label("ex:a") == "A"


@pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated")
@pytest.mark.parametrize("kind", [rdflib.Dataset, rdflib.ConjunctiveGraph])
def test_facts_of_the_default_graph_of_rdflib_have_no_source(kind: type[rdflib.Graph]) -> None:
    dataset = kind()
    dataset.add((rdflib.URIRef("http://e.org/a"), rdflib.URIRef("http://e.org/r"), rdflib.URIRef("http://e.org/b")))
    assert KnowledgeGraph.from_rdf(dataset).schema().sources == {}


def test_an_iri_of_rdflib_that_is_none() -> None:
    graph = rdflib.Graph()
    graph.add((rdflib.URIRef("http://e.org/a b"), rdflib.URIRef("http://e.org/r"), rdflib.Literal("x")))
    graph.add((rdflib.URIRef("http://e.org/a"), rdflib.URIRef("http://e.org/r"), rdflib.Literal("x\ud800")))
    with pytest.raises(InvalidArgumentError, match=r"Invalid IRI|surrogates"):
        KnowledgeGraph.from_rdf(graph)
    assert KnowledgeGraph.from_rdf(graph, on_error="skip").skipped == 2


def test_the_package_is_read_without_rdflib_and_pyoxigraph(tmp_path: Path) -> None:
    path = tmp_path / "a.nt"
    path.write_text("<a:a> <a:r> <a:b> .\n")
    code = (
        "import sys; sys.modules['pyoxigraph'] = sys.modules['rdflib'] = None\n"
        "from kg_retrievers.errors import MissingExtraError\nfrom kg_retrievers.graph import KnowledgeGraph\n"
        "try: KnowledgeGraph.from_rdf(sys.argv[1])\nexcept MissingExtraError as error: print(error.extra)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == "rdf\n"


# --- what cannot be read ----------------------------------------------------------------------------------------------

HEAD = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
DEEP = MAX_DEPTH + 1
BOMB = "".join(f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in zip("abcdefgh", "bcdefghi", strict=True))
HOSTILE = {
    "deep lists": ("ttl", f"ex:a ex:r {'(' * DEEP}{')' * DEEP} .", "nested more than 256 deep"),
    "deep blank nodes": ("ttl", f"ex:a ex:r {'[ ex:r ' * DEEP}", "nested more than 256 deep"),
    "deep triple terms": ("nt", f"<a:a> <a:r> {'<<( <a:a> <a:r> ' * 50_000}", "nested more than 256 deep"),
    "deep triple terms in Turtle": ("ttl", f"ex:a ex:r {'<<( ex:a ex:r ' * 50_000}", "nested more than 256 deep"),
    "deep JSON": ("jsonld", '{"a:r":' * DEEP + "1" + "}" * DEEP, "nested more than 256 deep"),
    "deep contexts": ("jsonld", '{"@context":{"x":' * 20_000, "nested more than 256 deep"),
    "deep XML": ("rdf", HEAD + "<rdf:Description><e:r>" * DEEP, "nested more than 256 deep"),
    "XML bomb": ("rdf", f'<!DOCTYPE r [<!ENTITY a "aaaaaaaa">{BOMB}]>{HEAD}', "the entity 'b' is declared with more"),
    "XML that includes": ("rdf", f'<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/hosts">]>{HEAD}', "never read"),
    "XML without tags": ("rdf", HEAD + "x" * (17 << 20), "stand between two tags"),
    "XML that ends": ("rdf", HEAD, "no well-formed XML"),
    "no XML": ("rdf", "<a", "no well-formed XML"),
    "broken XML": ("rdf", "<a></b>", "no well-formed XML"),
    "remote context": ("jsonld", '{"@context":"https://w3id.org/x","@id":"a:b","name":"x"}', "only that of schema.org"),
    "no JSON": ("jsonld", '{"@id":', "is no JSON-LD"),
    "endless line": ("nt", '<a:a> <a:r> "' + "x" * (17 << 20), "more than"),
    "endless literal": ("ttl", 'ex:a ex:r "' + "x" * (6 << 20), "a literal or comment has more than 4,194,304 bytes"),
    "long literal": ("nt", f'<a:a> <a:r> "{"x" * 1_048_577}" .\n', "has 1,048,577 characters"),
    "long literal in Turtle": ("ttl", f'ex:a ex:r "{"x" * 1_048_577}" .\n', "limits=Limits(cell_length=1048577)"),
    "long statement": ("nt", f'<a:a> <a:r> "{"x" * (16 << 20)}" .\n', "No limit raises this: shorten the text"),
    "long IRI": ("nt", f"<a:a> <a:r> <a:{'x' * 1_048_577}> .\n", "an IRI of 1,048,579 characters"),
    "NUL": ("nt", '<a:a> <a:r> "a\\u0000b" .\n', "a NUL character"),
    "surrogate": ("nt", '<a:a> <a:r> "\\uD800" .\n', "not a valid unicode character"),
    "space in an IRI": ("nt", "<a:a> <a:r> <a:b c> .\n", "Invalid IRI"),
    "quote in an IRI": ("nt", '<a:a> <a:r> <a:b"c> .\n', "Invalid IRI"),
    "relative IRI": ("ttl", "<a> <b> <c> .", 'base_iri="http'),
    "relative IRI in N-Triples": ("nt", "<a> <b> <c> .\n", "No scheme"),
    "not UTF-8": ("nt", b'<a:a> <a:r> "\xff\xfe" .\n', "RDF is UTF-8 in every format."),
    "no RDF": ("nt", b"\x00\x01\x02" * 100, "is no N-Triples"),
    "nothing": ("nt", "", "the file is empty: no facts"),
    "broken archive": ("nt.gz", gzip.compress(b"<a:a> <a:r> <a:b> .\n" * 2_000)[:-20], "cannot be read"),
    "unknown suffix": ("doc", "<a:a> <a:r> <a:b> .\n", "no format of RDF"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_cannot_be_read(read: Read, name: str) -> None:
    suffix, text, message = HOSTILE[name]
    with pytest.raises(GraphLoadError) as caught:
        read(text, suffix)
    assert message in str(caught.value)
    assert caught.value.path.name == f"graph.{suffix}"
    with suppress(GraphLoadError):  # nothing is left
        assert len(read(text, suffix, on_error="skip")) == 0


def test_an_error_says_the_line(read: Read) -> None:
    text = "<a:a> <a:r> <a:b> .\n<a:a> oops <a:c> .\n<a:a> <a:r> <a:d> .\n<a:a>\n"
    with pytest.raises(GraphLoadError, match=r"graph\.nt:2: is no N-Triples: .*on_error=") as caught:
        read(text, "nt")
    assert caught.value.line == 2
    graph = read(text, "nt", on_error="skip")
    assert (len(graph), graph.skipped) == (2, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"literals": "no"}, "literals must be 'keep' or 'drop'"),
        ({"on_error": "ignore"}, "on_error must be 'raise' or 'skip'"),
        ({"languages": "en"}, "languages: .*, but got 'en'"),
        ({"format": "csv"}, "format is one of N-Triples"),
        ({"base_iri": "nowhere"}, "base_iri is no absolute IRI"),
        ({"type_predicates": ["nope:kind"]}, "no known prefix begins it"),
        ({"label_predicates": ["label"]}, "no known prefix begins it"),
    ],
)
def test_arguments_are_checked(read: Read, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        read(FILM, **options)


def test_only_paths_and_graphs_are_read() -> None:
    with pytest.raises(InvalidArgumentError, match="wanted the path of a file"):
        KnowledgeGraph.from_rdf(7)


def test_names_of_predicates_may_have_prefixes_of_the_file(read: Read) -> None:
    graph = read('ex:a ex:kind ex:K ; ex:called "A" .', type_predicates=["ex:kind"], label_predicates=["ex:called"])
    assert (graph.label("ex:a"), graph.types_of("ex:a")) == ("A", ["ex:K"])


PIECES = [
    b"[", b"]", b"(", b")", b"<<(", b")>>", b"<<", b">>", b"<a:b#c(>", b'"x[["', b'"a\\"("', b"'(('", b"'''a''b( \n'''",
    b'"""q""( \n"""', b'""', b"''", b"# it's ((( \"\n", b"\\(", b"a:b", b"{", b"}", b"\n",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=20), st.lists(st.integers(0, 60), max_size=5))
def test_a_guard_sees_the_same_brackets_however_a_file_is_cut(pieces: list[bytes], cuts: list[int]) -> None:
    data, depths = b" ".join(pieces) + b" .", []
    for places in ([], sorted({min(cut, len(data)) for cut in cuts})):
        guard = DepthGuard(pytest.fail, 1_000)
        for start, stop in zip([0, *places], [*places, len(data)], strict=True):
            guard.feed(data[start:stop])
        depths.append((guard._depth, guard._rest))
    assert depths[0] == depths[1]


JSON_PIECES = [b"[", b"]", b"{", b"}", b'"[\\"["', b'"\\\\"', b'"[\\\\\\"]"', b'""', b'"a": ', b", "]


@given(st.lists(st.sampled_from(JSON_PIECES), max_size=20), st.lists(st.integers(0, 60), max_size=5))
def test_a_guard_of_json_counts_brackets_outside_of_texts(pieces: list[bytes], cuts: list[int]) -> None:
    data, depth = b"".join(pieces), 0
    for piece in pieces:
        depth = depth + 1 if piece in (b"[", b"{") else max(0, depth - (piece in (b"]", b"}")))
    guard, places = JsonGuard(pytest.fail, 1_000), sorted({min(cut, len(data)) for cut in cuts})
    for start, stop in zip([0, *places], [*places, len(data)], strict=True):
        guard.feed(data[start:stop])
    assert guard._depth == depth


# --- round trip -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(
    "context",
    [
        "https://schema.org",
        "http://schema.org/",
        "https://schema.org/docs/jsonldcontext.jsonld",
        ["https://schema.org", {}],
    ],
)
def test_the_context_of_schema_org_comes_with_the_package(tmp_path: Path, context: Any, indent: int | None) -> None:
    film = {"@id": "http://e.org/her", "@type": "Movie", "name": "Her", "sameAs": "http://e.org/2", "genre": "Drama"}
    one = {"@context": context, **film}
    films = [one | {"description": '"@context": "https://schema.org"'}, one]
    (tmp_path / "films.json").write_text(json.dumps(films, indent=indent))
    graph = KnowledgeGraph.from_file(tmp_path / "films.json")
    assert {(fact.relation, graph.datatype(fact.tail)) for fact in graph.triples()} == {
        ("schema:sameAs", None), ("schema:genre", "xsd:string"), ("schema:description", "xsd:string")
    }  # fmt: skip
    assert (graph.label("http://e.org/her"), graph.types_of("http://e.org/her")) == ("Her", ["schema:Movie"])


def test_a_document_with_the_context_of_schema_org_is_bounded(read: Read) -> None:
    text = '{"@context":"https://schema.org/","@id":"a:b","name":"x"}' + " " * 300_000
    with pytest.raises(GraphLoadError, match=r"a document of more than 100,000 bytes.*Limits\(document_bytes="):
        read(text, "jsonld", limits=Limits(document_bytes=100_000))


@pytest.mark.parametrize("suffix", ["nt", "ttl", "rdf", "jsonld"])
def test_a_round_trip_of_names_that_are_no_iris(tmp_path: Path, suffix: str) -> None:
    graph = KnowledgeGraph.from_triples(
        [
            ("Her", "directed by", "Spike Jonze"),
            ("é/#?", "50% off", "<x>"),
            ("dbr:X", "http://e.org/rel", "Half: Life"),
        ],
        labels={"Her": "Her (film)", "dbr:X": "X!"},
        aliases={"Her": ["HER"]},
        types={"Her": ["drama film", "film"], "Spike Jonze": ["person"], "é/#?": ["person"]},
        relation_labels={"directed by": "director"},
    )
    graph.write(tmp_path / f"out.{suffix}")
    assert content(KnowledgeGraph.from_rdf(tmp_path / f"out.{suffix}", prefixes=graph.prefixes)) == content(graph)


def test_types_keep_their_iris(tmp_path: Path) -> None:
    text = f"""@prefix dbo: <http://dbpedia.org/ontology/> . @prefix rdfs: <{WELL_KNOWN["rdfs"]}> .
    dbo:Film rdfs:label "film" . <http://example.org/her> a dbo:Film ; rdfs:label "Her" ; dbo:year "2013" ."""
    (tmp_path / "a.ttl").write_text(text, encoding="utf-8")
    graph = KnowledgeGraph.from_rdf(tmp_path / "a.ttl")
    graph.save(tmp_path / "saved")
    graph.with_changes(added=[("Alien", "year", "1979")]).write(tmp_path / "b.ttl")
    again = KnowledgeGraph.from_rdf(tmp_path / "b.ttl")
    assert graph.type_ids == again.type_ids == {"film": "dbo:Film"}
    assert KnowledgeGraph.open(tmp_path / "saved").type_ids == graph.type_ids
    assert "a dbo:Film" in (tmp_path / "b.ttl").read_text(encoding="utf-8")
