"""Exports of property graphs: Neo4j CSV, CSV and JSON of APOC, arrows.app."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kg_retrievers.errors import GraphLoadError, InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.types import Triple


def write(path: Path, *lines: str) -> Path:
    content = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


# --- Neo4j CSV --------------------------------------------------------------------------------------------------------

FILMS = (
    "filmId:ID(Film),title,year:int,rating:double,tags:string[],seen:boolean,released:date,note:IGNORE,:LABEL",
    'f1,"Her, ""again""",2013,8.0,love;AI,true,2013-12-18,x,Film;Work',
    "f2,Alien,,,,,,,Film",
)
PEOPLE = ("id:ID(Person),name,:LABEL", "1,Spike Jonze,Person", "f1,Ridley Scott,Person")
ROLES = (":START_ID(Person),:TYPE,:END_ID(Film),since:int", "1,DIRECTED,f1,2012", "f1,DIRECTED,f2,", "1,WROTE,f1,")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "films.csv", *FILMS)
    write(tmp_path / "people.csv.gz", *PEOPLE)
    write(tmp_path / "roles.csv", *ROLES)
    return tmp_path


def test_a_folder_of_neo4j(folder: Path) -> None:
    graph = KnowledgeGraph.from_file(folder)
    assert set(graph.triples()) == {
        Triple("Person:1", "DIRECTED", "Film:f1"),
        Triple("Person:f1", "DIRECTED", "Film:f2"),
        Triple("Person:1", "WROTE", "Film:f1"),
        Triple("Film:f1", "year", "2013"),
        Triple("Film:f1", "rating", "8.0"),
        Triple("Film:f1", "tags", "love"),
        Triple("Film:f1", "tags", "AI"),
        Triple("Film:f1", "seen", "true"),
        Triple("Film:f1", "released", "2013-12-18"),
    }
    assert (graph.label("Film:f1"), graph.types_of("Film:f1")) == ('Her, "again"', ["Film", "Work"])
    assert (graph.label("Person:f1"), graph.types_of("Person:f1")) == ("Ridley Scott", ["Person"])
    assert graph.datatype("2013") == "xsd:integer"
    assert graph.reading.format == "Neo4j CSV"
    assert graph.reading.left_out == {}
    assert graph.attribute_names == ["since"]


def test_properties_of_nodes_may_be_dropped(folder: Path) -> None:
    graph = KnowledgeGraph.from_file(folder, attributes="drop")
    assert {triple.relation for triple in graph.triples()} == {"DIRECTED", "WROTE"}
    assert graph.reading.left_out["node attribute 'year' (attributes=\"facts\" keeps it)"] == 1


def test_relationships_with_a_file_of_nodes(folder: Path) -> None:
    graph = KnowledgeGraph.from_file(folder / "roles.csv", entities=folder / "films.csv")
    assert graph.label("Film:f2") == "Alien"
    assert ("Film:f1", "year", "2013") in graph
    assert graph.label("Person:1") == "Person:1"


def test_semicolons_and_plain_ids(tmp_path: Path) -> None:
    write(tmp_path / "nodes.csv", ":ID;name;:LABEL", "1;Ann;Person", "2;Bob;")
    write(tmp_path / "edges.csv", ":START_ID;:END_ID;:TYPE", "1;2;KNOWS")
    graph = KnowledgeGraph.from_file(tmp_path)
    assert [*graph.triples()] == [Triple("1", "KNOWS", "2")]
    assert (graph.label("2"), graph.types_of("2")) == ("Bob", [])


@pytest.mark.parametrize("header", ["{}-header.csv", "{}_header.csv.gz", "header-{}.csv", "{}.csv"])
def test_headers_in_files_of_their_own(tmp_path: Path, folder: Path, header: str) -> None:
    apart = tmp_path / "apart"
    apart.mkdir()
    for name, rows in (("films", FILMS), ("people", PEOPLE), ("roles", ROLES)):
        write(apart / header.format(name), rows[0])
        for number, row in enumerate(rows[1:], 1):
            write(apart / f"{name}-part{number}.csv", row)
    assert KnowledgeGraph.from_file(apart).fingerprint == KnowledgeGraph.from_file(folder).fingerprint


def test_a_file_without_a_header_is_told(tmp_path: Path) -> None:
    write(tmp_path / "nodes-header.csv", ":ID,name")
    write(tmp_path / "edges.csv", "1,KNOWS,2")
    with pytest.raises(GraphLoadError, match=r"edges\.csv.*has no header such as .* beside it: edges-header\.csv"):
        KnowledgeGraph.from_file(tmp_path)


