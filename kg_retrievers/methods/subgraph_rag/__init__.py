"""SubgraphRAG: a light model scores triples."""
