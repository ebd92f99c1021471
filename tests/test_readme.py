"""The Python blocks of the README run, in order, as one program."""

from __future__ import annotations

import ast
import asyncio
import re
import sys
from inspect import CO_COROUTINE
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import NamedTuple

import pytest
from small_language_model import build

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^(?P<indent>[ \t]*)```python[^\n]*\n(?P<code>.*?)^(?P=indent)```[ \t]*$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"<!-- not run: (?P<reason>\S.*?) -->\s*\Z")


class Block(NamedTuple):
    """A block of code, the line before its first one, and why it is not run, if it is not."""

    code: str
    line: int
    not_run: str | None


def blocks(text: str) -> list[Block]:
    """Return the Python blocks of a Markdown text; `<!-- not run: reason -->` right before one excuses it."""
    found = []
    for match in BLOCK.finditer(text):
        mark = NOT_RUN.search(text, 0, match.start())
        line = text.count("\n", 0, match.start("code"))
        found.append(Block(dedent(match["code"]), line, mark["reason"] if mark else None))
    return found


def run(block: Block, namespace: dict[str, object], filename: str) -> None:
    """Run a block, as a notebook would: `await` may stand at its top level."""
    source = "\n" * block.line + block.code
    code = compile(source, filename, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    outcome = eval(code, namespace)
    if code.co_flags & CO_COROUTINE:
        asyncio.run(outcome)


def test_blocks_are_found() -> None:
    text = (
        "```python\na = 1\n```\n"
        "- x\n  ```python\n  b = 2\n  ```\n"
        "<!-- not run: needs a key -->\n\n```python\nc\n```\n"
        "```bash\nd\n```\n"
    )
    assert blocks(text) == [Block("a = 1\n", 1, None), Block("b = 2\n", 5, None), Block("c\n", 10, "needs a key")]


def test_blocks_share_names_and_may_await() -> None:
    namespace: dict[str, object] = {}
    run(Block("import asyncio\nasync def one():\n    return 1\n", 0, None), namespace, "a.md")
    run(Block("x = await one()\n", 0, None), namespace, "a.md")
    assert namespace["x"] == 1
    with pytest.raises(ZeroDivisionError):
        run(Block("1 / 0\n", 0, None), namespace, "a.md")


@pytest.mark.parametrize("name", ["README.md"])
def test_readme(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = blocks((ROOT / name).read_text(encoding="utf-8"))
    to_run = [block for block in found if not block.not_run]
    assert to_run, f"{name} has no Python block that runs"
    program = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", program)
    monkeypatch.chdir(tmp_path)
    build("my-language-model", [block.code for block in to_run])
    for block in to_run:
        run(block, vars(program), str(ROOT / name))
