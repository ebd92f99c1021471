"""Who may import whom, and what no module may do."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "kg_retrievers"
FRONT_DOOR = "__init__"

METHODS = {"simgrag", "pcst", "gnn_rag", "subgraph_rag", "cypher", "relation_paths", "triple_similarity"}

#: A room imports itself and the rooms of earlier layers.
LAYERS: tuple[set[str], ...] = (
    {"errors"},
    {"graph"},
    {"algorithms", "prompts", "questions"},
    {"index", "steps", "cost"},
    {"models"},
    {"database", "pattern_generation", "base"},
    {"seeded", "reasoning_paths"},
    {"trained"},
    {*METHODS, "union"},
    {"chains", "llama_index", "evaluation"},
    {"agents"},
    {"testing", "cli"},
    {"studio"},
)
#: The sample graph stands beside the layers: what it imports, and who imports it.
SAMPLE_IMPORTS = {"errors", "graph", "questions"}
SAMPLE_IMPORTERS = {"testing", "cli"}
#: They take retrievers and know no method.
KNOW_NO_METHOD = {*METHODS, "union", "chains", "llama_index", "evaluation", "agents"}

#: What the core installs under another name than its own.
CORE_TRANSITIVE = {"pydantic"}
#: `testing` is imported by tests, which have these.
TEST_TOOLS = {"langchain_tests", "pytest"}
#: The optional packages, and the only files that may import them.
LLAMA_INDEX = {f"llama_index/{name}.py" for name in ("__init__", "models", "prompts", "retriever")}
TRAINING = {
    f"models/{name}.py"
    for name in ("training", "question_training", "triple_scorer_training", "graph_reasoner_training")
}
GRAPH_PROMPT = {f"models/graph_prompt/{name}.py" for name in ("causal_lm", "encoders", "model", "network", "training")}
OPTIONAL = {
    "chromadb": set[str](),
    "ladybug": {"database/ladybug.py"},
    "langchain": {"agents/middleware.py", "agents/language_model.py"},
    "langchain_chroma": set[str](),
    "langchain_openai": set[str](),
    "llama_index": LLAMA_INDEX,
    "matplotlib": {"graph/drawing.py"},
    "neo4j": {"database/neo4j.py"},
    "peft": {"models/graph_prompt/network.py"},
    "rdflib": set[str](),
    "sentence_transformers": {"index/embeddings.py"},
    "torch": {*TRAINING, *GRAPH_PROMPT, "graph/pyg.py"},
    "torch_geometric": {"graph/pyg.py", "models/graph_prompt/encoders.py"},
    "transformers": {"models/graph_prompt/causal_lm.py"},
}
#: Files that are all about an optional package; imported without it, they say what is missing.
ABOUT_OPTIONAL = {
    "agents/middleware.py",
    "database/ladybug.py",
    "database/neo4j.py",
    *GRAPH_PROMPT,
    *LLAMA_INDEX,
    *TRAINING,
}
FORBIDDEN_NAMES = {"utils", "helpers", "manager", "common", "misc"}
FORBIDDEN_CALLS = {"eval", "exec"}
PICKLES = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}


class Import(NamedTuple):
    """One imported module, as a dotted name, and where it is imported."""

    name: str
    line: int
    in_function: bool
    type_checking: bool

    @property
    def top(self) -> str:
        return self.name.partition(".")[0]

    @property
    def room(self) -> str | None:
        """The room of this package that is imported, if any."""
        parts = self.name.split(".")
        if parts[0] != "kg_retrievers":
            return None
        inside = parts[1] if len(parts) > 1 else FRONT_DOOR
        return inside if (PACKAGE / inside).is_dir() or (PACKAGE / f"{inside}.py").is_file() else FRONT_DOOR


class Module(NamedTuple):
    """A source file of the package."""

    path: Path
    tree: ast.Module
    imports: tuple[Import, ...]

    @property
    def where(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def room(self) -> str:
        return self.path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _imported_names(node: ast.AST, package: tuple[str, ...]) -> Iterator[str]:
    """Yield the dotted names that a node imports; `package` is the package of its module."""
    match node:
        case ast.Import():
            yield from (alias.name for alias in node.names)
        case ast.ImportFrom():
            origin = (*package[: len(package) - node.level + 1],) if node.level else ()
            origin += (node.module,) if node.module else ()
            if origin == ("kg_retrievers",):  # a room, or what the front door exports
                yield from (f"kg_retrievers.{alias.name}" for alias in node.names)
            else:
                yield ".".join(origin)
        case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called), args=[ast.Constant(value=str(name)), *_]):
            if called in {"import_module", "__import__"}:
                yield name


def _imports(
    node: ast.AST, package: tuple[str, ...], in_function: bool = False, type_checking: bool = False
) -> Iterator[Import]:
    for name in _imported_names(node, package):
        yield Import(name, getattr(node, "lineno", 0), in_function, type_checking)
    in_function |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    guarded: list[ast.stmt] = []
    if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        guarded = node.body
    for child in ast.iter_child_nodes(node):
        yield from _imports(child, package, in_function, type_checking or child in guarded)


@cache
def modules() -> tuple[Module, ...]:
    """Return all modules of the package, parsed."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        package = path.relative_to(ROOT).parent.parts
        found.append(Module(path, tree, tuple(_imports(tree, package))))
    assert len(found) > 10, f"found only {len(found)} modules in {PACKAGE}"
    return tuple(found)


