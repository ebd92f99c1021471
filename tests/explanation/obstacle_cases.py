"""What every answer of `why_not` must keep to: its lifts bring the entity in, and each of them is needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kg_retrievers import why_not
from kg_retrievers.core.obstacles import Obstacle
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.explanation.why_not import WhyNot, lift
from kg_retrievers.graph.facts import lone_entities_of

#: The cases of each reason of each method, at least.
CASES = 30


def check_case(retriever: BaseKGRetriever, question: str, entity: str, inputs: Mapping[str, Any]) -> WhyNot:
    """Return why an entity is not found, checked by runs of the retriever itself.

    It is not found as things are; with all obstacles lifted it is, and with all but the last it is not.

    Args:
        retriever: The retriever.
        question: The question.
        entity: The key of an entity that the retriever does not find.
        inputs: Further arguments of `invoke`.
    """
    assert not is_found(retriever, question, entity, inputs)
    result = why_not(retriever, question, entity, **inputs)
    seen = [(obstacle.why, obstacle.text) for obstacle in result.obstacles]
    assert (result.found, result.lifted) == (False, True), (question, entity, seen)
    lifted, given = _lifted(retriever, inputs, result.obstacles[:-1])
    assert not is_found(lifted, question, entity, given), (question, entity, seen)
    lifted, given = _lifted(retriever, inputs, result.obstacles)
    assert is_found(lifted, question, entity, given), (question, entity, seen)
    return result


def steps(
    retriever: BaseKGRetriever, inputs: Mapping[str, Any], result: WhyNot
) -> Iterator[tuple[BaseKGRetriever, dict[str, Any], Obstacle]]:
    """Yield each obstacle with the retriever and the inputs where it is the first: those before it are lifted."""
    for number, obstacle in enumerate(result.obstacles):
        yield *_lifted(retriever, inputs, result.obstacles[:number]), obstacle


def is_found(retriever: BaseKGRetriever, question: str, entity: str, inputs: Mapping[str, Any]) -> bool:
    """Return whether an entity is found: as an answer where the method proposes answers, else in a fact."""
    found = retriever.invoke(question, **inputs)
    facts_count = not retriever.proposes_answers or any(one.metadata["value"] is not None for one in found)
    for document in found:
        in_facts = any(entity in (head, tail) for head, _, tail in document.metadata["triples"])
        if entity in document.metadata["answers"]:
            return True
        if facts_count and (in_facts or entity in lone_entities_of(document)):
            return True
    return False


def _lifted(
    retriever: BaseKGRetriever, inputs: Mapping[str, Any], obstacles: Sequence[Obstacle]
) -> tuple[BaseKGRetriever, dict[str, Any]]:
    given = dict(inputs)
    for obstacle in obstacles:
        retriever, given = lift(retriever, given, obstacle.lift)
    return retriever, given
