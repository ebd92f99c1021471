"""The command `mcp`; what it serves is tested in tests/serving/mcp."""

import pytest
from shell_mistakes import mistake

FILES = {"films.csv": "head,relation,tail\nHer,directed_by,Spike Jonze\n"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--port", "1"], "are for HTTP alone. Give --http, too."),
        (["--http", "--host", "0.0.0.0"], "'0.0.0.0' can be reached by others, and no token is set."),
        (["--http", "--token-file", "no-such-file"], "the file of the token, 'no-such-file', cannot be read"),
        (["--method", "simrag"], "there is no method 'simrag'; did you mean 'simgrag'?"),
    ],
)
def test_a_mistake_is_told_on_one_line(monkeypatch, run, arguments, message):
    monkeypatch.delenv("KG_RETRIEVERS_TOKEN", raising=False)
    assert message in mistake(run("mcp", "films.csv", *arguments))
