"""The option --workers, as a person or a script calls it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer
from shell_mistakes import Run

import kg_retrievers
from kg_retrievers import GraphIndex, default_embeddings
from kg_retrievers.cli.options import workers_name
from kg_retrievers.evaluation.records import read_records

SAMPLE = Path(kg_retrievers.__file__).parent / "sample"
ASKED = ("--graph", "films.index", "--data", str(SAMPLE / "questions.jsonl"), "--limit", "3", "--format", "jsonl")


@pytest.mark.parametrize("name", ["0", "ray:", "dask"])
def test_wrong_workers_are_told(name: str) -> None:
    with pytest.raises(typer.BadParameter, match="wanted a number of processes, ray or ray:ADDRESS"):
        workers_name(name)


@pytest.mark.heavy
@pytest.mark.parametrize("workers", ["2", "ray"])
def test_the_work_of_commands_is_shared(run: Run, workers: str) -> None:
    if workers == "ray":
        pytest.importorskip("ray")
    code, _, err = run("index", str(SAMPLE / "graph.jsonl"), "--output", "films.index", "--workers", workers)
    assert code == 0, err
    index = GraphIndex.open("films.index", default_embeddings())
    assert index.fingerprint == GraphIndex.build(index.graph, default_embeddings()).fingerprint
    for records, also in (("one.jsonl", ()), ("two.jsonl", ("--workers", workers))):
        code, _, err = run("evaluate", *ASKED, "--records", records, *also)
        assert code == 0, err
    assert untimed("one.jsonl") == untimed("two.jsonl")
    assert Path("one.jsonl").read_text().splitlines()[0] == Path("two.jsonl").read_text().splitlines()[0]


def untimed(path: str) -> list[dict[str, Any]]:
    return [{**record, "latency_ms": 0} for record in read_records(path)[1]]
