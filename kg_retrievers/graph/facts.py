"""The facts in what retrievers return: evidence, paths and Documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeGuard

from kg_retrievers.errors import InvalidArgumentError
from kg_retrievers.graph.types import Evidence, Path, Triple

#: The name in `details` of the entities that are evidence by themselves, since no triple of it holds them: their keys.
LONE_ENTITIES = "lone_entities"


class HasMetadata(Protocol):
    """A Document of a retriever: its metadata has "triples", and may have "labels", "answers" and "details"."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What `BaseKGRetriever` writes."""


HoldsFacts = Evidence | Path | HasMetadata


def each_of(what: HoldsFacts | Iterable[HoldsFacts]) -> list[Any]:
    """Return one item, or several, as a list."""
    if isinstance(what, str | Evidence | Path) or hasattr(what, "metadata") or not isinstance(what, Iterable):
        return [what]
    return list(what)


def facts_of(
    what: HoldsFacts | Iterable[HoldsFacts], who: str, also: str = ""
) -> tuple[tuple[Triple, ...], dict[str, str]]:
    """Return the triples of one item or several, each once, in their order, and the labels that Documents bring.

    Of several labels of one key, the first counts.

    Args:
        what: The item, or several.
        who: The caller, for the message.
        also: A sentence that the message adds: what else may be given.

    Raises:
        InvalidArgumentError: If an item holds no facts, or its labels are no texts.
    """
    triples: dict[Triple, None] = {}
    labels: dict[str, str] = {}
    for item in each_of(what):
        metadata = getattr(item, "metadata", None)
        holds = item.triples if isinstance(item, Evidence | Path) else None
        found = metadata if isinstance(metadata, Mapping) else {"triples": holds}
        rows, called = found.get("triples"), found.get("labels", {})
        if not are_texts(rows, 3) or not isinstance(called, Mapping) or not are_texts([*called.items()], 2):
            raise InvalidArgumentError(
                f"{who}: wanted Evidence, a Path, or a Document as a retriever returns it (its metadata has 'triples', "
                "a list of [head, relation, tail], and perhaps 'labels', {key: text}), or a list of these, but got "
                f"{item!r:.200}.{also}"
            )
        triples |= {Triple(*row): None for row in rows}
        labels = {**called, **labels}
    return tuple(triples), labels


def lone_entities_of(what: HoldsFacts | Iterable[HoldsFacts]) -> list[str]:
    """Return the entities that are evidence by themselves in one item or several, each once, in their order.

    Example:
        >>> lone_entities_of(Evidence((), score=1, details={LONE_ENTITIES: ["Her"]}))
        ['Her']
    """
    found: dict[str, None] = {}
    for item in each_of(what):
        details = item.details if isinstance(item, Evidence) else getattr(item, "metadata", {}).get("details")
        keys = (details or {}).get(LONE_ENTITIES)
        found |= dict.fromkeys(key for key in keys or () if isinstance(key, str))
    return list(found)


def are_texts(rows: object, length: int) -> TypeGuard[Sequence[Sequence[str]]]:
    """Return whether it is a list of lists of this many texts."""
    return isinstance(rows, list | tuple) and all(
        isinstance(row, list | tuple) and len(row) == length and all(isinstance(text, str) for text in row)
        for row in rows
    )
