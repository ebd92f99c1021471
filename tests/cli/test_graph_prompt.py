"""Graph prompts in train, ask, evaluate and compare, as a person or a script calls them."""

from __future__ import annotations

import functools
import json
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from langchain_core.embeddings import Embeddings
from small_language_model import build

import kg_retrievers
from kg_retrievers import (
    GraphIndex,
    GraphPromptModel,
    HashedEmbeddings,
    PCSTRetriever,
    default_embeddings,
    graph_prompt_examples,
    read_webqsp,
    train_graph_prompt,
    train_triple_scorer,
)
from kg_retrievers.cli.train import NO_BETTER
from kg_retrievers.core.checkpoint import read_header
from kg_retrievers.errors import KGRetrieversError, install_command
from kg_retrievers.methods.g_retriever.graph_prompt import training as graph_prompt_training
from kg_retrievers.methods.g_retriever.graph_prompt.config import Setting
from kg_retrievers.sample import load_graph, load_questions

GRAPH = str(Path(kg_retrievers.__file__).parent / "sample" / "graph.jsonl")
HER = "Who directed Her?"
SIZES = {"epochs": 1, "width": 8, "heads": 2, "projection": 8, "layers": 2, "threads": 1}
SMALL = tuple(part for name, value in SIZES.items() for part in ("--field", f"{name}={value}"))
PROMPT = ("train", "graph-prompt", "--causal-lm", "lm")
TRAIN = (*PROMPT, "--graph", GRAPH, "--questions", "taught.jsonl", *SMALL)
ASKED = ("--graph", GRAPH, "--data", "asked.jsonl", "--format", "jsonl")
ASK = ("ask", GRAPH, HER, "--model")
SCENES = ("--graph", "scenes.json", "--questions", "images.json", "--format", "scene-graphs")

BANANA = {"name": "banana", "attributes": ["yellow"], "x": 1, "y": 2, "w": 3, "h": 4}
BOWL = {"name": "bowl", "attributes": [], "x": 5, "y": 2, "w": 3, "h": 4, "relations": []}
BOWLS = {"a": BANANA | {"relations": [{"name": "to the left of", "object": "b"}]}, "b": BOWL}
FILES = {
    "asked.jsonl": '{"question": "Who directed Her?", "answers": ["Spike Jonze"]}\n'
    '{"question": "Who directed Arrival?", "answers": ["Denis Villeneuve"]}\n',
    "unanswered.jsonl": '{"question": "Who directed Her?"}\n',
    "labelled.tsv": "m1\tdirected by\tp1\n",
    "labels.tsv": "m1\tHer\np1\tSpike Jonze\n",
    "keys.jsonl": '{"question": "Who directed Her?", "answers": ["p1", "Nobody"]}\n',
    "arguments.tsv": "Dogs are good.\tDogs help.\tsupport\t(dogs; capable of; help)(help; is a; good)\n"
    "Legal.\tA bad thing.\tcounter\t(legal; causes; more)(more; not; bad thing)\n",
    "arguments.txt": "Dogs are good.\tDogs help.\n",
    "web.jsonl": '{"id": "1", "question": "who directed Her", "answer": ["Spike Jonze"], "q_entity": ["Her"], "graph": '
    '[["Her", "directed by", "Spike Jonze"], ["Dune", "genre", "Drama"], ["Up", "genre", "Drama"]]}\n'
    '{"id": "2", "question": "who made nothing", "answer": ["Nobody"], "q_entity": [], "graph": []}\n'
    '{"id": "3", "question": "who is it", "answer": [], "q_entity": [], "graph": [["a", "b", "c"]]}\n',
    "scenes.json": json.dumps({"1": {"objects": BOWLS}, "2": {"objects": {"c": BOWL}}}),
    "images.json": json.dumps(
        {
            "q1": {"question": "What is to the left of the bowl?", "answer": "banana", "imageId": "1"},
            "q2": {"question": "What is it?", "answer": "bowl", "imageId": "2"},
            "q3": {"question": "What colour is the banana?", "answer": "yellow", "imageId": "1"},
        }
    ),
    "notes/notes.txt": "my notes\n",
}

