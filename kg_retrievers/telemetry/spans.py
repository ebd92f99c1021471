"""Spans: questions, stages and calls of models as spans of OpenTelemetry. Needs the extra `otel`.

Names and attributes are those of OpenTelemetry's conventions for generative AI (`gen_ai.`) where they have some, else
they begin with `kg_retrievers.`.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from kg_retrievers.errors import MissingExtraError
from kg_retrievers.telemetry.runs import Kind, Run
from kg_retrievers.telemetry.watcher import Watcher

try:
    from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider, get_tracer, set_span_in_context
except ImportError as cause:
    raise MissingExtraError("Spans", "otel") from cause

#: What a span's name begins with; the conventions call it the operation, but for stages and chains, which are ours.
_OPERATIONS: Mapping[Kind, str] = {
    "retriever": "retrieval",
    "workflow": "invoke_workflow",
    "chain": "chain",
    "stage": "stage",
    "model": "chat",
    "tool": "execute_tool",
}

#: The attribute that holds the name of what runs.
_NAMES: Mapping[Kind, str] = {
    "retriever": "kg_retrievers.retriever",
    "workflow": "gen_ai.workflow.name",
    "chain": "kg_retrievers.chain",
    "stage": "kg_retrievers.stage",
    "model": "gen_ai.request.model",
    "tool": "gen_ai.tool.name",
}

_OURS = frozenset({"stage", "chain"})


class Spans(Watcher):
    """Makes a span of each retriever, stage, workflow, chain, tool and call of a model, each under what it is part of.

    The first span of a question stands under the caller's span, if one is open. Attributes hold names, numbers and the
    classes of errors; texts of users only with `texts`.

    Args:
        tracer_provider: Makes the spans; by default the one that is set for the process. Where none is, nothing is
            recorded.
        texts: Whether the question, prompts, and texts of errors and refusals are recorded, which may name people.

    Raises:
        MissingExtraError: On import, if OpenTelemetry is not installed.

    Example:
        >>> from opentelemetry.sdk.trace import TracerProvider
        >>> from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        >>> from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, PCSTRetriever, default_embeddings
        >>> provider, kept = TracerProvider(), InMemorySpanExporter()
        >>> provider.add_span_processor(SimpleSpanProcessor(kept))
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")])
        >>> retriever = PCSTRetriever.from_index(GraphIndex.build(graph, default_embeddings()))
        >>> found = retriever.invoke("Who directed Her?", {"callbacks": [Spans(provider)]})
        >>> kept.get_finished_spans()[-1].name
        'retrieval PCSTRetriever'
    """

    def __init__(self, tracer_provider: TracerProvider | None = None, texts: bool = False) -> None:
        """Take the arguments."""
        super().__init__()
        self._tracer = get_tracer("kg_retrievers", tracer_provider=tracer_provider)
        self._texts = texts
        self._open: dict[UUID, Span] = {}

    def begin(self, run: Run) -> None:
        """Start a span."""
        above = self._open.get(run.parent.id) if run.parent else None
        name, kind = f"{_OPERATIONS[run.kind]} {run.name}".rstrip(), SpanKind.INTERNAL
        if run.kind == "model":
            kind = SpanKind.CLIENT
        context = set_span_in_context(above) if above else None
        self._open[run.id] = self._tracer.start_span(name, context, kind)

    def finish(self, run: Run) -> None:
        """Write what is known, and end the span."""
        span = self._open.pop(run.id, None)
        if span is None:
            return
        if span.is_recording():
            span.set_attributes({name: value for name, value in self._attributes(run).items() if value is not None})
            if run.error:
                span.set_status(Status(StatusCode.ERROR, run.told if self._texts else None))
        span.end()

    def _attributes(self, run: Run) -> dict[str, str | int | float | bool | None]:
        known = {name: getattr(run, name) for name in ("entities", "documents", "answers", "confidence", "truncated")}
        attributes = {f"kg_retrievers.{name}": value for name, value in known.items()}
        attributes |= {_NAMES[run.kind]: run.name or None, "error.type": run.error}
        if run.kind not in _OURS:
            attributes["gen_ai.operation.name"] = _OPERATIONS[run.kind]
        if run.kind == "model":
            attributes["gen_ai.provider.name"] = run.provider
        if run.retriever:
            attributes["kg_retrievers.retriever"] = run.retriever
        if run.refusal:
            attributes |= {"kg_retrievers.refused": True, "kg_retrievers.refusal": run.refusal}
        if run.model_calls:
            attributes |= _spent(run)
        return attributes | (_texts(run) if self._texts else {})


def _spent(run: Run) -> dict[str, int | bool]:
    """Return what the models under a run cost, with what they did not report estimated."""
    return {
        "kg_retrievers.model_calls": run.model_calls,
        "gen_ai.usage.input_tokens": run.input_tokens,
        "gen_ai.usage.output_tokens": run.output_tokens,
        "kg_retrievers.usage_estimated": run.estimated,
    }


def _texts(run: Run) -> dict[str, str | None]:
    """Return what users wrote, and what errors say of it."""
    given = "gen_ai.retrieval.query.text" if run.kind == "retriever" else "kg_retrievers.given"
    return {given: run.given or None, "kg_retrievers.told": run.told or None}