APOC_CSV = (
    '"_id","_labels","name","tags","title","year","_start","_end","_type","name","since"',
    '"0",":Film:Work","","[""love"",""AI""]","Her","2013",,,,,',
    '"1",":Person","Ann","","Dr","",,,,,',
    ',,,,,,"1","0","SAW","first","2014"',
)


def test_csv_of_apoc(tmp_path: Path) -> None:
    graph = KnowledgeGraph.from_file(write(tmp_path / "all.csv", *APOC_CSV))
    assert {*graph.triples()} == {
        Triple("0", "year", "2013"),
        Triple("0", "tags", "love"),
        Triple("0", "tags", "AI"),
        Triple("1", "title", "Dr"),
        Triple("1", "SAW", "0"),
    }
    assert (graph.label("0"), graph.types_of("0"), graph.label("1")) == ("Her", ["Film", "Work"], "Ann")
    assert graph.datatype("2013") == "xsd:integer"
    assert graph.attributes(("1", "SAW", "0")) == [{"name": "first", "since": 2014}]


@pytest.mark.parametrize(
    "header",
    [
        ":ID,name,name:int",
        '"_id","_labels","a","a","_start","_end","_type"',
        ":START_ID,:END_ID,:TYPE,:START_ID",
        "one:ID,two:ID,:LABEL",
    ],
)
def test_properties_of_one_name_are_told(tmp_path: Path, header: str) -> None:
    with pytest.raises(GraphLoadError, match=r"two columns have one name, '(name|a|:START_ID|:ID)'\. Rename one"):
        KnowledgeGraph.from_file(write(tmp_path / "kb.csv", header, "1,2,3"))


@pytest.mark.parametrize(
    ("rows", "line", "wanted"),
    [
        ((":START_ID,:END_ID", "1,2"), 1, r"the header has no :TYPE"),
        ((":START_ID,:END_ID,:TYPE", "1,2,KNOWS", "1,,KNOWS"), 3, r"the cell of :END_ID is empty"),
        ((":START_ID,:END_ID,:TYPE", "1,2,KNOWS", "1,2"), 3, r"wanted 3 cells \(csv\), but got 2"),
        ((":ID,age:int", "1,2", "2,old"), 3, r"invalid literal for int"),
        ((":ID,born:date", "1,", "2,yesterday"), 3, r"Invalid isoformat"),
        ((":ID,name", "1,Ann", ",Bob"), 3, r"the cell of :ID is empty"),
    ],
)
def test_malformed_rows_of_neo4j(tmp_path: Path, rows: tuple[str, ...], line: int, wanted: str) -> None:
    path = write(tmp_path / "kb.csv", *rows)
    with pytest.raises(GraphLoadError, match=wanted) as caught:
        KnowledgeGraph.from_file(path, format="neo4j-csv")
    assert caught.value.line == line
    if line > 1 and ":TYPE" in rows[0]:
        assert KnowledgeGraph.from_file(path, on_error="skip").skipped == 1


def test_folders_of_other_files(tmp_path: Path) -> None:
    write(tmp_path / "readme.md", "a\tb\tc")
    with pytest.raises(GraphLoadError, match=r"is a folder without graph files.*KnowledgeGraph\.open"):
        KnowledgeGraph.from_file(tmp_path)
    write(tmp_path / "kb.tsv", "a\tb\tc")
    write(tmp_path / "more.csv", "c,b,d")
    graph = KnowledgeGraph.from_file(tmp_path)
    assert ([*graph.triples()], graph.reading.understood["formats"]) == ([("a", "b", "c"), ("c", "b", "d")], "TSV, CSV")


# --- APOC JSON --------------------------------------------------------------------------------------------------------

HER = {
    "type": "node",
    "id": "0",
    "labels": ["Film"],
    "properties": {"title": "Her", "year": 2013, "tags": ["love", "AI"]},
}
ANN = {"type": "node", "id": "1", "labels": ["Person"], "properties": {"name": "Ann", "title": "Dr"}}
SAW = {"id": "0", "type": "relationship", "label": "SAW", "start": {"id": "1"}, "end": {"id": "0"}}


