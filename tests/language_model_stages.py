"""Every stage that asks a language model, over the sample graph: question -> whatever the stage gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kg_retrievers import GraphIndex, HashedEmbeddings, LLMPatternGenerator, SimGRAGRetriever
from kg_retrievers.chains import cited_answer_chain, fact_verification_chain
from kg_retrievers.errors import AnswerParseError
from kg_retrievers.questions.choosing import Choice, ReadingChooser
from kg_retrievers.sample import load_graph

#: The stages, whose replies are held to a schema if the model has structured output.
STRUCTURED = ("choice", "pattern", "cited answer", "verification")

#: Readings to choose from.
READINGS = ("Her -> directed_by -> ?x; wanted: ?x", "Her -> starring -> ?x; wanted: ?x")

Stage = Callable[[str], Any]


def sample_index() -> GraphIndex:
    """Return the sample graph, indexed."""
    return GraphIndex.build(load_graph(), HashedEmbeddings())


def stages(index: GraphIndex, llm: Any) -> dict[str, Stage]:
    """Return the stages by name.

    Each raises the errors of this package for replies that cannot be used.
    """
    patterns = SimGRAGRetriever.from_index(index, on_refusal="raise")
    generator = LLMPatternGenerator(llm)
    chooser = ReadingChooser(llm)
    answer, verify = cited_answer_chain(patterns, llm), fact_verification_chain(patterns, llm)
    return {
        "choice": lambda question: chosen(chooser.invoke(Choice(question, READINGS))),
        "pattern": lambda question: generator.invoke({"question": question}),
        "cited answer": answer.invoke,
        "verification": verify.invoke,
    }


def chosen(position: int | None) -> int:
    """Return the chosen position; a reply that cannot be used raises the error of this package."""
    if position is None:
        raise AnswerParseError("no line was chosen.", "")
    return position
