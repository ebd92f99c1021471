"""SPARQL retrieval: an endpoint gives what the matcher in memory gives, and a language model writes SPARQL."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from oxigraph_server import Oxigraph

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, Question
from kg_retrievers.database.sparql.executor import SparqlExecutor
from kg_retrievers.errors import CypherGenerationError, SparqlSafetyError, StaleIndexError
from kg_retrievers.graph import Triple
from kg_retrievers.methods.sg_rag import CypherRetriever, LLMCypherWriter
from kg_retrievers.methods.sg_rag.sparql import parse_sparql
from kg_retrievers.sample import load_graph, load_questions
from kg_retrievers.testing import ScriptedChatModel

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


def over(films: tuple[GraphIndex, SparqlExecutor], *replies: str, **fields: Any) -> CypherRetriever:
    index, executor = films
    writer = LLMCypherWriter(index, ScriptedChatModel(replies=list(replies)), **fields)
    return CypherRetriever(index=index, writer=writer, executor=executor)


def prompts(retriever: CypherRetriever) -> list[str]:
    assert isinstance(retriever.writer, LLMCypherWriter)
    assert isinstance(retriever.writer.llm, ScriptedChatModel)
    return ["\n".join(message.text for message in messages) for messages in retriever.writer.llm.prompts]


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


def test_a_model_writes_sparql(films: tuple[GraphIndex, SparqlExecutor]) -> None:
    retriever = over(films, f"```sparql\n{DIRECTED}\n```")
    (document,) = retriever.invoke("Who directed Her?")
    assert document.metadata["triples"] == [list(FACT)]
    prompt = prompts(retriever)[0]
    for shown in (
        "SPARQL",
        '$e0 = ["dbr:Her"]',
        "?head dbo:director ?tail, called 'directed by'   for example Her -> Spike Jonze",
        "?thing rdf:type dbo:Film, called 'film'",
    ):
        assert shown in prompt


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT ?target WHERE { VALUES ?film { $e0 } ?film dbo:director ?target }", "returns no fact"),
        (DIRECTED.replace("dbo:director", "dbo:producer"), "no relation or type of the schema"),
        (DIRECTED.replace("$e0", "dbr:Her"), "What is named is a parameter"),
        (DIRECTED.replace("$e0", "$e1"), "a parameter that is not given"),
        (DIRECTED.removesuffix("}"), "each bracket is closed"),
        (f"{DIRECTED} LIMIT", "the number of LIMIT"),
        (DIRECTED.replace("dbo:director ?target", "dbo:director"), "A triple is a subject, a relation and an object"),
        (DIRECTED.removesuffix("}") + "BIND(1 AS ?film) }", "error at"),
        (DIRECTED.removesuffix("}") + ". ?a dbo:director ?b . ?c dbo:year ?d }", "shares no variable"),
        ("DELETE WHERE { ?s ?p ?o }", "Begin with SELECT"),
        ("I do not know.", "holds no query; one begins with SELECT"),
    ],
)
def test_a_query_that_cannot_be_run_is_repaired_once(
    films: tuple[GraphIndex, SparqlExecutor], query: str, reason: str
) -> None:
    retriever = over(films, query, DIRECTED)
    assert retriever.invoke("Who directed Her?")[0].metadata["answers"] == ["dbr:Jonze"]
    assert reason in prompts(retriever)[1]
    with pytest.raises(CypherGenerationError, match=r"the second query cannot be run|holds no query"):
        over(films, query, query).invoke("Who directed Her?")


def test_given_queries(films: tuple[GraphIndex, SparqlExecutor]) -> None:
    executor = films[1]
    retriever = over(films)
    given = {"query": DIRECTED, "parameters": {"e0": "dbr:Her"}}
    (document,) = retriever.invoke("?", cypher=given)
    assert document.metadata["triples"] == [list(FACT)]
    with pytest.raises(SparqlSafetyError, match="a word that is not known"):
        retriever.invoke("?", cypher="SELECT ?s { SERVICE <http://localhost> { ?s ?p ?o } }")
    other = GraphIndex.build(KnowledgeGraph.from_triples([("a", "b", "c")]), HashedEmbeddings())
    with pytest.raises(StaleIndexError, match="not in the indexed graph"):
        CypherRetriever(index=other, writer=retriever.writer, executor=executor).invoke("?", cypher=given)


def test_replies() -> None:
    assert parse_sparql("PREFIX ex: <urn:ex>\n\nSELECT ?x { ?x ex:a ?y }\n\nThat is it.") == (
        "PREFIX ex: <urn:ex>\n\nSELECT ?x { ?x ex:a ?y }"
    )
    assert parse_sparql('{"sparql": "ASK { ?x ?y ?z }"}') == "ASK { ?x ?y ?z }"
