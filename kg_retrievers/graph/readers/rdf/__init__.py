"""From RDF to the rows of a knowledge graph."""
