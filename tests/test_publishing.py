"""What a release needs: workflows, the image, the entry of the MCP registry, and the pages for coding agents."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
WORKFLOWS = sorted([*ROOT.glob(".github/workflows/*.yml"), *ROOT.glob("examples/*/.github/workflows/*.yml")])


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    return found


# --- workflows --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_reads_only_and_names_commits_of_actions(path: Path) -> None:
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 90
        for step in job["steps"]:
            assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step.get("uses", f"a/b@{'0' * 40}")), step
            assert "${{" not in step.get("run", ""), "values reach a script by the environment alone"


def test_only_a_tag_publishes_after_approval_what_was_tried() -> None:
    jobs = read(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    assert [name for name, job in jobs.items() if "permissions" in job or "environment" in job] == ["publish"]
    publish = jobs["publish"]
    assert (publish["permissions"], publish["environment"]) == ({"id-token": "write"}, "pypi")
    assert "startsWith(github.ref, 'refs/tags/v')" in publish["if"]
    assert publish["needs"] == ["build", "wheel"]
    assert not any("run" in step or "checkout" in step["uses"] for step in publish["steps"])
    supported = {line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)}
    assert set(jobs["wheel"]["strategy"]["matrix"]["python"]) == supported


def test_templates_of_issues_are_forms() -> None:
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        if path.stem != "config":
            form = read(path)
            assert {"name", "description", "body"} <= form.keys()
            assert all(field["attributes"]["label"] for field in form["body"])
            assert len({field["id"] for field in form["body"]}) == len(form["body"])


# --- the image --------------------------------------------------------------------------------------------------------


def test_the_image_copies_files_that_exist_and_serves_as_a_user_without_rights() -> None:
    lines = text("Dockerfile").splitlines()
    copied = [line.split()[1:-1] for line in lines if line.startswith("COPY ") and "--from" not in line]
    ignored = text(".dockerignore").splitlines()
    assert ignored[0] == "*"
    for name in (name for names in copied for name in names):
        assert (ROOT / name).exists(), name
        assert any(name == kept[1:] or name.startswith(f"{kept[1:]}/") for kept in ignored if kept[0] == "!"), name
    last = lines[max(place for place, line in enumerate(lines) if line.startswith("FROM ")) :]
    assert last.index("USER reader") < next(place for place, line in enumerate(last) if line.startswith("ENTRYPOINT"))
    assert all(re.match(r"FROM [\w./-]+:\d+\.\d+\.\d+", line) for line in lines if line.startswith("FROM "))


def test_the_image_is_for_the_cpu() -> None:
    (extras,) = re.findall(r'"\.\[([\w,-]+)\]"', text("Dockerfile"))
    waiting, needed = extras.split(","), list[str]()
    assert {"serve", "mcp"} <= {*waiting}
    while waiting:
        for line in PROJECT["optional-dependencies"][waiting.pop()]:
            own = re.fullmatch(r"kg-retrievers\[([\w,-]+)\]", line)
            waiting += own[1].split(",") if own else []
            needed += [] if own else [line]
    assert not any(re.match("torch|sentence-transformers|transformers", line) for line in needed)


# --- registries and coding agents -------------------------------------------------------------------------------------


def test_the_entry_of_the_mcp_registry_is_of_this_package() -> None:
    entry = json.loads(text("server.json"))
    (package,) = entry["packages"]
    assert (entry["version"], package["version"]) == (PROJECT["version"], PROJECT["version"])
    assert package["identifier"] == PROJECT["name"]
    assert package["runtimeArguments"][0]["value"] == f"kg-retrievers[mcp]=={PROJECT['version']}"
    assert [argument.get("value") for argument in package["packageArguments"]] == ["mcp", None]
    assert len(entry["description"]) <= 100
    assert f"<!-- mcp-name: {entry['name']} -->" in text("README.md")


def test_the_page_for_language_models_lists_every_page() -> None:
    listed = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): \w", text("docs/llms.txt"), re.MULTILINE)
    assert sorted(listed) == sorted(path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md"))


def test_the_pages_for_coding_agents_name_what_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", text("AGENTS.md"))) <= targets
    for name in re.findall(r"`([\w./-]+/[\w./-]*)`", text("AGENTS.md")):
        assert (ROOT / name).exists() or name.startswith(".venv"), name
    skill = text("docs/skills/kg-retrievers/SKILL.md")
    head = yaml.safe_load(skill.split("---")[1])
    assert head["name"] == "kg-retrievers"
    assert 0 < len(head["description"]) <= 1024
