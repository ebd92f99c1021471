"""How well a retriever answers questions: figures, intervals, comparisons; and scores of predictions made elsewhere."""

from kg_retrievers.evaluation.comparison import Comparison, compare
from kg_retrievers.evaluation.evaluate import evaluate
from kg_retrievers.evaluation.report import Report
from kg_retrievers.evaluation.unanswerable import unanswerable_questions

__all__ = [
    "Comparison",
    "Report",
    "compare",
    "evaluate",
    "unanswerable_questions",
]