Run = Callable[..., tuple[int, str, str]]


def index() -> GraphIndex:
    return GraphIndex.build(load_graph(), default_embeddings())


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Small steps are slower on several."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the language models `lm` and `other`, a `scorer`, and the models `model`, `narrow` and `tuned`."""
    home = tmp_path_factory.mktemp("home")
    taught = load_questions()[:8]
    texts = [f"Question: {question.text}\nAnswer:{'|'.join(question.answers)}" for question in taught]
    build(home / "lm", texts, hidden=16, layers=1, heads=2, vocabulary=300, pretrain_steps=12)
    build(home / "other", texts, hidden=16, layers=1, heads=2, vocabulary=300, seed=1)
    train_triple_scorer(index(), taught, taught, output=home / "scorer", num_examples=8, rounds=1)
    examples = graph_prompt_examples(PCSTRetriever.from_index(index()), taught)
    sizes: dict[str, Any] = dict(SIZES)
    kinds: tuple[tuple[str, Embeddings, Setting], ...] = (
        ("model", default_embeddings(), "frozen"),
        ("narrow", HashedEmbeddings(32), "frozen"),
        ("tuned", default_embeddings(), "prompt-tuning"),
    )
    for name, embeddings, setting in kinds:
        output = home / name
        train_graph_prompt(home / "lm", embeddings, examples, examples, output=output, setting=setting, **sizes)
    return home


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files above and the models, to work in."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    rows = [json.dumps(question.to_dict()) + "\n" for question in load_questions()[:8]]
    (tmp_path / "taught.jsonl").write_text("".join(rows) + FILES["unanswered.jsonl"], "utf-8")
    shutil.copytree(home, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def digest(model: str) -> str:
    return read_header(model).digest


def config(model: str) -> dict[str, Any]:
    return read_header(model).config


def record(model: str) -> Any:
    return json.loads(Path(model, "cli.json").read_text("utf-8"))


def writes(monkeypatch: pytest.MonkeyPatch, answer: str) -> list[Any]:
    """Let graph prompts write this; return what they will have been asked."""
    asked = []

    def invoke(model: GraphPromptModel, value: Any, config: Any = None) -> str:
        asked.append(value)
        return answer

    monkeypatch.setattr(GraphPromptModel, "invoke", invoke)
    return asked


class StopError(KGRetrieversError):
    """Where a training would begin."""


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a training is given, which does not begin."""
    taken: dict[str, Any] = {}

    @functools.wraps(train_graph_prompt)
    def train(llm: Any, embeddings: Any, examples: Any, validation: Any, **more: Any) -> Any:
        taken.update(llm=llm, embeddings=embeddings, examples=examples, validation=validation, **more)
        raise StopError("enough")

    monkeypatch.setattr(graph_prompt_training, "train_graph_prompt", train)
    return taken


# --- train ------------------------------------------------------------------------------------------------------------


def test_train_then_ask(run: Run) -> None:
    code, out, err = run(
        *TRAIN, "--validation", "taught.jsonl", "--field", "learning_rate=0.01", "--output", "my model"
    )
    assert (code, err) == (0, "")
    first, *rows, last = out.splitlines()
    assert first.startswith("Trained graph-prompt in ")
    assert first.endswith(" seconds. The model is in my model.")
    assert rows[:2] == [
        "Trained on         8 questions; not used: 1 have no answer",
        "Validated with     8 questions; not used: 1 have no answer",
    ]
    assert rows[2].startswith("Loss of answers    ")
    assert rows[3].startswith("Trained weights    ")
    assert rows[4].startswith("Text of the graph  cut for ")
    assert rows[4].endswith(" of 16 questions")
    assert last == f"Ask it: kg-retrievers ask {GRAPH} 'Who ...?' --model 'my model'"
    assert sorted(file.name for file in Path("my model").iterdir()) == ["cli.json", "model.safetensors"]
    assert record("my model") == {"method": "g-retriever", "fields": {}, "models": []}
    assert config("my model")["language_model"]["name"] == str(Path("lm").resolve())
    examples = graph_prompt_examples(PCSTRetriever.from_index(index()), load_questions()[:8])
    sizes: dict[str, Any] = SIZES | {"learning_rate": 0.01}
    train_graph_prompt("lm", default_embeddings(), examples, examples, output="same", **sizes)
    assert digest("my model") == digest("same")
    code, out, err = run(*shlex.split(last.partition(": kg-retrievers ")[2].replace("Who ...?", HER)), "--json")
    assert (code, err) == (0, "")
    documents = PCSTRetriever.from_index(index()).invoke(HER)
    answer = GraphPromptModel.from_pretrained("same", default_embeddings()).invoke(
        {"question": HER, "documents": documents}
    )
    told = json.loads(out)
    assert told["documents"] == [document.model_dump() for document in documents]
    assert told["answer"] == (answer or None)


def test_train_prints_one_json_object(run: Run) -> None:
    fields = ("--field", "setting=lora", "--field", 'lora_targets=["q_proj"]')
    code, out, err = run(*TRAIN, *fields, "--output", "m", "--json")
    assert code == 0
    assert err in ("", f"kg-retrievers: {NO_BETTER}\n")
    assert len(out.splitlines()) == 1
    told, written = json.loads(out), config("m")
    assert told.pop("seconds") > 0
    history = written["training"]["validation"]
    assert 0 < told.pop("trained_weights") < told.pop("weights")
    assert told.pop("cut") > 0
    assert told == {
        "method": "graph-prompt",
        "output": "m",
        "command": f"kg-retrievers ask {GRAPH} 'Who ...?' --model m",
        "training": {"used": 7, "without_answers": 1},
        "validation": {"used": 1, "without_answers": 0},
        "without_graph": 0,
        "retriever": "g-retriever",
        "loss_before": history[0],
        "loss_after": history[1],
        "history": history,
    }
    assert (written["lora_rank"], written["lora_targets"], written["training"]["setting"]) == (8, ["q_proj"], "lora")
    code, out, err = run(*ASK, "m", "--json")
    assert code == 0
    assert json.loads(out)["documents"]


def test_questions_with_all_of_their_graphs(run: Run, given: dict[str, Any]) -> None:
    *_, err = run(*PROMPT, "--questions", "web.jsonl", "--format", "webqsp", "--output", "m")
    assert err.splitlines() == [
        "kg-retrievers: for 1 of 2 questions no graph was found, as for 'who made nothing'",
        "kg-retrievers: error: enough",
    ]
    asked = list(read_webqsp("web.jsonl"))
    assert [(one.question, one.answers) for one in given["examples"]] == [
        ("who directed Her", ("Spike Jonze",)),
        ("who made nothing", ("Nobody",)),
    ]
    assert [one.triples for one in given["examples"]] == [tuple(one.graph.triples()) for one in asked[:2]]
    run(*PROMPT, *SCENES, "--validation", "images.json", "--limit", "2", "--output", "m")
    assert len(given["examples"]) == 2
    assert [one.answers for one in given["validation"]] == [("banana",), ("bowl",), ("yellow",)]
    first, *_ = given["validation"]
    assert first.triples == (("1/a", "to the left of", "1/b"),)
    assert first.labels["1/b"] == "name: bowl; (x,y,w,h): (5, 2, 3, 4)"


# --- with a model: ask, evaluate, compare -----------------------------------------------------------------------------


def test_a_graph_prompt_is_asked_with_the_retriever_of_its_training(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = writes(monkeypatch, "Spike Jonze")
    code, out, err = run(*TRAIN, "--model", "scorer", "--field", "max_hops=1", "--output", "m", "--json")
    assert code == 0
    assert json.loads(out)["retriever"] == "subgraph-rag"
    scorer = str(Path("scorer").resolve())
    assert record("m") == {"method": "subgraph-rag", "fields": {"max_hops": 1}, "models": [scorer]}
    code, out, err = run(*ASK, "m", "--field", "granularity=subgraph")
    assert (code, err) == (0, "")
    assert out.startswith("Question  Who directed Her?\nAnswer    Spike Jonze\n\nEvidence 1: score ")
    (value,) = asked
    retriever = kg_retrievers.SubgraphRAGRetriever.from_index(
        index(), model="scorer", max_hops=1, granularity="subgraph"
    )
    assert value == {"question": HER, "documents": retriever.invoke(HER)}
    assert run(*ASK, "m", "--method", "pcst")[0] == 0
    assert asked[-1]["documents"] == PCSTRetriever.from_index(index()).invoke(HER)
    assert run(*ASK, "m", "--model", "scorer")[0] == 0
    assert asked[-1]["documents"] == kg_retrievers.SubgraphRAGRetriever.from_index(index(), model="scorer").invoke(HER)
    shutil.move("scorer", "moved")
    told = mistake(run(*ASK, "m"))
    assert "m: its training had the retriever subgraph-rag, whose model is missing" in told
    assert run(*ASK, "m", "--model", "moved")[0] == 0


def test_records_know_the_graph_prompt(run: Run) -> None:
    evaluate = ("evaluate", *ASKED, "--limit", "1", "--records", "r.jsonl", "--output", "out.json")
    assert run(*evaluate, "--model", "model")[0] == 0
    settings = json.loads(Path("out.json").read_text("utf-8"))["settings"]
    assert settings["model"] == {"graph-prompt": digest("model")}
    assert settings["answerer"] == "graph-prompt"
    assert (settings["fields"]["edge_cost"], settings["field"]) == (0.1, {})
    shutil.move("model", "moved")
    code, _, err = run(*evaluate, "--model", "moved")
    assert (code, err) == (0, "kg-retrievers: what was measured before was taken from r.jsonl\n")
    told = mistake(run(*evaluate, "--model", "tuned"))
    assert "r.jsonl holds records of a run with other settings: settings.model.graph-prompt was" in told
    assert "settings.answerer was 'graph-prompt', and is None" in mistake(run(*evaluate, "--method", "pcst"))


# --- silence, and what is loaded --------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", ["peft", pytest.param("transformers", marks=pytest.mark.heavy)])
def test_without_the_extra(run_without: Callable[..., list[tuple[str, int]]], package: str) -> None:
    commands = ((*TRAIN, "--output", "m"), (*ASK, "model"), (*ASK, "scorer"))
    *refused, asked = run_without([package], *commands)
    for told, code in refused:
        assert (code, told.endswith(f"Run: {install_command('graph-prompt')}\n")) == (2, True), told
    assert asked[1] == 0


# --- mistakes ---------------------------------------------------------------------------------------------------------


def mistake(done: tuple[int, str, str]) -> str:
    """Check that a command told a mistake on one line and nothing else; return the line."""
    code, out, err = done
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1, err
    assert err.startswith("kg-retrievers: error: ")
    assert "Error:" not in err, "this looks like a traceback's last line"
    return err


ARGUMENTS = ["--questions", "arguments.tsv", "--format", "explagraphs"]


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ([*TRAIN, "--causal-lm", "notes"], "notes: no causal language model could be loaded from there"),
        ([*TRAIN, "--causal-lm", "taught.jsonl"], "Name another one: --causal-lm ..."),
        ([*TRAIN, "--causal-lm", "nobody/no-model"], "nobody/no-model: there is no such folder, and"),
        ([*TRAIN, "--questions", "unanswered.jsonl"], "no question in unanswered.jsonl has an answer"),
        ([*TRAIN, "--num-examples", "3"], "It sees a question so often: --field epochs=N"),
        ([*TRAIN, "--method", "best"], "--method: there is no method 'best'; the methods are"),
        ([*TRAIN, "--model", "model"], "model is a graph prompt itself; wanted the model of a retriever."),
        (
            [*TRAIN, "--field", "epoch=3"],
            "no field 'epoch'; did you mean 'epochs'? There are: after, batch_size, before, ",
        ),
        ([*TRAIN, "--field", "epoch=3"], "width, and the fields of g-retriever."),
        ([*TRAIN, "--field", "model=scorer"], "--field: model comes from other options"),
        ([*TRAIN, "--field", "width=7"], "width must be a multiple of heads=2, but got 7"),
        ([*TRAIN, "--field", "edge_cost=-1"], "edge_cost must be greater than 0"),
        ([*TRAIN, "--output", "model"], "model holds a model already. Name another folder: --output ..."),
        ([*PROMPT[:2], *TRAIN[4:]], "graph-prompt needs a causal language model of Hugging Face: --causal-lm"),
        ([*PROMPT, "--questions", "taught.jsonl"], "--graph must name the graph that the questions are about."),
        ([*PROMPT, *ARGUMENTS, "--graph", GRAPH], "--graph is for questions about one graph, and those of explagraphs"),
        ([*PROMPT, *ARGUMENTS, "--read", "format=csv"], "--read is for questions about one graph"),
        (["train", "gnn-rag", *ARGUMENTS], "--format explagraphs is not for the training of gnn-rag. Leave it out."),
        (["train", "gnn-rag", *TRAIN[2:]], "--causal-lm is not for the training of gnn-rag. Leave it out."),
    ],
)
def test_a_mistake_in_training_is_told_on_one_line(run: Run, argv: list[str], told: str) -> None:
    assert told in mistake(run(*argv, *(() if "--output" in argv else ("--output", "m"))))
    assert not Path("m").exists()


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ([*ASK, "model", "--model", "tuned"], "model and tuned are both models of graph-prompt. Name one of them."),
        ([*ASK, "narrow"], "whose vectors have 32 numbers, but got "),
        ([*ASK, "narrow"], "Index the graph with the former (--embeddings), or train a model with the latter."),
        ([*ASK, "lm"], "lm: no trained model is here: "),
        ([*ASK, "model", "--field", "edge_costs=1"], "there is no field 'edge_costs'"),
        ([*ASK, "model", "--model", "scorer", "--method", "pcst"], "the model in scorer is of subgraph-rag, but asked"),
        (["evaluate", *ASKED, "--model", "narrow"], "whose vectors have 32 numbers"),
        (["compare", *ASKED, "--method", "pcst", "--model", "narrow"], "whose vectors have 32 numbers"),
    ],
)
def test_a_mistake_is_told_on_one_line(run: Run, argv: list[str], told: str) -> None:
    assert told in mistake(run(*argv))


@pytest.mark.parametrize("text", ["[", "[]", "{}", '{"method": 5, "fields": {}, "models": []}'])
def test_a_damaged_record_is_told(run: Run, text: str) -> None:
    Path("model/cli.json").write_text(text, "utf-8")
    told = mistake(run(*ASK, "model"))
    assert "model/cli.json: damaged; wanted the retriever of the training. Name one: --method ..." in told
    assert run(*ASK, "model", "--method", "pcst")[0] == 0


def test_a_language_model_that_is_not_there_is_told(run: Run) -> None:
    """Its place may be written anew; another one in its place is refused."""
    home = Path(config("model")["language_model"]["name"])
    moved = home.rename(home.with_name("moved"))
    try:
        told = mistake(run(*ASK, "model"))
        assert f"model: its language model {home} cannot be loaded: " in told
        assert told.endswith('Put it back, or write its place into model/cli.json, as "language_model": "..."\n')
        written = {"method": "pcst", "fields": {}, "models": [], "language_model": "other"}
        Path("model/cli.json").write_text(json.dumps(written), "utf-8")
        told = mistake(run(*ASK, "model"))
        assert f"was trained with {home}, which has " in told
        assert told.endswith("Put the former in its place, or train a model with the latter.\n")
        Path("model/cli.json").write_text(json.dumps(written | {"language_model": "lm"}), "utf-8")
        assert run(*ASK, "model")[0] == 0
    finally:
        moved.rename(home)
