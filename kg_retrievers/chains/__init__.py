"""Chains from a question to an answer, an answer with citations, or a verdict on a claim."""

from kg_retrievers.chains.answer import Answerer, ExtractiveAnswerer, answer_chain, llm_answerer
from kg_retrievers.chains.cited_answer import (
    CitedAnswer,
    CitedAnswerer,
    ExtractiveCitedAnswerer,
    LLMCitedAnswerer,
    cited_answer_chain,
)
from kg_retrievers.chains.evidence import AnswerInput, Citation, EvidenceStyle, ShownEvidence, show_evidence
from kg_retrievers.chains.fact_verification import FactVerifier, Verdict, fact_verification_chain
from kg_retrievers.core.replies import LESS_SURE, NO_ANSWER, NOT_UNDERSTOOD, SEARCH_ENDED

__all__ = [
    "LESS_SURE",
    "NOT_UNDERSTOOD",
    "NO_ANSWER",
    "SEARCH_ENDED",
    "AnswerInput",
    "Answerer",
    "Citation",
    "CitedAnswer",
    "CitedAnswerer",
    "EvidenceStyle",
    "ExtractiveAnswerer",
    "ExtractiveCitedAnswerer",
    "FactVerifier",
    "LLMCitedAnswerer",
    "ShownEvidence",
    "Verdict",
    "answer_chain",
    "cited_answer_chain",
    "fact_verification_chain",
    "llm_answerer",
    "show_evidence",
]
