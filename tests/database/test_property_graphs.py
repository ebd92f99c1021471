"""Live property graphs: they are read, and answer when connected, as the exported files of the same graph do."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import ladybug
import pytest
from arcadedb import ArcadeDB, is_installed
from graph_reader import in_order, names_in_memory
from langchain_core.runnables import RunnableLambda
from pattern_matches import found_by
from property_graph import property_graph, write_cypher, write_files

from kg_retrievers import (
    CypherRetriever,
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    LadybugExecutor,
    NeighborhoodRetriever,
    SimGRAGRetriever,
    TripleSimilarityRetriever,
    default_embeddings,
)
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.database.properties import conditions_of
from kg_retrievers.database.rendering import render
from kg_retrievers.errors import InvalidArgumentError, KGRetrieversError, SearchBudgetError
from kg_retrievers.graph import FactAttribute, Known, Pattern, Unknown
from kg_retrievers.graph.operations import Condition
from kg_retrievers.index import PartRequest
from kg_retrievers.methods.sg_rag.writers import PatternCypherWriter
from kg_retrievers.questions.fact_attributes import _satisfies, value_texts

GRAPH = property_graph()
ASKED = {
    "Film": ["When was {} released?", "Who acted in {}?", "What are the genres of {}?", "Which studio made {}?"],
    "Person": ["When was {} born?", "What is the height of {}?", "Which films did {} direct?", "Who does {} work for?"],
    "Studio": ["When was {} founded?", "Who works for {}?"],
}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    """The graph as it is read from the files of neo4j-admin."""
    folder = tmp_path_factory.mktemp("files")
    write_files(GRAPH, folder)
    return KnowledgeGraph.from_file(folder)


@pytest.fixture(scope="module", params=["ladybug", pytest.param("arcadedb", marks=pytest.mark.heavy)])
def executor(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The graph in a database."""
    folder = tmp_path_factory.mktemp("database")
    if request.param == "ladybug":
        with ladybug.Database(folder / "g.lbdb") as database, ladybug.Connection(database) as connection:
            write_cypher(GRAPH, connection.execute, tables=True)
            connection.execute("COMMIT")
        with LadybugExecutor(folder / "g.lbdb", key="id") as executor:
            yield executor
        return
    if not is_installed():
        pytest.skip("arcadedb-embedded is not installed")
    with ArcadeDB(folder, ["graph"]) as server:
        with server.driver.session(database="graph") as session, session.begin_transaction() as transaction:
            write_cypher(GRAPH, lambda query, values: transaction.run(query, values).consume(), tables=False)
            transaction.commit()
        with server.executor("graph", key="id", explain=False) as executor:
            yield executor


def contents(graph: KnowledgeGraph) -> dict[str, Any]:
    """All of a graph but the order."""
    return {
        "facts": {triple: sorted(map(repr, graph.attributes(triple))) for triple in graph.triples()},
        "entities": {
            key: (graph.label(key), graph.aliases(key), graph.types_of(key), graph.datatype(key))
            for key in graph.entities
        },
        "read": graph.reading.understood["facts from node attributes"],
        "duplicates": graph.duplicates,
    }


@pytest.mark.parametrize("page_size", [200, 10_000])
def test_an_import_is_the_exported_file(file: KnowledgeGraph, executor: Any, page_size: int) -> None:
    """Pages of 200 rows end between relationships of one type between the same two nodes."""
    assert contents(KnowledgeGraph.from_executor(executor, page_size=page_size)) == contents(file)


def test_properties_are_dropped_as_those_of_a_file(executor: Any) -> None:
    graph = KnowledgeGraph.from_executor(executor, attributes="drop")
    assert {*graph.relations} == {"ACTED_IN", "WORKS_FOR", "DIRECTED", "MADE_BY"}
    assert not graph.attribute_names
    assert graph.reading.left_out["node attribute 'height' (attributes=\"facts\" keeps it)"] == 231
    assert graph.reading.left_out["edge attribute 'role' (attributes=\"facts\" keeps it)"] > 400


