"""Where the facts of a drawing are from: the items that hold them, with ranks and scores, and their sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kg_retrievers.graph.types import Evidence, Triple


@dataclass(frozen=True)
class DrawnItem:
    """What a drawing says of one Document, or of one piece of evidence.

    Attributes:
        rank: Its rank among those of its retriever, from 1; without one, its place among what is drawn.
        triples: Its facts.
        answers: The keys of the entities that it proposes.
        value: What an operation gave, if any.
        score: Higher is better; None where it has none.
        confidence: From 0 to 1; None where it has none.
        retriever: What found it; "" where it does not say.
        text: Its facts in words; "" where it has none.
        truncated: Whether more would have been found without a limit.
    """

    rank: int
    triples: tuple[Triple, ...]
    answers: tuple[str, ...] = ()
    value: Any = None
    score: float | None = None
    confidence: float | None = None
    retriever: str = ""
    text: str = ""
    truncated: bool = False


@dataclass(frozen=True)
class Provenance:
    """Where the facts of a drawing are from.

    Attributes:
        items: What is drawn, in its order.
        sources: The sources of triples, where these carry some.
        labels: What each answer is called, by key.
    """

    items: tuple[DrawnItem, ...] = ()
    sources: Mapping[Triple, tuple[str, ...]] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, items: Sequence[Any], labels: Mapping[str, str]) -> Provenance:
        """Return that of Evidence, Paths and Documents; `facts_of` has checked that they hold facts.

        Args:
            items: What is drawn.
            labels: The labels that Documents bring, by key.
        """
        sources: dict[Triple, tuple[str, ...]] = {}
        for item in items:
            metadata = getattr(item, "metadata", {})
            for triple, names in zip(metadata.get("triples", ()), metadata.get("sources") or (), strict=False):
                sources.setdefault(Triple(*triple), _texts(names))
        drawn = tuple(_drawn(item, place) for place, item in enumerate(items, 1))
        called = {key: labels.get(key, key) for item in drawn for key in item.answers}
        return cls(drawn, sources, called)


def _drawn(item: Any, place: int) -> DrawnItem:
    if isinstance(item, Evidence):
        return DrawnItem(
            *(place, item.triples, tuple(item.answers), item.value, item.score, item.confidence),
            truncated=item.truncated,
        )
    metadata = getattr(item, "metadata", None)
    if not isinstance(metadata, Mapping):
        return DrawnItem(place, tuple(item.triples))
    rank, retriever = metadata.get("rank"), metadata.get("retriever")
    return DrawnItem(
        rank=rank if isinstance(rank, int) else place,
        triples=tuple(Triple(*row) for row in metadata["triples"]),
        answers=_texts(metadata.get("answers")),
        value=metadata.get("value"),
        score=_number(metadata.get("score")),
        confidence=_number(metadata.get("confidence")),
        retriever=retriever if isinstance(retriever, str) else "",
        text=str(getattr(item, "page_content", "")),
        truncated=bool(metadata.get("truncated")),
    )


def _texts(names: object) -> tuple[str, ...]:
    if not isinstance(names, Iterable) or isinstance(names, str):
        return ()
    return tuple(name for name in names if isinstance(name, str))


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
