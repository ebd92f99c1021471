"""From files and other libraries to the rows of a knowledge graph."""

from kg_retrievers.graph.readers.files import GraphFormat, read_graph_rows
from kg_retrievers.graph.readers.frameworks.documents import read_graph_document_rows, read_property_graph_rows
from kg_retrievers.graph.readers.frameworks.networkx_graphs import read_networkx_rows
from kg_retrievers.graph.readers.opening import Limits
from kg_retrievers.graph.readers.tables.frames import read_frame
from kg_retrievers.graph.readers.text_files import Attributes, OnError

__all__ = [
    "Attributes",
    "GraphFormat",
    "Limits",
    "OnError",
    "read_frame",
    "read_graph_document_rows",
    "read_graph_rows",
    "read_networkx_rows",
    "read_property_graph_rows",
]
