"""The command kg-retrievers, as a person or a script calls it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from numba.core import event
from openai_server import OpenAIServer, Reply

import kg_retrievers
from kg_retrievers import GraphIndex, HashedEmbeddings, KnowledgeGraph, SimGRAGRetriever, cli
from kg_retrievers.sample import load_graph, load_questions

ROOT = Path(__file__).parents[1]
SAMPLE = str(ROOT / "kg_retrievers" / "sample" / "graph.jsonl")
HER = "Who directed Her?"
BY_DIRECTOR = '{"triples": [["Her", "directed by", "UNKNOWN person 1"]], "target": "UNKNOWN person 1"}'

FILES = {
    "films.csv": "head,relation,tail\n"
    "Her,directed_by,Spike Jonze\nHer,starring,Amy Adams\nAdaptation,directed_by,Spike Jonze\n",
    "twice.tsv": "Her\tdirected_by\tSpike Jonze\nHer\tdirected_by\tSpike Jonze\nHer\tstarring\tAmy Adams\n",
    "broken.csv": "Her,directed_by,Spike Jonze\nbroken\nHer,starring,Amy Adams\n",
    "odd.csv": "film,what,who\nHer,directed_by,Spike Jonze\nHer,starring,Amy Adams\n",
    "wide.csv": "number,film,what,who\n1,Her,directed_by,Spike Jonze\n2,Her,starring,Amy Adams\n",
    "labels.tsv": "Her\tHer (film)\nAmy Adams\tAmy Lou Adams\n",
    "bad.jsonl": '{"question": "Who directed Her?"\n',
    "bare.jsonl": '{"question": "Who directed Her?"}\n',
    "labelled.jsonl": '{"question": "Who made Adaptation?", "pattern": {"triples": [["Adaptation", "directed_by", '
    '{"unknown": "x"}]], "target": "x"}}\n',
    "garbage/notes.txt": "not a graph\n",
}

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


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command; return its exit code, stdout and stderr."""

    def call(*argv: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = cli.main(argv)
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def json_of(run: Run) -> Callable[..., Any]:
    """Run the command with --json; return what it printed."""

    def call(*argv: str, code: int = 0) -> Any:
        done, out, _ = run(*argv, "--json")
        assert done == code
        assert len(out.splitlines()) == 1
        return json.loads(out)

    return call


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Callable[..., OpenAIServer]:
    """Return a server of replies that the real `openai` client finds through the environment."""

    def serve(*replies: str) -> OpenAIServer:
        made = OpenAIServer(*map(Reply, replies))
        monkeypatch.setenv("OPENAI_BASE_URL", made.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        return made

    return serve


def sample_retriever() -> SimGRAGRetriever:
    """Return a retriever over the sample graph."""
    return SimGRAGRetriever.from_index(GraphIndex.build(load_graph(), HashedEmbeddings()))


def mistake(done: tuple[int, str, str]) -> str:
    """Check that a command told a mistake on one line and nothing else; return the line."""
    code, out, err = done
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1, err
    assert err.startswith("kg-retrievers: error: ")
    return err


# --- ask --------------------------------------------------------------------------------------------------------------


def test_ask_shows_the_answer_and_where_it_comes_from(run: Run) -> None:
    code, out, err = run("ask", "films.csv", "Who", "directed", "Her?")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "Question  Who directed Her?",
        "Answer    Spike Jonze",
        "Pattern   Her -> directed_by -> ?entity 1",
        "          made from the entities named in the question (no LLM, no examples)",
        "",
        "Evidence 1 of 1: score 1.000, 1 triple",
        " #  head  relation     tail",
        " 1  Her   directed_by  Spike Jonze",
    ]


def test_ask_prints_one_json_object(json_of: Callable[..., Any]) -> None:
    found = json_of("ask", SAMPLE, "Who stars in Little Women?")
    document = sample_retriever().invoke(found["question"])[0]
    assert found["documents"] == [
        {"id": document.id, "page_content": document.page_content, "metadata": document.metadata}
    ]
    assert "Timothée Chalamet" in found["answer"].split("; ")
    assert [answer["key"] for answer in found["answers"]] == document.metadata["answers"]
    assert found["pattern"]["source"] == "linked"
    assert found["pattern_made"] == cli.PATTERN_SOURCES["linked"]
    assert (found["method"], found["llm"], found["reason"]) == ("simgrag", None, None)


def test_ask_uses_examples(run: Run) -> None:
    code, out, _ = run("ask", "films.csv", "Who made Her?", "--examples", "labelled.jsonl")
    assert code == 0
    assert "Answer    Spike Jonze" in out
    assert "made by the nearest example" in out


def test_ask_shows_all_entities_of_an_ambiguous_name(run: Run) -> None:
    _, out, _ = run("ask", SAMPLE, "Who directed Dune?")
    assert "Dune [Dune (1984)]  directed_by  David Lynch" in out
    assert "Note: 'Dune' names 2 entities; this is about Dune (1984)." in out
    assert "add --k 2 or --seed 'Dune (2021)'" in out
    _, out, _ = run("ask", SAMPLE, "Who directed Dune?", "--k", "2")
    assert "Answer    David Lynch\nor        Denis Villeneuve\n" in out
    assert "Evidence 2 of 2" in out
    assert "Note" not in out
    _, out, _ = run("ask", SAMPLE, "Who directed Dune?", "--seed", "Dune (2021)")
    assert "Answer    Denis Villeneuve" in out
    assert "Note" not in out


def test_ask_shows_the_first_of_many_triples(run: Run, folder: Path, json_of: Callable[..., Any]) -> None:
    rows = "".join(f"film {number}\tdirected_by\tSpike Jonze\n" for number in range(1234))
    (folder / "many.tsv").write_text(rows, "utf-8")
    question = ("ask", "many.tsv", "What was directed by Spike Jonze?")
    code, out, _ = run(*question)
    assert code == 0
    assert " ... and 1,214 more (--json has all)" in out
    assert "Evidence 1 of 1: score 1.000, 1,234 triples" in out
    assert out.count("directed_by  Spike Jonze") == 20
    assert out.endswith("\n 1,214 more; --json has all.\n")
    assert len(json_of(*question)["documents"][0]["metadata"]["triples"]) == 1234


def test_ask_says_that_evidence_is_truncated() -> None:
    document = sample_retriever().invoke(HER)[0]
    document.metadata["truncated"] = True
    title, *_ = cli._evidence(document, 1)
    assert "cut short by a limit" in str(title)


@pytest.mark.parametrize("question", ["Who painted Guernica?", "What is this?"])
def test_ask_without_evidence_returns_1(run: Run, json_of: Callable[..., Any], question: str) -> None:
    code, out, err = run("ask", "films.csv", question)
    assert (code, err) == (1, "")
    assert "No evidence found." in out
    assert f"No entity of the graph was found in {question!r}" in out
    found = json_of("ask", "films.csv", question, code=1)
    assert (found["answer"], found["answers"], found["documents"]) == (None, [], [])
    assert question in found["reason"]


def test_ask_reads_labels_from_a_second_file(run: Run) -> None:
    _, out, _ = run("ask", "films.csv", "Her (film), starring whom?", "--entities", "labels.tsv")
    assert "Answer    Amy Lou Adams" in out
    assert "Her (film) [Her]  starring  Amy Lou Adams [Amy Adams]" in out


def test_ask_skips_malformed_lines_and_says_so(run: Run) -> None:
    code, out, err = run("ask", "broken.csv", HER, "--on-error", "skip")
    assert code == 0
    assert "Spike Jonze" in out
    assert err == "kg-retrievers: malformed lines of broken.csv that were skipped: 1\n"


def test_a_header_in_other_words_is_noticed(run: Run) -> None:
    code, _, err = run("ask", "odd.csv", HER)
    assert code == 0
    assert "the first line of odd.csv was read as a fact. If it is a header: --columns film,what,who" in err
    for file in ("odd.csv", "wide.csv"):
        code, out, err = run("info", file, "--columns", "film,what,who", "--json")
        assert (code, err, json.loads(out)["triples"]) == (0, "", 2)


def test_names_of_the_graph_cannot_steer_the_terminal(run: Run, folder: Path) -> None:
    rows = [
        {"head": "Her", "relation": "[red]by[/red]", "tail": "\x1b[31mSpike\x07 :smile:\r\nJonze\x1b[0m"},
        {"head": "Her", "relation": "starring", "tail": "Amy Adams"},
    ]
    (folder / "hostile.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    _, out, _ = run("ask", "hostile.jsonl", "Who is it by?", "--seed", "Her")
    assert "1  Her   [red]by[/red]   [31mSpike  :smile: Jonze [0m" in out
    assert "\x1b" not in out


def test_ask_tells_how_to_save_time(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "SLOW", -1.0)
    _, _, err = run("ask", "films.csv", HER)
    assert "To do it once: kg-retrievers index films.csv --output FOLDER" in err


# --- ask with a language model ----------------------------------------------------------------------------------------


def test_ask_a_language_model(run: Run, server: Callable[..., OpenAIServer]) -> None:
    with server(BY_DIRECTOR, "Spike Jonze\ndirected it.") as peer:
        code, out, err = run("ask", "films.csv", HER, "--llm", "openai:test-model", "--seed", "Amy Adams")
    assert (code, err) == (0, "")
    assert "Answer    Spike Jonze\n          directed it.\n" in out
    assert "made by a language model" in out
    assert "Note: The evidence holds none of the seeds: Amy Adams." in out
    assert [(request["model"], request["temperature"]) for request in peer.requests] == [("test-model", 0)] * 2
    assert "Her -> directed by -> Spike Jonze" in peer.requests[1]["messages"][-1]["content"]


def test_a_pattern_that_fits_nothing_is_shown(
    run: Run, json_of: Callable[..., Any], server: Callable[..., OpenAIServer], folder: Path
) -> None:
    (folder / "one.tsv").write_text("Her\tdirected_by\tSpike Jonze\n", "utf-8")
    reply = '{"triples": [["Her", "by", "UNKNOWN a"], ["UNKNOWN a", "by", "UNKNOWN b"]], "target": "UNKNOWN b"}'
    with server(reply, reply):
        code, out, _ = run("ask", "one.tsv", HER, "--llm", "openai:test-model")
        found = json_of("ask", "one.tsv", HER, "--llm", "openai:test-model", code=1)
    assert code == 1
    assert "No evidence found.\n          Nothing in the graph fits.\nPattern   Her -> by -> ?a\n" in out
    assert found["pattern"]["target"] == "b"


def test_mistakes_with_language_models(
    run: Run, server: Callable[..., OpenAIServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(llm: str, *more: str) -> str:
        return mistake(run("ask", "films.csv", HER, "--llm", llm, *more))

    assert "wanted provider:model" in ask("gpt-4.1-mini")
    assert "Unsupported provider='nobody'" in ask("nobody:model")
    with server("no pattern", "nor here"):
        assert "The reply was: 'nor here'" in ask("openai:test-model")
    with server():  # refuses every request
        assert "the script has 0 behaviours" in ask("openai:test-model")
        assert "got both llm and examples" in ask("openai:test-model", "--examples", "labelled.jsonl")
    monkeypatch.delenv("OPENAI_API_KEY")
    assert "OPENAI_API_KEY" in ask("openai:test-model")

    def no_package(*_: Any, **__: Any) -> None:
        raise ImportError("Please install it with `pip install langchain-other`")

    monkeypatch.setattr("langchain.chat_models.init_chat_model", no_package)
    assert 'pip install "kg-retrievers[openai]"' in ask("openai:test-model")
    assert "Please install it with `pip install langchain-other`" in ask("other:test-model")
    monkeypatch.setitem(sys.modules, "langchain.chat_models", None)
    assert 'pip install "kg-retrievers[openai]"' in ask("openai:test-model")
    assert 'pip install "kg-retrievers[langchain]"' in ask("ollama:test-model")


# --- index ------------------------------------------------------------------------------------------------------------


def test_index_then_ask_the_folder(run: Run, json_of: Callable[..., Any]) -> None:
    code, out, err = run("index", "films.csv", "--output", "my index")
    assert (code, err) == (0, "")
    assert out == (
        "Indexed 4 entities, 2 relations, 3 triples in my index, with hashed embeddings.\n"
        "Ask it: kg-retrievers ask 'my index' 'Who ...?'\n"
    )
    assert json_of("ask", "my index", HER) == json_of("ask", "films.csv", HER)
    code, _, _ = run("index", "films.csv", "--output", "my index")  # again, in place
    assert code == 0
    code, _, _ = run("index", "my index", "--output", "copy")  # from a folder
    assert code == 0
    assert json_of("info", "copy")["triples"] == 3


def test_a_folder_is_opened_with_its_own_embeddings(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, json_of: Callable[..., Any]
) -> None:
    loaded = []

    def local_embeddings(model: str) -> HashedEmbeddings:
        loaded.append(model)
        return HashedEmbeddings(64)

    monkeypatch.setattr(kg_retrievers, "local_embeddings", local_embeddings, raising=False)
    (folder / "model").mkdir()
    code, _, _ = run("index", "films.csv", "--output", "films.index", "--embeddings", "local:model")
    assert code == 0
    assert json_of("ask", "films.index", HER)["answer"] == "Spike Jonze"
    assert json_of("ask", "films.index", HER, "--embeddings", "local:./model")["answer"] == "Spike Jonze"
    assert loaded == [str(folder / "model")] * 3
    told = mistake(run("ask", "films.index", HER, "--embeddings", "hashed"))
    assert f"was built with local:{folder / 'model'} embeddings, not hashed" in told
    assert "kg-retrievers index GRAPH --output films.index --embeddings hashed" in told
    (folder / "films.index" / cli.RECORD).write_text("{", "utf-8")
    assert "cli.json: damaged" in mistake(run("ask", "films.index", HER))
    (folder / "films.index" / cli.RECORD).unlink()
    assert "Name those it was built with" in mistake(run("ask", "films.index", HER))
    assert "no folder /nowhere" in mistake(run("ask", "films.csv", HER, "--embeddings", "local:/nowhere"))


def test_an_index_made_in_python_can_be_asked(run: Run, folder: Path) -> None:
    GraphIndex.build(KnowledgeGraph.from_file("films.csv"), HashedEmbeddings(), folder / "made")
    code, out, _ = run("ask", "made", HER)
    assert code == 0
    assert "Spike Jonze" in out


# --- info -------------------------------------------------------------------------------------------------------------


def test_info_shows_what_is_in_a_graph(run: Run) -> None:
    code, out, err = run("info", SAMPLE)
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert ["Entities", "171"] in lines
    assert ["directed_by", "40", "film", "person"] in lines
    assert ["person", "74"] in lines
    assert ["Rashomon", "directed_by", "Akira", "Kurosawa"] in lines


def test_info_prints_one_json_object(json_of: Callable[..., Any]) -> None:
    assert json_of("info", "twice.tsv") == {
        "graph": "twice.tsv",
        "entities": 3,
        "triples": 2,
        "names": 3,
        "duplicates": 1,
        "skipped": 0,
        "types": {},
        "relations": [
            {"relation": "directed_by", "triples": 1, "head_types": [], "tail_types": []},
            {"relation": "starring", "triples": 1, "head_types": [], "tail_types": []},
        ],
        "examples": [["Her", "directed_by", "Spike Jonze"], ["Her", "starring", "Amy Adams"]],
    }
    assert json_of("info", "broken.csv", "--on-error", "skip")["skipped"] == 1


def test_info_shows_the_first_of_many_relations(run: Run, folder: Path) -> None:
    (folder / "many.tsv").write_text("".join(f"a\tr{number}\tb\n" for number in range(25)), "utf-8")
    _, out, _ = run("info", "many.tsv")
    assert " 5 more; --json has all." in out


# --- demo -------------------------------------------------------------------------------------------------------------


def test_demo_answers_are_gold_by_gold_evidence(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    replies: list[Any] = []
    retrieve = cli._retrieve

    def recorded(*args: Any) -> Any:
        replies.append(retrieve(*args))
        return replies[-1]

    monkeypatch.setattr(cli, "_retrieve", recorded)
    code, out, _ = run("demo")
    assert code == 0
    retriever = sample_retriever()
    questions = {question.text: question for question in load_questions()}
    hops = set()
    for reply in replies:
        gold = questions[reply.question]
        assert gold.pattern is not None
        answers = {answer for document in reply.documents for answer in document.metadata["answers"]}
        triples = {tuple(triple) for document in reply.documents for triple in document.metadata["triples"]}
        assert answers == set(gold.answers)
        evidence = retriever.match(gold.pattern, len(reply.documents))
        assert triples == {triple for item in evidence for triple in item.triples}
        assert f"Question  {reply.question}\nAnswer    " in out
        assert all(answer in out for answer in gold.answers)
        hops.add(len(gold.pattern.triples))
    assert hops == {1, 2, 3}
    assert {reply.pattern["source"] for reply in replies} == {"linked", "examples"}
    assert f"kg-retrievers ask {SAMPLE} " in out


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["aks"], "invalid choice: 'aks'"),
        (["ask", "films.csv"], "required: QUESTION. See: kg-retrievers ask --help"),
        (["ask", "films.csv", " "], "the question is empty"),
        (["ask", "films.cvs", HER], "films.cvs: there is no such file. Did you mean: 'films.csv'?"),
        (["ask", "films.csv", HER, "--k", "0"], "--k: wanted a whole number of 1 or more, but got '0'"),
        (["ask", "films.csv", HER, "--k", "two"], "but got 'two'"),
        (["ask", "films.csv", HER, "--method", "simrag"], "invalid choice: 'simrag' (choose from"),
        (["ask", "films.csv", HER, "--exampels", "x"], "unrecognized arguments: --exampels"),
        (["ask", "films.csv", "Who", "--k", "1", "directed"], "Put the question in quotes"),
        (["ask", "films.csv", HER, "--examples", "none.jsonl"], "none.jsonl: wanted a text file"),
        (["ask", "films.csv", HER, "--examples", "bad.jsonl"], "bad.jsonl:1: no valid JSON"),
        (["ask", "films.csv", HER, "--examples", "bare.jsonl"], "none with a pattern"),
        (["ask", "films.csv", HER, "--seed", "Herr"], "'Herr' is no entity key, label or alias of the graph. Did you"),
        (["ask", "films.csv", HER, "--embeddings", "minilm"], "wanted hashed or local:MODEL_OR_FOLDER"),
        (["ask", "films.csv", HER, "--encoding", "utf-9"], "no text encoding 'utf-9'"),
        (["ask", "films.csv", HER, "--entities", "none.tsv"], "none.tsv: there is no such file"),
        (["ask", "broken.csv", HER], "broken.csv:2: wanted 3 cells (csv), but got 1: ['broken']. Mend the line, or"),
        (["ask", "broken.csv", HER], 'leave out all such lines with --on-error "skip".'),
        (["ask", "wide.csv", HER], "If this is a header: --columns HEAD,RELATION,TAIL"),
        (["ask", "wide.csv", HER, "--columns", "film,who"], "wanted three names, as in from,rel,to"),
        (["ask", "garbage", HER], "kg-retrievers index FILE --output garbage"),
        (["ask", "garbage", HER, "--format", "csv"], "garbage is a folder; --format says how to read a file"),
        (["info", "garbage"], "kg-retrievers index FILE --output garbage"),
        (["info", "none.csv"], "none.csv: there is no such file"),
        (["index", "films.csv"], "required: --output"),
        (["index", "films.csv", "--output", "films.csv"], "films.csv is a file. Name a folder"),
        (["index", "films.csv", "--output", "garbage"], "the folder garbage is not empty and holds no index"),
        (["index", "films.csv", "--output", "films.csv/index"], ": Not a directory"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_on_one_line(run: Run, argv: list[str], told: str) -> None:
    assert told in mistake(run(*argv))


def test_debug_shows_the_traceback(run: Run) -> None:
    for argv in (["--debug", "info", "none.csv"], ["info", "none.csv", "--debug"]):
        code, _, err = run(*argv)
        assert code == 2
        assert "Traceback" in err
        assert err.splitlines()[-1].startswith("kg-retrievers: error: none.csv: there is no such file.")


def test_a_surprise_is_told_on_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError("many\nlines " * 100)

    monkeypatch.setattr(cli, "_graph", fail)
    told = mistake(run("info", "films.csv"))
    assert "ZeroDivisionError: many lines many" in told
    assert told.endswith(" ... (--debug shows where)\n")
    assert len(told) < 600


def test_interruption_returns_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_graph", interrupt)
    assert run("info", "films.csv") == (130, "", "kg-retrievers: interrupted\n")


# --- streams ----------------------------------------------------------------------------------------------------------


def test_help_and_version(run: Run) -> None:
    code, out, _ = run()
    assert code == 0
    assert run("--help") == (0, out, "")
    assert all(command in out for command in ("ask", "index", "info", "demo"))
    code, out, _ = run("--version")
    assert (code, out.split()[0]) == (0, "kg-retrievers")
    for command in ("ask", "index", "info", "demo"):
        code, out, _ = run(command, "--help")
        assert code == 0
        assert out.startswith(f"usage: kg-retrievers {command}")


def test_output_that_takes_ascii_only(monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    for more in ([], ["--json"]):
        output = io.BytesIO()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", io.TextIOWrapper(output, "ascii"))
            assert cli.main(["ask", SAMPLE, "Who stars in Little Women?", *more]) == 0
            written.append(output.getvalue())
    assert b"Timoth\\xe9e Chalamet" in written[0]
    assert "Timothée Chalamet" in json.loads(written[1])["answer"]


def test_compilation_is_announced_once(capsys: pytest.CaptureFixture[str]) -> None:
    with cli._working("matching"):
        for _ in range(2):
            with event.trigger_event("numba:compile"):
                pass
    assert capsys.readouterr().err.count("compiling the matcher, once") == 1
    with event.trigger_event("numba:compile"):
        pass
    assert capsys.readouterr().err == ""


def test_a_closed_pipe_is_harmless() -> None:
    command = [sys.executable, "-m", "kg_retrievers.cli", "info", SAMPLE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141


def test_the_module_is_light() -> None:
    code = "import sys, kg_retrievers.cli; assert not {'numpy', 'langchain_core', 'numba'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)
