"""Every public name is documented, and every retriever is cited, under contract, shown and in the command line."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pkgutil
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import kg_retrievers
from kg_retrievers.core.retriever import BaseKGRetriever

ROOT = Path(__file__).parents[1]
PUBLIC = sorted(kg_retrievers.__all__)


#: By name, so that a module that cannot be imported fails a test and not the collection.
RETRIEVERS = [name for name in PUBLIC if name.endswith("Retriever") and name != "BaseKGRetriever"]
each_retriever = pytest.mark.parametrize("name", RETRIEVERS)


@cache
def readme() -> str:
    """Return the text of the README."""
    return (ROOT / "README.md").read_text(encoding="utf-8")


@cache
def notebook_texts() -> tuple[str, ...]:
    """Return the text of all cells of each notebook."""
    notebooks = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(ROOT.glob("notebooks/*.ipynb"))]
    return tuple("\n".join("".join(cell["source"]) for cell in notebook["cells"]) for notebook in notebooks)


def contracts() -> Iterator[ast.ClassDef]:
    """Yield the test classes that subclass RetrieverContract."""
    for path in sorted((ROOT / "tests").glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
            if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
                bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
                if "RetrieverContract" in bases:
                    yield node


def mentions(text: str, name: str) -> bool:
    """Tell whether a text holds a name as a whole word."""
    return re.search(rf"\b{re.escape(name)}\b", text) is not None


def test_there_are_retrievers() -> None:
    assert len(PUBLIC) == len(set(PUBLIC))
    assert RETRIEVERS


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_documented(name: str) -> None:
    value = getattr(kg_retrievers, name)
    if name != "__version__":
        docstring = vars(value).get("__doc__") if inspect.isclass(value) else inspect.getdoc(value)
        assert docstring, f"{name} has no docstring"
        assert not docstring.startswith(f"{name}("), f"{name} has only the docstring that a dataclass is given"
        assert mentions(readme(), name), f"{name} is not in README.md"
    assert name in dir(kg_retrievers)


def test_every_retriever_is_exported() -> None:
    for module in pkgutil.iter_modules(kg_retrievers.__path__, "kg_retrievers."):
        importlib.import_module(module.name)
    waiting, missing = [BaseKGRetriever], set()
    while waiting:
        for kind in waiting.pop().__subclasses__():
            waiting.append(kind)
            ours = kind.__module__.startswith("kg_retrievers.") and not kind.__name__.startswith("_")
            if ours and not inspect.isabstract(kind) and kind.__name__ not in RETRIEVERS:
                missing.add(f"{kind.__module__}.{kind.__name__}")
    assert not missing


@each_retriever
def test_retrievers_are_retrievers(name: str) -> None:
    assert issubclass(getattr(kg_retrievers, name), BaseKGRetriever)


@each_retriever
def test_retrievers_cite_their_paper(name: str) -> None:
    module = sys.modules[getattr(kg_retrievers, name).__module__]
    assert "arXiv" in (module.__doc__ or ""), f"the docstring of {module.__name__} does not cite the paper"


@each_retriever
def test_retrievers_are_under_contract(name: str) -> None:
    tested = {node.id for contract in contracts() for node in ast.walk(contract) if isinstance(node, ast.Name)}
    assert name in tested, f"no test class subclasses RetrieverContract for {name}"


@each_retriever
def test_retrievers_have_a_row_in_the_readme(name: str) -> None:
    rows = [line for line in readme().splitlines() if line.lstrip().startswith("|")]
    assert any(mentions(row, name) for row in rows), f"no table of README.md has a row for {name}"


@each_retriever
def test_retrievers_are_in_a_notebook(name: str) -> None:
    assert any(mentions(text, name) for text in notebook_texts()), f"no notebook mentions {name}"


@each_retriever
def test_retrievers_are_in_the_command_line(name: str) -> None:
    load = importlib.import_module("kg_retrievers.cli.load")
    names = {
        value.replace(":", ".").rpartition(".")[2] if isinstance(value, str) else value.__name__
        for value in load.RETRIEVERS.values()
    }
    assert name in names | {load.UNION}
