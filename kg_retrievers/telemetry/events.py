"""Logs questions and stages, one JSON object a line."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

from kg_retrievers.telemetry.runs import Run
from kg_retrievers.telemetry.watcher import Watcher

#: The logger that takes the lines unless another is given.
EVENTS_LOGGER = "kg_retrievers.events"

#: What a line says of a run where it is known.
_KNOWN = ("entities", "documents", "answers", "confidence", "truncated", "refusal", "error")

#: What it says where a model was called.
_SPENT = ("model_calls", "input_tokens", "output_tokens")


def log_events(logger: logging.Logger | None = None, texts: bool = False) -> EventLog:
    """Return a handler that logs each question, retriever and stage when it ends, as one line of JSON.

    Args:
        logger: Takes the lines, at the level INFO, or WARNING where an error ended the run; by default
            "kg_retrievers.events".
        texts: Whether the question and the text of an error or a refusal are logged: texts of users, which may name
            people.

    Example:
        >>> import sys
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, PCSTRetriever, default_embeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")])
        >>> retriever = PCSTRetriever.from_index(GraphIndex.build(graph, default_embeddings()))
        >>> logger = logging.getLogger("example")
        >>> logger.setLevel("INFO")
        >>> logger.addHandler(logging.StreamHandler(sys.stdout))
        >>> found = retriever.invoke("Who directed Her?", {"callbacks": [log_events(logger)]})  # doctest: +ELLIPSIS
        {"event": "stage", "name": ...
    """
    return EventLog(logger or logging.getLogger(EVENTS_LOGGER), texts)


class EventLog(Watcher):
    """Logs what ends; made by `log_events`."""

    def __init__(self, logger: logging.Logger, texts: bool) -> None:
        """Take the arguments."""
        super().__init__()
        self._logger, self._texts = logger, texts

    def finish(self, run: Run) -> None:
        """Log a run."""
        if run.parent and run.kind not in ("retriever", "stage"):  # the sums of the run above have it
            return
        level = logging.WARNING if run.error else logging.INFO
        if self._logger.isEnabledFor(level):
            self._logger.log(level, "%s", json.dumps(self._line(run), ensure_ascii=False))

    def _line(self, run: Run) -> dict[str, Any]:
        line: dict[str, Any] = {"event": run.kind if run.parent else "question", "name": run.name}
        if run.retriever:
            line["retriever"] = run.retriever
        line |= {
            "trace": run.root.id.hex,
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "seconds": round(run.seconds, 6),
        }
        line |= {name: value for name in _KNOWN if (value := getattr(run, name)) is not None}
        if run.model_calls:
            line |= {name: getattr(run, name) for name in _SPENT}
        if self._texts:
            line |= {"question": run.root.given, **({"told": run.told} if run.told else {})}
        return line