@pytest.mark.parametrize("name", ["kb.json", "kb.jsonl", "kb.txt", "array.json", "both.json", "ids.json", "ids.txt"])
def test_exports_of_apoc(tmp_path: Path, name: str) -> None:
    rows: list[Any] = [HER, ANN, SAW | {"properties": {"since": 2014}}]
    lines = [*map(json.dumps, rows)]
    if name == "array.json":
        lines = [json.dumps(rows, indent=1)]
    elif name == "both.json":
        lines = [json.dumps({"nodes": rows[:2], "rels": rows[2:]})]
    elif name.startswith("ids"):
        parts = {"nodes": rows[:2], "rels": rows[2:]}
        lines = [json.dumps({part: {row["id"]: row for row in of} for part, of in parts.items()}, indent=1)]
    graph = KnowledgeGraph.from_file(write(tmp_path / name, *lines))
    assert [*graph.triples()] == [
        Triple("0", "year", "2013"),
        Triple("0", "tags", "love"),
        Triple("0", "tags", "AI"),
        Triple("1", "title", "Dr"),
        Triple("1", "SAW", "0"),
    ]
    assert (graph.label("0"), graph.types_of("0"), graph.label("1")) == ("Her", ["Film"], "Ann")
    assert graph.datatype("2013") == "xsd:integer"
    assert graph.reading.format == "APOC JSON"
    assert graph.reading.left_out == {}
    assert graph.attributes(("1", "SAW", "0")) == [{"since": 2014}]


@pytest.mark.parametrize(
    ("row", "wanted"),
    [
        ({"type": "path", "id": "7"}, 'wanted "type": "node" or "relationship"'),
        (SAW | {"label": None}, "the type of a relationship must be a text"),
        (SAW | {"end": {}}, 'wanted the "id" of a node'),
        (HER | {"properties": [1]}, '"properties" must be an object'),
    ],
)
def test_malformed_rows_of_apoc(tmp_path: Path, row: Any, wanted: str) -> None:
    path = write(tmp_path / "kb.jsonl", *map(json.dumps, [HER, ANN, SAW, row]))
    with pytest.raises(GraphLoadError, match=wanted) as caught:
        KnowledgeGraph.from_file(path)
    assert caught.value.line == 4
    assert KnowledgeGraph.from_file(path, on_error="skip").skipped == 1


# --- arrows.app -------------------------------------------------------------------------------------------------------

NODE = {"position": {"x": -650, "y": -40}, "style": {}}
ARROWS = {
    "style": {"font-family": "sans-serif"},
    "nodes": [
        {"id": "n0", "caption": "Her", "labels": ["Film"], "properties": {"year": "2013", "code": "007"}, **NODE},
        {"id": "n1", "caption": "", "labels": [], "properties": {"name": "Ann"}, **NODE},
    ],
    "relationships": [
        {"id": "r0", "type": "SAW", "style": {}, "properties": {"since": "2014"}, "fromId": "n1", "toId": "n0"}
    ],
}


@pytest.mark.parametrize("indent", [None, 2])
def test_arrows(tmp_path: Path, indent: int | None) -> None:
    graph = KnowledgeGraph.from_file(write(tmp_path / "kb.json", json.dumps(ARROWS, indent=indent)))
    assert [*graph.triples()] == [Triple("n0", "year", "2013"), Triple("n0", "code", "007"), Triple("n1", "SAW", "n0")]
    assert (graph.label("n0"), graph.types_of("n0"), graph.label("n1")) == ("Her", ["Film"], "Ann")
    assert graph.attributes(("n1", "SAW", "n0")) == [{"since": 2014}]
    assert (graph.reading.format, graph.reading.left_out) == ("arrows.app JSON", {})


@pytest.mark.parametrize(
    ("change", "wanted"),
    [({"type": ""}, "the type of a relationship must be a text"), ({"toId": None}, 'wanted the "id" of a node'),
        ({"fromId": None, "source": "n1"}, 'wanted the "id" of a node'),
     ({"properties": [1]}, '"properties" must be an object')],
)  # fmt: skip
def test_malformed_rows_of_arrows(tmp_path: Path, change: dict[str, Any], wanted: str) -> None:
    (row,) = ARROWS["relationships"]
    path = write(tmp_path / "kb.json", json.dumps({**ARROWS, "relationships": [row, row | change]}))  # type: ignore[operator]
    with pytest.raises(GraphLoadError, match=wanted):
        KnowledgeGraph.from_file(path)
    assert KnowledgeGraph.from_file(path, on_error="skip").skipped == 1


def test_columns_are_for_other_documents(tmp_path: Path) -> None:
    path = write(tmp_path / "kb.json", json.dumps(ARROWS))
    with pytest.raises(InvalidArgumentError, match="columns is for the formats"):
        KnowledgeGraph.from_file(path, columns=("a", "b", "c"))
