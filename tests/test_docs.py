"""The README and each page of the docs run as one program, agree with the registry, and load nothing from elsewhere."""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tomllib
from functools import cache
from html.parser import HTMLParser
from inspect import CO_COROUTINE
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import NamedTuple

import pytest
from built_site import build_site
from small_language_model import build

import kg_retrievers
from kg_retrievers import errors
from kg_retrievers.cli import main

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md"))]
each_page = pytest.mark.parametrize("name", PAGES)

#: What pyproject.toml says of the package.
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

#: Pages that start many processes or train models run in `make test-all`. Tests of their own cover what they show.
HEAVY = {
    "docs/bulk.md",
    "docs/databases.md",
    "docs/evaluation.md",
    "docs/examples-and-training.md",
    "docs/methods/graph-prompt.md",
    "docs/servers.md",
}

#: test_gallery.py runs it.
GALLERY = "docs/gallery.md"

BLOCK = re.compile(
    r"^(?P<indent>[ \t]*)```(?P<language>\w*)[ ]*(?P<options>[^\n]*)\n(?P<code>.*?)^(?P=indent)```[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
TITLE = re.compile(r'title="(?P<file>[^"]+)"')
NOT_RUN = re.compile(r"<!-- not run: (?P<reason>\S.*?) -->\s*\Z")
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s#]+)[^)]*\)")


class Block(NamedTuple):
    """A block of code: its language, the line before its first one, the file that it is, why it is not run."""

    code: str
    line: int
    language: str = "python"
    file: str | None = None
    not_run: str | None = None


def blocks(text: str) -> list[Block]:
    """Return the blocks of a Markdown text; `<!-- not run: reason -->` right before one excuses it."""
    found = []
    for match in BLOCK.finditer(text):
        mark = NOT_RUN.search(text, 0, match.start())
        titled = TITLE.search(match["options"])
        line = text.count("\n", 0, match.start("code"))
        file = titled["file"] if titled else None
        found.append(Block(dedent(match["code"]), line, match["language"], file, mark["reason"] if mark else None))
    return found


@cache
def page(name: str) -> str:
    """Return the text of a page."""
    return (ROOT / name).read_text(encoding="utf-8")


def run_python(block: Block, namespace: dict[str, object], filename: str) -> None:
    """Run a block, as a notebook would: `await` may stand at its top level."""
    source = "\n" * block.line + block.code
    code = compile(source, filename, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    outcome = eval(code, namespace)
    if code.co_flags & CO_COROUTINE:
        asyncio.run(outcome)


def plain_commands(code: str) -> list[list[str]] | None:
    """Return the arguments of each `kg-retrievers ...` line, or None where a line needs a shell."""
    commands = []
    for line in code.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()$*`")
        lexer.whitespace_split = True
        words = list(lexer)
        if not words:
            continue
        if words[0] != "kg-retrievers" or any(set(word) <= set("|&;<>()$*`") for word in words):
            return None
        commands.append(words[1:])
    return commands


def run_shell(block: Block, filename: str) -> None:
    """Run a block: commands of ours in this process, anything else in a shell."""
    commands = plain_commands(block.code)
    if commands is None:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        shell = ["bash", "-euo", "pipefail", "-c", block.code]
        done = subprocess.run(shell, capture_output=True, text=True, env={**os.environ, "PATH": path})
        assert done.returncode == 0, f"{filename}:{block.line}: {done.stdout}{done.stderr}"
        return
    for arguments in commands:
        assert main(arguments) == 0, f"{filename}:{block.line}: kg-retrievers {shlex.join(arguments)}"


@pytest.mark.usefixtures("loggers_stay")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.heavy] * (name in HEAVY)) for name in PAGES if name != GALLERY]
)
def test_pages_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", program)
    monkeypatch.chdir(tmp_path)
    found = [block for block in blocks(page(name)) if not block.not_run]
    if "my-language-model" in page(name):
        build("my-language-model", [block.code for block in found])
    for block in found:
        if block.file:
            (tmp_path / block.file).write_text(block.code, encoding="utf-8")
        elif block.language == "python":
            run_python(block, vars(program), str(ROOT / name))
        elif block.language in ("sh", "bash"):
            run_shell(block, name)


