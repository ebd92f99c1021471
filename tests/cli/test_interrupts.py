"""Ctrl-C ends any command with one line and the exit code 130, and servers end soon after a signal."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILMS = "head,relation,tail\nHer,directed_by,Spike Jonze\nHer,has_genre,Drama\n"

#: Sends itself SIGINT at the n-th import after the command began.
AT_IMPORT = """
import os, signal, sys
left = int(sys.argv.pop(1))
begun = False
def heard(event, args):
    global begun, left
    if event != "import":
        return
    begun = begun or args[0] == "kg_retrievers.cli.shell"
    left -= begun
    if begun and left == 0:
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(heard)
from kg_retrievers.cli import main
sys.exit(main())
"""


@pytest.fixture
def films(tmp_path: Path) -> str:
    file = tmp_path / "films.csv"
    file.write_text(FILMS)
    return str(file)


@pytest.mark.parametrize("moment", [1, 30, 300, 900, 1500])
@pytest.mark.parametrize("arguments", [["ask", "FILMS", "Who directed Her?"], ["serve", "FILMS", "--port", "0"]])
def test_ctrl_c_during_an_import(moment: int, arguments: Sequence[str], films: str) -> None:
    given = [films if one == "FILMS" else one for one in arguments]
    command = [sys.executable, "-c", AT_IMPORT, str(moment), *given]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stderr) == (130, "kg-retrievers: interrupted\n")


def started(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "kg_retrievers.cli", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=ROOT)


def test_ctrl_c_ends_mcp_on_stdio_while_it_reads(films: str) -> None:
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
    with started("mcp", films) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdin.write(json.dumps(request) + "\n")
        server.stdin.flush()
        assert json.loads(server.stdout.readline())["result"]["serverInfo"]["name"] == "kg-retrievers"
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 130
        assert server.stderr.read() == "kg-retrievers: interrupted\n"


@pytest.mark.parametrize("arguments", [["serve"], ["mcp", "--http"]])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_signal_ends_a_server_that_listens(
    arguments: Sequence[str], number: signal.Signals, code: int, films: str
) -> None:
    with started(*arguments, films, "--port", "0") as server:
        assert server.stderr is not None
        assert "Ctrl-C ends it" in server.stderr.readline()
        server.send_signal(number)
        assert server.wait(60) == code
        assert server.stderr.read() == ("kg-retrievers: interrupted\n" if code == 130 else "")
