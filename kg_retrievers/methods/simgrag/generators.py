"""Makes the generator of patterns that a retriever is built with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable

from kg_retrievers.datasets import Question
from kg_retrievers.graph import Pattern
from kg_retrievers.index import GraphIndex
from kg_retrievers.questions.cascade import CascadePatternGenerator
from kg_retrievers.questions.examples import ExamplePatternGenerator
from kg_retrievers.questions.llm import LLMPatternGenerator

#: When a language model is asked for the pattern; see `SimGRAGRetriever.asks_model`.
AsksModel = Literal["unsure", "always"]


def make_generator(
    index: GraphIndex,
    llm: BaseLanguageModel[Any] | None,
    examples: Sequence[Question] | None,
    *,
    asks_model: AsksModel,
    shots: int,
) -> Runnable[Any, Pattern]:
    """Return the cascade of generators, or the language model alone where there is one that is always asked.

    Args:
        index: The indexed graph.
        llm: The language model, if there is one.
        examples: Questions with patterns, if there are some.
        asks_model: When the language model is asked.
        shots: How many worked examples it is shown.
    """
    if llm is None or asks_model == "unsure":
        return CascadePatternGenerator(index, llm=llm, examples=examples, shots=shots)
    known = None if examples is None else ExamplePatternGenerator(index, examples)
    return LLMPatternGenerator(llm, examples=known, index=index, shots=shots)
