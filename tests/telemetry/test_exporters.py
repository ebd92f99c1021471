"""Spans as the environment variables of OpenTelemetry ask for them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kg_retrievers import SimGRAGRetriever
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.telemetry.exporters import spans_of_environment

QUESTION = "Who starred in Amélie?"


def test_an_exporter_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "zipkin")
    wanted = pytest.raises(InvalidArgumentError, match=r"no exporter 'zipkin'; installed are .*console")
    with wanted, spans_of_environment():
        pass


@pytest.mark.parametrize(("name", "spans"), [("none", 0), ("console", 3), (" console , none", 3)])
def test_the_exporters_that_are_named(
    retriever: SimGRAGRetriever,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    spans: int,
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", name)
    with spans_of_environment() as watcher:
        retriever.invoke(QUESTION, {"callbacks": [watcher]})
    printed = capsys.readouterr()
    assert printed.err.count('"trace_id"') == spans
    assert printed.out == ""
    assert "Amélie" not in printed.err


def test_a_provider_of_the_process_is_used_as_it_is() -> None:
    code = (
        "from opentelemetry import trace\n"
        "from opentelemetry.sdk.trace import TracerProvider\n"
        "from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor\n"
        "provider = TracerProvider()\n"
        "provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(formatter=lambda s: s.name)))\n"
        "trace.set_tracer_provider(provider)\n"
        "from uuid import uuid4\n"
        "from kg_retrievers.telemetry.exporters import spans_of_environment\n"
        "with spans_of_environment() as spans:\n"
        "    run = uuid4()\n"
        "    spans.on_retriever_start({}, '?', run_id=run, name='mine')\n"
        "    spans.on_retriever_end([], run_id=run)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.returncode) == ("retrieval mine", 0), done.stderr
