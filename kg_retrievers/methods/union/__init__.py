"""GNN-RAG's retrieval augmentation, over any retrievers: what several of them find, fused.

C. Mavromatis, G. Karypis: GNN-RAG: Graph Neural Retrieval for Large Language Model Reasoning. arXiv:2405.20139,
section 4.5: GNN-RAG+RA is the union of the paths of two retrievers, GNN-RAG+Ensemble that of two networks.
"""
