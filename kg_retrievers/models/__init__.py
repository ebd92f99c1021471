"""What is learned: models that are trained with torch and served with numpy, and how they are saved."""

from kg_retrievers.models.triple_scorer import GraphTripleScorer, TripleScorer, TripleScorerConfig

__all__ = ["GraphTripleScorer", "TripleScorer", "TripleScorerConfig"]