def said(retriever: BaseKGRetriever, question: str) -> list[Any]:
    """The answers, facts and attributes of a reply; the sets of a fact are in the order in which a source has them."""
    replies = [one.metadata for one in retriever.invoke(question)]
    return [
        (one["answers"], one["triples"], [sorted(map(repr, sets)) for sets in one.get("attributes", []) if sets])
        for one in replies
    ]


def same_replies(one: BaseKGRetriever, other: BaseKGRetriever, *, every: int) -> int:
    """How many questions about every so many names have replies, which must be the same."""
    replies = 0
    for label, questions in ASKED.items():
        for place, question in enumerate(questions):
            for name in GRAPH.named(label)[place::every]:
                reply = said(one, question.format(name))
                assert said(other, question.format(name)) == reply, question.format(name)
                replies += bool(reply)
    return replies


def all_labels(reader: Any, page: int) -> list[str]:
    position: str | None = ""
    labels = list[str]()
    while position is not None:
        entities, position = reader.entities_after(position, page)
        labels += [entity.label for entity in entities]
    return labels


#: A second hop from a value, as to all else that was released in 1999, needs the graph in memory (docs/servers.md).
KINDS: dict[type[BaseKGRetriever], dict[str, Any]] = {
    SimGRAGRetriever: {},
    NeighborhoodRetriever: {},
    TripleSimilarityRetriever: {"max_hops": 1},
}


@pytest.mark.parametrize("kind", KINDS)
def test_connected_answers_are_those_of_the_exported_file(
    file: KnowledgeGraph, executor: Any, kind: type[BaseKGRetriever]
) -> None:
    embeddings = default_embeddings()
    here = kind.from_index(GraphIndex.build(in_order(file), embeddings), **KINDS[kind])
    there = kind.from_index(GraphIndex.connect(executor, embeddings), **KINDS[kind])
    assert same_replies(here, there, every=40) > 15


def test_a_value_is_a_fact_when_connected(executor: Any) -> None:
    key, name, year = next(
        (key, said["name"], said["release_year"]) for key, (_, said) in GRAPH.nodes.items() if "release_year" in said
    )
    found = executor.facts_of([str(key)], relations=["release_year"])
    assert found.triples == [(str(key), "release_year", str(year))]
    assert executor.entities_named([name, str(key)]) == {name: [str(key)], str(key): [str(key)]}
    assert [entity.label for entity in executor.describe([str(key)])] == [name]
    assert sorted(all_labels(executor, 90)) == sorted(name for label in ASKED for name in GRAPH.named(label))


VIEWS: list[dict[str, Any]] = [
    {"where": {"role": "Neo"}},
    {"where": {"role": ["a thief", None], "budget": None}, "as_of": "1980-06-01"},
    {"where": {"posts": "cook"}},
    {"where": {"scenes": {">=": 20, "<": 40}}},
    {"where": {"valid_from": {">": "1970"}}},
]


@pytest.mark.parametrize("wanted", VIEWS, ids=str)
def test_a_view_is_that_of_the_imported_graph(executor: Any, wanted: dict[str, Any]) -> None:
    imported = in_order(KnowledgeGraph.from_executor(executor).view(**wanted))
    embeddings = default_embeddings()
    view = GraphIndex.connect(executor, embeddings).view(**wanted)
    assert (view.triple_count, [*view.graph.relations]) == (len(imported), sorted(imported.relations))
    assert {*view.whole.graph.triples()} == {*imported.triples()}
    here = GraphIndex.build(imported, embeddings)
    replies = 0
    for kind, settings in KINDS.items():
        replies += same_replies(kind.from_index(here, **settings), kind.from_index(view, **settings), every=250)
    assert replies


