"""From a knowledge graph to files."""
