"""The commands evaluate and compare, as a person or a script calls them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from openai_server import OpenAIServer, Reply

import kg_retrievers
from kg_retrievers import GraphIndex, HashedEmbeddings, cli, default_embeddings, evaluate
from kg_retrievers.cli.compare import ALL
from kg_retrievers.cli.question_options import GROUPS
from kg_retrievers.core.checkpoint import read_header
from kg_retrievers.evaluation import Report
from kg_retrievers.evaluation.groups import GroupBy
from kg_retrievers.methods import registry
from kg_retrievers.methods.registry import Method
from kg_retrievers.sample import load_graph, load_questions

SAMPLE = Path(kg_retrievers.__file__).parent / "sample"
GRAPH, DATA = str(SAMPLE / "graph.jsonl"), str(SAMPLE / "questions.jsonl")
ASKED = ("--graph", GRAPH, "--data", DATA, "--format", "jsonl")
FILMS = ("--graph", "films.csv", "--data", "asked.jsonl", "--format", "jsonl")

FILES = {
    "films.csv": "head,relation,tail\n"
    "Her,directed_by,Spike Jonze\nHer,starring,Amy Adams\nAdaptation,directed_by,Spike Jonze\n",
    "broken.csv": "Her,directed_by,Spike Jonze\nbroken\n",
    "asked.jsonl": '{"question": "Who directed Her?", "answers": ["Spike Jonze"], "triples": '
    '[["Her", "directed_by", "Spike Jonze"]]}\n'
    '{"question": "Who directed Xyzzyplugh?", "answerable": false}\n',
    "labelled.jsonl": '{"question": "who  directed HER?", "pattern": {"triples": [["Her", "directed_by", '
    '{"unknown": "x"}]], "target": "x"}}\n'
    '{"question": "Adaptation was by whom?", "pattern": {"triples": [["Adaptation", "directed_by", '
    '{"unknown": "x"}]], "target": "x"}}\n',
    "foreign.jsonl": '{"question": "Who directed Dune?", "answers": ["Denis Villeneuve"]}\n',
    "notes.txt": "my notes\n",
    "splits/test.jsonl": '{"question": "Who directed Her?", "answers": ["Spike Jonze"]}\n',
}

#: What is said where no earlier call has compiled a method.
COMPILING = "kg-retrievers: compiling the search, once (about half a minute; it is kept for the next time) ...\n"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files above, to work in."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return tmp_path


def figures(path: str) -> Any:
    return json.loads(Path(path).read_text("utf-8"))


def lines_of(path: str) -> list[Any]:
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]


def untimed(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if "latency" not in name}


# --- evaluate ---------------------------------------------------------------------------------------------------------


def test_evaluate_writes_what_evaluate_returns(run: Run) -> None:
    code, out, err = run("evaluate", *ASKED, "--json", "out.json", "--records", "out.jsonl", "--seed", "3")
    assert (code, err) == (0, "")
    written = figures("out.json")
    questions = load_questions()
    index = GraphIndex.build(load_graph(), default_embeddings())
    retriever = kg_retrievers.SimGRAGRetriever.from_index(index)
    report = evaluate(retriever, questions, seed=3)
    assert list(written) == [
        "method", "questions", "metrics", "intervals", "by_hops", "by", "steps", "written", "unanswerable", "seed",
        "settings",
    ]  # fmt: skip
    assert (written["method"], written["questions"], written["seed"]) == ("simgrag", len(questions), 3)
    assert untimed(written["metrics"]) == untimed(dict(report.metrics))
    assert written["intervals"] == report.intervals
    assert [untimed(part) for part in written["by_hops"].values()] == [
        *map(untimed, map(dict, report.by_hops.values()))
    ]
    assert written["metrics"]["llm_calls_mean"] == 0.0
    assert written["metrics"]["abstention"] is written["metrics"]["text_hit"] is None
    settings = written["settings"]
    assert (settings["data"], settings["topic"], settings["limit"], settings["llm"]) == (DATA, "given", None, None)
    assert settings["index"] == index.fingerprint
    assert Report.read("out.jsonl").to_dict() == written
    rows = out.splitlines()
    assert rows[1].split()[:4] == ["method", "hops", "n", "hit"]
    assert [row.split()[:3] for row in rows[2:]] == [
        ["simgrag", name, str(part)]
        for name, part in [("all", 95), *((hop, one["questions"]) for hop, one in written["by_hops"].items())]
    ]


def test_evaluate_prints_json_and_nothing_else(run: Run) -> None:
    code, out, err = run("evaluate", *FILMS, "--json", "-")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["metrics"]["hit"] == found["metrics"]["abstention"] == found["metrics"]["triple_recall"] == 1
    assert found["unanswerable"] == {"unknown": {"questions": 1, "abstention": 1.0}}


def test_refused_questions_are_counted_and_not_logged() -> None:
    command = [sys.executable, "-m", "kg_retrievers.cli", "evaluate", *FILMS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr.replace(COMPILING, "")) == (0, "")


def test_evaluate_a_folder_of_an_index(run: Run) -> None:
    assert run("index", "films.csv", "--output", "films.index")[0] == 0
    code, _, err = run("evaluate", "--graph", "films.index", *FILMS[2:], "--json", "folder.json")
    assert (code, err) == (0, "")
    assert run("evaluate", *FILMS, "--json", "file.json")[0] == 0
    of_folder, of_file = figures("folder.json"), figures("file.json")
    assert of_folder["settings"].pop("graph") == "films.index"
    assert of_file["settings"].pop("graph") == "films.csv"
    assert of_folder["settings"] == of_file["settings"]
    assert untimed(of_folder["metrics"]) == untimed(of_file["metrics"])


@pytest.mark.parametrize(
    ("more", "settings"),
    [
        (["--hops", "2,1", "--limit", "5"], {"hops": [1, 2], "limit": 5}),
        (["--topic", "linked", "--k", "3"], {"topic": "linked"}),
        (["--unanswerable", "6"], {"unanswerable": 6}),
    ],
)
def test_evaluate_takes_a_part(run: Run, more: list[str], settings: dict[str, Any]) -> None:
    code, _, err = run("evaluate", *ASKED, *more, "--json", "out.json")
    assert (code, err) == (0, "")
    written = figures("out.json")
    assert {name: written["settings"][name] for name in settings} == settings
    if "--limit" in more:
        assert [part["questions"] for part in written["by_hops"].values()] == [5, 5]
    elif "--k" in more:
        assert written["settings"]["fields"]["k"] == 3
    else:
        assert sum(kind["questions"] for kind in written["unanswerable"].values()) == 6
        assert written["metrics"]["abstention"] is not None


def test_measured_questions_are_no_examples(run: Run) -> None:
    code, _, err = run("evaluate", *FILMS, "--examples", "labelled.jsonl", "--json", "out.json")
    assert (code, err) == (0, "")
    written = figures("out.json")
    examples = written["settings"]["examples"]
    assert len(examples.pop("digest")) == 32
    assert examples == {"data": "labelled.jsonl", "split": None, "given": 1, "dropped": 1}
    assert written["settings"]["fields"]["pattern_generator"] == "QuestionReader"
    assert written["metrics"]["hit"] == 1


def test_evaluate_a_split_of_a_folder(run: Run) -> None:
    split = ("--graph", "films.csv", "--data", "splits", "--format", "jsonl", "--split", "test")
    assert run("evaluate", *split, "--json", "out.json")[0] == 0
    assert figures("out.json")["settings"]["split"] == "test"


@pytest.mark.usefixtures("unsure")
def test_evaluate_with_a_language_model(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = '{"triples": [["Her", "directed by", "UNKNOWN person 1"]], "target": "UNKNOWN person 1"}'
    strange = '{"triples": [["Xyzzyplugh", "directed by", "UNKNOWN person 1"]], "target": "UNKNOWN person 1"}'
    answer = '{"explanation": "", "answers": ["Spike Jonze", "Amy Adams"], "citations": [1]}'
    refusal = '{"explanation": "", "answers": [], "citations": []}'
    with OpenAIServer(*map(Reply, (pattern, answer, strange, refusal))) as peer:
        monkeypatch.setenv("OPENAI_BASE_URL", peer.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        code, out, err = run("evaluate", *FILMS, "--llm", "openai:test-model", "--json", "out.json")
    assert (code, err) == (0, "")
    written = figures("out.json")
    assert written["metrics"]["llm_calls_mean"] == 2
    assert written["metrics"]["text_hit"] == 1
    assert written["metrics"]["text_precision"] == 0.5
    assert written["metrics"]["abstention"] == 1
    assert written["settings"]["llm"] == "openai:test-model"
    assert "LLM" in out.splitlines()[0]
    assert "test" not in json.dumps(written["settings"]).replace("test-model", "")  # no key is kept


def test_evaluate_with_the_answer_prompt_of_the_method(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    reply = Reply("They say so [1].\nAnswer: Spike Jonze")
    with OpenAIServer(*[reply] * 4) as peer:
        monkeypatch.setenv("OPENAI_BASE_URL", peer.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        argv = ("evaluate", *FILMS, "--method", "neighborhood", "--llm", "openai:test-model", "--answers", "prompt")
        code, _, err = run(*argv, "--figure", "score_h", "--json", "out.json", "--records", "out.jsonl")
    assert (code, err) == (0, "")
    assert figures("out.json")["metrics"]["text_hit"] == 1
    assert lines_of("out.jsonl")[1]["written"] == [{"answer": "Spike Jonze", "right": True, "in_evidence": True}]


def test_examples_are_shown_in_the_prompt_of_the_answer(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    given = ("--examples", "labelled.jsonl", "--llm", "openai:test-model", "--answers", "prompt", "--answer-shots", "2")
    with OpenAIServer(*[Reply("Answer: Spike Jonze")] * 4) as peer:
        monkeypatch.setenv("OPENAI_BASE_URL", peer.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        code, _, err = run("evaluate", *FILMS, *given, "--json", "out.json")
    assert (code, err) == (0, "")
    asked = json.dumps(peer.requests[0])
    assert "Question: Adaptation was by whom?" in asked
    assert "Adaptation -> directed by -> Spike Jonze" in asked
    assert "HER" not in asked  # it is measured


def test_claims_are_shown_in_the_prompt_of_the_verdict(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("claims.jsonl").write_text('{"question": "Amy Adams starred in Her.", "value": true}\n', "utf-8")
    Path("taught.jsonl").write_text('{"question": "Spike Jonze directed Her.", "value": true}\n', "utf-8")
    asked = ("--graph", "films.csv", "--data", "claims.jsonl", "--format", "jsonl", "--examples", "taught.jsonl")
    given = ("--llm", "openai:test-model", "--answers", "verdict", "--answer-shots", "1", "--method", "neighborhood")
    reply = '{"explanation": "Yes.", "verdict": "supported", "citations": [1]}'
    with OpenAIServer(*[Reply(reply)] * 4) as peer:
        monkeypatch.setenv("OPENAI_BASE_URL", peer.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        code, _, err = run("evaluate", *asked, *given, "--json", "out.json")
    assert (code, err) == (0, "")
    assert "Claim: Spike Jonze directed Her." in json.dumps(peer.requests[0])
    assert figures("out.json")["metrics"]["exact_value"] == 1


def test_claims_are_verified(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    claims = [
        {"question": "Spike Jonze directed Her.", "value": True},
        {"question": "Spike Jonze did not direct Her.", "value": False},
    ]
    Path("claims.jsonl").write_text("\n".join(map(json.dumps, claims)), encoding="utf-8")
    graph = dict(zip(FILMS[::2], FILMS[1::2], strict=True))["--graph"]
    with OpenAIServer(*[Reply('{"explanation": "Yes.", "verdict": "supported", "citations": [1]}')] * 4) as peer:
        monkeypatch.setenv("OPENAI_BASE_URL", peer.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        argv = ("--method", "neighborhood", "--llm", "openai:test-model", "--answers", "verdict", "--json", "out.json")
        code, _, err = run("evaluate", "--graph", graph, "--data", "claims.jsonl", "--format", "jsonl", *argv)
    assert (code, err) == (0, "")
    assert figures("out.json")["metrics"]["exact_value"] == 0.5


def test_a_table_is_grouped_and_shows_more_figures(run: Run) -> None:
    code, out, err = run("evaluate", *ASKED, "--by", "answers", "--figure", "coverage", "--figure", "nodes_median")
    assert (code, err) == (0, "")
    rows = out.splitlines()
    heads = next(row for row in rows if row.startswith("method")).split()
    assert (heads[1], heads[-2:]) == ("answers", ["coverage", "median"])
    assert [row.split()[1] for row in rows if row.startswith("simgrag")] == ["all", "1", "2-4", "5-9"]
    code, _, err = run("evaluate", *ASKED, "--figure", "coverge")
    assert (code, err) == (2, "kg-retrievers: error: compare: there is no figure 'coverge'; did you mean 'coverage'?\n")
    assert get_args(GroupBy) == GROUPS


def test_a_broken_run_is_kept_and_continued(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    all_answered = ("--field", "min_confidence=0.0")
    command = ("evaluate", *ASKED, *all_answered, "--hops", "1", "--limit", "4", "--records", "out.jsonl")
    real = kg_retrievers.SimGRAGRetriever.match
    calls = iter(range(100))

    def match(*args: Any, **named: Any) -> Any:
        if next(calls) == 3:  # one is untimed
            raise ConnectionError("no network")
        return real(*args, **named)

    with monkeypatch.context() as patch:
        patch.setattr(kg_retrievers.SimGRAGRetriever, "match", match)
        code, out, err = run(*command)
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        "kg-retrievers: what was measured is in out.jsonl; the same command goes on from there",
        "kg-retrievers: error: ConnectionError: no network (--debug shows where)",
    ]
    assert len(Report.read("out.jsonl").records) == 2
    code, out, err = run(*command)
    assert (code, err) == (0, "kg-retrievers: what was measured before was taken from out.jsonl\n")
    assert "simgrag  all" in out
    assert len(Report.read("out.jsonl").records) == 4


def test_records_of_other_examples_are_left_alone(run: Run, folder: Path) -> None:
    command = ("evaluate", *FILMS, "--examples", "labelled.jsonl", "--records", "r.jsonl")
    assert run(*command)[0] == 0
    assert run(*command)[0] == 0
    text = (folder / "labelled.jsonl").read_text("utf-8")
    (folder / "labelled.jsonl").write_text(text.replace("was by whom", "had which director"), "utf-8")
    code, _, err = run(*command)
    assert code == 2
    assert "r.jsonl holds records of a run with other settings: settings.examples.digest was " in err
    assert "settings.parts.pattern_generator was " in err


def only(monkeypatch: pytest.MonkeyPatch, *names: str, **own: str) -> None:
    """Leave these methods in the table, beside classes of this file by the names of their methods."""
    methods = [registry.find_method(name) for name in names]
    for name, kind in own.items():
        methods.append(Method(name=name, retriever=f"{__name__}:{kind}", finds="little", paper="none"))
    monkeypatch.setattr(registry, "METHODS", tuple(methods))


def test_compare_takes_a_field_of_one_method(run: Run) -> None:
    """The others go without; one that no method has is a mistake."""
    methods = ("--method", "pcst", "--method", "triple-similarity")
    code, out, err = run("compare", *FILMS, *methods, "--field", "edge_cost=2", "--json", "-")
    assert code == 0
    assert "kg-retrievers: kaping has no field edge_cost; it goes without\n" in err
    fields = [one["settings"]["fields"] for one in json.loads(out)["runs"]]
    assert fields[0]["edge_cost"] == 2
    assert "edge_cost" not in fields[1]
    code, _, err = run("compare", *FILMS, *methods, "--field", "egde_cost=2")
    assert code == 2
    assert "did you mean 'edge_cost'?" in err


def test_several_methods_are_one(run: Run, folder: Path) -> None:
    union = ("--method", "pcst+simgrag:plain", "--method", "simgrag+pcst")
    more = ("--field", "fusion=score", "--k", "5", "--records", "runs", "--json", "-")
    code, out, err = run("compare", *FILMS, *union, "--method", "pcst", *more)
    assert (code, err) == (0, "kg-retrievers: g-retriever has no field fusion; it goes without\n")
    runs = json.loads(out)["runs"]
    assert [one["method"] for one in runs] == ["g-retriever+simgrag:plain", "simgrag+g-retriever", "g-retriever"]
    assert [one["metrics"]["hit"] for one in runs] == [1, 1, None]
    settings = [one["settings"] for one in runs]
    assert [one["retriever"] for one in settings] == ["UnionRetriever", "UnionRetriever", "PCSTRetriever"]
    assert [(one["fields"].get("fusion"), one["fields"]["k"]) for one in settings] == [("score", 5)] * 2 + [(None, 5)]
    assert settings[0]["parts"]["retrievers"] != settings[1]["parts"]["retrievers"]
    assert {path.name for path in folder.glob("runs/*")} == {
        "g-retriever+simgrag-plain.jsonl", "simgrag+g-retriever.jsonl", "g-retriever.jsonl",
    }  # fmt: skip


def test_each_of_several_methods_gets_what_it_takes(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    taught = [kg_retrievers.Question("Who directed Her?", answers=("Spike Jonze",))]
    graph = kg_retrievers.KnowledgeGraph.from_file("films.csv")
    index = GraphIndex.build(graph, default_embeddings())
    kg_retrievers.train_triple_scorer(index, taught, output="model", num_examples=8, rounds=1)
    more = ("--model", "model", "--examples", "labelled.jsonl", "--json", "out.json")
    code, _, err = run("evaluate", *FILMS, "--method", "simgrag+subgraph-rag", *more)
    assert (code, err) == (0, "")
    settings = figures("out.json")["settings"]
    assert settings["model"] == {"subgraph-rag": read_header("model").digest}
    assert settings["examples"]["given"] == 1
    code, _, err = run("ask", "films.csv", "Who directed Her?", "--method", "simgrag+subgraph-rag", "--model", "model")
    assert (code, err) == (0, "")
    code, _, err = run("compare", *FILMS, "--method", "simgrag+pcst", "--model", "model")
    assert (code, err) == (0, "kg-retrievers: the model in model is left out: subgraph-rag is not compared\n")
    code, _, err = run("evaluate", *FILMS, "--method", "simgrag+pcst", "--model", "model")
    assert code == 2
    assert (
        "the model in model is of subgraph-rag, but asked is simgrag+g-retriever. Leave it out, or: --method subg"
        in err
    )
    reply = '{"triples": [["Her", "directed by", "UNKNOWN person 1"]], "target": "UNKNOWN person 1"}'
    answer = '{"explanation": "", "answers": ["Spike Jonze"], "citations": [1]}'
    with OpenAIServer(*map(Reply, (reply, answer) * 2)) as peer:
        monkeypatch.setenv("OPENAI_BASE_URL", peer.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        llm = ("--llm", "openai:test-model")
        code, _, err = run("evaluate", *FILMS, "--method", "simgrag+subgraph-rag", *more, *llm)
    assert (code, err) == (0, "")
    assert figures("out.json")["settings"]["llm"] == "openai:test-model"


@pytest.mark.usefixtures("unsure")
def test_evaluate_with_a_language_model_and_examples(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The method takes both; `compare` shows what each brings."""
    only(monkeypatch, "simgrag")
    both = ("--llm", "openai:test-model", "--examples", "labelled.jsonl")
    pattern = '{"triples": [["Her", "directed by", "UNKNOWN person 1"]], "target": "UNKNOWN person 1"}'
    answer = '{"explanation": "", "answers": ["Spike Jonze"], "citations": [1]}'
    with OpenAIServer(*map(Reply, (pattern, answer) * 4)) as peer:
        monkeypatch.setenv("OPENAI_BASE_URL", peer.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        code, _, err = run("evaluate", *FILMS, *both, "--json", "out.json")
        assert (code, err) == (0, "")
        written = figures("out.json")
        assert written["method"] == "simgrag"
        assert (written["settings"]["llm"], written["settings"]["examples"]["given"]) == ("openai:test-model", 1)
        assert written["settings"]["fields"]["pattern_generator"] == "QuestionReader"
        assert written["metrics"]["text_hit"] == 1
        code, out, err = run("compare", *FILMS, *both, "--method", ALL, "--json", "-")
    assert (code, err) == (0, "")
    runs = json.loads(out)["runs"]
    assert [one["method"] for one in runs] == ["simgrag:plain", "simgrag:examples", "simgrag:llm"]
    assert [one["settings"]["llm"] for one in runs] == [None, None, "openai:test-model"]
    assert [one["settings"]["examples"] is None for one in runs] == [True, False, True]


@pytest.mark.parametrize(
    ("field", "read"),
    [("max_distance=0.5", 0.5), ('on_refusal="empty"', "empty"), ("on_refusal=empty", "empty"), ("k_nodes=3", 3)],
)
def test_fields_of_the_retriever_are_set(run: Run, field: str, read: Any) -> None:
    name = field.partition("=")[0]
    assert run("evaluate", *FILMS, "--field", field, "--json", "out.json")[0] == 0
    settings = figures("out.json")["settings"]
    assert settings["field"] == {name: read}
    assert settings["fields"][name] == read
    assert run("compare", *FILMS, "--method", "simgrag", "--field", field)[0] == 0


def test_ask_sets_fields_of_the_retriever(run: Run) -> None:
    answers = []
    for more in ([], ["--field", 'ties="break"']):
        code, out, _ = run("ask", "films.csv", "What did Spike Jonze direct?", "--json", *more)
        assert code == 0
        answers.append(json.loads(out)["documents"][0]["metadata"]["answers"])
    assert [len(found) for found in answers] == [2, 1]


def test_a_high_confidence_raises_abstention(run: Run) -> None:
    asked = (*ASKED, "--limit", "20", "--unanswerable", "30")
    shares = []
    for more in (["--field", "min_confidence=0.0"], ["--field", "min_confidence=1.0"]):
        assert run("evaluate", *asked, *more, "--json", "out.json")[0] == 0
        shares.append(figures("out.json")["metrics"])
    assert shares[0]["abstention"] < shares[1]["abstention"]
    assert shares[0]["false_refusals"] < shares[1]["false_refusals"]  # that is its price


def test_a_graph_of_something_else_is_told(run: Run) -> None:
    code, _, err = run("evaluate", "--graph", "films.csv", "--data", "foreign.jsonl", "--format", "jsonl")
    assert code == 0
    lost = "kg-retrievers: the graph holds no gold answer of 1 of 1 questions, as of 'Who directed Dune?'. "
    assert err.startswith(lost)
    assert err.count("\n") == 1


def test_a_terminal_is_shown_how_far_it_is(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    assert cli.main(["evaluate", *FILMS]) == 0
    assert "Asking simgrag" in capsys.readouterr().err


# --- compare ----------------------------------------------------------------------------------------------------------


def test_compare_methods_and_then_their_records(run: Run) -> None:
    more = ("--examples", "labelled.jsonl", "--records", "kept", "--json", "out.json")
    code, out, err = run("compare", *FILMS, "--method", "simgrag:plain", "--method", "simgrag:examples", *more)
    assert (code, err) == (0, "")
    assert [line.split()[:2] for line in out.splitlines()[2:4]] == [
        ["simgrag:plain", "all"],
        ["simgrag:examples", "all"],
    ]
    assert "\nNo failures of simgrag:plain\n" in out
    written = figures("out.json")
    plain, examples = written["runs"]
    assert (plain["settings"]["examples"], examples["settings"]["examples"]["given"]) == (None, 1)
    assert plain["settings"]["fields"]["pattern_generator"] == "QuestionReader"
    assert examples["settings"]["fields"]["pattern_generator"] == "QuestionReader"
    assert written["failures"] == {"simgrag:plain": [], "simgrag:examples": []}
    code, again, err = run("compare", "kept/simgrag-plain.jsonl", "kept/simgrag-examples.jsonl")
    assert (code, err, again) == (0, "", out)


def test_compare_tells_failures_in_words(run: Run) -> None:
    asked = (*ASKED, "--method", "simgrag", "--field", "min_confidence=0.0")
    code, out, err = run("compare", *asked, "--failures", "3")
    assert (code, err) == (0, "")
    heading, *told = out.split("\nFailures of simgrag ")[1].splitlines()
    assert re.fullmatch(r"\((\d+ at (linking|pattern|search|answer)(, )?)+\)", heading)
    assert len(told) == 3
    assert all(line.startswith('- "') and " Wanted: " in line and " Got: " in line for line in told)
    assert all(re.search(r" Failed at: (linking|pattern|search|answer)\.$", line) for line in told)
    assert "Pattern (zero-shot): " in out
    assert "ailures of" not in run("compare", *asked, "--failures", "0")[1]


def test_records_cannot_steer_the_terminal(run: Run, folder: Path) -> None:
    assert run("evaluate", *FILMS, "--records", "r.jsonl")[0] == 0
    text = (folder / "r.jsonl").read_text("utf-8")
    for harmless, hostile in (
        ('"method": "simgrag"', '"method": "\\u001b[31m[b]x\\u0007"'),
        ('"answers": ["Spike Jonze"]', '"answers": ["\\u001b[2J\\r"]'),
        ('"hit": 1.0', '"hit": 0.0'),
    ):
        assert harmless in text
        text = text.replace(harmless, hostile)
    (folder / "r.jsonl").write_text(text, "utf-8")
    code, out, _ = run("compare", "r.jsonl")
    assert code == 0
    assert "Failures of [31m[b]x (1 at answer)\n" in out
    assert "Got: [2J" in out
    assert not {"\x1b", "\x07", "\r"} & set(out)


def test_compare_all_methods(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "simgrag", trained="Trained")
    code, out, err = run("compare", *FILMS, "--method", ALL, "--json", "-")
    assert code == 0
    assert err == "kg-retrievers: trained is left out: Trained needs a model\n"
    assert [one["method"] for one in json.loads(out)["runs"]] == ["simgrag"]
    for methods in (["trained", ALL], ["trained", "simgrag"]):
        named = (part for method in methods for part in ("--method", method))
        code, out, err = run("compare", *FILMS, *named, "--json", "-")
        assert (code, err) == (0, "kg-retrievers: trained is left out: Trained needs a model\n")
        assert [one["method"] for one in json.loads(out)["runs"]] == ["simgrag"]
    code, out, err = run("compare", *FILMS, "--method", "trained")
    assert (code, out, err) == (2, "", "kg-retrievers: error: Trained needs a model\n")


ANSWERS = '{"question": "Who directed Adaptation?", "answers": ["Spike Jonze"]}\n'


def test_compare_leaves_out_who_cannot_use_the_examples(run: Run, folder: Path) -> None:
    (folder / "answers.jsonl").write_text(ANSWERS, "utf-8")
    named = ("--method", "simgrag", "--method", "relation-paths", "--method", "simgrag+relation-paths")
    code, out, err = run("compare", *FILMS, *named, "--examples", "answers.jsonl", "--json", "-")
    assert code == 0
    first, second = err.splitlines()
    assert first == 'kg-retrievers: simgrag goes without the examples, none of which has "pattern"'
    assert second.startswith("kg-retrievers: simgrag is left out: ExamplePatternGenerator: got 1 examples, but none")
    found = {one["method"]: one for one in json.loads(out)["runs"]}
    assert list(found) == ["rog", "simgrag+rog"]
    assert [one["settings"]["examples"]["given"] for one in found.values()] == [1, 1]
    code, _, err = run("evaluate", *FILMS, "--method", "simgrag", "--examples", "answers.jsonl")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "but none with a pattern" in err


def test_what_makes_no_difference_is_run_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, frugal="Frugal")
    code, out, err = run("compare", *FILMS, "--examples", "labelled.jsonl", "--method", ALL, "--json", "-")
    assert (code, err) == (0, "kg-retrievers: frugal:examples is left out: it is the same as frugal:plain\n")
    assert [one["method"] for one in json.loads(out)["runs"]] == ["frugal:plain"]


class Frugal:
    """A method that makes nothing of examples."""

    made: Any = None

    @classmethod
    def from_index(cls, index: Any, **_: Any) -> Any:
        cls.made = cls.made or kg_retrievers.SimGRAGRetriever.from_index(index)
        return cls.made


class Trained:
    """A method that cannot be built of what is given."""

    @classmethod
    def from_index(cls, *_: Any, **__: Any) -> None:
        raise kg_retrievers.errors.InvalidArgumentError("Trained needs a model")


def test_runs_of_one_name_are_told_apart_by_their_files(run: Run) -> None:
    for name in ("one", "two"):
        assert run("evaluate", *FILMS, "--records", f"{name}.jsonl")[0] == 0
    code, out, err = run("compare", "one.jsonl", "two.jsonl", *FILMS, "--method", "simgrag")
    assert (code, err) == (0, "")
    assert [line.split("  ")[0] for line in out.splitlines()[2:5]] == [
        "simgrag (one.jsonl)",
        "simgrag (two.jsonl)",
        "simgrag",
    ]


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["evaluate"], "required: --data, --format. See: kg-retrievers evaluate --help"),
        (
            ["evaluate", *FILMS, "--method", "simrag"],
            "--method: there is no method 'simrag'; did you mean 'simgrag'? See: kg-retrievers evaluate --help",
        ),
        (
            ["evaluate", *FILMS, "--method", "simgrag:linked"],
            "not given 'linked', as in 'simgrag:linked'; wanted :plain or",
        ),
        (["evaluate", *FILMS, "--method", "simgrag:exmaples"], "'simgrag:exmaples'; did you mean 'examples'?"),
        (["evaluate", *FILMS, "--method", "all"], "there is no method 'all'; the methods are"),
        (["compare", *FILMS, "--method", "all+pcst"], "there is no method 'all'"),
        (["evaluate", *FILMS, "--method", "pcst+simgrag:examples"], "'g-retriever+simgrag:examples' needs --examples."),
        (["evaluate", *FILMS, "--method", "simgrag:examples"], "'simgrag:examples' needs --examples."),
        (["evaluate", *FILMS, "--method", "simgrag:llm"], "'simgrag:llm' needs --llm."),
        (["evaluate", *FILMS, "--hops", "one"], "--hops: wanted integers with commas between them, as 1,2,3, but"),
        (["evaluate", *FILMS, "--hops", "0"], "--hops: wanted integers"),
        (["evaluate", *FILMS, "--hops", "1,,2"], "but got '1,,2'"),
        (["evaluate", *FILMS, "--hops", "3"], "asked.jsonl has the hops [1], but got [3]"),
        (["evaluate", *FILMS, "--limit", "0"], "--limit: wanted an integer of 1 or more, but got '0'"),
        (["evaluate", *FILMS, "--seed", "-1"], "--seed: "),
        (["evaluate", *FILMS, "--seed", "x"], "--seed: wanted an integer of 0 or more, but got 'x'"),
        (["evaluate", *FILMS, "--k", "0"], "--k: wanted an integer of 1 or more"),
        (["evaluate", *FILMS, "--topic", "Her"], "argument --topic: invalid choice: 'Her'; choose from given, linked."),
        (["evaluate", *FILMS, "--split", "dev"], "asked.jsonl is no folder, so it has no split 'dev'"),
        (["evaluate", *FILMS, "--unanswerable", "5"], "wanted 5, but only 0 can be made of 2 questions"),
        (["evaluate", *FILMS, "--examples-split", "dev"], "--examples-split says which part of --examples"),
        (["evaluate", *FILMS, "--examples", "asked.jsonl"], "all of the 2 examples are among the questions"),
        (["evaluate", *FILMS, "--examples", "none.jsonl"], "none.jsonl: wanted a text file"),
        (["evaluate", *FILMS, "--json", "none/out.json"], "none/out.json cannot be written"),
        (["evaluate", *FILMS, "--json", "splits"], "splits cannot be written"),
        (["evaluate", *FILMS, "--records", "none/r.jsonl"], "none/r.jsonl cannot be written"),
        (["evaluate", *FILMS, "--records", "-"], "--records: wanted a name, since records are also read, but got '-'"),
        (["compare", *FILMS, "--method", "simgrag", "--records", "-"], "--records: wanted a name"),
        (["evaluate", *FILMS, "--field", "max_distance"], "--field: wanted NAME=VALUE, as max_distance=0.5, but got"),
        (["evaluate", *FILMS, "--field", "=1"], "--field: wanted NAME=VALUE"),
        (["evaluate", *FILMS, "--field", "k=abc"], "--field: k comes from other options: give --k, but got 'k=abc'"),
        (["evaluate", *FILMS, "--field", "index=1"], "--field: index comes from other options"),
        (["evaluate", *FILMS, "--field", "max_distanc=1"], "no field 'max_distanc'; did you mean 'max_distance'?"),
        (["evaluate", *FILMS, "--field", "max_distance=near"], "max_distance must be a valid number"),
        (["compare", *FILMS, "--method", "simgrag", "--field", "knodes=1"], "no field 'knodes'; did you mean"),
        (["ask", "films.csv", "Who?", "--field", "max_distanc=1"], "did you mean 'max_distance'?"),
        (["evaluate", *FILMS, "--records", "notes.txt"], "notes.txt: this is no file of records"),
        (["evaluate", "--graph", "none.csv", *FILMS[2:]], "none.csv: there is no such file"),
        (["evaluate", "--graph", "splits", *FILMS[2:]], "the folder holds no saved graph"),
        (["evaluate", "--graph", "broken.csv", *FILMS[2:]], "with --on-error skip."),
        (["evaluate", "--graph", "notes.txt", *FILMS[2:]], "--graph-format"),
        (
            ["evaluate", *FILMS[:2], "--data", "none", "--format", "metaqa"],
            "none: wanted a folder that holds 1-hop, 2-hop or 3-hop",
        ),
        (["evaluate", *FILMS[:2], "--data", "splits", "--format", "jsonl"], "name one of its splits: ['test']"),
        (["evaluate", *FILMS[:2], "--data", "notes.txt", "--format", "jsonl"], "notes.txt:1: no valid JSON"),
        (["evaluate", *FILMS[:2], "--data", "asked.jsonl", "--format", "csv"], "--format: invalid choice: 'csv'"),
        (["evaluate", *FILMS, "--answer-shots", "2"], "--answer-shots shows --examples to --llm, in the prompt of"),
        (["compare"], "name files of records, or methods to run"),
        (["compare", "--method", "simgrag", "--data", "x"], "--format must be given"),
        (["compare", *FILMS, "--method", "simrag"], "did you mean 'simgrag'?"),
        (["compare", "none.jsonl"], "none.jsonl: wanted a file of records, but it cannot be read"),
        (["compare", "notes.txt"], "notes.txt: this is no file of records"),
        (["compare", "notes.txt", "--failures", "few"], "--failures: wanted an integer of 0 or more"),
        (["compare", "notes.txt", "--json", "none/out.json"], "none/out.json cannot be written"),
        (["compare", *FILMS, "--method", "simgrag", "--records", "notes.txt"], "notes.txt is a file. Name a"),
    ],
)
def test_a_mistake_is_told_on_one_line(run: Run, argv: list[str], told: str) -> None:
    code, out, err = run(*argv)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1, err
    assert err.startswith("kg-retrievers: error: ")
    assert told in err
    assert "Error:" not in err, "this looks like a traceback's last line"


