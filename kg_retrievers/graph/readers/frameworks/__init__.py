"""From the graphs of other libraries to the rows of a knowledge graph."""
