"""The command train, and its models in ask, evaluate and compare, as a person or a script calls them."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from shell_mistakes import Run
from shell_mistakes import mistake as told_mistake

import kg_retrievers
from kg_retrievers import (
    GraphIndex,
    HashedEmbeddings,
    SubgraphRAGRetriever,
    default_embeddings,
    train_graph_reasoner,
    train_triple_scorer,
)
from kg_retrievers.core.checkpoint import read_header, save_checkpoint
from kg_retrievers.errors import install_command
from kg_retrievers.methods import registry
from kg_retrievers.sample import load_graph, load_questions

GRAPH = str(Path(kg_retrievers.__file__).parent / "sample" / "graph.jsonl")
HER = "Who directed Her?"
SHORT = ("--num-examples", "24", "--field", "rounds=3")
TRAIN = ("train", "subgraph-rag", "--graph", GRAPH, "--questions", "taught.jsonl", *SHORT)
ASKED = ("--graph", GRAPH, "--data", "asked.jsonl", "--format", "jsonl")

FOREIGN = '{"question": "Who directed Her?", "answers": ["Nobody"]}\n'
FILES = {
    "asked.jsonl": '{"question": "Who directed Her?", "answers": ["Spike Jonze"]}\n'
    '{"question": "Who directed Arrival?", "answers": ["Denis Villeneuve"]}\n',
    "foreign.jsonl": FOREIGN,
    "films.txt": "Her,directed_by,Spike Jonze\nHer,starring,Amy Adams\n",
    "labels.tsv": "Her\tHer (film)\n",
    "metaqa/1-hop/qa_train.txt": "who directed [Her]\tSpike Jonze\nwho starred in [Her]\tAmy Adams\n",
    "metaqa/1-hop/qa_dev.txt": "who is the director of [Her]\tSpike Jonze\n",
    "garbage/config.json": "[]",
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders with trained models: `model`, `another` of its method, `narrow` of other embeddings; `reasoner`."""
    home = tmp_path_factory.mktemp("trained")
    taught = load_questions()[:12]
    usual, narrow = default_embeddings(), HashedEmbeddings(32)
    for name, embeddings, seed in (("model", usual, 0), ("another", usual, 1), ("narrow", narrow, 0)):
        index = GraphIndex.build(load_graph(), embeddings)
        train_triple_scorer(index, taught, taught, output=home / name, num_examples=8, rounds=1, seed=seed)
    index = GraphIndex.build(load_graph(), usual)
    train_graph_reasoner(index, taught, taught, output=home / "reasoner", num_examples=8, validations=1, width=8)
    return home


@pytest.fixture(autouse=True)
def models(folder: Path, trained: Path) -> None:
    """The models, and the questions that they were trained on."""
    rows = [json.dumps(question.to_dict()) + "\n" for question in load_questions()[:12]]
    (folder / "taught.jsonl").write_text("".join(rows) + FOREIGN, "utf-8")
    shutil.copytree(trained, folder, dirs_exist_ok=True)
    save_checkpoint(folder / "other", "simgrag", {}, {})
    damaged = shutil.copytree(trained / "model", folder / "damaged")
    (damaged / "model.safetensors").write_bytes(b"")


def weights(model: str) -> bytes:
    return Path(model, "model.safetensors").read_bytes()


def digest(model: str) -> str:
    return read_header(model).digest


def config(model: str) -> dict[str, Any]:
    return read_header(model).config


def settings(path: str) -> Any:
    return json.loads(Path(path).read_text("utf-8"))["settings"]