def drawn_pattern(choose: random.Random, cut: KnowledgeGraph) -> Pattern:
    """A pattern of facts that are joined, as a view shows them, with unknowns in place of some of their parts."""
    facts = [choose.choice([*cut.triples()])]
    near = [one for one in cut.triples() if {one.head, one.tail} & {facts[0].head, facts[0].tail}]
    facts += choose.sample(near, min(len(near), choose.randrange(3)))
    keys = sorted({end for fact in facts for end in (fact.head, fact.tail)})
    known = {choose.choice(keys)}
    node = {key: Known(key, entity=key) if key in known else Unknown(f"x{number}") for number, key in enumerate(keys)}
    ways = [(fact.relation if choose.random() < 0.8 else Unknown("r"), choose.random() < 0.9) for fact in facts]
    triples = [(node[fact.head], relation, node[fact.tail]) if forward else (node[fact.tail], relation, node[fact.head])
               for fact, (relation, forward) in zip(facts, ways, strict=True)]  # fmt: skip
    return Pattern.of(*triples, target=next((one.name for one in node.values() if isinstance(one, Unknown)), None))


@pytest.mark.parametrize("wanted", [VIEWS[0], VIEWS[3], VIEWS[4]], ids=str)
def test_queries_find_in_a_view_what_they_find_in_a_copy_of_it(executor: Any, wanted: dict[str, Any]) -> None:
    cut, choose, count = KnowledgeGraph.from_executor(executor).view(**wanted), random.Random(5), 0
    view: Any = GraphIndex.connect(executor, HashedEmbeddings()).view(**wanted).reader
    with LadybugExecutor.from_graph(cut) as copy:
        for pattern in (drawn_pattern(choose, cut) for _ in range(10)):
            for direction in ("ignore", "respect"):
                found = {*found_by(copy, pattern, direction=direction)}
                assert {*found_by(view, pattern, direction=direction)} == found, pattern
                query, parameters = render(pattern, view.schema(), view.dialect, direction=direction)
                assert len(view.run(query, parameters, limit=1)) == min(len(found), 1)
                count += len(found)
    assert count > 20


def test_sg_rag_over_a_view_replies_as_over_a_copy_of_it(executor: Any) -> None:
    embeddings, wanted = default_embeddings(), VIEWS[4]
    view = CypherRetriever.from_index(GraphIndex.connect(executor, embeddings).view(**wanted))
    with LadybugExecutor.from_graph(KnowledgeGraph.from_executor(executor).view(**wanted)) as copy:
        asked = {
            "Film": ["Who acted in {}?", "How many people acted in {}?"],
            "Person": ["Which films did {} act in?", "Who does {} work for?"],
            "Studio": [
                "Who works for {}?",
                "How many people work for {}?",
                "Which person works for {} and directed films?",
            ],
        }
        other, replies = CypherRetriever.from_index(GraphIndex.connect(copy, embeddings)), 0
        for label, questions in asked.items():
            for question in questions:
                for name in GRAPH.named(label)[::40]:
                    said = [
                        [(one.metadata["answers"], one.metadata.get("value"), one.metadata["triples"]) for one in found]
                        for found in (view.invoke(question.format(name)), other.invoke(question.format(name)))
                    ]
                    assert said[0] == said[1], question.format(name)
                    replies += bool(said[0])
    assert replies > 3


CONDITIONS = [
    ("ACTED_IN", "scenes", ["<", "<=", ">", ">=", "="], [0, 20, 44.5, "20", "1999"]),
    ("MADE_BY", "budget", ["<", ">=", "=", "between", "!="], [3, 12.25, "1999-05", "7 km"]),
    ("WORKS_FOR", "valid_from", ["<", "<=", ">", ">=", "=", "between"], ["1970-06", "1980", 1981, "1990-02-03"]),
    ("ACTED_IN", "role", ["=", "contains", "!="], ["NEO", "thief"]),
]


