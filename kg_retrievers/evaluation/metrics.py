"""Every metric of a single question, defined once, with its source. All are in 0 ... 1.

Answers are compared by entity key, so that two films called "Dune" are two answers. `predictions` has the definitions
for answers that are text; `report` takes the means.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from langchain_core.documents import Document

from kg_retrievers.datasets import GraphQuestion, Question
from kg_retrievers.graph import Triple
from kg_retrievers.index.names import words_of


def hit(gold: Collection[str], answers: Collection[str]) -> float:
    """Return 1 if a gold answer is among the answers proposed, else 0.

    What GNN-RAG calls Hit (arXiv:2405.20139, section 5), there by text. Many papers call it Hits@1.

    Example:
        >>> hit(["a", "b"], ["b", "x"])
        1.0
    """
    return float(not set(gold).isdisjoint(answers))


def hits_at(gold: Collection[str], ranked: Sequence[str], k: int = 10) -> float:
    """Return 1 if a gold answer is among the first k of all answers proposed, best first; else 0.

    Hit@k of GNN-RAG (arXiv:2405.20139, section 5 and table 4): of the candidates of a learned model, which have scores
    of their own. Where answers are tied, as those of a pattern are, which of them come first says nothing.

    Example:
        >>> hits_at(["a"], ["x", "a"], k=1), hits_at(["a"], ["x", "a"], k=2)
        (0.0, 1.0)
    """
    return hit(gold, ranked[:k])


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


def answer_recall(gold: Collection[str], triples: Collection[Triple], alone: Collection[str] = ()) -> float:
    """Return the share of the gold answers that occur in the evidence: as head, as tail, or as an entity alone.

    SubgraphRAG (arXiv:2410.20724, section 4.1). Differs: the paper leaves out answers that the graph does not hold.

    Example:
        >>> answer_recall(["Spike Jonze"], [Triple("Her", "directed_by", "Spike Jonze")])
        1.0
    """
    return recall(gold, _entities(triples, alone))


def coverage(gold: Collection[str], triples: Collection[Triple], alone: Collection[str] = ()) -> float:
    """Return 1 if a gold answer occurs in the evidence, as head, as tail, or as an entity alone; else 0.

    The answer coverage of GNN-RAG (arXiv:2405.20139, section 4.4, table 1).

    Example:
        >>> coverage(["Spike Jonze", "Amy Adams"], [Triple("Her", "directed_by", "Spike Jonze")])
        1.0
    """
    return hit(gold, _entities(triples, alone))


def triple_recall(gold: Collection[Triple], triples: Collection[Triple]) -> float:
    """Return the share of the gold triples in the evidence (SubgraphRAG, arXiv:2410.20724, section 4.1)."""
    return len(set(gold).intersection(triples)) / len(set(gold))


def label_in_evidence(gold: Collection[str], documents: Collection[Document]) -> float:
    """Return 1 if the text of the evidence holds the name of a gold answer, else 0.

    The retrieval accuracy of G-Retriever (arXiv:2402.07630, appendix D.4, table 11). Words are compared without case
    and accents.

    Example:
        >>> label_in_evidence(["Drama"], [Document("Her -> has_genre -> Drama")])
        1.0
    """
    texts = [_spaced(document.page_content) for document in documents]
    names = [_spaced(name) for name in gold]
    return float(any(name.strip() and name in text for name in names for text in texts))


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
    alone: Collection[str] = (),
    value: Any = None,
    ranked: Sequence[str] | None = None,
) -> dict[str, float | None]:
    """Return all metrics of a question by name; None where the question does not have what a metric compares with.

    An answer in words, as "support", is no key: what compares keys is None, and only what is written can be right.

    Args:
        question: The question.
        answers: The keys of the answers that the top group proposes.
        triples: The distinct triples of all the evidence.
        alone: The entities that are evidence by themselves.
        value: What an operation gave; None where there was none.
        ranked: The answers that all the evidence proposes, best first; those of the top group by default.
    """
    gold = _gold_keys(question)
    comparisons = {
        "hit": hit,
        "hits@1": precision,
        "exact_match": exact_match,
        "precision": precision,
        "recall": recall,
        "f1": f1,
    }
    ranked = list(answers) if ranked is None else ranked
    return {
        **{name: metric(gold, answers) if gold else None for name, metric in comparisons.items()},
        "first_hit": hits_at(gold, ranked, 1) if gold else None,
        "hits@10": hits_at(gold, ranked, 10) if gold else None,
        "exact_value": None if question.value is None else exact_value(question.value, value),
        "answer_recall": answer_recall(gold, triples, alone) if gold else None,
        "coverage": coverage(gold, triples, alone) if gold else None,
        "triple_recall": triple_recall(question.triples, triples) if question.triples else None,
    }


def _gold_keys(question: Question) -> tuple[str, ...]:
    in_words = isinstance(question, GraphQuestion) and question.in_words
    return () if in_words or not question.answerable else question.answers


def _entities(triples: Collection[Triple], alone: Collection[str] = ()) -> set[str]:
    return {key for head, _, tail in triples for key in (head, tail)} | set(alone)


def _spaced(text: str) -> str:
    return f" {' '.join(words_of(text))} "
