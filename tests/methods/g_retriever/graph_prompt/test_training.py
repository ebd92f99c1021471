"""Training of a graph prompt: what changes and what does not, rounds, interruptions, a task of the graph."""

from __future__ import annotations

import random
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
import torch
from langchain_core.documents import Document
from small_language_model import build

from kg_retrievers import HashedEmbeddings
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Triple
from kg_retrievers.methods.g_retriever.graph_prompt import training as graph_prompt_training
from kg_retrievers.methods.g_retriever.graph_prompt.config import Setting
from kg_retrievers.methods.g_retriever.graph_prompt.examples import GraphPromptExample
from kg_retrievers.methods.g_retriever.graph_prompt.language_model import CausalLM
from kg_retrievers.methods.g_retriever.graph_prompt.model import GraphPromptModel
from kg_retrievers.methods.g_retriever.graph_prompt.network import GraphPromptNetwork, TextVectors
from kg_retrievers.methods.g_retriever.graph_prompt.training import (
    GraphPromptTraining,
    PromptTrainer,
    train_graph_prompt,
)

EMBEDDINGS = HashedEmbeddings(16)
SIZES: dict[str, Any] = {"width": 8, "layers": 2, "heads": 2, "projection": 8}
COLORS = ("red", "blue")


def examples(count: int, seed: int = 0) -> list[GraphPromptExample]:
    """Return questions whose answer is in the graph, and nowhere else."""
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        item, color = f"item {rng.randrange(100)}", rng.choice(COLORS)
        triples = tuple(Triple(item, "has_part", f"part {rng.randrange(100)}") for _ in range(rng.randrange(1, 3)))
        made.append(GraphPromptExample("Which colour?", (color,), (*triples, Triple(item, "has_colour", color))))
    return made


LEARNED, VALIDATING = examples(10), examples(4, seed=1)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model in its folder."""
    torch.set_num_threads(1)
    texts = [f"Question: Which colour?\nAnswer:{color}" for color in COLORS]
    return build(tmp_path_factory.mktemp("lm"), texts, hidden=16, heads=2, vocabulary=320, pretrain_steps=2)


def trained(folder: Path, /, *parts: Sequence[GraphPromptExample], **options: Any) -> GraphPromptTraining:
    given: dict[str, Any] = {"epochs": 2, "learning_rate": 3e-3}
    return train_graph_prompt(folder, EMBEDDINGS, *(parts or (LEARNED, VALIDATING)), **(given | SIZES | options))


def weights(training: GraphPromptTraining) -> dict[str, torch.Tensor]:
    network = training.model.network
    return {**network.parameters, **network.buffers}


def same(one: GraphPromptTraining, other: GraphPromptTraining) -> bool:
    left, right = weights(one), weights(other)
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def digests(lm: CausalLM) -> dict[str, str]:
    """Return a digest of each tensor of a language model, adapters not counted."""
    found = {}
    for name, tensor in lm.model.state_dict().items():
        if "lora_" not in name:
            found[name.replace(".base_layer", "")] = blake2b(tensor.numpy().tobytes()).hexdigest()
    return found


# --- what changes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"setting": "prompt-tuning"},
        {"setting": "lora"},
        {"setting": "lora", "encoder": None, "soft_tokens": 0},
        {"encoder": "gcn", "show_graph": False},
    ],
)
def test_the_language_model_stays_as_it_is(folder: Path, options: dict[str, Any]) -> None:
    """Each of its tensors; what is trained changes, and the share of that is told."""
    lm = CausalLM.load(folder)
    size = sum(weight.numel() for weight in lm.model.parameters())
    before = digests(lm)
    done = train_graph_prompt(lm, EMBEDDINGS, LEARNED, VALIDATING, epochs=1, learning_rate=1e-2, **(SIZES | options))
    assert digests(lm) == before
    assert not any(module.training for module in lm.model.modules())
    network = done.model.network
    first = GraphPromptNetwork(
        CausalLM.load(folder),
        done.model.config,
        TextVectors(EMBEDDINGS),
        seed=int(graph_prompt_training.stream(0, "weights").integers(2**63)),
    )
    changed = [name for name, weight in network.parameters.items() if not torch.equal(weight, first.parameters[name])]
    assert len(changed) >= 0.8 * len(network.parameters)  # a bias before a normalisation has no gradient
    own = sum(weight.numel() for weight in network.parameters.values())
    assert (done.trained, done.weights) == (own, size + own)
    assert done.share == own / (size + own)
    assert all(weight.requires_grad is ("lora_" in name) for name, weight in network.model.named_parameters())


# --- rounds -----------------------------------------------------------------------------------------------------------


def test_the_same_arguments_give_the_same_model(folder: Path) -> None:
    """Adapters with dropout too; another seed gives another one."""
    one = trained(folder, setting="lora")
    assert same(one, trained(folder, setting="lora"))
    assert not same(one, trained(folder, setting="lora", seed=1))


class StopError(Exception):
    """As by a user."""


def test_training_goes_on_after_an_interruption(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there had been none: running means, the optimizer and what is drawn included."""
    options: dict[str, Any] = {"setting": "lora", "epochs": 3}
    whole = trained(folder, **options)
    steps = PromptTrainer.step
    taken: list[int] = []

    def step(self: PromptTrainer, number: int, prompts: Any) -> None:
        taken.append(number)
        if number == 3 and taken.count(3) == 1:
            raise StopError
        steps(self, number, prompts)

    monkeypatch.setattr(PromptTrainer, "step", step)
    output = tmp_path / "model"
    with pytest.raises(StopError):
        trained(folder, output=output, **options)
    assert (output / "unfinished" / "model.safetensors").exists()
    assert not (output / "model.safetensors").exists()
    with pytest.raises(InvalidArgumentError, match="other data or settings"):
        trained(folder, output=output, **(options | {"max_gradient": 0.2}))
    resumed = trained(folder, output=output, **options)
    assert taken == [0, 1, 2, 3, 2, 3, 4, 5, 6]
    assert same(whole, resumed)
    assert resumed.history == whole.history
    assert sorted(path.name for path in output.iterdir()) == ["model.safetensors"]
    again = GraphPromptModel.from_pretrained(output, EMBEDDINGS)
    assert all(torch.equal(weight, weights(resumed)[name]) for name, weight in again.network.parameters.items())
    with pytest.raises(InvalidArgumentError, match="holds a model already"):
        trained(folder, output=output, **options)


