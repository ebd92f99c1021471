"""Graphs written to files, and read back."""

from __future__ import annotations

import csv
import gzip
import json
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from kg_retrievers.errors import FileWriteError, InvalidArgumentError, MissingExtraError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.readers.frameworks.networkx_graphs import read_node_link, read_xml
from kg_retrievers.graph.readers.text_files import FileOptions


def rich_graph() -> KnowledgeGraph:
    """A graph with all that a graph can hold, and texts that are hard to write."""
    builder = GraphBuilder()
    builder.add("dbr:Her", "dbo:director", "dbr:Jonze", {"source": "film.nt"})
    builder.add("dbr:Her", "dbo:director", "dbr:Jonze", {"source": "wiki.nt"})
    builder.add("dbr:Her", "dbp:director", 'He said "no";\r\nthen,\tnothing \\ more')
    builder.add("dbr:Her", "released", "2013-12-18", {"source": "film.nt"})
    builder.add("[1]", "released", "&lt;<b>\u2028é")
    builder.describe("dbr:Her", "Her", ["Ella", '"Her"', "[REC]"], ["film", "drama; comedy"])
    builder.describe("dbr:Dune", "Her", [], ["film"])
    builder.describe("dbr:alone")
    builder.set_datatype("2013-12-18", "xsd:date")
    builder.set_datatype("&lt;<b>\u2028é", "@fr")
    builder.name_relation("dbo:director", "director")
    builder.name_relation("dbp:director", "director")
    return KnowledgeGraph._from_builder(builder)


def plain_graph() -> KnowledgeGraph:
    return KnowledgeGraph.from_triples([("Her", "by", 'Spike "Jonze"'), ("Her, again", "by", "Élodie")])


def content_of(graph: KnowledgeGraph) -> dict[str, Any]:
    """Return all that a graph says, whatever its numbers are."""
    return {
        "triples": sorted(graph.triples()),
        "names": {key: (graph.label(key), graph.aliases(key), graph.types_of(key)) for key in graph.entities},
        "datatypes": {key: graph.datatype(key) for key in graph.entities},
        "relations": {name: graph.relation_id(name) for name in graph.relations},
        "sources": {triple: sorted(graph.sources(triple)) for triple in graph.triples()},
    }


def graph_of(builder: GraphBuilder) -> KnowledgeGraph:
    return KnowledgeGraph._from_builder(builder)


# --- round trips ---


def test_to_networkx_and_back() -> None:
    graph = rich_graph()
    out = graph.to_networkx()
    assert out.nodes["2013-12-18"] == {"label": "2013-12-18", "aliases": [], "types": [], "datatype": "xsd:date"}
    assert out["dbr:Her"]["dbr:Jonze"]["director (dbo:director)"] == {
        "relation": "director (dbo:director)",
        "relation_id": "dbo:director",
        "sources": ["film.nt", "wiki.nt"],
    }
    assert out["[1]"]["&lt;<b>\u2028é"]["released"] == {"relation": "released"}
    assert content_of(KnowledgeGraph.from_networkx(out)) == content_of(graph)


@pytest.mark.parametrize(
    ("facts", "entities"),
    [("a.csv.gz", "e.jsonl.gz"), ("a.parquet", "e.jsonl"), ("a.jsonl", None), ("a.graphml", None), ("a.json", None)],
)
def test_all_that_a_graph_says_comes_back(tmp_path: Path, facts: str, entities: str | None) -> None:
    graph, beside = rich_graph(), None if entities is None else tmp_path / entities
    graph.write(tmp_path / facts, entities=beside)
    assert content_of(KnowledgeGraph.from_file(tmp_path / facts, entities=beside)) == content_of(graph)


