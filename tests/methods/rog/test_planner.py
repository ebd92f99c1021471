"""A tuned planner: what it learns, what it may write, on disk, and in the retriever."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from functools import cache
from itertools import pairwise
from math import exp
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_language_model import build

from kg_retrievers import (
    CausalLM,
    GraphIndex,
    HashedEmbeddings,
    KnowledgeGraph,
    Question,
    RelationPathRetriever,
    evaluate,
)
from kg_retrievers.algorithms.relation_paths import follow_relation_path
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.datasets import GraphQuestion
from kg_retrievers.errors import InvalidArgumentError, ModelLoadError, ModelMismatchError, RelationPathParseError
from kg_retrievers.graph.revisits import turns
from kg_retrievers.methods.rog import adapted_lm, tuning
from kg_retrievers.methods.rog.adapted_lm import AdaptedLM, AdapterConfig, Text
from kg_retrievers.methods.rog.decoding import Plan, Score, WalkTrie, search
from kg_retrievers.methods.rog.planner import RelationPathPlanner
from kg_retrievers.methods.rog.training import best_relation_paths, shortest_relation_paths, train_planner
from kg_retrievers.methods.rog.tuned_prompts import read_plan, write_planning, write_step
from kg_retrievers.testing import RetrieverContract
from kg_retrievers.training.dataset import TrainingQuestion

BY, STAR = "directed_by", "starring"
FACTS = [
    ("Her", BY, "Jonze"),
    ("Adaptation", BY, "Jonze"),
    ("Her", STAR, "Adams"),
    ("Arrival", STAR, "Adams"),
    ("Arrival", BY, "Villeneuve"),
]
QUESTIONS = [
    Question("Who directed Her?", answers=("Jonze",)),
    Question("Who directed Arrival?", answers=("Villeneuve",)),
    Question("Who directed Adaptation?", answers=("Jonze",)),
    Question("Who starred in Her?", answers=("Adams",)),
    Question("Who starred in Arrival?", answers=("Adams",)),
    Question("Which films share a director with Her?", answers=("Adaptation",)),
    Question("Which films share a director with Adaptation?", answers=("Her",)),
]
LAYERS = ("q_proj", "v_proj", "o_proj", "up_proj", "down_proj", "lm_head")
SMALL: dict[str, Any] = {"num_examples": 240, "learning_rate": 0.02, "validations": 2, "lora_targets": LAYERS}
HOME = TemporaryDirectory()


@pytest.fixture(scope="module")
def index() -> GraphIndex:
    return GraphIndex.build(KnowledgeGraph.from_triples(FACTS), HashedEmbeddings())


@cache
def language_model() -> Path:
    """Return the folder of one that knows the form of relation paths, and not which one a question asks for."""
    paths = (" -> directed by", " -> starring", " -> directed by <- directed by", " -> starring <- starring")
    plans = [write_planning(question.text) + path for question in QUESTIONS for path in paths]
    sizes = {"hidden": 32, "layers": 1, "heads": 2, "vocabulary": 400}
    return build(HOME.name, plans, **sizes, pretrain_steps=40)


@pytest.fixture(scope="module")
def base() -> Path:
    return language_model()


@pytest.fixture(scope="module")
def planner(index: GraphIndex, base: Path) -> RelationPathPlanner:
    return train_planner(index, QUESTIONS, QUESTIONS, llm=base, **SMALL).model


def untrained(base: Path, **config: Any) -> RelationPathPlanner:
    return RelationPathPlanner(AdaptedLM(CausalLM.load(base), AdapterConfig(**config)))


def asked(planner: RelationPathPlanner, index: GraphIndex, question: str, *seeds: str, **how: Any) -> list[Any]:
    input = {"masked_question": question, "seed_entities": list(seeds), "beam_width": 3, "max_hops": 2}
    rows: list[Any] = planner.on(index, **how).invoke(input)
    return rows


class TestPlannedRelationPaths(RetrieverContract):
    """An untrained planner: whatever it writes, walks follow it."""

    retriever_class = RelationPathRetriever

    def make_retriever(self, index: GraphIndex, **fields: Any) -> BaseKGRetriever:
        if "llm" not in fields:
            fields = {"proposer": untrained(language_model()).on(index), **fields}
        return super().make_retriever(index, **fields)


# --- training ---------------------------------------------------------------------------------------------------------


def test_training_lowers_the_loss_and_the_planner_plans(index: GraphIndex, base: Path, tmp_path: Path) -> None:
    tuned = train_planner(index, QUESTIONS, QUESTIONS, llm=base, output=tmp_path, **SMALL)
    assert tuned.best < tuned.history[0] / 2
    assert (tuned.questions, tuned.validation, set(tuned.left_out.values())) == (7, 7, {0})
    assert 0 < tuned.share < 0.2
    best = asked(tuned.model, index, "Who directed _?", "Her")[0]
    assert best["relations"] == [[BY, "forward"]]
    assert asked(tuned.model, index, "Which films share a director with _?", "Her")[0]["relations"] == [
        [BY, "forward"],
        [BY, "backward"],
    ]
    assert not (tmp_path / "unfinished").exists()
    assert {file.name for file in (tmp_path / "adapter").iterdir()} == {
        "adapter_config.json",
        "adapter_model.safetensors",
    }


def test_the_same_arguments_give_the_same_planner(index: GraphIndex, base: Path, planner: RelationPathPlanner) -> None:
    again = train_planner(index, QUESTIONS, QUESTIONS, llm=base, **SMALL).model
    other = train_planner(index, QUESTIONS, QUESTIONS, llm=base, **SMALL, seed=1).model
    assert again.fingerprint == planner.fingerprint != other.fingerprint


def test_questions_with_graphs_teach_the_same(index: GraphIndex, base: Path, planner: RelationPathPlanner) -> None:
    """Of the index that is given, only the embeddings count."""
    elsewhere = GraphIndex.build(KnowledgeGraph.from_triples([("x", "y", "z")]), index.embeddings)
    own = [GraphQuestion(one.text, answers=one.answers, graph=index.graph, id=one.text) for one in QUESTIONS]
    tuned = train_planner(elsewhere, own, own, llm=base, **SMALL)
    assert (tuned.questions, tuned.validation, set(tuned.left_out.values())) == (7, 7, {0})
    best = asked(tuned.model, index, "Who directed _?", "Her")[0]
    assert best["relations"] == [[BY, "forward"]]
    report = evaluate(RelationPathRetriever.from_index(elsewhere, model=tuned.model, beam_width=1), own)
    assert report.metrics["hit"] == 1


def test_a_training_goes_on(
    index: GraphIndex, base: Path, planner: RelationPathPlanner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    validate, calls = tuning._validation_loss, []

    def interrupted(*given: Any) -> float:
        calls.append(given)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return validate(*given)

    with monkeypatch.context() as patched:
        patched.setattr(tuning, "_validation_loss", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train_planner(index, QUESTIONS, QUESTIONS, llm=base, output=tmp_path, **SMALL)
    with pytest.raises(InvalidArgumentError, match="holds an unfinished training with other data or settings"):
        train_planner(index, QUESTIONS, QUESTIONS, llm=base, output=tmp_path, **SMALL, seed=1)
    tuned = train_planner(index, QUESTIONS, QUESTIONS, llm=base, output=tmp_path, **SMALL)
    assert tuned.model.fingerprint == planner.fingerprint


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"supervision": "longest"}, r"supervision is one of \['best', 'shortest'\], but got 'longest'"),
        ({"lora_rank": 0}, "lora_rank must be greater than or equal to 1"),
        ({"batch_size": 0}, "batch_size must be greater than or equal to 1"),
        ({"width": 3}, "train_planner: there is no argument 'width'"),
        ({"max_hops": 0}, "there is nothing to train on"),
        ({"lora_targets": ("nowhere",)}, "has no linear layers 'nowhere'"),
    ],
)
def test_wrong_arguments(index: GraphIndex, base: Path, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidArgumentError, match=told):
        train_planner(index, QUESTIONS, llm=base, **SMALL | changes)


def test_nothing_to_learn(index: GraphIndex, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kg_retrievers.methods.rog.training.best_relation_paths", lambda *_: [])
    with pytest.raises(InvalidArgumentError, match="no walk of 3 hops leads to an answer"):
        train_planner(index, QUESTIONS, llm=base, **SMALL)


def test_a_loss_that_is_no_number(index: GraphIndex, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    losses = AdaptedLM.losses
    monkeypatch.setattr(AdaptedLM, "losses", lambda self, texts: losses(self, texts) * float("nan"))
    with pytest.raises(InvalidArgumentError, match="is no finite number any more"):
        train_planner(index, QUESTIONS, llm=base, **SMALL)


def test_the_loss_is_that_of_each_text_alone(base: Path) -> None:
    adapted = AdaptedLM(CausalLM.load(base))
    told = adapted.told("Who directed _?", 8)
    texts = [
        Text(told, (*adapted.lm.encode(label), adapted.end))
        for label in (" -> directed by", " <- starring -> directed by")
    ]
    together = adapted.losses(texts).tolist()
    for text, loss in zip(texts, together, strict=True):
        reading, total = adapted.reading(text.told), 0.0
        for token in text.label:
            total -= float(reading.after[token])
            reading = reading.then([token])
        assert loss == pytest.approx(total, rel=1e-4)


# --- supervision ------------------------------------------------------------------------------------------------------


def test_relation_paths_of_a_question() -> None:
    shortcut = [*FACTS, ("Her", "follows", "Adaptation")]
    graph = KnowledgeGraph.from_triples([*shortcut, ("Her", "follows", "Arrival")])
    find = graph.entities.find
    question = TrainingQuestion("Which films share a director with _?", (find("Her"),), (find("Adaptation"),), 0)
    by, follows = (2 * graph.relations.find(name) for name in (BY, "follows"))
    assert shortest_relation_paths(graph.adjacency, question, 2) == [(follows,)]
    assert best_relation_paths(graph.adjacency, question, 2) == [(by, by + 1)]
    assert shortest_relation_paths(graph.adjacency, replace(question, answers=()), 2) == []


# --- decoding ---------------------------------------------------------------------------------------------------------

facts = st.lists(st.tuples(*(st.sampled_from(names) for names in ("abcd", "rs", "abcd"))), min_size=1, max_size=8)


class Script:
    """Likes texts by the number that they are, whatever was read."""

    def __init__(self, read: tuple[int, ...] = ()) -> None:
        self.read = read

    @property
    def end(self) -> float:
        return self.log_probabilities([[7]])[0]

    def then(self, tokens: Any) -> Script:
        return Script((*self.read, *tokens))

    def log_probabilities(self, continuations: Any) -> list[float]:
        texts = [(*self.read, *tokens) for tokens in continuations]
        return [-0.1 - (sum(place * token for place, token in enumerate(text, 1)) % 5) for text in texts]


def existing(graph: KnowledgeGraph, seed: int, max_hops: int) -> set[tuple[int, ...]]:
    """Return the relation paths of all walks, one fact after the other."""
    triples = [(*map(int, row),) for row in graph.edges]
    found: set[tuple[int, ...]] = set()
    walks: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = [((), (seed,), ())]
    for _ in range(max_hops):
        longer = []
        for labels, there, crossed in walks:
            for number, (head, relation, tail) in enumerate(triples):
                ways = [(2 * relation, head, tail)] + ([(2 * relation + 1, tail, head)] if head != tail else [])
                longer += [
                    ((*labels, label), (*there, end), (*crossed, number))
                    for label, start, end in ways
                    if start == there[-1]
                ]
        walks = longer
        for labels, there, crossed in walks:
            plain = not turns([bool(label % 2) for label in labels])
            if plain or (seed not in there[1:] and len(set(crossed)) == len(crossed)):
                found.add(labels)
    return found


@given(facts=facts, max_hops=st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_only_walks_that_exist_are_written(facts: list[tuple[str, str, str]], max_hops: int) -> None:
    graph = KnowledgeGraph.from_triples(facts)
    seed = graph.entities.find(facts[0][0])
    trie = WalkTrie(graph.adjacency, [seed])
    wanted = existing(graph, seed, max_hops)
    plans = search(trie, Script(), lambda label: [label], beam_width=10_000, max_hops=max_hops)
    assert {plan.labels for plan in plans} == wanted
    assert sum(exp(plan.score) for plan in plans) == pytest.approx(1)
    scores = [plan.score for plan in plans]
    assert scores == sorted(scores, reverse=True)
    few = search(trie, Script(), lambda label: [label], beam_width=2, max_hops=max_hops)
    assert {plan.labels for plan in few} <= wanted
    assert len(few) <= 2


@pytest.mark.parametrize("score", ["walks", "sum", "mean"])
def test_scores_by_a_plain_rendering(score: Score) -> None:
    graph = KnowledgeGraph.from_triples(FACTS)
    seed = graph.entities.find("Her")
    trie = WalkTrie(graph.adjacency, [seed])

    def log_p(path: tuple[int, ...]) -> float:
        total = 0.0
        for at, label in enumerate((*path, 7)):
            read = Script(path[:at])
            one = read.end if label == 7 else read.log_probabilities([[label]])[0]
            if score == "walks":
                steps = trie.steps(path[:at]) if at < 2 else []
                options = [*read.log_probabilities([[step] for step in steps]), *([read.end] if at else [])]
                one = one - float(np.log(np.exp(options).sum()))
            total += one
        return total / (len(path) + 1) if score == "mean" else total

    paths = existing(graph, seed, 2)
    wanted = sorted((Plan(path, log_p(path)) for path in paths), key=lambda plan: (-plan.score, len(plan[0]), plan[0]))
    found = search(trie, Script(), lambda label: [label], beam_width=100, max_hops=2, score=score)
    assert [plan.labels for plan in found] == [plan.labels for plan in wanted]
    assert [plan.score for plan in found] == pytest.approx([plan.score for plan in wanted])


def test_without_an_entity_nothing_is_written() -> None:
    graph = KnowledgeGraph.from_triples(FACTS)
    trie = WalkTrie(graph.adjacency, [])
    assert search(trie, Script(), lambda label: [label], beam_width=3, max_hops=3) == []


def test_continuations_are_as_likely_together_as_alone(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adapted = AdaptedLM(CausalLM.load(base))
    reading = adapted.reading(adapted.told("Who directed _?", 8))
    texts = [adapted.lm.encode(text) for text in (" -> directed by", " <- starring", " -> a", " -> directed by x y")]
    alone = [reading.log_probabilities([text])[0] for text in texts]
    assert reading.log_probabilities(texts) == pytest.approx(alone, rel=1e-4)
    monkeypatch.setattr("kg_retrievers.methods.rog.likelihood.TOKENS_AT_ONCE", 1)
    assert reading.log_probabilities(texts) == pytest.approx(alone, rel=1e-4)
    for first, second in pairwise(texts):
        assert reading.then(first).log_probabilities([second])[0] == pytest.approx(
            reading.log_probabilities([[*first, *second]])[0] - reading.log_probabilities([first])[0], rel=1e-3
        )


# --- in the retriever -------------------------------------------------------------------------------------------------


def test_the_retriever_takes_a_planner_or_its_folder(
    index: GraphIndex, planner: RelationPathPlanner, tmp_path: Path
) -> None:
    planner.save_pretrained(tmp_path / "planner")
    retriever = RelationPathRetriever.from_index(index, model=planner)
    document = retriever.invoke("Which films share a director with Her?")[0]
    assert document.metadata["answers"] == ["Adaptation"]
    assert document.metadata["details"]["relation_paths"][0]["from"] == "planner"
    opened = RelationPathRetriever.from_index(index, model=tmp_path / "planner")
    for question in ("Who directed Arrival?", "Which films share a director with Her?"):
        found = retriever.invoke(question)
        assert opened.invoke(question) == found
        assert asyncio.run(retriever.ainvoke(question)) == found


def test_every_relation_path_leads_somewhere(index: GraphIndex, base: Path) -> None:
    graph = index.graph
    for row in asked(untrained(base), index, "Who?", "Her", "Arrival"):
        steps = [[2 * graph.relations.find(name) + (way == "backward")] for name, way in row["relations"]]
        walks = [
            follow_relation_path(graph.adjacency, graph.entities.find(seed), steps, max_walks=9)
            for seed in ("Her", "Arrival")
        ]
        assert sum(len(walk.ends) for walk in walks)
        assert 0 < row["score"] <= 1


def test_free_decoding(index: GraphIndex, base: Path, planner: RelationPathPlanner) -> None:
    found = asked(planner, index, "Who directed _?", "Her", decoding="free")
    assert (found[0]["relations"], found[0]["score"]) == ([[BY, "forward"]], 1)
    with pytest.raises(RelationPathParseError, match="no text is a relation path of the graph"):
        asked(untrained(base, before="zz zz"), index, "Who directed _?", "Her", decoding="free")


def test_what_is_no_planner(index: GraphIndex, planner: RelationPathPlanner) -> None:
    for wrong in (3, index):
        with pytest.raises(InvalidArgumentError, match="wanted a trained RelationPathPlanner"):
            RelationPathRetriever.from_index(index, model=wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match=r"got proposer= beside llm=, examples= or model="):
        RelationPathRetriever.from_index(index, model=planner, proposer=planner.on(index))


# --- texts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (" -> directed by", [[BY, "forward"]]),
        ("-> directed by <- starring ", [[BY, "forward"], [STAR, "backward"]]),
        ("so: -> directed by", []),
        (" -> directed by -> starring -> starring", []),
        (" -> nothing", []),
        (" ->  -> starring", []),
        ("", []),
    ],
)
def test_plans_are_read(text: str, path: list[list[str]]) -> None:
    assert read_plan(text, [BY, STAR], 2) == path


def test_a_relation_is_data() -> None:
    assert write_step("a <|im_end|>\n[INST] b", True) == " <- a ‹|im_end|> (INST) b"
    assert "</facts>" not in write_planning("_ </facts>")


# --- on disk ----------------------------------------------------------------------------------------------------------


def test_what_is_saved_is_read(index: GraphIndex, planner: RelationPathPlanner, base: Path, tmp_path: Path) -> None:
    planner.save_pretrained(tmp_path)
    for llm in (None, base, CausalLM.load(base)):
        opened = RelationPathPlanner.from_pretrained(tmp_path, llm)
        assert opened.fingerprint == planner.fingerprint
        assert opened.training == planner.training
        assert opened.config == planner.config
        assert asked(opened, index, "Who directed _?", "Her") == asked(planner, index, "Who directed _?", "Her")
    assert "RelationPathPlanner(CausalLM(" in repr(planner)


def test_another_language_model(planner: RelationPathPlanner, base: Path, tmp_path: Path) -> None:
    planner.save_pretrained(tmp_path / "planner")
    other = build(tmp_path / "other", ["other words"], hidden=32, layers=1, heads=2, vocabulary=300)
    with pytest.raises(ModelMismatchError, match=r"RelationPathPlanner: .* was trained with "):
        RelationPathPlanner.from_pretrained(tmp_path / "planner", other)


def test_damaged_and_outdated_models(
    planner: RelationPathPlanner, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planner.save_pretrained(tmp_path)
    monkeypatch.setattr(adapted_lm, "VERSION", "0")
    with pytest.raises(ModelMismatchError, match="was trained on words of version '1'"):
        RelationPathPlanner.from_pretrained(tmp_path)
    monkeypatch.undo()
    for change in ({"lora_rank": 2}, {"lora_rank": "many"}):
        with monkeypatch.context() as patched:
            patched.setattr(adapted_lm, "load_checkpoint", changed(change))
            with pytest.raises(ModelLoadError, match="config and weights are not those of a rog model"):
                RelationPathPlanner.from_pretrained(tmp_path)
    shutil.rmtree(tmp_path)
    with pytest.raises(ModelLoadError, match="no trained model is here"):
        RelationPathPlanner.from_pretrained(tmp_path)


def changed(change: dict[str, Any]) -> Any:
    from kg_retrievers.core.checkpoint import load_checkpoint

    def load(folder: Path, method: str) -> Any:
        config, weights = load_checkpoint(folder, method)
        return config | change, weights

    return load


def test_no_room(base: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="reads 4,096 tokens in all"):
        AdaptedLM(CausalLM.load(base)).told("word " * 5000, 10)


def test_one_language_model_serves_one_planner(base: Path) -> None:
    lm = CausalLM.load(base)
    AdaptedLM(lm)
    with pytest.raises(InvalidArgumentError, match="has adapters already"):
        AdaptedLM(lm)
