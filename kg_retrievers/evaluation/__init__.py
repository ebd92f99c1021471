"""How well a retriever answers questions: figures, intervals, comparisons. And scores of predictions made elsewhere."""

from kg_retrievers.evaluation.comparison import Comparison as Comparison
from kg_retrievers.evaluation.comparison import compare as compare
from kg_retrievers.evaluation.evaluate import evaluate as evaluate
from kg_retrievers.evaluation.report import Report as Report
from kg_retrievers.evaluation.unanswerable import unanswerable_questions as unanswerable_questions
