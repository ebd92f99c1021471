"""SimGRAG: a pattern of the question, and the subgraphs most similar to it."""
