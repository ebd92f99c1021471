"""The scorer of triples: against the network as the paper draws it, saved and opened, and what it refuses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pytest
import torch
from built_methods import drawn_model
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings

from kg_retrievers.core.checkpoint import load_checkpoint, save_checkpoint
from kg_retrievers.errors import InvalidArgumentError, ModelLoadError, ModelMismatchError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.graph.verbalize import readable
from kg_retrievers.index import GraphIndex, HashedEmbeddings, embedding_name
from kg_retrievers.methods.subgraph_rag import model as triple_scorer
from kg_retrievers.methods.subgraph_rag.model import IDENTIFIERS, TripleScorer, TripleScorerConfig, without_text
from kg_retrievers.methods.subgraph_rag.training import Example, Supervising, TripleNetwork
from kg_retrievers.testing import tiny_graph
from kg_retrievers.training.dataset import TrainingQuestion
from kg_retrievers.training.fit import _Examples

EMBEDDINGS = HashedEmbeddings(24)

#: The paper's encodings, and ours with and without what the paper does not have.
CONFIGS = (
    {"rounds": 2, "reverse_rounds": 2, "directed": True, "hops": 0, "hidden": 24},
    {"rounds": 2, "reverse_rounds": 2, "directed": True, "hops": 0, "topic": "pair"},  # the preset
    {"rounds": 1, "reverse_rounds": 3, "directed": True, "hops": 2, "hidden": 3, "rank": 1},
    {"hops": 0},
    {"hidden": 1, "rank": 5},
    {"rounds": 0, "hops": 1, "identifiers": ""},
    {"rounds": 0, "hops": 0, "identifiers": ".*"},
    {"hidden": 17, "hops": 4},
    {"rounds": 2, "reverse_rounds": 1, "directed": True, "topic": "pair"},
    {"rounds": 0, "hops": 0, "topic": "none"},
    {"rounds": 0, "hops": 0, "topic": "pair", "hidden": 5},
)

ENTITIES = ("Her", "Spike Jonze", "m.02mjmr", "千と千尋", "g.11b6", "1984", "Q42")


def drawn(**config: Any) -> TripleScorer:
    scorer: TripleScorer = drawn_model("subgraph-rag", EMBEDDINGS, **config)
    return scorer


def indexed(facts: Any, embeddings: Embeddings = EMBEDDINGS) -> GraphIndex:
    return GraphIndex.build(
        facts if isinstance(facts, KnowledgeGraph) else KnowledgeGraph.from_triples(facts), embeddings
    )


def numbers(values: Any) -> np.ndarray:
    return np.array(values, np.int64)


# --- the network ------------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """A graph, some of its triples as the candidates of a question, and what the question is about."""

    graph: KnowledgeGraph
    candidates: list[int]
    seeds: list[int]
    config: dict[str, Any]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Loops, parallel triples, entities without text and seeds without triples are among them."""
    entity = st.sampled_from(ENTITIES)
    facts = draw(st.lists(st.tuples(entity, st.sampled_from(["by", "in", "of_what"]), entity), min_size=1, max_size=12))
    graph = KnowledgeGraph.from_triples(facts, labels={key: key for key in ENTITIES} | {"1984": "Nineteen"})
    some = draw(st.lists(st.integers(0, len(graph) - 1), unique=True, max_size=len(graph)))
    seeds = draw(st.lists(st.integers(0, len(graph.entities) - 1), max_size=3))
    return Case(graph, some, seeds, draw(st.sampled_from(CONFIGS)))


def mean_of_neighbors(start: dict[int, float], steps: list[tuple[int, int]], rounds: int) -> list[dict[int, float]]:
    """Return what each entity has after each round, in which it takes the mean of those that steps come from."""
    columns = [start]
    for _ in range(rounds):
        before = columns[-1]
        incoming = {node: [before[here] for here, there in steps if there == node] for node in start}
        columns.append({node: sum(values) / max(len(values), 1) for node, values in incoming.items()})
    return columns[1:]


def distance_columns(
    config: TripleScorerConfig, edges: list[tuple[int, ...]], start: dict[int, float]
) -> list[dict[int, float]]:
    """Return the numbers that tell where each entity lies, of a pair those for what is no seed first."""
    along, against = [(h, t) for h, _, t in edges], [(t, h) for h, _, t in edges]
    columns, pair = [], config.topic == "pair"
    for marks in ([{node: 1 - mark for node, mark in start.items()}] if pair else []) + [start]:
        mine = [marks]
        if config.directed:
            mine += mean_of_neighbors(marks, along, config.rounds)
            mine += mean_of_neighbors(marks, against, config.reverse_rounds)
        else:
            mine += mean_of_neighbors(marks, along + against, config.rounds)
        columns.append(mine)
    return [column for together in zip(*columns, strict=True) for column in together] if config.topic != "none" else []