def interrupt(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Press Ctrl-C in a step of the training, from 1."""
    real, steps = torch.optim.Adam.step, iter(range(1, 1000))

    def interrupted(*args: Any, **named: Any) -> Any:
        if next(steps) == step:
            raise KeyboardInterrupt
        return real(*args, **named)

    monkeypatch.setattr(torch.optim.Adam, "step", interrupted)


# --- train ------------------------------------------------------------------------------------------------------------


def test_train_then_ask(run: Run) -> None:
    code, out, err = run(*TRAIN, "--validation", "taught.jsonl", "--output", "my model")
    assert (code, err) == (0, "")
    first, *rows, last = out.splitlines()
    assert first.startswith("Trained subgraph-rag in ")
    assert first.endswith(" seconds. The model is in my model.")
    assert rows[:2] == [
        "Trained on       12 questions; not used: 1 have no answer that is a key of the graph",
        "Validated with   12 questions; not used: 1 have no answer that is a key of the graph",
    ]
    assert rows[2].startswith("nDCG of answers")
    assert last == f"Ask it: kg-retrievers ask {GRAPH} 'Who ...?' --model 'my model'"
    assert sorted(file.name for file in Path("my model").iterdir()) == ["model.safetensors"]
    command = shlex.split(last.partition(": kg-retrievers ")[2].replace("Who ...?", HER))
    code, out, _ = run(*command, "--json")
    assert code == 0
    retriever = SubgraphRAGRetriever.from_index(GraphIndex.build(load_graph(), default_embeddings()), model="my model")
    assert json.loads(out)["documents"] == [document.model_dump() for document in retriever.invoke(HER)]


def test_train_prints_one_json_object(run: Run) -> None:
    code, out, _ = run(*TRAIN, "--output", "m", "--validation", "asked.jsonl", "--seed", "5", "--json")
    assert code == 0
    assert len(out.splitlines()) == 1
    told = json.loads(out)
    history = config("m")["training"]["validation"]
    assert told.pop("seconds") > 0
    assert told == {
        "method": "subgraph-rag",
        "output": "m",
        "command": f"kg-retrievers ask {GRAPH} 'Who ...?' --model m",
        "training": {"used": 12, "without_entities": 0, "without_answers": 1, "unreachable": 0},
        "validation": {"used": 2, "without_entities": 0, "without_answers": 0, "unreachable": 0},
        "ndcg_before": history[0],
        "ndcg_after": max(history[1:]),
        "history": history,
        "unsupervised": 0,
    }
    assert config("m")["training"]["schedule"]["seed"] == 5


def test_the_next_command_reads_the_graph_alike(run: Run) -> None:
    """As with labels, without which the questions would name no entity."""
    reading = ("--read", "format=csv", "--entities", "labels.tsv", "--columns", "a,b,c", "--embeddings", "hashed")
    Path("films.txt").write_text("a,b,c\n" + FILES["films.txt"], "utf-8")
    Path("film.jsonl").write_text('{"question": "Who directed Her (film)?", "answers": ["Spike Jonze"]}\n', "utf-8")
    train = (*TRAIN[:2], "--graph", "films.txt", *reading, "--questions", "film.jsonl", "--num-examples", "8")
    code, out, _ = run(*train, "--output", "m")
    assert code == 0
    assert config("m")["training"]["schedule"]["num_examples"] == 8
    command = out.splitlines()[-1].partition(": kg-retrievers ")[2]
    flags = "--columns a,b,c --entities labels.tsv --read format=csv --embeddings hashed"
    assert command == f"ask films.txt 'Who ...?' --model m {flags}"
    code, out, _ = run(*shlex.split(command.replace("Who ...?", "Who directed Her (film)?")))
    assert code == 0
    assert "Her (film) [Her]  directed_by  Spike Jonze" in out


@pytest.mark.heavy
def test_an_interrupted_training_goes_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    validated = (*TRAIN, "--validation", "taught.jsonl")
    assert run(*validated, "--output", "whole")[0] == 0
    with monkeypatch.context() as patch:
        interrupt(patch, 2)  # a round has one step here
        code, out, err = run(*validated, "--output", "broken")
    assert (code, out) == (130, "")
    assert err.splitlines() == [
        "kg-retrievers: what was trained is in broken; the same command goes on from the last finished round",
        "kg-retrievers: interrupted",
    ]
    code, _, err = run("ask", GRAPH, HER, "--model", "broken")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "broken: no trained model is here: model.safetensors is missing. Train one: kg-retrievers train " in err
    code, out, err = run(*validated, "--output", "broken", "--seed", "1")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "holds an unfinished training with other data or settings" in err
    code, _, err = run(*validated, "--output", "broken")
    assert (code, err) == (0, "kg-retrievers: what was trained before was taken from broken\n")
    assert weights("broken") == weights("whole")
    assert not Path("broken/unfinished").exists()


@pytest.mark.heavy
def test_without_torch(run_without: Callable[..., list[tuple[str, int]]]) -> None:
    (trained, code), asked = run_without(["torch"], (*TRAIN, "--output", "m"), ("ask", GRAPH, HER, "--model", "model"))
    assert (code, trained.endswith(f"needs an optional package. Run: {install_command('train')}\n")) == (2, True)
    assert asked[1] == 0


# --- with a model: ask, evaluate, compare -----------------------------------------------------------------------------


def test_ask_shows_single_triples_in_one_table(run: Run) -> None:
    code, out, err = run("ask", GRAPH, HER, "--model", "model", "--method", "subgraph-rag", "--k", "25")
    assert code == 0
    assert err == "kg-retrievers: subgraph-rag finds facts and proposes no answer; --llm answers from them\n"
    lines = out.splitlines()
    assert lines[2] == "Evidence: single triples, the best first"
    assert lines[3].split() == ["#", "score", "head", "relation", "tail"]
    assert [line.split()[0] for line in lines[4:24]] == [str(rank) for rank in range(1, 21)]
    assert lines[24:] == [" 5 more; --json has all."]
    code, out, _ = run("ask", GRAPH, HER, "--model", "model", "--field", "granularity=subgraph", "--k", "1")
    assert "Evidence 1: score " in out


def test_a_model_joins_in_if_kg_is_asked(run: Run) -> None:
    code, out, _ = run("ask", GRAPH, HER, "--method", "kg", "--model", "model", "--json")
    assert code == 0
    parts = [part for one in json.loads(out)["documents"] for part in one["metadata"]["details"].get("parts", [])]
    assert "model" in parts


@pytest.mark.heavy
def test_compare_gives_a_model_to_its_method(run: Run) -> None:
    models = ("--model", "model", "--model", "reasoner")
    code, out, err = run("compare", *ASKED, "--method", "subgraph-rag", "--method", "pcst", *models, "--json")
    assert (code, err) == (0, "kg-retrievers: the model in reasoner is left out: gnn-rag is not compared\n")
    assert [one["settings"]["model"] for one in json.loads(out)["runs"]] == [digest("model"), None]
    code, out, err = run("compare", *ASKED, "--method", "all", *models, "--json")
    assert (code, err) == (0, "")
    found = {one["method"]: one["settings"]["model"] for one in json.loads(out)["runs"]}
    of_models = {"subgraph-rag": digest("model"), "gnn-rag": digest("reasoner")}
    assert found == dict.fromkeys(registry.method_names()) | of_models


def test_records_know_the_model(run: Run) -> None:
    evaluate = ("evaluate", *ASKED, "--method", "subgraph-rag", "--records", "r.jsonl", "--output", "out.json")
    assert run(*evaluate, "--model", "model")[0] == 0
    assert settings("out.json")["model"] == digest("model")
    shutil.move("model", "moved")
    code, _, err = run(*evaluate, "--model", "moved")
    assert (code, err) == (0, "kg-retrievers: what was measured before was taken from r.jsonl\n")
    told = mistake(run(*evaluate, "--model", "another"))
    assert "r.jsonl holds records of a run with other settings: " in told
    assert f"settings.model was '{digest('moved')}', and is '{digest('another')}'" in told


# --- mistakes ---------------------------------------------------------------------------------------------------------


def mistake(done: tuple[int, str, str]) -> str:
    """Check that a command told a mistake on one line that is no end of a traceback; return the line."""
    said = told_mistake(done)
    assert "Error:" not in said
    return said


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--questions", "metaqa", "--format", "metaqa", "--split", "test"], "here; there is: dev, train."),
        (["--questions", "foreign.jsonl"], "not used: 1 have no answer that is a key of the graph"),
        (["--validation", "foreign.jsonl"], "there is nothing to validate with"),
        (["--field", "hopz=3"], "train_triple_scorer: there is no argument 'hopz'; did you mean 'hops'?"),
        (["--field", "dimension=3"], "--field: dimension comes from other options"),
        (["--field", "hops=few"], "hops must be a valid integer, but got 'few'"),
        (["--graph", "none.csv"], "none.csv: there is no such file"),
    ],
)
def test_a_mistake_in_training_is_told_on_one_line(run: Run, more: list[str], told: str) -> None:
    assert told in mistake(run(*TRAIN, "--output", "m", *more))
    assert not Path("m").exists()


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["train"], "Missing argument 'METHOD'. See: kg-retrievers train --help"),
        ([*TRAIN[:2], *TRAIN[4:], "--output", "m"], "--graph must name the graph that the questions are about. See: "),
        (["train", "pcst", *TRAIN[2:], "--output", "m"], "pcst is not trained. Name one of gnn-rag"),
        ([*TRAIN, "--output", "model"], "model holds a model already. Name another folder: --output ..."),
        ([*TRAIN, "--output", "taught.jsonl"], "taught.jsonl is a file. Name another folder: --output ..."),
        (["ask", GRAPH, HER, "--method", "subgraph-rag"], "kg-retrievers train subgraph-rag --graph"),
        (["ask", GRAPH, HER, "--method", "gnn-rag"], "kg-retrievers train gnn-rag --graph"),
        (["ask", GRAPH, HER, "--method", "gnn-rag", "--model", "model"], "is of subgraph-rag, but asked is gnn-rag."),
        (["ask", GRAPH, HER, "--model", "model", "--model", "reasoner"], "Leave it out, or: --method subgraph-rag"),
        (["ask", GRAPH, HER, "--model", "none"], "none: no trained model is here: there is no such folder. Train one"),
        (["ask", GRAPH, HER, "--model", "garbage"], "garbage: no trained model is here: "),
        (
            ["ask", GRAPH, HER, "--model", "other"],
            "other: wanted a model of gnn-rag, subgraph-rag, graph-prompt, but it is one of 'simgrag'.",
        ),
        (["ask", GRAPH, HER, "--model", "damaged"], "model.safetensors: the weights are damaged"),
        (["ask", GRAPH, HER, "--model", "narrow"], "whose vectors have 32 numbers"),
        (["ask", GRAPH, HER, "--model", "model", "--model", "another"], "model and another are both models of "),
        (["ask", GRAPH, HER, "--model", "model", "--method", "pcst"], "the model in model is of subgraph-rag, but"),
        (["compare", *ASKED, "--method", "all", "--model", "model", "--model", "model"], "both models of subgraph-rag"),
    ],
)
def test_a_mistake_is_told_on_one_line(run: Run, argv: list[str], told: str) -> None:
    assert told in mistake(run(*argv))


def test_an_output_that_cannot_be_written(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kg_retrievers.cli.train.access", lambda *_: False)
    assert "garbage cannot be written to. Name another folder" in mistake(run(*TRAIN, "--output", "garbage/m"))
