"""The commands evaluate and compare, as a person or a script calls them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from openai_server import OpenAIServer
from shell_mistakes import Run, mistake

import kg_retrievers
from kg_retrievers import GraphIndex, default_embeddings, evaluate
from kg_retrievers.cli.evaluate import ALL, By
from kg_retrievers.evaluation import Report
from kg_retrievers.evaluation.report import GroupBy
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


def figures(path: str) -> Any:
    return json.loads(Path(path).read_text("utf-8"))


def untimed(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if "latency" not in name}


# --- evaluate ---------------------------------------------------------------------------------------------------------


def test_evaluate_writes_what_evaluate_returns(run: Run) -> None:
    code, out, err = run("evaluate", *ASKED, "--output", "out.json", "--records", "out.jsonl", "--seed", "3")
    assert (code, err) == (0, "")
    written = figures("out.json")
    questions = load_questions()
    index = GraphIndex.build(load_graph(), default_embeddings())
    report = evaluate(kg_retrievers.KGRetriever.from_index(index), questions, seed=3)
    assert list(written) == [
        "method", "questions", "metrics", "intervals", "by_hops", "by", "seed", "settings",
    ]  # fmt: skip
    assert (written["method"], written["questions"], written["seed"]) == ("kg", len(questions), 3)
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
        ["kg", name, str(part)]
        for name, part in [("all", 95), *((hop, one["questions"]) for hop, one in written["by_hops"].items())]
    ]


def test_evaluate_prints_json_and_nothing_else(run: Run) -> None:
    code, out, err = run("evaluate", *FILMS, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["metrics"]["hit"] == found["metrics"]["abstention"] == found["metrics"]["triple_recall"] == 1
    assert found["by"]["kind"]["unknown"]["abstention"] == 1


@pytest.mark.parametrize(
    ("more", "settings"),
    [
        (["--hops", "2,1", "--limit", "5"], {"hops": [1, 2], "limit": 5}),
        (["--topic", "linked", "--k", "3", "--limit", "2"], {"topic": "linked"}),
        (["--unanswerable", "6", "--limit", "3"], {"unanswerable": 6}),
    ],
)
def test_evaluate_takes_a_part(run: Run, more: list[str], settings: dict[str, Any]) -> None:
    code, _, err = run("evaluate", *ASKED, *more, "--output", "out.json")
    assert (code, err) == (0, "")
    written = figures("out.json")
    assert {name: written["settings"][name] for name in settings} == settings
    if "--hops" in more:
        assert [part["questions"] for part in written["by_hops"].values()] == [5, 5]
    elif "--k" in more:
        assert written["settings"]["fields"]["k"] == 3
    else:
        made = [part for kind, part in written["by"]["kind"].items() if kind != "unknown"]
        assert sum(part["questions"] for part in made) == 6
        assert written["metrics"]["abstention"] is not None


def test_measured_questions_are_no_examples(run: Run) -> None:
    asked = ("--method", "simgrag", "--examples", "labelled.jsonl")
    code, _, err = run("evaluate", *FILMS, *asked, "--output", "out.json")
    assert (code, err) == (0, "")
    written = figures("out.json")
    examples = written["settings"]["examples"]
    assert len(examples.pop("digest")) == 32
    assert examples == {"data": "labelled.jsonl", "given": 1, "dropped": 1}
    assert written["settings"]["fields"]["pattern_generator"] == "QuestionReader"
    assert written["metrics"]["hit"] == 1


@pytest.mark.usefixtures("unsure")
def test_evaluate_with_a_language_model(run: Run, server: Callable[..., OpenAIServer]) -> None:
    pattern = '{"triples": [["Her", "directed by", "UNKNOWN person 1"]], "target": "UNKNOWN person 1"}'
    strange = '{"triples": [["Xyzzyplugh", "directed by", "UNKNOWN person 1"]], "target": "UNKNOWN person 1"}'
    answer = '{"explanation": "", "answers": ["Spike Jonze", "Amy Adams"], "citations": [1]}'
    with server(pattern, answer, strange, strange):
        asked = ("--method", "simgrag", "--llm", "openai:test-model", "--field", "chooses=false")
        code, out, err = run("evaluate", *FILMS, *asked, "--output", "out.json")
    assert (code, err) == (0, "")
    written = figures("out.json")
    assert written["metrics"]["llm_calls_mean"] == 2
    assert written["metrics"]["text_hit"] == 1
    assert written["metrics"]["text_precision"] == 0.5
    assert written["metrics"]["abstention"] == 1
    assert written["settings"]["llm"] == "openai:test-model"
    assert "LLM" in out.splitlines()[0]
    assert "test" not in json.dumps(written["settings"]).replace("test-model", "")  # no key is kept


def test_a_table_is_grouped(run: Run) -> None:
    code, out, err = run("evaluate", *ASKED, "--limit", "8", "--by", "answers")
    assert (code, err) == (0, "")
    rows = out.splitlines()
    assert next(row for row in rows if row.startswith("method")).split()[1] == "answers"
    assert [row.split()[1] for row in rows if row.startswith("kg")] == ["all", "1", "2-4"]
    assert get_args(GroupBy) == get_args(get_args(By)[0])


def test_a_broken_run_is_kept_and_continued(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    all_answered = ("--method", "simgrag", "--field", "min_confidence=0.0")
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


def only(monkeypatch: pytest.MonkeyPatch, *names: str, **own: str) -> None:
    """Leave these methods in the table, beside classes of this file by the names of their methods."""
    methods = [registry.find_method(name) for name in names]
    for name, kind in own.items():
        methods.append(Method(name=name, retriever=f"{__name__}:{kind}", finds="little", paper="none"))
    monkeypatch.setattr(registry, "METHODS", tuple(methods))


def test_a_field_is_for_every_method_that_is_compared(run: Run) -> None:
    """A method without it is left out; one that no method has is a mistake."""
    methods = ("--method", "pcst", "--method", "triple-similarity")
    code, out, err = run("compare", *FILMS, *methods, "--field", "edge_cost=2", "--json")
    assert code == 0
    assert "kg-retrievers: kaping is left out: " in err
    assert [one["settings"]["fields"]["edge_cost"] for one in json.loads(out)["runs"]] == [2]
    code, _, err = run("compare", *FILMS, *methods, "--field", "egde_cost=2")
    assert code == 2
    assert "did you mean 'edge_cost'?" in err


@pytest.mark.parametrize(("field", "read"), [("max_tokens=150", 150), ("on_refusal=empty", "empty")])
def test_fields_of_the_retriever_are_set(run: Run, field: str, read: Any) -> None:
    code, out, _ = run("evaluate", *FILMS, "--field", field, "--json")
    settings = json.loads(out)["settings"]
    name = field.partition("=")[0]
    assert (code, settings["field"], settings["fields"][name]) == (0, {name: read}, read)


# --- compare ----------------------------------------------------------------------------------------------------------


def test_compare_methods_and_then_their_records(run: Run) -> None:
    more = ("--examples", "labelled.jsonl", "--records", "kept", "--output", "out.json")
    code, out, err = run("compare", *FILMS, "--method", "simgrag", "--method", "neighborhood", *more)
    assert (code, err) == (0, "")
    assert [line.split()[:2] for line in out.splitlines()[2:4]] == [["simgrag", "all"], ["neighborhood", "all"]]
    assert "\nNo failures of simgrag\n" in out
    written = figures("out.json")
    simgrag, neighborhood = written["runs"]
    assert (simgrag["settings"]["examples"]["given"], neighborhood["settings"]["examples"]) == (1, None)
    assert written["failures"] == {"simgrag": [], "neighborhood": []}
    assert run("compare", "kept/simgrag.jsonl", "kept/neighborhood.jsonl") == (0, out, "")
    code, out, err = run("compare", "kept/simgrag.jsonl", *FILMS, "--method", "simgrag")
    assert (code, err) == (0, "")
    assert [line.split("  ")[0] for line in out.splitlines()[2:4]] == ["simgrag (kept/simgrag.jsonl)", "simgrag"]


def test_compare_tells_failures_in_words(run: Run) -> None:
    asked = (*ASKED, "--limit", "8", "--method", "simgrag", "--field", "min_confidence=0.0")
    code, out, err = run("compare", *asked, "--failures", "1")
    assert (code, err) == (0, "")
    told = out.split("\nFailures of simgrag\n")[1].splitlines()
    assert len(told) == 1
    assert all(line.startswith('- "') and " Wanted: " in line and " Got: " in line for line in told)


def test_records_cannot_steer_the_terminal(run: Run, folder: Path) -> None:
    assert run("evaluate", *FILMS, "--records", "r.jsonl")[0] == 0
    text = (folder / "r.jsonl").read_text("utf-8")
    for harmless, hostile in (
        ('"method": "kg"', '"method": "\\u001b[31m[b]x\\u0007"'),
        ('"answers": ["Spike Jonze"]', '"answers": ["\\u001b[2J\\r"]'),
        ('"hit": 1.0', '"hit": 0.0'),
    ):
        assert harmless in text
        text = text.replace(harmless, hostile)
    (folder / "r.jsonl").write_text(text, "utf-8")
    code, out, _ = run("compare", "r.jsonl")
    assert code == 0
    assert "Failures of [31m[b]x\n" in out
    assert "Got: [2J" in out
    assert not {"\x1b", "\x07", "\r"} & set(out)


class Trained:
    """A method that cannot be built of what is given."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise kg_retrievers.errors.InvalidArgumentError("Trained needs a model")