def forward(scorer: TripleScorer, case: Case, question: str) -> list[float]:
    """The network in torch, in double precision: all inputs of a triple side by side, one layer, ReLU, a product."""
    config, graph = scorer.config, case.graph
    of = {name: torch.from_numpy(weight).double() for name, weight in scorer.weights.items()}
    edges = [tuple(map(int, graph.edges[number])) for number in case.candidates]
    nodes = sorted({node for head, _, tail in edges for node in (head, tail)} | set(case.seeds))

    def embedded(text: str) -> torch.Tensor:
        return torch.tensor(EMBEDDINGS.embed_documents([text])[0]).double()

    def vector(node: int) -> torch.Tensor:
        label = graph.label(graph.entities[node])
        nameless = bool(config.identifiers) and re.fullmatch(config.identifiers, label) is not None
        return of["identifier"] if nameless else embedded(readable(label))

    asked = embedded(question)
    relations = [embedded(readable(relation)) for relation in graph.relations]
    start = {node: float(node in case.seeds) for node in nodes}
    columns = distance_columns(config, edges, start)
    steps: list[list[float]] = [[] for _ in edges]
    x = start
    for hop in range(config.hops):
        weighs = (asked @ of["follow_question"]).reshape(config.hops, 2, config.rank)[hop]
        follow = [
            [
                torch.sigmoid(weighs[way] @ (vector @ of["follow_relation"]) + of["follow_bias"][hop, way, 0]).item()
                for vector in relations
            ]
            for way in (0, 1)
        ]
        y = dict.fromkeys(nodes, 0.0)
        for row, (head, relation, tail) in zip(steps, edges, strict=True):
            y[tail] += follow[0][relation] * x[head]
            y[head] += follow[1][relation] * x[tail]
            row.append(follow[0][relation] * x[head] + follow[1][relation] * x[tail])
        x = {node: 1 - float(np.exp(-mass)) for node, mass in y.items()}
        columns.append(x)
    names = ["question", "head", "relation", "tail", "head_structure", "tail_structure", "steps"]
    layer = torch.cat([of[name] for name in names if name in of])
    words = {node: vector(node) for node in nodes}
    rows = [
        torch.cat(
            [
                *(asked, words[head], relations[relation], words[tail]),
                *(torch.tensor([column[node] for column in columns]).double() for node in (head, tail)),
                torch.tensor(row).double(),
            ]
        )
        for (head, relation, tail), row in zip(edges, steps, strict=True)
    ]
    return [((row @ layer + of["bias"]).relu() @ of["output"] + of["output_bias"]).item() for row in rows]


@settings(max_examples=80)
@given(cases(), st.sampled_from(["who directed _ ?", "", "_", "千と千尋?"]))
def test_it_agrees_with_the_network_in_torch(case: Case, question: str) -> None:
    scorer = drawn(**case.config)
    on_graph = scorer.on(indexed(case.graph))
    found = on_graph.score(question, numbers(case.candidates), numbers(case.seeds))
    assert (found.dtype, found.shape) == (np.float32, (len(case.candidates),))
    assert found.tolist() == pytest.approx(forward(scorer, case, question), abs=1e-5)


def in_torch(index: GraphIndex, scorer: TripleScorer) -> tuple[TripleNetwork, _Examples[Example]]:
    """Return what trains a scorer, with its weights."""
    network = TripleNetwork(index, scorer.config, Supervising(max_hops=2), np.random.default_rng(0))
    with torch.no_grad():
        for name, parameter in network.parameters.items():
            parameter.copy_(torch.from_numpy(scorer.weights[name]))
    return network, _Examples(network)


@settings(max_examples=40)
@given(cases(), st.data())
def test_it_agrees_with_what_is_trained(case: Case, data: st.DataObject) -> None:
    """Some triples of a question, in any order."""
    index, scorer = indexed(case.graph), drawn(**case.config)
    network, examples = in_torch(index, scorer)
    text = "who directed _ ?"
    seeds = data.draw(
        st.lists(st.integers(0, len(case.graph.entities) - 1), min_size=1, max_size=2, unique=True).map(tuple)
    )
    example = examples.of(TrainingQuestion(text, seeds, (0,), 0))
    places = data.draw(st.lists(st.integers(0, max(len(example.triples) - 1, 0)), max_size=5))
    chosen = numbers(places if len(example.triples) else [])
    network.embed([text])
    with torch.no_grad():
        found = network.scores(example, chosen).numpy()
    expected = scorer.on(index).score(text, example.triples, numbers(seeds))[chosen]
    assert found == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("leaves", [2, 3, 5, 17, 40, 100])
