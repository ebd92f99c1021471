"""Question -> Pattern without examples and without a language model."""

from kg_retrievers.questions.zero_shot.generator import RankedWalk, Understanding, ZeroShotPatternGenerator

__all__ = ["RankedWalk", "Understanding", "ZeroShotPatternGenerator"]
