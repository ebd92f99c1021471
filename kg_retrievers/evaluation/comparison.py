"""Runs side by side: one table, and the mistakes in words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kg_retrievers.errors import InvalidArgumentError, first_of, named_arguments
from kg_retrievers.evaluation.records import Record
from kg_retrievers.evaluation.report import GroupBy, Report
from kg_retrievers.graph import pattern_lines
from kg_retrievers.graph.validation import check_integer
from kg_retrievers.graph.verbalize import one_line

#: The columns of the table, and the figures they show. `n` is the number of questions behind the figures of answers.
COLUMNS = {
    "n": "compared",
    "asked": "questions",
    "hit": "hit",
    "±": "half_width",
    "hits@1": "hits@1",
    "F1": "f1_macro",
    "exact": "exact_match",
    "exact value": "exact_value",
    "answer recall": "answer_recall",
    "triple recall": "triple_recall",
    "text hit": "text_hit",
    "abstention": "abstention",
    "false refusals": "false_refusals",
    "errors": "errors",
    "triples": "triples_mean",
    "tokens": "tokens_mean",
    "LLM calls": "llm_calls_mean",
    "ms p50": "latency_ms_p50",
    "ms p95": "latency_ms_p95",
}

#: The columns that are left out if they are 0 throughout.
SHOWN_IF_ANY = ("errors", "LLM calls")

#: How the names of figures end that are no shares.
SIZES = ("_mean", "_median", "_p50", "_p95")

#: How many names of a list are shown.
NAMES_SHOWN = 3


@dataclass(frozen=True)
class Comparison:
    """Runs over the same questions side by side, shown as Markdown.

    Attributes:
        columns: The heads of the table.
        rows: A row for each method and all questions, then for each method and group of questions, as by hops.
        failures: By method, questions that were not answered right, in words.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    failures: Mapping[str, tuple[str, ...]]

    def __str__(self) -> str:
        """The table and the failures in Markdown."""
        lines = [_markdown_row(self.columns), "|---" * len(self.columns) + "|", *map(_markdown_row, self.rows)]
        for method, failures in self.failures.items():
            if failures:
                lines += ["", f"Failures of {_escaped(method)}:", ""]
                lines += [f"- {_escaped(text)}" for text in failures]
            else:
                lines += ["", f"No failures of {_escaped(method)}."]
        return "\n".join(lines)

    def _repr_markdown_(self) -> str:
        return str(self)


@named_arguments
def compare(reports: Sequence[Report], *, failures: int = 10, by: GroupBy = "hops") -> Comparison:
    """Put runs over the same questions side by side.

    The table leaves out figures that no run has, and errors and calls if there are none. `n` counts the questions with
    gold answers, on which the figures of answers rest. `asked` counts all questions, and is shown if there are more:
    the size of the evidence, the cost and the errors rest on all. Behind `hit` stands half the width of its 95 %
    interval. `Report.intervals` has both ends, and the intervals of other figures.

    Args:
        reports: The runs; each has a `method` of its own.
        failures: How many failures of each run to describe, from all parts of it.
        by: What the rows below those of all questions group them by; see `Report.by`.

    Raises:
        InvalidArgumentError: If there are no reports, two have one name, they are not about the same questions, or `by`
            is misspelt.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, Question, SimGRAGRetriever, default_embeddings
        >>> from kg_retrievers.evaluation import evaluate
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Spike Jonze"), ("Her", "has_genre", "Drama")])
        >>> retriever = SimGRAGRetriever.from_index(GraphIndex.build(graph, default_embeddings()))
        >>> question = Question("Who directed Her?", answers=("Amy Adams",))
        >>> told = compare([evaluate(retriever, [question])]).failures["SimGRAGRetriever"][0]
        >>> for part in told.split(" Pattern (zero-shot): "):
        ...     print(part)
        "Who directed Her?" Wanted: Amy Adams. Got: Spike Jonze.
        Her -> directed_by -> ?entity 1.
    """
    if not isinstance(reports, Sequence) or not all(isinstance(report, Report) for report in reports) or not reports:
        raise InvalidArgumentError(
            f"compare: wanted a list of one Report or more, but got {reports!r:.100}. Make a Report with "
            "evaluate(retriever, questions), or read one with Report.read(path)."
        )
    check_integer(failures, "compare: failures", 0)
    methods = [report.method for report in reports]
    if len(set(methods)) < len(methods):
        raise InvalidArgumentError(
            f"compare: the names {methods} do not tell the runs apart: evaluate(..., method=...)."
        )
    asked = [[(one["question"], one["gold"], one["hops"]) for one in report.records] for report in reports]
    for report, questions in zip(reports, asked, strict=True):
        if questions != asked[0]:
            raise InvalidArgumentError(
                f"compare: {methods[0]} was asked {len(asked[0])} questions and {report.method} {len(questions)}, "
                "not the same ones. Let both finish, on the same data with the same limit and seed."
            )
    parts = _parts(reports, by)
    columns = {head: key for head, key in COLUMNS.items() if _is_shown(head, [shown[key] for *_, shown in parts])}
    if all(shown["compared"] == shown["questions"] for *_, shown in parts):
        del columns["asked"]
    rows = [(method, name, *(_figure(key, shown[key]) for key in columns.values())) for method, name, shown in parts]
    return Comparison(
        columns=("method", by.replace("_", " "), *columns),
        rows=tuple(rows),
        failures={
            report.method: tuple(map(describe_failure, _spread(report.failures, failures)))
            for report in reports
            if failures
        },
    )


