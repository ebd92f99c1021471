"""Questions that a graph cannot answer, made from questions that it can."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from random import Random

from kg_retrievers.algorithms.relation_paths import path_ends
from kg_retrievers.datasets import Question, check_questions
from kg_retrievers.errors import InvalidArgumentError, named_arguments
from kg_retrievers.graph import KnowledgeGraph, Known, Pattern
from kg_retrievers.graph.adjacency import MAX_COUNT, label_of, reversed_label
from kg_retrievers.graph.validation import check_integer
from kg_retrievers.index.embeddings import folded
from kg_retrievers.questions.reading import walks_of

#: The kinds of questions that are made, in turn.
ABSENT_ENTITY, ABSENT_RELATION, EMPTY_RESULT = "absent entity", "absent relation", "empty result"

#: How many names are spliced, or entities looked at, for one question before the next one is taken.
TRIES = 300


@dataclass(frozen=True)
class _Source:
    """A question, its topic as the text and the pattern name it, and the walk that the pattern describes."""

    question: Question
    topic: int
    start: int
    end: int
    node: Known | None
    labels: tuple[int, ...]  # of `KnowledgeGraph.adjacency`, hop by hop

    @property
    def name(self) -> str:
        return self.question.text[self.start : self.end]

    def about(self, name: str, seeds: tuple[str, ...], kind: str) -> Question:
        """Return the question about another topic."""
        text, pattern = self.question.text, self.question.pattern
        if pattern and self.node:
            pattern = pattern.with_nodes({self.node: Known(name, self.node.type)})
        text = text[: self.start] + name + text[self.end :]
        return Question(text, seed_entities=seeds, pattern=pattern, kind=kind, answerable=False)


@named_arguments
def unanswerable_questions(
    questions: Sequence[Question], graph: KnowledgeGraph, number: int, *, seed: int = 0
) -> list[Question]:
    """Make questions that a graph cannot answer from questions that it can, by another topic.

    In turn, as far as the questions allow:

    - "absent entity": the topic's name gives way to one that the graph does not hold, spliced from that name and the
      name of another topic: "Tom Kidman". There are no `seed_entities`, as there is no such entity.
    - "absent relation": the topic gives way to an entity that shares a relation with it, but not the first relation
      asked for: the director of a film whose director the graph does not tell.
    - "empty result": the topic gives way to an entity that has this relation, but from which the pattern leads nowhere
      further, though it may pass the same entity twice: the writers of the other films of a director who made one.

    The last two need a pattern that walks from the topic along relations of the graph, in stored direction. The third
    needs one of two triples or more. The questions read like the set they are made from. So they show whether a method
    sees gaps of the graph, not whether it understands a strange question.

    Args:
        questions: Answerable questions that name their first seed entity; others are passed over.
        graph: The graph.
        number: How many to make.
        seed: Of all that is drawn.

    Returns:
        The questions, with `answerable=False`, no answers, and what they are for as `kind`.

    Raises:
        InvalidArgumentError: If `number` is below 1 or above 2,147,483,647, or fewer questions can be made.

    Example:
        >>> from kg_retrievers.sample import load_graph, load_questions
        >>> made = unanswerable_questions(load_questions(), load_graph(), 3)
        >>> [(question.kind, question.answerable, question.answers) for question in made][0]
        ('absent entity', False, ())
    """
    check_questions(questions, "unanswerable_questions")
    check_integer(number, "unanswerable_questions: number", 1, MAX_COUNT)
    check_integer(seed, "unanswerable_questions: seed", 0)
    random = Random(seed)
    sources = [source for question in questions if (source := _source(question, graph))]
    random.shuffle(sources)
    kinds = [
        _of_absent_entities(sources, graph, random),
        _moved(sources, graph, random, ABSENT_RELATION, _lacks_relation),
        _moved([one for one in sources if len(one.labels) > 1], graph, random, EMPTY_RESULT, _leads_nowhere),
    ]
    in_turn = chain.from_iterable(zip_longest(*kinds))
    made = list(islice(filter(None, in_turn), number))
    if len(made) < number:
        raise InvalidArgumentError(
            f"unanswerable_questions: wanted {number}, but only {len(made)} can be made of {len(questions)} questions. "
            "Ask for fewer, or give more questions with seed_entities and patterns."
        )
    return made


def _source(question: Question, graph: KnowledgeGraph) -> _Source | None:
    key = question.seed_entities[0] if question.seed_entities else ""
    topic = graph.entities.find(key)
    if topic < 0 or not question.answerable:
        return None
    names = (graph.label(key), key, *graph.aliases(key))
    for name in names:
        if found := re.search(rf"(?<!\w){re.escape(name)}(?!\w)", question.text, re.IGNORECASE):
            nodes = question.pattern.nodes if question.pattern else ()
            node = next((node for node in nodes if isinstance(node, Known) and node.text in names), None)
            labels = _walk_labels(question.pattern, node, graph) if question.pattern and node else ()
            return _Source(question, topic, *found.span(), node, labels)
    return None


def _walk_labels(pattern: Pattern, topic: Known, graph: KnowledgeGraph) -> tuple[int, ...]:
    """Return the walk from the topic that a pattern describes; none where it is no walk in the graph's own words."""
    match walks_of(pattern):
        case [(start, steps)] if start == topic:
            labels = [(graph.relations.find(relation), backward) for relation, backward in steps]
            return tuple(label_of(*label) for label in labels) if all(id >= 0 for id, _ in labels) else ()
    return ()


