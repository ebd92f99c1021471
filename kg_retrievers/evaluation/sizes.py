"""How large the evidence is, and how large the graph it was found in: before and after retrieval.

He et al., "G-Retriever: Retrieval-Augmented Generation for Textual Graph Understanding and Question Answering", NeurIPS
2024, arXiv:2402.07630: section 6.3, table 4. *Differs*: tokens are those of `approximate_tokens`; the paper counts the
tokens of its language model. The whole graph is written as triples, in whatever style a retriever writes its evidence,
so that all methods have one number before retrieval.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from langchain_core.documents import Document
from typing_extensions import TypedDict

from kg_retrievers.datasets import Question
from kg_retrievers.datasets.graph_question import GraphQuestion
from kg_retrievers.graph import Triple, verbalize
from kg_retrievers.graph.facts import lone_entities_of
from kg_retrievers.graph.verbalize import approximate_tokens


class Sizes(TypedDict):
    """The sizes that a record keeps; see `Record`."""

    triples: int
    nodes: int
    tokens: int
    nodes_before: int | None
    tokens_before: int | None


def sizes_of(documents: Sequence[Document], triples: Collection[Triple], question: Question) -> Sizes:
    """Measure the evidence and the question's own graph, if it has one.

    Args:
        documents: The evidence.
        triples: The distinct triples in it.
        question: The question; a graph that it shares with all others is not measured.
    """
    nodes_before, tokens_before = None, None
    if isinstance(question, GraphQuestion):
        graph = question.graph
        facts = list(graph.triples())
        held = _ends(facts)
        alone = [key for key in graph.entities if key not in held]
        text = verbalize(facts, style="triples", label=graph.label, entities=alone).text
        nodes_before, tokens_before = len(graph.entities), approximate_tokens(text)
    return {
        "triples": len(triples),
        "nodes": len(_ends(triples) | set(lone_entities_of(documents))),
        "tokens": sum(approximate_tokens(document.page_content) for document in documents),
        "nodes_before": nodes_before,
        "tokens_before": tokens_before,
    }


def _ends(triples: Collection[Triple]) -> set[str]:
    return {key for head, _, tail in triples for key in (head, tail)}
