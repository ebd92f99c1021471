"""Every metric of a single question, defined once, with its source. All are in 0 ... 1.

Answers are compared by entity key, so that two films called "Dune" are two answers. `predictions` has the definitions
for answers that are text; `report` takes the means.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kg_retrievers.datasets import Question
from kg_retrievers.graph import Triple


def hit(gold: Collection[str], answers: Collection[str]) -> float:
    """Return 1 if a gold answer is among the answers proposed, else 0.

    What GNN-RAG calls Hit (arXiv:2405.20139, section 5), there by text. Many papers call it Hits@1.

    Example:
        >>> hit(["a", "b"], ["b", "x"])
        1.0
    """
    return float(not set(gold).isdisjoint(answers))


def exact_match(gold: Collection[str], answers: Collection[str]) -> float:
    """Return 1 if the answers proposed are the gold answers, all of them and no others; else 0."""
    return float(set(gold) == set(answers))


def precision(gold: Collection[str], answers: Collection[str]) -> float:
    """Return the share of the answers proposed that are gold; 0 where there are none.

    Also `hits@1`: the answers of the top group are tied, so this is the chance that the first of them is right when
    ties are broken at random, the expected value of the usual Hits@1.

    Example:
        >>> precision(["a", "b"], ["b", "x"])
        0.5
    """
    return len(set(gold).intersection(answers)) / len(set(answers)) if answers else 0.0


def recall(gold: Collection[str], answers: Collection[str]) -> float:
    """Return the share of the gold answers that are proposed.

    By key, what SG-RAG calls the answer matching rate (A. Saleh, G. Tür, Y. Saygın, section 5.4, equation 1).

    Example:
        >>> recall(["a", "b"], ["b", "x"])
        0.5
    """
    return len(set(gold).intersection(answers)) / len(set(gold))


def f1(gold: Collection[str], answers: Collection[str]) -> float:
    """Return the harmonic mean of precision and recall; 0 where both are.

    Example:
        >>> f1(["a", "b"], ["b"])
        0.6666666666666666
    """
    matched = len(set(gold).intersection(answers))
    return 2 * matched / (len(set(gold)) + len(set(answers)))


def answer_recall(gold: Collection[str], triples: Collection[Triple]) -> float:
    """Return the share of the gold answers that occur as head or tail in the evidence.

    SubgraphRAG (arXiv:2410.20724, section 4.1). Differs: the paper leaves out answers that the graph does not hold.

    Example:
        >>> answer_recall(["Spike Jonze"], [Triple("Her", "directed_by", "Spike Jonze")])
        1.0
    """
    return recall(gold, _entities(triples))


def triple_recall(gold: Collection[Triple], triples: Collection[Triple]) -> float:
    """Return the share of the gold triples in the evidence (SubgraphRAG, arXiv:2410.20724, section 4.1)."""
    return len(set(gold).intersection(triples)) / len(set(gold))


def non_gold_triples(gold: Collection[Triple], triples: Collection[Triple]) -> float:
    """Return the share of the evidence that is not gold; 0 where there is no evidence.

    Where the gold triples are one path to one of several answers, as in PathQuestion, the right facts for the other
    answers count as not gold.

    Example:
        >>> fact, other = Triple("Her", "directed_by", "Spike Jonze"), Triple("Her", "starring", "Amy Adams")
        >>> non_gold_triples([fact], [fact, other])
        0.5
    """
    return len(set(triples).difference(gold)) / len(set(triples)) if triples else 0.0


def truthfulness(
    gold: Collection[str], answers: Collection[str], triples: Collection[Triple], answerable: bool = True
) -> float:
    """Return how truthful the answers are; a missing answer costs less than a wrong one.

    Score_h of SubgraphRAG (arXiv:2410.20724, appendix C). A question that the graph can answer: the mean over the
    answers of +1 (gold) and -1 (not), or 0 without answers. One that it cannot: +1 without answers, else the mean of -1
    (the answer is an entity of the evidence) and -1.5 (it is not). Then (x + 1.5) / 2.5. Differs: by entity key, where
    the paper looks for texts in texts, and in 0 ... 1 instead of percent.

    Example:
        >>> truthfulness(["a"], ["a"], []), truthfulness(["a"], [], []), truthfulness([], ["x"], [], answerable=False)
        (1.0, 0.6, 0.0)
    """
    answers = set(answers)
    if not answers:
        points = 0.0 if answerable else 1.0
    elif answerable:
        points = sum(1 if answer in gold else -1 for answer in answers) / len(answers)
    else:
        evidence = _entities(triples)
        points = sum(-1 if answer in evidence else -1.5 for answer in answers) / len(answers)
    return (points + 1.5) / 2.5


def exact_value(gold: Any, value: Any) -> float:
    """Return 1 if what an operation gave is the gold value, else 0. A truth value is no number; 6 and 6.0 are equal.

    Example:
        >>> exact_value(6, 6), exact_value(1, True), exact_value(True, None)
        (1.0, 0.0, 0.0)
    """
    return float(gold == value and isinstance(gold, bool) == isinstance(value, bool))


def question_metrics(
    question: Question,
    answers: Collection[str],
    triples: Collection[Triple],
    *,
    failed: bool = False,
    value: Any = None,
) -> dict[str, float | None]:
    """Return all metrics of a question by name; None where the question does not have what a metric compares with.

    Args:
        question: The question.
        answers: The keys of the answers that the top group proposes.
        triples: The distinct triples of all the evidence.
        failed: Whether an error kept the retriever from answering; that is no refusal.
        value: What an operation gave; None where there was none.
    """
    gold = question.answers if question.answerable else ()
    comparisons = {
        "hit": hit,
        "hits@1": precision,
        "exact_match": exact_match,
        "precision": precision,
        "recall": recall,
        "f1": f1,
    }
    known = bool(gold) or not question.answerable
    return {
        **{name: metric(gold, answers) if gold else None for name, metric in comparisons.items()},
        "exact_value": None if question.value is None else exact_value(question.value, value),
        "answer_recall": answer_recall(gold, triples) if gold else None,
        "triple_recall": triple_recall(question.triples, triples) if question.triples else None,
        "non_gold_triples": non_gold_triples(question.triples, triples) if question.triples else None,
        "truthfulness": truthfulness(gold, answers, triples, question.answerable or failed) if known else None,
    }


def _entities(triples: Collection[Triple]) -> set[str]:
    return {key for head, _, tail in triples for key in (head, tail)}
