import threading

import pytest

from kg_retrievers import GraphIndex, KnowledgeGraph, default_embeddings
from kg_retrievers.datasets import Question
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError
from kg_retrievers.methods import registry
from kg_retrievers.questions.self_questions.generate import generate_questions
from kg_retrievers.serving.results import Table
from kg_retrievers.serving.service import GraphService
from kg_retrievers.testing import ScriptedChatModel


def test_an_answer_names_its_facts_and_how_sure_it_is(service):
    answer = service.ask("Who directed Her?")
    assert answer.answer == "Spike Jonze"
    assert [(one.key, one.label) for one in answer.answers] == [("Spike Jonze", "Spike Jonze")]
    assert [(one.number, one.triple) for one in answer.citations] == [(1, ("Her", "directed_by", "Spike Jonze"))]
    assert answer.citations[0].text == "Her -> directed by -> Spike Jonze"
    assert answer.supported is True
    assert 0.9 < answer.confidence <= 1
    assert answer.refusal is None
    assert (answer.method, answer.cost.llm_calls, answer.left_out) == ("simgrag", 0, 0)
    assert answer.seconds > 0


def test_what_an_operation_gives_is_a_value(service):
    answer = service.ask("How many films did Spike Jonze direct?")
    assert (answer.value, answer.answer) == (2, "2")
    assert [(one.key, one.label) for one in answer.answers] == [(None, "2")]
    assert {one.triple[0] for one in answer.citations} == {"Her", "Being John Malkovich"}


def test_a_question_that_is_not_understood_is_refused_with_a_next_step(service):
    answer = service.ask("What is the colour of the moon?")
    assert answer.answer == "The question was not understood."
    assert "No entity of the graph was found" in answer.refusal.reason
    assert answer.refusal.next_step
    assert (answer.answers, answer.citations, answer.supported) == ([], [], None)


def test_an_answer_that_is_too_uncertain_is_refused_with_its_confidence(service):
    sure = service.ask("Who directed Her?").confidence
    answer = service.ask("Who directed Her?", min_confidence=1.0)
    assert answer.refusal is not None
    assert answer.confidence == pytest.approx(sure)


def test_a_language_model_writes_the_answer_and_its_calls_are_counted(index):
    reply = '{"explanation": "Fact 1 says so.", "answers": ["spike jonze"], "citations": [1, 99]}'
    llm = ScriptedChatModel(replies=[reply])
    answer = GraphService(index, llm=llm, default_method="kaping").ask("Who directed Her?")
    assert (answer.answers[0].key, answer.answers[0].label) == ("Spike Jonze", "spike jonze")
    assert answer.explanation == "Fact 1 says so."
    assert [one.number for one in answer.citations] == [1]
    assert answer.cost.llm_calls == 1
    assert answer.cost.input_tokens > 0


def test_seed_entities_are_named_by_key_label_or_alias(service):
    asked = service.search_evidence("Who directed it?", method="neighborhood", seed_entities=["Her"])
    assert {fact.triple[0] for one in asked.evidence for fact in one.facts} >= {"Her"}
    refusal = service.ask("What did he direct?", seed_entities=["Spike Jonz"]).refusal
    assert refusal.reason.endswith("Did you mean: 'Spike Jonze'?")


def test_evidence_is_found_without_an_answer(service):
    found = service.search_evidence("Who directed Her?", method="kaping", k=3)
    assert [one.rank for one in found.evidence] == [1, 2, 3]
    assert found.evidence[0].facts[0].triple == ("Her", "directed_by", "Spike Jonze")
    assert found.method == "kaping"
    assert service.search_evidence("What is the colour of the moon?").refusal is not None
    table = service.search_evidence("What is in the graph?").evidence[0].value
    assert isinstance(table, Table)
    assert table.columns in (["kind", "entities"], ["relation", "facts"])
    assert table.rows
    assert service.ask("What is in the graph?").value == table
    assert service.explain("What is in the graph?").lines


