"""Why a retriever finds what it finds, and why not something else."""

from kg_retrievers.explanation.explain import Explanation, explain
from kg_retrievers.explanation.why_not import WhyNot, why_not

__all__ = ["Explanation", "WhyNot", "explain", "why_not"]