def layer_of(room: str) -> int:
    """Return the number of a room's layer."""
    for number, rooms in enumerate(LAYERS):
        if room in rooms:
            return number
    raise AssertionError(f"kg_retrievers/{room} has no layer. Add it to LAYERS, or choose a room that exists.")


def may_import(importer: str, imported: str) -> bool:
    """Tell whether one room may import another."""
    if importer in (imported, FRONT_DOOR):
        return True
    if imported == FRONT_DOOR:
        return layer_of(importer) >= layer_of("cli")
    if imported == "sample":
        return importer in SAMPLE_IMPORTERS
    if importer == "sample":
        return imported in SAMPLE_IMPORTS
    if imported in METHODS and importer in KNOW_NO_METHOD:
        return False
    return layer_of(imported) < layer_of(importer)


def test_every_room_has_a_layer() -> None:
    rooms = {module.room for module in modules()} - {FRONT_DOOR, "sample"}
    assert rooms
    for room in rooms:
        layer_of(room)


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("graph", "errors", True),
        ("graph", "graph", True),
        ("errors", "graph", False),
        ("algorithms", "prompts", False),
        ("base", "pattern_generation", False),
        ("simgrag", "pattern_generation", True),
        ("simgrag", "pcst", False),
        ("union", "simgrag", False),
        ("chains", "simgrag", False),
        ("agents", "chains", True),
        ("cli", "simgrag", True),
        ("cli", "testing", False),
        ("cli", "sample", True),
        ("index", "sample", False),
        ("sample", "questions", True),
        ("sample", "index", False),
        ("index", FRONT_DOOR, False),
    ],
)
def test_may_import(importer: str, imported: str, allowed: bool) -> None:
    assert may_import(importer, imported) is allowed


def test_imports_are_found_in_every_form() -> None:
    source = """
import numpy.typing
from . import errors
from .graph import types
from kg_retrievers import SimGRAGRetriever
if TYPE_CHECKING:
    import torch
def load():
    import_module("neo4j")
    from kg_retrievers.index import GraphIndex
"""
    found = {(name, inner, typing) for name, _, inner, typing in _imports(ast.parse(source), ("kg_retrievers",))}
    assert found == {
        ("numpy.typing", False, False),
        ("kg_retrievers.errors", False, False),
        ("kg_retrievers.graph", False, False),
        ("kg_retrievers.SimGRAGRetriever", False, False),
        ("torch", False, True),
        ("neo4j", True, False),
        ("kg_retrievers.index", True, False),
    }


def test_rooms_import_in_order() -> None:
    wrong = [
        f"{module.where}:{found.line} imports {found.name}"
        for module in modules()
        for found in module.imports
        if found.room and not may_import(module.room, found.room)
    ]
    assert not wrong


def test_no_import_of_the_package_inside_functions() -> None:
    wrong = [
        f"{module.where}:{found.line} imports {found.name}"
        for module in modules()
        for found in module.imports
        if found.in_function and found.room and module.path != PACKAGE / "__init__.py"
    ]
    assert not wrong


def test_graph_and_algorithms_import_no_framework() -> None:
    wrong = [
        f"{module.where}:{found.line} imports {found.name}"
        for module in modules()
        for found in module.imports
        if module.room in {"errors", "graph", "algorithms"}
        and module.path.name != "pyg.py"  # whose work is torch-geometric, which it loads when it is called
        and found.top.startswith(("langchain", "langgraph", "llama_index", "openai", "torch"))
    ]
    assert not wrong


