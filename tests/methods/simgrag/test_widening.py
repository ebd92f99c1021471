from __future__ import annotations

from typing import Any

import pytest
from built_methods import answers

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, Pattern, SimGRAGRetriever, Unknown

X = Unknown("x")


@pytest.mark.parametrize(
    ("question", "distinct", "found", "widened"),
    [
        ("Who is a parent of the child of Ann?", "auto", ["Ann"], None),
        ("Who is a parent of the child of Ann?", "known", [], None),
        ("Which house does the owner of Lea House own?", "auto", ["Lea House"], True),
        ("Which other house does the owner of Lea House own?", "auto", [], None),
        ("Which house does the owner of Lea House own?", "none", ["Lea House"], None),
        ("Which house does the owner of Mill House own?", "auto", ["Barn"], None),
    ],
)
def test_each_pattern_decides_whether_walks_return(
    question: str, distinct: str, found: list[str], widened: bool | None
) -> None:
    facts = [("Ann", "child", "Bob"), ("Bob", "parent", "Ann"), ("Lea House", "owner", "Eve")]
    facts += [("Mill House", "owner", "Ida"), ("Barn", "owner", "Ida")]
    index = GraphIndex.build(KnowledgeGraph.from_triples(facts), HashedEmbeddings())
    fields: dict[str, Any] = {"direction": "respect", "max_distance": 0.0, "distinct": distinct}
    back = Pattern.of(("Ann", "child", X), (X, "parent", Unknown("y")), target="y")
    house = "Mill House" if "Mill" in question else "Lea House"
    turning = Pattern.of((house, "owner", X), (Unknown("y"), "owner", X), target="y")
    pattern = back if "Ann" in question else turning
    documents = SimGRAGRetriever.from_index(index, **fields).invoke(question, pattern=pattern)
    assert [key for keys in answers(documents) for key in keys] == found
    assert [document.metadata["details"].get("widened") for document in documents] == [widened] * len(documents)


def test_what_is_found_by_the_wider_rule_comes_first_where_it_is_nearer() -> None:
    facts = [("Lea House", "owner", "Eve"), ("Barn", "owned by", "Eve")]
    index = GraphIndex.build(KnowledgeGraph.from_triples(facts), HashedEmbeddings())
    pattern = Pattern.of(("Lea House", "owner", X), (Unknown("y"), "owner", X), target="y")
    retriever = SimGRAGRetriever.from_index(index, direction="respect", k=2)
    first, second = retriever.invoke("What does the owner of Lea House own?", pattern=pattern)
    assert (first.metadata["answers"], first.metadata["details"]["widened"]) == (["Lea House"], True)
    assert second.metadata["answers"] == ["Barn"]
    assert "widened" not in second.metadata["details"]
    (only,) = retriever.invoke("What else does the owner of Lea House own?", pattern=pattern, k=1)
    assert only.metadata["answers"] == ["Barn"]
