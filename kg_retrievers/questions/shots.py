"""Writes labelled examples in the words in which a language model replies to the prompt for a pattern."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kg_retrievers.datasets import Question
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import Known, Pattern, Term, Unknown, readable


def as_shot(example: Question) -> tuple[str, dict[str, Any]]:
    """Return the question of an example and the reply that a language model should give to it.

    Raises:
        InvalidArgumentError: If the example has no pattern.

    Example:
        >>> from kg_retrievers import Pattern
        >>> pattern = Pattern.of(("Her", "directed_by", Unknown("who")), target="who")
        >>> as_shot(Question("Who directed Her?", pattern=pattern))[1]["triples"]
        [['Her', 'directed_by', 'UNKNOWN who 1']]
    """
    pattern = example.pattern
    if pattern is None:
        raise InvalidArgumentError(f"as_shot: the example {example.text!r:.100} has no pattern to show.")
    relations = dict.fromkeys(triple.relation for triple in pattern.triples)
    absent_ends = (node for triple in pattern.absent for node in (triple.head, triple.tail))
    node_words = _words(list(dict.fromkeys([*pattern.nodes, *absent_ends])))
    relation_words = _words(list(relations), kind="relation")
    triples = [
        [node_words[head], relation_words[relation], node_words[tail]] for head, relation, tail in pattern.triples
    ]
    segments = [f"{head} {readable(relation)} {tail}" for head, relation, tail in triples]
    target = next((node_words[node] for node in pattern.nodes if _is_named(node, pattern.target)), None)
    reply = {"segments": segments, "triples": triples, "target": target}
    return example.text, reply | _operations(pattern, node_words)


def _operations(pattern: Pattern, words: dict[Term, str]) -> dict[str, Any]:
    """Return what a reply says beside the triples; nothing where a pattern has no more than these."""
    names = {node.name: word for node, word in words.items() if isinstance(node, Unknown)}
    said: dict[str, Any] = {}
    if pattern.conditions:
        rows = [condition.to_dict() for condition in pattern.conditions]
        said["conditions"] = [[names[row["unknown"]], row["operator"], row["value"]] for row in rows]
    if pattern.absent:
        relations = _words(list(dict.fromkeys(triple.relation for triple in pattern.absent)), kind="other relation")
        said["absent"] = [[words[head], relations[relation], words[tail]] for head, relation, tail in pattern.absent]
    if pattern.operation is not None:
        said["operation"] = pattern.operation.to_dict()
        if pattern.operation.by:
            said["operation"]["by"] = [names[name] for name in pattern.operation.by]
    return said


def _is_named(node: Term, target: str | None) -> bool:
    return isinstance(node, Unknown) and node.name == target


def _words(terms: list[Term], kind: str = "") -> dict[Term, str]:
    """Return how a reply writes each term: a name, or UNKNOWN, its kind and a number."""
    counts: Counter[str] = Counter()
    words: dict[Term, str] = {}
    for term in terms:
        if isinstance(term, Known):
            words[term] = _quoted(term.text)
        else:
            of_kind = kind or _kind(term)
            counts[of_kind] += 1
            words[term] = f"UNKNOWN {of_kind} {counts[of_kind]}"
    return words


def _kind(unknown: Unknown) -> str:
    """Return the type of an unknown, else its name without a number."""
    return unknown.type or readable(unknown.name).rstrip("0123456789 ") or "thing"


def _quoted(name: str) -> str:
    """Put a name into quotes that would be read as an unknown."""
    return f'"{name}"' if name.casefold().startswith(("unk", "?")) else name
