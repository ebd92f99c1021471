"""SG-RAG: a Cypher query written for the question, whose rows are subgraphs.

A. O. M. Saleh, G. Tür, Y. Saygın: SG-RAG: Multi-Hop Question Answering With Large Language Models Through Knowledge
Graphs. ICNLSP 2024 (not on arXiv).
"""
