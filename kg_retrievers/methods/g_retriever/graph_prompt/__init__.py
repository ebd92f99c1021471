"""The graph as a soft prompt of a language model, trained and served: G-Retriever's generator."""
