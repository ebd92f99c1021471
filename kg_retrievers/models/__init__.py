"""What is learned: models that are trained with torch and served with numpy, and how they are saved."""

from kg_retrievers.models.graph_reasoner import GraphReasoner, GraphReasonerConfig, ReasonerOnGraph
from kg_retrievers.models.trained_model import TrainedModel
from kg_retrievers.models.triple_scorer import GraphTripleScorer, TripleScorer, TripleScorerConfig

__all__ = [
    "GraphReasoner",
    "GraphReasonerConfig",
    "GraphTripleScorer",
    "ReasonerOnGraph",
    "TrainedModel",
    "TripleScorer",
    "TripleScorerConfig",
]
