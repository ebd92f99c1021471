"""What a knowledge graph is, and what passes between the rooms. No LangChain, no LLM, no torch."""

from kg_retrievers.graph.adjacency import Adjacency
from kg_retrievers.graph.building import GraphBuilder
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph
from kg_retrievers.graph.pattern import Known, Pattern, PatternTriple, Term, Unknown
from kg_retrievers.graph.schema import RelationSchema
from kg_retrievers.graph.types import Evidence, Path, Triple
from kg_retrievers.graph.verbalize import local_name, pattern_lines, readable, verbalize

__all__ = [
    "Adjacency",
    "Evidence",
    "GraphBuilder",
    "KnowledgeGraph",
    "Known",
    "Path",
    "Pattern",
    "PatternTriple",
    "RelationSchema",
    "Term",
    "Triple",
    "Unknown",
    "local_name",
    "pattern_lines",
    "readable",
    "verbalize",
]
