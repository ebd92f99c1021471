"""The preset "paper" beside plain renderings of the paper's equations, and an entity that is evidence by itself."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from kg_retrievers import (
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    PCSTRetriever,
    answer_chain,
    build_workflow,
    cited_answer_chain,
    draw,
)
from kg_retrievers.chains import show_evidence
from kg_retrievers.errors import NoEvidenceError
from kg_retrievers.graph import Triple, verbalize
from kg_retrievers.graph.verbalize import lone_entities_of, readable
from kg_retrievers.testing import RetrieverContract, ScriptedChatModel

EMBEDDINGS = HashedEmbeddings()
NAMES = ["alpha ray", "beta wave", "gamma burst", "delta wing", "epsilon eridani", "zeta function", "eta meson"]
RELATIONS = ["orbits", "emits light", "collides with", "is near", "precedes", "was seen by"]
QUESTION = "what emits gamma light near the beta wing"


@pytest.mark.heavy
class TestPCSTOfThePaper(RetrieverContract):
    retriever_class = PCSTRetriever
    takes_llm = False
    links_entities = False
    exact_k_fields = {"granularity": "triple"}  # noqa: RUF012

    def make_retriever(self, index: GraphIndex, **fields: Any) -> PCSTRetriever:
        return PCSTRetriever.from_index(index, preset="paper", **fields)


def graph_of(seed: int, edges: int = 9) -> KnowledgeGraph:
    """Return a random graph of the names."""
    draws = random.Random(seed)
    pairs = [draws.sample(NAMES, 2) for _ in range(edges)]
    return KnowledgeGraph.from_triples([(head, draws.choice(RELATIONS), tail) for head, tail in pairs])


def cosines(texts: list[str]) -> np.ndarray[Any, Any]:
    """Return the cosine of each text to the question (equation 5)."""
    vectors = np.array(EMBEDDINGS.embed_documents([QUESTION, *map(readable, texts)]))
    return vectors[1:] @ vectors[0]  # type: ignore[no-any-return]


def plain_prizes(names: list[str], k: int) -> dict[str, float]:
    """Return equation 6: k for the first by cosine, k - 1 for the second ..., 0 beyond the k-th."""
    order = sorted(zip(cosines(names).tolist(), names, strict=True), reverse=True)
    return {name: float(max(k - rank, 0)) for rank, (_, name) in enumerate(order)}


@pytest.mark.parametrize("seed", range(6))
def test_the_score_is_the_objective_of_the_equations(seed: int) -> None:
    graph = graph_of(seed)
    (document,) = PCSTRetriever.from_index(GraphIndex.build(graph, EMBEDDINGS), preset="paper").invoke(QUESTION)
    of_nodes = plain_prizes([*graph.entities], k=3)
    of_relations = plain_prizes(sorted({triple.relation for triple in graph.triples()}), k=5)
    found = [Triple(*triple) for triple in document.metadata["triples"]]
    held = {key for triple in found for key in (triple.head, triple.tail)} | set(lone_entities_of(document))
    prizes = sum(of_nodes[key] for key in held) + sum(of_relations[triple.relation] for triple in found)
    assert document.metadata["score"] == pytest.approx(prizes - 0.5 * len(found), abs=1e-5)


# --- an entity alone --------------------------------------------------------------------------------------------------

#: A scene: an object without relations, and two that are related.
SCENE = KnowledgeGraph.from_triples(
    [("1/cat", "on", "1/mat")], labels={"1/lamp": "name: red lamp", "1/cat": "name: cat", "1/mat": "name: mat"}
)


def scene(**fields: Any) -> PCSTRetriever:
    index = GraphIndex.build(SCENE, EMBEDDINGS)
    return PCSTRetriever.from_index(index, scope="graph", **({"prizes": "paper", "edge_cost": 99.0} | fields))


def test_an_entity_alone_is_evidence() -> None:
    question = "name: red lamp"
    first, *others = scene(lone_entities=True, k=9).invoke(question)
    metadata = first.metadata
    assert (metadata["triples"], metadata["score"]) == ([], 3.0)
    assert metadata["details"]["lone_entities"] == ["1/lamp"]
    assert metadata["labels"] == {"1/lamp": "name: red lamp"}
    assert first.page_content.splitlines()[:2] == ["node_id,node_attr", "0,name: red lamp"]
    assert [lone_entities_of(other) for other in others] == [["1/mat"], ["1/cat"]]
    assert len({document.id for document in (first, *others)}) == 3
    with pytest.raises(NoEvidenceError):
        scene().invoke(question, on_refusal="raise")


def test_an_entity_alone_passes_through_chains_and_workflows() -> None:
    retriever, model = scene(lone_entities=True), ScriptedChatModel(replies=["Answer: red lamp"], cycle=True)
    question = "name: red lamp"
    assert answer_chain(retriever, model).invoke(question) == "red lamp"
    assert "0,name: red lamp" in model.prompts[0][0].text
    documents = retriever.invoke(question)
    assert show_evidence(documents, "numbered").text == "Entities: name: red lamp"
    assert cited_answer_chain(retriever).invoke(question)["citations"] == []
    assert build_workflow(retriever).invoke({"question": question})["documents"] == documents
    assert "1/lamp" in draw(documents).to_networkx()
    single = scene(lone_entities=True, granularity="triple", k=2).invoke(question)
    assert [lone_entities_of(one) for one in single] == [["1/lamp"], ["1/mat"]]


@pytest.mark.parametrize(
    ("style", "text", "lines"),
    [
        ("triples", "a -> r -> b\nc\nd", 4),
        ("tables", "node_id,node_attr\n0,a\n1,b\n2,c\n3,d\n\nsrc,edge_attr,dst\n0,r,1", 10),
    ],
)
def test_entities_are_written_behind_the_triples_and_left_out_first(style: Any, text: str, lines: int) -> None:
    facts = [Triple("a", "r", "b")]
    assert verbalize(facts, style=style, entities=["c", "d"]).text == text

    def shown(most: int) -> str:
        given = {"max_tokens": most, "count_tokens": lambda text: text.count("\n") + 1}
        return verbalize(facts, style=style, entities=[*"cdefgh"], **given).text

    assert shown(lines).startswith(text.partition("\n\n")[0])
    assert shown(lines).endswith("(4 more entities left out)")
    assert shown(1) == "(1 more fact and 6 more entities left out)"
