"""What an answerer wrote, judged answer by answer: whether it is right, and whether the evidence says it.

Li et al., "Simple Is Effective: The Roles of Graphs and Large Language Models in Knowledge-Graph-Based
Retrieval-Augmented Generation" (SubgraphRAG), ICLR 2025, arXiv:2410.20724: section 4.2, table 6 and appendix C.

*Differs*: the paper does not say how texts are compared. Here an answer says a name where the words of the name stand
in it in a row, without case and accents: "2014 (2014 World Series)" says "2014 World Series", and "in 1982" does not
say "2". So a right answer in a script without blanks must be the name alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.documents import Document
from typing_extensions import TypedDict

from kg_retrievers.core.results import result_answers
from kg_retrievers.evaluation.metrics import truth_score
from kg_retrievers.evaluation.records import Record, WrittenAnswer
from kg_retrievers.index.words import words_of


class WrittenFigures(TypedDict):
    """What was written to some questions; the shares are in 0 ... 1, or None where there is nothing to divide by.

    Attributes:
        questions: How many questions an answerer was asked.
        refused: The share of them without any answer written.
        answers: How many answers were written to all of them.
        wrong: The share of the answers that are wrong.
        right_not_in_evidence: The share of the right answers that the evidence does not say.
        wrong_not_in_evidence: The share of the wrong answers that the evidence does not say.
    """

    questions: int
    refused: float | None
    answers: int
    wrong: float | None
    right_not_in_evidence: float | None
    wrong_not_in_evidence: float | None


def says(text: str, name: str) -> bool:
    """Whether the words of a name stand in a text in a row; a name without words must be the text.

    Example:
        >>> says("It is Amélie Poulain.", "amelie"), says("in 1982", "2"), says("!", "!")
        (True, False, True)
    """
    return _stands_in(_spaced(name), _spaced(text)) or (bool(name.strip()) and name.strip() == text.strip())


def judge_answers(answers: Sequence[str], gold: Sequence[str], documents: Sequence[Document]) -> list[WrittenAnswer]:
    """Judge each answer that was written.

    Args:
        answers: The texts.
        gold: The names of the gold answers; none where the graph holds no answer.
        documents: The evidence. It says an answer that names an entity of it, or what an operation gave.

    Example:
        >>> judge_answers(["Spike Jonze"], ["Spike Jonze"], [])
        [{'answer': 'Spike Jonze', 'right': True, 'in_evidence': False}]
    """
    names = evidence_names(documents)
    return [
        {
            "answer": answer,
            "right": any(says(answer, name) for name in gold),
            "in_evidence": any(says(answer, name) for name in names),
        }
        for answer in answers
    ]


def evidence_names(documents: Sequence[Document]) -> list[str]:
    """Return what the entities of the evidence are called, and what operations gave."""
    metadata = [document.metadata for document in documents]
    labels = [label for one in metadata for label in one["labels"].values()]
    values = [text for one in metadata for text in result_answers(one)]
    return list(dict.fromkeys([*labels, *values]))


def label_in_evidence(gold: Sequence[str], documents: Sequence[Document]) -> float:
    """Return 1 if the text of the evidence says the name of a gold answer, else 0.

    The retrieval accuracy of G-Retriever (He et al., arXiv:2402.07630, appendix D.4, table 11). *Differs*: the paper
    does not say whether one of several labels is enough; here it is.

    Example:
        >>> label_in_evidence(["Drama"], [Document("Her -> has_genre -> Drama")])
        1.0
    """
    texts = [_spaced(document.page_content) for document in documents]
    return float(any(_stands_in(_spaced(name), text) for name in gold for text in texts))


def score_written(written: Sequence[WrittenAnswer], answerable: bool) -> float:
    """Return Score_h of SubgraphRAG for the answers written to a question; see `truth_score`.

    Example:
        >>> score_written([{"answer": "Her", "right": False, "in_evidence": True}], answerable=True)
        0.2
    """
    right = sum(one["right"] for one in written)
    known = sum(one["in_evidence"] for one in written)
    return truth_score(len(written), right=right, in_evidence=known, answerable=answerable)


def written_figures(records: Sequence[Record]) -> dict[str, WrittenFigures]:
    """Return what was written to the "answerable" and to the "unanswerable" questions; nothing without answerer.

    SubgraphRAG's table 6 of truth-grounded answers. To questions that the graph cannot answer every answer is wrong.
    A question that an error kept from an answer is in none of the figures.
    """
    asked = [record for record in records if record["written"] is not None and record["error"] is None]
    groups = {"answerable": True, "unanswerable": False}
    return {
        name: _figures([record["written"] or [] for record in asked if record["answerable"] == answerable])
        for name, answerable in groups.items()
        if asked
    }


def micro_scores(records: Sequence[Record]) -> dict[str, float | None]:
    """Return micro-averaged precision, recall and F1 of what was written: from sums over all questions with gold.

    Micro-F1 of SubgraphRAG's table 4, of texts: the precision is the share of the answers that are right, the recall
    the share of the gold answers that the text metrics find in a reply.
    """
    names = ("text_precision_micro", "text_recall_micro", "text_f1_micro")
    compared = [record for record in records if record["written"] is not None]
    compared = [record for record in compared if record["metrics"].get("text_recall") is not None]
    if not compared:
        return dict.fromkeys(names)
    judged = [one for record in compared for one in record["written"] or []]
    sizes = [len(record["gold"]) or _value_count(record["gold_value"]) for record in compared]
    recalls = [record["metrics"]["text_recall"] or 0.0 for record in compared]
    precision = _share(one["right"] for one in judged) or 0.0
    recall = sum(share * size for share, size in zip(recalls, sizes, strict=True)) / sum(sizes)
    f1 = 2 * precision * recall / (precision + recall) if precision and recall else 0.0
    return dict(zip(names, (precision, recall, f1), strict=True))


def _value_count(value: Any) -> int:
    return len(value) if isinstance(value, list) else 1


def _figures(replies: Sequence[Sequence[WrittenAnswer]]) -> WrittenFigures:
    judged = [one for reply in replies for one in reply]
    return {
        "questions": len(replies),
        "refused": _share(not reply for reply in replies),
        "answers": len(judged),
        "wrong": _share(not one["right"] for one in judged),
        "right_not_in_evidence": _share(not one["in_evidence"] for one in judged if one["right"]),
        "wrong_not_in_evidence": _share(not one["in_evidence"] for one in judged if not one["right"]),
    }


def _share(facts: Iterable[bool]) -> float | None:
    found = list(facts)
    return sum(found) / len(found) if found else None


def _spaced(text: str) -> str:
    return f" {' '.join(words_of(text))} "


def _stands_in(name: str, text: str) -> bool:
    return bool(name.strip()) and name in text
