"""The notebooks run from top to bottom."""

from __future__ import annotations

from pathlib import Path

import nbclient
import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))

#: They pre-train a language model, or need the extra `test-heavy`; the page of the method in docs/ runs in `make test`.
HEAVY = {"08_graph_prompt", "09_real_language_model"}


def test_there_are_notebooks() -> None:
    assert {path.stem for path in NOTEBOOKS} > HEAVY


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.stem, marks=[pytest.mark.heavy] * (path.stem in HEAVY)) for path in NOTEBOOKS],
)
def test_notebook(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    assert any(cell.cell_type == "code" for cell in notebook.cells)
    nbclient.execute(notebook, str(tmp_path), timeout=300, kernel_name="python3")
