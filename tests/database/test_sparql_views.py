"""Views of a SPARQL endpoint: an index of some named graphs tells nothing of the others."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from graph_reader import names_in_memory
from oxigraph_server import Oxigraph

from kg_retrievers import (
    CypherRetriever,
    GraphIndex,
    KnowledgeGraph,
    NeighborhoodRetriever,
    SimGRAGRetriever,
    default_embeddings,
)
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.database.sparql.executor import SparqlExecutor
from kg_retrievers.errors import InvalidArgumentError, KGRetrieversError, SparqlSafetyError

pytest.importorskip("pyoxigraph")

PRESS, RUMOUR = "http://example.org/press", "http://example.org/rumour"
PREFIXES = {"ex": "http://example.org/"}
FACTS = f"""
@prefix ex: <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:nobody ex:works_for ex:Zed .
<{PRESS}> {{
  ex:ann ex:works_for ex:Acme ; rdfs:label "Ann Lee" . ex:bob ex:works_for ex:Acme ; rdfs:label "Bob Ray" .
  ex:Acme ex:located_in ex:Oslo ; rdfs:label "Acme" . ex:Oslo rdfs:label "Oslo" . ex:Acme ex:founded "1999" .
}}
<{RUMOUR}> {{
  ex:ann ex:works_for ex:Zed ; rdfs:label "The Shadow" . ex:eve ex:works_for ex:Acme ; rdfs:label "Eve Stone" .
  ex:eve ex:spies_on ex:ann . ex:Zed rdfs:label "Zed Works" .
}}
"""
HIDDEN = ("Eve Stone", "Zed Works", "The Shadow", "spies", "ex:eve", "ex:Zed", "nobody")
QUESTIONS = [
    "Who works for Acme?", "How many work for Acme?", "Where is Acme located?", "Who does Ann Lee work for?",
    "Who works for Zed Works?", "Who spies on Ann Lee?", "Tell me about Eve Stone", "What does The Shadow do?",
    "When was Acme founded?", "Does Eve Stone work for Acme?", "What do Ann Lee and Bob Ray have in common?",
]  # fmt: skip


@pytest.fixture(scope="module")
def executor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparqlExecutor]:
    folder = tmp_path_factory.mktemp("named")
    (folder / "facts.trig").write_text(FACTS)
    with Oxigraph(folder, folder / "facts.trig") as server, server.executor(prefixes=PREFIXES) as executor:
        yield executor


@pytest.fixture(scope="module")
def view(executor: SparqlExecutor) -> GraphIndex:
    """A view, with a vector store that holds the names of all graphs."""
    both, embeddings = KnowledgeGraph.from_executor(view_of(executor, PRESS, RUMOUR)), default_embeddings()
    return GraphIndex.connect(executor, embeddings, names_in_memory(both, embeddings)).view({"source": PRESS})


def view_of(executor: SparqlExecutor, *graphs: str) -> SparqlExecutor:
    reader = GraphIndex.connect(executor, default_embeddings()).view({"source": [*graphs]}).reader
    assert isinstance(reader, SparqlExecutor)
    return reader


def reply(retriever: BaseKGRetriever, question: str) -> str:
    try:
        found = retriever.invoke(question)
    except KGRetrieversError as error:
        return f"{type(error).__name__}: {error}"
    return str([(one.page_content, one.metadata["answers"], one.metadata.get("value")) for one in found])


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphIndex]:
    """The same view of a store that never had other graphs, with a vector store that holds its names."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "press.trig").write_text(
        FACTS[: FACTS.index(f"<{RUMOUR}>")].replace("ex:nobody ex:works_for ex:Zed .", "")
    )
    with (
        Oxigraph(folder, folder / "press.trig") as server,
        server.executor(prefixes=PREFIXES, graphs=[PRESS]) as reader,
    ):
        graph, embeddings = KnowledgeGraph.from_executor(reader), default_embeddings()
        yield GraphIndex.connect(reader, embeddings, names_in_memory(graph, embeddings))


@pytest.mark.parametrize("kind", [SimGRAGRetriever, NeighborhoodRetriever, CypherRetriever])
def test_replies_are_those_of_the_graphs_alone(view: GraphIndex, alone: GraphIndex, kind: Any) -> None:
    one, other = (kind.from_index(index, on_refusal="raise") for index in (view, alone))
    replies = {question: reply(one, question) for question in QUESTIONS}
    assert replies == {question: reply(other, question) for question in QUESTIONS}
    assert sum(said.startswith("[") for said in replies.values()) >= 5
    assert not [
        (said, name) for asked, said in replies.items() for name in HIDDEN if name in said and name not in asked
    ]