def test_records_of_another_run_are_left_alone(run: Run) -> None:
    assert run("evaluate", *FILMS, "--records", "r.jsonl")[0] == 0
    code, out, err = run("evaluate", *FILMS, "--records", "r.jsonl", "--topic", "linked")
    assert (code, out) == (2, "")
    assert "r.jsonl holds records of a run with other settings: settings.topic was 'given', and is 'linked'." in err
    assert len(err.splitlines()) == 1


@pytest.mark.real
@pytest.mark.heavy  # the sample graph shows the same
def test_evaluate_on_metaqa_equals_a_direct_computation(
    run: Run, data_dir: Path, metaqa_graph: kg_retrievers.KnowledgeGraph
) -> None:
    limit = 50
    folder = data_dir / "metaqa"
    asked = ("--graph", str(folder / "kb.txt"), "--data", str(folder), "--format", "metaqa", "--split", "dev")
    drawn = ("--hops", "1,2,3", "--limit", str(limit), "--seed", "1")
    code, _, err = run("evaluate", *asked, *drawn, "--json", "out.json")
    assert (code, err) == (0, "")
    written = figures("out.json")
    assert written["settings"]["split"] == "dev"
    retriever = kg_retrievers.SimGRAGRetriever.from_index(GraphIndex.build(metaqa_graph, HashedEmbeddings()))
    questions = kg_retrievers.read_question_set(folder, "metaqa", limit=limit, seed=1)
    for hop in (1, 2, 3):
        hits = shares = exact = 0.0
        for question in (one for one in questions if one.pattern and len(one.pattern.triples) == hop):
            best = retriever.invoke(question.text, seed_entities=list(question.seed_entities))[0]
            gold, got = set(question.answers), set(best.metadata["answers"])
            hits, shares, exact = hits + bool(gold & got), shares + len(gold & got) / len(got), exact + (gold == got)
        part = written["by_hops"][str(hop)]
        assert (part["questions"], part["compared"]) == (limit, limit)
        means = (part["hit"], part["hits@1"], part["exact_match"])
        assert means == pytest.approx((hits / limit, shares / limit, exact / limit))
    assert written["by_hops"]["1"]["hit"] > 0.5
