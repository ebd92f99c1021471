"""Report: the figures of a run, from its records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.evaluation.records import Header, Record, read_records
from kg_retrievers.graph.validation import check_integer

#: How questions are grouped: by the number of facts that they join, their type in the words of their set, how many
#: entities they name, and how many gold answers they have.
GroupBy = Literal["hops", "kind", "seed_entities", "answers"]

#: The name of the group of questions of which it is not known.
UNKNOWN = "unknown"

#: The least number of each group, and its name, as in GNN-RAG's tables 3 and 10 (arXiv:2405.20139).
_GROUPS = {"seed_entities": {0: "0", 1: "1", 2: "2+"}, "answers": {0: "0", 1: "1", 2: "2-4", 5: "5-9", 10: "10+"}}

#: How often questions are drawn with replacement for an interval of 95 % (percentile bootstrap, Efron, 1979).
DRAWS = 1000

#: The metrics of the answers to a question. Their means are None for a method that proposes no answers.
OF_ANSWERS = ("hit", "hits@1", "first_hit", "hits@10", "exact_match", "precision", "recall", "f1", "exact_value")

#: The metrics of the evidence for a question, whose means are reported.
OF_EVIDENCE = ("answer_recall", "coverage", "label_in_evidence", "triple_recall")

#: The metrics of the text of an answerer, whose means are reported.
OF_TEXT = ("text_accuracy", "text_hit", "text_hits@1", "text_f1", "text_precision", "text_recall")

#: The names of means whose metrics have other names.
MACRO = {"precision": "precision_macro", "recall": "recall_macro", "f1": "f1_macro"}

#: The metrics that are given with an interval.
WITH_INTERVAL = ("hit", "hits@1", "exact_match", "f1", "exact_value", "answer_recall")


@dataclass(frozen=True)
class Report:
    """The figures of a run.

    Attributes:
        method: The method.
        metrics: The figures by name, see `summarize`.
        intervals: 95 % bootstrap intervals of some of them: `[low, high]`, or None.
        by_hops: By the number of facts that a question joins, or "unknown": how many "questions", the figures, and the
            "intervals".
        seed: The seed of the intervals, and of all random choices of the caller.
        settings: The settings that the figures depend on.
        records: The measurements of each question.
    """

    method: str
    metrics: Mapping[str, float | None]
    intervals: Mapping[str, list[float] | None]
    by_hops: Mapping[str, Mapping[str, Any]]
    seed: int
    settings: Mapping[str, Any]
    records: tuple[Record, ...] = field(repr=False)

    @classmethod
    def from_records(
        cls,
        method: str,
        records: Sequence[Record],
        *,
        seed: int = 0,
        settings: Mapping[str, Any] | None = None,
        proposes_answers: bool = True,
    ) -> Self:
        """Take the means of records. Means that compare answers are None if the method proposes none.

        Raises:
            InvalidArgumentError: If the seed is no integer of 0 or more.
        """
        check_integer(seed, "Report: seed", 0)
        return cls(
            method=method,
            metrics=summarize(records, proposes_answers),
            intervals=_intervals(records, proposes_answers, seed),
            by_hops=_figures_by("hops", records, proposes_answers, seed),
            seed=seed,
            settings=dict(settings or {}),
            records=tuple(records),
        )

    @classmethod
    def from_header(cls, header: Header, records: Sequence[Record]) -> Self:
        """Take the means of the records of a run."""
        given: dict[str, Any] = {name: value for name, value in header.items() if name != "format"}
        return cls.from_records(records=records, **given)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a file of records that `evaluate` wrote, as far as it goes.

        Raises:
            FileFormatError: If the file cannot be read, or is no file of records. The message names the line.
        """
        return cls.from_header(*read_records(path))

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-safe dictionary of everything except the records."""
        return {
            "method": self.method,
            "questions": len(self.records),
            "metrics": dict(self.metrics),
            "intervals": dict(self.intervals),
            "by_hops": {name: dict(figures) for name, figures in self.by_hops.items()},
            "by": {by: self.by(by) for by in ("kind", "seed_entities", "answers")},
            "seed": self.seed,
            "settings": dict(self.settings),
        }

    @property
    def unmatched(self) -> Mapping[str, Any]:
        """How many of the "gold_answers" are "unmatched", and "told", the first ones, or empty if all are matched."""
        unmatched: Mapping[str, Any] = self.settings.get("unmatched", {})
        return unmatched

    @property
    def failures(self) -> list[Record]:
        """The questions with a wrong answer: no gold answer or value, or an answer although there is none.

        With an answerer, its reply decides.
        """
        return [record for record in self.records if _is_failure(record, self._proposes_answers)]

    def by(self, group: GroupBy) -> dict[str, dict[str, Any]]:
        """Return the figures of groups of questions, by name: how many "questions", the figures, and the "intervals".

        Args:
            group: "hops", "kind", "seed_entities" (how many a question names) or "answers" (how many are gold).

        Raises:
            InvalidArgumentError: If `group` is none of them.
        """
        return _figures_by(group, self.records, self._proposes_answers, self.seed)

    @property
    def _proposes_answers(self) -> bool:
        return self.metrics["hit"] is not None


def _is_failure(record: Record, proposes_answers: bool) -> bool:
    """Tell whether an answer is not right, by the text of the answer, otherwise by the answers or evidence."""
    if not record["answerable"]:
        return not record["refused"]
    if record["error"] is not None:
        return True
    written = record["metrics"].get("text_hit")
    if written is not None:
        return written == 0
    found = record["metrics"]["hit" if proposes_answers else "answer_recall"]
    return found == 0 or record["metrics"].get("exact_value") == 0


def summarize(records: Sequence[Record], proposes_answers: bool = True) -> dict[str, float | None]:
    """Return the figures of some records by name. A figure without data is None.

    - `compared`: how many questions have gold answers, the n of all figures that compare answers.
    - The means of the metrics of a question (`metrics`), over the questions that have them. The means of answers are
      None if the method proposes none. `exact_value` is the mean over the questions whose answer is a value. It is None
      for claims if nothing gave a truth value, and there was no answerer to verify them.
    - `hits@10`, `first_hit`: a gold answer is among the first ten, or is the first, of all answers proposed.
    - `coverage`: a gold answer is in the evidence, by key. `label_in_evidence`: its name is in the text.
    - `recall_macro`: also the answer matching rate of SG-RAG, by key.
    - `abstention`: the share of the unanswerable questions that were refused. `false_refusals`: the share of the
      answerable questions that were refused. `errors`: the share of all questions that an error kept from an answer.
    - `triples_`, `nodes_`, `tokens_` + `mean`, `median`: the size of the evidence. `llm_calls_mean`: 0 without language
      model.
    - `latency_ms_p50`, `latency_ms_p95`: the median and the 95th percentile of the wall time of the retrieval.
    - `text_...`: the figures of `score_prediction` for the answerer's replies, in 0 ... 1. None without answerer.
      Differs: the precision of a reply, and with it F1, is at most 1, even if one line holds several gold answers.
    """
    figures: dict[str, float | None] = {"compared": len(_values(records, "hit"))}
    for name in (*OF_ANSWERS, *OF_EVIDENCE):
        skipped = _is_skipped(name, records, proposes_answers)
        figures[MACRO.get(name, name)] = None if skipped else _mean(_values(records, name))
    figures |= _refusals(records) | _costs(records)
    return figures | {name: _mean(_values(records, name)) for name in OF_TEXT}


def _is_skipped(name: str, records: Sequence[Record], proposes_answers: bool) -> bool:
    """Tell whether there is nothing to compare.

    A claim is right or wrong only if something gave truth values. If the method proposes no answers, a value comes from
    an answerer.
    """
    if name == "exact_value" and (proposes_answers or any(record["value"] is not None for record in records)):
        return _are_claims_unjudged(records)
    return not proposes_answers and name in OF_ANSWERS


def _are_claims_unjudged(records: Sequence[Record]) -> bool:
    compared = [record for record in records if record["metrics"].get("exact_value") is not None]
    are_claims = all(isinstance(record["gold_value"], bool) for record in compared)
    return are_claims and all(record["value"] is None and record["prediction"] is None for record in compared)


def _figures_by(by: GroupBy, records: Sequence[Record], proposes_answers: bool, seed: int) -> dict[str, dict[str, Any]]:
    return {
        name: {
            "questions": len(group),
            **summarize(group, proposes_answers),
            "intervals": _intervals(group, proposes_answers, seed),
        }
        for name, group in grouped(records, by).items()
    }


def _refusals(records: Sequence[Record]) -> dict[str, float | None]:
    """Return how many questions were refused, rightly and wrongly, and how many an error kept from an answer."""
    refused: dict[bool, list[bool]] = {True: [], False: []}  # by whether the question is answerable
    for record in records:
        refused[record["answerable"]].append(record["refused"])
    errors = _mean(record["error"] is not None for record in records)
    return {"abstention": _mean(refused[False]), "false_refusals": _mean(refused[True]), "errors": errors}


def _costs(records: Sequence[Record]) -> dict[str, float | None]:
    """Return the size of the evidence, the calls of a language model and the wall time."""
    costs: dict[str, float | None] = {}
    for name in ("triples", "nodes", "tokens", "llm_calls"):
        sizes: list[int] = [record[name] for record in records]
        costs[f"{name}_mean"] = _mean(sizes)
        if name != "llm_calls":
            costs[f"{name}_median"] = float(np.median(sizes)) if sizes else None
    latencies = [record["latency_ms"] for record in records]
    for percent in (50, 95):
        costs[f"latency_ms_p{percent}"] = float(np.quantile(latencies, percent / 100)) if latencies else None
    return costs


def _values(records: Iterable[Record], name: str) -> list[float]:
    found = (record["metrics"].get(name) for record in records)
    return [value for value in found if value is not None]


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return fsum(found) / len(found) if found else None


def _intervals(records: Sequence[Record], proposes_answers: bool, seed: int) -> dict[str, list[float] | None]:
    intervals: dict[str, list[float] | None] = {}
    for name in WITH_INTERVAL:
        skipped = _is_skipped(name, records, proposes_answers)
        intervals[MACRO.get(name, name)] = None if skipped else bootstrap_interval(_values(records, name), seed)
    return intervals


def bootstrap_interval(values: Sequence[float], seed: int) -> list[float] | None:
    """Return the 95 % interval `[low, high]` of a mean, or None without values.

    Example:
        >>> bootstrap_interval([1.0, 1.0, 1.0], seed=0)
        [1.0, 1.0]
    """
    found = np.array(values, dtype=float)
    if not len(found):
        return None
    generator = np.random.default_rng(seed)
    means = [np.mean(found[generator.integers(0, len(found), len(found))]) for _ in range(DRAWS)]
    low, high = np.quantile(means, [0.025, 0.975]).tolist()
    return [low, high]


def grouped(records: Sequence[Record], by: GroupBy) -> dict[str, list[Record]]:
    """Return the records of each group, the groups in their order and "unknown" last.

    Raises:
        InvalidArgumentError: If `by` is no `GroupBy`.
    """
    if by not in get_args(GroupBy):
        raise InvalidArgumentError(f"grouped: wanted one of {', '.join(get_args(GroupBy))}, but got {by!r}.")
    values: list[tuple[int | str | None, Record]] = [(_group_value(record, by), record) for record in records]
    names: dict[str, list[Record]] = {}
    for value, record in sorted(
        values, key=lambda one: (one[0] is None, one[0] if isinstance(one[0], int) else 0, str(one[0]))
    ):
        name = UNKNOWN if value is None else str(value)
        if isinstance(value, int) and by in _GROUPS:
            name = _GROUPS[by][max(least for least in _GROUPS[by] if least <= value)]
        names.setdefault(name, []).append(record)
    return names


def _group_value(record: Record, by: GroupBy) -> int | str | None:
    if by == "kind" or by == "hops":
        return record[by]
    return len(set(record["gold"] if by == "answers" else record["seed_entities"]))
