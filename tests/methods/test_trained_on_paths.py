"""Every trained method on the published questions of PathQuestion."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from built_methods import drawn_model

from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, evaluate
from kg_retrievers.datasets import read_pathquestion
from kg_retrievers.methods.registry import find_method


@pytest.mark.real
@pytest.mark.heavy  # half a minute
@pytest.mark.parametrize(
    ("name", "metric", "learned", "drawn"),
    [("gnn-rag", "hits@1", 0.85, 0.4), ("subgraph-rag", "answer_recall", 0.95, 0.9)],
)
def test_it_finds_answers_to_others(data_dir: Path, name: str, metric: str, learned: float, drawn: float) -> None:
    """Trained on four fifths of the 2-hop questions, and without their topics."""
    method = find_method(name)
    index = GraphIndex.build(KnowledgeGraph.from_file(data_dir / "pathquestion" / "2H-kb.txt"), HashedEmbeddings())
    questions = read_pathquestion(data_dir / "pathquestion" / "PQ-2H.txt")
    order = np.random.default_rng(0).permutation(len(questions)).tolist()
    taught, held_out = ([questions[place] for place in part] for part in (order[380:], order[:100]))
    trained = method.load_trainer()(index, taught, num_examples=3_200 if name == "gnn-rag" else 1_600).model
    for model, found in (
        (trained, lambda figure: figure > learned),
        (drawn_model(name), lambda figure: figure < drawn),
    ):
        retriever = method.load_retriever().from_index(index, model=model, on_refusal="empty")
        assert found(evaluate(retriever, held_out, topic="linked").metrics[metric])
