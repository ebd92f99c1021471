"""Trainings whose entities and candidates other processes find: the same models."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from training_task import HELD_OUT, INDEX, LEARNED, same

from kg_retrievers import Question, train_graph_reasoner, train_triple_scorer
from kg_retrievers.bulk import LocalWorkers, Workers
from kg_retrievers.training import fit
from kg_retrievers.training.dataset import training_questions

SHORT: dict[str, Any] = {"num_examples": 60, "validations": 2}
ODD = [
    Question("who is it?", answers=("1980",)),
    Question("who directed Film aa?", ("Film aa",), ("nobody",)),
    Question("who directed Film aa?", ("Film aa",), ("Film aa",)),
]


@pytest.fixture(scope="module", params=["local", pytest.param("ray", marks=pytest.mark.heavy)])
def workers(request: pytest.FixtureRequest) -> Iterator[Workers]:
    if request.param == "local":
        with LocalWorkers(2) as local:
            yield local
        return
    ray_workers = pytest.importorskip("kg_retrievers.bulk.ray_workers", exc_type=ImportError)
    with pytest.MonkeyPatch.context() as patch, ray_workers.RayWorkers(workers=2) as ray:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # of the processes that Ray starts
        yield ray


@pytest.mark.heavy
def test_the_same_questions_are_used(workers: Workers) -> None:
    asked = [*LEARNED, *ODD, *HELD_OUT]
    expected = training_questions(INDEX, asked, 2)
    assert training_questions(INDEX, asked, 2, workers=workers) == expected
    assert len(expected.usable) == len(asked) - 3


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("train", "size"), [(train_triple_scorer, {"hidden": 8}), (train_graph_reasoner, {"width": 8, "layers": 1})]
)
def test_a_model_is_the_same(workers: Workers, train: Any, size: dict[str, Any]) -> None:
    one = train(INDEX, LEARNED, HELD_OUT, **SHORT, **size)
    two = train(INDEX, LEARNED, HELD_OUT, **SHORT, **size, workers=workers)
    assert same(one.model.weights, two.model.weights)
    assert (one.history, one.unsupervised, one.training) == (two.history, two.unsupervised, two.training)
    assert one.model.training == two.model.training


@pytest.mark.heavy
def test_what_does_not_fit_is_made_in_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "KEPT_TRIPLES", 100)
    one = train_triple_scorer(INDEX, LEARNED, HELD_OUT, **SHORT, hidden=8)
    with LocalWorkers(1) as workers:
        two = train_triple_scorer(INDEX, LEARNED, HELD_OUT, **SHORT, hidden=8, workers=workers)
    assert same(one.model.weights, two.model.weights)
