"""Our figures for a table: the means and medians of questions with their intervals, and the sizes of data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from kg_retrievers import KnowledgeGraph, Question
from kg_retrievers.datasets import GraphQuestion
from kg_retrievers.evaluation import Report
from kg_retrievers.graph import verbalize
from kg_retrievers.graph.verbalize import approximate_tokens

#: How the metrics of the tables are called in a record.
_IN_RECORDS = {"f1_macro": "f1", "answer_matching_rate": "recall"}

#: How often questions are drawn for an interval.
_DRAWS = 1000


class Figure(NamedTuple):
    """A figure, of how many questions it is, and its 95 % interval."""

    value: float
    n: int
    low: float | None = None
    high: float | None = None


def figure_of(
    report: Report, questions: Sequence[Question], metric: str, group: Sequence[Any] | None = None
) -> Figure | None:
    """Return a figure of a run, or None if no question has it.

    Args:
        report: The run.
        questions: Its questions, in order.
        metric: The name of a metric of questions, or a size with "_mean", "_median" or "_p50".
        group: What is counted ("hops", "answers" or "entities"), the least and the greatest number that count.
    """
    pairs = zip(report.records, questions, strict=True)
    records = [record for record, question in pairs if group is None or _holds(group, question)]
    size, _, kind = metric.rpartition("_")
    found: list[Any]
    if kind in ("mean", "median", "p50"):
        found = [record.get(size) for record in records]
    else:
        found = [record["metrics"].get(_IN_RECORDS.get(metric, metric)) for record in records]
    values = [float(value) for value in found if value is not None]
    return _figure(values, report.seed, np.median if kind in ("median", "p50") else np.mean)


def _figure(values: Sequence[float], seed: int, center: Callable[..., Any] = np.mean) -> Figure | None:
    if not values:
        return None
    drawn = np.random.default_rng(seed).integers(0, len(values), (_DRAWS, len(values)))
    low, high = np.quantile(center(np.array(values)[drawn], axis=1), [0.025, 0.975]).tolist()
    return Figure(float(center(values)), len(values), low, high)


def _holds(group: Sequence[Any], question: Question) -> bool:
    by, low, high = group
    if by == "hops":
        count = hops_of(question)
    else:
        count = len(set(question.answers if by == "answers" else question.seed_entities))
    return count is not None and low <= count and (high is None or count <= high)


def hops_of(question: Question) -> int | None:
    """Return how many facts a question joins.

    If its set does not say so, this is the distance from its entities to the farthest answer, in its own graph
    (GNN-RAG, table 9).
    """
    if question.hops is not None or not isinstance(question, GraphQuestion):
        return question.hops
    keyed = question.with_keys()
    neighbors: dict[str, set[str]] = {}
    for head, _, tail in question.graph.triples():
        neighbors.setdefault(head, set()).add(tail)
        neighbors.setdefault(tail, set()).add(head)
    distances = dict.fromkeys(keyed.seed_entities, 0)
    frontier, hop = set(distances), 0
    while frontier:
        hop += 1
        frontier = {there for here in frontier for there in neighbors.get(here, ())} - distances.keys()
        distances |= dict.fromkeys(frontier, hop)
    return max((distances[answer] for answer in keyed.answers if distances.get(answer)), default=None)


def statistics_of(questions: Sequence[Question], graph: KnowledgeGraph | None, seed: int) -> Mapping[str, Figure]:
    """Return the sizes of questions and of their graphs.

    Args:
        questions: Questions with their own graphs, or all about one.
        graph: The graph of all questions, if there is one.
        seed: Of the intervals.
    """
    found = {"questions": Figure(len(questions), len(questions))}
    held = [question.graph if isinstance(question, GraphQuestion) else graph for question in questions]
    of_graphs: dict[str, list[float]] = {
        "graph_nodes": [len(one.entities) for one in held if one is not None],
        "graph_edges": [len(one) for one in held if one is not None],
        "tokens_mean": [_tokens(one) for one in held if one is not None and graph is None],
    }
    for name, values in of_graphs.items():
        figure = Figure(values[0], 1) if graph is not None and values else _figure(values, seed)
        if figure is not None:
            found[name] = figure
    covered = [
        float(any(key in one.entities for key in question.answers))
        for question, one in zip(questions, held, strict=True)
        if one is not None
    ]
    if coverage := _figure(covered, seed):
        found["graph_coverage"] = coverage
    return found | {"nodes_mean": found["graph_nodes"]}


def _tokens(graph: KnowledgeGraph) -> int:
    return approximate_tokens(verbalize(list(graph.triples()), style="tables", label=graph.label).text)
