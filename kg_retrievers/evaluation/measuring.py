"""Measure one question: from the evidence and the reply to the record that a file keeps.

Every metric of a single question is defined here once, with its source. All are in 0 ... 1. Answers are compared by
entity key, so that two films called "Dune" are two answers. Answers in words are compared by the definitions behind
published figures. `report` takes the means.
"""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.documents import Document

from kg_retrievers.core.cost import CostCounter
from kg_retrievers.core.documents import documents_answers, result_answers, result_value, why_unsure
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.datasets import GraphQuestion, Question
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.evaluation.records import Record
from kg_retrievers.graph import Triple
from kg_retrievers.graph.verbalize import approximate_tokens, lone_entities_of
from kg_retrievers.index import GraphIndex, PartRequest
from kg_retrievers.index.names import words_of
from kg_retrievers.index.question_keys import value_of_answer

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

    The definitions are meant to equal the ones of RoG and GNN-RAG (C. Mavromatis, G. Karypis: GNN-RAG,
    arXiv:2405.20139). They were found by scoring the published files again.

    A prediction that is one text is stripped and split at line ends. A gold answer is matched if its normal form
    (`normal_form`) is contained in the normal form of the whole prediction, its lines joined.

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


def hit(gold: Collection[str], answers: Collection[str]) -> float:
    """Return 1 if a gold answer is among the answers proposed, otherwise 0.

    GNN-RAG calls it Hit (arXiv:2405.20139, section 5), there by text. Many papers call it Hits@1.

    Example:
        >>> hit(["a", "b"], ["b", "x"])
        1.0
    """
    return float(not set(gold).isdisjoint(answers))


def hits_at(gold: Collection[str], ranked: Sequence[str], k: int = 10) -> float:
    """Return 1 if a gold answer is among the first k answers proposed, best first, otherwise 0.

    Hit@k of GNN-RAG (arXiv:2405.20139, section 5 and table 4): of the candidates of a learned model, which have scores
    of their own. If answers are tied, as for a pattern, their order says nothing.

    Example:
        >>> hits_at(["a"], ["x", "a"], k=1), hits_at(["a"], ["x", "a"], k=2)
        (0.0, 1.0)
    """
    return hit(gold, ranked[:k])


def exact_match(gold: Collection[str], answers: Collection[str]) -> float:
    """Return 1 if the answers proposed are the gold answers, all of them and no others, otherwise 0."""
    return float(set(gold) == set(answers))


def precision(gold: Collection[str], answers: Collection[str]) -> float:
    """Return the share of the answers proposed that are gold, or 0 if there are none.

    Also `hits@1`: the answers of the top group are tied, so this is the chance that the first of them is right when
    ties are broken at random, the expected value of the usual Hits@1.

    Example:
        >>> precision(["a", "b"], ["b", "x"])
        0.5
    """
    return len(set(gold).intersection(answers)) / len(set(answers)) if answers else 0.0


def recall(gold: Collection[str], answers: Collection[str]) -> float:
    """Return the share of the gold answers that are proposed.

    By key. SG-RAG calls it the answer matching rate (A. Saleh, G. Tür, Y. Saygın, section 5.4, equation 1).

    Example:
        >>> recall(["a", "b"], ["b", "x"])
        0.5
    """
    return len(set(gold).intersection(answers)) / len(set(gold))


def f1(gold: Collection[str], answers: Collection[str]) -> float:
    """Return the harmonic mean of precision and recall, or 0 if both are 0.

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
    """Return 1 if a gold answer occurs in the evidence, otherwise 0.

    It may occur as head, as tail, or as an entity alone. This is the answer coverage of GNN-RAG (arXiv:2405.20139,
    section 4.4, table 1).

    Example:
        >>> coverage(["Spike Jonze", "Amy Adams"], [Triple("Her", "directed_by", "Spike Jonze")])
        1.0
    """
    return hit(gold, _entities(triples, alone))


def triple_recall(gold: Collection[Triple], triples: Collection[Triple]) -> float:
    """Return the share of the gold triples in the evidence (SubgraphRAG, arXiv:2410.20724, section 4.1)."""
    return len(set(gold).intersection(triples)) / len(set(gold))


def label_in_evidence(gold: Collection[str], documents: Collection[Document]) -> float:
    """Return 1 if the text of the evidence holds the name of a gold answer, otherwise 0.

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
    """Return 1 if an operation's result is the gold value, otherwise 0.

    A truth value is no number. 6 and 6.0 are equal.

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
    """Return all metrics of a question by name, or None for metrics without a gold label.

    An answer in words, such as "support", is no key. Metrics that compare keys are then None, and only a written reply
    can be right.

    Args:
        question: The question.
        answers: The keys of the answers that the top group proposes.
        triples: The distinct triples of all the evidence.
        alone: The entities that are evidence by themselves.
        value: The result of an operation. None if there was none.
        ranked: The answers that all the evidence proposes, best first. By default the answers of the top group.
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


