"""Evidence -> answer: chains over any retriever."""

from kg_retrievers.chains.answer import (
    Answerer,
    AnswerInput,
    ExtractiveAnswerer,
    answer_chain,
    format_evidence,
    llm_answerer,
)

__all__ = ["AnswerInput", "Answerer", "ExtractiveAnswerer", "answer_chain", "format_evidence", "llm_answerer"]