def test_optional_packages_are_imported_where_they_are_needed() -> None:
    wrong = [
        f"{module.where}:{found.line} imports {found.name}"
        for module in modules()
        for found in module.imports
        if found.top in OPTIONAL and module.path.relative_to(PACKAGE).as_posix() not in OPTIONAL[found.top]
    ]
    assert not wrong


def test_modules_load_with_the_core_alone() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core = {requirement.split(">")[0].replace("-", "_") for requirement in project["dependencies"]}
    allowed = core | CORE_TRANSITIVE | sys.stdlib_module_names | {"kg_retrievers"}
    assert not core & set(OPTIONAL)
    wrong = [
        f"{module.where}:{found.line} imports {found.name}"
        for module in modules()
        for found in module.imports
        if not (found.in_function or found.type_checking)
        and found.top not in (allowed | TEST_TOOLS if module.room == "testing" else allowed)
        and module.path.relative_to(PACKAGE).as_posix() not in ABOUT_OPTIONAL
    ]
    assert not wrong


@pytest.mark.parametrize("file", sorted(ABOUT_OPTIONAL))
def test_what_is_about_an_optional_package_says_what_is_missing(file: str) -> None:
    missing = {name for name, files in OPTIONAL.items() if file in files}
    module = "kg_retrievers." + file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    run_python(
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({sorted(missing)!r}))\n"
        "from kg_retrievers.errors import MissingExtraError\n"
        f"try:\n    import {module}\n"
        "except MissingExtraError as error:\n    assert 'pip install' in str(error)\n"
        "else:\n    raise AssertionError('it was loaded all the same')"
    )


def run_python(code: str) -> None:
    """Run code in a fresh process."""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


#: Ends the process at these events; an error could be caught by who asked for them.
NO_EVENTS = """
import os, sys
def watch(event, args):
    if event in {events!r}:
        print("forbidden:", event, args, file=sys.stderr, flush=True)
        os._exit(1)
sys.addaudithook(watch)
"""


def test_the_front_door_is_light() -> None:
    events = ("socket.__new__", "socket.connect", "socket.getaddrinfo")
    run_python(
        NO_EVENTS.format(events=events) + "import kg_retrievers\n"
        "assert kg_retrievers.__all__\n"
        "assert 'numpy' not in sys.modules, 'import kg_retrievers loads numpy'"
    )


def test_a_retriever_loads_no_extra() -> None:
    heavy = ("torch", "llama_index", "chromadb", "sentence_transformers", "langchain_openai", "matplotlib")
    run_python(
        NO_EVENTS.format(events=("socket.connect", "socket.getaddrinfo"))
        + "from kg_retrievers import SimGRAGRetriever, SubgraphRAGRetriever, TripleScorer\n"
        f"loaded = [name for name in {heavy!r} if name in sys.modules]\n"
        "assert not loaded, f'a retriever loads {loaded}'"
    )


def test_modules_say_what_they_hold() -> None:
    names = {part.removesuffix(".py") for module in modules() for part in module.path.relative_to(PACKAGE).parts}
    assert not {name for name in names if name.strip("_") in FORBIDDEN_NAMES}


def test_nothing_runs_text_or_pickles() -> None:
    wrong = []
    for module in modules():
        wrong += [f"{module.where}:{found.line} {found.name}" for found in module.imports if found.top in PICKLES]
        for node in ast.walk(module.tree):
            match node:
                case ast.Name(id=name) if name in FORBIDDEN_CALLS | PICKLES:
                    wrong.append(f"{module.where}:{node.lineno} {name}")
                case ast.Attribute(value=ast.Name(id="torch"), attr="load"):
                    wrong.append(f"{module.where}:{node.lineno} torch.load")
                case ast.keyword(arg="allow_pickle", value=value) if ast.unparse(value) != "False":
                    wrong.append(f"{module.where}:{value.lineno} allow_pickle")
    assert not wrong


def test_the_wheel_holds_one_package() -> None:
    """A wheel with a top-level `agents` would overwrite that of the OpenAI Agents SDK."""
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    assert not {"py-modules", "package-dir"} & set(setuptools)
    patterns = setuptools["packages"]["find"]["include"]
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()} | {"agents", "chains"}
    taken = {name for name in folders for pattern in patterns if fnmatchcase(name, pattern)}
    assert {name for name in taken if not name.endswith(".egg-info")} == {"kg_retrievers"}


@pytest.mark.parametrize("name", ["agents", "chains"])
def test_links_at_the_root_show_the_packages(name: str) -> None:
    link = ROOT / name
    if not link.is_symlink():
        pytest.skip("the link was lost, as in a zip file or on Windows; nothing needs it")
    assert link.resolve() == PACKAGE / name