def record_of(
    id: str,
    question: Question,
    retriever: BaseKGRetriever,
    documents: list[Document],
    reply: Any,
    *,
    reason: str | None,
    error: str | None,
    pattern: dict[str, Any] | None,
    cost: CostCounter,
    latency: float,
) -> Record:
    """Return the record of a question that was asked.

    Args:
        id: Its position in the run.
        question: The question, with keys of entities.
        retriever: The retriever over the graph that it is about.
        documents: The evidence.
        reply: The answerer's reply. None without one.
        reason: Why the question was refused. Otherwise None.
        error: The message of an error. Otherwise None.
        pattern: The first pattern that a stage made, if one did.
        cost: The calls of language models.
        latency: The wall time of the retrieval, in milliseconds.
    """
    triples = dict.fromkeys(Triple(*triple) for one in documents for triple in one.metadata["triples"])
    value = verdict_value(reply) if is_verdict(reply) else result_value(documents)
    prediction = None if reply is None else predicted_answers(reply)
    proposed = documents_answers(documents)
    is_value_alone = value is not None and not proposed and question.value is None and question.answerable
    if is_value_alone and (gold_value := value_of_answer(question)) is not None:
        question = replace(question, answers=(), value=gold_value)  # "3" may be an entity as well as a count
    said = retriever.parse_answers(prediction) if isinstance(prediction, str) else prediction
    refused = bool(not documents or why_unsure(documents)) if said is None else not "".join(said).strip()
    gold, answers, alone = list(question.answers), proposed, lone_entities_of(documents)
    names = _labels(retriever.index, [*gold, *answers])
    wanted = [names[key] for key in gold] or result_answers({"answers": [], "value": question.value})
    ranked = list(dict.fromkeys(key for document in documents for key in document.metadata["answers"]))
    metrics = question_metrics(question, answers, triples, alone=alone, value=value, ranked=ranked)
    if said is not None and wanted:
        metrics |= _text_metrics("\n".join(said) if isinstance(prediction, str) else said, wanted)
    if question.answerable and wanted:
        metrics["label_in_evidence"] = label_in_evidence(wanted, documents)
    return {
        "id": id,
        "question": question.text,
        "hops": question.hops,
        "kind": question.kind,
        "answerable": question.answerable,
        "gold": gold,
        "gold_value": question.value,
        "answers": answers,
        "value": value,
        "labels": {key: names[key] for key in (*gold, *answers) if names[key] != key},
        "seed_entities": list(question.seed_entities),
        "triples": len(triples),
        "nodes": len({key for head, _, tail in triples for key in (head, tail)} | set(alone)),
        "tokens": sum(approximate_tokens(document.page_content) for document in documents),
        "pattern": documents[0].metadata["details"].get("pattern") if documents else pattern,
        "prediction": prediction,
        "llm_calls": cost.llm_calls,
        "input_tokens": cost.input_tokens,
        "output_tokens": cost.output_tokens,
        "latency_ms": latency,
        "refused": error is None and refused,
        "reason": reason,
        "error": error,
        "metrics": metrics,
    }


def _text_metrics(said: str | Sequence[str], wanted: Sequence[str]) -> dict[str, float | None]:
    """Return the metrics of a reply. A precision above 1, of several answers on one line, counts as 1."""
    scores = score_prediction(said, wanted)
    precision, recall = min(scores["precision"], 1.0), scores["recall"]
    f1 = 2 * precision * recall / (precision + recall) if recall else 0.0
    return {f"text_{name}": value for name, value in (scores | {"precision": precision, "f1": f1}).items()}


def _labels(index: GraphIndex, keys: Sequence[str]) -> dict[str, str]:
    """Return the labels of entities. An entity that the graph lacks has its key."""
    distinct = tuple(dict.fromkeys(keys))
    graph = index.part(PartRequest(distinct)).graph
    return {key: graph.label(key) for key in distinct}


def is_verdict(reply: object) -> bool:
    """Tell whether a reply is a verdict on a claim, as `FactVerifier` gives it."""
    return isinstance(reply, Mapping) and isinstance(reply.get("verdict"), str)


def verdict_value(reply: Mapping[str, Any]) -> bool | None:
    """Return whether a claim holds by its verdict, or None if the evidence does not say.

    Example:
        >>> verdict_value({"verdict": "refuted"}), verdict_value({"verdict": "not enough evidence"})
        (False, None)
    """
    return {"supported": True, "refuted": False}.get(reply["verdict"])


def predicted_answers(reply: object) -> str | list[str]:
    """Return the answers in a reply, or "yes" or "no" for a verdict.

    A reply is a text, a list, or a list under "answers".

    Raises:
        InvalidArgumentError: If it holds no answers.

    Example:
        >>> predicted_answers({"answers": ["Spike Jonze"]}), predicted_answers({"verdict": "supported"})
        (['Spike Jonze'], ['yes'])
    """
    if isinstance(reply, Mapping) and is_verdict(reply):
        return result_answers({"answers": [], "value": verdict_value(reply)})
    answers = reply.get("answers") if isinstance(reply, Mapping) else reply
    if not isinstance(answers, str | list):
        raise InvalidArgumentError(
            f"evaluate: the answerer must return a text, a list of texts, or a mapping with such a list under "
            f"'answers', or with a 'verdict', but returned {reply!r:.200}."
        )
    return answers
