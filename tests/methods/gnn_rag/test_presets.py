"""GNN-RAG's preset against the formulas of the paper and the network published with it, written down from them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from training_task import HELD_OUT, LEARNED, films

from kg_retrievers import GNNRAGRetriever
from kg_retrievers.core.path_prompt import ANSWER_PROMPT
from kg_retrievers.core.trained_model import PROBE
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph, readable
from kg_retrievers.index import GraphIndex, HashedEmbeddings
from kg_retrievers.methods.gnn_rag.config import GraphReasonerConfig
from kg_retrievers.methods.gnn_rag.model import GraphReasoner
from kg_retrievers.methods.gnn_rag.prompts import PROMPTS
from kg_retrievers.methods.gnn_rag.training import EMBEDDINGS, TRAINING, train_graph_reasoner

PAPER = TRAINING["paper"]
OF_MODEL = GraphReasonerConfig.__dataclass_fields__.keys() & PAPER.keys()
FACTS = [
    ("Her", "directed_by", "Jonze"),
    ("Her", "starring", "Adams"),
    ("Adaptation", "directed_by", "Jonze"),
    ("Jonze", "born_in_place", "Rockville"),
    ("Jonze", "lived_in", "Rockville"),
    ("Adams", "likes", "Adams"),
    ("Adams", "likes", "Her"),
]
SEEDS = ("Her", "Rockville")


class States(HashedEmbeddings):
    """Stands for a language model: each token's state depends on its text, and the first one is of the whole text."""

    def embed_tokens(self, texts: list[str]) -> list[np.ndarray]:
        """Return a state of the text, then one of each word in it."""
        return [self.embed_array([text, *(f"{word} of {text}" for word in text.split())]) for text in texts]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-x)))


def probabilities_by_the_paper(
    config: GraphReasonerConfig,
    of: dict[str, np.ndarray],
    tokens_of: dict[str, np.ndarray],
    question: str,
    nodes: Sequence[str],
) -> dict[str, float]:
    """Equations 1 to 6, and ReaRev's stages, entity by entity and fact by fact."""
    linear = {text: tokens @ of["token"] + of["token_bias"] for text, tokens in tokens_of.items()}
    relations = {r: linear[readable(r)][0] for _, r, _ in FACTS}  # equation 3: [CLS]
    inverse = {r: linear[" ".join(reversed(readable(r).split()))][0] for _, r, _ in FACTS}

    q, q_c = linear[question], linear[question][0]
    instructions, last = [], np.zeros(config.width)
    for k in range(config.instructions):
        asked = q_c @ of["ask"][k] + of["ask_bias"][k]
        told = np.concatenate([last, asked, last * asked, asked - last]) @ of["join"] + of["join_bias"]  # equation 6
        a = np.exp(np.array([(told * token) @ of["attend"] for token in q]))  # equation 5
        last = (a / a.sum()) @ q  # equation 4
        instructions.append(last)

    h = {}
    for v in nodes:
        around = {(r, "in") for _, r, t in FACTS if t == v} | {(r, "out") for head, r, _ in FACTS if head == v}
        start = sum((relations[r] @ of["begin"] for r, _ in around), start=np.zeros(config.width))
        h[v] = np.maximum(start, 0)

    p: dict[str, float] = {}
    for stage in range(config.stages):
        if stage:
            at_seeds = sum(h[seed] for seed in SEEDS)
            for k, i in enumerate(instructions):
                three = np.concatenate([i, at_seeds, i - at_seeds])
                gate = sigmoid(three @ of["gate"][k] + of["gate_bias"][k])
                instructions[k] = gate * (three @ of["renew"][k] + of["renew_bias"][k]) + (1 - gate) * i
        p = {v: 1 / len(SEEDS) if v in SEEDS else 0.0 for v in nodes}
        for layer in range(config.layers):
            match, bias = of["match"][layer], of["match_bias"][layer]
            new = {}
            for v in nodes:
                incoming = [(relations[r], head) for head, r, t in FACTS if t == v] + [(of["loop"], v)]
                outgoing = [(inverse[r], t) for head, r, t in FACTS if head == v] + [(of["loop"], v)]
                parts = [h[v]]
                for way in (incoming, outgoing):
                    for i in instructions:
                        parts.append(sum(np.maximum((r @ match + bias) * i, 0) * p[u] for r, u in way))
                mix = np.concatenate([of["keep"][layer], of["receive"][layer, 0], of["receive"][layer, 1]])
                new[v] = np.maximum(np.concatenate(parts) @ mix + of["bias"][layer], 0)
            h = new
            powers = {v: 0.0 if v in SEEDS else float(np.exp(h[v] @ of["score"])) for v in nodes}
            p = {v: power / sum(powers.values()) for v, power in powers.items()}
    return p


@pytest.mark.parametrize("sizes", [{}, {"stages": 3, "instructions": 2}], ids=["CWQ and MetaQA", "WebQSP"])
def test_the_network_is_the_published_one(sizes: dict[str, int]) -> None:
    embeddings, question = States(10), "Who directed Her?"
    index = GraphIndex.build(KnowledgeGraph.from_triples(FACTS), embeddings)
    settings = {name: PAPER[name] for name in OF_MODEL} | {"width": 7} | sizes
    config = GraphReasonerConfig(dimension=10, **settings)
    rng = np.random.default_rng(1)
    weights = {name: rng.normal(0, 0.4, shape).astype(np.float32) for name, shape in config.shapes.items()}
    reasoner = GraphReasoner(config, weights, probe=index.embed([PROBE])[0], embeddings="")
    texts = [question, *(readable(relation) for _, relation, _ in FACTS)]
    texts += [" ".join(reversed(text.split())) for text in texts[1:]]
    tokens = dict(zip(texts, embeddings.embed_tokens(texts), strict=True))
    nodes = list(index.graph.entities)
    of = {name: weight.astype(np.float64) for name, weight in weights.items()}
    expected = probabilities_by_the_paper(config, of, tokens, question, nodes)
    seeds = [index.graph.entities.find(seed) for seed in SEEDS]
    found = reasoner.on(index).score(question, np.arange(len(nodes)), seeds)
    assert dict(zip(nodes, found.tolist(), strict=True)) == pytest.approx(expected, abs=1e-5)


def test_a_training_with_the_preset(caplog: pytest.LogCaptureFixture) -> None:
    """It records its settings, warns of other embeddings, and reads whole questions, as its retriever does."""
    index = GraphIndex.build(films(), States(32))
    with caplog.at_level(logging.WARNING):
        done = train_graph_reasoner(
            index, LEARNED[:12], HELD_OUT[:6], preset="paper", width=4, stages=1, num_examples=16, validations=1
        )
    assert f"the preset's embeddings are {EMBEDDINGS}, but the index has" in caplog.text
    config, told = done.model.config, done.model.training
    wanted = {name: PAPER[name] for name in OF_MODEL} | {"width": 4, "stages": 1}
    assert {name: getattr(config, name) for name in OF_MODEL} == wanted
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
