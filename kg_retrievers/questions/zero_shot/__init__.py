"""Question -> Pattern without examples and without a language model."""

from kg_retrievers.questions.zero_shot.generator import ZeroShotPatternGenerator
from kg_retrievers.questions.zero_shot.understanding import RankedWalk, Understanding

__all__ = ["RankedWalk", "Understanding", "ZeroShotPatternGenerator"]