# --- a task of the graph ----------------------------------------------------------------------------------------------


def right(folder: Path, setting: Setting) -> float:
    """Return the share of right answers to new questions whose answer is in the graph alone."""
    sizes = {"width": 16, "projection": 32, "soft_tokens": 4}
    done = trained(
        folder, examples(200), examples(30, 1), setting=setting, show_graph=False, epochs=6, learning_rate=1e-2,
        max_gradient=1.0, patience=6, batch_size=10, **sizes,
    )  # fmt: skip
    asked = examples(60, 2)
    documents = [[Document("", metadata={"triples": [list(triple) for triple in one.triples]})] for one in asked]
    answers = done.model.batch(
        [{"question": one.question, "documents": found} for one, found in zip(asked, documents, strict=True)]
    )
    return sum(answer == one.answers[0] for answer, one in zip(answers, asked, strict=True)) / len(asked)


@pytest.mark.heavy  # a language model is pre-trained, and trained twice
def test_what_only_the_graph_says_is_learned(tmp_path: Path) -> None:
    """With an encoder; without one the answers are as good as drawn. The language model can repeat a first word."""
    rng = random.Random(0)
    words = [*COLORS, *("".join(rng.sample(["ba", "de", "fi", "go", "ku", "lo", "ma"], 2)) for _ in range(30))]
    texts = [f"{word}\nQuestion: Which colour?\nAnswer:{word}" for word in rng.sample(words * 4, 4 * len(words))]
    folder = build(tmp_path, texts, hidden=32, heads=2, vocabulary=420, pretrain_steps=300)
    assert right(folder, "frozen") >= 0.95
    assert right(folder, "prompt-tuning") <= 0.7


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoder": None, "soft_tokens": 0}, "nothing to train"),
        ({"epochs": 0}, "^train_graph_prompt: epochs must be an integer of 1 or more, but got 0"),
        ({"learning_rate": 1.0}, "learning_rate must be less than 1, but got 1.0"),
        ({"warm_up": 1.5}, "warm_up must be less than or equal to 1, but got 1.5"),
        ({"max_gradient": float("inf")}, "max_gradient must be a finite number, but got inf"),
        ({"patience": "no"}, "patience must be a valid integer, but got 'no'"),
        ({"encoder": "rnn"}, "encoder must be 'transformer', 'gat' or 'gcn', but got 'rnn'"),
        ({"width": 10, "heads": 4}, "a multiple of heads=4"),
        ({"layers": 1}, "layers must be greater than or equal to 2, but got 1"),
        ({"soft_tokens": True}, "soft_tokens must be a valid integer, but got True"),
        ({"lora_dropout": 1.0}, "lora_dropout must be less than 1, but got 1.0"),
        ({"lora_targets": ()}, "lora_targets must have at least 1 item"),
        ({"setting": "all"}, "setting is one of"),
    ],
)
def test_arguments_out_of_range(folder: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        trained(folder, **options)


def test_nothing_to_train_on(folder: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="one or more examples in each list"):
        trained(folder, LEARNED, [])
    with pytest.raises(InvalidArgumentError, match="no argument 'depth'"):
        trained(folder, depth=3)


def test_a_loss_that_is_no_number(folder: Path) -> None:
    lm = CausalLM.load(folder)
    with torch.no_grad():
        lm.model.lm_head.weight[0, 0] = torch.inf
    with pytest.raises(InvalidArgumentError, match="no finite number any more"):
        train_graph_prompt(lm, EMBEDDINGS, LEARNED, VALIDATING, **SIZES)
