"""From a knowledge graph to files and other libraries."""

from kg_retrievers.graph.writers.content import GraphContent
from kg_retrievers.graph.writers.files import OnLoss, WriteFormat, write_graph
from kg_retrievers.graph.writers.texts import networkx_graph

__all__ = ["GraphContent", "OnLoss", "WriteFormat", "networkx_graph", "write_graph"]
