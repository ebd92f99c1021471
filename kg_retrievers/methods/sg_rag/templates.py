"""Makes templates, patterns whose known nodes are slots, from the schema of a graph and from examples with answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import cast

import numpy as np

from kg_retrievers.algorithms.relation_paths import relation_path_ends
from kg_retrievers.datasets import Question, check_questions
from kg_retrievers.errors import EntityLinkingError, InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph, Known, Pattern, Term, Unknown, readable
from kg_retrievers.graph.adjacency import is_backward, label_count, label_sources, relation_of, reversed_label
from kg_retrievers.graph.columns import Array
from kg_retrievers.index import MASK, EntityLinker, GraphIndex, QuestionEntity, linker_of, mask, question_entities

#: The most relations of a walk: the questions of MetaQA need chains of three facts.
MAX_HOPS = 3

#: How many of the examples that differ only in their entities are tried for one template.
EXAMPLES_TRIED = 10

#: How many examples decide whether walks may return to their start.
EXAMPLES_COMPARED = 200

#: Walks of an example are not followed further once they have crossed more adjacency entries than this.
MAX_ENTRIES = 50_000


def schema_templates(graph: KnowledgeGraph, *, max_hops: int = MAX_HOPS, max_templates: int = 10_000) -> list[Pattern]:
    """Return the questions that one walk over a graph answers, as patterns with one slot.

    A template is a walk over the relations of the graph, each crossed one way or the other, that leads somewhere: the
    ends of one relation and the starts of the next have entities in common, and a walk that goes back by the relation
    that it came by can end elsewhere. The slot, `Known("_")`, is the start of the walk; it has the type that all typed
    entities there have, if they have one in common. The target is the end of the walk.

    Args:
        graph: The graph.
        max_hops: The most relations of a walk, 1 or more.
        max_templates: The most templates; those of more relations are left out first.

    Raises:
        InvalidArgumentError: If `max_hops` or `max_templates` is below 1.

    Example:
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Jonze"), ("Jackass", "directed_by", "Jonze")])
        >>> for template in schema_templates(graph, max_hops=2):
        ...     print([tuple(getattr(term, "text", "?") for term in triple) for triple in template.triples])
        [('_', 'directed_by', '?')]
        [('?', 'directed_by', '_')]
        [('_', 'directed_by', '?'), ('?', 'directed_by', '?')]
    """
    if max_hops < 1 or max_templates < 1:
        raise InvalidArgumentError(
            f"schema_templates: max_hops and max_templates must be 1 or more, but got {max_hops} and {max_templates}."
        )
    adjacency, relations = graph.adjacency, list(graph.relations)
    degrees = np.diff(adjacency.indptr)
    kinds, counts = np.unique(
        np.repeat(np.arange(len(degrees)), degrees) * np.int64(label_count(len(relations))) + adjacency.labels,
        return_counts=True,
    )
    forks = set(np.unique(kinds[counts > 1] % label_count(len(relations))).tolist())  # labels that an entity has twice
    templates: list[Pattern] = []
    slots: dict[int, Known] = {}
    for path, _ in relation_path_ends(adjacency, np.flatnonzero(degrees), max_hops=max_hops):
        if any(onward == reversed_label(label) and onward not in forks for label, onward in pairwise(path)):
            continue
        first = path[0]
        if first not in slots:
            starts = np.unique(label_sources(graph.edges, first))
            slots[first] = Known(MASK, _common_type(graph, starts))
        templates.append(walk_pattern(slots[first], _steps(relations, path)))
        if len(templates) == max_templates:
            break
    return templates


def _common_type(graph: KnowledgeGraph, entities: Array) -> str | None:
    """Return the rarest of the types that all typed ones among the entities have."""
    typed = np.setdiff1d(entities, graph.untyped)
    members = ((kind, graph.type_entities(kind)) for kind in range(len(graph.types)))
    common = [(len(of_kind), kind) for kind, of_kind in members if len(typed) and np.isin(typed, of_kind).all()]
    return graph.types[min(common)[1]] if common else None


def _steps(relations: Sequence[str], path: Sequence[int]) -> list[tuple[str, bool]]:
    """Return the labels of a walk as steps of `walk_pattern`."""
    return [(relations[relation_of(label)], not is_backward(label)) for label in path]


def walk_pattern(start: Known, steps: Sequence[tuple[str, bool]]) -> Pattern:
    """Return the pattern of a walk from a known node; a step is a relation, and whether it goes from head to tail.

    Example:
        >>> walk_pattern(Known("Spike Jonze"), [("directed_by", False)]).to_dict()["triples"]
        [[{'unknown': 'entity 1'}, 'directed_by', 'Spike Jonze']]
    """
    nodes: list[Term] = [start, *(Unknown(f"entity {hop}") for hop in range(1, len(steps) + 1))]
    triples = [
        (here, relation, there) if forward else (there, relation, here)
        for (here, there), (relation, forward) in zip(pairwise(nodes), steps, strict=True)
    ]
    return Pattern.of(*triples, target=f"entity {len(steps)}")


def label_examples(
    index: GraphIndex, examples: Sequence[Question], *, max_hops: int = MAX_HOPS, linker: EntityLinker | None = None
) -> list[Question]:
    """Give examples without a pattern the template whose answers come closest to theirs.

    All walks of `schema_templates` from an entity that the question names are tried. Questions that differ only in
    their entities get the same template: the one with the highest sum, over the first `EXAMPLES_TRIED` of them, of
    F1 = 2 * hits / (found + answers); of equal ones the shortest, then the one whose relations are nearest to the words
    of the question. A walk finds what its pattern finds in a database, so that the right template has an F1 of 1.

    Cost: some milliseconds for each question that is tried.

    Args:
        index: The indexed graph.
        examples: Questions with patterns, which are left as they are, or with answers.
        max_hops: The most relations of a walk.
        linker: Finds the entities of questions where they are not given.

    Returns:
        The examples in their order. An example stays without a pattern if it names no entity, or if no walk reaches one
        of its answers.

    Raises:
        InvalidArgumentError: If `examples` is no list of questions.

    Example:
        >>> from kg_retrievers.index import default_embeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Jonze"), ("Her", "starring", "Adams")])
        >>> examples = [Question("Who directed Her?", answers=("Jonze",))]
        >>> label_examples(GraphIndex.build(graph, default_embeddings()), examples)[0].pattern.to_dict()["triples"]
        [['Her', 'directed_by', {'unknown': 'entity 1'}]]
    """
    check_questions(examples, "label_examples")
    labelled = list(examples)
    relations = index.graph.relations
    for masked, group in _alike(index.graph, examples, linker or linker_of(index)).items():
        if not (closest := _closest_walks(index.graph, examples, group, max_hops)):
            continue
        slot, path = closest[0] if len(closest) == 1 else _nearest_walk(index, masked, closest)
        for position, entities in group.items():
            example, entity = examples[position], entities[slot]
            start = Known(example.text[entity.start : entity.end], entity=entity.term.entity)
            labelled[position] = replace(example, pattern=walk_pattern(start, _steps(relations, path)))
    return labelled


#: The entities that examples name, in the order of their text, by the position of each example.
_Named = dict[int, list[QuestionEntity]]


def _alike(graph: KnowledgeGraph, examples: Sequence[Question], linker: EntityLinker) -> dict[str, _Named]:
    """Return the examples to label by their text without the entities."""
    groups: dict[str, _Named] = {}
    for position, example in enumerate(examples):
        if example.pattern is not None or not example.answers:
            continue
        given = [seed for seed in example.seed_entities if seed in graph.entities]
        try:
            entities = question_entities(linker, example.text, given)
        except EntityLinkingError:
            continue
        named = sorted((entity for entity in entities if entity.start < entity.end), key=lambda e: e.start)
        masked = mask(example.text, [(entity.start, entity.end) for entity in named])
        groups.setdefault(masked, {})[position] = named
    return groups


def allows_revisit(graph: KnowledgeGraph, examples: Sequence[Question]) -> bool:
    """Tell whether walks may return to the entity that they start from, judged by the answers of examples.

    They may if that fits more examples better than it fits worse. `EXAMPLES_COMPARED` of the examples whose pattern is
    a walk are compared, by how many entities are only answers, or only ends of the walk. Without such examples walks
    may not return: the other films of a director are not the film that the question names.

    Example:
        >>> graph = KnowledgeGraph.from_triples([("Ann", "child", "Bob"), ("Bob", "parent", "Ann")])
        >>> pattern = walk_pattern(Known("Ann"), [("child", True), ("parent", True)])
        >>> allows_revisit(graph, [Question("Who is a parent of the child of Ann?", answers=("Ann",), pattern=pattern)])
        True
    """
    given = [example for example in examples if example.pattern is not None and example.answers]
    votes = 0
    for example in given[:: -(-len(given) // EXAMPLES_COMPARED) or 1]:
        ends = (_walk_ends(graph, cast(Pattern, example.pattern), may) for may in (True, False))
        back, onward = (len(there ^ set(example.answers)) for there in ends)
        votes += (back < onward) - (onward < back)
    return votes > 0


def _walk_ends(graph: KnowledgeGraph, pattern: Pattern, may_revisit: bool) -> set[str]:
    """Return the answers of a pattern that is a walk from its only known node; none where it is no walk."""
    known = [node for node in pattern.nodes if isinstance(node, Known)]
    if len(known) != 1:
        return set()
    (node,) = known
    starts = {node.entity} if node.entity is not None else set(graph.entities_named(node.text)) or {node.text}
    here, at, left = starts, cast(Term, node), list(pattern.triples)
    while left:
        triple = next((triple for triple in left if at in (triple.head, triple.tail)), None)
        if triple is None or not isinstance(triple.relation, Known):
            return set()
        left.remove(triple)
        relation, forward = triple.relation.text, triple.head == at
        at = triple.tail if forward else triple.head
        if forward:
            here = {fact.tail for key in here for fact in graph.triples(head=key, relation=relation)}
        else:
            here = {fact.head for key in here for fact in graph.triples(relation=relation, tail=key)}
        here -= set() if may_revisit else starts
    return here if isinstance(at, Unknown) and at.name == pattern.target else set()


#: The position of an entity among those that a question names, and the labels of a walk from there.
_Walk = tuple[int, tuple[int, ...]]


def _closest_walks(graph: KnowledgeGraph, examples: Sequence[Question], group: _Named, max_hops: int) -> list[_Walk]:
    """Return the shortest of the walks whose ends are closest to the answers of examples that are alike."""
    sums: dict[_Walk, float] = {}
    for position in list(group)[:EXAMPLES_TRIED]:
        for walk, f1 in _walk_scores(graph, examples[position], group[position], max_hops).items():
            sums[walk] = sums.get(walk, 0.0) + f1
    ranks = {walk: (-round(total, 9), len(walk[1])) for walk, total in sums.items()}
    best = min(ranks.values(), default=None)
    return sorted(walk for walk in ranks if ranks[walk] == best)


def _walk_scores(
    graph: KnowledgeGraph, example: Question, entities: Sequence[QuestionEntity], max_hops: int
) -> dict[_Walk, float]:
    """Return the F1 of each walk that reaches an answer."""
    answers = {graph.entities.find(answer) for answer in example.answers}
    scores: dict[_Walk, float] = {}
    for slot, entity in enumerate(entities):
        for key in entity.entities[: entity.best]:
            start = graph.entities.find(key)
            walks = relation_path_ends(
                graph.adjacency, np.array([start]), max_hops=max_hops, max_entries=MAX_ENTRIES, without=start
            )
            for path, ends in walks:
                if hits := len(answers.intersection(ends.tolist())):
                    f1 = 2 * hits / (len(ends) + len(example.answers))
                    scores[slot, path] = max(scores.get((slot, path), 0.0), f1)
    return scores


def _nearest_walk(index: GraphIndex, masked: str, walks: Sequence[_Walk]) -> _Walk:
    """Return the walk whose relations are nearest to the words of a question, the first of equal ones."""
    relations = index.graph.relations
    worded = [" ".join(readable(relations[relation_of(label)]) for label in path) for _, path in walks]
    question, *vectors = index.embed([masked, *worded])
    return walks[int(np.argmax(np.round(np.array(vectors) @ question, 6)))]
