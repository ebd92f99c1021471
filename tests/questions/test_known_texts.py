"""A text that the graph lacks is refused where a pattern asks for more than a list."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda

from kg_retrievers import GraphIndex, KnowledgeGraph, Known, Pattern, SimGRAGRetriever, Unknown, default_embeddings
from kg_retrievers.errors import EntityLinkingError, LowConfidenceError, RefusalError
from kg_retrievers.graph.operations import Condition, Operation
from kg_retrievers.questions.carried_out import check_known_texts
from kg_retrievers.sample import load_graph

FILM = Unknown("film")
COUNT, EXISTS = Operation("count"), Operation("exists")


@cache
def index() -> GraphIndex:
    graph = load_graph()
    further = [("Rocky 2", "rank", "1,250"), ("Chess", "release_year", "1987-03")]
    return GraphIndex.build(KnowledgeGraph.from_triples([*graph.triples(), *further]), default_embeddings())


def counted(*triples: Any, **more: Any) -> Pattern:
    return Pattern.of(*triples, target="film", **{"operation": COUNT, **more})


@pytest.mark.parametrize(
    "pattern",
    [
        counted((FILM, "directed by", "christopher NOLAN")),
        counted((FILM, "directed by", "Cristopher Nolan")),
        counted((FILM, "directed by", "Greta Gerwig"), (FILM, "rank", "1250")),
        counted((FILM, "release year", "March 1987")),
        counted((FILM, "directed by", Known("whoever it is", entity="Christopher Nolan"))),
        counted((FILM, "director", "Greta Gerwig")),
        Pattern.of((FILM, "liked by", "Nobody at all"), target="film", source="zero-shot"),
        Pattern.of((FILM, "liked by", "Nobody at all"), target="film", source="chosen", operation=Operation("list")),
    ],
)
def test_what_the_graph_has_passes(pattern: Pattern) -> None:
    check_known_texts(index(), pattern)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (counted((FILM, "directed by", "Wolfgang Petersen")), "Wolfgang Petersen"),
        (counted((FILM, "directed by", "Christopher Reeve")), "Christopher Reeve"),
        (counted((FILM, "rank", "1"), (FILM, "directed by", FILM)), "1"),
        (counted(("Rocky 3", "rank", FILM)), "Rocky 3"),
        (counted((FILM, "release year", "March 1988")), "March 1988"),
        (counted((FILM, "release year", "1987")), "1987"),
        (Pattern.of((FILM, "starring", "Amy Adams"), absent=[(FILM, "has genre", "Opera")], target="film"), "Opera"),
        (Pattern.of((FILM, "release year", Unknown("y")), conditions=[Condition("film", "in", ["Heat"])]), "Heat"),
        (Pattern.of(("Casablanca", "directed by", "Greta Gerwig"), operation=EXISTS), "Casablanca"),
        (Pattern.of(("Casablanca", "directed by", Unknown("x")), target="x"), "Casablanca"),
    ],
)
def test_name_that_the_graph_lacks(pattern: Pattern, text: str) -> None:
    with pytest.raises(EntityLinkingError, match=f"The pattern names {text!r}, which the graph lacks.") as raised:
        check_known_texts(index(), pattern)
    assert raised.value.suggestions
    assert "Name an entity of the graph" in raised.value.hint_python


def test_short_name() -> None:
    graph = KnowledgeGraph.from_triples([("Her", "directed by", "Spike Jonze"), ("Tenet", "directed by", "Jo Nolan")])
    jonze = counted((FILM, "directed by", "Jonze"))
    check_known_texts(GraphIndex.build(graph, default_embeddings()), jonze)


def test_linked_text_needs_no_name() -> None:
    check_known_texts(index(), counted((FILM, "directed by", "that man")), {"that man"})


@pytest.mark.parametrize(
    "pattern",
    [
        counted((FILM, "box office", "United States")),
        counted((FILM, "music by", "Christopher Nolan")),
        Pattern.of((FILM, "directed by", "Greta Gerwig"), absent=[(FILM, "music by", Unknown("x"))], target="film"),
    ],
)
def test_relation_that_the_graph_lacks(pattern: Pattern) -> None:
    with pytest.raises(LowConfidenceError, match=r"names the relation '(box office|music by)'.* nearest are") as raised:
        check_known_texts(index(), pattern)
    assert raised.value.unplaced in (["box office"], ["music by"])
    assert raised.value.nearest


@pytest.mark.parametrize("operation", [COUNT, EXISTS])
def test_refusal_of_a_retriever(operation: Operation) -> None:
    pattern = Pattern.of((FILM, "directed by", "Wolfgang Petersen"), target="film", operation=operation)
    retriever = SimGRAGRetriever(index=index(), pattern_generator=RunnableLambda(lambda _: pattern))
    assert retriever.invoke("?") == []
    with pytest.raises(RefusalError, match="'Wolfgang Petersen'"):
        retriever.invoke("?", on_refusal="raise")
    plain = Pattern.of(*pattern.triples, target="film")
    assert retriever.invoke("?", pattern=plain) == []
    nearest = SimGRAGRetriever(index=index(), checks_names=False)
    assert nearest.invoke("?", pattern=plain)


def test_empty_graph() -> None:
    empty = GraphIndex.build(KnowledgeGraph.from_triples([]), default_embeddings())
    with pytest.raises(EntityLinkingError):
        check_known_texts(empty, counted((FILM, "directed by", "Ann")))
    with pytest.raises(LowConfidenceError):
        check_known_texts(empty, counted((FILM, "directed by", Unknown("who"))))


def test_a_type_that_the_graph_lacks_is_refused() -> None:
    graph = KnowledgeGraph.from_triples([("Her", "lasts", "126 min")], types={"Her": ["Film"], "Jonze": ["Person"]})
    pattern = Pattern.of(alone=[Unknown("x", "Filmes")], target="x", typed=True, operation="count")
    with pytest.raises(LowConfidenceError, match=r"the type 'Filmes', which the graph lacks. The nearest are \['Film'"):
        check_known_texts(GraphIndex.build(graph, default_embeddings()), pattern)
