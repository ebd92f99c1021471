"""The wheel installs in an environment of its own: the core runs the demo, and each extra its one line."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]

#: Extras for those who work on the package, from a checkout.
OF_DEVELOPERS = {"docs", "test", "test-heavy"}

#: What pip is given to install PyTorch, as in the Makefile, and the extras that need it.
TORCH = shlex.split(os.environ.get("TORCH", ""))
WITH_TORCH = {"graph-prompt", "local", "train"}

#: A line that needs what the extra installs.
LINES = {
    "arrow": (
        "import pyarrow as pa; from pyarrow.parquet import write_table; from kg_retrievers import KnowledgeGraph; "
        "write_table(pa.table({'head': ['Her'], 'relation': ['directed_by'], 'tail': ['Spike Jonze']}), 'g.parquet'); "
        "assert len(KnowledgeGraph.from_file('g.parquet')) == 1"
    ),
    "chroma": "import langchain_chroma; from kg_retrievers.index import VectorStoreSearch",
    "graph-prompt": "from kg_retrievers import GraphPromptModel, train_graph_prompt",
    "ladybug": (
        "from kg_retrievers import KnowledgeGraph, LadybugExecutor; "
        "LadybugExecutor.from_graph(KnowledgeGraph.from_triples([('Her', 'directed_by', 'Spike Jonze')])).close()"
    ),
    "langchain": "from kg_retrievers import KnowledgeGraphMiddleware",
    "llama-index": "from kg_retrievers import as_llama_index",
    "local": "import sentence_transformers; from kg_retrievers import local_embeddings",
    "mcp": "import mcp; from kg_retrievers.serving.mcp import server",
    "milvus": "import langchain_milvus, milvus_lite; from kg_retrievers.index import open_store",
    "neo4j": "from kg_retrievers import Neo4jExecutor; Neo4jExecutor('bolt://localhost:1').close()",
    "openai": (
        "import os; os.environ['OPENAI_API_KEY'] = 'none'; "
        "from kg_retrievers import load_chat_model; load_chat_model('openai:gpt-4.1-mini')"
    ),
    "postgres": "import langchain_postgres, psycopg; from kg_retrievers.index import open_store",
    "ray": "from kg_retrievers import RayWorkers; RayWorkers(workers=1).close()",
    "rdf": (
        "from pathlib import Path; from kg_retrievers import KnowledgeGraph; "
        "Path('g.ttl').write_text('<urn:a> <urn:b> <urn:c> .'); assert len(KnowledgeGraph.from_file('g.ttl')) == 1"
    ),
    "serve": "from kg_retrievers.serving.web.app import make_app",
    "sparql": "from kg_retrievers import SparqlExecutor; SparqlExecutor('http://127.0.0.1:1/query').close()",
    "sqlite": "from langgraph.checkpoint.sqlite import SqliteSaver",
    "train": "from kg_retrievers import train_graph_reasoner, train_triple_scorer",
}


def run(*command: str | Path, folder: Path) -> str:
    """Run a command in a folder outside of the checkout, and return what it prints."""
    done = subprocess.run([str(part) for part in command], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel in the folder KG_RETRIEVERS_DIST, or else one built of a copy, so that the checkout stays as it is."""
    if "KG_RETRIEVERS_DIST" in os.environ:
        (path,) = Path(os.environ["KG_RETRIEVERS_DIST"]).resolve().glob("*.whl")
        return path
    folder, copy = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("copy")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "kg_retrievers", copy / "kg_retrievers", ignore=shutil.ignore_patterns("__pycache__"))
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, copy, folder=folder)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel and without extras."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    path = folder / "bin" / "python"
    install(path, str(wheel))
    return path


def environment_over(python: Path, folder: Path) -> Path:
    """Make an environment that begins with the packages of another one, and return its interpreter."""
    venv.create(folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "core.pth").write_text(f"{python.parents[1] / packages.relative_to(folder)}\n", encoding="utf-8")
    return folder / "bin" / "python"


def install(python: Path, *requirements: str) -> None:
    """Install packages with the versions that the tests run with."""
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-warn-conflicts")
    run(*pip, "--constraint", ROOT / "constraints.txt", *requirements, folder=python.parent)


def test_every_extra_has_its_line() -> None:
    assert {*EXTRAS} - OF_DEVELOPERS == {*LINES}


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path, python: Path) -> None:
    names = run(python, "-m", "zipfile", "-l", wheel, folder=wheel.parent).splitlines()[1:]
    rooms = {name.split("/")[0] for name in names}
    assert {room.split("-")[0] for room in rooms} == {"kg_retrievers"}
    for needed in ("py.typed", "__init__.pyi", "sample/graph.jsonl", "index/data/token_table.safetensors"):
        assert any(name.startswith(f"kg_retrievers/{needed}") for name in names), f"{needed} is missing"
    assert any("licenses/" in name and "LICENSE-token-table.txt" in name for name in names)


def test_the_weights_in_the_wheel_are_small(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        sizes = [entry.file_size for entry in archive.infolist() if entry.filename.endswith(".safetensors")]
    assert 0 < sum(sizes) <= 30_000_000


def test_the_core_runs_the_demo(python: Path, tmp_path: Path) -> None:
    shown = run(python.parent / "kg-retrievers", "demo", folder=tmp_path)
    assert "Villeneuve" in shown
    run(python, "-c", "from kg_retrievers import *", folder=tmp_path)


@pytest.mark.parametrize("extra", sorted({*EXTRAS} - OF_DEVELOPERS))
def test_each_extra_brings_what_it_is_for(extra: str, wheel: Path, python: Path, tmp_path: Path) -> None:
    own = environment_over(python, tmp_path / "environment")
    if TORCH and extra in WITH_TORCH:
        install(own, *TORCH)
    install(own, f"{wheel}[{extra}]")
    run(own, "-c", LINES[extra], folder=tmp_path)
