"""The command `info`: what was understood of a graph before any question, and what is in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ladybug
import pytest
from shell_mistakes import Run, mistake

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, LadybugExecutor
from kg_retrievers.graph.building import GraphBuilder

SAMPLE = Path(__file__).parents[2] / "kg_retrievers" / "sample" / "graph.jsonl"


@pytest.fixture
def rich(folder: Path) -> str:
    """A saved graph with labels of relations, datatypes, sources, prefixes and things left out."""
    builder = GraphBuilder()
    builder.add("Q1", "P57", "Q2", {"source": "credits"})
    builder.add("Q1", "P57", "Q2", {"source": "archive"})
    builder.add("Q1", "P577", "2013-12-18", {"source": "credits"})
    builder.describe("Q1", "Her", types=["film"])
    builder.describe("Q2", "Spike Jonze", types=["person"])
    builder.name_relation("P57", "director")
    builder.set_datatype("2013-12-18", "xsd:date")
    builder.prefixes = {"wd": "http://www.wikidata.org/entity/"}
    builder.reading.format = "N-Triples"
    builder.reading.understood = {"labels": "rdfs:label 2", "types": "rdf:type 2"}
    builder.reading.leave_out("literals in other languages", 3)
    builder.reading.leave_out("blank nodes", 1_234)
    KnowledgeGraph._from_builder(builder, ["P577"]).save("rich")
    return "rich"


def rows(out: str) -> list[list[str]]:
    return [line.split() for line in out.splitlines()]


def test_it_says_how_the_source_was_read(run: Run, rich: str) -> None:
    code, out, err = run("info", rich)
    assert (code, err.count("P577")) == (0, 1)  # which has no words
    found = rows(out)
    assert found[0] == ["Format", "N-Triples"]
    assert ["Labels", "rdfs:label", "2"] in found
    assert ["Types", "rdf:type", "2"] in found
    assert ["Texts,", "not", "values", "P577"] in found
    left_out = out.index("Left out")
    assert left_out < out.index("blank nodes") < out.index("literals in other languages")
    assert ["blank", "nodes", "1,234"] in found

    assert ["relation", "in", "the", "source", "triples", "head", "types", "tail", "types", "values"] in rows(out)
    assert ["director", "P57", "1", "film", "person"] in rows(out)
    assert ["P577", "P577", "1", "film"] in rows(out)

    assert ["xsd:date", "1"] in rows(out)
    assert ["credits", "2"] in rows(out)
    assert ["archive", "1"] in rows(out)
    assert ["wd", "http://www.wikidata.org/entity/"] in rows(out)


def test_json_holds_all_of_it(run: Run, rich: str) -> None:
    _, out, _ = run("info", rich, "--json")
    found = json.loads(out)
    assert found["format"] == "N-Triples"
    assert found["understood"] == {"labels": "rdfs:label 2", "types": "rdf:type 2"}
    assert found["left_out"] == {"literals in other languages": 3, "blank nodes": 1234}
    assert [(row["relation"], row["id"]) for row in found["relations"]] == [("director", "P57"), ("P577", "P577")]
    assert found["datatypes"] == {"xsd:date": 1}
    assert found["sources"] == {"credits": 2, "archive": 1}
    assert found["prefixes"] == {"wd": "http://www.wikidata.org/entity/"}
    assert found["text_relations"] == ["P577"]


def test_many_relations_and_types_are_cut_short(run: Run, folder: Path) -> None:
    lines = [json.dumps({"head": "x", "relation": f"r{number}", "tail": "y"}) for number in range(50)]
    lines += [json.dumps({"head": "x", "relation": "frequent", "tail": f"y{number}"}) for number in range(3)]
    lines += [json.dumps({"entity": "x", "types": [f"type {number}" for number in range(100)]})]
    (folder / "many.jsonl").write_text("\n".join(lines))
    _, out, _ = run("info", "many.jsonl")
    assert len(out.splitlines()) < 80
    assert " 31 more; --json has all." in out
    shown = next(line for line in out.splitlines() if line.startswith(" frequent "))
    assert " ".join(shown.split()) == "frequent 3 type 0, type 1, type 10, type 11, type 12 and 95 more"
    _, out, _ = run("info", "many.jsonl", "--json")
    found: dict[str, Any] = json.loads(out)
    assert len(found["relations"]) == 51
    assert len(found["relations"][0]["head_types"]) == 100


def test_a_saved_folder_takes_no_options_for_reading(run: Run, rich: str) -> None:
    for command in (["info", rich], ["ask", rich, "Who directed Her?"]):
        told = mistake(run(*command, "--read", "text_relations=P57", "--read", "encoding=utf-8"))
        assert "rich holds a graph that was read already, but got --read text_relations, --read encoding. Leave" in told


def test_verify_reads_every_column(run: Run, folder: Path) -> None:
    graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze"), ("Her", "starring", "Amy Adams")])
    GraphIndex.build(graph, HashedEmbeddings(), folder / "index")
    code, out, _ = run("info", "index", "--verify")
    assert code == 0
    assert "bytes, all as they were saved" in out
    _, out, _ = run("info", "index", "--verify", "--json")
    size = json.loads(out)["verified_bytes"]
    largest = max(folder.glob("index/*.column"), key=lambda path: path.stat().st_size)
    assert size >= largest.stat().st_size
    content = bytearray(largest.read_bytes())
    content[len(content) // 2] ^= 1
    largest.write_bytes(content)
    assert "index" in mistake(run("info", "index", "--verify"))


def test_it_shows_what_relations_join(run: Run) -> None:
    code, out, err = run("info", str(SAMPLE))
    assert (code, err) == (0, "")
    found = rows(out)
    assert ["Entities", "171"] in found
    assert ["directed_by", "40", "film", "person"] in found
    assert ["release_year", "40", "film", "year", "1950", "...", "2023"] in found
    assert ["person", "74"] in found
    assert ["Rashomon", "directed_by", "Akira", "Kurosawa"] in found


def test_labels_of_nodes_are_no_types_where_a_property_holds_these(run: Run, rich: str) -> None:
    LadybugExecutor.from_graph(KnowledgeGraph.open(rich), "rich.lbdb").close()
    code, out, err = run("info", "rich.lbdb", "--connect")
    assert (code, err) == (0, "")
    assert "Labels of nodes; types are in the property types\n" in out
    told = json.loads(run("info", "rich.lbdb", "--connect", "--json")[1])
    assert (told["types_in"], told["labels"]) == ("types", ["Entity"])


def test_a_database_tells_what_no_graph_holds(run: Run, folder: Path) -> None:
    with ladybug.Database(folder / "p.lbdb") as database, ladybug.Connection(database) as connection:
        for statement in (
            "CREATE NODE TABLE Film(id INT64 PRIMARY KEY, name STRING, plot FLOAT[32])",
            f"CREATE (:Film {{id: 1, name: 'Her', plot: {[0.5] * 32}}})",
            "CREATE (:Film {id: 2})",
        ):
            connection.execute(statement)
    code, out, err = run("info", "p.lbdb", "--connect", "--key", "name")
    assert (code, err) == (0, "")
    assert ["nodes", "without", "a", "key:", "Film", "1"] in rows(out)
    assert ["node", "attribute", "'plot'", "with", "nested", "values", "or", "vectors", "1"] in rows(out)
    told = json.loads(run("info", "p.lbdb", "--connect", "--json", "--key", "name")[1])
    assert told["left_out"]["nodes without a key: Film"] == 1
    assert told["understood"]["keys"] == "Film.name"
