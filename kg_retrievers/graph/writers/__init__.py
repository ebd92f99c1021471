"""From a knowledge graph to files and other libraries."""

from kg_retrievers.graph.writers.content import GraphContent
from kg_retrievers.graph.writers.files import OnLoss, WriteFormat, write_graph

__all__ = ["GraphContent", "OnLoss", "WriteFormat", "write_graph"]
