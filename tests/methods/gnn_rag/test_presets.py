"""GNN-RAG's preset: what is trained and asked by it."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from reference_reasoner import States
from training_task import HELD_OUT, LEARNED, films

from kg_retrievers import GNNRAGRetriever
from kg_retrievers.core.path_prompt import ANSWER_PROMPT
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.index import GraphIndex
from kg_retrievers.methods.gnn_rag.prompts import PROMPTS
from kg_retrievers.methods.gnn_rag.training import EMBEDDINGS, train_graph_reasoner


def test_a_training_with_the_preset(caplog: pytest.LogCaptureFixture) -> None:
    """It records its settings, warns of other embeddings, and reads whole questions, as its retriever does."""
    index = GraphIndex.build(films(), States(32))
    with caplog.at_level(logging.WARNING):
        done = train_graph_reasoner(
            index, LEARNED[:12], HELD_OUT[:6], preset="paper", width=4, stages=1, num_examples=16, validations=1
        )
    assert f"the preset's embeddings are {EMBEDDINGS}, but the index has" in caplog.text
    config, told = done.model.config, done.model.training
    assert (config.tokens, config.pooling, config.inverse, config.gates) == ("states", "first", "words", "own")
    assert (config.relative, config.norms, config.instructions, config.layers) == (False, False, 3, 3)
    assert (config.width, config.stages) == (4, 1)
    assert told["preset"] == "paper"
    schedule = told["schedule"]
    assert (schedule["batch_size"], schedule["learning_rate"], schedule["constant_rate"]) == (8, 5e-4, True)
    assert schedule["warm_up"] == 0
    assert done.training.usable[0].text == LEARNED[0].text
    retriever = GNNRAGRetriever.from_index(index, model=done.model, preset="paper", max_paths=50)
    assert (retriever.granularity, retriever.max_paths, retriever.answer_prompt) == ("path", 50, PROMPTS["A"])
    question, seeds = LEARNED[0].text, list(LEARNED[0].seed_entities)
    pages = [document.page_content for document in retriever.invoke(question, seed_entities=seeds)]
    assert pages
    asked = retriever.invoke(question, seed_entities=seeds, masked_question="_")
    assert [document.page_content for document in asked] == pages


def test_prompts_by_name() -> None:
    index = GraphIndex.build(films(), States(32))
    arguments: dict[str, Any] = {"width": 4, "num_examples": 4, "validations": 1}
    model = train_graph_reasoner(index, LEARNED[:4], HELD_OUT[:2], **arguments).model
    for name, prompt in {"paths": ANSWER_PROMPT, **PROMPTS}.items():
        assert GNNRAGRetriever.from_index(index, model=model, answer_prompt=name).answer_prompt == prompt
    with pytest.raises(InvalidArgumentError, match=r"the name of one \(paths, A, B, C\), but got 'D'"):
        GNNRAGRetriever.from_index(index, model=model, answer_prompt="D")
