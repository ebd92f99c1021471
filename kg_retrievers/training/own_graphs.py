"""Training on questions with a graph each: these stand side by side in one graph, as parts that nothing joins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from kg_retrievers.datasets import GraphQuestion, Question
from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph import KnowledgeGraph, Triple
from kg_retrievers.index import GraphIndex
from kg_retrievers.index.question_indexes import QuestionIndexes
from kg_retrievers.training.dataset import LinkedQuestion, link_training_question

#: An index, the questions to train on over its graph, and those that say when to stop, or None.
TrainingSet = tuple[GraphIndex, Sequence[Question], Sequence[Question] | None]


def over_one_graph(
    who: str,
    index: GraphIndex,
    questions: Sequence[Question],
    validation: Sequence[Question] | None,
    embedding_cache: str | Path | None = None,
) -> TrainingSet:
    """Return questions with a graph each as questions over one graph; others as they are.

    The graphs stand side by side: the entity "a" of the first is "0/a", with its label, and nothing joins it to "1/a".
    So each question sees its own triples alone, and relations and names are embedded once. Entities are linked, and
    masked in the question, over the question's own graph, as when it is asked.

    Args:
        who: The function that was called, for messages.
        index: The index that was given; of questions with graphs, only its embeddings are used.
        questions: Those to train on.
        validation: Those that say when to stop, or None.
        embedding_cache: A file that keeps the vectors of names, for questions with graphs.

    Raises:
        InvalidArgumentError: If some of the questions have a graph and others have none.
    """
    own = [isinstance(question, GraphQuestion) for question in (*questions, *(validation or ()))]
    if not any(own):
        return index, questions, validation
    if not all(own):
        raise InvalidArgumentError(
            f"{who}: {sum(own)} of {len(own)} questions have a graph of their own, the others have none. Train on "
            "questions of one kind."
        )
    indexes = QuestionIndexes(index.embeddings, embedding_cache)
    positions: dict[KnowledgeGraph, int] = {}
    placed = [_placed(part, indexes, positions) for part in (questions, validation or ())]
    joined = GraphIndex.build(_side_by_side(positions), index.embeddings, cache=indexes.cache)
    return joined, placed[0], None if validation is None else placed[1]


def _placed(
    questions: Iterable[Question], indexes: QuestionIndexes, positions: dict[KnowledgeGraph, int]
) -> list[Question]:
    """Return questions with the keys that their entities have in the joined graph."""
    placed: list[Question] = []
    for one in questions:
        assert isinstance(one, GraphQuestion)
        question = one.with_keys()
        position = positions.setdefault(question.graph, len(positions))
        seeds, masked = link_training_question(indexes.of(question.graph), question)
        placed.append(
            LinkedQuestion(
                question.text,
                seed_entities=tuple(_key(position, seed) for seed in seeds),
                answers=tuple(_key(position, answer) for answer in question.answers),
                triples=tuple(_placed_triple(position, triple) for triple in question.triples),
                masked=masked,
            )
        )
    return placed


def _side_by_side(positions: dict[KnowledgeGraph, int]) -> KnowledgeGraph:
    """Return the graphs as parts of one that nothing joins."""
    triples = (_placed_triple(position, triple) for graph, position in positions.items() for triple in graph.triples())
    labels = chain.from_iterable(
        ((_key(position, key), graph.label(key)) for key in graph.entities) for graph, position in positions.items()
    )
    return KnowledgeGraph.from_triples(triples, labels=dict(labels))


def _placed_triple(position: int, triple: Triple) -> Triple:
    return Triple(_key(position, triple.head), triple.relation, _key(position, triple.tail))


def _key(position: int, key: str) -> str:
    return f"{position}/{key}"
