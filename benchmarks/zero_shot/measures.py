"""Figures and tables of asked questions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from benchmarks import figures
from benchmarks.zero_shot.asking import Row

#: How often questions are drawn with replacement for an interval of 95 % (percentile bootstrap).
DRAWS = 1_000

BINS = 10

THRESHOLDS = (0.0, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

#: Questions of each set whose time does not count: the first search compiles.
WARM_UP = 10


def auroc(confidences: Sequence[float], right: Sequence[float]) -> float | None:
    """Return the chance that a right answer has the higher confidence than a wrong one, ties counted half.

    Example:
        >>> auroc([0.9, 0.5, 0.5, 0.1], [1, 1, 0, 0])
        0.875
    """
    positive = np.asarray(right) > 0
    count, others = int(positive.sum()), int((~positive).sum())
    if not count or not others:
        return None
    _, inverse, sizes = np.unique(confidences, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(sizes) - (sizes - 1) / 2)[inverse]  # the mean rank of equal values
    return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * others))


def interval(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """Return the ends of the 95 % bootstrap interval of a mean."""
    drawn = np.random.default_rng(seed).integers(0, len(values), (DRAWS, len(values)))
    low, high = np.quantile(np.asarray(values)[drawn].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def is_given(row: Row, threshold: float) -> bool:
    """Tell whether an answer is given at a threshold."""
    return row["confidence"] is not None and row["confidence"] >= threshold


def outcome(row: Row, threshold: float) -> str:
    """Return "right" (all the gold answers and no others), "partly" (one of them), "wrong" or "refused"."""
    if not is_given(row, threshold):
        return "refused"
    return "right" if row["exact"] else "partly" if row["hit"] else "wrong"


def answer_table(rows: Sequence[Row], threshold: float) -> str:
    """Return the table of all sets: the answers without a threshold, and what the threshold does."""
    head = ["set", "topic", "n", "hit", "95 %", "exact", "95 %", "F1", "95 %"]
    head += ["answered", "wrong of these", "not exact", "AUROC hit", "AUROC exact", "lacking refused", "n"]
    lines = [head]
    for (name, topic, _), part in _groups(rows, "plain").items():
        asked = [row for row in part if row["answerable"]]
        given = [row for row in asked if is_given(row, threshold)]
        answered = [row for row in asked if row["answered"]]
        sure = [row["confidence"] or 0.0 for row in answered]
        lost = [row for row in rows if _key(row)[:2] == (name, topic) and _is_lost(row)]
        line = [name, topic, str(len(asked))]
        for measure in ("hit", "exact", "f1"):
            values = [row[measure] for row in asked]
            line += [_share(np.mean(values)), "-".join(map(_share, interval(values)))]
        line += [_share(len(given) / len(asked)), _mean(1 - row["hit"] for row in given)]
        line += [_mean(1 - row["exact"] for row in given)]
        line += [_share(auroc(sure, [row[name] for row in answered])) for name in ("hit", "exact")]
        line += [_mean(not is_given(row, threshold) for row in lost), str(len(lost))]
        lines.append(line)
    return figures.markdown(lines)


def set_lines(rows: Sequence[Row], threshold: float) -> list[list[str]]:
    """Return the table of all sets for the docs: a short form of `answer_table`."""
    lines = [["questions", "n", "`hit` [95 %]", "exact", "answered", "wrong of these", "AUROC", "lacking: refused"]]
    for (name, topic, _), part in _groups(rows, "plain").items():
        asked = [row for row in part if row["answerable"]]
        given = [row for row in asked if is_given(row, threshold)]
        answered = [row for row in asked if row["answered"]]
        lost = [not is_given(row, threshold) for row in rows if _key(row)[:2] == (name, topic) and _is_lost(row)]
        area = auroc([row["confidence"] or 0.0 for row in answered], [row["hit"] for row in answered])
        shares = [
            np.mean([row["exact"] for row in asked]),
            len(given) / len(asked),
            np.mean([1 - row["hit"] for row in given]),
            area,
            np.mean(lost),
        ]
        hits = share_with_interval([row["hit"] for row in asked])
        lines.append([_TITLES.get(name, f"{name}, by hand"), str(len(asked)), hits, *map(figures.share, shares)])
    return lines


def own_lines(rows: Sequence[Row], threshold: float, folder: str) -> list[list[str]]:
    """Return the table for the docs of all graphs of a folder together, by exact answers, without and with examples."""
    names = {"kept": "kept aside", "dev": "development"}
    columns = [["all graphs together", *_OWN_ROWS]]
    for setting, ending in (("plain", ""), ("examples", ", 15 examples")):
        part = [row for row in rows if row["setting"] == setting]
        asked = [row for row in part if row["answerable"] and row["kind"] != "claim"]
        columns.append([names.get(folder, folder) + ending, *_own_column(part, asked, threshold)])
    return [list(line) for line in zip(*columns, strict=True)]


#: The rows of `own_lines`.
_OWN_ROWS = (
    "questions",
    "right",
    "wrong",
    "wrong of the answered",
    "right without a threshold",
    "AUROC of the confidence",
    "casual questions: right / wrong",
    "unanswerable, refused",
    "claims between entities of one kind: right",
)


def _own_column(part: Sequence[Row], asked: Sequence[Row], threshold: float) -> list[str]:
    """Return the cells of `_OWN_ROWS`."""
    given = [row for row in asked if is_given(row, threshold)]
    answered = [row for row in asked if row["answered"]]
    casual = [outcome(row, threshold) for row in asked if row["kind"] == "casual"]
    lost = [float(not is_given(row, threshold)) for row in part if not row["answerable"]]
    claims = [float(outcome(row, threshold) == "right") for row in part if row["kind"] == "claim"]
    right = [float(outcome(row, threshold) == "right") for row in asked]
    wrong = [float(outcome(row, threshold) in ("partly", "wrong")) for row in asked]
    casual_right = casual.count("right") / max(1, len(casual))
    casual_wrong = 1 - casual_right - casual.count("refused") / max(1, len(casual))
    return [
        str(len(asked)),
        share_with_interval(right),
        share_with_interval(wrong),
        figures.share(sum(wrong) / len(given)),
        figures.share(sum(row["exact"] for row in asked) / len(asked)),
        figures.share(auroc([row["confidence"] or 0.0 for row in answered], [row["exact"] for row in answered])),
        f"{figures.share(casual_right)} / {figures.share(casual_wrong)} (n {len(casual)})" if casual else "-",
        f"{share_with_interval(lost)} (n {len(lost)})",
        f"{share_with_interval(claims)} (n {len(claims)})" if claims else "-",
    ]


def share_with_interval(values: Sequence[float]) -> str:
    """Return the mean of values with its 95 % interval."""
    return f"{figures.share(float(np.mean(values)))} [{'-'.join(map(figures.share, interval(values)))}]"


#: How the docs call the published sets.
_TITLES = {
    "fb237": "natural questions on FB15k-237",
    **{f"metaqa-{hops}": f"MetaQA, {hops} hop{'s' * (hops > 1)}" for hops in (1, 2, 3)},
    "metaqa-1-paraphrased": "MetaQA, 1 hop, paraphrased",
    **{f"pathquestion-{hops}": f"PathQuestion {hops}" for hops in (2, 3)},
}


def kind_table(rows: Sequence[Row], threshold: float) -> str:
    """Return what becomes of the questions of one's own sets, by kind, with examples and without."""
    own = {row["set"] for row in rows if row["setting"] == "examples"}
    outcomes = ("right", "partly", "wrong", "refused")
    lines = [["set", "topic", "examples", "kind", "n", *outcomes]]
    for setting in ("plain", "examples"):
        for (name, topic, _), part in _groups(rows, setting).items():
            kinds = ["all", *dict.fromkeys(str(row["kind"]) for row in part)]
            for kind in kinds if name in own else []:
                asked = [row for row in part if row["answerable"]] if kind == "all" else part
                found = [outcome(row, threshold) for row in asked if kind in ("all", str(row["kind"]))]
                shares = [_share(found.count(one) / len(found)) for one in outcomes]
                lines.append([name, topic, "yes" if setting == "examples" else "no", kind, str(len(found)), *shares])
    return figures.markdown(lines)


