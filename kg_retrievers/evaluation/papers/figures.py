"""Our figures for a table: of the records of a cell, with n and interval; and of the data alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kg_retrievers.datasets import GraphQuestion, Question
from kg_retrievers.evaluation.grounding_totals import total_grounding
from kg_retrievers.evaluation.intervals import bootstrap_interval
from kg_retrievers.evaluation.papers.table import Group
from kg_retrievers.evaluation.records import Record
from kg_retrievers.evaluation.report import MEANS, Report, summarize
from kg_retrievers.evaluation.steps import failed_step
from kg_retrievers.evaluation.written import written_figures
from kg_retrievers.graph import KnowledgeGraph, verbalize
from kg_retrievers.graph.columns import Array
from kg_retrievers.graph.verbalize import approximate_tokens

#: How the names of figures begin that are shares of failures, and of written answers.
FAILED, WRITTEN = "failed_", "written_"

#: How the names of figures end that are medians; other sizes are means.
_MEDIANS = ("_median", "_p50")


@dataclass(frozen=True)
class Figure:
    """A figure.

    Attributes:
        value: The figure.
        n: How many questions it is of; or nodes or edges, where it is a share of these.
        low: The lower end of its interval; None where it has none.
        high: The upper end.
    """

    value: float
    n: int
    low: float | None = None
    high: float | None = None

    def scaled(self, unit: float) -> Figure:
        """Return the figure in another unit, such as percent."""
        low, high = (None if end is None else unit * end for end in (self.low, self.high))
        return Figure(unit * self.value, self.n, low, high)


def figure_of(report: Report, metric: str, group: Group | None = None) -> Figure | None:
    """Return a figure of a run; None where there is nothing to compute it from.

    A figure that is no mean or median of what the questions have, such as micro-F1, has no interval.

    Args:
        report: The run.
        metric: The name of the figure, as in `Report.metrics`; "failed_" and a step, for the share of the failures that
            failed there; or "written_" and a figure of `WrittenFigures`, of the answerable questions.
        group: Which of the questions count; None for all.
    """
    proposes = report.metrics["hit"] is not None
    records = [record for record in report.records if group is None or group.holds(_count(record, group.by))]
    if metric.startswith(FAILED):
        steps = [failed_step(record, proposes) for record in records]
        return _mean([float(step == metric.removeprefix(FAILED)) for step in steps if step], report.seed)
    if metric.startswith(WRITTEN):
        written: Mapping[str, Any] = written_figures(records).get("answerable", {})
        share = written.get(metric.removeprefix(WRITTEN))
        return None if share is None else Figure(share, written["questions"])
    value = summarize(records, proposes).get(metric)
    if value is None:
        return None
    values = _values(records, metric)
    center: Callable[[Array], float] = np.median if metric.endswith(_MEDIANS) else np.mean
    low, high = bootstrap_interval(values, report.seed, center) or (None, None)
    return Figure(value, len(values) or len(records), low, high)


def _mean(values: Sequence[float], seed: int) -> Figure | None:
    """Return the mean of the values of questions; None without any."""
    interval = bootstrap_interval(values, seed)
    return Figure(sum(values) / len(values), len(values), *interval) if interval else None


def _count(record: Record, by: str) -> int | None:
    """Return how many of something a question has."""
    if by == "hops":
        return record["hops"]
    found = record["gold"] if by == "answers" else record["seed_entities"]
    return None if found is None else len(set(found))


def _values(records: Sequence[Record], metric: str) -> list[float]:
    """Return what a figure is the mean or median of; nothing where it is made otherwise."""
    own = next((name for name, reported in MEANS.items() if reported == metric), metric)
    own = {"answer_matching_rate": "recall"}.get(own, own)
    size = metric.removesuffix("_mean").removesuffix("_median").removesuffix("_p50")
    found = [record["metrics"].get(own, record.get(size)) for record in records]
    return [float(value) for value in found if isinstance(value, int | float)]


def statistics_of(questions: Sequence[Question], graph: KnowledgeGraph | None, seed: int) -> dict[str, Figure]:
    """Return the sizes of questions and graphs, as tables on data sets have them.

    - `questions`: how many there are.
    - `graph_nodes`, `graph_edges`, `tokens_mean`: the means of entities, facts, and tokens of the graph as text.
      `nodes_mean` is `graph_nodes` by another name.
    - `graph_coverage`: the share of the questions of which the graph holds a gold answer.

    Args:
        questions: The questions, each with a graph of its own, or all about one.
        graph: The graph that all are about, if there is one.
        seed: For the intervals.

    Raises:
        TypeError: If a question has no graph, and `graph` is None.
    """
    rows = [_sizes(question, _graph_of(question, graph)) for question in questions]
    figures = {"questions": Figure(len(questions), len(questions))}
    for name in rows[0]:
        values = [row[name] for row in rows]
        if graph is not None and name != "graph_coverage":  # there is one graph
            figures[name] = Figure(values[0], 1)
            continue
        mean = _mean(values, seed)
        assert mean is not None, "there are questions"
        figures[name] = mean
    return figures | {"nodes_mean": figures["graph_nodes"]}


def grounding_of(report: Report, questions: Sequence[Question], graph: KnowledgeGraph | None) -> dict[str, Figure]:
    """Return the shares of what answers list that the graph of their question has; see `GroundingTotals`.

    - `valid_nodes`, `valid_edges`: of all that are listed.
    - `fully_valid_graphs`: of the answers that list something.

    Args:
        report: A run whose prompt asked for lists.
        questions: What it was asked, in order.
        graph: The graph that all are about, if there is one.
    """
    totals = total_grounding(report, [_graph_of(question, graph) for question in questions])
    shares = {
        "valid_nodes": (totals.valid_nodes, totals.nodes),
        "valid_edges": (totals.valid_edges, totals.edges),
        "fully_valid_graphs": (totals.fully_valid_graphs, totals.listing),
    }
    return {name: Figure(share, count) for name, (share, count) in shares.items() if share is not None}


def _graph_of(question: Question, graph: KnowledgeGraph | None) -> KnowledgeGraph:
    if isinstance(question, GraphQuestion):
        return question.graph
    if graph is None:
        raise TypeError(f"the question {question.text!r:.100} has no graph of its own, and none is given.")
    return graph


def _sizes(question: Question, graph: KnowledgeGraph) -> dict[str, float]:
    own = isinstance(question, GraphQuestion)
    text = verbalize(list(graph.triples()), style="tables", label=graph.label).text if own else ""
    return {
        "graph_nodes": len(graph.entities),
        "graph_edges": len(graph),
        "tokens_mean": approximate_tokens(text),
        "graph_coverage": float(any(key in graph.entities for key in question.answers)),
    }
