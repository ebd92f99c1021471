"""Every field of SimGRAGRetriever changes what it says it changes."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from kg_retrievers import (
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    LLMPatternGenerator,
    Pattern,
    SimGRAGRetriever,
    Unknown,
)
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.sample import load_graph
from kg_retrievers.testing import ScriptedChatModel

FACTS = [("Her", "directed_by", "Spike Jonze"), ("Her", "written_by", "Spike Jonze"), ("Hero", "directed_by", "Zhang")]
INDEX = GraphIndex.build(KnowledgeGraph.from_triples(FACTS), HashedEmbeddings())
SAMPLE = GraphIndex.build(load_graph(), HashedEmbeddings())
X = Unknown("x")
HERO = Pattern.of(("Hero", "written by", X), target="x")


def best(index: GraphIndex = INDEX, pattern: Pattern = HERO, **fields: Any) -> list[list[str]]:
    """The known names that the best two matches took, and their relations."""
    found = SimGRAGRetriever.from_index(index, **fields).match(pattern, 2)
    return [[name for _, name in evidence.details["entities"] + evidence.details["relations"]] for evidence in found]


def test_k_nodes_limits_the_names() -> None:
    assert ["Her", "written_by"] in best(
        k_relations=1, k_nodes=16
    )  # "Hero" was written by nobody: the next name is taken
    assert best(k_relations=1, k_nodes=1) == []


def test_k_relations_limits_the_relations() -> None:
    assert best(k_nodes=1, k_relations=2) == [["Hero", "directed_by"]]
    assert best(k_nodes=1, k_relations=1) == []


def test_k_types_limits_the_types() -> None:
    pattern = Pattern.of(("Steven Spielberg", Unknown("r"), Unknown("x", "film")), target="x")
    assert len(best(SAMPLE, pattern, k_types=5, k_nodes=1)) == 2  # his films, and the country he was born in
    assert len(best(SAMPLE, pattern, k_types=1, k_nodes=1)) == 1


def test_direction() -> None:
    turned = Pattern.of((X, "directed by", "Hero"), target="x")
    assert best(pattern=turned, max_distance=0.01) == [["Hero", "directed_by"]]
    assert best(pattern=turned, max_distance=0.01, direction="respect") == []


def test_seed_entities_pin_what_a_model_wrote() -> None:
    reply = '{"triples": [["Dune", "directed by", "UNKNOWN person 1"]], "target": "UNKNOWN person 1"}'
    retriever = SimGRAGRetriever.from_index(
        SAMPLE, pattern_generator=LLMPatternGenerator(ScriptedChatModel(replies=[reply], cycle=True))
    )
    for key, director in (("Dune (1984)", "David Lynch"), ("Dune (2021)", "Denis Villeneuve")):
        (document,) = retriever.invoke("Who directed Dune?", seed_entities=[key])
        assert document.metadata["answers"] == [director]


@pytest.mark.parametrize("value", [10**11, float("inf"), float("nan")])
def test_absurd_numbers_are_refused(value: float) -> None:
    for name in ("k", "max_seconds"):
        with pytest.raises(InvalidArgumentError, match=name):
            SimGRAGRetriever.from_index(INDEX, **{name: value})


def test_an_interrupted_search_leaves_nothing_behind() -> None:
    """An interrupt that arrives while compiled code runs is raised when it returns, before anything is noted down."""
    graph = KnowledgeGraph.from_triples([(f"film {i}", "starring", f"actor {i % 50}") for i in range(2000)])
    retriever = SimGRAGRetriever.from_index(GraphIndex.build(graph, HashedEmbeddings()))
    wide = Pattern.of((Unknown("f"), "starring", Unknown("a")), target="f")
    narrow = Pattern.of((Unknown("f"), "starring", "actor 7"), target="f")
    expected = retriever.match(narrow)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for delay in (0.0002, 0.0004, 0.0008, 0.0016):
            try:
                signal.setitimer(signal.ITIMER_REAL, delay)
                retriever.match(wide)
            except KeyboardInterrupt:
                pass
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            assert retriever.match(narrow) == expected
    finally:
        signal.signal(signal.SIGALRM, before)
