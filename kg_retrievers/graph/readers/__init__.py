"""From files and other libraries to the rows of a knowledge graph."""

from kg_retrievers.graph.readers.networkx_graphs import read_networkx_rows
from kg_retrievers.graph.readers.text_files import GraphFormat, OnError, read_entity_rows, read_graph_rows

__all__ = ["GraphFormat", "OnError", "read_entity_rows", "read_graph_rows", "read_networkx_rows"]
