"""RoG's retrieval: relation paths are proposed for a question, then followed in the graph.

L. Luo, Y.-F. Li, G. Haffari, S. Pan: Reasoning on Graphs: Faithful and Interpretable Large Language Model Reasoning.
ICLR 2024, arXiv:2310.01061. GNN-RAG also adds this retrieval to its own paths (GNN-RAG+RA, arXiv:2405.20139, section
4.5).
"""
