"""Who may import whom, what loads without the optional packages, and what no module may do."""

from __future__ import annotations

import ast
import subprocess
import sys
import sysconfig
import tomllib
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "kg_retrievers"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SCRIPTS = Path(sysconfig.get_path("scripts"))

FORBIDDEN_NAMES = {"utils", "helpers", "manager", "common", "misc"}
FORBIDDEN_CALLS = {"eval", "exec"}
PICKLES = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}


@cache
def modules() -> dict[str, ast.Module]:
    """Return all modules of the package, parsed, by their paths."""
    files = sorted(PACKAGE.rglob("*.py"))
    found = {file.relative_to(ROOT).as_posix(): ast.parse(file.read_text(encoding="utf-8")) for file in files}
    assert len(found) > 10, f"found only {len(found)} modules in {PACKAGE}"
    return found


# --- who may import whom: the rules stand in pyproject.toml ----------------------------------------------------------


@pytest.mark.parametrize(
    "command", [["lint-imports", "--no-cache"], ["deptry", "kg_retrievers"]], ids=lambda one: one[0]
)
def test_imports_keep_to_the_rules(command: list[str]) -> None:
    name, *arguments = command
    done = subprocess.run([str(SCRIPTS / name), *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


# --- what loads when --------------------------------------------------------------------------------------------------

#: Hides every package that `pip install kg-retrievers` alone does not bring.
_CORE_ALONE = r"""
import re, sys
from importlib.metadata import distribution, packages_distributions

def name_of(text):
    return re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", text).group()).lower()

core, waiting = set(), [name_of(text) for text in {dependencies!r}]
while waiting:
    name = waiting.pop()
    if name not in core:
        core.add(name)
        try:
            requirements = distribution(name).requires or []
        except ModuleNotFoundError:  # of another platform
            continue
        waiting += [name_of(text) for text in requirements if "extra ==" not in text]
hidden = {{module for module, names in packages_distributions().items() if not core & set(map(name_of, names))}}
hidden.discard("kg_retrievers")

class CoreAlone:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)

sys.meta_path.insert(0, CoreAlone())
"""
CORE_ALONE = _CORE_ALONE.format(dependencies=PROJECT["project"]["dependencies"])

#: Ends the process at these events; an error could be caught by who asked for them.
NO_EVENTS = """
import os, sys
def watch(event, args):
    if event in {events!r}:
        print("forbidden:", event, args, file=sys.stderr, flush=True)
        os._exit(1)
sys.addaudithook(watch)
"""


def run_python(code: str) -> None:
    """Run code in a fresh process."""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.heavy
def test_every_module_loads_with_the_core_alone_or_says_what_is_missing() -> None:
    run_python(
        CORE_ALONE
        + "from importlib import import_module\n"
        + "from pathlib import Path\n"
        + "from kg_retrievers.errors import MissingExtraError\n"
        + "assert not {'numpy', 'pydantic', 'langchain_core'} & hidden\n"
        + "assert {'torch', 'llama_index', 'pytest', 'neo4j'} <= hidden\n"
        + "loaded, missing = [], {}\n"
        + "for file in sorted(Path('kg_retrievers').rglob('*.py')):\n"
        + "    name = '.'.join(file.with_suffix('').parts).removesuffix('.__init__')\n"
        + "    if file.name != '__main__.py':\n"
        + "        try:\n"
        + "            import_module(name)\n"
        + "            loaded.append(name)\n"
        + "        except MissingExtraError as error:\n"
        + "            assert 'pip install' in str(error)\n"
        + "            missing[name] = error.extra\n"
        + "wanted = {'agents.middleware': 'langchain', 'llama_index': 'llama-index', 'database.neo4j': 'neo4j',\n"
        + "          'database.ladybug': 'ladybug', 'training.loop': 'train', 'testing.contract': 'test',\n"
        + "          'methods.g_retriever.graph_prompt.network': 'graph-prompt'}\n"
        + "for name, extra in wanted.items():\n"
        + "    assert missing.get('kg_retrievers.' + name) == extra, (name, missing)\n"
        + "assert len(loaded) > 3 * len(missing), missing"
    )


def test_a_star_import_and_a_question_need_the_core_alone() -> None:
    run_python(
        CORE_ALONE
        + "from kg_retrievers import *\n"
        + "facts = [('Her', 'directed_by', 'Spike Jonze')]\n"
        + "index = GraphIndex.build(KnowledgeGraph.from_triples(facts), HashedEmbeddings())\n"
        + "document = PCSTRetriever.from_index(index).invoke('Who directed Her?')[0]\n"
        + "assert document.metadata['triples'] == [['Her', 'directed_by', 'Spike Jonze']]\n"
    )


def test_the_front_door_is_light() -> None:
    events = ("socket.__new__", "socket.connect", "socket.getaddrinfo")
    run_python(
        NO_EVENTS.format(events=events)
        + "import kg_retrievers\n"
        + "assert kg_retrievers.__all__\n"
        + "assert 'numpy' not in sys.modules, 'import kg_retrievers loads numpy'"
    )


def test_a_retriever_loads_no_extra() -> None:
    heavy = ("torch", "llama_index", "chromadb", "sentence_transformers", "langchain_openai")
    run_python(
        NO_EVENTS.format(events=("socket.connect", "socket.getaddrinfo"))
        + "from kg_retrievers import SimGRAGRetriever, SubgraphRAGRetriever, TripleScorer\n"
        + f"loaded = [name for name in {heavy!r} if name in sys.modules]\n"
        + "assert not loaded, f'a retriever loads {loaded}'"
    )


# --- what no module may do --------------------------------------------------------------------------------------------


def test_modules_say_what_they_hold() -> None:
    names = {part.removesuffix(".py").strip("_") for file in modules() for part in Path(file).parts}
    assert not names & FORBIDDEN_NAMES


def runs_text_or_pickles(node: ast.AST) -> bool:
    """Tell whether a node evaluates text, reads a pickle, or writes one to a file."""
    match node:
        case ast.Import():  # of pickle itself, only `dumps` is used: to tell what can be pickled
            return any(alias.name.partition(".")[0] in PICKLES - {"pickle"} for alias in node.names)
        case ast.ImportFrom(module=str(name)):
            return name.partition(".")[0] in PICKLES
        case ast.Attribute(value=ast.Name(id="pickle"), attr=name):
            return name not in ("dumps", "PicklingError")
        case ast.Name(id=name):
            return name in FORBIDDEN_CALLS
        case ast.Attribute(value=ast.Name(id="torch"), attr="load"):
            return True
        case ast.keyword(arg="allow_pickle", value=value):
            return ast.unparse(value) != "False"
    return False


def test_nothing_runs_text_or_pickles() -> None:
    wrong = [
        f"{file}:{getattr(node, 'lineno', '?')} {ast.unparse(node)}"
        for file, tree in modules().items()
        for node in ast.walk(tree)
        if runs_text_or_pickles(node)
    ]
    assert not wrong


# --- what is shipped --------------------------------------------------------------------------------------------------


def test_the_wheel_holds_one_package() -> None:
    """A wheel with a top-level `agents` would overwrite that of the OpenAI Agents SDK."""
    setuptools = PROJECT["tool"]["setuptools"]
    assert not {"py-modules", "package-dir"} & set(setuptools)
    patterns = setuptools["packages"]["find"]["include"]
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()} | {"agents", "chains"}
    taken = {name for name in folders for pattern in patterns if fnmatchcase(name, pattern)}
    assert {name for name in taken if not name.endswith(".egg-info")} == {"kg_retrievers"}
