"""Graphs that the command is given: any format straight from the file, and what is no graph."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet
from shell_mistakes import Run, mistake

# --- any format straight from the file --------------------------------------------------------------------------------

TURTLE = """\
@prefix dbr: <http://dbpedia.org/resource/> .
@prefix dbo: <http://dbpedia.org/ontology/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
dbr:Her dbo:director dbr:Spike_Jonze ; rdfs:label "Her"@en, "Ona"@pl ; dbo:releaseDate "2013-10-12" .
dbr:Spike_Jonze rdfs:label "Spike Jonze"@en .
dbo:director rdfs:label "director"@en .
"""

FILES = {"films.csv": "head;relation;tail\nHer;director;Spike Jonze\n", "films.ttl": TURTLE}


@pytest.fixture
def files(folder: Path) -> None:
    nodes, links = ":ID,title\nHer,Her\nSJ,Spike Jonze\n", ":START_ID,:TYPE,:END_ID\nHer,director,SJ\n"
    (folder / "export").mkdir()
    (folder / "export" / "nodes.csv").write_text(nodes)
    (folder / "export" / "links.csv").write_text(links)
    own = {"film": ["Her"], "does": ["director"], "who": ["Spike Jonze"], "found in": ["credits"]}
    parquet.write_table(pyarrow.table(own), folder / "own.parquet")
    frame = pyarrow.table({"head": ["Her"], "relation": ["director"], "tail": ["Spike Jonze"]})
    parquet.write_table(frame, folder / "films.parquet")


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("name", ["films.csv", "films.ttl", "films.parquet", "export"])
def test_ask_reads_any_format_straight_from_the_file(run: Run, name: str) -> None:
    code, out, err = run("ask", name, "Who directed Her?", "--min-confidence", "0")
    assert (code, err) == (0, ""), err
    assert "Answer    Spike Jonze\n" in out
    code, out, err = run("info", name)
    assert (code, err) == (0, ""), err
    assert not out.startswith("Format  not recorded")


@pytest.mark.usefixtures("files")
def test_an_index_keeps_how_its_graph_was_read(run: Run, folder: Path) -> None:
    (folder / "more.ttl").write_text(TURTLE + 'dbr:Her rdfs:comment "Film"@pl .\ndbr:Her rdfs:comment "Film"@en .\n')
    assert run("index", "more.ttl", "--output", "films.index")[0] == 0
    _, of_file, _ = run("info", "more.ttl")
    code, of_folder, _ = run("info", "films.index")
    assert (code, of_folder) == (0, of_file)
    assert of_file.startswith("Format")
    assert "Turtle" in of_file.splitlines()[0]
    assert "director" in of_file
    assert "http://dbpedia.org/ontology/" in of_file
    assert "--read languages=*" in of_file  # what keeps the names in Polish, in the words of the shell


@pytest.mark.usefixtures("files")
def test_options_for_tables_and_attributes(run: Run, folder: Path) -> None:
    (folder / "odd.csv").write_text("film~who~does~year\nHer~Spike Jonze~director~2013\n")
    odd = ("--read", "delimiter=~", "--columns", "film,does,who", "--read", "facts=year")
    found = json.loads(run("info", "odd.csv", *odd, "--json")[1])
    assert found["triples"] == 2
    assert {row["relation"] for row in found["relations"]} == {"director", "year"}
    found = json.loads(run("info", "own.parquet", "--columns", "film,does,who,found in", "--json")[1])
    assert found["sources"] == {"credits": 1}


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["films.csv", "--read", "languages=en"], "--read languages is for RDF, but films.csv is csv. Leave it out."),
        (["films.csv", "--read", "limits.lines=3"], "there is no limit 'lines'; did you mean 'line_bytes'?"),
    ],
)
def test_an_option_for_another_format_is_refused(run: Run, argv: list[str], told: str) -> None:
    assert told in mistake(run("info", *argv))
