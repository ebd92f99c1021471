"""Spans for a server, as the environment variables of OpenTelemetry ask for them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import Any

from kg_retrievers.errors import InvalidArgumentError, MissingExtraError
from kg_retrievers.telemetry.spans import Spans

try:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
    from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider
except ImportError as cause:
    raise MissingExtraError("OpenTelemetry's spans", "otel") from cause

#: Where packages say which exporters they have, as OpenTelemetry names them.
_GROUP = "opentelemetry_traces_exporter"


@contextmanager
def spans_of_environment(texts: bool = False) -> Iterator[Spans]:
    """Make spans while the context is open; what is not sent yet is sent at its end.

    A provider of spans that is set for the process is used as it is, as under `opentelemetry-instrument`. Else the
    exporters are those that OTEL_TRACES_EXPORTER names, by default "otlp"; "console" writes to stderr.

    Args:
        texts: As of `Spans`.

    Raises:
        InvalidArgumentError: If an exporter is not installed.
    """
    if not isinstance(get_tracer_provider(), ProxyTracerProvider):
        yield Spans(texts=texts)
        return
    provider = TracerProvider()
    for name in os.environ.get("OTEL_TRACES_EXPORTER", "otlp").split(","):
        if name.strip() not in ("", "none"):
            provider.add_span_processor(BatchSpanProcessor(_exporter(name.strip())))
    try:
        yield Spans(provider, texts)
    finally:
        provider.shutdown()


def _exporter(name: str) -> Any:
    """Return the exporter of a name; "otlp" is that over HTTP, or else that over gRPC, as installed."""
    if name == "console":
        return ConsoleSpanExporter(out=sys.stderr)  # stdout may be the wire, as of an MCP server
    installed = {entry.name: entry for entry in entry_points(group=_GROUP)}
    wanted = ("otlp", "otlp_proto_http", "otlp_proto_grpc") if name == "otlp" else (name,)
    found = next((installed[one] for one in wanted if one in installed), None)
    if found is None:
        raise InvalidArgumentError(
            f"OTEL_TRACES_EXPORTER: there is no exporter {name!r}; installed are {sorted(installed)}.",
            hint_python="Run: pip install opentelemetry-exporter-otlp",
        )
    return found.load()()
