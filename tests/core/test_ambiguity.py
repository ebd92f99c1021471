"""Names that several entities bear."""

from __future__ import annotations

import json

import pytest
from langchain_core.runnables import RunnableLambda

from kg_retrievers import (
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    NeighborhoodRetriever,
    SimGRAGRetriever,
    answer_chain,
    build_workflow,
)
from kg_retrievers.chains import cited_answer_chain
from kg_retrievers.core.documents import tell_ambiguous_names
from kg_retrievers.graph import Known, Pattern, Unknown
from kg_retrievers.testing import ScriptedChatModel

FACTS = [
    ("d1", "directed_by", "David Lynch"),
    ("d2", "directed_by", "Denis Villeneuve"),
    ("d1", "release_year", "1984"),
    ("d2", "release_year", "2021"),
    ("Her", "directed_by", "Spike Jonze"),
]
GRAPH = KnowledgeGraph.from_triples(FACTS, labels={"d1": "Dune", "d2": "Dune"})
INDEX = GraphIndex.build(GRAPH, HashedEmbeddings())
QUESTION = "Who directed Dune?"
DIRECTOR = Pattern.of(("Dune", "directed_by", Unknown("x")), target="x")
APART = (
    "'Dune' is the name of 2 entities: Dune (d1, directed by: David Lynch) and "
    "Dune (d2, directed by: Denis Villeneuve)."
)


@pytest.fixture(scope="module")
def retriever() -> SimGRAGRetriever:
    return SimGRAGRetriever.from_index(INDEX, pattern_generator=RunnableLambda(lambda _: DIRECTOR))


def test_a_pattern_that_several_entities_fit(retriever: SimGRAGRetriever) -> None:
    documents = retriever.invoke(QUESTION, pattern=DIRECTOR, k=2)
    assert [document.metadata["answers"] for document in documents] == [["David Lynch"], ["Denis Villeneuve"]]
    for document in documents:
        (name,) = document.metadata["details"]["ambiguous"]
        assert name["name"] == "Dune"
        assert [(one["key"], one["text"]) for one in name["entities"]] == [
            ("d1", "directed by: David Lynch"),
            ("d2", "directed by: Denis Villeneuve"),
        ]
        assert json.loads(json.dumps(name)) == name
    assert tell_ambiguous_names(documents) == APART
    assert tell_ambiguous_names(documents[1:]) == f"{APART} The evidence is about d2."


def test_nothing_is_told_where_the_entity_is_known(retriever: SimGRAGRetriever) -> None:
    pinned = Pattern.of((Known("Dune", entity="d1"), "directed_by", Unknown("x")), target="x")
    for documents in (
        retriever.invoke(QUESTION, pattern=pinned),
        retriever.invoke(QUESTION, pattern=DIRECTOR, seed_entities=["d2"]),
        retriever.invoke("Who directed Her?", pattern=Pattern.of(("Her", "directed_by", Unknown("x")), target="x")),
        NeighborhoodRetriever.from_index(INDEX).invoke(QUESTION, seed_entities=["d1"]),
    ):
        assert "ambiguous" not in documents[0].metadata["details"]
        assert tell_ambiguous_names(documents) == ""


def test_chains_workflows_and_tools_tell(retriever: SimGRAGRetriever) -> None:
    told = f"{APART} The evidence is about d1."
    assert answer_chain(retriever).invoke(QUESTION) == f"David Lynch\n({told})"
    assert told in cited_answer_chain(retriever).invoke(QUESTION)["explanation"]
    assert told in build_workflow(retriever).invoke({"question": QUESTION})["explanation"]
    shown = retriever.as_tool().invoke({"query": QUESTION})
    assert shown.endswith(f"<facts>\nDune -> directed by -> David Lynch\n</facts>\n\n{told}")
    model = ScriptedChatModel(replies=["Answer: David Lynch"])
    assert answer_chain(retriever, model).invoke(QUESTION) == "David Lynch"
    assert told in str(model.prompts[0])
