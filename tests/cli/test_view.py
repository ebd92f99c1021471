"""A view on the shell: only the facts whose attributes are as wanted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shell_mistakes import Run, mistake

FILES = {
    "jobs.csv": "head,relation,tail,tenant,valid_from,valid_to\n"
    "Ann,works for,Acme,a,2001,2003\nAnn,works for,Bolt,b,2004,\nEve,works for,Corax,b,2004,\n",
    "asked.jsonl": '{"question": "Who works for Acme?", "answers": ["Ann"]}\n',
}
OF_A = ["--view", '{"tenant": "a"}']


@pytest.mark.parametrize("place", ["jobs.csv", "jobs.index"])
@pytest.mark.parametrize(
    ("view", "triples"),
    [
        (OF_A, 1),
        (["--view", '{"tenant": ["b", null], "valid_from": {">": 2003}}'], 2),
        (["--view", '{"valid_to": null}', "--as-of", "2010-01-01"], 2),
        (["--as-of", "2003-05"], 1),
        (["--as-of", "2004", "--validity", "valid_from", "valid_to"], 2),
        (["--view", "{}"], 3),
    ],
)
def test_each_command_sees_the_view_alone(run: Run, place: str, view: list[str], triples: int) -> None:
    if place == "jobs.index":
        assert run("index", "jobs.csv", "--output", place, "--embeddings", "hashed")[0] == 0
    code, out, _ = run("info", place, *view, "--json")
    assert (code, json.loads(out)["triples"]) == (0, triples)


@pytest.mark.parametrize("method", ["simgrag", "sg-rag"])
def test_a_question_is_answered_from_the_view(run: Run, method: str) -> None:
    code, out, _ = run("ask", "jobs.csv", "Who works for Acme?", *OF_A, "--method", method, "--json")
    assert (code, json.loads(out)["answer"]) == (0, "Ann")
    for more in ([], ["--why-not", "Ann"]):
        code, out, said = run("ask", "jobs.csv", "Who works for Corx?", *OF_A, "--method", method, *more)
        assert "Eve" not in out + said
        assert "Corax" not in out + said


def test_a_view_is_indexed_and_measured(run: Run, folder: Path) -> None:
    assert "1 triples in a.index" in run("index", "jobs.csv", "--output", "a.index", *OF_A)[1]
    asked = ["evaluate", "--graph", "jobs.csv", "--data", "asked.jsonl", "--json"]
    hits = [json.loads(run(*asked, *view)[1])["metrics"] for view in (OF_A, ["--view", '{"tenant": "b"}'])]
    assert hits[0] != hits[1]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["info", "jobs.csv", "--view", "tenant=a"], "--view: wanted a JSON object with each key once, such as"),
        (["info", "jobs.csv", "--view", "null"], "but got 'null'. See: kg-retrievers info --help"),
        (["info", "jobs.csv", "--view", '{"tenant": "a", "tenant": "b"}'], "--view: wanted a JSON object"),
        (["ask", "jobs.csv", "Who?", "--view", '{"tenat": "a"}'], "--view: no fact has the attribute 'tenat'; did you"),
        (["ask", "jobs.csv", "Who?", "--view", '{"tenant": "c"}'], "'tenant' has the values 'a', 'b'."),
        (["ask", "jobs.csv", "Who?", "--as-of", "soon"], "--as-of: it must be a date, such as '2015-06-30', but"),
        (["ask", "jobs.csv", "Who?", "--as-of", ""], "--as-of: it must be a date"),
        (["info", "jobs.csv", "--validity", "since", "until"], "Give --as-of, too."),
        (
            ["info", "jobs.csv", "--as-of", "2001", "--validity", "since", "until"],
            "--validity: no fact has the attribute 'since'",
        ),
        (["ask", "bolt://localhost:1", "Who?", "--connect", *OF_A], "Leave out --connect, --vectors and"),
        (["ask", "jobs.csv", "Who?", "--method", "sg-rag", "--database", "x.lbdb", *OF_A], "Leave out --database, or"),
        (["update", "jobs.index", "--add", "jobs.csv", *OF_A], "the index is changed as a whole. Leave them out."),
        (["serve", "jobs.csv", "--port", "0", "--token-file", "tokens"], "the token in line 1: view: no fact has the"),
        (["mcp", "jobs.csv", "--http", "--port", "0", "--token-file", "tokens"], "the token in line 1: view: no fact"),
        (["serve", "jobs.csv", "--port", "0", "--examples", "asked.jsonl", *OF_A], "--examples may name entities"),
    ],
)
def test_a_view_that_there_is_not_is_told(run: Run, folder: Path, command: list[str], message: str) -> None:
    (folder / "tokens").write_text('0123456789abcdef {"view": {"tenat": "a"}}\n', "utf-8")
    (folder / "jobs.index").mkdir()
    told = mistake(run(*command))
    assert message in told
    assert "0123456789abcdef" not in told
