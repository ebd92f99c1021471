"""A graph with an ontology beside it, in files of their own: as one graph, and asked from Python and on the shell."""

from __future__ import annotations

from pathlib import Path

import networkx
import pytest
import rdflib
from shell_mistakes import Run, mistake

from kg_retrievers import GraphIndex, KGRetriever, KnowledgeGraph, StaticEmbeddings, generate_questions
from kg_retrievers.errors import GraphLoadError, GraphLoadWarning, InvalidArgumentError

PREFIXES = """
@prefix : <http://example.org/rail#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
DATA = """
:north a :Depot ; rdfs:label "North Depot" ; :openedOn "1998-05-01"^^xsd:date ; :capacity 40 ; :managedBy :ann ;
    :audit [ a :Audit ; :auditor :ben ; :year 2020 ] .
:south a :Depot ; rdfs:label "South Depot" ; :openedOn "2011-03-01"^^xsd:date ; :capacity 25 ; :managedBy :cleo ;
    :audit [ a :Audit ; :auditor :dora ; :year 2022 ] .
:central a :Terminus ; rdfs:label "Central Station" ; :openedOn "2020-03-01"^^xsd:date ; :capacity 90 ;
    :managedBy :ann .
:west a :Halt ; rdfs:label "West Halt" ; :openedOn "1970-03-01"^^xsd:date ; :capacity 5 ; :managedBy :ben .
:ann a :Person ; rdfs:label "Ann Lee" . :ben a :Person, owl:NamedIndividual ; rdfs:label "Ben Roe" .
:cleo a :Person ; rdfs:label "Cleo Fox" . :dora a :Person ; rdfs:label "Dora Kay" .
"""
ONTOLOGY = """
<http://example.org/rail> a owl:Ontology ; rdfs:label "Rail" ; owl:versionInfo "1.0" .
:Site a owl:Class ; rdfs:label "site" ; rdfs:subClassOf owl:Thing .
:Station a owl:Class ; rdfs:label "station" ; rdfs:subClassOf :Site .
:Terminus a owl:Class ; rdfs:label "terminus" ; rdfs:subClassOf :Station ; rdfs:comment "The end of a line." .
:Halt a owl:Class ; rdfs:label "halt" ; rdfs:subClassOf :Station .
:Depot a owl:Class ; rdfs:label "depot" ; owl:disjointWith :Station ; rdfs:subClassOf :Site,
    [ a owl:Restriction ; owl:onProperty :managedBy ; owl:allValuesFrom [ owl:unionOf (:Person :Site) ] ] .
