"""The command `update`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shell_mistakes import Run, mistake

from kg_retrievers.graph import KnowledgeGraph

FILES = {
    "films.csv": "Her,directed_by,Spike Jonze\nHer,starring,Amy Adams\n",
    "more.csv": "Her,starring,Amy Adams\nHer,has_genre,Romance\nArrival,starring,Amy Adams\n",
    "still.jsonl": '{"head": "Arrival", "relation": "directed_by", "tail": "Denis Villeneuve"}\n'
    '{"entity": "Arrival", "label": "Arrival (2016)", "types": ["film"]}\n',
    "old.tsv": "Her\tdirected_by\tSpike Jonze\n",
    "wrong.csv": "Her,directed_by,Spike Jones\n",
    "broken.csv": "Her,directed_by,Spike Jonze\nbroken\n",
}


@pytest.fixture(autouse=True)
def index(folder: Path, run: Run) -> None:
    """An index of the first file."""
    assert run("index", "films.csv", "--output", "films.index", "--embeddings", "hashed")[0] == 0


def test_facts_are_added_and_removed(run: Run) -> None:
    code, out, _ = run("update", "films.index", "--add", "more.csv", "--add", "still.jsonl", "--remove", "old.tsv")
    assert code == 0
    assert "Added 3 facts (1 were there already or repeated) and removed 1; embedded 5 texts." in out
    assert "films.index now holds 5 entities, 3 relations, 4 triples." in out
    assert "Denis Villeneuve" in run("ask", "films.index", "Who directed Arrival (2016)?")[1]
    graph = KnowledgeGraph.open("films.index")
    assert (graph.label("Arrival"), graph.types_of("Arrival")) == ("Arrival (2016)", ["film"])


def test_the_counts_as_json(run: Run) -> None:
    code, out, _ = run("update", "films.index", "--add", "more.csv", "--json")
    assert code == 0
    assert json.loads(out) == {"added": 2, "present": 1, "removed": 0, "embedded": 3, "triples": 4}


def test_sources_are_noted_and_removed(run: Run) -> None:
    assert run("update", "films.index", "--add", "more.csv", "--source", "monday")[0] == 0
    graph = KnowledgeGraph.open("films.index")
    assert graph.sources(("Her", "has_genre", "Romance")) == ["monday"]
    code, out, _ = run("update", "films.index", "--remove-source", "monday")
    assert code == 0
    assert "Removed 2; embedded" in out
    assert ("Her", "starring", "Amy Adams") in KnowledgeGraph.open("films.index")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["films.index"], "nothing to change. Name files or sources: --add, --remove, --remove-source"),
        (["films.csv", "--add", "more.csv"], "films.csv is no folder that `index` saved."),
        (["films.index", "--remove", "old.tsv", "--source", "x"], "--source says where the facts of --add are from"),
        (["films.index", "--remove", "wrong.csv"], "No entity has the key 'Spike Jones'."),
        (["films.index", "--add", "broken.csv"], "broken.csv:2"),
        (["films.index", "--remove-source", "x"], "no fact of the graph is from 'x'. Its sources: none"),
    ],
)
def test_what_is_wrong_is_refused_and_nothing_is_changed(run: Run, argv: list[str], words: str) -> None:
    before = KnowledgeGraph.open("films.index").fingerprint
    assert words in mistake(run("update", *argv))
    assert KnowledgeGraph.open("films.index").fingerprint == before


MUSEUM = """@prefix ex: <http://museum.example/id/> . @prefix mus: <http://museum.example/terms#> .
ex:o1 mus:called "Red Mountain" ; mus:kind mus:Painting ; mus:by ex:klee ; mus:size [ mus:unit "cm" ] .
mus:Painting mus:called "painting" . ex:klee mus:called "Paul Klee" .
"""
NAMED = ("--read", "label_predicates=mus:called", "--read", "type_predicates=mus:kind")
MORE = """<http://museum.example/id/o2> <http://museum.example/terms#kind> <http://museum.example/terms#Painting> .
<http://museum.example/id/o2> <http://museum.example/terms#by> <http://museum.example/id/klee> .
<http://museum.example/id/o2> <http://museum.example/terms#called> "Fish Magic" .
"""


def test_rdf_is_read_as_the_graph_was_and_joined_by_iri(run: Run, folder: Path) -> None:
    (folder / "museum.ttl").write_text(MUSEUM)
    (folder / "more.nt").write_text(MORE)
    (folder / "old.nt").write_text(MORE.splitlines()[1].replace("o2", "o1"))
    assert run("index", "museum.ttl", *NAMED, "--output", "museum", "--embeddings", "hashed")[0] == 0
    code, out, notes = run("update", "museum", "--add", "more.nt", "--remove", "old.nt")
    assert (code, "Added 1 fact " in out, "removed 1" in out) == (0, True, True)
    terms = "http://museum.example/terms#"
    asked = f"--read label_predicates={terms}called --read type_predicates={terms}kind"
    assert " ".join(notes.split()).count(f"is read as the graph was, with {asked}; the same options change it") == 2
    graph = KnowledgeGraph.open("museum")
    assert [*graph.triples("ex:o2")] == [("ex:o2", "mus:by", "ex:klee")]
    assert graph.label("ex:o2") == "Fish Magic"
    assert graph.types_of("ex:o2") == ["painting"]
    assert graph.label("ex:klee") == "Paul Klee"
    code, _, notes = run("update", "museum", "--add", "more.nt", "--read", "type_predicates=rdf:type")
    assert (code, "--type-predicate" in notes) == (0, False)
    assert ("ex:o2", "mus:kind", "mus:Painting") in KnowledgeGraph.open("museum")
