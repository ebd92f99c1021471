"""The notebooks run from top to bottom, and print what they show."""

from __future__ import annotations

import ast
import asyncio
import json
from inspect import CO_COROUTINE
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))

#: They train models, or need the extra `test-heavy`. The page of the method in docs/ runs in `make test`.
HEAVY = {"05_subgraph_rag", "06_gnn_rag", "08_graph_prompt", "09_real_language_model"}


def run_cell(source: str, namespace: dict[str, Any], name: str) -> str | None:
    """Run a cell as a notebook does: `await` may stand at its top level. Return the HTML of its last value, if any."""
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    value = None
    for part, mode in ((tree, "exec"), (last and ast.Expression(last.value), "eval")):
        if part is not None:
            code = compile(part, name, mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            value = eval(code, namespace)
            if code.co_flags & CO_COROUTINE:
                value = asyncio.run(value)
    shown = getattr(value, "_repr_html_", lambda: None)()
    assert isinstance(shown, str | None)
    return shown


def printed(cell: dict[str, Any]) -> str:
    """Return the text that a cell of the file printed."""
    streams = [output for output in cell["outputs"] if output.get("name") == "stdout"]
    return "".join("".join(output["text"]) for output in streams)


def shown(cell: dict[str, Any]) -> str | None:
    """Return the HTML that a cell of the file shows."""
    pages = ["".join(output["data"].get("text/html", "")) for output in cell["outputs"] if "data" in output]
    return "".join(pages) or None


def test_there_are_notebooks() -> None:
    assert {path.stem for path in NOTEBOOKS} > HEAVY


@pytest.mark.usefixtures("loggers_stay")
@pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.stem, marks=[pytest.mark.heavy] * (path.stem in HEAVY)) for path in NOTEBOOKS]
)
def test_notebook(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    cells = [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert cells
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(cells):
        html = run_cell("".join(cell["source"]), namespace, f"{path.stem}, cell {number}")
        out = capsys.readouterr().out
        # figures of trained models differ between machines in their last digits
        assert path.stem in HEAVY or (out, html) == (printed(cell), shown(cell))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_opens_in_colab(path: Path) -> None:
    """Once OWNER is the owner of the public repository."""
    first = "".join(json.loads(path.read_text("utf-8"))["cells"][0]["source"])
    assert f"colab.research.google.com/github/OWNER/kg-retrievers/blob/main/notebooks/{path.name})" in first
