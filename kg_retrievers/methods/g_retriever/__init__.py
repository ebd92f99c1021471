"""G-Retriever: prize-collecting Steiner trees, and a language model that reads the graph."""
