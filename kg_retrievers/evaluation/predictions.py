"""Scores answers in words, by the definitions behind published figures of question answering over graphs."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kg_retrievers.errors import InvalidArgumentError

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")


def normal_form(text: str) -> str:
    """Return a text in lower case, without ASCII punctuation and the articles, with single blanks.

    Example:
        >>> normal_form("The  Lord's Prayer, a song")
        'lords prayer song'
    """
    return " ".join(_ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def score_prediction(prediction: str | Sequence[str], ground_truth: Sequence[str]) -> dict[str, float]:
    r"""Score one prediction; see `score_predictions`, whose figures are the means of these, in percent.

    Example:
        >>> score_prediction("Spike Jonze\nAmy Adams", ["Spike Jonze"])
        {'accuracy': 1.0, 'hit': 1.0, 'hits@1': 1.0, 'f1': 0.6666666666666666, 'precision': 0.5, 'recall': 1.0}
    """
    lines = prediction.strip().split("\n") if isinstance(prediction, str) else list(prediction)
    whole, first = normal_form(" ".join(lines)), normal_form(lines[0]) if lines else ""
    gold = [normal_form(answer) for answer in ground_truth]
    matched = sum(answer in whole for answer in gold) if lines else 0
    precision, recall = matched / max(len(lines), 1), matched / len(gold)
    return {
        "accuracy": recall,
        "hit": float(matched > 0),
        "hits@1": float(bool(lines) and any(answer in first for answer in gold)),
        "f1": 2 * precision * recall / (precision + recall) if matched else 0.0,
        "precision": precision,
        "recall": recall,
    }


def score_predictions(records: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    r"""Score text predictions that were made elsewhere, in percent.

    The definitions are meant to be those of RoG and GNN-RAG (C. Mavromatis, G. Karypis: GNN-RAG, arXiv:2405.20139).
    They were found by scoring the published files again; the tests here are examples worked by hand.

    A prediction that is one text is stripped and split at line ends. A gold answer is matched if its normal form
    (`normal_form`) is contained in that of the whole prediction, its lines joined.

    - `accuracy` and `recall`: matched gold answers / gold answers. The same is SG-RAG's answer matching rate
      (A. Saleh, G. Tür, Y. Saygın: SG-RAG, section 5.4, equation 1), for text.
    - `precision`: matched gold answers / predicted lines. Above 100 where one line holds several gold answers.
    - `f1`: of precision and recall, per question; also above 100 then.
    - `hit`: any gold answer is matched; many papers call this Hits@1.
    - `hits@1`: any gold answer is contained in the first line.

    Each is the mean over the records. Being contained is generous: "2" is in "1982", and a gold answer without letters
    and digits, or of articles alone, is in everything.

    Args:
        records: Each with "id", "prediction" (a text, or a list of texts) and "ground_truth" (a list of texts).

    Raises:
        InvalidArgumentError: If there are no records, or one lacks a key, or has no gold answer.

    Example:
        >>> record = {"id": "1", "prediction": "Wales\nScotland", "ground_truth": ["Wales", "Scotland", "England"]}
        >>> {name: round(value, 1) for name, value in score_predictions([record]).items()}
        {'accuracy': 66.7, 'hit': 100.0, 'hits@1': 100.0, 'f1': 80.0, 'precision': 100.0, 'recall': 66.7}
    """
    scores = [score_prediction(*_checked(record, number)) for number, record in enumerate(records, 1)]
    if not scores:
        raise InvalidArgumentError("score_predictions: got no records, so there is nothing to score.")
    return {name: sum(score[name] for score in scores) * 100 / len(scores) for name in scores[0]}


def _checked(record: Mapping[str, Any], number: int) -> tuple[str | Sequence[str], Sequence[str]]:
    """Return prediction and gold answers of a record."""
    who = f"score_predictions: record {number}"
    if not isinstance(record, Mapping) or not {"id", "prediction", "ground_truth"} <= set(record):
        raise InvalidArgumentError(f"{who}: wanted 'id', 'prediction' and 'ground_truth', but got {record!r:.200}.")
    prediction, gold = record["prediction"], record["ground_truth"]
    if not isinstance(prediction, str) and not _are_texts(prediction):
        raise InvalidArgumentError(
            f"{who}: 'prediction' must be a text or a list of texts, but got {prediction!r:.200}."
        )
    if not _are_texts(gold) or not gold:
        raise InvalidArgumentError(
            f"{who}: 'ground_truth' must be a list of one or more texts, but got {gold!r:.200}. "
            "Leave out questions without a gold answer."
        )
    return prediction, gold


def _are_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(text, str) for text in value)
