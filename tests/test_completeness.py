"""Every public name is documented, and every method of the registry is cited, tested, shown and in the command line."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import pkgutil
import re
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import kg_retrievers
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import MissingExtraError
from kg_retrievers.methods.registry import GRAPH_PROMPT, METHODS, Method, trainable

ROOT = Path(__file__).parents[1]

#: Everything that the front door exports, with and without an extra.
PUBLIC = sorted(set(dir(kg_retrievers)) - {"__version__"})

#: It is made of docstrings, so that a name in it is not thereby explained.
REFERENCE = "docs/api.md"

each_retriever = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)


@cache
def pages() -> dict[str, str]:
    """Return the texts of the README and of the docs by their paths."""
    files = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    return {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in files}


@cache
def notebook_texts() -> tuple[str, ...]:
    """Return the text of all cells of each notebook, with what they print; one goes over the table of methods."""
    texts = []
    for file in sorted(ROOT.glob("notebooks/*.ipynb")):
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        printed = (output.get("text", []) for cell in cells for output in cell.get("outputs", []))
        texts.append("\n".join("".join(part) for part in (*(cell["source"] for cell in cells), *printed)))
    return tuple(texts)


@cache
def names_in_contracts() -> frozenset[str]:
    """Return all names in the test classes that subclass RetrieverContract."""
    classes = []
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        classes += [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and is_contract(node)]
    return frozenset(node.id for kind in classes for node in ast.walk(kind) if isinstance(node, ast.Name))


def is_contract(node: ast.ClassDef) -> bool:
    """Tell whether a class subclasses RetrieverContract itself."""
    bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
    return node.name.startswith("Test") and "RetrieverContract" in bases


def mentions(text: str, name: str) -> bool:
    """Tell whether a text holds a name as a whole word."""
    return re.search(rf"\b{re.escape(name)}\b", text) is not None


# --- public names -----------------------------------------------------------------------------------------------------


#: What needs an extra that only the heavy tests have.
WITHOUT_EXTRAS = {"kg_retrievers.bulk.ray_workers"}


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_documented(name: str) -> None:
    try:
        value = getattr(kg_retrievers, name)
    except MissingExtraError as error:  # an extra that only the heavy tests have
        pytest.skip(str(error))
    docstring = vars(value).get("__doc__") if inspect.isclass(value) else inspect.getdoc(value)
    assert docstring, f"{name} has no docstring"
    assert not docstring.startswith(f"{name}("), f"{name} has only the docstring that a dataclass is given"
    explained = (text for path, text in pages().items() if path != REFERENCE)
    assert any(mentions(text, name) for text in explained), f"{name} is on no page of docs/ and not in README.md"


# --- methods ----------------------------------------------------------------------------------------------------------


def test_every_retriever_is_in_the_registry() -> None:
    for module in pkgutil.walk_packages(kg_retrievers.__path__, "kg_retrievers."):
        if not module.name.endswith("__main__"):
            with suppress(ImportError if module.name in WITHOUT_EXTRAS else ()):
                importlib.import_module(module.name)
    known = {method.load_retriever() for method in METHODS}
    waiting, found = [BaseKGRetriever], set()
    while waiting:
        kinds = waiting.pop().__subclasses__()
        waiting += kinds
        found |= {kind for kind in kinds if kind.__module__.startswith("kg_retrievers.") and is_public(kind)}
    assert found == known


def is_public(kind: type) -> bool:
    """Tell whether a class is meant to be used as it is."""
    return not inspect.isabstract(kind) and not kind.__name__.startswith("_")


def test_names_of_methods_are_unique() -> None:
    names = [name for method in (*METHODS, GRAPH_PROMPT) for name in method.names]
    assert len(names) == len(set(names))
    assert len({method.class_name for method in METHODS}) == len(METHODS)


@each_retriever
def test_methods_are_exported(method: Method) -> None:
    retriever = method.load_retriever()
    assert issubclass(retriever, BaseKGRetriever)
    assert getattr(kg_retrievers, method.class_name) is retriever


@pytest.mark.parametrize("method", trainable(), ids=lambda method: method.name)
def test_models_and_trainers_are_exported(method: Any) -> None:
    for loaded in (method.load_model(), method.load_trainer()):
        assert getattr(kg_retrievers, loaded.__name__) is loaded


@each_retriever
def test_methods_cite_their_paper(method: Method) -> None:
    module = sys.modules[method.load_retriever().__module__]
    arxiv = re.search(r"arXiv:\d{4}\.\d{5}", method.paper)
    cited = arxiv.group() if arxiv else "not on arXiv"
    assert cited in (module.__doc__ or ""), f"the docstring of {module.__name__} does not cite the paper: {cited}"


@each_retriever
def test_methods_are_under_contract(method: Method) -> None:
    assert method.class_name in names_in_contracts(), f"no RetrieverContract tests {method.class_name}"


@each_retriever
def test_methods_have_a_page_a_row_in_the_readme_and_a_notebook(method: Method) -> None:
    name, page = method.class_name, f"docs/methods/{method.name}.md"
    assert mentions(pages().get(page, ""), name), f"{page} is missing, or does not name {name}"
    rows = [line for line in pages()["README.md"].splitlines() if line.lstrip().startswith("|")]
    assert any(mentions(row, name) for row in rows), f"no table of README.md names {name}"
    assert any(mentions(text, name) for text in notebook_texts()), f"no notebook uses {name}"


@pytest.mark.parametrize("command", ["ask", "evaluate"])
def test_methods_are_in_the_command_line(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    main = importlib.import_module("kg_retrievers.cli").main
    assert main([command, "--help"]) == 0
    shown = re.sub(r"-\n +", "-", capsys.readouterr().out)  # lines are broken behind hyphens, too
    assert [method.name for method in METHODS if not mentions(shown, method.name)] == []


# --- how retrievers are built; tests/typed_retrievers.py shows what a type checker sees -------------------------------


@each_retriever
def test_every_method_is_built_from_the_same(method: Method) -> None:
    retriever = method.load_retriever()
    parameters = inspect.signature(retriever).parameters
    assert all(parameters[name].default is None for name in ("llm", "examples", "model", "preset"))
    assert set(retriever.model_fields) <= set(parameters), "a notebook shows not every field"
