"""Every stage that asks a language model, over the sample graph: question -> whatever the stage gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kg_retrievers import GraphIndex, HashedEmbeddings, LLMPatternGenerator, RelationPathRetriever, SimGRAGRetriever
from kg_retrievers.chains import cited_answer_chain, fact_verification_chain
from kg_retrievers.methods.rog.proposals import LLMRelationPaths
from kg_retrievers.sample import load_graph

#: The stages whose replies are held to a schema, where the model has structured output; the others reply in text.
STRUCTURED = ("pattern", "cited answer", "verification")

Stage = Callable[[str], Any]


def sample_index() -> GraphIndex:
    """Return the sample graph, indexed."""
    return GraphIndex.build(load_graph(), HashedEmbeddings())


def stages(index: GraphIndex, llm: Any) -> dict[str, Stage]:
    """Return the stages by name.

    Each raises the errors of this package for replies that cannot be used.
    """
    patterns = SimGRAGRetriever.from_index(index)
    generator = LLMPatternGenerator(llm)
    by_path = RelationPathRetriever.from_index(index, proposer=LLMRelationPaths(index, llm))
    answer, verify = cited_answer_chain(patterns, llm), fact_verification_chain(patterns, llm)
    return {
        "pattern": lambda question: generator.invoke({"question": question}),
        "cited answer": answer.invoke,
        "verification": verify.invoke,
        "relation paths": by_path.invoke,
    }
