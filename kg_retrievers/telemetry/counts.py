"""Counts: how many questions, how long they took and what they cost, by retriever and stage."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from kg_retrievers.telemetry.runs import Run
from kg_retrievers.telemetry.watcher import Watcher

#: How many names of retrievers, workflows and stages are told apart; those beyond are counted as `OTHERS`.
MOST_NAMES = 1000
OTHERS = "others"


@dataclass
class Tally:
    """Sums over runs of one kind."""

    calls: int = 0
    seconds: float = 0.0
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)

    def add(self, run: Run) -> None:
        """Add a run that has ended."""
        self.calls += 1
        self.seconds += run.seconds
        self.model_calls += run.model_calls
        self.input_tokens += run.input_tokens
        self.output_tokens += run.output_tokens
        if run.refusal:
            self.refusals[run.refusal] += 1
        if run.error:
            self.errors[run.error] += 1

    def to_dict(self) -> dict[str, Any]:
        """Return the sums, as JSON takes them."""
        counted = {"refusals": dict(self.refusals), "errors": dict(self.errors)}
        return {**vars(self), "seconds": round(self.seconds, 6), **counted}


class Counts(Watcher):
    """Adds up calls, seconds, calls and tokens of models, refusals and errors; safe in threads.

    Hand it in as a callback, or watch all that runs with `kg_retrievers.telemetry.watching`. It holds no text of a
    user, and as much memory after a million questions as after one.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, PCSTRetriever, default_embeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze")])
        >>> retriever, counts = PCSTRetriever.from_index(GraphIndex.build(graph, default_embeddings())), Counts()
        >>> for question in ("Who directed Her?", "Who directed Xyzzyplugh?"):
        ...     documents = retriever.invoke(question, {"callbacks": [counts]})
        >>> counts.snapshot()["questions"]["calls"], sorted(counts.snapshot()["by_name"])
        (2, ['PCSTRetriever'])
    """

    def __init__(self) -> None:
        """Start at zero."""
        super().__init__()
        self._questions = Tally()
        self._by_name: dict[str, Tally] = {}
        self._stages: dict[tuple[str, str], Tally] = {}
        self._adding = threading.Lock()

    def finish(self, run: Run) -> None:
        """Add a run."""
        with self._adding:
            if run.parent is None:
                self._questions.add(run)
            if run.kind == "stage":
                place = run.retriever or run.root.name, run.name
                full = len(self._stages) >= MOST_NAMES and place not in self._stages
                self._stages.setdefault((OTHERS, OTHERS) if full else place, Tally()).add(run)
            elif run.kind != "model":
                full = len(self._by_name) >= MOST_NAMES and run.name not in self._by_name
                self._by_name.setdefault(OTHERS if full else run.name, Tally()).add(run)

    def snapshot(self) -> dict[str, Any]:
        """Return the sums so far, as JSON takes them.

        `questions` are the runs under which all else ran. `by_name` holds each retriever, workflow, chain and tool,
        with its `stages`; what ran under another run is in the sums of both. A refusal or an error is counted by its
        class.
        """
        with self._adding:
            by_name = {name: {**tally.to_dict(), "stages": {}} for name, tally in self._by_name.items()}
            for (name, stage), tally in self._stages.items():
                row = by_name.setdefault(name, {**Tally().to_dict(), "stages": {}})
                row["stages"][stage] = tally.to_dict()
            return {"questions": self._questions.to_dict(), "by_name": by_name}