def test_what_is_in_the_files(tmp_path: Path) -> None:
    plain_graph().write(tmp_path / "a.csv")
    with open(tmp_path / "a.csv", newline="", encoding="utf-8") as file:
        assert [*csv.reader(file)][:2] == [["head", "relation", "tail"], ["Her", "by", 'Spike "Jonze"']]
    plain_graph().write(tmp_path / "a.tsv.gz")
    lines = gzip.decompress((tmp_path / "a.tsv.gz").read_bytes()).decode().splitlines()
    assert lines[1] == 'Her\tby\tSpike "Jonze"'
    plain_graph().write(tmp_path / "a.txt", "jsonl")
    rows = [json.loads(line) for line in (tmp_path / "a.txt").read_text().splitlines()]
    assert rows == [{"head": head, "relation": by, "tail": tail} for head, by, tail in plain_graph().triples()]
    rich_graph().write(tmp_path / "a.parquet", on_loss="drop")
    table = pyarrow.parquet.read_table(tmp_path / "a.parquet").to_pydict()
    assert table["head"] == ["dbr:Her"] * 4 + ["[1]"]
    assert table["source"] == ["film.nt", "wiki.nt", None, "film.nt", None]


def test_an_empty_graph_is_written(tmp_path: Path) -> None:
    empty = KnowledgeGraph.from_triples([])
    for name in ("a.csv", "a.tsv", "a.jsonl", "a.parquet", "a.graphml", "a.json"):
        empty.write(tmp_path / name)
    assert len(graph_of(read_xml(tmp_path / "a.graphml", "graphml", FileOptions()))) == 0
    assert len(graph_of(read_node_link(tmp_path, json.loads((tmp_path / "a.json").read_text()), FileOptions()))) == 0


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from('\r\n\t"|[],;'), min_size=1)
#: No IRIs: those of a well-known namespace come back from RDF as prefixed names.
WHOLE_TEXTS = TEXTS.filter(lambda text: text == text.strip() and "\0" not in text and "://" not in text)


@pytest.mark.parametrize(
    "name", ["a.jsonl", "a.csv", "a.tsv", "a.parquet", "a.graphml", "a.json", "a.ttl", "a.nq", "a.rdf"]
)
@given(triples=st.lists(st.tuples(WHOLE_TEXTS, WHOLE_TEXTS, WHOLE_TEXTS), min_size=1))
@example(triples=[("0", "0", "_:0"), ("0", "rdf:", "0"), ("a:50%", "skos:#", "a:[1]")])
@settings(max_examples=40)
def test_any_text_comes_back(tmp_path_factory: pytest.TempPathFactory, name: str, triples: list[Any]) -> None:
    texts = "".join(chain.from_iterable(triples))
    assume(not (name.endswith((".graphml", ".rdf")) and {"\ufffe", "\uffff"} & {*texts}))  # no characters of XML
    assume(not (name.endswith(".tsv") and any("\t" in text and {*"\r\n"} & {*text} for row in triples for text in row)))
    path = tmp_path_factory.mktemp("any", numbered=True) / name
    graph = KnowledgeGraph.from_triples(triples)
    graph.write(path)
    is_rdf = name in ("a.ttl", "a.nq", "a.rdf")  # whose readers set the description of a relation aside
    read = KnowledgeGraph.from_rdf(path, schema="keep") if is_rdf else KnowledgeGraph.from_file(path)
    assert {*read.triples()} == {*graph.triples()}


