"""The totals of what a run's answers list, by hand."""

from __future__ import annotations

import pytest

from kg_retrievers import (
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    PCSTRetriever,
    Question,
    evaluate,
    llm_answerer,
    total_grounding,
)
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.testing import ScriptedChatModel

GRAPH = KnowledgeGraph.from_triples([("elephant", "in", "bushes"), ("elephant", "eats", "grass")])
ANSWERS = [
    "Answer: elephant\nNodes:\n- elephant\n- bushes\nEdges:\n- elephant -> in -> bushes",
    "Answer: deer\nNodes:\n- deer\n- bushes\nEdges:\n- deer -> in -> bushes\n- elephant -> eats -> grass",
    "Answer: an elephant",
]


def test_totals() -> None:
    totals = total_grounding(ANSWERS, GRAPH)
    assert (totals.answers, totals.listing, totals.unread) == (3, 2, 0)
    assert (totals.nodes, totals.known_nodes, totals.valid_nodes) == (4, 3, 3 / 4)
    assert (totals.edges, totals.known_edges, totals.valid_edges) == (3, 2, 2 / 3)
    assert (totals.fully_known, totals.fully_valid_graphs) == (1, 1 / 2)


def test_nothing_listed_has_no_shares() -> None:
    totals = total_grounding(ANSWERS[2:], GRAPH)
    assert (totals.valid_nodes, totals.valid_edges, totals.fully_valid_graphs) == (None, None, None)


def test_each_answer_has_its_graph() -> None:
    other = KnowledgeGraph.from_triples([("deer", "in", "bushes")])
    totals = total_grounding(["Nodes: deer", "Nodes: deer"], [GRAPH, other])
    assert (totals.known_nodes, totals.fully_known) == (1, 1)
    with pytest.raises(InvalidArgumentError, match="one for each of 2 answers, but got 1 graphs"):
        total_grounding(["Nodes: deer", "Nodes: deer"], [other])


def test_totals_of_a_run() -> None:
    retriever = PCSTRetriever.from_index(GraphIndex.build(GRAPH, HashedEmbeddings()), prompting="support")
    questions = [Question(f"What is the elephant in? {number}", answers=("bushes",)) for number in range(3)]
    questions.append(Question("Xyzzyplugh?", answerable=False))
    answerer = llm_answerer(retriever.answer_prompt, ScriptedChatModel(replies=ANSWERS))
    report = evaluate(retriever, questions, answerer=answerer)
    assert total_grounding(report, GRAPH) == total_grounding(ANSWERS, GRAPH)
    assert report.metrics["text_hit"] == 0
    assert [record["refused"] for record in report.records] == [False, False, False, True]
