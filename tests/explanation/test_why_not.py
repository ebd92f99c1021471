"""why_not, by the retriever with the shortest story; each method's own obstacles are tested in its room."""

import json

import pytest

from kg_retrievers import (
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    NeighborhoodRetriever,
    PCSTRetriever,
    SimGRAGRetriever,
    default_embeddings,
    why_not,
)
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError
from kg_retrievers.explanation.why_not import MISREAD, lift

FACTS = [
    ("Her", "directed_by", "Spike Jonze"),
    ("Adaptation", "directed_by", "Spike Jonze"),
    ("Adaptation", "starring", "Meryl Streep"),
    ("Alien", "directed_by", "Ridley Scott"),
]


@pytest.fixture(scope="module")
def index() -> GraphIndex:
    return GraphIndex.build(KnowledgeGraph.from_triples(FACTS), default_embeddings())


def test_it_says_that_an_entity_is_found(index):
    found = why_not(NeighborhoodRetriever.from_index(index), "Who directed Her?", "Spike Jonze")
    assert (found.found, found.obstacles, found.lifted) == (True, (), None)


def test_obstacles_come_one_after_the_other_and_are_lifted_together(index):
    retriever = NeighborhoodRetriever.from_index(index, max_triples=1)
    result = why_not(retriever, "Who directed Her?", "Meryl Streep")
    assert [obstacle.why for obstacle in result.obstacles] == ["too_far", "pruned"]
    assert result.lifted
    lifted, inputs = lift(retriever, {}, result.lift)
    facts = [fact for document in lifted.invoke("Who directed Her?", **inputs) for fact in document.metadata["triples"]]
    assert ["Adaptation", "starring", "Meryl Streep"] in facts


def test_what_nothing_joins_is_not_linked(index):
    result = why_not(NeighborhoodRetriever.from_index(index), "Who directed Her?", "Ridley Scott")
    assert [obstacle.why for obstacle in result.obstacles] == ["not_linked"]
    assert result.lifted


def test_a_question_without_entity_is_lifted_by_naming_one(index):
    result = why_not(NeighborhoodRetriever.from_index(index), "Who directed the film with the robot?", "Spike Jonze")
    assert result.obstacles[0].why == "not_linked"
    assert result.lifted


def test_an_unknown_entity_is_an_error_with_suggestions(index):
    with pytest.raises(EntityLinkingError, match="Spike Jonze"):
        why_not(NeighborhoodRetriever.from_index(index), "Who directed Her?", "Spike Jonse")


@pytest.mark.parametrize("wrong", [None, ["Spike Jonze"], 7])
def test_what_is_no_name_of_one_entity_is_refused(index, wrong):
    with pytest.raises(InvalidArgumentError, match="why_not: wanted the key or name of one entity, but got"):
        why_not(NeighborhoodRetriever.from_index(index), "Who directed Her?", wrong)


def test_it_says_so_in_words_data_and_a_picture(index):
    retriever = NeighborhoodRetriever.from_index(index, max_triples=1)
    result = why_not(retriever, "Who directed Her?", "Meryl Streep")
    assert result.text.split("\n") == [
        "'Meryl Streep' is not found by the NeighborhoodRetriever for the question: Who directed Her?",
        "1. too far (at collect_facts): 'Meryl Streep' is 3 facts away from 'Her'; max_hops is 1.",
        "   To change it: the field max_hops=3",
        "2. pruned (at collect_facts): A Document holds 1 facts (max_triples), the nearest first; the first with "
        "'Meryl Streep' is number 3 of 3.",
        "   To change it: the field max_triples=3",
        "With all of this changed, it is found: it was tried.",
    ]
    assert str(result) == result.text
    data = result.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert [one["why"] for one in data["obstacles"]] == ["too_far", "pruned"]
    assert data["lift"] == {"fields": {"max_hops": 3, "max_triples": 3}, "inputs": {}, "facts": []}
    drawing = result.draw()
    assert [tuple(fact) for fact in drawing.triples] == FACTS[:3]
    assert (drawing.answers, drawing.known) == ({"Meryl Streep"}, {"Her"})
    assert "Meryl Streep" in result._repr_html_()


def test_a_picture_says_which_fact_is_lacking():
    graph = KnowledgeGraph.from_triples(FACTS, types={"Western": ["genre"]})
    retriever = NeighborhoodRetriever.from_index(GraphIndex.build(graph, default_embeddings()))
    result = why_not(retriever, "Who directed Her?", "Western")
    assert (result.obstacles[0].why, result.lifted) == ("no_such_edge", True)
    (fact,) = result.draw().triples
    assert (fact.head, fact.tail) == ("Her", "Western")
    assert fact.relation == "lacking: directed_by"
    assert "add the fact Her -> directed_by -> Western" in result.text


def test_what_is_found_is_said_to_be_found(index):
    result = why_not(NeighborhoodRetriever.from_index(index), "Who directed Her?", "Spike Jonze")
    assert result.text == "'Spike Jonze' is found by the NeighborhoodRetriever: it is in the facts of Document 1."
    assert result.to_dict()["place"] == {"rank": 1, "role": "evidence"}
    assert [tuple(fact) for fact in result.draw().triples] == FACTS[:1]


class Silent(NeighborhoodRetriever):
    """Names nothing that keeps an entity out."""

    def obstacle(self, entity, state):
        return None


def test_where_nothing_can_be_said_it_says_so(index):
    result = why_not(Silent.from_index(index), "Who directed Her?", "Meryl Streep")
    assert (result.found, result.obstacles, result.lifted) == (False, (), None)
    assert result.text.endswith("Nothing can be said of why: the method names nothing that keeps it out.")


def test_an_entity_that_is_evidence_alone_is_found(index):
    retriever = PCSTRetriever.from_index(index, scope="graph", lone_entities=True, prizes="paper", edge_cost=9.0)
    (document,) = retriever.invoke("Her")
    assert document.metadata["triples"] == []
    assert why_not(retriever, "Her", "Her").found


def test_where_a_fact_is_lacking_it_says_what_joins_them_in_the_graph():
    facts = [
        ("Kingsway", "served_by", "Coast Line"),
        ("Elm", "served_by", "Hill Line"),
        ("Coast Line", "operated_by", "Meridian Rail"),
        ("Hill Line", "operated_by", "Elm Rail"),
    ]
    index = GraphIndex.build(KnowledgeGraph.from_triples(facts), HashedEmbeddings())
    question = "What line serves the fare of Kingsway?"
    result = why_not(SimGRAGRetriever.from_index(index, min_confidence=0), question, "Meridian Rail")
    assert [tuple(fact) for fact in result.lift.facts] == [("Kingsway", "served_by", "Meridian Rail")]
    assert [tuple(fact) for fact in result.present] == [facts[0], facts[2]]
    assert result.text.endswith(
        "What joins them in the graph: Kingsway -> served by -> Coast Line, Coast Line -> operated by -> Meridian "
        f"Rail. {MISREAD}"
    )
    assert result.to_dict()["present"] == [list(facts[0]), list(facts[2])]