def test_text_relations_come_back_from_json_lines(tmp_path: Path) -> None:
    facts, ids = [("a", "P281", "10115"), ("a", "year", "2013")], {"P281": "postal code"}
    graph = KnowledgeGraph.from_triples(facts, relation_labels=ids, text_relations=["postal code", "year"])
    graph.write(tmp_path / "a.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    texts = [{"relation": "P281", "label": "postal code", "text": True}, {"relation": "year", "text": True}]
    assert [row for row in rows if "head" not in row] == texts
    graph.write(tmp_path / "a.csv", entities=tmp_path / "e.jsonl")
    for name, entities in (("a.jsonl", None), ("a.csv", tmp_path / "e.jsonl")):
        again = KnowledgeGraph.from_file(tmp_path / name, entities=entities)
        assert again.text_relations == ("postal code", "year")
        assert again.value("10115") is None
    more = KnowledgeGraph.from_file(tmp_path / "a.jsonl", text_relations="year")
    assert more.text_relations == ("postal code", "year")


@pytest.mark.parametrize("name", ["a.graphml", "a.json", "a.nt", "a.nq", "a.csv"])
def test_other_formats_do_not_lose_text_relations_in_silence(tmp_path: Path, name: str) -> None:
    graph = KnowledgeGraph.from_triples([("a", "code", "10115")], text_relations=["code"])
    with pytest.raises(InvalidArgumentError, match=r"cannot hold 1 text relations\. Write JSONL, which holds all; or"):
        graph.write(tmp_path / name)
    graph.write(tmp_path / name, on_loss="drop")
    assert KnowledgeGraph.from_file(tmp_path / name).text_relations == ()


@pytest.mark.parametrize("suffix", ["nq", "trig", "jsonld"])
def test_formats_with_named_graphs_keep_sources(tmp_path: Path, suffix: str) -> None:
    graph, path = rich_graph(), tmp_path / f"a.{suffix}"
    graph.write(path, on_loss="drop")
    again = KnowledgeGraph.from_file(path)
    assert content_of(again)["sources"] == content_of(graph)["sources"]


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "tsv", "parquet"])
def test_a_second_file_of_a_graph_without_labels_comes_back(tmp_path: Path, suffix: str) -> None:
    facts, entities = tmp_path / "a.csv", tmp_path / f"e.{suffix}"
    plain_graph().write(facts, entities=entities)
    assert KnowledgeGraph.from_file(facts, entities=entities).fingerprint == plain_graph().fingerprint


@pytest.mark.parametrize("name", ["a.nt", "a.nq", "a.jsonld", "a.ttl", "a.rdf"])
def test_prefixes_of_the_graph_make_the_keys_again(tmp_path: Path, name: str) -> None:
    (tmp_path / "in.ttl").write_text("@prefix ex: <http://museum.example/id/> . ex:o1 ex:by ex:klee .")
    graph = KnowledgeGraph.from_rdf(tmp_path / "in.ttl")
    graph.write(tmp_path / name)
    plain = KnowledgeGraph.from_rdf(tmp_path / name)
    assert ("ex:o1" in plain.entities) == (name == "a.ttl")
    again = KnowledgeGraph.from_rdf(tmp_path / name, prefixes=graph.prefixes)
    assert [*again.triples()] == [*graph.triples()] == [("ex:o1", "ex:by", "ex:klee")]


# --- what cannot be written ---


@pytest.mark.parametrize(
    ("name", "entities", "words"),
    [
        (
            "a.csv",
            None,
            r"csv cannot hold 2 labels, 3 aliases, 3 types, 2 datatypes, 2 entities without a fact, 2 ids of relations"
            r'\. .* give a second file, entities="entities.jsonl"',
        ),
        ("a.parquet", "e.parquet", "parquet cannot hold 2 ids of relations"),
    ],
)
def test_what_is_lost_is_told_before_anything_is_written(
    tmp_path: Path, name: str, entities: str | None, words: str
) -> None:
    beside = None if entities is None else tmp_path / entities
    with pytest.raises(InvalidArgumentError, match=words):
        rich_graph().write(tmp_path / name, entities=beside)
    assert [*tmp_path.iterdir()] == []
    rich_graph().write(tmp_path / name, entities=beside, on_loss="drop")
    assert {path.name for path in tmp_path.iterdir()} == {name, *([entities] if entities else [])}


