"""Fetch the part of a knowledge graph that answers a question: published methods as drop-in retrievers.

The names below are loaded when they are first used, so that `import kg_retrievers` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kg_retrievers.agents import Budget, build_router, build_workflow, load_chat_model
    from kg_retrievers.agents.middleware import KnowledgeGraphMiddleware
    from kg_retrievers.base import flat_metadata
    from kg_retrievers.chains import (
        ExtractiveAnswerer,
        LLMCitedAnswerer,
        answer_chain,
        cited_answer_chain,
        fact_verification_chain,
        llm_answerer,
    )
    from kg_retrievers.cypher import CypherRetriever
    from kg_retrievers.database import check_read_only
    from kg_retrievers.database.ladybug import LadybugExecutor
    from kg_retrievers.database.neo4j import Neo4jExecutor
    from kg_retrievers.errors import KGRetrieversError
    from kg_retrievers.evaluation import (
        Report,
        check_names,
        compare,
        evaluate,
        read_question_set,
        score_predictions,
        unanswerable_questions,
    )
    from kg_retrievers.gnn_rag import GNNRAGRetriever
    from kg_retrievers.graph import Evidence, KnowledgeGraph, Known, Path, Pattern, Triple, Unknown, draw, to_pyg
    from kg_retrievers.index import EntityLinker, GraphIndex, HashedEmbeddings, local_embeddings
    from kg_retrievers.llama_index import as_llama_index
    from kg_retrievers.models import GraphReasoner, TripleScorer
    from kg_retrievers.models.graph_prompt import (
        CausalLM,
        GraphPromptExample,
        GraphPromptModel,
        graph_prompt_examples,
        train_graph_prompt,
    )
    from kg_retrievers.models.graph_reasoner_training import train_graph_reasoner
    from kg_retrievers.models.triple_scorer_training import train_triple_scorer
    from kg_retrievers.pattern_generation import ExamplePatternGenerator, LinkedPatternGenerator, LLMPatternGenerator
    from kg_retrievers.pcst import PCSTRetriever
    from kg_retrievers.questions import Question, read_explagraphs, read_questions, read_scene_graphs, read_webqsp
    from kg_retrievers.relation_paths import RelationPathRetriever
    from kg_retrievers.simgrag import SimGRAGRetriever
    from kg_retrievers.subgraph_rag import SubgraphRAGRetriever
    from kg_retrievers.triple_similarity import TripleSimilarityRetriever
    from kg_retrievers.union import UnionRetriever

_MODULES = {
    "kg_retrievers.agents": ("Budget", "build_router", "build_workflow", "load_chat_model"),
    "kg_retrievers.agents.middleware": ("KnowledgeGraphMiddleware",),
    "kg_retrievers.base": ("flat_metadata",),
    "kg_retrievers.chains": (
        "ExtractiveAnswerer",
        "LLMCitedAnswerer",
        "answer_chain",
        "cited_answer_chain",
        "fact_verification_chain",
        "llm_answerer",
    ),
    "kg_retrievers.cypher": ("CypherRetriever",),
    "kg_retrievers.database": ("check_read_only",),
    "kg_retrievers.database.ladybug": ("LadybugExecutor",),
    "kg_retrievers.database.neo4j": ("Neo4jExecutor",),
    "kg_retrievers.errors": ("KGRetrieversError",),
    "kg_retrievers.evaluation": (
        "Report",
        "check_names",
        "compare",
        "evaluate",
        "read_question_set",
        "score_predictions",
        "unanswerable_questions",
    ),
    "kg_retrievers.gnn_rag": ("GNNRAGRetriever",),
    "kg_retrievers.graph": (
        "Evidence",
        "Known",
        "KnowledgeGraph",
        "Path",
        "Pattern",
        "Triple",
        "Unknown",
        "draw",
        "to_pyg",
    ),
    "kg_retrievers.index": ("EntityLinker", "GraphIndex", "HashedEmbeddings", "local_embeddings"),
    "kg_retrievers.llama_index": ("as_llama_index",),
    "kg_retrievers.models": ("GraphReasoner", "TripleScorer"),
    "kg_retrievers.models.graph_prompt": (
        "CausalLM",
        "GraphPromptExample",
        "GraphPromptModel",
        "graph_prompt_examples",
        "train_graph_prompt",
    ),
    "kg_retrievers.models.graph_reasoner_training": ("train_graph_reasoner",),
    "kg_retrievers.models.triple_scorer_training": ("train_triple_scorer",),
    "kg_retrievers.pattern_generation": (
        "ExamplePatternGenerator",
        "LLMPatternGenerator",
        "LinkedPatternGenerator",
    ),
    "kg_retrievers.pcst": ("PCSTRetriever",),
    "kg_retrievers.questions": (
        "Question",
        "read_explagraphs",
        "read_questions",
        "read_scene_graphs",
        "read_webqsp",
    ),
    "kg_retrievers.relation_paths": ("RelationPathRetriever",),
    "kg_retrievers.simgrag": ("SimGRAGRetriever",),
    "kg_retrievers.subgraph_rag": ("SubgraphRAGRetriever",),
    "kg_retrievers.triple_similarity": ("TripleSimilarityRetriever",),
    "kg_retrievers.union": ("UnionRetriever",),
}
_EXPORTS = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Budget",
    "CausalLM",
    "CypherRetriever",
    "EntityLinker",
    "Evidence",
    "ExamplePatternGenerator",
    "ExtractiveAnswerer",
    "GNNRAGRetriever",
    "GraphIndex",
    "GraphPromptExample",
    "GraphPromptModel",
    "GraphReasoner",
    "HashedEmbeddings",
    "KGRetrieversError",
    "KnowledgeGraph",
    "KnowledgeGraphMiddleware",
    "Known",
    "LLMCitedAnswerer",
    "LLMPatternGenerator",
    "LadybugExecutor",
    "LinkedPatternGenerator",
    "Neo4jExecutor",
    "PCSTRetriever",
    "Path",
    "Pattern",
    "Question",
    "RelationPathRetriever",
    "Report",
    "SimGRAGRetriever",
    "SubgraphRAGRetriever",
    "Triple",
    "TripleScorer",
    "TripleSimilarityRetriever",
    "UnionRetriever",
    "Unknown",
    "answer_chain",
    "as_llama_index",
    "build_router",
    "build_workflow",
    "check_names",
    "check_read_only",
    "cited_answer_chain",
    "compare",
    "draw",
    "evaluate",
    "fact_verification_chain",
    "flat_metadata",
    "graph_prompt_examples",
    "llm_answerer",
    "load_chat_model",
    "local_embeddings",
    "read_explagraphs",
    "read_question_set",
    "read_questions",
    "read_scene_graphs",
    "read_webqsp",
    "score_predictions",
    "to_pyg",
    "train_graph_prompt",
    "train_graph_reasoner",
    "train_triple_scorer",
    "unanswerable_questions",
]


def __getattr__(name: str) -> Any:
    """Load an exported name from the module that defines it."""
    if name not in _EXPORTS:
        raise AttributeError(f"module 'kg_retrievers' has no attribute {name!r}")
    return getattr(import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    """The exported names."""
    return __all__
