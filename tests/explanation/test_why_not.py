"""why_not: by examples, and for every method by brute force over random graphs."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from built_methods import built
from explanation.methods import each_method
from graph_reader import GraphReader
from langchain_core.language_models import FakeListChatModel

from kg_retrievers import (
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    NeighborhoodRetriever,
    PCSTRetriever,
    SimGRAGRetriever,
    TripleSimilarityRetriever,
    default_embeddings,
    why_not,
)
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError, KGRetrieversError
from kg_retrievers.explanation import WhyNot
from kg_retrievers.explanation.why_not import LIMITS, Change, possible_changes, with_change
from kg_retrievers.graph.verbalize import lone_entities_of
from kg_retrievers.methods.registry import METHODS, Method

HER = "Who directed Her?"
FACTS = [
    ("Her", "directed_by", "Spike Jonze"),
    ("Adaptation", "directed_by", "Spike Jonze"),
    ("Adaptation", "starring", "Meryl Streep"),
    ("Alien", "directed_by", "Ridley Scott"),
]


@pytest.fixture(scope="module")
def index() -> GraphIndex:
    return GraphIndex.build(KnowledgeGraph.from_triples(FACTS), default_embeddings())


@pytest.fixture
def near(index: GraphIndex) -> NeighborhoodRetriever:
    return NeighborhoodRetriever.from_index(index)


def is_found(retriever: BaseKGRetriever, question: str, entity: str, inputs: dict[str, Any]) -> bool:
    """Return whether an entity is found: as an answer if the method proposes answers, else in a fact."""
    found = retriever.invoke(question, **inputs)
    facts_count = not retriever.proposes_answers or any(one.metadata["value"] is not None for one in found)
    for document in found:
        in_facts = any(entity in (head, tail) for head, _, tail in document.metadata["triples"])
        if entity in document.metadata["answers"]:
            return True
        if facts_count and (in_facts or entity in lone_entities_of(document)):
            return True
    return False


def brings_in(retriever: BaseKGRetriever, question: str, entity: str, inputs: dict[str, Any], change: Change) -> bool:
    try:
        changed, given = with_change(retriever, inputs, change)
        return is_found(changed, question, entity, given)
    except KGRetrieversError:  # a value that does not fit
        return False


def test_what_is_found_is_said_to_be_found(near: NeighborhoodRetriever) -> None:
    found = why_not(near, HER, "Spike Jonze")
    assert (found.found, found.change, found.tried) == (True, None, ())
    assert found.text == "'Spike Jonze' is found by the NeighborhoodRetriever: it is in the facts of Document 1."
    assert found.to_dict()["place"] == {"rank": 1, "role": "evidence"}


def test_it_answers_in_words_data_and_a_picture(near: NeighborhoodRetriever) -> None:
    missed = why_not(near, HER, "Meryl Streep")
    assert missed.text.split("\n") == [
        "'Meryl Streep' is not found by the NeighborhoodRetriever for the question: Who directed Her?",
        "The question names 'Her'. A shortest chain of facts that joins them: Her -> directed by -> Spike Jonze; "
        "Adaptation -> directed by -> Spike Jonze; Adaptation -> starring -> Meryl Streep.",
        "It is kept out since the entity is farther away (max_hops).",
        "To change it: the field max_hops=3",
        "With this changed, it is found: it is in the facts of Document 1.",
    ]
    assert "To change it: --field max_hops=3" in missed.shell_text.split("\n")
    assert str(missed) == missed.text
    data = missed.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["lift"] == {"fields": {"max_hops": 3}, "inputs": {}}
    assert [one["value"] for one in data["tried"] if one["name"] == "max_hops"] == [2, 3]
    drawing = missed.draw()
    assert [tuple(fact) for fact in drawing.triples] == FACTS[:3]
    assert (drawing.answers, drawing.known) == ({"Meryl Streep"}, {"Her"})
    assert "Meryl Streep" in missed._repr_html_()


def test_one_rank_more_is_enough(index: GraphIndex) -> None:
    retriever = TripleSimilarityRetriever.from_index(index, k=1, max_hops=3)
    missed = why_not(retriever, HER, "Meryl Streep")
    assert missed.inputs == {"k": missed.lifted_place.rank if missed.lifted_place else 0}
    assert missed.shell_text.count(f"--k {missed.inputs['k']}") == 1
    assert not is_found(retriever, HER, "Meryl Streep", {"k": missed.inputs["k"] - 1})


def test_a_refusal_is_told_and_lifted_to_the_confidence_that_there_is(index: GraphIndex) -> None:
    retriever = SimGRAGRetriever.from_index(index, min_confidence=0.9999)
    missed = why_not(retriever, HER, "Spike Jonze")
    assert "confiden" in missed.refusal
    assert 0 < missed.inputs["min_confidence"] < 0.9999
    assert missed.lifted_place is not None
    assert missed.lifted_place.role == "answer"


def test_a_question_that_names_nothing_gets_a_question_entity(near: NeighborhoodRetriever) -> None:
    missed = why_not(near, "Who directed the film with the robot?", "Spike Jonze")
    assert "No entity of the graph was found" in missed.refusal
    assert missed.inputs == {"seed_entities": ["Her"]}
    assert missed.shell_text.count("Her") == 1


def test_what_nothing_joins_takes_another_question_entity(near: NeighborhoodRetriever) -> None:
    missed = why_not(near, HER, "Ridley Scott")
    assert missed.inputs == {"seed_entities": ["Alien"]}
    assert "No chain of facts is known that joins them." in missed.text


def test_a_direction_that_is_respected_is_lifted() -> None:
    index = GraphIndex.build(KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")]), default_embeddings())
    retriever = SimGRAGRetriever.from_index(index, direction="respect")
    pattern = {"triples": [[{"unknown": "x"}, "directed_by", {"known": "Her"}]], "target": "x"}
    assert why_not(retriever, HER, "Spike Jonze", pattern=pattern).fields == {"direction": "ignore"}


def test_if_nothing_helps_it_says_what_was_tried() -> None:
    graph = KnowledgeGraph.from_triples(FACTS, types={"Western": ["genre"]})
    alone = TripleSimilarityRetriever.from_index(GraphIndex.build(graph, default_embeddings()))
    missed = why_not(alone, HER, "Western")
    assert (missed.found, missed.change) == (False, None)
    assert (
        "No single change that was tried brings it in: min_confidence, k, max_hops, max_nodes, seed_entities."
        in missed.text
    )
    assert "rephrase it" in missed.text


def test_it_ends_in_time(near: NeighborhoodRetriever) -> None:
    missed = why_not(near, HER, "Meryl Streep", max_seconds=0)
    assert (missed.timed_out, missed.change, missed.tried) == (True, None, ())
    assert "before the time was up" in missed.text


def test_a_language_model_is_asked_once(index: GraphIndex) -> None:
    class Counting(FakeListChatModel):
        calls: int = 0

        def _call(self, *args: Any, **kwargs: Any) -> str:
            self.calls += 1
            return super()._call(*args, **kwargs)

    model = Counting(responses=['{"triples": [["Her", "directed_by", "UNKNOWN x"]], "target": "UNKNOWN x"}'])
    retriever = SimGRAGRetriever.from_index(index, llm=model, asks_model="always", on_refusal="empty")
    alone = Counting(responses=model.responses)
    SimGRAGRetriever.from_index(index, llm=alone, asks_model="always").invoke(HER)
    assert alone.calls > 0
    missed = why_not(retriever, HER, "Meryl Streep")
    assert len(missed.tried) > 1
    assert model.calls == alone.calls


def test_an_entity_that_is_evidence_alone_is_found(index: GraphIndex) -> None:
    retriever = PCSTRetriever.from_index(index, scope="graph", lone_entities=True, prizes="paper", edge_cost=9.0)
    (document,) = retriever.invoke("Her")
    assert document.metadata["triples"] == []
    assert why_not(retriever, "Her", "Her").found


def test_a_graph_in_a_server_is_asked_as_well(index: GraphIndex) -> None:
    connected = GraphIndex.connect(GraphReader(index.graph), default_embeddings())
    missed = why_not(NeighborhoodRetriever.from_index(connected), HER, "Adaptation")
    assert missed.fields == {"max_hops": 2}


def test_an_unknown_entity_is_an_error_with_suggestions(near: NeighborhoodRetriever) -> None:
    with pytest.raises(EntityLinkingError, match="Spike Jonze"):
        why_not(near, HER, "Spike Jonse")


@pytest.mark.parametrize("wrong", [None, ["Spike Jonze"], 7])
def test_what_is_no_name_of_one_entity_is_refused(near: NeighborhoodRetriever, wrong: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="why_not: wanted the key or name of one entity, but got"):
        why_not(near, HER, wrong)


def test_every_limit_is_a_field_or_an_argument_of_some_method(index: GraphIndex) -> None:
    fields = {name for method in METHODS for name in method.load_retriever().model_fields}
    assert {limit.name for limit in LIMITS} <= fields


RELATIONS = ["directed_by", "written_by", "starring", "has_genre", "born_in", "sequel_of"]
QUESTIONS = ["Who directed {}?", "What is the genre of {}?", "Where was the writer of {} born?"]
SYLLABLES = ["ba", "do", "fi", "gu", "ke", "lo", "mi", "nu", "po", "ra", "se", "ti", "vo", "wa", "xe", "zu"]

#: Tight limits, so that something is kept out.
TIGHT = {"k": 1, "max_hops": 1, "max_triples": 2, "max_nodes": 4, "max_paths": 2, "max_candidates": 2, "k_nodes": 1}


def random_index(rng: np.random.Generator) -> GraphIndex:
    """Return the index of a graph of two parts."""
    keys = ["".join(rng.choice(SYLLABLES, 4)).capitalize() for _ in range(20)]
    parts = [keys[:14], keys[14:]]
    ends = [(part[int(rng.integers(max(0, at - 3), at))], part[at]) for part in parts for at in range(1, len(part))]
    ends += [tuple(rng.choice(part, 2)) for part in parts for _ in range(len(part) // 2)]
    facts = [(str(a), str(rng.choice(RELATIONS)), str(b)) for a, b in ends if a != b]
    return GraphIndex.build(KnowledgeGraph.from_triples(list(dict.fromkeys(facts))), HashedEmbeddings())


def check(retriever: BaseKGRetriever, question: str, entity: str) -> WhyNot:
    """Check what `why_not` says by running every change."""
    missed = why_not(retriever, question, entity, max_seconds=60)
    assert missed.found == is_found(retriever, question, entity, {})
    asked = (retriever, question, entity, {})
    for change in missed.tried:
        assert (change is missed.change) == brings_in(*asked, change), (question, entity, change)
    if not missed.found and not missed.change:
        every = possible_changes(retriever, {})
        assert not any(brings_in(*asked, change) for change in every), (question, entity)
    return missed


def check_method(method: Method, graphs: int, entities: int) -> None:
    """Check a method over random graphs; some entities must be kept out, and some be brought in."""
    lifted = 0
    for seed in range(graphs):
        rng = np.random.default_rng(seed)
        index = random_index(rng)
        fields = {name: value for name, value in TIGHT.items() if name in method.load_retriever().model_fields}
        retriever = built(method, index, **fields)
        keys = [*index.graph.entities]
        asked = keys[int(rng.integers(len(keys)))]
        question = str(rng.choice(QUESTIONS)).format(asked)
        near = sorted({end for fact in index.graph.triples(head=asked) for end in (fact.head, fact.tail)} - {asked})
        for entity in dict.fromkeys([*near[:1], *rng.choice(keys, entities, replace=False).tolist()]):
            missed = check(retriever, question, entity)
            lifted += bool(missed.change)
    assert lifted or graphs == 1


@each_method
def test_every_change_that_is_named_brings_the_entity_in(method: Method) -> None:
    check_method(method, graphs=1, entities=3)


@pytest.mark.heavy
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_change_brings_the_entity_in_over_many_graphs(method: Method) -> None:
    check_method(method, graphs=12, entities=8)
