"""What a server writes about itself: counts, logs, spans where they are asked for, and how it is."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from time import monotonic
from typing import Any, Protocol

from langchain_core.callbacks import BaseCallbackHandler

from kg_retrievers.core.stages import REFUSALS_LOGGER
from kg_retrievers.errors import MissingExtraError
from kg_retrievers.index import GraphIndex
from kg_retrievers.telemetry.counts import Counts
from kg_retrievers.telemetry.events import EVENTS_LOGGER, log_events
from kg_retrievers.telemetry.watcher import Watcher
from kg_retrievers.telemetry.watching import watching

#: Variables of the environment any of which asks for spans.
_ASK_FOR_SPANS = ("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")

_LOGGER = logging.getLogger(__name__)


class Service(Protocol):
    """What `health` asks of a server: its index, and the methods that it can build."""

    @property
    def index(self) -> GraphIndex:
        """The graph and what finds things in it."""

    @property
    def methods(self) -> tuple[str, ...]:
        """Their names."""


@dataclass(frozen=True)
class ServiceWatch:
    """What watches a server; made by `watch_service`.

    Attributes:
        handler: For what is called where the context of the server is not: `{"callbacks": [handler]}`.
        counts: The sums so far.
        began: When the server began, by the monotonic clock.
    """

    handler: BaseCallbackHandler
    counts: Counts
    began: float = field(default_factory=monotonic)

    def health(self, service: Service) -> dict[str, Any]:
        """Return what `health` does, with the sums and for how many seconds the server has been up."""
        uptime = round(monotonic() - self.began, 1)
        return {**health(service), "uptime_seconds": uptime, "counts": self.counts.snapshot()}


@contextmanager
def watch_service(texts: bool = False) -> Iterator[ServiceWatch]:
    """Watch all that a server answers while the context is open.

    Counts, one line of JSON on stderr for each question and stage, and spans where a variable of OpenTelemetry's
    environment asks for them (OTEL_TRACES_EXPORTER, OTEL_EXPORTER_OTLP_ENDPOINT) and the extra `otel` is installed.
    The warnings about refused questions, which hold these, are silent meanwhile.

    Args:
        texts: Whether texts of users are recorded.

    Example:
        >>> with watch_service() as watch:
        ...     sorted(watch.counts.snapshot())
        ['by_name', 'questions']
    """
    counts, events = Counts(), logging.getLogger(EVENTS_LOGGER)
    refusals = logging.getLogger(REFUSALS_LOGGER)
    levels, propagates, handler = (events.level, refusals.level), events.propagate, logging.StreamHandler(sys.stderr)
    watchers: list[Watcher] = [counts, log_events(events, texts)]
    with ExitStack() as stack:
        if spans := _spans(stack, texts):
            watchers.append(spans)
        events.setLevel(logging.INFO)
        refusals.setLevel(logging.ERROR)
        events.propagate = False
        events.addHandler(handler)
        try:
            yield ServiceWatch(stack.enter_context(watching(*watchers)), counts)
        finally:
            events.removeHandler(handler)
            events.propagate = propagates
            events.setLevel(levels[0])
            refusals.setLevel(levels[1])


def _spans(stack: ExitStack, texts: bool) -> Watcher | None:
    if not any(os.environ.get(name) for name in _ASK_FOR_SPANS):
        return None
    try:
        from kg_retrievers.telemetry.exporters import spans_of_environment
    except MissingExtraError as error:
        _LOGGER.warning("%s", error)
        return None
    return stack.enter_context(spans_of_environment(texts))


def health(service: Service) -> dict[str, Any]:
    """Return how a server is, as JSON takes it, without any name or text of its graph.

    Args:
        service: The server.
    """
    index = service.index
    size = {} if index.is_connected else {"entities": len(index.graph.entities), "triples": len(index.graph)}
    return {
        "status": "ok",
        "version": version("kg-retrievers"),
        "index": index.fingerprint,
        **size,
        "methods": list(service.methods),
    }