def test_counts_names_and_pages_are_of_the_graphs_alone(
    view: GraphIndex, executor: SparqlExecutor, tmp_path: Path
) -> None:
    (document,) = CypherRetriever.from_index(view).invoke("How many work for Acme?")
    assert document.metadata["value"] == 2
    reader, file = view_of(executor, "ex:press"), tmp_path / "facts.trig"
    file.write_text(FACTS)
    cut = KnowledgeGraph.from_rdf(file, graphs=[PRESS])
    assert {*KnowledgeGraph.from_executor(reader).triples()} == {*cut.triples()}
    assert reader.relations() == ["ex:founded", "ex:located_in", "ex:works_for"]
    page = reader.entities_after("", 100)
    assert [entity.key for entity in page.entities] == ["1999", "ex:Acme", "ex:Oslo", "ex:ann", "ex:bob"]
    assert not any(reader.entities_named([*HIDDEN]).values())
    assert reader.describe(["ex:eve", "ex:Zed"]) == []
    (row,) = reader.run("SELECT (COUNT(*) AS ?n) { ?s ex:works_for ?o }").rows
    assert row == ("2",)
    again = pickle.loads(pickle.dumps(reader))
    assert again.facts_of(["ex:ann"]).triples == [("ex:ann", "ex:works_for", "ex:Acme")]


def test_several_graphs_are_one_view(executor: SparqlExecutor) -> None:
    both = view_of(executor, PRESS, RUMOUR)
    found = both.facts_of(["ex:ann"], relations=["ex:works_for"]).triples
    assert {triple.tail for triple in found} == {"ex:Acme", "ex:Zed"}
    assert "ex:nobody" not in KnowledgeGraph.from_executor(both).entities


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ?s { GRAPH ?g { ?s ?p ?o } }",
        f"SELECT ?s {{ GRAPH <{RUMOUR}> {{ ?s ?p ?o }} }}",
        f"SELECT ?s FROM <{RUMOUR}> {{ ?s ?p ?o }}",
        f"SELECT ?s {{ ?a ?b ?c FILTER EXISTS {{ graph <{RUMOUR}> {{ ?s ?p ?o }} }} }}",
    ],
)
def test_no_query_gets_around_a_view(view: GraphIndex, executor: SparqlExecutor, query: str) -> None:
    with pytest.raises(SparqlSafetyError, match=r"Leave (GRAPH out|it out)"):
        view_of(executor, PRESS).run(query)
    with pytest.raises(InvalidArgumentError, match="its queries would see all facts"):
        CypherRetriever.from_index(view, executor=executor)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"where": {"tenant": "a"}}, r"narrowed to named graphs alone, and once, by where=\{'source'.*tenant"),
        ({"where": {"source": [PRESS, None]}}, "narrowed to named graphs alone"),
        ({"where": {"source": {"!=": PRESS}}}, "narrowed to named graphs alone"),
        ({"where": {"source": PRESS}, "as_of": "2001"}, "as_of='2001'"),
        ({"where": {"source": []}}, "Wanted a list of IRIs"),
        ({"where": {"source": "press"}}, "'press' is no IRI"),
        ({"where": {"source": "http://example.org/none"}}, "no fact satisfies these conditions"),
    ],
)
def test_a_view_that_cannot_be_made_says_why(executor: SparqlExecutor, wanted: dict[str, Any], message: str) -> None:
    index = GraphIndex.connect(executor, default_embeddings())
    with pytest.raises(InvalidArgumentError, match=message):
        index.view(**wanted)
    with pytest.raises(InvalidArgumentError, match="named graphs alone, and once"):
        index.view({"source": PRESS}).view({"source": RUMOUR})


def test_an_endpoint_that_ignores_the_graphs_is_refused(executor: SparqlExecutor, monkeypatch: Any) -> None:
    """As behind a proxy that passes the query on alone."""
    reader = SparqlExecutor(executor.url, prefixes=PREFIXES, graphs=[PRESS])
    select = reader._endpoint.select
    monkeypatch.setattr(reader._endpoint, "select", lambda query, graphs: select(query))
    with pytest.raises(InvalidArgumentError, match="ignores the parameter default-graph-uri"):
        KnowledgeGraph.from_executor(reader)
    with pytest.raises(InvalidArgumentError, match="ignores the parameter default-graph-uri"):
        GraphIndex.connect(reader, default_embeddings())