def test_where_facts_are_from_is_told():
    graph = KnowledgeGraph.from_triples([("Her", "has_genre", "Drama")])
    graph = graph.with_changes(added=[("Her", "directed_by", "Jonze")], source="films.csv")
    service = GraphService(GraphIndex.build(graph, default_embeddings()))
    assert service.ask("Who directed Her?").citations[0].sources == ["films.csv"]
    assert service.search_evidence("Who directed Her?").evidence[0].facts[0].sources == ["films.csv"]
    assert service.neighbors("Her", relation="directed_by").facts[0].sources == ["films.csv"]
    assert [(one.name, one.count) for one in service.schema().sources] == [("films.csv", 1)]


def test_what_is_found_is_explained_from_the_question_to_the_answers(service):
    explained = service.explain("Who directed Her?")
    assert explained.lines[0] == "Question: Who directed Her?"
    assert explained.lines[-2:] == ["Answers", "  Spike Jonze"]
    assert (explained.entity, explained.found, explained.change) == (None, None, None)
    assert service.explain("What is the colour of the moon?").refusal.reason.startswith("No entity of the graph")


def test_an_entity_that_is_missing_is_explained_by_what_keeps_it_out(service):
    explained = service.explain("Who directed Her?", entity="Amy Adams")
    assert (explained.entity.key, explained.found) == ("Amy Adams", False)
    assert explained.change is not None
    assert explained.change.startswith("invoke(..., k=")
    assert service.explain("Who directed Her?", entity="Spike Jonze").found is True
    with pytest.raises(EntityLinkingError, match="Did you mean: 'Spike Jonze'"):
        service.explain("Who directed Her?", entity="Spike Jonz")


def test_an_explanation_counts_the_calls_of_the_model(index):
    reply = '{"triples": [["Her", "directed by", "UNKNOWN person 1"]]}'
    llm = ScriptedChatModel(replies=[reply] * 9)
    explained = GraphService(index, llm=llm).explain("What is the gist of the one named Her?", entity="Amy Adams")
    assert explained.cost.llm_calls == len(llm.prompts) > 0


def test_the_schema_counts_relations_and_types(service, index):
    schema = service.schema(max_tokens=8_000)
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


def test_neighbors_of_one_relation_and_up_to_a_limit(service):
    found = service.neighbors("Spike Jonze", relation="directed by", limit=1)
    assert [one.triple[1] for one in found.facts] == ["directed_by"]
    assert (found.total, found.left_out) == (2, 1)
    with pytest.raises(InvalidArgumentError, match="has no fact of a relation 'directed'; did you mean 'directed_by'"):
        service.neighbors("Spike Jonze", relation="directed")


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
    assert type(service.retriever("simgrag+kaping")).__name__ == registry.UNION.class_name
    with pytest.raises(InvalidArgumentError, match=f"{min(trained)} is not offered here; offered are simgrag"):
        service.ask("Who directed Her?", method=min(trained))


def test_examples_go_to_the_methods_that_can_use_them(index):
    examples = generate_questions(index.graph, 40)
    service = GraphService(index, examples=examples)
    assert service.ask("Who directed Her?").answer == "Spike Jonze"
    plain = [Question(one.text) for one in examples]
    assert GraphService(index, examples=plain).ask("Who directed Her?").answer == "Spike Jonze"


def test_example_questions_are_varied_answered_and_the_same_each_time(service, index):
    questions = service.examples()
    assert len(set(questions)) == 6
    assert questions == GraphService(index).examples()
    assert all(service.ask(question).answers for question in questions)


def test_example_questions_call_no_language_model(index):
    llm = ScriptedChatModel(replies=[])
    assert len(GraphService(index, llm=llm).examples()) == 6


def test_a_graph_without_facts_has_no_example_questions():
    service = GraphService(GraphIndex.build(KnowledgeGraph.from_triples([]), default_embeddings()))
    assert service.examples() == []