def test_compare_all_methods(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, "simgrag", trained="Trained")
    code, out, err = run("compare", *FILMS, "--method", ALL, "--json")
    assert code == 0
    assert err == "kg-retrievers: trained is left out: Trained needs a model\n"
    assert [one["method"] for one in json.loads(out)["runs"]] == ["simgrag"]
    for methods in (["trained", ALL], ["trained", "simgrag"]):
        named = (part for method in methods for part in ("--method", method))
        code, out, err = run("compare", *FILMS, *named, "--json")
        assert (code, err) == (0, "kg-retrievers: trained is left out: Trained needs a model\n")
        assert [one["method"] for one in json.loads(out)["runs"]] == ["simgrag"]
    code, out, err = run("compare", *FILMS, "--method", "trained")
    assert (code, out, err) == (2, "", "kg-retrievers: error: Trained needs a model\n")


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["evaluate"], "Missing option '--data'. See: kg-retrievers evaluate --help"),
        (["evaluate", *FILMS, "--method", "all"], "there is no method 'all'; the methods are"),
        (["evaluate", *FILMS, "--hops", "one"], "--hops: wanted integers with commas between them, such as 1,2,3"),
        (["evaluate", *FILMS, "--hops", "3"], "asked.jsonl has the hops [1], but got [3]"),
        (["evaluate", *FILMS, "--topic", "Her"], "--topic: 'Her' is not one of 'given', 'linked'."),
        (["evaluate", *FILMS, "--split", "dev"], "asked.jsonl is no folder, so it has no split 'dev'"),
        (["evaluate", *FILMS, "--unanswerable", "5"], "wanted 5, but only 0 can be made of 2 questions"),
        (["evaluate", *FILMS, "--examples", "asked.jsonl"], "all of the 2 examples are among the questions"),
        (["evaluate", *FILMS, "--output", "none/out.json"], "'none/out.json' cannot be written"),
        (["evaluate", *FILMS, "--field", "k=abc"], "--field: k comes from other options: give --k, but got 'k=abc'"),
        (["evaluate", *FILMS, "--field", "max_token=1"], "no field 'max_token'; did you mean 'max_tokens'?"),
        (["evaluate", *FILMS, "--field", "max_tokens=few"], "max_tokens must be a valid integer"),
        (["evaluate", *FILMS, "--records", "notes.txt"], "notes.txt: this is no file of records"),
        (["compare"], "name files of records, or methods to run"),
        (["compare", "none.jsonl"], "none.jsonl: wanted a file of records, but it cannot be read"),
        (["compare", *FILMS, "--method", "kg", "--records", "notes.txt"], "notes.txt: cannot be written: File exists"),
    ],
)
def test_a_mistake_is_told_on_one_line(run: Run, argv: list[str], told: str) -> None:
    said = mistake(run(*argv))
    assert told in said
    assert "Error:" not in said, "this looks like a traceback's last line"


def test_a_note_on_the_graph_is_given_once_for_all_methods(run: Run) -> None:
    Path("lost.jsonl").write_text('{"question": "Who directed Her?", "answers": ["Nobody"]}\n', encoding="utf-8")
    asked = ("--graph", "films.csv", "--data", "lost.jsonl", "--format", "jsonl")
    code, _, err = run("compare", *asked, "--method", "neighborhood", "--method", "simgrag")
    assert err.count("1 of 1 gold answers match no entity of the graph") == 1
    assert code == 1, "the figures say nothing"
