"""SPARQL retrieval: an endpoint gives what the matcher in memory gives."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from oxigraph_server import Oxigraph

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, Question
from kg_retrievers.database.sparql.executor import SparqlExecutor
from kg_retrievers.errors import SparqlSafetyError, StaleIndexError
from kg_retrievers.graph import Triple
from kg_retrievers.methods.sg_rag.retriever import CypherRetriever
from kg_retrievers.sample import load_graph, load_questions

pytest.importorskip("ladybug")

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
from cypher_databases import Answers

FILMS = """
@prefix dbr: <http://dbpedia.org/resource/> . @prefix dbo: <http://dbpedia.org/ontology/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
dbr:Her a dbo:Film ; dbo:director dbr:Jonze ; dbo:starring dbr:Adams, dbr:Mara ; rdfs:label "Her"@en .
dbr:Adaptation a dbo:Film ; dbo:director dbr:Jonze ; dbo:starring dbr:Streep ; dbo:year "2002" .
dbr:Arrival a dbo:Film ; dbo:director dbr:Villeneuve ; dbo:starring dbr:Adams ; rdfs:label "Arrival"@en .
dbr:Jonze rdfs:label "Spike Jonze"@en . dbr:Villeneuve rdfs:label "Denis Villeneuve"@en .
dbo:director rdfs:label "directed by"@en . dbo:Film rdfs:label "film"@en .
"""
DIRECTED = "SELECT ?target (?film AS ?h0) (dbo:director AS ?r0) (?target AS ?t0) WHERE { "
DIRECTED += "VALUES ?film { $e0 } ?film dbo:director ?target }"
FACT = Triple("dbr:Her", "directed by", "dbr:Jonze")


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[GraphIndex, SparqlExecutor]]:
    folder = tmp_path_factory.mktemp("films")
    file = folder / "films.ttl"
    file.write_text(FILMS)
    index = GraphIndex.build(KnowledgeGraph.from_file(file), HashedEmbeddings())
    with Oxigraph(folder, file) as server, server.executor() as executor:
        yield index, executor


@pytest.mark.heavy
def test_the_sample_graph_in_memory_and_at_an_endpoint(tmp_path: Path) -> None:
    graph = load_graph()
    graph.write(tmp_path / "sample.nt")
    index = GraphIndex.build(graph, HashedEmbeddings())
    questions = [replace(question, pattern=None) for question in load_questions()]
    with Oxigraph(tmp_path, tmp_path / "sample.nt") as server, server.executor() as executor:
        answers = Answers(index, questions, {"endpoint": executor})
        found = [
            (answers.by_retriever("endpoint", question, topic_given), answers.in_memory(executor))
            for question in questions
            for topic_given in (True, False)
        ]
    assert all(at_endpoint == in_memory for at_endpoint, in_memory in found)
    assert sum(bool(at_endpoint.triples) for at_endpoint, _ in found) > 0.9 * len(found)


def test_a_template_is_written_as_sparql(films: tuple[GraphIndex, SparqlExecutor]) -> None:
    index, executor = films
    example = Question("Who directed Arrival?", answers=("dbr:Villeneuve",))
    (document,) = CypherRetriever.from_index(index, examples=[example], executor=executor).invoke("Who directed Her?")
    assert document.metadata["answers"] == ["dbr:Jonze"]
    assert document.metadata["triples"] == [list(FACT)]
    assert document.metadata["details"]["query"].startswith("SELECT DISTINCT")
    assert document.metadata["details"]["parameters"] == {"n0": ["dbr:Her"]}


def test_given_queries(films: tuple[GraphIndex, SparqlExecutor]) -> None:
    index, executor = films
    retriever = CypherRetriever.from_index(index, executor=executor)
    given = {"query": DIRECTED, "parameters": {"e0": "dbr:Her"}}
    (document,) = retriever.invoke("?", cypher=given)
    assert document.metadata["triples"] == [list(FACT)]
    with pytest.raises(SparqlSafetyError, match="returns no fact"):
        retriever.invoke("?", cypher={**given, "query": DIRECTED.replace("?h0", "?h").replace("?r0", "?r")})
    with pytest.raises(SparqlSafetyError, match="a word that is not known"):
        retriever.invoke("?", cypher="SELECT ?s { SERVICE <http://localhost> { ?s ?p ?o } }")
    other = GraphIndex.build(KnowledgeGraph.from_triples([("a", "b", "c")]), HashedEmbeddings())
    with pytest.raises(StaleIndexError, match="not in the indexed graph"):
        CypherRetriever(index=other, writer=retriever.writer, executor=executor).invoke("?", cypher=given)
