"""Training: what is trained on, the rounds of a trainer, and the scorer and the reasoner on a small task."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import get_ident
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from langchain_core.vectorstores import InMemoryVectorStore

from kg_retrievers.core.checkpoint import load_checkpoint, save_checkpoint
from kg_retrievers.datasets import Question
from kg_retrievers.errors import InvalidArgumentError, ModelLoadError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.index import GraphIndex, HashedEmbeddings, VectorStoreSearch, embedding_name
from kg_retrievers.methods.gnn_rag import training as graph_reasoner_training
from kg_retrievers.methods.gnn_rag.model import GraphReasoner
from kg_retrievers.methods.gnn_rag.training import train_graph_reasoner
from kg_retrievers.methods.subgraph_rag import training as triple_scorer_training
from kg_retrievers.methods.subgraph_rag.model import TripleScorer, TripleScorerConfig
from kg_retrievers.methods.subgraph_rag.training import Example, _chosen, _Network, train_triple_scorer
from kg_retrievers.testing import tiny_graph
from kg_retrievers.training import fit as question_training
from kg_retrievers.training.dataset import TrainingQuestion, TrainingQuestions, training_questions
from kg_retrievers.training.fit import ModelTraining, _Examples, _gain
from kg_retrievers.training.loop import LAST_RATE, UNFINISHED, Schedule, Trainer, forget_unfinished

TINY = GraphIndex.build(tiny_graph(), HashedEmbeddings(32))

# --- what is trained on -----------------------------------------------------------------------------------------------


def taught(*questions: Question, max_hops: int = 3) -> TrainingQuestions:
    return training_questions(TINY, questions, max_hops)


def places(*keys: str) -> tuple[int, ...]:
    return tuple(TINY.graph.entities.find(key) for key in keys)


def test_entities_are_given_or_linked() -> None:
    """What is given counts, and nothing else that the question names."""
    found = taught(
        Question("Who directed Her?", answers=("Spike Jonze",)),
        Question("Did Spike Jonze direct Her?", ("Her",), ("Spike Jonze",)),
        Question("Who directed it?", ("Her",), ("Spike Jonze",)),
        Question("Who directed Dune?", answers=("Denis Villeneuve", "David Lynch")),
    )
    dunes = places("Dune (1984)", "Dune (2021)")
    assert found == TrainingQuestions(
        [
            TrainingQuestion("Who directed _?", places("Her"), places("Spike Jonze"), 0),
            TrainingQuestion("Did Spike Jonze direct _?", places("Her"), places("Spike Jonze"), 0),
            TrainingQuestion("Who directed it?", places("Her"), places("Spike Jonze"), 0),
            TrainingQuestion("Who directed _?", dunes, places("Denis Villeneuve", "David Lynch"), 0),
        ],
        0,
        0,
        0,
    )
    assert str(found) == "4 questions"


def test_why_questions_are_left_out() -> None:
    found = taught(
        Question("Who directed it?", answers=("Spike Jonze",)),  # names nothing
        Question("Who directed Her?", ("Hero",), ("Spike Jonze",)),  # what is given is not looked for
        Question("Who directed Her?", answers=("Hero",)),
        Question("Who directed Her?"),
        Question("Who directed Her?", answers=("Denis Villeneuve",)),  # in another part of the graph
        Question("Who starred in Her?", answers=("Her",)),  # nothing to find
        Question("What is a Western?", answers=("Her",)),  # without facts
        Question("Who wrote Adaptation?", answers=("Charlie Kaufman",)),
    )
    assert found.usable == [TrainingQuestion("Who wrote _?", places("Adaptation"), places("Charlie Kaufman"), 0)]
    assert (found.without_entities, found.without_answers, found.unreachable) == (2, 2, 3)
    assert str(found) == (
        "1 question; not used: 2 name no entity of the graph, 2 have no answer that is a key of the graph, "
        "3 have no answer near their entities"
    )


def test_answers_and_entities_that_are_not_in_the_graph() -> None:
    """Those that are stay; missing answers are counted, repeated ones are not."""
    found = taught(
        Question("Who starred in Amélie?", ("Amelie", "Amélie"), ("Audrey Tautou", "Nobody", "Audrey Tautou", "None"))
    )
    assert found.usable == [TrainingQuestion("Who starred in _?", places("Amélie"), places("Audrey Tautou"), 2)]


def test_an_entity_may_be_one_of_several_answers() -> None:
    found = taught(Question("What did Spike Jonze make?", answers=("Spike Jonze", "Her")))
    assert [question.answers for question in found.usable] == [places("Spike Jonze", "Her")]


def test_own_entities_may_count_as_answers() -> None:
    """Where they stand, and no answer that is in another part of the graph."""
    asked = Question("Who starred in Her?", answers=("Her",)), Question("Who?", ("Her",), ("Denis Villeneuve",))
    found = training_questions(TINY, asked, 3, own_entities=True)
    assert found == TrainingQuestions([TrainingQuestion("Who starred in _?", places("Her"), places("Her"), 0)], 0, 0, 1)


@pytest.mark.parametrize(("max_hops", "usable"), [(0, 0), (1, 0), (2, 0), (3, 1), (99, 1)])
def test_answers_beyond_max_hops(max_hops: int, usable: int) -> None:
    """Her, Spike Jonze, Adaptation, Charlie Kaufman."""
    found = taught(Question("Who?", ("Her",), ("Charlie Kaufman",)), max_hops=max_hops)
    assert (len(found.usable), found.unreachable) == (usable, 1 - usable)


def test_no_questions() -> None:
    assert taught() == TrainingQuestions([], 0, 0, 0)
    empty = GraphIndex.build(KnowledgeGraph.from_triples([]), HashedEmbeddings(32))
    assert training_questions(empty, [Question("Who directed Her?", ("Her",), ("x",))], 3).without_entities == 1


def test_many_are_written_with_commas() -> None:
    assert str(TrainingQuestions([], 12_345, 0, 1_000)).startswith("0 questions; not used: 12,345 name no entity")


# --- the trainer ------------------------------------------------------------------------------------------------------

SCHEDULE: dict[str, Any] = {
    "visits": 40,
    "validations": 5,
    "patience": 5,
    "batch_size": 4,
    "learning_rate": 0.1,
    "seed": 0,
}
ITEMS = list(range(10))


class Toy:
    """Two weights that are drawn to the items; validations are scripted, by default how near they are to 4.5."""

    def __init__(self, script: Sequence[float] | None = None) -> None:
        generator = torch.Generator().manual_seed(0)
        self.parameters = {
            name: torch.randn(shape, generator=generator).requires_grad_() for name, shape in (("a", (3,)), ("b", ()))
        }
        self.script = script
        self.seen: list[dict[str, Any]] = []
        self.batches: list[list[int]] = []

    def loss(self, examples: Sequence[float], rng: np.random.Generator) -> torch.Tensor:
        self.batches.append([int(example) for example in examples])
        noise = float(rng.normal(0, 0.1))
        wanted = torch.tensor(examples) + noise
        return ((self.parameters["a"].sum() + self.parameters["b"] - wanted) ** 2).mean()

    def weights(self) -> dict[str, Any]:
        return {name: parameter.detach().numpy().copy() for name, parameter in self.parameters.items()}

    def validate(self) -> float:
        self.seen.append(self.weights())
        if self.script is not None:
            return self.script[len(self.seen) - 1]
        return -abs(float(self.seen[-1]["a"].sum() + self.seen[-1]["b"]) - 4.5)

    def trainer(self, output: Path | None = None, **arguments: Any) -> Trainer[int, float]:
        schedule = {name: arguments.pop(name, value) for name, value in SCHEDULE.items()}
        return Trainer(
            **{
                "parameters": self.parameters,
                "items": ITEMS,
                "prepare": float,
                "loss": self.loss,
                "validate": self.validate,
                "schedule": Schedule(**schedule),
                "identity": "toy",
                "output": output,
            }
            | arguments
        )


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Tell whether weights are the same bit for bit."""
    return one.keys() == other.keys() and all(one[name].tobytes() == other[name].tobytes() for name in one)


