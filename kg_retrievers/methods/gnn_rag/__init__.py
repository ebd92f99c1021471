"""GNN-RAG: a graph network finds candidates, and shortest paths explain them."""
