"""Explain why a retriever finds its results, and why it does not find something else."""

from kg_retrievers.explanation.explain import Explanation as Explanation
from kg_retrievers.explanation.explain import explain as explain
from kg_retrievers.explanation.why_not import WhyNot as WhyNot
from kg_retrievers.explanation.why_not import why_not as why_not
