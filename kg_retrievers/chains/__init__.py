"""Build chains from questions and claims to answers and verdicts.

Answers come with or without citations.
"""

from kg_retrievers.chains.answer import ExtractiveAnswerer as ExtractiveAnswerer
from kg_retrievers.chains.answer import answer_chain as answer_chain
from kg_retrievers.chains.answer import llm_answerer as llm_answerer
from kg_retrievers.chains.cited_answer import CitedAnswerer as CitedAnswerer
from kg_retrievers.chains.cited_answer import ExtractiveCitedAnswerer as ExtractiveCitedAnswerer
from kg_retrievers.chains.cited_answer import LLMCitedAnswerer as LLMCitedAnswerer
from kg_retrievers.chains.cited_answer import cited_answer_chain as cited_answer_chain
from kg_retrievers.chains.evidence import AnswerInput as AnswerInput
from kg_retrievers.chains.evidence import Citation as Citation
from kg_retrievers.chains.evidence import EvidenceStyle as EvidenceStyle
from kg_retrievers.chains.evidence import show_evidence as show_evidence
from kg_retrievers.chains.fact_verification import FactVerifier as FactVerifier
from kg_retrievers.chains.fact_verification import fact_verification_chain as fact_verification_chain
from kg_retrievers.core.replies import LESS_SURE as LESS_SURE
from kg_retrievers.core.replies import NO_ANSWER as NO_ANSWER
from kg_retrievers.core.replies import NOT_UNDERSTOOD as NOT_UNDERSTOOD
from kg_retrievers.core.replies import SEARCH_ENDED as SEARCH_ENDED
