"""A SPARQL endpoint on loopback: its graph and the parts of it are those that the reader of files reads."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from oxigraph_server import Oxigraph

from kg_retrievers.database.sparql.executor import SparqlExecutor
from kg_retrievers.errors import DatabaseQueryError, InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph, Triple
from kg_retrievers.graph.parts import StoredEntity

pytest.importorskip("pyoxigraph")

DBR, DBO, RDFS = "http://dbpedia.org/resource/", "http://dbpedia.org/ontology/", "http://www.w3.org/2000/01/rdf-schema#"
RDF, SKOS = "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.w3.org/2004/02/skos/core#"
XSD, OWL = "http://www.w3.org/2001/XMLSchema#", "http://www.w3.org/2002/07/owl#"
THINGS = [f"<{DBR}{name}>" for name in ("Her", "Jonze_(director)", "AC/DC", "Gr%C3%BC%C3%9Fe")]
THINGS += ["<urn:x-name:Her>", "<urn:x-name:dbr%3AHer>", "<http://example.org/x?a=1#b>", "<wd:Q1>", "_:b1", "_:b2"]
THINGS += [f"<{DBO}Film>", f"<{DBO}director>", "<http://www.wikidata.org/entity/P57>"]
RELATIONS = [f"<{DBO}director>", f"<{DBO}starring>", "<http://example.org/p/director>", "<urn:x-name:made%20by>"]
RELATIONS += ["<http://www.wikidata.org/prop/direct/P57>"]
ABOUT = [f"<{RDFS}label>", f"<{SKOS}prefLabel>", f"<{SKOS}altLabel>", "<http://schema.org/name>"]
TEXTS = ['"Her"', '"Her"@en', '"her"@en-gb', '"Sie"@de', '"elle"@fr', '"dbr:Her"', '"a \\\\u0022 b"', '""']
TEXTS += ['"director"@en', '"film"', '"über"@mul', f'"2013"^^<{XSD}gYear>', f'"2013"^^<{XSD}integer>', '"x"^^<urn:odd>']
TYPES = [f"<{DBO}Film>", "<http://example.org/types/Film>", f"<{OWL}Class>", "_:b1"]


def random_rdf(seed: int) -> str:
    """N-Triples with facts, names, types, literals, blank nodes and what looks like something else."""
    choose = random.Random(seed)
    lines = set()
    for _ in range(choose.randint(5, 60)):
        thing = choose.choice(THINGS)
        relation, tail = choose.choice(
            [
                (choose.choice(RELATIONS), choose.choice(THINGS)),
                (choose.choice(RELATIONS), choose.choice(TEXTS)),
                (choose.choice(ABOUT), choose.choice(TEXTS)),
                (choose.choice(ABOUT), choose.choice(THINGS)),
                (f"<{RDF}type>", choose.choice(TYPES)),
                (f"<{RDF}type>", choose.choice(TEXTS)),
            ]
        )
        lines.add(f"{thing} {relation} {tail} .\n")
    return "".join(sorted(lines)) + f"{THINGS[0]} {RELATIONS[0]} {THINGS[1]} .\n"


Pairs = list[tuple[KnowledgeGraph, SparqlExecutor]]


OPTIONS: dict[str, Any] = {"languages": ["de", "*"], "literals": "drop"}
SWEEP = pytest.mark.heavy


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((range(2), {}), id="default"),
        pytest.param((range(2), OPTIONS), id="options"),
        pytest.param((range(2, 8), {}), id="default-more", marks=SWEEP),
        pytest.param((range(2, 8), OPTIONS), id="options-more", marks=SWEEP),
    ],
)
def pairs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pairs]:
    """Graphs of files, and the same files behind endpoints."""
    with ExitStack() as servers:
        found = []
        seeds, options = request.param
        for seed in seeds:
            folder = tmp_path_factory.mktemp("oxigraph")
            file = folder / "graph.nt"
            file.write_text(random_rdf(seed), "utf-8")
            graph = KnowledgeGraph.from_rdf(file, blank_nodes="drop", schema="keep", **options)
            server = servers.enter_context(Oxigraph(folder, file))
            found.append((graph, servers.enter_context(server.executor(**options))))
        yield found


def described(graph: KnowledgeGraph) -> list[StoredEntity]:
    """All entities of a graph as an executor describes them."""
    return [
        StoredEntity(key, graph.label(key), list(graph.aliases(key)), sorted(graph.types_of(key)))
        for key in sorted(graph.entities)
    ]


def test_the_whole_graph(pairs: Pairs) -> None:
    for graph, executor in pairs:
        read = KnowledgeGraph.from_executor(executor)
        assert sorted(read.triples()) == sorted(graph.triples())
        assert described(read) == described(graph)


def test_relations_and_facts(pairs: Pairs) -> None:
    for graph, executor in pairs:
        assert executor.relations() == sorted(graph.relations)
        assert executor.facts_of(list(graph.entities))[:2] == (sorted(graph.triples()), False)
        assert executor.facts_between(list(graph.entities))[:2] == (sorted(graph.triples()), False)
        for key in graph.entities:
            wanted = sorted(fact for fact in graph.triples() if key in (fact.head, fact.tail))
            assert executor.facts_of([key, "nobody"])[:2] == (wanted, False)
            of_relation = [fact for fact in wanted if fact.relation == graph.relations[0]]
            assert executor.facts_of([key], relations=[graph.relations[0], "nothing"]).triples == of_relation
        some = list(graph.entities)[:3]
        described = executor.describe(some)
        for facts in (executor.facts_of(some), executor.facts_between(some)):
            assert [entity for entity in facts.entities if entity.key in some] == described
        between = sorted(fact for fact in graph.triples() if fact.head in some and fact.tail in some)
        assert executor.facts_between(some).triples == between
        for relation in graph.relations:
            of_relation = sorted(graph.triples(relation=relation))
            assert executor.sample_facts([relation], 100)[:2] == (of_relation, False)
            (fact,), more, *_ = executor.sample_facts([relation], 1)
            assert fact in of_relation
            assert more or len(of_relation) == 1
        assert executor.facts_of(some, relations=["nothing"])[:2] == ([], False)
        few = executor.facts_of(list(graph.entities), limit=2)
        assert len(few.triples) == min(2, len(set(graph.triples())))
        assert few.truncated == (len(set(graph.triples())) > 2)
        assert executor.sample_facts(["nothing"], 3)[:2] == ([], False)


def test_descriptions(pairs: Pairs) -> None:
    for graph, executor in pairs:
        assert executor.describe([*graph.entities, "nobody", "\0", "\ud800"]) == described(graph)


def test_names(pairs: Pairs) -> None:
    for graph, executor in pairs:
        names = [name for key in graph.entities for name in (key, graph.label(key), *graph.aliases(key))]
        found = executor.entities_named([*names, "nobody"])
        for name in names:
            wanted = [key for key in graph.entities if name in (key, graph.label(key), *graph.aliases(key))]
            # The end of an IRI is looked for in namespaces that are given; it is the label of what has no other.
            ends = [key for key in wanted if name != key and name not in graph.aliases(key) and not labelled(key, name)]
            assert set(wanted) - set(ends) <= set(found[name]) <= set(wanted), name
        assert found["nobody"] == []


def labelled(key: str, label: str) -> bool:
    """Whether a label is no mere end of the IRI that a key stands for."""
    return label.replace(" ", "_") not in key and label not in ("b", "Grüße")


@pytest.mark.parametrize("page_size", [pytest.param(1, marks=SWEEP), 3, 1000])
def test_pages_of_entities(pairs: Pairs, page_size: int) -> None:
    for graph, executor in pairs[:3]:
        position: str | None = ""
        found: list[StoredEntity] = []
        while position is not None:
            page = executor.entities_after(position, page_size)
            assert len(page.entities) <= page_size
            found += page.entities
            position = page.position
        assert sorted(found) == described(graph)


# --- queries ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparqlExecutor]:
    folder = tmp_path_factory.mktemp("films")
    lines = [f'<{DBR}Film_{number}> <{DBO}year> "{1990 + number}"^^<{XSD}integer> .' for number in range(20)]
    lines += [f"<{DBR}Film_{number}> <{DBO}director> <{DBR}Person_{number % 3}> ." for number in range(20)]
    (folder / "films.nt").write_text("\n".join(lines))
    with Oxigraph(folder, folder / "films.nt") as server, server.executor() as executor:
        yield executor


YEARS = "SELECT ?film ?year WHERE { ?film dbo:year ?year }"


def test_rows(films: SparqlExecutor) -> None:
    rows = films.run(f"{YEARS} ORDER BY DESC(?year)", limit=2)
    assert (rows.columns, rows.rows) == (("film", "year"), (("dbr:Film_19", "2009"), ("dbr:Film_18", "2008")))
    assert rows.truncated
    assert not films.run(YEARS, limit=20).truncated
    first = films.run(YEARS, limit=5).rows
    assert first == films.run(YEARS, limit=5).rows == tuple(sorted(films.run(YEARS).rows)[:5])
    assert len(films.run(f"{YEARS} LIMIT 3", limit=5)) == 3
    assert films.run(f"{YEARS} ORDER BY ?year LIMIT 2 OFFSET 1").rows[0] == ("dbr:Film_1", "1991")
    assert films.run("SELECT ?x ?y { VALUES (?x ?y) { (1 UNDEF) } }").rows == (("1", None),)
    assert films.run("SELECT (COUNT(*) AS ?n) { ?s dbo:year ?y } GROUP BY ?z").rows == (("20",),)


def test_parameters(films: SparqlExecutor) -> None:
    query = (
        "SELECT ?film WHERE { VALUES ?who { $who } ?film dbo:director ?who ; dbo:year ?year FILTER(?year < $before) }"
    )
    rows = films.run(query, {"who": ["dbr:Person_0", "nobody"], "before": 1995, "unused": 3})
    assert rows.column("film") == ["dbr:Film_0", "dbr:Film_3"]
    assert films.run(query, {"who": [], "before": 1995.5}).rows == ()
    assert films.run("SELECT ?film { ?film ?p ?x FILTER(?x IN ($x)) }", {"x": "1993"}).rows == (("dbr:Film_3",),)
    for value in (None, {"a": 1}, [["a"]], b"a", "\0"):
        with pytest.raises(InvalidArgumentError, match="the parameter"):
            films.run(query, {"who": value, "before": 1})


def test_facts_of_rows(films: SparqlExecutor) -> None:
    query = "SELECT (?film AS ?target) (?film AS ?h0) ?r0 (?who AS ?t0) ?t1 { ?film ?r0 ?who . VALUES ?film { $film } }"
    rows = films.run(query, {"film": "dbr:Film_4"})
    assert rows.columns == ("target", "t1", "r0")
    facts = [Triple("dbr:Film_4", "dbo:director", "dbr:Person_1"), Triple("dbr:Film_4", "dbo:year", "1994")]
    assert [row[2].triple for row in rows.rows] == facts


def test_a_query_that_the_endpoint_refuses(films: SparqlExecutor) -> None:
    with pytest.raises(DatabaseQueryError, match="error at") as caught:
        films.run("SELECT ?film ?year WHERE { ?film dbo:year ?year } GROUP BY ?year")
    assert "error at" in caught.value.reason


def test_a_pickle_and_a_copy(films: SparqlExecutor) -> None:
    other = pickle.loads(pickle.dumps(films))
    assert other.run(YEARS).rows == films.run(YEARS).rows
    assert repr(other) == repr(films) == f"SparqlExecutor({films.url!r})"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"url": None}, "neither url= nor preset="),
        ({"url": "http://ann:secret@localhost/query"}, "SPARQL_USERNAME"),
        ({"url": "ftp://localhost/query"}, "wanted a URL"),
        ({"url": "localhost:7878"}, "wanted a URL"),
        ({"preset": "freebase"}, "preset is 'freebase'"),
        ({"requests_per_second": 0}, "not above 0"),
        ({"max_bytes": 0}, "no integer from 1"),
        ({"languages": ['en") || true']}, "Wanted a code"),
        ({"label_predicates": ["nothing:label"]}, "no IRI|Give its prefix"),
        ({"namespaces": ["no namespace"]}, "no IRI"),
        ({"literals": "all"}, "'keep' or 'drop'"),
    ],
)
def test_arguments(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidArgumentError, match=reason) as caught:
        SparqlExecutor(**{"url": "http://localhost:7878/query", **options})
    assert "secret" not in str(caught.value)


def test_bounds_of_arguments(films: SparqlExecutor) -> None:
    calls = [
        lambda: films.run(YEARS, limit=0), lambda: films.run(YEARS, timeout=0), lambda: films.facts_of(["a"], limit=0),
        lambda: films.facts_between(["a"], limit=0), lambda: films.entities_named(["a"], limit=0),
        lambda: films.sample_facts(["a"], 0), lambda: films.entities_after("", 0), lambda: films.entities_after("x", 1),
        lambda: films.entities_after("g.1", 1), lambda: films.describe(["a"], timeout=-1),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(InvalidArgumentError, match=r"SparqlExecutor\."):
            call()


# --- presets ----------------------------------------------------------------------------------------------------------

WD, WDT, WIKIBASE = (
    "http://www.wikidata.org/entity/",
    "http://www.wikidata.org/prop/direct/",
    "http://wikiba.se/ontology#",
)
WIKIDATA = f"""
<{WD}Q788822> <{WDT}P57> <{WD}Q284876> .
<{WD}Q788822> <{WDT}P31> <{WD}Q11424> .
<{WD}Q788822> <{WDT}P345> "tt1798709" .
<{WD}Q788822> <{WDT}P577> "2013-10-13T00:00:00Z"^^<{XSD}dateTime> .
<{WD}Q788822> <http://www.wikidata.org/prop/P57> <{WD}statement/Q788822-1> .
<{WD}Q788822> <{RDFS}label> "Her"@en .
<{WD}Q788822> <{RDFS}label> "Elle"@fr .
<{WD}Q788822> <{SKOS}altLabel> "Her (film)"@en .
<{WD}Q788822> <http://schema.org/description> "2013 film by Spike Jonze"@en .
<{WD}Q284876> <{RDFS}label> "Spike Jonze"@en .
<{WD}Q11424> <{RDFS}label> "film"@en .
<{WD}P57> <{WIKIBASE}directClaim> <{WDT}P57> .
<{WD}P57> <{WIKIBASE}propertyType> <{WIKIBASE}WikibaseItem> .
<{WD}P57> <{RDFS}label> "director"@en .
<{WD}P577> <{WIKIBASE}directClaim> <{WDT}P577> .
<{WD}P577> <{RDFS}label> "publication date"@en .
<{WD}P345> <{WIKIBASE}directClaim> <{WDT}P345> .
<{WD}P345> <{WIKIBASE}propertyType> <{WIKIBASE}ExternalId> .
"""
DBPEDIA = f"""
<{DBR}Her_(film)> <{DBO}director> <{DBR}Spike_Jonze> .
<{DBR}Her_(film)> <{DBO}wikiPageID> "37889128"^^<{XSD}integer> .
<{DBR}Her_(film)> <http://dbpedia.org/property/director> <{DBR}Spike_Jonze> .
<{DBR}Her_(film)> <{RDF}type> <{DBO}Film> .
<{DBR}Her_(film)> <{RDFS}label> "Her (film)"@en .
<{DBO}director> <{RDF}type> <{OWL}ObjectProperty> .
<{DBO}director> <{RDFS}label> "film director"@en .
<{DBO}wikiPageID> <{RDF}type> <{OWL}DatatypeProperty> .
<{DBO}Film> <{RDFS}label> "movie"@en .
"""


def preset(folder: Path, name: Any, text: str) -> tuple[Oxigraph, SparqlExecutor]:
    file = folder / f"{name}.nt"
    file.write_text(text)
    server = Oxigraph(folder, file)
    return server, server.executor(preset=name)


def test_wikidata(tmp_path: Path) -> None:
    server, executor = preset(tmp_path, "wikidata", WIKIDATA)
    with server, executor:
        assert executor.relations() == ["director", "publication date"]
        facts = executor.facts_of(["wd:Q788822"])
        assert facts.triples == [
            Triple("wd:Q788822", "director", "wd:Q284876"),
            Triple("wd:Q788822", "publication date", "2013-10-13T00:00:00Z"),
        ]
        her = StoredEntity("wd:Q788822", "Her", ["Her (film)"], ["film"])
        assert executor.describe(["wd:Q788822"]) == [her]
        assert executor.entities_named(["Her", "Her (film)", "Elle"]) == {
            "Her": ["wd:Q788822"], "Her (film)": ["wd:Q788822"], "Elle": [],
        }  # fmt: skip
        assert executor.schema().sampled


def test_dbpedia(tmp_path: Path) -> None:
    server, executor = preset(tmp_path, "dbpedia", DBPEDIA)
    with server, executor:
        assert executor.relations() == ["dbo:wikiPageID", "film director"]
        facts = [
            Triple("dbr:Her_(film)", "dbo:wikiPageID", "37889128"),
            Triple("dbr:Her_(film)", "film director", "dbr:Spike_Jonze"),
        ]
        assert executor.facts_of(["dbr:Her_(film)"]).triples == facts
        assert executor.describe(["dbr:Her_(film)", "dbr:Spike_Jonze"]) == [
            StoredEntity("dbr:Her_(film)", "Her (film)", [], ["movie"]),
            StoredEntity("dbr:Spike_Jonze", "Spike Jonze", [], []),
        ]
        assert set(KnowledgeGraph.from_executor(executor).triples()) == set(facts)
