"""How well a retriever answers questions: figures, intervals, comparisons; and scores of predictions made elsewhere."""

from kg_retrievers.evaluation.comparison import Comparison, compare
from kg_retrievers.evaluation.evaluate import evaluate
from kg_retrievers.evaluation.grounding import Grounding, check_grounding
from kg_retrievers.evaluation.grounding_totals import GroundingTotals, total_grounding
from kg_retrievers.evaluation.predictions import score_predictions
from kg_retrievers.evaluation.report import Report
from kg_retrievers.evaluation.unanswerable import unanswerable_questions

__all__ = [
    "Comparison",
    "Grounding",
    "GroundingTotals",
    "Report",
    "check_grounding",
    "compare",
    "evaluate",
    "score_predictions",
    "total_grounding",
    "unanswerable_questions",
]
