"""SG-RAG: a Cypher query written for the question, whose rows are subgraphs.

A. O. M. Saleh, G. Tür, Y. Saygın: SG-RAG: Multi-Hop Question Answering With Large Language Models Through Knowledge
Graphs. ICNLSP 2024 (not on arXiv).
"""

from kg_retrievers.methods.sg_rag.labelling import label_examples
from kg_retrievers.methods.sg_rag.retriever import CypherRetriever
from kg_retrievers.methods.sg_rag.writers import CascadeCypherWriter, PatternCypherWriter, TemplateCypherWriter

__all__ = [
    "CascadeCypherWriter",
    "CypherRetriever",
    "PatternCypherWriter",
    "TemplateCypherWriter",
    "label_examples",
]