def reliability_table(rows: Sequence[Row]) -> str:
    """Return hit / exact (and how many) of the answers of each tenth of confidence, by set."""
    edges = np.linspace(0, 1, BINS + 1)
    lines = [["set", "topic", *(f"{low:.1f}-{high:.1f}" for low, high in pairwise(edges))]]
    for (name, topic, _), part in _groups(rows, "plain").items():
        answered = [row for row in part if row["answerable"] and row["confidence"] is not None]
        bins = [min(int(BINS * (row["confidence"] or 0.0)), BINS - 1) for row in answered]
        cells = []
        for number in range(BINS):
            inside = [row for row, at in zip(answered, bins, strict=True) if at == number]
            means = [_mean(row[measure] for row in inside) for measure in ("hit", "exact")]
            cells.append(f"{' / '.join(means)} ({len(inside)})" if inside else "")
        lines.append([name, topic, *cells])
    return figures.markdown(lines)


def speed_table(rows: Sequence[Row]) -> str:
    """Return the CPU time of a question, of MetaQA's sets and of what is asked for the time alone."""
    lines = [["set", "topic", "n", "p50", "p95"]]
    for setting in ("plain", "speed"):
        for (name, topic, _), part in _groups(rows, setting).items():
            taken = [row["cpu_ms"] for row in part][WARM_UP:]
            if taken and (setting == "speed" or name.startswith("metaqa")):
                lines.append([name, topic, str(len(taken)), *(f"{np.quantile(taken, at):.1f}" for at in (0.5, 0.95))])
    return figures.markdown(lines)


def threshold_table(rows: Sequence[Row]) -> str:
    """Return what thresholds do: the share answered, the share of these that is wrong, the share of lacking refused."""
    lines = [["set", "topic", *map(str, THRESHOLDS)]]
    for (name, topic, _), part in _groups(rows, "plain").items():
        asked = [row for row in part if row["answerable"]]
        lost = [row for row in rows if _key(row)[:2] == (name, topic) and _is_lost(row)]
        cells = []
        for threshold in THRESHOLDS:
            given = [row for row in asked if is_given(row, threshold)]
            shares = [_share(len(given) / len(asked)), _mean(1 - row["hit"] for row in given)]
            cells.append(" / ".join([*shares, _mean(not is_given(row, threshold) for row in lost)]))
        lines.append([name, topic, *cells])
    return figures.markdown(lines)


def _key(row: Row) -> tuple[str, str, str]:
    return row["set"], row["topic"], row["setting"]


def _is_lost(row: Row) -> bool:
    return not row["answerable"] and row["setting"] in ("plain", "lacking")


def _groups(rows: Iterable[Row], setting: str) -> dict[tuple[str, str, str], list[Row]]:
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        if row["setting"] == setting:
            groups.setdefault(_key(row), []).append(row)
    return groups


def _mean(values: Iterable[float]) -> str:
    found = list(values)
    return _share(np.mean(found) if found else None)


def _share(value: float | np.floating | None) -> str:
    return "-" if value is None else f"{value:.3f}"
