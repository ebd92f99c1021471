"""Scores answers in words, by the definitions behind published figures of question answering over graphs."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

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
    r"""Score one prediction that is text, in 0 ... 1.

    The definitions are meant to be those of RoG and GNN-RAG (C. Mavromatis, G. Karypis: GNN-RAG, arXiv:2405.20139).
    They were found by scoring the published files again.

    A prediction that is one text is stripped and split at line ends. A gold answer is matched if its normal form
    (`normal_form`) is contained in that of the whole prediction, its lines joined.

    - `accuracy` and `recall`: matched gold answers / gold answers. The same is SG-RAG's answer matching rate
      (A. Saleh, G. Tür, Y. Saygın: SG-RAG, section 5.4, equation 1), for text.
    - `precision`: matched gold answers / predicted lines. Above 1 if one line holds several gold answers.
    - `f1`: of precision and recall, also above 1 then.
    - `hit`: any gold answer is matched. Many papers call this Hits@1.
    - `hits@1`: any gold answer is contained in the first line.

    Being contained is generous: "2" is in "1982", and a gold answer without letters and digits, or of articles alone,
    is in everything.

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