def test_what_looks_the_same_has_the_same_score(leaves: int) -> None:
    """Exactly, wherever it stands: else rounding, which is another on each machine, would order equal triples."""
    index = indexed([("hub", "has", f"m.0ab{leaf}") for leaf in range(leaves)])
    for config in ({}, {"hops": 0}, {"hidden": 64}, {"rounds": 0, "hops": 0, "topic": "none"}):
        scorer = drawn(**config)
        found = scorer.on(index).score("what has _ ?", np.arange(leaves), numbers([index.graph.entities.find("hub")]))
        assert len(set(found.tolist())) == 1, config


# --- labels that are no words -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "label",
    [
        "m.02mjmr", "/m/0d05w3", "g.11b6", "m.0_abc", "Q42", "Q155653", "P31", "L77", "http://www.wikidata.org/entity/Q42",
        "http://rdf.freebase.com/ns/m.0d05w3", "https://x.org/é#1234",
        "urn:isbn:0451450523", "_:b0", "_:genid-1", "123e4567-e89b-12d3-a456-426614174000", str(UUID(int=7)),
        "123E4567-E89B-12D3-A456-426614174000", "507f1f77bcf86cd799439011", "0xdeadbeefdeadbeef0",
        "d41d8cd98f00b204e9800998ecf8427e",
    ],
)  # fmt: skip
def test_identifiers(label: str) -> None:
    assert without_text(KnowledgeGraph.from_triples([(label, "r", label)]), IDENTIFIERS).all()


@pytest.mark.parametrize(
    "label",
    [
        "1984", "2001", "M.A.S.H", "M", "m", "Q", "P", "Q & A", "P.S. I Love You", "Se7en", "deadbeef", "Added", "g.i",
        "G.I. Joe", "m.i.a.", "M. Butterfly", "Q0", "Q1 2020", "PS5", "http", "http://x/y is down", "_", "Her",
        "1234567890123456789", "abcdefabcdefabcdef", "effacedeffacedeff", "千と千尋の神隠し", "B612", "E.T.", "U2",
        "00000000", "Untitled 123e4567", "P2", "m.butterfly", "http://dbpedia.org/resource/Spike_Jonze", "http://x/y",
         "Mm/h", "$", "🎬",
    ],
)  # fmt: skip
def test_names(label: str) -> None:
    assert not without_text(KnowledgeGraph.from_triples([(label, "r", label)]), IDENTIFIERS).any()