def test_white_space_around_a_text_is_told(tmp_path: Path) -> None:
    graph = KnowledgeGraph.from_triples([("a ", "r", "b"), ("a", "r", "\0")])
    with pytest.raises(InvalidArgumentError, match="csv cannot hold 4 texts with white space around them or NUL"):
        graph.write(tmp_path / "a.csv", entities=tmp_path / "e.csv")
    with pytest.raises(InvalidArgumentError, match="jsonl cannot hold 2 blank texts or texts with NUL in them"):
        graph.write(tmp_path / "a.jsonl")
    spaced = KnowledgeGraph.from_triples([("a ", "r", " b")])
    spaced.write(tmp_path / "a.jsonl")
    assert [*KnowledgeGraph.from_file(tmp_path / "a.jsonl").triples()] == [("a ", "r", " b")]
    graph.write(tmp_path / "a.json")
    document = json.loads((tmp_path / "a.json").read_text())
    assert content_of(graph_of(read_node_link(tmp_path, document, FileOptions()))) == content_of(graph)


@pytest.mark.parametrize(
    ("name", "triple", "words"),
    [
        ("a.tsv", ("a", "r", "b\tc\nd"), "readers take a text with both a tab and a line break for rows"),
        ("a.graphml", ("a", "r", "b\x0bc"), r"holds the character '\\x0b', which XML cannot hold"),
        ("a.rdf", ("a", "r", "b\x0bc"), r"holds the character '\\x0b', which XML cannot hold"),
        ("a.rdf", ("a", "rdf:li", "b"), r"RDF/XML cannot hold the relation 'rdf:li'.* Write nt, ttl or JSONL"),
        ("a.rdf", ("a", "rdf:aboutEach", "b"), "RDF/XML cannot hold the relation 'rdf:aboutEach'"),
    ],
)
def test_texts_that_a_format_has_no_place_for(
    tmp_path: Path, name: str, triple: tuple[str, str, str], words: str
) -> None:
    graph = KnowledgeGraph.from_triples([triple], labels={"a": triple[2]})
    with pytest.raises(InvalidArgumentError, match=words):
        graph.write(tmp_path / name, on_loss="drop")
    assert [*tmp_path.iterdir()] == []


def test_an_earlier_file_stays_where_writing_fails(tmp_path: Path) -> None:
    path = tmp_path / "a.graphml"
    plain_graph().write(path)
    before = path.read_bytes()
    with pytest.raises(InvalidArgumentError):
        KnowledgeGraph.from_triples([("a", "r", "b"), ("a", "r", "\x01")]).write(path)
    assert path.read_bytes() == before
    assert [*tmp_path.iterdir()] == [path]


def test_two_files_are_replaced_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts, entities = tmp_path / "a.csv", tmp_path / "e.parquet"
    rich_graph().write(facts, entities=tmp_path / "e.csv", on_loss="drop")
    before = facts.read_bytes()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"Parquet needs an optional package\. Run: .*arrow"):
        KnowledgeGraph.from_triples([("a", "r", "b")]).write(facts, entities=entities)
    assert (facts.read_bytes(), entities.exists()) == (before, False)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("a.docx", {}, r"ends in none of \.csv"),
        ("a.parquet.gz", {}, "ends in none of"),
        ("a.csv", {"format": "excel"}, "format is one of .* but got 'excel'"),
        ("a.csv", {"on_loss": "ignore"}, 'on_loss is "raise" or "drop"'),
        ("a.jsonl", {"entities": "e.csv"}, "jsonl holds the entities too"),
        ("a.csv", {"entities": "e.nt"}, "entities are written as JSONL, CSV, TSV or Parquet, but got 'nt'"),
        ("a.csv", {"entities": "a.csv"}, "entities='a.csv' is the file of the facts"),
        ("a.csv", {"entities": "e.graphml"}, "entities are written as JSONL, CSV, TSV or Parquet"),
    ],
)
def test_arguments_that_do_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, options: dict[str, Any], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgumentError, match=words):
        plain_graph().write(tmp_path / name, **options)
    assert [*tmp_path.iterdir()] == []


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileWriteError, match="Make its folder"):
        plain_graph().write(tmp_path / "no" / "a.csv")
