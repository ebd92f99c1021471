"""Fields of all methods that are out of range are refused, when a retriever is built and afterwards."""

from __future__ import annotations

from typing import Any

import pytest
from built_methods import built

from kg_retrievers import GraphIndex, HashedEmbeddings
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.methods.registry import find_method
from kg_retrievers.testing import tiny_graph

INDEX = GraphIndex.build(tiny_graph(), HashedEmbeddings())

#: Fields that several methods have.
SHARED: list[tuple[str, Any]] = [
    ("k", 0), ("max_hops", 0), ("max_nodes", 0), ("scope", "world"), ("style", "numbered"), ("on_refusal", "guess"),
]  # fmt: skip

#: The fields of each method.
FIELDS: dict[str, list[tuple[str, Any]]] = {
    "simgrag": [
        ("k_nodes", 0), ("k_relations", 0), ("k_types", 0), ("max_bindings", 0), ("max_scans", 0), ("max_seconds", 0),
        ("max_distance", -0.1), ("granularity", "path"), ("ties", "some"), ("direction", "both"), ("distinct", "all"),
        ("answer_prompt", "{question} {evidence}"),
    ],
    "g-retriever": [
        *SHARED, ("k_nodes", 0), ("k_relations", 0), ("edge_cost", 0), ("edge_cost", -1), ("edge_cost", float("inf")),
        ("edge_cost", float("nan")), ("max_triples", 0), ("prizes", "all"), ("pruning", "none"),
        ("granularity", "path"),
    ],
    "gnn-rag": [
        *SHARED, ("threshold", 0), ("threshold", 1.01), ("max_candidates", 0), ("max_paths", 0),
        ("granularity", "tree"),
    ],
    "subgraph-rag": [*SHARED, ("max_triples", 0), ("max_triples", 2_000_000), ("granularity", "path")],
    "kaping": [*SHARED, ("granularity", "subgraph")],
    "sg-rag": [
        ("ties", "best"), ("max_rows", 0), ("max_rows", 1.5), ("max_rows", True), ("timeout", 1e9),
        ("granularity", "path"),
    ],
    "rog": [("max_hops", None), ("max_hops", 0), ("beam_width", 0), ("max_paths", 0), ("scope", "graph")],
}  # fmt: skip


@pytest.mark.parametrize(
    ("method", "field", "value"), [(method, *field) for method, fields in FIELDS.items() for field in fields]
)
def test_fields_are_checked(method: str, field: str, value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=field):
        built(find_method(method), INDEX, **{field: value})
    retriever = built(find_method(method), INDEX)
    with pytest.raises(InvalidArgumentError, match=field):
        setattr(retriever, field, value)
