"""Training of the graph reasoner on a small task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from training_task import HELD_OUT, INDEX, LEARNED, asked, interrupted, same

from kg_retrievers.datasets import Question
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.index import GraphIndex, HashedEmbeddings
from kg_retrievers.methods.gnn_rag.model import GraphReasoner
from kg_retrievers.methods.gnn_rag.training import ReasonerNetwork, train_graph_reasoner
from kg_retrievers.training import fit
from kg_retrievers.training.dataset import training_questions
from kg_retrievers.training.fit import ModelTraining
from kg_retrievers.training.loop import UNFINISHED

REASONER: dict[str, Any] = {"width": 24, "layers": 2, "instructions": 2, "stages": 1, "learning_rate": 0.02}
LITTLE: dict[str, Any] = REASONER | {"width": 5, "num_examples": 48, "validations": 3}


def reasoned(output: Path | None = None, **arguments: Any) -> ModelTraining[GraphReasoner]:
    """Train a reasoner a little."""
    return train_graph_reasoner(INDEX, LEARNED, HELD_OUT[:9], output=output, **(LITTLE | arguments))


@pytest.fixture(scope="module")
def reasoner() -> ModelTraining[GraphReasoner]:
    return reasoned()


@pytest.mark.heavy
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_reasoner_learns(seed: int) -> None:
    """On films that it never saw, and on another graph whose entities it never saw."""
    done = train_graph_reasoner(INDEX, LEARNED, HELD_OUT, num_examples=1000, validations=4, seed=seed, **REASONER)
    assert done.history[0] < 0.8
    assert done.best == 1
    assert done.unsupervised == 0
    facts = [
        ("Dune", "directed_by", "Lynch"),
        ("Dune", "starred_actor", "MacLachlan"),
        ("Dune", "starred_actor", "Sting"),
        ("Dune", "release_year", "1984"),
        ("Eraserhead", "directed_by", "Lynch"),
    ]
    index = GraphIndex.build(KnowledgeGraph.from_triples(facts), INDEX.embeddings)
    questions = training_questions(index, asked(index.graph, ["Dune"]), 3).usable
    on_graph, names = done.model.on(index), np.arange(len(index.graph.entities))
    for question in questions:
        scores = on_graph.score(question.text, names, question.seeds)
        assert set(np.argsort(-scores)[: len(question.answers)].tolist()) == set(question.answers)


def test_the_same_seed_gives_the_same_reasoner(
    reasoner: ModelTraining[GraphReasoner], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is kept of examples."""
    for room in (fit.KEPT_TRIPLES, 0, 200):
        monkeypatch.setattr(fit, "KEPT_TRIPLES", room)
        again = reasoned()
        assert same(again.model.weights, reasoner.model.weights)
        assert again.history == reasoner.history
        assert again.model.training == reasoner.model.training
    other = reasoned(seed=1).model.weights
    assert not any(same({"": other[name]}, {"": reasoner.model.weights[name]}) for name in ("token", "score"))


@pytest.mark.parametrize("where", ["loss", "validation"])
def test_a_reasoner_goes_on(
    tmp_path: Path, reasoner: ModelTraining[GraphReasoner], monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Interrupted after the first round of three; in the end only the reasoner is there."""
    learner = ReasonerNetwork
    with monkeypatch.context() as patched:
        if where == "loss":
            patched.setattr(learner, "loss", interrupted(LITTLE["num_examples"] // 3 + 1, learner.loss))
        else:
            patched.setattr(fit, "_gain", interrupted(20, fit._gain))
        with pytest.raises(KeyboardInterrupt):
            reasoned(tmp_path, batch_size=4)
    assert [path.name for path in tmp_path.iterdir()] == [UNFINISHED]
    for other in ({"width": 6}, {"mask_seeds": False}, {"max_hops": 2}, {"max_nodes": 3}, {"relative": False}):
        with pytest.raises(InvalidArgumentError, match="unfinished training with other data or settings"):
            reasoned(tmp_path, **({"batch_size": 4} | other))
    again, whole = reasoned(tmp_path, batch_size=4), reasoned(batch_size=4)
    assert same(again.model.weights, whole.model.weights)
    assert again.history == whole.history
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.safetensors"]
    opened = GraphReasoner.from_pretrained(tmp_path)
    assert same(opened.weights, whole.model.weights)
    assert opened.training == whole.model.training
    with pytest.raises(InvalidArgumentError, match=r"^train_graph_reasoner: .* holds a model already\. Name another"):
        reasoned(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"width": 0}, "width must be"),
        ({"mask_seeds": "no"}, "mask_seeds must be a valid boolean, but got 'no'"),
        ({"tokens": "states"}, 'tokens="states" needs embeddings with `embed_tokens`'),
        ({"max_hops": 0}, "train_graph_reasoner: max_hops must be greater than or equal to 1, but got 0"),
        ({"max_nodes": 0}, "train_graph_reasoner: max_nodes must be greater than or equal to 1, but got 0"),
        ({"max_nodes": None}, "train_graph_reasoner: max_nodes must be a valid integer, but got None"),
        ({"hidden": 4}, r"train_graph_reasoner: there is no argument 'hidden'; it takes .*, width\."),
        ({"dimension": 4}, "train_graph_reasoner: there is no argument 'dimension'"),
    ],
    ids=str,
)
def test_arguments_of_a_reasoner_out_of_range(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        reasoned(**arguments)


CHAIN = KnowledgeGraph.from_triples([("Her", "by", "Jonze"), ("Jonze", "made", "Adaptation")])
#: Its answer is one of its own entities, which the other leads to.
OWN = Question("What has Her to do with Jonze?", ("Her", "Jonze"), ("Jonze",))
OTHER = Question("Who made Her?", ("Her",), ("Jonze",))


def test_own_entities_as_answers() -> None:
    """They teach nothing where they are no candidates; left open, they are where enough questions ask for them."""
    index = GraphIndex.build(CHAIN, HashedEmbeddings(16))
    few: dict[str, Any] = LITTLE | {"num_examples": 8, "validations": 2}
    for mask_seeds, masked, unsupervised in ((True, True, 1), (False, False, 0), (None, False, 0)):
        found = train_graph_reasoner(index, [OWN, OTHER], [OTHER], mask_seeds=mask_seeds, **few)
        assert (found.model.config.mask_seeds, found.unsupervised) == (masked, unsupervised)
        assert all(np.isfinite(weight).all() for weight in found.model.weights.values())
    assert train_graph_reasoner(index, [OTHER], **few).model.config.mask_seeds
    with pytest.raises(
        InvalidArgumentError,
        match="^train_graph_reasoner: of 1 question, none has what it should teach among its candidates. Raise "
        r"max_nodes or max_hops, or pass mask_seeds=False\.$",
    ):
        train_graph_reasoner(index, [OWN], [OTHER], mask_seeds=True, **few)
