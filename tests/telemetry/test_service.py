"""What a server writes about itself."""

from __future__ import annotations

import json
import logging
from importlib.metadata import version
from types import SimpleNamespace

import pytest

from kg_retrievers import GraphIndex, SimGRAGRetriever
from kg_retrievers.telemetry import health, watch_service

QUESTION, UNKNOWN = "Who starred in Amélie?", "Who starred in Xyzzyplugh?"


@pytest.fixture(autouse=True)
def no_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


def test_counts_and_lines(retriever: SimGRAGRetriever, capsys: pytest.CaptureFixture[str]) -> None:
    with watch_service() as watch:
        retriever.invoke(QUESTION)
        retriever.invoke(UNKNOWN, {"callbacks": [watch.handler]})
    printed = capsys.readouterr()
    lines = [json.loads(line) for line in printed.err.splitlines()]
    assert [line["name"] for line in lines if line["event"] == "question"] == ["SimGRAGRetriever"] * 2
    assert lines[-1]["refusal"] == "EntityLinkingError"
    assert printed.out == ""
    assert "Xyzzyplugh" not in printed.err
    assert watch.counts.snapshot()["questions"]["calls"] == 2


def test_texts_where_they_are_asked_for(retriever: SimGRAGRetriever, capsys: pytest.CaptureFixture[str]) -> None:
    with watch_service(texts=True):
        retriever.invoke(UNKNOWN)
    assert json.loads(capsys.readouterr().err.splitlines()[-1])["question"] == UNKNOWN


def test_loggers_are_left_as_they_were(retriever: SimGRAGRetriever, caplog: pytest.LogCaptureFixture) -> None:
    with watch_service():
        retriever.invoke(UNKNOWN)
    assert not caplog.records
    events = logging.getLogger("kg_retrievers.events")
    assert (events.level, events.propagate, events.handlers) == (logging.NOTSET, True, [])
    retriever.invoke(UNKNOWN)
    assert [record.name for record in caplog.records] == ["kg_retrievers.refusals"]


def test_spans_where_the_environment_asks_for_them(
    retriever: SimGRAGRetriever, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    with watch_service():
        retriever.invoke(QUESTION)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert '"name": "retrieval SimGRAGRetriever"' in printed.err


def test_health(index: GraphIndex, retriever: SimGRAGRetriever) -> None:
    service = SimpleNamespace(index=index, methods=("simgrag", "pcst"))
    told = health(service)
    assert told == {
        "status": "ok",
        "version": version("kg-retrievers"),
        "index": index.fingerprint,
        "entities": 19,
        "triples": 16,
        "methods": ["simgrag", "pcst"],
    }
    with watch_service() as watch:
        retriever.invoke(QUESTION)
        more = watch.health(service)
    assert more["counts"]["questions"]["calls"] == 1
    assert more["uptime_seconds"] >= 0
    assert json.loads(json.dumps(more)) == more
