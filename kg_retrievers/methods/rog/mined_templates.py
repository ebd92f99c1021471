"""The templates of labelled questions, and the relation paths mined from each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kg_retrievers.algorithms.conjunctions import NamedQuestion, mine_conjunctions
from kg_retrievers.algorithms.path_mining import LabelledQuestion, mine_relation_paths
from kg_retrievers.datasets import Question
from kg_retrievers.errors import EntityLinkingError
from kg_retrievers.graph import Adjacency, KnowledgeGraph
from kg_retrievers.index import EntityLinker, mask, question_entities

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


def read_templates(
    graph: KnowledgeGraph, examples: Sequence[Question], linker: EntityLinker
) -> dict[str, list[NamedQuestion]]:
    """Return the first `EXAMPLES_MINED` examples of each template, a question without its entities.

    Left out are examples that name no entity, or have no answer of the graph.
    """
    find = graph.entities.find
    templates: dict[str, list[NamedQuestion]] = {}
    for example in examples:
        try:
            entities = question_entities(
                linker, example.text, [seed for seed in example.seed_entities if find(seed) >= 0]
            )
        except EntityLinkingError:
            continue
        masked = mask(example.text, [(entity.start, entity.end) for entity in entities])
        answers = [entity for answer in example.answers if (entity := find(answer)) >= 0]
        if answers and len(templates.get(masked, ())) < EXAMPLES_MINED:
            entities.sort(key=lambda entity: entity.start)
            named = [[find(key) for key in entity.entities[: entity.best]] for entity in entities]
            templates.setdefault(masked, []).append(NamedQuestion(named, answers, len(example.answers)))
    return templates


def mine_template(adjacency: Adjacency, questions: Sequence[NamedQuestion], *, max_hops: int) -> list[Mined]:
    """Return the relation paths that answer the questions of a template, best first.

    Where the questions name several entities, and walks from each of them have ends in common that are the answers as
    well as the ends of any single relation path are, only these walks are returned.
    """
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
