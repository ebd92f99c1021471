"""Moves the parts of a retriever to another graph."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from langchain_core.runnables import Runnable, RunnableSequence

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.index import EntityLinker, GraphIndex

Part = TypeVar("Part")


def on_index(part: Part, index: GraphIndex) -> Part:
    """Return a part of a retriever as it is over another graph.

    A part that has `with_index` says how; of a list or a sequence of Runnables, so does each item. Any other part knows
    no graph, and is returned as it is.

    Args:
        part: The value of a field, or what a part holds.
        index: The index of the other graph.

    Raises:
        InvalidArgumentError: If the part holds an index and cannot be moved.

    Example:
        >>> from kg_retrievers import KnowledgeGraph, default_embeddings
        >>> graph = KnowledgeGraph.from_triples([("Her", "starring", "Amy Adams")])
        >>> index = GraphIndex.build(graph, default_embeddings())
        >>> on_index(5, index)
        5
    """
    return cast(Part, _moved(part, index))


def _moved(part: Any, index: GraphIndex) -> Any:
    if isinstance(part, list | tuple):
        return type(part)(_moved(item, index) for item in part)
    if isinstance(part, RunnableSequence):
        return RunnableSequence(*(_moved(step, index) for step in part.steps))
    if hasattr(part, "with_index"):
        return part.with_index(index)
    if isinstance(part, Runnable) and any(isinstance(one, GraphIndex | EntityLinker) for one in vars(part).values()):
        kind = type(part).__name__
        raise InvalidArgumentError(
            f"{kind} is made for one graph, and has no method with_index(index) that makes it for another. "
            "Give it one, or build the retriever on the other graph without it."
        )
    return part
