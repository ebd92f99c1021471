"""SubgraphRAG's preset against the formulas of the paper, written down from it."""

from __future__ import annotations

import logging
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from training_task import HELD_OUT, INDEX, LEARNED

from kg_retrievers import SubgraphRAGRetriever
from kg_retrievers.core.trained_model import PROBE
from kg_retrievers.datasets import Question
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph, Triple, readable
from kg_retrievers.index import GraphIndex, HashedEmbeddings
from kg_retrievers.methods.subgraph_rag.config import TripleScorerConfig
from kg_retrievers.methods.subgraph_rag.model import TripleScorer
from kg_retrievers.methods.subgraph_rag.network import Supervising, TripleNetwork
from kg_retrievers.methods.subgraph_rag.prompts import DIALOGUE_PROMPT
from kg_retrievers.methods.subgraph_rag.training import EMBEDDINGS, TRAINING, train_triple_scorer
from kg_retrievers.training.dataset import TrainingQuestion
from kg_retrievers.training.fit import ModelTraining

PAPER = TRAINING["paper"]
OF_MODEL = TripleScorerConfig.__dataclass_fields__.keys() & PAPER.keys()
FACTS = [
    ("Her", "directed_by", "Spike Jonze"),
    ("Her", "starring", "Amy Adams"),
    ("Adaptation", "directed_by", "Spike Jonze"),
    ("Adaptation", "starring", "m.0abc"),
    ("Spike Jonze", "born_in", "Rockville"),
    ("Amy Adams", "likes", "Amy Adams"),
    ("Amy Adams", "starred_in", "Her"),
]
SEEDS = ("Her", "Rockville")


def paper_scorer(index: GraphIndex, hidden: int = 6) -> TripleScorer:
    """Return a scorer of the preset, but for its width, whose weights are drawn."""
    config = TripleScorerConfig(
        dimension=index.dimension, **{name: PAPER[name] for name in OF_MODEL} | {"hidden": hidden}
    )
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(0, 0.5, shape).astype(np.float32) for name, shape in config.shapes.items()}
    return TripleScorer(config, weights, probe=index.embed([PROBE])[0], embeddings="")


def distances_by_the_paper(facts: list[tuple[str, str, str]], topics: tuple[str, ...]) -> dict[str, list[float]]:
    """Section 3.1: s(0) is one-hot; two rounds of means along the triples, two against them; all side by side."""
    nodes = {node for head, _, tail in facts for node in (head, tail)}
    start = {node: np.array([node not in topics, node in topics], float) for node in nodes}
    encoded = {node: list(start[node]) for node in nodes}
    for edges in ([(h, t) for h, _, t in facts], [(t, h) for h, _, t in facts]):
        s = start
        for _ in range(2):
            incoming = {node: [s[there] for there, here in edges if here == node] for node in nodes}
            s = {node: np.mean(found, axis=0) if found else np.zeros(2) for node, found in incoming.items()}
            for node in nodes:
                encoded[node] += list(s[node])
    return encoded


def test_the_network_is_that_of_the_paper() -> None:
    """A perceptron over [z_q | z_h | z_r | z_t | s_h | s_t]."""
    embeddings = HashedEmbeddings(12)
    index = GraphIndex.build(KnowledgeGraph.from_triples(FACTS), embeddings)
    scorer, question = paper_scorer(index), "Who directed Her?"
    of = {name: weight.astype(np.float64) for name, weight in scorer.weights.items()}
    s = distances_by_the_paper(FACTS, SEEDS)

    def z(text: str) -> np.ndarray:
        return of["identifier"] if text == "m.0abc" else np.array(embeddings.embed_documents([readable(text)])[0])

    first = np.concatenate(
        [of[n] for n in ("question", "head", "relation", "tail", "head_structure", "tail_structure")]
    )
    expected = []
    for head, relation, tail in FACTS:
        row = np.concatenate([z(question), z(head), z(relation), z(tail), s[head], s[tail]])
        expected.append(np.maximum(row @ first + of["bias"], 0) @ of["output"] + of["output_bias"])
    ids = [next(iter(index.graph._triple_ids(fact))) for fact in FACTS]
    seeds = np.array([index.graph.entities.find(key) for key in SEEDS])
    assert scorer.on(index).score(question, np.array(ids), seeds).tolist() == pytest.approx(expected, abs=1e-5)


def test_the_loss_is_that_of_the_paper() -> None:
    """Equation 2, factorised: the logarithms of p for triples on directed shortest paths, of 1 - p for all others."""
    index = GraphIndex.build(KnowledgeGraph.from_triples(FACTS), HashedEmbeddings(12))
    scorer, find = paper_scorer(index), index.graph.entities.find
    options = Supervising(PAPER["supervision"], PAPER["loss"], 3, PAPER["max_nodes"], PAPER["sampled"])
    network = TripleNetwork(index, scorer.config, options, np.random.default_rng(0))
    with torch.no_grad():
        for name, parameter in network.parameters.items():
            parameter.copy_(torch.from_numpy(scorer.weights[name]))
    question = TrainingQuestion("Where was the director of Her born?", (find("Her"),), (find("Rockville"),), 0)
    network.embed([question.text])
    example = network.example(question)
    positive = {tuple(index.graph.triple(int(id))) for id in example.triples[example.positive]}
    assert positive == {FACTS[0], FACTS[4]}
    scores = scorer.on(index).score(question.text, example.triples, np.array(question.seeds)).astype(np.float64)
    p = 1 / (1 + np.exp(-scores))
    expected = -np.log(np.where(example.positive, p, 1 - p)).mean()
    with torch.no_grad():
        assert float(network.loss([example], np.random.default_rng(0))) == pytest.approx(expected, abs=1e-5)


def trained(**arguments: Any) -> ModelTraining[TripleScorer]:
    settings: dict[str, Any] = {"hidden": 16, "num_examples": 12, "validations": 1, "patience": 1}
    return train_triple_scorer(INDEX, LEARNED[:12], HELD_OUT[:6], **settings | arguments)


def test_a_training_with_the_preset(caplog: pytest.LogCaptureFixture) -> None:
    """It records its settings, warns of other embeddings, and reads whole questions."""
    with caplog.at_level(logging.WARNING):
        done = trained(preset="paper", rounds=1)
    assert f"the preset's embeddings are {EMBEDDINGS}, but the index has" in caplog.text
    config, told = done.model.config, done.model.training
    assert {name: getattr(config, name) for name in OF_MODEL} == {name: PAPER[name] for name in OF_MODEL} | {
        "hidden": 16,
        "rounds": 1,
    }
    assert (told["preset"], told["loss"], told["supervision"], told["sampled"]) == (
        "paper",
        "binary",
        "directed",
        False,
    )
    schedule = told["schedule"]
    assert (schedule["batch_size"], schedule["learning_rate"], schedule["constant_rate"]) == (1, 1e-3, True)
    assert done.training.usable[0].text == LEARNED[0].text
    assert trained().training.usable[0].text == "who directed _?"


def test_a_preset_that_there_is_not() -> None:
    with pytest.raises(InvalidArgumentError, match=r"^train_triple_scorer: there is no preset 'article'; it has paper"):
        trained(preset="article")


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
        INDEX,
        [question, *LEARNED[:3]],
        [question],
        supervision="triples",
        num_examples=4,
        validations=1,
        hidden=4,
    )
    assert usable.unsupervised == 3
    example = network.example(usable.training.usable[0])
    assert [INDEX.graph.triple(int(id)) for id in example.triples[example.positive]] == [year]
