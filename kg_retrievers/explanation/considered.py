"""What a retriever considered besides what it returned, and how far behind the nearest of it fell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document

from kg_retrievers.core.neighborhood_retriever import BaseNeighborhoodRetriever
from kg_retrievers.core.results import result_answers
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.core.stages import MAX_K
from kg_retrievers.explanation.named import Other, masked_question
from kg_retrievers.explanation.run import run_stages
from kg_retrievers.graph.shown_text import one_line
from kg_retrievers.graph.verbalize import readable

#: How many of the nearest others are told.
NEAREST = 3


@dataclass(frozen=True)
class NextDocument:
    """A Document that comes after one.

    Attributes:
        rank: Its rank.
        score: Its score.
        shown: Its answers, or its first fact where it proposes none.
        is_returned: Whether it is among the first `k`.
    """

    rank: int
    score: float
    shown: str
    is_returned: bool


@dataclass(frozen=True)
class Considered:
    """What was considered.

    Attributes:
        entities: How many entities lie in the neighborhood that was searched; None where none was.
        facts: How many facts lie there.
        relations: The relations of the graph nearest to the question without its entities, with their cosines.
        after: The Documents that come next.
        note: Why less is known.
    """

    entities: int | None
    facts: int | None
    relations: tuple[Other, ...]
    after: tuple[NextDocument, ...]
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON-safe data."""
        return {
            "entities": self.entities,
            "facts": self.facts,
            "relations": [dict(vars(one)) for one in self.relations],
            "after": [dict(vars(one)) for one in self.after],
            "note": self.note,
        }


def considered(document: Document, retriever: BaseKGRetriever, inputs: Mapping[str, Any]) -> Considered:
    """Return what a retriever considers beside a Document that it found.

    Args:
        document: The Document.
        retriever: What found it.
        inputs: The arguments of `invoke` that it was found with.
    """
    metadata = document.metadata
    seeds = [key for _, key in metadata["details"].get("entities") or ()]
    entities, facts = _scope(retriever, seeds)
    after, note = _after(document, retriever, inputs)
    return Considered(entities, facts, _relations(metadata, retriever), after, note)


def _scope(retriever: BaseKGRetriever, seeds: list[str]) -> tuple[int | None, int | None]:
    if not isinstance(retriever, BaseNeighborhoodRetriever):
        return None, None
    if retriever.scope == "graph":
        return len(retriever.graph.entities), len(retriever.graph)
    if not seeds:
        return None, None
    found = retriever.over(retriever.part({"seed_entities": seeds})).neighborhood(seeds)
    return len(found.nodes), len(found.triples)


def _relations(metadata: Mapping[str, Any], retriever: BaseKGRetriever) -> tuple[Other, ...]:
    """Return the relations nearest to the question without its entities; nothing where there is no question."""
    rest = masked_question(metadata)
    if not rest.strip():
        return ()
    near = retriever.index.nearest_relations([rest], NEAREST)[0]
    names = [retriever.graph.relations[id] for id in near.ids.tolist()]
    cosines = (1 - near.distances.astype(float) ** 2 / 2).tolist()
    return tuple(Other(name, readable(name), cosine) for name, cosine in zip(names, cosines, strict=True))


def _after(
    document: Document, retriever: BaseKGRetriever, inputs: Mapping[str, Any]
) -> tuple[tuple[NextDocument, ...], str]:
    """Return the Documents that come next when the question is asked again, and why there are none."""
    question = document.metadata.get("question") or ""
    if not question.strip():
        return (), "The Document does not say what was asked."
    if any(stage.calls_model for stage in retriever.stages):
        return (), "The language model is not asked again, so that what came next is not known."
    given = dict(inputs)
    seeds = [one["key"] for one in document.metadata["linked"] if one["how"] == "given"]
    if seeds and not set(given) - {"k", "min_confidence"}:
        given["seed_entities"] = [one["key"] for one in document.metadata["linked"]]
    k = given.get("k", retriever.k)
    wanted = min(max(k, document.metadata["rank"]) + NEAREST, MAX_K)
    found = run_stages(retriever, question, {**given, "k": wanted, "min_confidence": 0.0}).documents
    place = next((place for place, one in enumerate(found) if one.id == document.id), None)
    if place is None:
        return (), "Asked again, the retriever finds something else; give what it was asked with."
    return tuple(_next(one, k) for one in found[place + 1 : place + 1 + NEAREST]), ""


def _next(document: Document, k: int) -> NextDocument:
    metadata = document.metadata
    shown = "; ".join(result_answers(metadata)[:NEAREST])
    if not shown and metadata["triples"]:
        head, relation, tail = metadata["triples"][0]
        shown = f"{metadata['labels'][head]} -> {readable(relation)} -> {metadata['labels'][tail]}"
    return NextDocument(metadata["rank"], metadata["score"], one_line(shown), metadata["rank"] <= k)
