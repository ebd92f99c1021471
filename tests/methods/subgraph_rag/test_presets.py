"""SubgraphRAG's preset: what is trained and asked by it."""

from __future__ import annotations

import logging
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from training_task import HELD_OUT, INDEX, LEARNED

from kg_retrievers import SubgraphRAGRetriever
from kg_retrievers.datasets import Question
from kg_retrievers.graph import Triple
from kg_retrievers.methods.subgraph_rag.model import TripleScorer, TripleScorerConfig
from kg_retrievers.methods.subgraph_rag.prompts import DIALOGUE_PROMPT
from kg_retrievers.methods.subgraph_rag.training import EMBEDDINGS, Supervising, TripleNetwork, train_triple_scorer
from kg_retrievers.training.fit import ModelTraining


def trained(**arguments: Any) -> ModelTraining[TripleScorer]:
    settings: dict[str, Any] = {"hidden": 16, "num_examples": 12, "validations": 1, "patience": 1}
    return train_triple_scorer(INDEX, LEARNED[:12], HELD_OUT[:6], **settings | arguments)


def test_a_training_with_the_preset(caplog: pytest.LogCaptureFixture) -> None:
    """It records its settings, warns of other embeddings, and reads whole questions."""
    with caplog.at_level(logging.WARNING):
        done = trained(preset="paper")
    assert f"the preset's embeddings are {EMBEDDINGS}, but the index has" in caplog.text
    config, told = done.model.config, done.model.training
    assert (config.topic, config.directed, config.rounds, config.reverse_rounds) == ("pair", True, 2, 2)
    assert (config.hops, config.hidden) == (0, 16)
    assert told["preset"] == "paper"
    assert told["loss"] == "binary"
    assert told["supervision"] == "directed"
    assert told["sampled"] is False
    schedule = told["schedule"]
    assert (schedule["batch_size"], schedule["learning_rate"], schedule["constant_rate"]) == (1, 1e-3, True)
    assert done.training.usable[0].text == LEARNED[0].text
    assert trained().training.usable[0].text == "who directed _?"


def test_the_retriever_takes_the_preset() -> None:
    """And reads whole questions where its model was trained on them."""
    model = trained(preset="paper").model
    retriever = SubgraphRAGRetriever.from_index(INDEX, model=model, preset="paper", k=3)
    assert (retriever.k, retriever.answer_prompt, retriever.max_nodes) == (3, DIALOGUE_PROMPT, None)
    question = f"who directed {LEARNED[0].seed_entities[0]}?"
    documents = retriever.invoke(question)
    scores = [document.metadata["score"] for document in documents]
    assert all(one >= other for one, other in pairwise(scores))
    found = Triple(*documents[0].metadata["triples"][0])
    ids = retriever.triples_in_scope(LEARNED[0].seed_entities)[0]
    logits = model.on(INDEX).score(question, ids, retriever.entity_ids(LEARNED[0].seed_entities))
    assert INDEX.graph.triple(int(ids[logits.argmax()])) == found
    masked = retriever.invoke(question, masked_question="_", seed_entities=list(LEARNED[0].seed_entities))
    assert [document.page_content for document in masked] == [document.page_content for document in documents]


def test_triples_that_questions_bring_supervise() -> None:
    """However they were found; a question without them teaches nothing."""
    seed = LEARNED[0].seed_entities[0]
    year = next(iter(INDEX.graph.triples(seed, "release_year")))
    question = Question(f"who directed {seed}?", (seed,), LEARNED[0].answers, triples=(year, Triple("x", "y", "z")))
    options = Supervising(supervision="triples", max_hops=2)
    network = TripleNetwork(INDEX, TripleScorerConfig(INDEX.dimension), options, np.random.default_rng(0))
    usable = train_triple_scorer(
        INDEX, [question, *LEARNED[:3]], [question], supervision="triples", num_examples=4, validations=1, hidden=4
    )
    assert usable.unsupervised == 3
    example = network.example(usable.training.usable[0])
    assert [INDEX.graph.triple(int(id)) for id in example.triples[example.positive]] == [year]
