import threading

import pytest

from kg_retrievers import GraphIndex, KnowledgeGraph, LadybugExecutor, default_embeddings
from kg_retrievers.datasets import Question
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.methods import registry
from kg_retrievers.questions.self_questions.generate import generate_questions
from kg_retrievers.serving.service import GraphService
from kg_retrievers.testing import ScriptedChatModel


def test_where_facts_are_from_is_told():
    graph = KnowledgeGraph.from_triples([("Her", "has_genre", "Drama")])
    graph = graph.with_changes(added=[("Her", "directed_by", "Jonze")], source="films.csv")
    service = GraphService(GraphIndex.build(graph, default_embeddings()))
    assert [one.sources for one in service.neighbors("Her").facts] == [None, ["films.csv"]]
    assert [(one.name, one.count) for one in service.schema().sources] == [("films.csv", 1)]


def test_the_tools_ask_the_default_method_with_what_it_was_given(index):
    service = GraphService(index, llm=ScriptedChatModel(replies=[]), default_method="kaping")
    toolkit = service.toolkit()
    assert (toolkit.retriever, toolkit.llm) == (service.retriever("kaping"), service.llm)
    assert toolkit.executor is None


def test_agents_run_queries_only_if_the_service_says_so(index):
    with LadybugExecutor.from_graph(index.graph) as executor:
        connected = GraphIndex.connect(executor, default_embeddings())
        for runs_queries in (False, True):
            toolkit = GraphService(connected, runs_queries=runs_queries).toolkit()
            assert ("run_query" in [tool.name for tool in toolkit.get_tools()]) is runs_queries
            if not runs_queries:
                with pytest.raises(InvalidArgumentError, match="there is no database to run a query in"):
                    toolkit.run_query("MATCH (n) RETURN n")
        assert "run_query" not in [tool.name for tool in GraphService(connected).toolkit().get_tools()]


def test_the_schema_counts_relations_and_types(service, index):
    schema = service.schema()
    assert (schema.entities, schema.facts) == (len(index.graph.entities), len(index.graph))
    assert schema.relation_count == len(schema.relations) == len(index.graph.relations)
    starring = next(one for one in schema.relations if one.relation == "starring")
    assert (starring.head_types, starring.tail_types) == (["film"], ["person"])
    assert schema.methods == list(service.methods)


def test_neighbors_are_in_both_directions_and_of_each_relation_first(service, index):
    found = service.neighbors("Spike Jonze")
    assert {one.triple for one in found.facts} == {
        *index.graph.triples(head="Spike Jonze"),
        *index.graph.triples(tail="Spike Jonze"),
    }
    relations = [one.triple[1] for one in found.facts]
    assert len(set(relations[:4])) == 4
    counts = {one.relation: (one.outgoing, one.incoming) for one in found.relations}
    assert counts == {"directed_by": (0, 2), "written_by": (0, 1), "born_in": (1, 0), "married_to": (0, 1)}
    assert {one.other for one in found.facts if one.triple[1] == "directed_by"} == {"Her", "Being John Malkovich"}


def test_a_loop_is_one_fact():
    graph = KnowledgeGraph.from_triples([("Ann", "knows", "Ann"), ("Bob", "knows", "Ann")])
    found = GraphService(GraphIndex.build(graph, default_embeddings())).neighbors("Ann")
    assert (found.total, len(found.facts)) == (2, 2)


def test_an_entity_whose_name_holds_marks_is_found_as_it_is_shown():
    graph = KnowledgeGraph.from_triples([("Dune [1984]", "directed_by", "David Lynch")])
    service = GraphService(GraphIndex.build(graph, default_embeddings()))
    shown = service.neighbors("Dune [1984]").entity.key
    assert shown == "Dune (1984)"
    assert service.neighbors(shown).facts == service.neighbors("Dune [1984]").facts


def test_each_retriever_is_built_once_whichever_thread_asks(index, monkeypatch):
    service, built, start = GraphService(index), [], threading.Barrier(4)

    def get():
        start.wait()
        built.append(service.retriever("kaping"))

    threads = [threading.Thread(target=get) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(one) for one in built}) == 1


def test_methods_are_those_that_can_be_built(service):
    trained = {method.name for method in registry.METHODS if method.needs == ("model",)}
    assert trained
    assert service.methods[0] == registry.DEFAULT.name
    assert not trained & set(service.methods)
    with pytest.raises(InvalidArgumentError, match=f"{min(trained)} is not offered here; offered are kg, simgrag"):
        service.retriever(min(trained))


def test_examples_go_to_the_methods_that_can_use_them(index):
    examples = generate_questions(index.graph, 40)
    service = GraphService(index, examples=examples)
    assert service.toolkit().ask("Who directed Her?").answer == "Spike Jonze"
    plain = [Question(one.text) for one in examples]
    assert GraphService(index, examples=plain).toolkit().ask("Who directed Her?").answer == "Spike Jonze"


def test_example_questions_are_varied_answered_and_the_same_each_time(service, index):
    questions = service.examples()
    assert len(set(questions)) == 6
    assert questions == GraphService(index).examples()
    assert all(service.toolkit().ask(question).answers for question in questions)
    assert all(question[0].isupper() and " as " not in question for question in questions)


def test_example_questions_call_no_language_model(index):
    llm = ScriptedChatModel(replies=[])
    assert len(GraphService(index, llm=llm).examples()) == 6


def test_a_graph_without_facts_has_no_example_questions():
    service = GraphService(GraphIndex.build(KnowledgeGraph.from_triples([]), default_embeddings()))
    assert service.examples() == []
