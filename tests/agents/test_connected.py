"""Workflows over connected graphs: checkpoints, edits by a person, and routers."""

from __future__ import annotations

import pytest
from graph_reader import GraphReader
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from kg_retrievers import (
    GraphIndex,
    HashedEmbeddings,
    PCSTRetriever,
    SimGRAGRetriever,
    SubgraphRAGRetriever,
    train_triple_scorer,
)
from kg_retrievers.agents import build_router, build_workflow
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError
from kg_retrievers.sample import load_graph, load_questions

EMBEDDINGS = HashedEmbeddings()
INDEX = GraphIndex.connect(GraphReader(load_graph()), EMBEDDINGS)
THREAD: RunnableConfig = {"configurable": {"thread_id": "1"}}


def test_a_person_edits_entities_of_a_connected_graph() -> None:
    workflow = build_workflow(
        PCSTRetriever.from_index(INDEX), checkpointer=InMemorySaver(), interrupt_before=["solve_pcst"]
    )
    workflow.invoke({"question": "Who directed Alien?"}, THREAD)
    with pytest.raises(EntityLinkingError, match="Xyzzy"):
        workflow.update_state(THREAD, {"seed_entities": ["Xyzzy"]})
    with pytest.raises(InvalidArgumentError, match="ranked_entities"):
        workflow.update_state(THREAD, {"ranked_entities": [["Xyzzy", 1.0]]})
    workflow.update_state(THREAD, {"seed_entities": ["Inception"], "ranked_entities": [["Inception", 1.0]]})
    found = workflow.invoke(None, THREAD)["documents"][0].metadata["triples"]
    assert any("Inception" in triple for triple in found)


def test_a_person_edits_facts_of_a_connected_graph() -> None:
    examples = [question for question in load_questions() if question.answers][:20]
    trained = GraphIndex.build(load_graph(), EMBEDDINGS)
    model = train_triple_scorer(trained, examples, num_examples=100, hidden=16).model
    retriever = SubgraphRAGRetriever.from_index(INDEX, model=model)
    fact = next(load_graph().triples("Inception"))
    rows = [[*fact, 0.5]]
    (document,) = retriever.invoke("Who made Inception?", scored_triples={"triples": rows, "truncated": False})
    assert document.metadata["triples"] == [list(fact)]
    strange = {"triples": [["Inception", fact[1], "Alien", 0.5]], "truncated": False}
    with pytest.raises(InvalidArgumentError, match="triples of the graph"):
        retriever.invoke("Who made Inception?", scored_triples=strange)


def test_routers_choose_over_a_connected_graph() -> None:
    retrievers = {"pcst": PCSTRetriever.from_index(INDEX), "simgrag": SimGRAGRetriever.from_index(INDEX)}
    router = build_router(retrievers)
    output = router.invoke({"question": "How many films did Christopher Nolan direct?"})
    assert (output["retriever"], output["value"]) == ("simgrag", 4)
    seeds = {"question": "Which films are there?", "seed_entities": ["Christopher Nolan"]}
    assert router.invoke(seeds)["documents"]
