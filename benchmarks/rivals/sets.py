"""The question sets, each with one graph or several, and the facts that lead to each question's gold answers."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.zero_shot.question_sets import BuildIndex, own_graph, published_sets, walk_pattern
from kg_retrievers import GraphIndex, KnowledgeGraph, Pattern, Question, Triple
from kg_retrievers.datasets import read_questions
from kg_retrievers.questions.reading import PatternWalk, walks_of

OWN = Path(__file__).parents[1] / "own_graphs"

#: The published sets by the name that is shown.
PUBLISHED = {
    "MetaQA, 1 hop": "metaqa-1",
    "MetaQA, 2 hops": "metaqa-2",
    "MetaQA, 3 hops": "metaqa-3",
    "PathQuestion, 2 hops": "pathquestion-2",
    "PathQuestion, 3 hops": "pathquestion-3",
    "FB15k-237": "fb237",
}


class Asked(NamedTuple):
    """A question, the keys of its gold answers, and the facts of its gold walks; none if they are not known."""

    text: str
    answers: tuple[str, ...]
    facts: frozenset[Triple]


@dataclass(frozen=True)
class Part:
    """One graph and the questions to it."""

    name: str
    index: GraphIndex
    questions: list[Asked]


def published_parts(names: Sequence[str], limit: int, build: BuildIndex, seed: int) -> Iterator[tuple[str, Part]]:
    """Yield the name of each published set with its graph and `limit` of its questions, all of them if it is 0."""
    shown = {short: name for name, short in PUBLISHED.items()}
    for one in published_sets(names, 0, build, seed):
        graph = one.source.index.graph
        with_answers = [question for question in one.questions if question.answers]
        drawn = random.Random(seed).sample(with_answers, min(limit or len(with_answers), len(with_answers)))
        yield shown[one.name], Part(one.name, one.source.index, [_asked(graph, question) for question in drawn])


def own_parts(folder: Path, limit: int, build: BuildIndex, seed: int) -> Iterator[Part]:
    """Yield each hand-made graph of a folder with `limit` of its questions that have answers, all if it is 0."""
    for home in sorted(path for path in folder.iterdir() if path.is_dir()):
        index = build(own_graph(home))
        rows = (home / "questions.jsonl").read_text("utf-8").splitlines()
        read = read_questions(home / "questions.jsonl")
        asked = [
            _asked(index.graph, question, json.loads(row))
            for question, row in zip(read, filter(str.strip, rows), strict=True)
            if question.answers
        ]
        yield Part(home.name, index, random.Random(seed).sample(asked, min(limit or len(asked), len(asked))))


def _asked(graph: KnowledgeGraph, question: Question, row: dict[str, object] | None = None) -> Asked:
    pattern = question.pattern
    if row and row.get("walks"):
        pattern = walk_pattern(graph, question.seed_entities, row["walks"])
    return Asked(question.text, question.answers, gold_facts(graph, pattern, question.answers) if pattern else _NONE)


_NONE: frozenset[Triple] = frozenset()


def gold_facts(graph: KnowledgeGraph, pattern: Pattern, answers: Sequence[str]) -> frozenset[Triple]:
    """Return the facts on all walks of a pattern from its entities to the answers; none if it is more than walks."""
    found = set[Triple]()
    for walk in walks_of(pattern) or ():
        found |= _facts_on(graph, walk, set(answers))
    return frozenset(found)


def _facts_on(graph: KnowledgeGraph, walk: PatternWalk, answers: set[str]) -> set[Triple]:
    """Return the facts of a walk from its start to the answers."""
    start = walk.start.entity or walk.start.text
    layers: list[dict[Triple, tuple[str, str]]] = []  # each fact with the first and last entity of its step
    reached = {start}
    for relation, is_backward in walk.steps:
        layer = {}
        for key in sorted(reached):
            facts = graph.triples(tail=key) if is_backward else graph.triples(head=key)
            for fact in facts:
                if fact.relation == relation:
                    layer[Triple(*fact)] = (key, fact.head if is_backward else fact.tail)
        layers.append(layer)
        reached = {there for _, there in layer.values()}
    on_walk, ends = set[Triple](), answers
    for layer in reversed(layers):
        kept = {fact: ways for fact, ways in layer.items() if ways[1] in ends}
        on_walk |= kept.keys()
        ends = {here for here, _ in kept.values()}
    return on_walk