def test_it_learns() -> None:
    toy = Toy()
    history = toy.trainer(visits=400).run()
    assert len(history) == 6
    assert history[0] < history[-1] > -0.5


@pytest.mark.parametrize(
    ("script", "patience", "rounds", "best"),
    [
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], 9, 5, 5),
        ([0.1, 0.5, 0.3, 0.4, 0.2, 0.1], 9, 5, 1),
        ([0.1, 0.5, 0.3, 0.4, 0.2, 0.1], 2, 3, 1),
        ([0.1, 0.5, 0.5, 0.5, 0.9, 0.9], 3, 5, 5),  # of equal ones the last counts
        ([0.1, 0.5, 0.5, 0.5, 0.9, 0.9], 2, 3, 3),
        ([0.9, 0.5, 0.6, 0.7, 0.8, 0.9], 1, 1, 1),  # before the training nothing counts
        ([0.9, 0.5, 0.6, 0.7, 0.8, 0.9], 5, 5, 5),
        ([-3.0, -2.0, -4.0, -1.0, -1.5, -9.0], 2, 5, 3),
        ([0.0] * 6, 3, 3, 3),
    ],
)
def test_it_ends_and_restores_the_best_round(script: list[float], patience: int, rounds: int, best: int) -> None:
    toy = Toy(script)
    assert toy.trainer(patience=patience).run() == script[: rounds + 1]
    assert len(toy.seen) == rounds + 1
    assert same(toy.weights(), toy.seen[best])
    assert not any(same(toy.seen[best], other) for place, other in enumerate(toy.seen) if place != best)


