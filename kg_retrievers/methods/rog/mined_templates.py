"""The templates of labelled questions, and the relation paths mined from each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kg_retrievers.algorithms.path_mining import LabelledQuestion, NamedQuestion, mine_conjunctions, mine_relation_paths
from kg_retrievers.datasets import Question
from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.graph import KnowledgeGraph
from kg_retrievers.index import EntityLinker, GraphIndex, PartRequest, mask, question_entities
from kg_retrievers.index.graph_index import LEARNED_FACTS

#: How many questions of a template its relation paths are mined from.
EXAMPLES_MINED = 10


class MinedStep(NamedTuple):
    """A relation path of a template.

    Attributes:
        labels: One a hop.
        revisits: Whether its walks may return to where they start, or None where nothing tells.
        entity: The position of the name that it starts from, or None for any.
    """

    labels: tuple[int, ...]
    revisits: bool | None
    entity: int | None


class Mined(NamedTuple):
    """Relation paths that belong together, one or those of a conjunction, and their mean F1 on the examples."""

    paths: tuple[MinedStep, ...]
    f1: float


class MinedQuestion(NamedTuple):
    """A labelled question, by keys.

    Attributes:
        entities: What each of its names may mean, in the order of its text.
        answers: Those of its answers that the graph holds, at least one.
        size: How many answers it has in all.
    """

    entities: tuple[tuple[str, ...], ...]
    answers: tuple[str, ...]
    size: int


def read_templates(
    index: GraphIndex, examples: Sequence[Question], linker: EntityLinker
) -> dict[str, list[MinedQuestion]]:
    """Return the first `EXAMPLES_MINED` examples of each template, a question without its entities.

    Left out are examples that name no entity, or have no answer of the graph.
    """
    templates: dict[str, list[MinedQuestion]] = {}
    parts = index.parts(examples, _named)
    read = [_read(part.graph, linker, example) for part, some in parts for example in some]
    for masked, question in filter(None, read):
        if question.answers and len(templates.get(masked, ())) < EXAMPLES_MINED:
            templates.setdefault(masked, []).append(question)
    return templates


def _named(examples: Sequence[Question]) -> PartRequest:
    """Return the entities that examples give, and their answers."""
    return PartRequest(
        tuple(sorted({key for example in examples for key in (*example.seed_entities, *example.answers)}))
    )


def _read(graph: KnowledgeGraph, linker: EntityLinker, example: Question) -> tuple[str, MinedQuestion] | None:
    try:
        given = [seed for seed in example.seed_entities if seed in graph.entities]
        entities = question_entities(linker, example.text, given)
    except EntityLinkingError:
        return None
    masked = mask(example.text, [(entity.start, entity.end) for entity in entities])
    answers = tuple(answer for answer in example.answers if answer in graph.entities)
    entities.sort(key=lambda entity: entity.start)
    named = tuple(entity.entities[: entity.best] for entity in entities)
    return masked, MinedQuestion(named, answers, len(example.answers))


def mine_template(index: GraphIndex, questions: Sequence[MinedQuestion], *, max_hops: int) -> list[Mined]:
    """Return the relation paths that answer the questions of a template, best first.

    Where the questions name several entities, and walks from each of them have ends in common that are the answers as
    well as the ends of any single relation path are, only these walks are returned. Over a connected graph, none are
    where more than `LEARNED_FACTS` facts are around each of the questions.
    """
    parts = index.parts(questions, lambda some: _around(some, max_hops))
    mined = [_mine(part.graph, some, max_hops=max_hops) for part, some in parts if not part.truncated]
    return max(mined, key=lambda paths: paths[0].f1 if paths else 0.0, default=[])


def _around(questions: Sequence[MinedQuestion], max_hops: int) -> PartRequest:
    """Return what walks from the entities of questions may cross."""
    keys = {key for one in questions for keys in one.entities for key in keys}
    answers = {key for one in questions for key in one.answers}
    return PartRequest(tuple(sorted(keys)), max_hops, also=tuple(sorted(answers)), max_facts=LEARNED_FACTS)


def _mine(graph: KnowledgeGraph, mined: Sequence[MinedQuestion], *, max_hops: int) -> list[Mined]:
    find, adjacency = graph.entities.find, graph.adjacency
    questions = [
        NamedQuestion(
            [[find(key) for key in keys] for keys in one.entities],
            [find(key) for key in one.answers],
            one.size,
        )
        for one in mined
    ]
    flat = [
        LabelledQuestion(list(dict.fromkeys(id for ids in one.entities for id in ids)), one.answers, one.size)
        for one in questions
    ]
    single = [
        Mined((MinedStep(path.labels, path.revisits, None),), path.f1)
        for path in mine_relation_paths(adjacency, flat, max_hops=max_hops)
    ]
    names = {len(one.entities) for one in questions}
    if names == {1} or len(names) > 1:
        return single
    sums = mine_conjunctions(adjacency, questions, max_hops=max_hops)
    joined = [
        Mined(tuple(MinedStep(path, None, entity) for entity, path in enumerate(paths)), total / len(questions))
        for paths, total in sums.items()
    ]
    joined.sort(key=lambda one: (-one.f1, sum(len(path.labels) for path in one.paths), one.paths[0].labels))
    best = joined[0].f1 if joined else 0.0
    return joined[:1] if best > 0 and best >= max((one.f1 for one in single), default=0.0) else single
