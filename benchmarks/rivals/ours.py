"""Our methods by the arguments of their `from_index`, without language model, examples or training."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from langchain_core.documents import Document

from benchmarks.rivals.contestants import Contestant
from benchmarks.rivals.ground import FindFacts, Ground, distinct
from benchmarks.rivals.measuring import BUDGETS
from kg_retrievers import GraphIndex, Triple
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import KGRetrieversError
from kg_retrievers.graph.verbalize import lone_entities_of
from kg_retrievers.methods import registry


def _method(name: str, **fields: Any) -> Callable[[GraphIndex], BaseKGRetriever]:
    retriever = registry.find_method(name).load_retriever()
    return lambda index: retriever.from_index(index, **fields)


#: What makes each retriever from an index.
RETRIEVERS: dict[str, Callable[[GraphIndex], BaseKGRetriever]] = {
    "SimGRAG": _method("simgrag"),
    "G-Retriever": _method("g-retriever"),
    "RoG": _method("rog"),
    "KAPING": _method("kaping", k=250),
    "Neighborhood, 1 hop": _method("neighborhood"),
    "Neighborhood, 2 hops": _method("neighborhood", max_hops=2),
}


def _find_facts(make: Callable[[GraphIndex], BaseKGRetriever], ground: Ground) -> FindFacts:
    retriever = make(ground.index)

    def find(question: str) -> list[Triple | str]:
        try:
            documents = retriever.invoke(question, on_refusal="raise")
        except KGRetrieversError:  # a refusal: no facts
            return []
        return distinct(item for document in documents for item in _items(document))

    return find


def _items(document: Document) -> list[Triple | str]:
    """Return the facts of a Document, and the entities without facts, which its text lists."""
    return [*(Triple(*triple) for triple in document.metadata["triples"]), *lone_entities_of(document)]


def _find_within_budgets(ground: Ground) -> FindFacts:
    makers = {budget: _method("kg", max_tokens=budget) for budget in BUDGETS}
    finders = {budget: _find_facts(make, ground) for budget, make in makers.items()}
    return lambda question: {budget: find(question) for budget, find in finders.items()}


#: Our methods at their defaults. KAPING gives as many facts as the largest budget holds.
OURS = {
    "KGRetriever": Contestant(_find_within_budgets, is_ours=True),
    **{name: Contestant(partial(_find_facts, make), is_ours=True) for name, make in RETRIEVERS.items()},
}