def test_each_item_once_an_epoch() -> None:
    """In another order each time, which the seed says, in batches of one size."""
    toy, other = Toy(), Toy()
    toy.trainer().run()
    visited = [item for batch in toy.batches for item in batch]
    assert {len(batch) for batch in toy.batches} == {4}
    epochs = [visited[start : start + 10] for start in range(0, 40, 10)]
    assert all(sorted(epoch) == ITEMS for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 4
    other.trainer(seed=1).run()
    assert [item for batch in other.batches for item in batch] != visited


def test_one_item_and_few_visits() -> None:
    """A round has one step at least."""
    toy = Toy()
    assert len(toy.trainer(items=[3], visits=1).run()) == 6
    assert toy.batches == [[3] * 4] * 5


def test_rounds_share_the_visits() -> None:
    toy = Toy([0.0] * 9)
    counted: list[int] = []
    toy.trainer(
        visits=40, validations=3, patience=9, validate=lambda: counted.append(len(toy.batches)) or float(len(counted))
    ).run()
    assert counted == [0, 3, 6, 10]


def test_the_learning_rate_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    rates: list[float] = []

    class Watched(torch.optim.Adam):
        def step(self, *arguments: Any) -> Any:
            rates.append(self.param_groups[0]["lr"])
            return super().step(*arguments)

    monkeypatch.setattr(torch.optim, "Adam", Watched)
    Toy().trainer().run()
    assert rates == pytest.approx([0.1 * max(LAST_RATE, 1 - step / 10) for step in range(10)])


def test_examples_are_prepared_on_other_threads() -> None:
    threads = set[int]()

    def prepare(item: int) -> float:
        threads.add(get_ident())
        return float(item)

    Toy().trainer(prepare=prepare).run()
    assert threads
    assert get_ident() not in threads


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("where", ["nowhere", "prepare", "loss", "validate"])
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_torch_has_its_threads_again(where: str, error: type[BaseException]) -> None:
    """After an error, too, which is raised."""
    toy = Toy()
    inside: list[int] = []

    def fail(*arguments: Any) -> Any:
        inside.append(torch.get_num_threads())
        raise error

    if where == "nowhere":
        watched = toy.trainer(validate=lambda: float(inside.append(torch.get_num_threads()) or 0))
        watched.run()
    else:
        with pytest.raises(error):
            toy.trainer(**{where: fail}).run()
    assert where == "prepare" or set(inside) == {1}
    assert torch.get_num_threads() == 2


def test_progress_is_shown_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    Toy().trainer().run()
    assert capsys.readouterr() == ("", "")
    Toy([0.125] * 6).trainer(progress=True).run()
    out, err = capsys.readouterr()
    assert out == ""
    assert "Training" in err
    assert "0.125" in err


@pytest.mark.parametrize(
    ("number", "message"),
    [
        ({"visits": 0}, "visits must be a whole number, 1 or more, but got 0"),
        ({"visits": 1.5}, "visits must be a whole number, 1 or more, but got 1.5"),
        ({"validations": 0}, "validations must be a whole number, 1 or more, but got 0"),
        ({"validations": True}, "validations must be a whole number, 1 or more, but got True"),
        ({"patience": 0}, "patience must be a whole number, 1 or more, but got 0"),
        ({"patience": None}, "patience must be a whole number, 1 or more, but got None"),
        ({"batch_size": -8}, "batch_size must be a whole number, 1 or more, but got -8"),
        ({"batch_size": "8"}, "batch_size must be a whole number, 1 or more, but got '8'"),
        ({"seed": -1}, "seed must be a whole number, 0 or more, but got -1"),
        ({"learning_rate": 0}, "learning_rate must be above 0 and below 1, but got 0"),
        ({"learning_rate": 1}, "learning_rate must be above 0 and below 1, but got 1"),
        ({"learning_rate": float("nan")}, "learning_rate must be above 0 and below 1, but got nan"),
        ({"learning_rate": "0.1"}, "learning_rate must be above 0 and below 1, but got '0.1'"),
        ({"learning_rate": None}, "learning_rate must be above 0 and below 1, but got None"),
    ],
    ids=str,
)
def test_schedules_out_of_range(number: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        Schedule(**(SCHEDULE | number))


# --- an unfinished training -------------------------------------------------------------------------------------------


def interrupted(calls: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that can be called some times and is interrupted then."""
    left = [calls]

    def call(*arguments: Any) -> Any:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return function(*arguments)

    return call


@pytest.mark.parametrize(
    ("where", "calls"), [("validate", 1), ("validate", 2), ("validate", 4), ("loss", 1), ("loss", 3), ("loss", 9)]
)
def test_going_on(tmp_path: Path, where: str, calls: int) -> None:
    """Interrupted in any round, twice: the weights are those of a training without, bit for bit."""
    whole = Toy()
    expected = whole.trainer().run()
    for _ in range(2):
        toy = Toy()
        with pytest.raises(KeyboardInterrupt):
            toy.trainer(tmp_path, **{where: interrupted(calls, getattr(toy, where))}).run()
        calls = 1
    toy = Toy()
    assert toy.trainer(tmp_path).run() == expected
    assert same(toy.weights(), whole.weights())
    assert (tmp_path / UNFINISHED).is_dir()


def test_the_best_round_is_kept_through_an_interruption(tmp_path: Path) -> None:
    script = [0.1, 0.9, 0.2, 0.3, 0.4, 0.5]
    whole, toy = Toy(script), Toy(script)
    whole.trainer().run()
    with pytest.raises(KeyboardInterrupt):
        toy.trainer(tmp_path, validate=interrupted(4, toy.validate)).run()
    again = Toy(script[4:])
    assert again.trainer(tmp_path).run() == script
    assert same(again.weights(), whole.weights())
    assert same(again.weights(), whole.seen[1])


@pytest.mark.parametrize("patience", [1, 5])
def test_what_is_finished_is_not_gone_on_with(tmp_path: Path, patience: int) -> None:
    """Whether it ended early or not, as when it was interrupted before the model was saved."""
    script = [0.2, 0.3, 0.1, 0.1, 0.1, 0.1]
    first, again = Toy(script), Toy([])
    history = first.trainer(tmp_path, patience=patience).run()
    assert again.trainer(tmp_path, patience=patience).run() == history
    assert same(again.weights(), first.weights())
    assert not again.batches
    assert not again.seen


def unfinished(folder: Path) -> Path:
    """Leave a training in a folder that was interrupted in its third round."""
    toy = Toy()
    with pytest.raises(KeyboardInterrupt):
        toy.trainer(folder, validate=interrupted(3, toy.validate)).run()
    return folder / UNFINISHED


@pytest.mark.parametrize(
    "other", [{"identity": "other"}, *({name: value * 2 or 1} for name, value in SCHEDULE.items())], ids=str
)
def test_another_training_is_refused(tmp_path: Path, other: dict[str, Any]) -> None:
    before = {path.name: path.read_bytes() for path in unfinished(tmp_path).iterdir()}
    with pytest.raises(InvalidArgumentError, match=r"unfinished training with other data or settings\. Go on with"):
        Toy().trainer(tmp_path, **other).run()
    assert {path.name: path.read_bytes() for path in (tmp_path / UNFINISHED).iterdir()} == before


def rewritten(folder: Path, config: dict[str, Any], weights: dict[str, Any]) -> None:
    """Change an unfinished training, so that its files agree to each other; None leaves a weight out."""
    of_config, of_weights = load_checkpoint(folder, UNFINISHED)
    kept = {name: array for name, array in (of_weights | weights).items() if array is not None}
    save_checkpoint(folder, UNFINISHED, of_config | config, kept)


@pytest.mark.parametrize(
    ("config", "weights"),
    [
        ({}, {"now.a": None}),
        ({}, {"best.b": None}),
        ({}, {"exp_avg.a": None}),
        ({}, {"now.a": np.zeros(4, np.float32)}),
        ({"history": None}, {}),
        ({"history": [None]}, {}),
        ({"history": 5}, {}),
    ],
    ids=str,
)
def test_damaged_inside(tmp_path: Path, config: dict[str, Any], weights: dict[str, Any]) -> None:
    rewritten(unfinished(tmp_path), config, weights)
    with pytest.raises(ModelLoadError, match=r"the unfinished training is damaged: .*\. Delete that folder\."):
        Toy().trainer(tmp_path).run()


def test_damaged_files(tmp_path: Path) -> None:
    (unfinished(tmp_path) / "model.safetensors").write_bytes(b"")
    with pytest.raises(ModelLoadError, match=r"the unfinished training is damaged\. Delete that folder"):
        Toy().trainer(tmp_path).run()
    (tmp_path / UNFINISHED / "config.json").write_text("{")
    with pytest.raises(ModelLoadError, match=r"the unfinished training is damaged\. Delete that folder"):
        Toy().trainer(tmp_path).run()
    (tmp_path / UNFINISHED / "config.json").unlink()
    Toy().trainer(tmp_path).run()  # as if there were none


def test_forget(tmp_path: Path) -> None:
    folder = unfinished(tmp_path)
    (folder / "notes.txt").write_text("mine")
    forget_unfinished(tmp_path)
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
    (folder / "notes.txt").unlink()
    forget_unfinished(tmp_path)
    forget_unfinished(tmp_path)
    assert not folder.exists()


# --- the scorer of triples on a small task ----------------------------------------------------------------------------

TEMPLATES = {
    "directed_by": "who directed {}?",
    "starred_actor": "who acted in {}?",
    "release_year": "when was {} released?",
}
FILMS = [f"Film {first}{second}" for first in "abcdef" for second in "aeiou"]


def films() -> KnowledgeGraph:
    """Return 30 films, each with a director, one or two actors and a year that others share."""
    return KnowledgeGraph.from_triples(
        fact
        for number, film in enumerate(FILMS)
        for fact in (
            (film, "directed_by", f"Director {number % 12}"),
            (film, "starred_actor", f"Actor {number % 9}"),
            (film, "starred_actor", f"Actor {number * 7 % 9}"),
            (film, "release_year", str(1980 + number % 8)),
        )
    )


INDEX = GraphIndex.build(films(), HashedEmbeddings(128))


def asked(graph: KnowledgeGraph, names: Sequence[str]) -> list[Question]:
    """Return three questions on each film."""
    return [
        Question(words.format(film), (film,), tuple(triple.tail for triple in graph.triples(film, relation)))
        for film in names
        for relation, words in TEMPLATES.items()
    ]


LEARNED, HELD_OUT = asked(INDEX.graph, FILMS[:20]), asked(INDEX.graph, FILMS[20:])
SMALL: dict[str, Any] = {"hidden": 32, "rank": 8}
FEW: dict[str, Any] = {"hidden": 6, "rank": 3, "visits": 48, "validations": 3, "learning_rate": 0.02}


@pytest.fixture(scope="module", params=["softmax", "binary"])
def training(request: pytest.FixtureRequest) -> tuple[str, ModelTraining[TripleScorer]]:
    done = train_triple_scorer(
        INDEX, LEARNED, HELD_OUT, loss=request.param, visits=600, validations=4, learning_rate=0.03, **SMALL
    )
    return request.param, done


def mean_loss(scorer: TripleScorer, loss: str, questions: TrainingQuestions) -> float:
    """Return the loss of a scorer on some questions."""
    network = _Network(INDEX, scorer.config, loss, np.random.default_rng(0), max_hops=3, max_nodes=2000)
    network.embed([question.text for question in questions.usable])
    examples = _Examples(network)
    with torch.no_grad():
        for name, parameter in network.parameters.items():
            parameter.copy_(torch.from_numpy(scorer.weights[name]))
        return float(network.loss([examples.of(one) for one in questions.usable], np.random.default_rng(0)))


def test_a_scorer_learns(training: tuple[str, ModelTraining[TripleScorer]]) -> None:
    """On films that it never saw."""
    loss, done = training
    assert done.history[0] < 0.5
    assert max(done.history) > 0.9
    assert 1 <= len(done.history) <= 5
    assert done.seconds > 0
    assert (len(done.training.usable), len(done.validation.usable)) == (60, 30)
    drawn = _Network(INDEX, done.model.config, loss, np.random.default_rng([0, 1])).weights
    untrained = TripleScorer(done.model.config, drawn, probe=done.model.probe, embeddings="")
    for questions in (done.training, done.validation):
        assert mean_loss(done.model, loss, questions) < 0.5 * mean_loss(untrained, loss, questions)


def test_what_a_scorer_says_of_its_training(training: tuple[str, ModelTraining[TripleScorer]]) -> None:
    loss, done = training
    told = done.model.training
    assert (told["loss"], told["questions"], told["max_hops"], told["max_nodes"]) == (loss, 60, 3, 2000)
    assert told["validation"] == done.history
    assert told["schedule"]["visits"] == 600
    assert len(told["data"]) == 32
    assert json.loads(json.dumps(told)) == told
    assert done.model.embeddings == embedding_name(INDEX.embeddings)
    assert done.model.config.dimension == 128


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
        scorer = train_triple_scorer(index, [Question("x", ("Her",), ("Jonze",))], visits=1, validations=1).model
        network = _Network(index, scorer.config, kind, np.random.default_rng(3), max_hops=2)
        network.embed([question.text])
        examples = _Examples(network)
        example, nothing = examples.of(question), examples.of(far)
        assert example.positive.tolist() == [False, True, True]
        assert nothing.positive.tolist() == [False, False]  # two hops only, and the answer is three away
        assert examples.of(question) is example
        assert examples.of(far) is not nothing  # what teaches nothing is not kept
        assert (examples.seen, examples.taught) == ({question, far}, {question})
        with torch.no_grad():
            scores = network._scores([example], [np.arange(3)]).double().numpy()
            losses = [float(network.loss(batch, np.random.default_rng(0))) for batch in ([example], [example, nothing])]
        if kind == "softmax":
            expected = np.log(np.exp(scores).sum()) - scores[1:].mean()
        else:
            shares = 1 / (1 + np.exp(-scores))
            expected = -(np.log(1 - shares[0]) + np.log(shares[1]) + np.log(shares[2])) / 3
        assert losses == pytest.approx([expected, expected / 2], abs=1e-5)


def test_drawn_triples_stand_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    positive = np.array([True] * 3 + [False] * 10 + [True] * 3)
    rows, weights = _chosen(positive, np.random.default_rng(0))
    assert rows.tolist() == [0, 1, 2, 13, 14, 15, *range(3, 13)]
    assert weights.tolist() == [1] * 16
    monkeypatch.setattr(triple_scorer_training, "MAX_POSITIVES", 4)
    monkeypatch.setattr(triple_scorer_training, "MAX_NEGATIVES", 5)
    rows, weights = _chosen(positive, np.random.default_rng(0))
    assert len(set(rows.tolist())) == 9
    assert positive[rows].tolist() == [True] * 4 + [False] * 5
    assert (weights.dtype, weights.tolist()) == (np.float32, [1.5] * 4 + [2.0] * 5)
    for all_alike in (True, False):
        assert len(_chosen(np.full(2, all_alike), np.random.default_rng(0))[0]) == 2


def trained(output: Path | None = None, **arguments: Any) -> ModelTraining[TripleScorer]:
    """Train a little."""
    return train_triple_scorer(INDEX, LEARNED, HELD_OUT[:9], output=output, **(FEW | arguments))


@pytest.fixture(scope="module")
def done() -> ModelTraining[TripleScorer]:
    return trained()


def test_the_same_seed_gives_the_same_weights(done: ModelTraining[TripleScorer]) -> None:
    again, other = trained(), trained(seed=1)
    assert same(again.model.weights, done.model.weights)
    assert again.history == done.history
    assert again.model.training == done.model.training
    assert not any(same({"": other.model.weights[n]}, {"": done.model.weights[n]}) for n in ("head", "output"))


def test_what_is_kept_of_examples_makes_no_difference(
    done: ModelTraining[TripleScorer], monkeypatch: pytest.MonkeyPatch
) -> None:
    for room in (0, 200):
        monkeypatch.setattr(question_training, "KEPT_TRIPLES", room)
        assert same(trained().model.weights, done.model.weights)


@pytest.mark.parametrize("where", ["loss", "validation"])
def test_a_scorer_goes_on(
    tmp_path: Path, done: ModelTraining[TripleScorer], monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Interrupted in the second round of three; in the end only the scorer is there."""
    with monkeypatch.context() as patched:
        if where == "loss":
            patched.setattr(_Network, "loss", interrupted(3, _Network.loss))
        else:
            patched.setattr(question_training, "_gain", interrupted(20, question_training._gain))
        with pytest.raises(KeyboardInterrupt):
            trained(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [UNFINISHED]
    again = trained(tmp_path)
    assert same(again.model.weights, done.model.weights)
    assert again.history == done.history
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors"]
    opened = TripleScorer.from_pretrained(tmp_path)
    assert same(opened.weights, done.model.weights)
    assert opened.training == done.model.training
    assert opened.on(INDEX).score("who directed _?", np.arange(4), np.array([0])).shape == (4,)


@pytest.fixture(scope="module")
def broken_off(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a training that was interrupted after its first round."""
    folder = tmp_path_factory.mktemp("scorer")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_Network, "loss", interrupted(3, _Network.loss))
        with pytest.raises(KeyboardInterrupt):
            trained(folder)
    return folder


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 1}, {"visits": 56}, {"batch_size": 4}, {"loss": "binary"}, {"max_hops": 2}, {"max_nodes": None},
        {"supervision": "directed"}, {"hidden": 7}, {"hops": 0}, {"identifiers": ""}, {"directed": True},
    ],
    ids=str,
)  # fmt: skip
def test_other_settings_are_refused(broken_off: Path, other: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match="unfinished training with other data or settings"):
        trained(broken_off, **other)


def test_other_data_are_refused(broken_off: Path) -> None:
    more = GraphIndex.build(films().with_changes(added=[("Film aa", "has_genre", "Drama")]), INDEX.embeddings)
    for index, questions, validation in (
        (INDEX, LEARNED[1:], HELD_OUT[:9]),
        (INDEX, LEARNED[::-1], HELD_OUT[:9]),
        (INDEX, LEARNED, HELD_OUT[:8]),
        (more, LEARNED, HELD_OUT[:9]),
    ):
        with pytest.raises(InvalidArgumentError, match="unfinished training with other data or settings"):
            train_triple_scorer(index, questions, validation, output=broken_off, **FEW)


def test_an_output_with_a_model_is_refused(tmp_path: Path, done: ModelTraining[TripleScorer]) -> None:
    done.model.save_pretrained(tmp_path)
    for output in (tmp_path, str(tmp_path)):
        with pytest.raises(InvalidArgumentError, match=r"holds a model already\. Name another folder"):
            trained(output)  # type: ignore[arg-type]


def test_an_output_that_is_a_file_is_refused_before_anything_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("mine")
    monkeypatch.setattr(_Network, "loss", lambda *_: pytest.fail("it is trained"))
    with pytest.raises(InvalidArgumentError, match="file"):
        trained(tmp_path / "file")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"loss": "hinge"}, r"loss must be one of \('softmax', 'binary'\), but got 'hinge'"),
        ({"supervision": "both"}, r"supervision must be one of \('undirected', 'directed'\), but got 'both'"),
        ({"visits": 0}, "visits must be"),
        ({"seed": -1}, "seed must be"),
        ({"hidden": 0}, "hidden must be"),
        ({"max_hops": "3"}, "max_hops must be a whole number, 1 or more, but got '3'"),
        ({"max_nodes": 0}, "max_nodes must be a whole number, 1 or more, but got 0"),
        ({"max_hops": 0}, "max_hops must be a whole number, 1 or more, but got 0"),
        ({"roundz": 2}, "no argument 'roundz'"),
    ],
    ids=str,
)
def test_arguments_out_of_range(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        trained(**arguments)


def test_nothing_to_train_on() -> None:
    strange = [Question("Who is Xyzzyplugh?", answers=("Film aa",)), Question("Film aa?", answers=("Xyzzyplugh",))]
    for questions, validation, message in (
        (
            [],
            None,
            "nothing to train on: 0 questions. A question needs answers, by the keys of the graph, within",
        ),
        (
            strange,
            LEARNED,
            "nothing to train on: 0 questions; not used: 1 name no entity of the graph, 1 have no answer",
        ),
        (LEARNED, [], "nothing to validate with: 0 questions"),
        (LEARNED, strange, "nothing to validate with: 0 questions; not used: 1 name"),
    ):
        with pytest.raises(InvalidArgumentError, match=f"^train_triple_scorer: there is {message}"):
            train_triple_scorer(INDEX, questions, validation, **FEW)


def test_answers_that_are_labels_are_named() -> None:
    graph = KnowledgeGraph.from_triples([("Q1", "by", "Q2")], labels={"Q1": "Her", "Q2": "Jonze"})
    index, labelled = GraphIndex.build(graph, HashedEmbeddings(8)), Question("Who made Her?", answers=("Jonze",))
    found = Question("Who made Her?", answers=("Q2",))
    for questions, validation in (([labelled], None), ([labelled], [found]), ([found], [labelled])):
        with pytest.raises(
            InvalidArgumentError, match=r"'Jonze', an answer to 'Who made Her\?', is a name of 'Q2': write the key\.$"
        ):
            train_triple_scorer(index, questions, validation, **FEW)


@pytest.mark.parametrize(("count", "learned", "validating"), [(1, 1, 1), (2, 1, 1), (19, 18, 1), (60, 54, 6)])
def test_a_tenth_validates(count: int, learned: int, validating: int) -> None:
    """Of one question alone, it does both."""
    found = train_triple_scorer(INDEX, LEARNED[:count], **(FEW | {"visits": 1, "validations": 1}))
    assert (len(found.training.usable), len(found.validation.usable)) == (learned, validating)
    both = {*found.training.usable, *found.validation.usable}
    assert len(both) == count
    in_order = [question for question in training_questions(INDEX, LEARNED[:count], 3).usable if question in both]
    for part in (found.training, found.validation):
        assert part.usable == [question for question in in_order if question in part.usable]


def test_few_validate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question_training, "VALIDATED", 4)
    given = train_triple_scorer(INDEX, LEARNED, HELD_OUT, **(FEW | {"visits": 1, "validations": 1}))
    assert (len(given.training.usable), len(given.validation.usable)) == (60, 4)
    drawn = train_triple_scorer(INDEX, LEARNED, **(FEW | {"visits": 1, "validations": 1}))
    assert (len(drawn.training.usable), len(drawn.validation.usable)) == (56, 4)


def test_the_gain_counts_answers_that_are_missing() -> None:
    """C is an end of the second triple, D of the third, and a third answer is not in the graph."""
    graph = KnowledgeGraph.from_triples([("A", "r", "B"), ("B", "r", "C"), ("C", "r", "D")])
    index = GraphIndex.build(graph, HashedEmbeddings(8))
    numbers = tuple(graph.entities.find(key) for key in "ACD")
    question = TrainingQuestion("_", numbers[:1], numbers[1:], missing=1)
    example = Example(question, np.array([2, 0, 1]), None, None, None)  # type: ignore[arg-type]
    scorer = SimpleNamespace(index=index, score=lambda *_: np.array([1.0, 3.0, 2.0], np.float32))
    ranked = _Network(index, TripleScorerConfig(8), "softmax", np.random.default_rng(0)).rank(scorer, example)  # type: ignore[arg-type]
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
        train_triple_scorer(index, asked, loss=loss, max_nodes=max_nodes, visits=8, validations=2, hidden=4)
    asked.append(Question("where to, hub?", answers=("leaf 0",)))
    found = train_triple_scorer(index, asked, asked, loss=loss, max_nodes=9, visits=8, validations=2, hidden=4)
    assert (len(found.training.usable), found.untaught) == (2, 1)
    assert all(np.isfinite(weight).all() for weight in found.model.weights.values())


@pytest.mark.parametrize("visits", [8, 80])
def test_that_nothing_is_taught_is_said_before_the_training(monkeypatch: pytest.MonkeyPatch, visits: int) -> None:
    """After a look at no more questions than the training looks at, and before any is embedded."""
    facts = [("hub", "to", f"leaf {n}") for n in range(9)] + [("leaf 8", "on", "end")]
    index = GraphIndex.build(KnowledgeGraph.from_triples(facts), HashedEmbeddings(32))
    asked = [Question(f"where to, hub, at {n}?", ("hub",), ("end",)) for n in range(22)]
    looked_at = []
    real = _Network.example

    def example(self: _Network, question: TrainingQuestion) -> Example:
        looked_at.append(question)
        return real(self, question)

    monkeypatch.setattr(_Network, "example", example)
    monkeypatch.setattr(_Network, "embed", lambda *_: pytest.fail("the training began"))
    count = min(visits - 1, 20)  # of 22, two validate
    with pytest.raises(InvalidArgumentError, match=f"of {count} questions, none has what it should teach"):
        train_triple_scorer(index, asked, max_nodes=1, visits=visits, validations=2, hidden=4)
    assert len(looked_at) == len(set(looked_at)) == count


def test_names_in_a_vector_store_are_refused() -> None:
    """They would be embedded in every step."""
    store = VectorStoreSearch(InMemoryVectorStore(INDEX.embeddings), "cosine_similarity")
    index = GraphIndex.build(films(), INDEX.embeddings, store=store)
    with pytest.raises(InvalidArgumentError, match="are in a vector store"):
        train_triple_scorer(index, LEARNED[:9])


def test_an_answer_that_is_an_entity_of_the_question_too() -> None:
    """The other entity leads to it."""
    index = GraphIndex.build(KnowledgeGraph.from_triples([("Her", "by", "Jonze")]), HashedEmbeddings(8))
    both = Question("What has Her to do with Jonze?", ("Her", "Jonze"), ("Jonze",))
    assert len(training_questions(index, [both], 3).usable) == 1
    assert training_questions(index, [replace(both, seed_entities=("Jonze",))], 3).unreachable == 1


def test_to_train_as_the_paper_does() -> None:
    """With the arguments that are written down for it."""
    found = train_triple_scorer(
        INDEX, LEARNED[:9], directed=True, rounds=2, reverse_rounds=2, hops=0, hidden=128, supervision="directed",
        loss="binary", batch_size=1, learning_rate=0.001, visits=4,
    )  # fmt: skip
    assert found.model.config == TripleScorerConfig(128, 128, rounds=2, reverse_rounds=2, directed=True, hops=0)


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises((InvalidArgumentError, TypeError), match="hiden"):
        trained(hiden=8)


def test_a_training_writes_nothing(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """But a bar on stderr, where one is wanted."""
    trained(tmp_path / "model")
    assert capfd.readouterr() == ("", "")
    trained(progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "Training" in err


# --- the graph reasoner on the same task ------------------------------------------------------------------------------

REASONER: dict[str, Any] = {"width": 24, "layers": 2, "instructions": 2, "stages": 1, "learning_rate": 0.02}
LITTLE: dict[str, Any] = REASONER | {"width": 5, "visits": 48, "validations": 3}


def reasoned(output: Path | None = None, **arguments: Any) -> ModelTraining[GraphReasoner]:
    """Train a reasoner a little."""
    return train_graph_reasoner(INDEX, LEARNED, HELD_OUT[:9], output=output, **(LITTLE | arguments))


@pytest.fixture(scope="module")
def reasoner() -> ModelTraining[GraphReasoner]:
    return reasoned()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_reasoner_learns(seed: int) -> None:
    """On films that it never saw, and on another graph whose entities it never saw."""
    done = train_graph_reasoner(INDEX, LEARNED, HELD_OUT, visits=1000, validations=4, seed=seed, **REASONER)
    assert done.history[0] < 0.8
    assert done.best == 1
    assert done.untaught == 0
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


def test_what_a_reasoner_says_of_its_training(reasoner: ModelTraining[GraphReasoner]) -> None:
    told = reasoner.model.training
    assert (told["questions"], told["max_hops"], told["max_nodes"]) == (60, 3, 2000)
    assert told["validation"] == reasoner.history
    assert told["schedule"]["visits"] == 48
    assert json.loads(json.dumps(told)) == told
    assert reasoner.model.embeddings == embedding_name(INDEX.embeddings)
    assert (reasoner.model.config.dimension, reasoner.model.config.width) == (128, 5)
    assert reasoner.seconds > 0


def test_the_same_seed_gives_the_same_reasoner(
    reasoner: ModelTraining[GraphReasoner], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is kept of examples."""
    for room in (question_training.KEPT_TRIPLES, 0, 200):
        monkeypatch.setattr(question_training, "KEPT_TRIPLES", room)
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
    learner = graph_reasoner_training._Network
    with monkeypatch.context() as patched:
        if where == "loss":
            patched.setattr(learner, "loss", interrupted(LITTLE["visits"] // 4 // 3 + 1, learner.loss))
        else:
            patched.setattr(question_training, "_gain", interrupted(20, question_training._gain))
        with pytest.raises(KeyboardInterrupt):
            reasoned(tmp_path, batch_size=4)
    assert [path.name for path in tmp_path.iterdir()] == [UNFINISHED]
    for other in ({"width": 6}, {"mask_seeds": False}, {"max_hops": 2}, {"max_nodes": 3}, {"relative": False}):
        with pytest.raises(InvalidArgumentError, match="unfinished training with other data or settings"):
            reasoned(tmp_path, **({"batch_size": 4} | other))
    again, whole = reasoned(tmp_path, batch_size=4), reasoned(batch_size=4)
    assert same(again.model.weights, whole.model.weights)
    assert again.history == whole.history
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors"]
    opened = GraphReasoner.from_pretrained(tmp_path)
    assert same(opened.weights, whole.model.weights)
    assert opened.training == whole.model.training
    with pytest.raises(InvalidArgumentError, match=r"^train_graph_reasoner: .* holds a model already\. Name another"):
        reasoned(tmp_path)


def test_a_reasoner_is_not_saved_to_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InvalidArgumentError, match=r"^train_graph_reasoner: .* is a file\. Name a folder"):
        reasoned(tmp_path / "file")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"visits": 0}, "visits must be"),
        ({"seed": -1}, "seed must be"),
        ({"learning_rate": 2.0}, "learning_rate must be"),
        ({"width": 0}, "width must be"),
        ({"mask_seeds": "no"}, "mask_seeds must be true or false, but got 'no'"),
        ({"tokens": "letters"}, "tokens is one of"),
        ({"tokens": "states"}, 'tokens="states" needs embeddings with `embed_tokens`'),
        ({"max_hops": 0}, "train_graph_reasoner: max_hops must be a whole number, 1 or more, but got 0"),
        ({"max_nodes": 0}, "train_graph_reasoner: max_nodes must be a whole number, 1 or more, but got 0"),
        ({"max_nodes": None}, "train_graph_reasoner: max_nodes must be a whole number, 1 or more, but got None"),
        ({"max_nodes": True}, "train_graph_reasoner: max_nodes must be a whole number, 1 or more, but got True"),
        ({"hidden": 4}, r"train_graph_reasoner: there is no argument 'hidden'\. There are: \[.*'width'"),
        ({"dimension": 4}, "train_graph_reasoner: there is no argument 'dimension'"),
    ],
    ids=str,
)
def test_arguments_of_a_reasoner_out_of_range(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        reasoned(**arguments)


def test_what_a_reasoner_cannot_be_trained_on() -> None:
    for index, questions, message in (
        (INDEX, [], "train_graph_reasoner: there is nothing to train on: 0 questions"),
        (INDEX, ["who?"], "train_graph_reasoner: wanted a GraphIndex and lists of Questions"),
        (INDEX, 5, "train_graph_reasoner: wanted a GraphIndex and lists of Questions"),
        (INDEX.graph, LEARNED, "train_graph_reasoner: wanted a GraphIndex and lists of Questions"),
        (
            GraphIndex.build(KnowledgeGraph.from_triples([], labels={"A": "A", "B": "B"}), HashedEmbeddings(8)),
            [Question("A?", ("A",), ("B",))],
            "train_graph_reasoner: there is nothing to train on: 0 questions; not used: 1 have no answer near",
        ),
        (
            GraphIndex.build(
                films(),
                INDEX.embeddings,
                store=VectorStoreSearch(InMemoryVectorStore(INDEX.embeddings), "cosine_similarity"),
            ),
            LEARNED[:9],
            "train_graph_reasoner: the names of the index are in a vector store",
        ),
    ):
        with pytest.raises(InvalidArgumentError, match=f"^{message}"):
            train_graph_reasoner(index, questions, **LITTLE)  # type: ignore[arg-type]


CHAIN = KnowledgeGraph.from_triples([("Her", "by", "Jonze"), ("Jonze", "made", "Adaptation")])
#: Its answer is one of its own entities, which the other leads to.
OWN = Question("What has Her to do with Jonze?", ("Her", "Jonze"), ("Jonze",))
OTHER = Question("Who made Her?", ("Her",), ("Jonze",))


def test_own_entities_as_answers() -> None:
    """They teach nothing where they are no candidates; left open, they are where enough questions ask for them."""
    index = GraphIndex.build(CHAIN, HashedEmbeddings(16))
    few: dict[str, Any] = LITTLE | {"visits": 8, "validations": 2}
    for mask_seeds, masked, untaught in ((True, True, 1), (False, False, 0), (None, False, 0)):
        found = train_graph_reasoner(index, [OWN, OTHER], [OTHER], mask_seeds=mask_seeds, **few)
        assert (found.model.config.mask_seeds, found.untaught) == (masked, untaught)
        assert all(np.isfinite(weight).all() for weight in found.model.weights.values())
    assert train_graph_reasoner(index, [OTHER], **few).model.config.mask_seeds
    with pytest.raises(
        InvalidArgumentError,
        match="^train_graph_reasoner: of 1 question, none has what it should teach among its candidates. Raise "
        r"max_nodes or max_hops, or pass mask_seeds=False\.$",
    ):
        train_graph_reasoner(index, [OWN], [OTHER], mask_seeds=True, **few)


@pytest.mark.parametrize("max_nodes", [1, 2])
def test_answers_that_max_nodes_leaves_out_teach_a_reasoner_nothing(tmp_path: Path, max_nodes: int) -> None:
    """And do no harm beside others."""
    facts = [("hub", "to", f"leaf {n}") for n in range(9)] + [("leaf 8", "on", "end")]
    index = GraphIndex.build(KnowledgeGraph.from_triples(facts), HashedEmbeddings(32))
    questions = [Question("where to, hub?", answers=("end",))]
    few: dict[str, Any] = LITTLE | {"visits": 8, "validations": 2}
    with pytest.raises(InvalidArgumentError, match="of 1 question, none has what it should teach"):
        train_graph_reasoner(index, questions, max_nodes=max_nodes, output=tmp_path, **few)
    assert not any(tmp_path.iterdir())
    questions.append(Question("where to, hub?", answers=("leaf 0",)))
    found = train_graph_reasoner(index, questions, questions, max_nodes=9, **few)
    assert (len(found.training.usable), found.untaught) == (2, 1)
    assert all(np.isfinite(weight).all() for weight in found.model.weights.values())