def _parts(reports: Sequence[Report], by: GroupBy) -> list[tuple[str, str, dict[str, Any]]]:
    """Return what the rows are of: a method, all questions or a group of them, and the figures."""
    whole: list[dict[str, Any]] = [
        {"questions": len(one.records), **one.metrics, "intervals": one.intervals} for one in reports
    ]
    parts = [(one.method, "all", figures) for one, figures in zip(reports, whole, strict=True)]
    groups = [report.by(by) for report in reports]
    for name in groups[0]:
        parts += [(one.method, name, group[name]) for one, group in zip(reports, groups, strict=True)]
    for _, _, figures in parts:
        interval = figures["intervals"]["hit"]
        figures["half_width"] = interval and (interval[1] - interval[0]) / 2
    return parts


def describe_failure(record: Record) -> str:
    """Describe a failure: the question, the wanted answer, the result, and the reason as far as is known."""
    wanted = _wanted(record)
    got = _names(record, "answers") if record["value"] is None else _said(record["value"])
    if record["refused"]:
        got = f"a refusal: {record['reason']}" if record["reason"] else "a refusal"
    elif record["error"]:
        got = f"an error: {record['error']}"
    elif not record["answers"] and record["value"] is None:
        got = f"no answers, in evidence of {record['triples']} triple" + ("s" if record["triples"] != 1 else "")
    parts = [f'"{record["question"]}"', f"Wanted: {wanted}.", f"Got: {got}".rstrip(".") + "."]
    if written := record["prediction"]:
        parts.append(f"Written: {_shown([written] if isinstance(written, str) else written)}".rstrip(".") + ".")
    if pattern := record["pattern"]:
        parts.append(f"Pattern ({pattern.get('source') or 'given'}): {'; '.join(pattern_lines(pattern))}.")
    return " ".join(one_line(" ".join(parts)).split())


def _wanted(record: Record) -> str:
    if not record["answerable"]:
        return f"no answer ({record['kind'] or 'unanswerable'})"
    return _names(record, "gold") if record["gold_value"] is None else _said(record["gold_value"])


def _said(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _names(record: Record, key: str) -> str:
    keys: list[str] = record[key]  # type: ignore[literal-required]
    return _shown([record["labels"].get(name, name) for name in keys])


def _shown(names: Sequence[str]) -> str:
    return first_of(names, NAMES_SHOWN, "; ")


def _spread(records: Sequence[Record], number: int) -> list[Record]:
    """Return this many records from all parts of a list."""
    number = min(number, len(records))
    return [records[position * len(records) // number] for position in range(number)]


def _is_shown(head: str, values: Sequence[float | None]) -> bool:
    """Return whether a column says anything."""
    return any(values) or (head not in SHOWN_IF_ANY and any(value is not None for value in values))


def _figure(key: str, value: float | None) -> str:
    if value is None:
        return "-"
    if key in ("compared", "questions"):
        return f"{value:,}"
    return f"{value:.1f}" if key.endswith(SIZES) else f"{value:.3f}"


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(_escaped, cells)) + " |"


def _escaped(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    return re.sub(r"([\\`*_{}\[\]<>#|~!$&])", r"\\\1", text)
