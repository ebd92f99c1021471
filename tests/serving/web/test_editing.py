"""What a stage wrote, as a text and back."""

from __future__ import annotations

from typing import Any

import pytest

from kg_retrievers import KnowledgeGraph
from kg_retrievers.errors import InvalidArgumentError, PatternError
from kg_retrievers.sample import load_graph
from kg_retrievers.serving.web.editing import FORMS, read_text, write_text

NOLAN = {"known": "Christopher Nolan", "entity": "Christopher Nolan"}


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    return load_graph()


def test_a_pattern_is_lines_that_a_person_can_read(graph: KnowledgeGraph) -> None:
    pattern = {
        "triples": [[{"unknown": "entity 1", "type": "film"}, "directed_by", NOLAN]],
        "target": "entity 1",
        "directed": True,
        "typed": True,
        "source": "zero-shot",
        "confidence": 0.85,
    }
    text = write_text("pattern", pattern, graph)
    assert text == "find ?entity 1\n?entity 1 (film) -> directed_by -> Christopher Nolan\ndirected\ntyped"
    assert read_text("pattern", text, graph) == {
        key: pattern[key] for key in ("triples", "target", "directed", "typed")
    }


@pytest.mark.parametrize(
    "pattern",
    [
        {"triples": [["Her", {"unknown": "r"}, {"unknown": "x"}]], "target": "x"},
        {"triples": [[{"known": "Dune", "entity": "Dune (1984)"}, "directed_by", {"unknown": "x"}]], "target": "x"},
        {"triples": [["a -> b", "directed_by", {"unknown": "x"}]], "target": "x"},
        {"triples": [["?", "directed_by", {"unknown": "x"}]]},
        {"triples": [["a", "r", {"unknown": "x"}]], "target": "x", "directed": False},
        {"triples": [["{", "r", {"unknown": "x"}]], "target": "x", "revisits": True},
        {
            "triples": [[{"unknown": "x"}, "release_year", {"unknown": "y"}]],
            "target": "x",
            "conditions": [{"unknown": "y", "operator": ">", "value": "2000"}],
            "operation": {"kind": "count"},
        },
    ],
)
def test_no_pattern_loses_anything(graph: KnowledgeGraph, pattern: dict[str, Any]) -> None:
    assert read_text("pattern", write_text("pattern", pattern, graph), graph) == pattern


@pytest.mark.parametrize(
    "text", ["", "Her -> directed_by", "find x", "a -> b -> c -> d", "?x -> r -> ?x (film)\nnonsense"]
)
def test_what_is_no_pattern_is_told(graph: KnowledgeGraph, text: str) -> None:
    with pytest.raises(PatternError):
        read_text("pattern", text, graph)


def test_relation_paths_are_a_line_each(graph: KnowledgeGraph) -> None:
    steps = [["starring", "backward"], ["has_genre", "forward"]]
    paths = [{"relations": steps, "score": 0.9, "from": "zero-shot"}, {"relations": [["born_in", "either"]]}]
    text = write_text("relation_paths", paths, graph)
    assert text == "starring (backward) -> has_genre (forward)\nborn_in (either)"
    assert read_text("relation_paths", text, graph) == [{"relations": steps}, {"relations": [["born_in", "either"]]}]
    assert read_text("relation_paths", "born_in", graph) == [{"relations": [["born_in", "either"]]}]


@pytest.mark.parametrize("text", [" \n", "a ->  -> b"])
def test_what_is_no_path_is_told(graph: KnowledgeGraph, text: str) -> None:
    with pytest.raises(InvalidArgumentError):
        read_text("relation_paths", text, graph)


def test_queries_keep_their_parameters(graph: KnowledgeGraph) -> None:
    queries = [
        {
            "query": "MATCH (a)-[r]->(b)\nWHERE a.`key` = $n1\nRETURN r",
            "parameters": {"n1": 'He said "Her"', "n2": [1]},
        },
        {"query": "MATCH ()-[r]->() RETURN r", "parameters": {}},
    ]
    text = write_text("cypher", queries, graph)
    assert text.startswith('// $n1 = "He said \\"Her\\""\n// $n2 = [1]\nMATCH')
    assert read_text("cypher", text, graph) == queries
    assert read_text("cypher", text.replace("\n", "\r\n"), graph)[1] == queries[1]


def test_a_query_with_an_operation_stays_whole(graph: KnowledgeGraph) -> None:
    queries = [{"query": "MATCH ...", "parameters": {}, "operation": {"kind": "count"}}]
    assert read_text("cypher", write_text("cypher", queries, graph), graph) == queries


@pytest.mark.parametrize("key", list(FORMS))
@pytest.mark.parametrize("text", ["{", "[" * 100_000, '{"a": NaN'])
def test_broken_json_is_told(graph: KnowledgeGraph, key: str, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="no JSON"):
        read_text(key, text, graph)


def test_nothing_else_is_edited(graph: KnowledgeGraph) -> None:
    with pytest.raises(InvalidArgumentError, match="cannot be edited"):
        read_text("documents", "x", graph)
