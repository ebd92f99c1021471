"""From the exports of graph databases and of published graphs to the rows of a knowledge graph."""
