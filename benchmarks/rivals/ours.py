"""Our methods by the arguments of their `from_index`, without language model, examples or training."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from langchain_core.documents import Document

from benchmarks.rivals.contestants import Contestant
from benchmarks.rivals.ground import FindFacts, Ground, distinct
from benchmarks.rivals.measuring import BUDGETS
from kg_retrievers import Triple
from kg_retrievers.errors import KGRetrieversError
from kg_retrievers.graph.verbalize import lone_entities_of
from kg_retrievers.methods import registry

#: The method of each of our contestants, and fields that no setting changes. KAPING gives as many facts as the largest
#: budget holds.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "SimGRAG": ("simgrag", {}),
    "G-Retriever": ("g-retriever", {}),
    "RoG": ("rog", {}),
    "KAPING": ("kaping", {"k": 250}),
    "Neighborhood, 1 hop": ("neighborhood", {}),
    "Neighborhood, 2 hops": ("neighborhood", {"max_hops": 2}),
}

#: The settings among which a default was chosen: with `--choose` on the hand-made graphs of `--folder
#: benchmarks/own_graphs/fit --limit 8`, and on MetaQA with `--limit 40 --seed 20261128`.
SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "G-Retriever": {"default": {}, "cost .05": {"edge_cost": 0.05}, "cost .1": {"edge_cost": 0.1}},
    "KAPING": {"default": {}, "1 hop": {"max_hops": 1}, "3 hops": {"max_hops": 3}},
}


def _find_facts(method: str, fixed: Mapping[str, Any], ground: Ground, **fields: Any) -> FindFacts:
    retriever = registry.find_method(method).load_retriever().from_index(ground.index, **fixed, **fields)

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
    finders = {budget: _find_facts("kg", {"max_tokens": budget}, ground) for budget in BUDGETS}
    return lambda question: {budget: find(question) for budget, find in finders.items()}


#: Our methods at their defaults.
OURS = {
    "KGRetriever": Contestant(_find_within_budgets, is_ours=True),
    **{
        name: Contestant(partial(_find_facts, *made), SETTINGS.get(name, {"default": {}}), is_ours=True)
        for name, made in METHODS.items()
    },
}