@each_page
def test_links_lead_somewhere(name: str) -> None:
    for match in LINK.finditer(page(name)):
        target = match["target"]
        if not target.startswith(("https://", "http://")):
            assert ((ROOT / name).parent / target).exists(), f"{name} links to {target}"


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"])
def test_pages_that_stand_in_two_places_have_links_that_work_from_both(name: str) -> None:
    assert f'--8<-- "{name}"' in page(f"docs/{name.lower()}")
    assert all(match["target"].startswith("https://") for match in LINK.finditer(page(name)))


def test_readme_is_short() -> None:
    assert len(page("README.md").splitlines()) <= 200


def test_every_error_is_explained() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    missing = [kind.__name__ for kind in kinds if f"`{kind.__name__}`" not in page("docs/troubleshooting.md")]
    assert not missing


def test_every_extra_is_explained() -> None:
    missing = [
        extra for extra in PROJECT["optional-dependencies"] if f"`{extra}`" not in page("docs/getting-started.md")
    ]
    assert not missing


def test_the_version_is_the_same_everywhere() -> None:
    version = PROJECT["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\n## [{version}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_generated_parts_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "docs" / "generate.py")
    assert spec
    assert spec.loader
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    stale = [str(path.relative_to(ROOT)) for path, text in generate.generated() if path.read_text("utf-8") != text]
    assert not stale, f"{stale} are out of date. Run: make generate"


class Loaded(HTMLParser):
    """Collects the addresses that a browser loads with a page."""

    #: What loads something, and the attribute that says what; a link loads what its `rel` says.
    LOADS = ("script", "src"), ("img", "src"), ("iframe", "src"), ("link", "href"), ("source", "src"), ("use", "href")

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()
        self.addresses: list[str] = []
        self.classes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag loads."""
        given = dict(attrs)
        self.classes.update((given.get("class") or "").split())
        self.addresses += [given[name] or "" for kind, name in self.LOADS if kind == tag and name in given]


#: What makes the script of the theme load another one from elsewhere.
LOADED_ON_SIGHT = {"mermaid", "glightbox", "pyodide"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    return build_site(tmp_path_factory.mktemp("site"))


@pytest.mark.heavy
def test_the_site_has_all_pages(site: Path) -> None:
    built = {path.parent.relative_to(site).as_posix() for path in site.rglob("index.html")}
    written = {Path(name).relative_to("docs").with_suffix("").as_posix() for name in PAGES if name != "README.md"}
    assert {"." if name == "index" else name for name in written} <= built


@pytest.mark.heavy
def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        loaded = Loaded()
        loaded.feed(path.read_text(encoding="utf-8"))
        elsewhere = [one for one in loaded.addresses if re.match(r"(https?:)?//", one)]
        assert not elsewhere, f"{path.relative_to(site)} loads {elsewhere}"
        assert not loaded.classes & LOADED_ON_SIGHT, f"{path.relative_to(site)} has what loads a script from elsewhere"
    for path in site.rglob("*.css"):
        imported = re.findall(r"""url\(["']?((?:https?:)?//[^)"']*)""", path.read_text(encoding="utf-8"))
        assert not imported, f"{path.relative_to(site)} loads {imported}"


@pytest.mark.heavy
def test_the_reference_explains_every_public_name(site: Path) -> None:
    reference = (site / "api" / "index.html").read_text(encoding="utf-8")
    missing = [
        name for name in dir(kg_retrievers) if name != "__version__" and f'id="kg_retrievers.{name}"' not in reference
    ]
    assert not missing


@pytest.mark.heavy
def test_the_reference_explains_the_constructors_of_a_graph(site: Path) -> None:
    text = (site / "api" / "index.html").read_text("utf-8")
    names = [name for name in dir(kg_retrievers.KnowledgeGraph) if name.startswith("from_")]
    assert "from_file" in names
    assert [name for name in names if f'id="kg_retrievers.KnowledgeGraph.{name}"' not in text] == []
