"""Training of the scorer of triples on a small task."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from training_task import HELD_OUT, INDEX, LEARNED

from kg_retrievers.datasets import Question
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.index import GraphIndex, HashedEmbeddings
from kg_retrievers.methods.subgraph_rag.model import TripleScorer, TripleScorerConfig
from kg_retrievers.methods.subgraph_rag.training import Example, Supervising, TripleNetwork, train_triple_scorer
from kg_retrievers.training.dataset import TrainingQuestion, TrainingQuestions, training_questions
from kg_retrievers.training.fit import ModelTraining, _Examples, _gain

SMALL: dict[str, Any] = {"hidden": 32, "rank": 8}
FEW: dict[str, Any] = {"hidden": 6, "rank": 3, "num_examples": 48, "validations": 3, "learning_rate": 0.02}


@pytest.fixture(scope="module", params=["softmax", "binary"])
def training(request: pytest.FixtureRequest) -> tuple[str, ModelTraining[TripleScorer]]:
    done = train_triple_scorer(
        INDEX, LEARNED, HELD_OUT, loss=request.param, num_examples=600, validations=4, learning_rate=0.03, **SMALL
    )
    return request.param, done


def mean_loss(scorer: TripleScorer, loss: str, questions: TrainingQuestions) -> float:
    """Return the loss of a scorer on some questions."""
    network = TripleNetwork(INDEX, scorer.config, Supervising(loss=loss, max_nodes=2000), np.random.default_rng(0))
    network.embed([question.text for question in questions.usable])
    examples = _Examples(network)
    with torch.no_grad():
        for name, parameter in network.parameters.items():
            parameter.copy_(torch.from_numpy(scorer.weights[name]))
        rng = np.random.default_rng(0)
        return float(np.mean([float(network.loss(examples.of(one), rng)) for one in questions.usable]))


@pytest.mark.heavy
def test_a_scorer_learns(training: tuple[str, ModelTraining[TripleScorer]]) -> None:
    """On films that it never saw."""
    loss, done = training
    assert done.history[0] < 0.5
    assert max(done.history) > 0.9
    assert 1 <= len(done.history) <= 5
    assert done.seconds > 0
    assert (len(done.training.usable), len(done.validation.usable)) == (60, 30)
    drawn = TripleNetwork(INDEX, done.model.config, Supervising(loss=loss), np.random.default_rng([0, 1])).weights
    untrained = TripleScorer(done.model.config, drawn, probe=done.model.probe, embeddings="")
    for questions in (done.training, done.validation):
        assert mean_loss(done.model, loss, questions) < 0.5 * mean_loss(untrained, loss, questions)


def test_the_losses_by_hand() -> None:
    """Three triples, of which the second and the third are relevant."""
    graph = KnowledgeGraph.from_triples(
        [("Her", "in", "2013"), ("Her", "by", "Jonze"), ("Jonze", "made", "Adaptation")]
    )
    index = GraphIndex.build(graph, HashedEmbeddings(16))
    find = graph.entities.find
    question = TrainingQuestion("what _ ?", (find("Her"),), (find("Adaptation"), find("Jonze")), 0)
    far = TrainingQuestion("what _ ?", (find("2013"),), (find("Adaptation"),), 0)
    for kind in ("softmax", "binary"):
        scorer = train_triple_scorer(index, [Question("x", ("Her",), ("Jonze",))], num_examples=1, validations=1).model
        network = TripleNetwork(index, scorer.config, Supervising(loss=kind, max_hops=2), np.random.default_rng(3))
        network.embed([question.text])
        examples = _Examples(network)
        example, nothing = examples.of(question), examples.of(far)
        assert example.positive.tolist() == [False, True, True]
        assert nothing.positive.tolist() == [False, False]  # two hops only, and the answer is three away
        with torch.no_grad():
            scores = network.scores(example, np.arange(3)).double().numpy()
            losses = [float(network.loss(one, np.random.default_rng(0))) for one in (example, nothing)]
        if kind == "softmax":
            expected = np.log(np.exp(scores).sum()) - scores[1:].mean()
        else:
            shares = 1 / (1 + np.exp(-scores))
            expected = -(np.log(1 - shares[0]) + np.log(shares[1]) + np.log(shares[2])) / 3
        assert losses == pytest.approx([expected, 0], abs=1e-5)


def trained(output: Path | None = None, **arguments: Any) -> ModelTraining[TripleScorer]:
    """Train a little."""
    return train_triple_scorer(INDEX, LEARNED, HELD_OUT[:9], output=output, **(FEW | arguments))


@pytest.fixture(scope="module")
def done() -> ModelTraining[TripleScorer]:
    return trained()


def test_nothing_to_train_on() -> None:
    strange = [Question("Who is Xyzzyplugh?", answers=("Film aa",)), Question("Film aa?", answers=("Xyzzyplugh",))]
    for questions, validation, message in (
        ([], None, "nothing to train on: 0 questions. A question needs answers within"),
        (strange, LEARNED, "nothing to train on: 0 questions; not used: 1 name no entity of the graph, 1 have no"),
        (LEARNED, [], "nothing to validate with: 0 questions"),
        (LEARNED, strange, "nothing to validate with: 0 questions; not used: 1 name"),
    ):
        with pytest.raises(InvalidArgumentError, match=f"^train_triple_scorer: there is {message}"):
            train_triple_scorer(INDEX, questions, validation, **FEW)


def test_answers_that_match_nothing_are_named() -> None:
    graph = KnowledgeGraph.from_triples([("Q1", "by", "Q2")], labels={"Q1": "Her", "Q2": "Jonze"})
    index, lost = GraphIndex.build(graph, HashedEmbeddings(8)), Question("Who made Her?", answers=("Lynch",))
    found = Question("Who made Her?", answers=("Jonze",))
    for questions, validation in (([lost], None), ([lost], [found]), ([found], [lost])):
        with pytest.raises(InvalidArgumentError, match=r"1 of 1 gold answers .*'Lynch' \(of 'Who made Her\?'"):
            train_triple_scorer(index, questions, validation, **FEW)


@pytest.mark.parametrize(("count", "learned", "validating"), [(1, 1, 1), (2, 1, 1), (19, 18, 1), (60, 54, 6)])
def test_a_tenth_validates(count: int, learned: int, validating: int) -> None:
    """Of one question alone, it does both."""
    found = train_triple_scorer(INDEX, LEARNED[:count], **(FEW | {"num_examples": 1, "validations": 1}))
    assert (len(found.training.usable), len(found.validation.usable)) == (learned, validating)
    both = {*found.training.usable, *found.validation.usable}
    assert len(both) == count
    in_order = [question for question in training_questions(INDEX, LEARNED[:count], 3).usable if question in both]
    for part in (found.training, found.validation):
        assert part.usable == [question for question in in_order if question in part.usable]


def test_the_gain_counts_answers_that_are_missing() -> None:
    """C is an end of the second triple, D of the third, and a third answer is not in the graph."""
    graph = KnowledgeGraph.from_triples([("A", "r", "B"), ("B", "r", "C"), ("C", "r", "D")])
    index = GraphIndex.build(graph, HashedEmbeddings(8))
    numbers = tuple(graph.entities.find(key) for key in "ACD")
    question = TrainingQuestion("_", numbers[:1], numbers[1:], missing=1)
    example = Example(question, np.array([2, 0, 1]), None, None, None)  # type: ignore[arg-type]
    scorer = SimpleNamespace(index=index, score=lambda *_: np.array([1.0, 3.0, 2.0], np.float32))
    ranked = TripleNetwork(index, TripleScorerConfig(8), Supervising(), np.random.default_rng(0)).rank(scorer, example)  # type: ignore[arg-type]
    assert [graph.entities[number] for number in ranked.tolist()] == list("ABCD")
    best = 1 + 1 / np.log2(3) + 1 / np.log2(4)
    assert _gain(ranked, question) == pytest.approx((1 / np.log2(3) + 1 / np.log2(4)) / best)


@pytest.mark.parametrize("max_nodes", [1, 2])
@pytest.mark.parametrize("loss", ["softmax", "binary"])
def test_answers_that_max_nodes_leaves_out_teach_nothing(loss: Any, max_nodes: int) -> None:
    """And do no harm beside others."""
    facts = [("hub", "to", f"leaf {n}") for n in range(9)] + [("leaf 8", "on", "end")]
    index = GraphIndex.build(KnowledgeGraph.from_triples(facts), HashedEmbeddings(32))
    asked = [Question("where to, hub?", answers=("end",))]
    with pytest.raises(InvalidArgumentError, match="of 1 question, none has what it should teach among its candidates"):
        train_triple_scorer(index, asked, loss=loss, max_nodes=max_nodes, num_examples=8, validations=2, hidden=4)
    asked.append(Question("where to, hub?", answers=("leaf 0",)))
    found = train_triple_scorer(index, asked, asked, loss=loss, max_nodes=9, num_examples=8, validations=2, hidden=4)
    assert (len(found.training.usable), found.unsupervised) == (2, 1)
    assert all(np.isfinite(weight).all() for weight in found.model.weights.values())
