"""why_not, by the retriever with the shortest story; each method's own obstacles are tested in its room."""

import pytest

from kg_retrievers import GraphIndex, KnowledgeGraph, NeighborhoodRetriever, default_embeddings, why_not
from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.explanation.why_not import lift

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