@pytest.mark.parametrize("config", CONFIGS)
def test_large_graphs_compute_for_each_question(config: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    facts = [
        ("Her", "directed_by", "Jonze"),
        ("Her", "starring", "Adams"),
        ("m.0abc", "starring", "m.0abd"),
        ("Adams", "likes", "Her"),
    ]
    index = indexed(facts)
    everything = np.arange(len(index.graph))
    kept = drawn(**config).on(index).score("who acted in _ ?", everything, numbers([0]))
    monkeypatch.setattr(triple_scorer, "MAX_KEPT", 0)
    for triples in (everything, everything[::2]):
        scorer = drawn(**config).on(index)
        found = scorer.score("who acted in _ ?", triples, numbers([0]))
        assert scorer._made is None
        if len(triples) == len(everything):
            assert found == pytest.approx(kept, abs=1e-5)


def scores_of(facts: list[tuple[str, str, str]], **config: Any) -> list[float]:
    index = indexed(facts)
    return drawn(**config).on(index).score("who acted in _ ?", np.arange(len(facts)), numbers([0])).tolist()


def test_entities_without_text_share_one_vector() -> None:
    """Of two graphs that differ in ids only, the scores are the same."""

    def performance(*ids: str) -> list[tuple[str, str, str]]:
        one, two = ids
        return [("Her", "performance", one), (one, "actor", "Amy Adams"), ("Her", "performance", two), (two, "x", two)]

    first, second = performance("m.0a1", "m.0b2"), performance("/m/0zz9", "Q77")
    assert scores_of(first) == scores_of(second)
    assert scores_of(first, identifiers="") != pytest.approx(scores_of(second, identifiers=""), abs=1e-4)
    assert scores_of(first) != pytest.approx(scores_of(performance("Amy", "Joaquin")), abs=1e-4)


# --- saved and opened -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_saved_and_opened(tmp_path: Path, config: dict[str, Any]) -> None:
    scorer = drawn(**config)
    scorer.training = {"loss": "softmax", "validation": [0.5, 1.0], "max_nodes": None, "words": "千"}
    scorer.save_pretrained(tmp_path / "model")
    opened = TripleScorer.from_pretrained(tmp_path / "model")
    assert (opened.config, opened.embeddings, opened.training) == (scorer.config, scorer.embeddings, scorer.training)
    opened.save_pretrained(str(tmp_path / "again"))
    assert [path.name for path in (tmp_path / "model").iterdir()] == ["model.safetensors"]
    one, again = (tmp_path / name / "model.safetensors" for name in ("model", "again"))
    assert one.read_bytes() == again.read_bytes()
    index = indexed(tiny_graph())
    asked = "who?", np.arange(len(index.graph)), numbers([0])
    assert opened.on(index).score(*asked).tolist() == scorer.on(index).score(*asked).tolist()


def test_distances_need_a_mark() -> None:
    with pytest.raises(InvalidArgumentError, match='topic must be "column" or "pair" unless rounds'):
        TripleScorerConfig(4, topic="none")


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"dimension": 0}, "dimension must be greater than or equal to 1, but got 0"),
        ({"hidden": True}, "hidden must be a valid integer, but got True"),
        ({"reverse_rounds": 1}, "reverse_rounds must be 0 unless directed is true, but got 1"),
        ({"identifiers": "("}, r"identifiers: no regular expression \(missing \), .*\), but got '\('"),
        ({"identifiers": "a{99999999999999}"}, "identifiers: no regular expression .*, but got 'a"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_config_out_of_range(config: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^TripleScorerConfig: .*{message}"):
        TripleScorerConfig(**({"dimension": 8} | config))


def resaved(folder: Path, config: dict[str, Any] | None = None, weights: dict[str, Any] | None = None) -> None:
    """Save a scorer with another config or other weights, which agree to each other; None leaves one out."""
    drawn().save_pretrained(folder)
    of_config, of_weights = load_checkpoint(folder, TripleScorer.method)
    of_config |= config or {}
    of_weights |= weights or {}
    save_checkpoint(
        folder,
        TripleScorer.method,
        {key: value for key, value in of_config.items() if value != "left out"},
        {name: array for name, array in of_weights.items() if array is not None},
    )


@pytest.mark.parametrize(
    "damage",
    [
        {"config": {"hops": "left out"}},
        {"config": {"embeddings": "left out"}},
        {"config": {"training": "left out"}},
        {"config": {"training": 5}},
        {"config": {"hidden": 9}},
        {"config": {"hidden": 10**15}},
        {"config": {"rounds": -1}},
        {"config": {"dimension": "24"}},
        {"config": {"identifiers": "("}},
        {"config": {"identifiers": ["x"]}},
        {"config": {"identifiers": "a{99999999999999}"}},
        {"weights": {"probe": None}},
        {"weights": {"probe": np.zeros(3, np.float32)}},
        {"weights": {"probe": np.full(24, np.nan, np.float32)}},
        {"weights": {"head": None}},
        {"weights": {"head": np.zeros((24, 9), np.float32)}},
        {"weights": {"another": np.zeros(2, np.float32)}},
        {"weights": {"bias": np.full(8, np.nan, np.float32)}},
    ],
    ids=lambda damage: str(damage)[:60],
)
def test_what_is_no_model_of_this_method(tmp_path: Path, damage: dict[str, Any]) -> None:
    resaved(tmp_path, **damage)
    with pytest.raises(ModelLoadError, match=f"^{re.escape(str(tmp_path))}: config and weights are not those of a sub"):
        TripleScorer.from_pretrained(tmp_path)


class Changed(HashedEmbeddings):
    """Hashed embeddings with something added to each vector."""

    def __init__(self, change: float) -> None:
        super().__init__(24)
        self.change = change

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        vectors = np.array(super().embed_documents(texts))
        vectors[:, 0] += self.change
        return [[float(value) for value in row] for row in vectors / np.linalg.norm(vectors, axis=1, keepdims=True)]


@pytest.mark.parametrize(
    "embeddings", [HashedEmbeddings(25), HashedEmbeddings(8), Changed(0.5)], ids=lambda one: type(one).__name__
)
def test_other_embeddings_are_refused(embeddings: Embeddings) -> None:
    """With a message that names both."""
    index, scorer = indexed([("a", "r", "b")], embeddings), drawn()
    with pytest.raises(ModelMismatchError) as caught:
        scorer.on(index)
    assert embedding_name(EMBEDDINGS) in str(caught.value)
    assert embedding_name(embeddings) in str(caught.value)
    assert str(caught.value).startswith("TripleScorer: ")