def test_conditions_on_attributes_leave_out_no_fact_that_satisfies_them(file: KnowledgeGraph, executor: Any) -> None:
    choose, fewer = random.Random(7), 0
    heads = {*random.Random(1).sample([*map(str, GRAPH.nodes)], 40)}
    facts = [triple for triple in file.triples() if triple.head in heads]
    for _ in range(20):
        relation, name, operators, values = choose.choice(CONDITIONS)
        operator: Any = choose.choice(operators)
        value: Any = sorted(choose.choices(values, k=2), key=str) if operator == "between" else choose.choice(values)
        condition = Condition("value", operator, value)
        pattern = Pattern.of(
            (Unknown("one"), relation, Unknown("other")),
            attributes=[FactAttribute(0, name, "value")],
            conditions=[condition],
            target="value",
        )
        limits = {relation: conditions_of(pattern, 0)}
        found = executor.facts_of(sorted(heads), limits=limits, limit=10_000)
        rest = {triple for triple in facts if triple.relation != relation}
        wanted = {
            triple
            for triple in facts
            if triple.relation == relation
            for said in file.attributes(triple)
            if any(_satisfies(text, condition) for text in value_texts(said.get(name, [])))
        }
        assert not found.truncated
        assert wanted | rest <= {*found.triples}, condition
        if executor.dialect != "ladybug":
            rows = found_by(executor, replace(pattern, target=None), attributes=True)
            assert wanted <= {fact for _, (fact,) in rows}, condition
        fewer += not {*facts} <= {*found.triples}
    assert fewer > 8