:Audit rdfs:subClassOf :Event . :Event a owl:Class ; rdfs:label "event" . :Person a owl:Class ; rdfs:label "person" .
:managedBy a owl:ObjectProperty ; rdfs:label "managed by" ; rdfs:domain :Site ; rdfs:range :Person .
:openedOn a owl:DatatypeProperty ; rdfs:label "opened" ; rdfs:range xsd:date .
:audit a owl:ObjectProperty ; rdfs:label "audit" . :auditor a owl:ObjectProperty ; rdfs:label "auditor" .
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A file of data, and an ontology beside it."""
    data, ontology = tmp_path / "rail" / "data.ttl", tmp_path / "rail" / "ontology.ttl"
    data.parent.mkdir()
    monkeypatch.chdir(tmp_path)
    data.write_text(PREFIXES + DATA)
    ontology.write_text(PREFIXES + ONTOLOGY)
    return data, ontology


Files = tuple[Path, Path]


@pytest.fixture
def graph(files: Files) -> KnowledgeGraph:
    """The graph of both files."""
    return KnowledgeGraph.from_file(files)


def test_an_ontology_names_relations_and_widens_types(graph: KnowledgeGraph, files: Files) -> None:
    alone = KnowledgeGraph.from_file(files[0])
    assert [*graph.entities] == [*alone.entities]
    assert [(fact.head, graph.relation_id(fact.relation), fact.tail) for fact in graph.triples()] == [*alone.triples()]
    assert graph.types_of(":central") == ["site", "station", "terminus"]
    assert {"managed by", "opened", "audit", "auditor"} < {*graph.relations}
    assert graph.types_of(":ben") == ["person"]
    assert graph.reading.left_out['triples that describe classes and relations (schema="keep")'] == 20
    assert graph.reading.understood["files"] == "data.ttl; ontology.ttl"


def test_every_way_to_name_the_files_gives_one_graph(graph: KnowledgeGraph, files: Files) -> None:
    data, ontology = files
    for other in (
        KnowledgeGraph.from_file(data.parent),
        KnowledgeGraph.from_file(data, ontology=ontology),
        KnowledgeGraph.from_rdf([str(data), str(ontology)]),
        KnowledgeGraph.from_rdf(data, ontology=[ontology]),
        KnowledgeGraph.from_rdf(rdflib.Graph().parse(data), ontology=ontology),
    ):
        assert {*other.triples()} == {*graph.triples()}
        assert all(other.types_of(key) == graph.types_of(key) for key in graph.entities)


def test_an_ontology_file_has_no_facts(files: Files, tmp_path: Path) -> None:
    colours = tmp_path / "colours.ttl"
    colours.write_text(PREFIXES + ':red a :Colour ; rdfs:label "red" ; :likes :ann . :Halt rdfs:label "stop" .')
    graph = KnowledgeGraph.from_rdf(files[0], ontology=colours)
    assert ":red" not in graph.entities
    assert graph.types_of(":west") == ["stop"]
    assert graph.reading.left_out["other statements of files that only describe"] == 2


def test_triples_about_classes_are_facts_if_wanted_or_if_there_is_nothing_else(files: Files) -> None:
    assert (":Halt", "rdfs:subClassOf", ":Station") in KnowledgeGraph.from_rdf(files, schema="keep")
    assert (":Halt", "rdfs:subClassOf", ":Station") in KnowledgeGraph.from_rdf(files[1])


def test_tables_beside_rdf(files: Files, tmp_path: Path) -> None:
    table, names = tmp_path / "homes.tsv", tmp_path / "homes.jsonl"
    table.write_text(":ann\t:livesIn\tLeeds\n")
    names.write_text(
        '{"head": ":ben", "relation": ":livesIn", "tail": "York"}\n{"relation": ":livesIn", "label": "lives in"}\n'
    )
    graph = KnowledgeGraph.from_file([*files, table, names], text_relations=["lives in"])
    assert {fact.tail for fact in graph.triples(relation="lives in")} == {"Leeds", "York"}
    assert graph.label(":ann") == "Ann Lee"
    names.write_text('{"entity": ":ann", "aliases": ["Annie"]}')
    assert KnowledgeGraph.from_file(files, entities=names).aliases(":ann") == ["Annie"]
    assert (graph.reading.understood["formats"], graph.reading.changes) == ("Turtle, TSV, JSON lines", {})
    with pytest.raises(InvalidArgumentError, match=r"homes\.tsv holds no RDF.*Give entities="):
        KnowledgeGraph.from_file(table, ontology=files[1])


def test_an_error_names_the_file(files: Files) -> None:
    files[1].write_text("no turtle")
    with pytest.raises(GraphLoadError, match=r"ontology\.ttl"):
        KnowledgeGraph.from_file(files)
    with pytest.raises(InvalidArgumentError, match=r"wanted the path of a file, but got \[\]"):
        KnowledgeGraph.from_file([])


def test_blank_nodes_are_called_by_what_they_hold(tmp_path: Path) -> None:
    one, two = tmp_path / "one.nt", tmp_path / "two.ttl"
    one.write_text('<urn:a> <http://x.org/heldAt> _:x .\n_:x <http://x.org/year> "1999" .\n')
    two.write_text(
        "@prefix : <http://x.org/> . :b :heldAt _:x . _:x :place [ :city :Rome ] ; :by (:ann :ben) . :c :heldAt [] ."
    )
    graph = KnowledgeGraph.from_file([one, two])
    labels = [graph.label(fact.tail) for fact in graph.triples() if fact.relation.endswith("heldAt")]
    assert sorted(labels) == [
        "held at (place: place (city: Rome), by: list (ann, ben))",
        "held at (year: 1999)",
        "unnamed held at",
    ]


QUESTIONS = {
    "How many depots are there?": ([], 2),
    "How many stations are there?": ([], 2),
    "Which stations opened after 2000?": ([":central"], None),
    "Which depot has the largest capacity?": ([":north"], "40"),
    "Which site opened first?": ([":west"], "1970-03-01"),
    "Which persons do not manage a site?": ([":dora"], None),
    "Who manages the North Depot?": ([":ann"], None),
    "Which depot was audited by Dora Kay?": ([":south"], None),
}


def test_questions_stay_right_beside_an_ontology(graph: KnowledgeGraph) -> None:
    retriever = KGRetriever.from_index(GraphIndex.build(graph, StaticEmbeddings()))
    for question, (answers, value) in QUESTIONS.items():
        found = retriever.invoke(question)[0].metadata
        assert found["confidence"] > 0.5, question
        assert found["answers"] == answers if answers else found["value"] == value, question
    audit = retriever.invoke("What is the audit of North Depot?")[0]
    assert [audit.metadata["labels"][key] for key in audit.metadata["answers"]] == [
        "audit (auditor: Ben Roe, year: 2020)"
    ]
    assert "_:b" not in audit.page_content


def test_written_questions_name_no_blank_node(graph: KnowledgeGraph) -> None:
    questions = generate_questions(graph, 200)
    assert questions
    assert not any("_:b" in question.text or "(auditor" in question.text for question in questions)
    assert not any(key.startswith("_:") for question in questions for key in question.answers)


def test_several_files_on_the_shell(run: Run, files: Files) -> None:
    data, ontology = map(str, files)
    for words in ((data, "--also", ontology), (data, "--ontology", ontology), (str(files[0].parent),)):
        code, out, _ = run("ask", words[0], "How many stations are there?", *words[1:])
        assert (code, out.splitlines()[1]) == (0, "Answer    2")
    code, out, _ = run("info", data, ontology)
    assert code == 0
    assert "data.ttl; ontology.ttl" in out
    assert "triples that describe classes and relations (--read schema=keep)" in out
    code, out, _ = run("ask", data, "What is the audit of North Depot?", "--also", ontology)
    assert "Answer    audit (auditor: Ben Roe, year: 2020)" in out
    assert "there is no such file" in mistake(run("info", data, "nowhere.ttl"))


def test_an_update_takes_the_labels_of_an_ontology(run: Run, files: Files) -> None:
    data, ontology = map(str, files)
    run("index", data, "--output", "rail.index")
    code, out, _ = run("update", "rail.index", "--add", ontology)
    assert (code, out.splitlines()[0][:13]) == (0, "Added 0 facts")
    changed = KnowledgeGraph.open("rail.index")
    assert ("managed by" in changed.relations, changed.types_of(":west")) == (True, ["halt"])


def test_info_warns_of_identifiers_without_words(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "kb.tsv"
    table.write_text("Q42\tP31\tQ515\nQ42\teducated_at\tSt John's\n")
    _, _, err = run("info", str(table))
    assert "relations without words: 1, such as P31. No question can name them." in err
    assert "entities without words: 2, such as Q42, Q515." in err
    assert "--entities FILE" in err


def test_a_second_label_becomes_an_alias(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"{number}.jsonl").write_text(
            f'{{"head": "a", "relation": "r{number}", "tail": "b"}}\n{{"entity": "a", "label": "Name {number}"}}\n'
        )
    graph = KnowledgeGraph.from_file([tmp_path / "1.jsonl", tmp_path / "2.jsonl"])
    assert (graph.label("a"), graph.aliases("a")) == ("Name 1", ["Name 2"])


@pytest.mark.parametrize(
    "lists",
    [
        "_:x rdf:rest _:x .",
        "_:x rdf:first _:x ; rdf:rest rdf:nil .",
        "\n".join(f"_:n{n} rdf:first _:n{n + 1} ; rdf:rest _:m{n} . _:m{n} rdf:first _:n{n + 1} ." for n in range(30)),
    ],
    ids=["endless", "holds itself", "shared"],
)
def test_hostile_lists_of_blank_nodes_are_read(lists: str, tmp_path: Path) -> None:
    rdf = "@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .\n@prefix : <http://x/> .\n"
    (tmp_path / "a.ttl").write_text(f"{rdf}:a :has _:x, _:n0 .\n{lists}\n")
    graph = KnowledgeGraph.from_file(tmp_path / "a.ttl")
    assert all(len(graph.label(key)) < 1_000 for key in graph.entities)


def test_two_files_whose_ids_are_their_own_are_not_joined(tmp_path: Path) -> None:
    for number in (1, 2):
        networkx.write_graphml(networkx.DiGraph([("n0", f"m{number}")]), tmp_path / f"{number}.graphml")
    with pytest.raises(InvalidArgumentError, match=r"1\.graphml and .*2\.graphml name nodes by ids of their own"):
        KnowledgeGraph.from_file(tmp_path)


def test_a_folder_for_from_rdf_may_hold_tables_too(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text("<http://x/a> <http://x/r> <http://x/b> .\n")
    (tmp_path / "b.csv").write_text("head,relation,tail\nc,r,d\n")
    assert len(KnowledgeGraph.from_rdf(tmp_path)) == 1


def test_a_missing_ontology_is_named(tmp_path: Path) -> None:
    (tmp_path / "onto.ttl").write_text("", "utf-8")
    (tmp_path / "facts.nt").write_text("<http://a/Her> <http://a/by> <http://a/Jonze> .\n", "utf-8")
    with pytest.raises(GraphLoadError, match=r"onto\.tll: there is no such file\. Did you mean: 'onto\.ttl'"):
        KnowledgeGraph.from_file(tmp_path / "facts.nt", ontology=tmp_path / "onto.tll")


def test_an_ontology_that_describes_nothing_or_is_the_graph(files: Files, tmp_path: Path, run: Run) -> None:
    (tmp_path / "nodes.json").write_text('{"nodes": [{"id": "a"}], "links": []}')
    with pytest.raises(GraphLoadError, match=r"nodes\.json: describes nothing\. Give ontology= a file of RDF"):
        KnowledgeGraph.from_file(files[0], ontology=tmp_path / "nodes.json")
    with pytest.warns(GraphLoadWarning, match=r"nodes\.json: describes nothing\."):
        KnowledgeGraph.from_file(files[0], ontology=[files[1], tmp_path / "nodes.json"])
    told = mistake(run("info", str(files[1]), "--ontology", str(files[0])))
    assert "If the graph and --ontology are swapped, swap them" in told
