"""Our methods by the arguments of their `from_index`, without language model, examples or training."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import kg_retrievers
from benchmarks.rivals.contestants import Contestant
from benchmarks.rivals.ground import FindFacts, Ground, distinct
from benchmarks.rivals.measuring import BUDGETS
from kg_retrievers import GraphIndex, Triple
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.errors import KGRetrieversError
from kg_retrievers.methods import registry


def _method(name: str, **fields: Any) -> Callable[[GraphIndex], BaseKGRetriever]:
    retriever = registry.find_method(name).load_retriever()
    return lambda index: retriever.from_index(index, **fields)


def _union(index: GraphIndex) -> BaseKGRetriever:
    members = [_method(name)(index) for name in ("simgrag", "g-retriever")]
    return registry.UNION.load_retriever().of(*members)


def _for_all_budgets(index: GraphIndex) -> BaseKGRetriever:
    retriever: BaseKGRetriever = kg_retrievers.KGRetriever.from_index(index, max_tokens=max(BUDGETS))
    return retriever


#: What makes each retriever from an index.
RETRIEVERS: dict[str, Callable[[GraphIndex], BaseKGRetriever]] = {
    "SimGRAG": _method("simgrag"),
    "G-Retriever": _method("g-retriever"),
    "SimGRAG + G-Retriever": _union,
    "RoG": _method("rog"),
    "KAPING": _method("kaping", k=250),
    "Neighborhood, 1 hop": _method("neighborhood"),
    "Neighborhood, 2 hops": _method("neighborhood", max_hops=2),
}
if hasattr(kg_retrievers, "KGRetriever"):
    RETRIEVERS = {"KGRetriever": _for_all_budgets, **RETRIEVERS}


def _find_facts(make: Callable[[GraphIndex], BaseKGRetriever], ground: Ground) -> FindFacts:
    retriever = make(ground.index)

    def find(question: str) -> list[Triple]:
        try:
            documents = retriever.invoke(question, on_refusal="raise")
        except KGRetrieversError:  # a refusal: no facts
            return []
        return distinct(Triple(*triple) for document in documents for triple in document.metadata["triples"])

    return find


#: Our methods at their defaults. KAPING gives as many facts as the largest budget holds.
OURS = {name: Contestant(partial(_find_facts, make), is_ours=True) for name, make in RETRIEVERS.items()}
