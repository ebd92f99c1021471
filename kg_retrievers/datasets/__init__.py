"""Question sets: MetaQA, PathQuestion, JSON lines, WebQSP and CWQ, all read as `Question`."""

from kg_retrievers.datasets.graph_question import GraphQuestion, join_graphs
from kg_retrievers.datasets.jsonl import read_questions, write_questions
from kg_retrievers.datasets.metaqa import read_metaqa
from kg_retrievers.datasets.pathquestion import read_pathquestion
from kg_retrievers.datasets.question_sets import read_question_set
from kg_retrievers.datasets.types import Question, check_questions
from kg_retrievers.datasets.webqsp import read_webqsp

__all__ = [
    "GraphQuestion",
    "Question",
    "check_questions",
    "join_graphs",
    "read_metaqa",
    "read_pathquestion",
    "read_question_set",
    "read_questions",
    "read_webqsp",
    "write_questions",
]