def _of_absent_entities(sources: Sequence[_Source], graph: KnowledgeGraph, random: Random) -> Iterator[Question]:
    taken = {folded(name) for table in (graph.names, graph.entities) for name in table}
    for source in sources:
        for _ in range(TRIES):
            other = random.choice(sources).name
            name = source.name[: _middle(source.name)] + other[_middle(other) :]
            if folded(name) not in taken:
                yield source.about(name, (), ABSENT_ENTITY)
                break


def _middle(name: str) -> int:
    """Return where to cut a name: between two words, as near to its middle as possible, else within its only word."""
    gaps = [at for at, character in enumerate(name) if character in " _" and at]
    return min(gaps, key=lambda at: abs(2 * at - len(name)), default=(len(name) + 1) // 2)


def _moved(
    sources: Sequence[_Source],
    graph: KnowledgeGraph,
    random: Random,
    kind: str,
    fits: Callable[[KnowledgeGraph, _Source, int], bool],
) -> Iterator[Question]:
    """Yield each question about another entity that fits; no other entity has the label of that one."""
    for source in sources:
        for _ in range(TRIES if source.labels else 0):
            entity = random.randrange(len(graph.entities))
            key = graph.entities[entity]
            is_other = entity != source.topic and graph.entities_named(graph.label(key)) == [key]
            if is_other and fits(graph, source, entity):
                yield source.about(graph.label(key), (key,), kind)
                break


def _lacks_relation(graph: KnowledgeGraph, source: _Source, entity: int) -> bool:
    """Tell whether an entity shares a relation with the topic, but not the first relation asked for."""
    found = set(_labels(graph, entity))
    either_way = (source.labels[0], reversed_label(source.labels[0]))
    return not found.isdisjoint(_labels(graph, source.topic)) and found.isdisjoint(either_way)


def _leads_nowhere(graph: KnowledgeGraph, source: _Source, entity: int) -> bool:
    """Tell whether an entity has the first relation, but the walk leads from it to nothing else."""
    reached = path_ends(graph.adjacency, entity, source.labels, may_return=True).tolist()
    return source.labels[0] in _labels(graph, entity) and set(reached) <= {entity}


def _labels(graph: KnowledgeGraph, entity: int) -> list[int]:
    labels: list[int] = graph.adjacency.labels[graph.adjacency.row(entity)].tolist()
    return labels
