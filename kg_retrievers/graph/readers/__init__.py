"""From files and other libraries to the rows of a knowledge graph."""
