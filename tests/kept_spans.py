"""Keeps the spans that are made, to look at them as a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class Kept:
    """The spans that were made."""

    def __init__(self) -> None:
        self._exporter, self.provider = InMemorySpanExporter(), TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    @property
    def all(self) -> Sequence[ReadableSpan]:
        return self._exporter.get_finished_spans()

    def tree(self) -> list[Any]:
        """Return the names of the spans, each with the list of those under it, in order of their starts."""
        return self._under(None)

    def _under(self, parent: int | None) -> list[Any]:
        found = [span for span in self.all if (span.parent.span_id if span.parent else None) == parent]
        tree: list[Any] = []
        for span in sorted(found, key=lambda span: span.start_time or 0):
            below = self._under(span.context.span_id)
            tree += [span.name, below] if below else [span.name]
        return tree

    def attributes(self, name: str) -> dict[str, Any]:
        """Return the attributes of the only span of a name."""
        (span,) = (span for span in self.all if span.name == name)
        return dict(span.attributes or {})

    def texts(self) -> str:
        """Return all that an exporter would send."""
        return "\n".join(span.to_json() for span in self.all)
