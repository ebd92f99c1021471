"""Learns from the answers of examples whether walks may return to where they start."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from kg_retrievers.algorithms.relation_paths import path_ends
from kg_retrievers.datasets import Question
from kg_retrievers.graph import KnowledgeGraph, Known, Pattern
from kg_retrievers.graph.adjacency import label_of
from kg_retrievers.index import MASK, GraphIndex, PartRequest, find_name, mask
from kg_retrievers.questions.reading import walks_of

#: How many examples of a template are compared.
EXAMPLES_COMPARED = 5


def learn_revisits(index: GraphIndex, examples: Sequence[Question]) -> list[Question]:
    """Let the patterns of examples state whether unknowns may be the entity that they name, judged by the answers.

    Questions that differ only in their entities, with one pattern, are a template. They may if that fits more of its
    first `EXAMPLES_COMPARED` examples with answers better than it fits worse, by how many entities are only answers, or
    only found; they may not if it fits more of them worse; else the patterns are left as they are, and so are those
    that state it already, or that are no walk from one known node. Of a connected graph, only what the walks cross is
    fetched, for many examples at once; an example with more than a part holds has no say.

    Example:
        >>> from kg_retrievers.index import HashedEmbeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "by", "Jonze"), ("Adaptation", "by", "Jonze")])
        >>> pattern = Pattern.of(("Her", "by", Unknown("x")), (Unknown("y"), "by", Unknown("x")), target="y")
        >>> example = Question("What is by those who made Her?", answers=("Her", "Adaptation"), pattern=pattern)
        >>> learn_revisits(GraphIndex.build(graph, HashedEmbeddings()), [example])[0].pattern.revisits
        True
    """
    templates: dict[Hashable, list[int]] = {}
    for position, example in enumerate(examples):
        if example.pattern is not None and example.pattern.revisits is None:
            templates.setdefault(_template(example.text, example.pattern), []).append(position)
    voting: dict[tuple[str, ...], list[int]] = {}
    for positions in templates.values():
        answered = [position for position in positions if examples[position].answers]
        for position in answered[:EXAMPLES_COMPARED]:
            if (pattern := examples[position].pattern) and (steps := _steps_of(pattern)):
                voting.setdefault(tuple(relation for relation, _ in steps), []).append(position)
    votes = {
        position: 0 if part.truncated else _vote(part.graph, examples[position])
        for relations, voters in voting.items()
        for part, positions in index.parts(voters, partial(_request, relations, examples))
        for position in positions
    }
    learned = list(examples)
    for positions in templates.values():
        if total := sum(votes.get(position, 0) for position in positions):
            for position in positions:
                learned[position] = _stating(examples[position], total > 0)
    return learned


def _request(relations: Sequence[str], examples: Sequence[Question], positions: Sequence[int]) -> PartRequest:
    """Return the part that walks along some relations cross, from the known nodes of some examples."""
    patterns = [pattern for position in positions if (pattern := examples[position].pattern)]
    nodes = [node for pattern in patterns for node in pattern.nodes if isinstance(node, Known)]
    return PartRequest(
        tuple(sorted({node.entity for node in nodes if node.entity is not None})),
        len(relations),
        names=tuple(sorted({node.text for node in nodes if node.entity is None})),
        steps=tuple((relation,) for relation in relations),
    )


def _stating(example: Question, revisits: bool) -> Question:
    return replace(example, pattern=None if example.pattern is None else replace(example.pattern, revisits=revisits))


def _template(text: str, pattern: Pattern) -> Hashable:
    """Return what alike questions have in common: the question and the pattern without the names."""
    known = [node for node in pattern.nodes if isinstance(node, Known)]
    spans = [span for node in known if (span := find_name(node.text, text))]
    slots = {node: Known(f"{MASK}{position}") for position, node in enumerate(known)}
    return mask(text, spans), pattern.with_known(slots)


def _vote(graph: KnowledgeGraph, example: Question) -> int:
    """Return 1 if the answers fit better where walks may return, -1 if worse, 0 if equally well."""
    if example.pattern is None or (walk := _walk_of(graph, example.pattern)) is None:
        return 0
    answers = {graph.entities.find(answer) for answer in example.answers}
    onward, back = (_misfit(graph, walk, answers, may_return) for may_return in (False, True))
    return (back < onward) - (onward < back)


class _Walk(NamedTuple):
    """What the known node of a walk may be, and the labels of its steps."""

    starts: tuple[int, ...]
    labels: tuple[int, ...]


def _misfit(graph: KnowledgeGraph, walk: _Walk, answers: set[int], may_return: bool) -> int:
    """Return how many entities are only answers, or only ends of a walk."""
    ends: set[int] = set()
    for start in walk.starts:
        ends.update(path_ends(graph.adjacency, start, walk.labels, may_return=may_return).tolist())
    return len(ends ^ answers)


def _walk_of(graph: KnowledgeGraph, pattern: Pattern) -> _Walk | None:
    """Return the walk that a pattern is, from its only known node to its target; None if it is none."""
    if (steps := _steps_of(pattern)) is None:
        return None
    (node,) = (node for node in pattern.nodes if isinstance(node, Known))
    keys = [node.entity] if node.entity is not None else graph.entities_named(node.text) or [node.text]
    starts = tuple(id for key in keys if (id := graph.entities.find(key)) >= 0)
    relations = [graph.relations.find(relation) for relation, _ in steps]
    if not starts or min(relations) < 0:
        return None
    return _Walk(starts, tuple(label_of(id, backward) for id, (_, backward) in zip(relations, steps, strict=True)))


def _steps_of(pattern: Pattern) -> list[tuple[str, bool]] | None:
    """Return the relations from the only known node of a pattern to its target; None if it is no such walk."""
    walks = walks_of(pattern)
    return walks[0].steps if walks and len(walks) == 1 else None
