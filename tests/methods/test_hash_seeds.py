"""Every method gives the same Documents whatever the order of sets of strings."""

from __future__ import annotations

from pathlib import Path

import pytest
from hash_seeds import outputs_under_hash_seeds

from kg_retrievers.methods.registry import METHODS

ANSWERS = """
import sys
sys.path.insert(0, sys.argv[2])
from built_methods import built, indexed
from kg_retrievers.methods.registry import find_method
from kg_retrievers.sample import load_graph, load_questions
index = indexed(load_graph())
retriever = built(find_method(sys.argv[1]), index, k=5, min_confidence=0)
for question in load_questions()[:12]:
    documents = retriever.invoke(question.text, seed_entities=list(question.seed_entities))
    print([(one.id, one.page_content, one.metadata["score"], one.metadata["answers"]) for one in documents])
"""


@pytest.mark.parametrize("method", [method.name for method in METHODS])
def test_hash_seeds_change_nothing(method: str) -> None:
    (output,) = outputs_under_hash_seeds(ANSWERS, method, str(Path(__file__).parents[1]))
    assert b"Spike Jonze" in output
