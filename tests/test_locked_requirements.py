"""The locked requirements: a version and hashes for all that pyproject.toml asks for, and no address."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
EXTRAS = PYPROJECT["project"]["optional-dependencies"]

#: Which extras each file is for.
FILES = {"core": [], "docs": ["docs"], "test": ["test"], "test-heavy": ["test-heavy"]}

#: Installed apart, since each build has hashes of its own: TORCH of the Makefile.
APART = {"torch"}

ENTRY = re.compile(r"(?P<pinned>[^\s;]+==[^\s;]+)(?: ; [^\\]+)?(?: \\\n    --hash=sha256:[0-9a-f]{64})+\n")


def pinned(text: str) -> dict[str, str]:
    """Return the versions that a file of requirements names, by the names of the packages."""
    pairs = (line.partition("==") for line in re.findall(r"^[^\s;#]+==[^\s;]+", text, re.MULTILINE))
    return {canonicalize_name(name): version for name, _, version in pairs}


def asked(extras: list[str]) -> list[Requirement]:
    """Return what the package asks for with some extras; extras of its own are followed."""
    lines = [*PYPROJECT["project"]["dependencies"], *PYPROJECT["build-system"]["requires"]]
    waiting = list(extras)
    while waiting:
        for line in EXTRAS[waiting.pop()]:
            requirement = Requirement(line)
            is_own = requirement.name == "kg-retrievers"
            waiting.extend(requirement.extras if is_own else ())
            lines.extend(() if is_own else (line,))
    return [Requirement(line) for line in lines]


@pytest.mark.parametrize("name", FILES)
def test_every_dependency_is_locked(name: str) -> None:
    versions = pinned((ROOT / "requirements" / f"{name}.txt").read_text("utf-8"))
    for requirement in asked(FILES[name]):
        locked = canonicalize_name(requirement.name)
        assert locked in APART or requirement.specifier.contains(versions[locked]), requirement


@pytest.mark.parametrize("name", FILES)
def test_every_line_is_a_version_with_its_hashes(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text("utf-8")
    assert ENTRY.sub("", text) == "", "An address, an option, or a package without hashes. Run: make lock"
    assert not re.search(r"[/@]", text)


@pytest.mark.parametrize("name", FILES)
def test_the_versions_are_those_of_the_constraints(name: str) -> None:
    tested = pinned((ROOT / "constraints.txt").read_text("utf-8"))
    versions = pinned((ROOT / "requirements" / f"{name}.txt").read_text("utf-8"))
    assert {package: tested.get(package, version) for package, version in versions.items()} == versions


def test_every_file_is_tested() -> None:
    assert {path.stem for path in (ROOT / "requirements").iterdir()} == {*FILES}
