"""What the page about servers tells to do is done here, as far as there are such servers; `compose.yaml` is sound."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from postgres import Postgres

from kg_retrievers import KnowledgeGraph, LadybugExecutor

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "servers.md").read_text("utf-8")
COMPOSE = (ROOT / "compose.yaml").read_text("utf-8")

Run = Callable[..., tuple[int, str, str]]


def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE)["services"]
    return found


@pytest.mark.parametrize("name", sorted(services()))
def test_a_service_is_pinned_checked_and_kept(name: str) -> None:
    service = services()[name]
    assert re.fullmatch(r"[\w./-]+:\d+\.\d+\.\d+[\w.-]*", service["image"]), "an image is named with its full version"
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")
    assert service["restart"] == "unless-stopped"
    volumes = [volume.partition(":")[0] for volume in service["volumes"]]
    assert set(volumes) <= yaml.safe_load(COMPOSE)["volumes"].keys()
    assert "privileged" not in service


def test_passwords_come_from_the_environment() -> None:
    said = [(key, value) for service in services().values() for key, value in service["environment"].items()]
    secrets = [value for key, value in said if re.search("PASSWORD|AUTH$", key)]
    assert len(secrets) == 2
    for value in secrets:
        assert re.fullmatch(r"(neo4j/)?\$\{[A-Z0-9_]+_PASSWORD:\?[^}]+\}", value), "required, and without a default"
    assert not re.search(r"(?i)(password|secret|token)\s*[:=]\s*[\"']?\w+[\"']?\s*$", COMPOSE, re.MULTILINE)


def test_the_compose_file_says_that_it_was_not_run() -> None:
    assert "not run" in COMPOSE
    assert "it was not run here" in PAGE


def test_the_users_of_the_page_may_do_their_work_and_no_more(
    run: Run, postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loader makes and fills the table; the reader finds names, and can neither add one nor make a table."""
    monkeypatch.chdir(tmp_path)
    LadybugExecutor.from_graph(KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")]), "f.lbdb").close()
    database = "the_page_of_servers"
    postgres.make_database(database)
    (statements,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    for statement in re.sub("--.*", "", statements).split(";"):
        if statement.strip():
            postgres.run(statement, database)
    loader, reader = (postgres.url(database, user) for user in ("loader", "reader"))
    assert run("index", "f.lbdb", "--vectors", loader)[0] == 0
    code, out, err = run("ask", "f.lbdb", "Which films did Spike Jonez direct?", "--vectors", reader)
    assert (code, err, "Answer    Her\n" in out) == (0, "", True)
    LadybugExecutor.from_graph(KnowledgeGraph.from_triples([("Dune", "directed_by", "X")]), "g.lbdb").close()
    for vectors in (reader, f"{reader}?table=another"):
        code, out, err = run("index", "g.lbdb", "--vectors", vectors)
        assert (code, out) == (2, "")
        assert "does not let this user in, or do this" in err
