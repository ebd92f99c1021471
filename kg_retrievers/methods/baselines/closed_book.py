"""ClosedBookRetriever: no evidence, so that a language model answers from what it knows.

M. Li, S. Miao, P. Li: Simple Is Effective: The Roles of Graphs and Large Language Models in Knowledge-Graph-Based
Retrieval-Augmented Generation. ICLR 2025, arXiv:2410.20724, table 9, "NoRetriever". SG-RAG (table 4) and GNN-RAG
(arXiv:2405.20139) have such rows, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

from langchain_core.runnables import RunnableLambda
from pydantic import Field, StrictBool, model_validator

from kg_retrievers.core.prompts import QuestionPrompt
from kg_retrievers.core.replies import last_line_answers
from kg_retrievers.core.retriever import BaseKGRetriever
from kg_retrievers.core.stages import QuestionShape, RetrievalState, Stage
from kg_retrievers.methods.baselines.prompts import ANSWER_PROMPT, CHAIN_OF_THOUGHT_PROMPT, parse_answers


class ClosedBookRetriever(BaseKGRetriever):
    """Finds nothing, so that a language model answers a question from what it knows, as if there were no graph.

    No question is refused: `invoke` returns no Documents, and `answer_chain(retriever, llm)` and the shell ask the
    model with `answer_prompt`, whose one placeholder is `question`. What cites facts, as workflows do, refuses this
    retriever. With `chain_of_thought=True`, the model thinks step by step, and the last line of its reply is read.

    Cost: no call of a language model here, one for the answer.

    Example:
        >>> from kg_retrievers import GraphIndex, KnowledgeGraph, answer_chain, default_embeddings
        >>> from kg_retrievers.testing import ScriptedChatModel
        >>> graph = KnowledgeGraph.from_triples([("Her", "starring", "Amy Adams")])
        >>> retriever = ClosedBookRetriever.from_index(GraphIndex.build(graph, default_embeddings()))
        >>> retriever.invoke("Who directed Her?")
        []
        >>> answer_chain(retriever, ScriptedChatModel(replies=["Spike Jonze"])).invoke("Who directed Her?")
        'Spike Jonze'
    """

    suits: ClassVar[frozenset[QuestionShape]] = frozenset()
    proposes_answers: ClassVar[bool] = False
    closed_book: ClassVar[bool] = True

    #: What a Document would hold.
    granularity: Literal["subgraph"] = "subgraph"
    #: Whether the model is asked to think step by step before it answers. Fixed once the retriever is made.
    chain_of_thought: StrictBool = Field(default=False, frozen=True)
    #: The prompt for answering, with the placeholder `question`; by default that of `chain_of_thought`.
    answer_prompt: QuestionPrompt = ANSWER_PROMPT
    #: Reads the answers from a reply to it.
    parse_answers: Callable[[str], list[str]] = parse_answers

    @model_validator(mode="before")
    @classmethod
    def _take_prompt(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Take the prompt of a chain of thought and what reads it, unless others are given."""
        if fields.get("chain_of_thought") is not True:
            return fields
        return {"answer_prompt": CHAIN_OF_THOUGHT_PROMPT, "parse_answers": last_line_answers} | fields

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Find nothing."""
        return (Stage("find_nothing", RunnableLambda(_find_nothing), ("answers", "documents")),)


def _find_nothing(state: RetrievalState) -> dict[str, Any]:
    return {"answers": [], "documents": []}
