"""Define knowledge graphs, and the objects that pass between the rooms. No LangChain, no LLM, no torch."""

from kg_retrievers.graph.adjacency import Adjacency as Adjacency
from kg_retrievers.graph.building import GraphBuilder as GraphBuilder
from kg_retrievers.graph.knowledge_graph import KnowledgeGraph as KnowledgeGraph
from kg_retrievers.graph.pattern import FactAttribute as FactAttribute
from kg_retrievers.graph.pattern import Known as Known
from kg_retrievers.graph.pattern import Pattern as Pattern
from kg_retrievers.graph.pattern import PatternTriple as PatternTriple
from kg_retrievers.graph.pattern import Term as Term
from kg_retrievers.graph.pattern import Unknown as Unknown
from kg_retrievers.graph.schema import RelationSchema as RelationSchema
from kg_retrievers.graph.types import Evidence as Evidence
from kg_retrievers.graph.types import Path as Path
from kg_retrievers.graph.types import Triple as Triple
from kg_retrievers.graph.verbalize import local_name as local_name
from kg_retrievers.graph.verbalize import pattern_lines as pattern_lines
from kg_retrievers.graph.verbalize import readable as readable
from kg_retrievers.graph.verbalize import verbalize as verbalize
