"""Gives examples that hold answers alone the pattern whose answers come closest to theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count, pairwise

import numpy as np

from kg_retrievers.algorithms.path_mining import WALK_ENTRIES, NamedQuestion, mine_conjunctions
from kg_retrievers.algorithms.relation_paths import relation_path_ends
from kg_retrievers.datasets import Question, check_questions
from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.graph import KnowledgeGraph, Known, Pattern, Term, Unknown, readable
from kg_retrievers.graph.adjacency import is_backward, relation_of
from kg_retrievers.index import (
    EntityLinker,
    GraphIndex,
    PartRequest,
    QuestionEntity,
    linker_of,
    mask,
    question_entities,
)
from kg_retrievers.index.graph_index import LEARNED_FACTS

#: The most relations of a walk: the questions of MetaQA need chains of three facts.
MAX_HOPS = 3

#: How many of the examples that differ only in their entities are tried for one template.
EXAMPLES_TRIED = 10

#: The position of an entity among those that a question names, and the labels of a walk from there.
_Walk = tuple[int, tuple[int, ...]]

#: The entities that examples name, in the order of their text, by the position of each example.
_Named = dict[int, list[QuestionEntity]]


def label_examples(
    index: GraphIndex, examples: Sequence[Question], *, max_hops: int = MAX_HOPS, linker: EntityLinker | None = None
) -> list[Question]:
    """Give examples without a pattern the template whose answers come closest to theirs.

    All walks of up to `max_hops` relations from an entity that the question names are tried. If it names several, so
    are stars: one walk from each, which end at the same entity (see `mine_conjunctions`). Questions that differ only in
    their entities get the same template. It is the one with the highest sum, over the first `EXAMPLES_TRIED` of them,
    of F1 = 2 * hits / (found + answers). Among equal templates the one with the most entities wins, then the one with
    the shortest walks, then the one whose relations are nearest to the words of the question. Walks may or may not
    return to their start, whichever fits better. A walk finds the same entities as its pattern in a database, so that
    the right template has an F1 of 1.

    Cost: some milliseconds for each question that is tried, and up to some seconds for each template of several
    entities.

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
        >>> from kg_retrievers.index import HashedEmbeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "directed_by", "Jonze"), ("Her", "starring", "Adams")])
        >>> examples = [Question("Who directed Her?", answers=("Jonze",))]
        >>> label_examples(GraphIndex.build(graph, HashedEmbeddings()), examples)[0].pattern.to_dict()["triples"]
        [['Her', 'directed_by', {'unknown': 'entity 1'}]]
    """
    check_questions(examples, "label_examples")
    labelled = list(examples)
    relations = index.graph.relations
    for masked, group in _alike(index, examples, linker or linker_of(index)).items():
        if not (closest := _closest_of(index, examples, group, max_hops)):
            continue
        walks = closest[0] if len(closest) == 1 else _nearest(index, masked, closest)
        for position, entities in group.items():
            example = examples[position]
            arms = []
            for slot, path in walks:
                name = example.text[entities[slot].start : entities[slot].end]
                steps = [(relations[relation_of(label)], not is_backward(label)) for label in path]
                arms.append((Known(name, entity=entities[slot].term.entity), steps))
            labelled[position] = replace(example, pattern=star_pattern(arms))
    return labelled


def star_pattern(arms: Sequence[tuple[Known, Sequence[tuple[str, bool]]]]) -> Pattern:
    """Return the pattern of walks from known nodes that end at the same unknown one.

    A step of a walk is a relation, and whether it goes from head to tail.

    Example:
        >>> arms = [(Known("Jonze"), [("directed_by", False)]), (Known("Adams"), [("starring", False)])]
        >>> star_pattern(arms).to_dict()["triples"]
        [[{'unknown': 'entity 1'}, 'directed_by', 'Jonze'], [{'unknown': 'entity 1'}, 'starring', 'Adams']]
    """
    numbers = count(1)
    target = Unknown(f"entity {1 + sum(len(steps) - 1 for _, steps in arms)}")
    triples: list[tuple[Term, str, Term]] = []
    for start, steps in arms:
        nodes: list[Term] = [start, *(Unknown(f"entity {next(numbers)}") for _ in steps[1:]), target]
        for (here, there), (relation, forward) in zip(pairwise(nodes), steps, strict=True):
            triples.append((here, relation, there) if forward else (there, relation, here))
    return Pattern.of(*triples, target=target.name)


def _alike(index: GraphIndex, examples: Sequence[Question], linker: EntityLinker) -> dict[str, _Named]:
    """Return the examples to label by their text without the entities."""
    groups: dict[str, _Named] = {}
    wanted = [at for at, example in enumerate(examples) if example.pattern is None and example.answers]

    def given(positions: Sequence[int]) -> PartRequest:
        return PartRequest(tuple(sorted({seed for at in positions for seed in examples[at].seed_entities})))

    for part, positions in index.parts(wanted, given):
        for position in positions:
            entities = _named_entities(part.graph, linker, examples[position])
            if entities is not None:
                spans = [(entity.start, entity.end) for entity in entities]
                groups.setdefault(mask(examples[position].text, spans), {})[position] = entities
    return groups


def _named_entities(graph: KnowledgeGraph, linker: EntityLinker, example: Question) -> list[QuestionEntity] | None:
    """Return the entities that an example names, in the order of its text; None where it names none."""
    given = [seed for seed in example.seed_entities if seed in graph.entities]
    try:
        entities = question_entities(linker, example.text, given)
    except EntityLinkingError:
        return None
    return sorted((entity for entity in entities if entity.start < entity.end), key=lambda e: e.start)


def _closest_of(
    index: GraphIndex, examples: Sequence[Question], group: _Named, max_hops: int
) -> list[tuple[_Walk, ...]]:
    """Return what `_closest` does; nothing where too many facts of a connected graph are around the examples."""
    tried = list(group)[:EXAMPLES_TRIED]
    keys = {key for at in tried for entity in group[at] for key in entity.entities[: entity.best]}
    answers = {answer for at in tried for answer in examples[at].answers}
    around = PartRequest(tuple(sorted(keys)), max_hops, also=tuple(sorted(answers)), max_facts=LEARNED_FACTS)
    part = index.part(around)
    return [] if part.truncated else _closest(part.graph, examples, group, max_hops)


def _closest(
    graph: KnowledgeGraph, examples: Sequence[Question], group: _Named, max_hops: int
) -> list[tuple[_Walk, ...]]:
    """Return the simplest of the walks and stars whose ends are closest to the answers of examples that are alike."""
    tried = list(group)[:EXAMPLES_TRIED]
    sums: dict[tuple[_Walk, ...], float] = {}
    for may_return in (False, True):
        of_rule: dict[_Walk, float] = {}
        for position in tried:
            for walk, f1 in _walk_scores(graph, examples[position], group[position], max_hops, may_return).items():
                of_rule[walk] = of_rule.get(walk, 0.0) + f1
        for walk, total in of_rule.items():
            sums[(walk,)] = max(sums.get((walk,), 0.0), total)
    named = [_named_question(graph, examples[position], group[position]) for position in tried]
    if {len(one.entities) for one in named} not in ({0}, {1}) and len({len(one.entities) for one in named}) == 1:
        for paths, total in mine_conjunctions(graph.adjacency, named, max_hops=max_hops).items():
            sums[tuple(enumerate(paths))] = total
    ranks = {walks: (-round(total, 9), *_simplicity(walks)) for walks, total in sums.items()}
    best = min(ranks.values(), default=None)
    return sorted(walks for walks in ranks if ranks[walks] == best)


def _simplicity(walks: tuple[_Walk, ...]) -> tuple[int, int, int]:
    hops = [len(path) for _, path in walks]
    return -len(walks), max(hops), sum(hops)


def _named_question(graph: KnowledgeGraph, example: Question, entities: Sequence[QuestionEntity]) -> NamedQuestion:
    find = graph.entities.find
    named = [[find(key) for key in entity.entities[: entity.best]] for entity in entities]
    return NamedQuestion(named, [id for key in example.answers if (id := find(key)) >= 0], len(example.answers))


def _walk_scores(
    graph: KnowledgeGraph, example: Question, entities: Sequence[QuestionEntity], max_hops: int, may_return: bool
) -> dict[_Walk, float]:
    """Return the F1 of each walk that reaches an answer."""
    answers = {graph.entities.find(answer) for answer in example.answers}
    scores: dict[_Walk, float] = {}
    for slot, entity in enumerate(entities):
        for key in entity.entities[: entity.best]:
            start = graph.entities.find(key)
            walks = relation_path_ends(
                graph.adjacency,
                np.array([start]),
                max_hops=max_hops,
                max_entries=WALK_ENTRIES,
                without=-1 if may_return else start,
            )
            for path, ends in walks:
                if hits := len(answers.intersection(ends.tolist())):
                    f1 = 2 * hits / (len(ends) + len(example.answers))
                    scores[slot, path] = max(scores.get((slot, path), 0.0), f1)
    return scores


def _nearest(index: GraphIndex, masked: str, stars: Sequence[tuple[_Walk, ...]]) -> tuple[_Walk, ...]:
    """Return the walks whose relations are nearest to the words of a question, the first of equal ones."""
    relations = index.graph.relations
    worded = []
    for walks in stars:
        labels = [label for _, path in walks for label in path]
        worded.append(" ".join(readable(relations[relation_of(label)]) for label in labels))
    question, *vectors = index.embed([masked, *worded])
    return stars[int(np.argmax(np.round(np.array(vectors) @ question, 6)))]