def test_a_view_never_tells_of_what_it_hides(executor: Any) -> None:
    """With a vector store that holds the names of the whole database."""
    whole, embeddings = KnowledgeGraph.from_executor(executor), HashedEmbeddings()
    index = GraphIndex.connect(executor, embeddings, names_in_memory(whole, embeddings))
    view, shown = index.view({"role": "Neo"}), whole.view({"role": "Neo"})
    names = {name for key in whole.entities for name in (whole.label(key), *whole.aliases(key)) if " " in name}
    hidden = names - {name for key in shown.entities for name in (shown.label(key), *shown.aliases(key))}
    assert view.reader is not None
    told = [repr(view), *view.whole.graph.entities, *view.graph.relations]
    told += [entity.label for entity in view.reader.describe([*whole.entities])]
    assert not any(view.reader.entities_named(sorted(hidden)).values())
    told += all_labels(view.reader, 200)
    for kind in (SimGRAGRetriever, NeighborhoodRetriever):
        retriever = kind.from_index(view, on_refusal="raise")
        for name in sorted(hidden)[::60]:
            for question in (f"Who acted in {name}?", f"What is {name[:-1]} about?", "What is in this graph?"):
                try:
                    found = "".join(str(one) for one in retriever.invoke(question)).replace(name, "")
                except KGRetrieversError as error:
                    found = str(error).replace(name, "")
                told.append(found)
    assert not [(name, one) for name in (*hidden, "MADE_BY", "WORKS_FOR") for one in told if name in one]
    near = view.part(PartRequest(names=(min(hidden)[:-1],), k=3)).graph
    assert near.entities
    assert {*near.entities} <= {*shown.entities}


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"where": {"rolle": "Neo"}}, "no fact has the attribute 'rolle'; did you mean 'role'"),
        ({"as_of": "someday"}, "as_of must be a date"),
        ({"where": {"scenes": {">": 5, "<": "1999-01-01"}}}, "must be all numbers or all dates"),
        ({"where": {"scenes": {">": 2000}}}, "no fact satisfies these conditions"),
        ({"as_of": "1999", "validity": ("begin", "valid_to")}, "no fact has the attribute 'begin'"),
    ],
)
def test_a_view_that_cannot_be_made_says_why(executor: Any, wanted: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        GraphIndex.connect(executor, HashedEmbeddings()).view(**wanted)


def test_nothing_asks_the_database_past_a_view(executor: Any) -> None:
    index = GraphIndex.connect(executor, HashedEmbeddings())
    view = index.view({"role": "Neo"})
    assert index.view({"role": "Neo"}) is view
    assert index.view() is index
    retriever = CypherRetriever.from_index(view, on_refusal="raise")
    for query in ("MATCH (a)-[r]->(b) RETURN r", "MATCH (a)-[r:MADE_BY]->(b) RETURN b, r"):
        with pytest.raises(InvalidArgumentError, match="runs only the queries that it writes itself"):
            retriever.invoke("?", cypher=query)
        with pytest.raises(InvalidArgumentError, match="runs only the queries that it writes itself"):
            view.reader.run(query)  # type: ignore[union-attr]
    actor = "Ann", "ACTED_IN", Unknown("film")
    for pattern in (
        Pattern.of(alone=[Unknown("film", "Film")], target="film", operation="count"),
        Pattern.of(actor, absent=[(Unknown("film"), "MADE_BY", Unknown("studio"))], target="film"),
    ):
        with pytest.raises(SearchBudgetError, match="the index is a view of a database"):
            render(pattern, view.reader.schema(), executor.dialect)  # type: ignore[union-attr]
    with pytest.raises(InvalidArgumentError, match="its queries would see all facts"):
        CypherRetriever.from_index(view, executor=executor)
    with pytest.raises(InvalidArgumentError, match="give all conditions in one call"):
        view.view({"scenes": 5})


def test_lists_titles_and_empty_keys(tmp_path: Path) -> None:
    with ladybug.Database(tmp_path / "g.lbdb") as database, ladybug.Connection(database) as connection:
        for query in (
            "CREATE NODE TABLE N(id STRING PRIMARY KEY, name STRING, title STRING)",
            "CREATE REL TABLE R(FROM N TO N, n INT64[])",
            "CREATE (a:N {id: 'a', name: 'Ann', title: 'Dr'}), (:N {id: 'b', name: 'Bob'}), (:N {id: ''})",
            "MATCH (a:N {id: 'a'}), (b:N) WHERE b.id <> 'a' CREATE (a)-[:R {n: [1, 5]}]->(b)",
        ):
            connection.execute(query)
    with LadybugExecutor(tmp_path / "g.lbdb", key="id") as executor:
        facts = {("a", "R", "b"), ("a", "title", "Dr")}
        assert {*executor.facts_of(["a"]).triples} == facts
        assert {*executor.sample_facts(["R", "title"], 5).triples} == facts
        view = executor.view({"n": [5, None]}, None, ("valid_from", "valid_to"))
        assert {*view.facts_of(["a"]).triples} == facts
        assert GraphIndex.connect(executor, HashedEmbeddings()).view({"n": {">=": 3}}).triple_count == 1
        with pytest.raises(InvalidArgumentError, match="wanted an executor"):
            KnowledgeGraph.from_executor(view)


@pytest.mark.parametrize("kind", [SimGRAGRetriever, CypherRetriever])
def test_a_condition_finds_few_facts_of_a_relation_that_is_too_large(tmp_path: Path, kind: Any) -> None:
    with ladybug.Database(tmp_path / "g.lbdb") as database, ladybug.Connection(database) as connection:
        for query in (
            "CREATE NODE TABLE N(id STRING PRIMARY KEY)",
            "CREATE REL TABLE plays_for(FROM N TO N, goals INT64, since DATE)",
            "CREATE (:N {id: 'Rovers'})",
            "UNWIND range(1, 3000) AS i CREATE (:N {id: 'Player ' + CAST(i AS STRING)})",
            "MATCH (club:N {id: 'Rovers'}), (n:N) WHERE n.id <> 'Rovers' CREATE (n)-[:plays_for "
            "{goals: CAST(substring(n.id, 8, 5) AS INT64), since: date('2001-05-31')}]->(club)",
        ):
            connection.execute(query)
    with LadybugExecutor(tmp_path / "g.lbdb", key="id") as executor:
        index = GraphIndex.connect(executor, default_embeddings(), max_facts=500)
        fact = Unknown("player"), "plays_for", "Rovers"
        goals = FactAttribute(0, "goals", "goals")
        pattern = Pattern.of(
            fact, attributes=[goals], conditions=[Condition("goals", ">", 2998)], target="player", operation="list"
        )
        writer = PatternCypherWriter(index, RunnableLambda(lambda _: pattern))
        if kind is CypherRetriever:
            (found,) = CypherRetriever(index=index, writer=writer, on_refusal="raise").invoke("Who plays for Rovers?")
        else:
            (found,) = SimGRAGRetriever.from_index(index, on_refusal="raise").invoke("?", pattern=pattern)
        assert found.metadata["answers"] == ["Player 2999", "Player 3000"]
        few = replace(pattern, conditions=(Condition("goals", ">", 100),))
        with pytest.raises(SearchBudgetError, match="More facts are around"):
            SimGRAGRetriever.from_index(index, on_refusal="raise").invoke("?", pattern=few)
