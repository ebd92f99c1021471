"""Question sets: MetaQA, PathQuestion, JSON lines and the GraphQA benchmark, all read as `Question`."""

from kg_retrievers.datasets.explagraphs import read_explagraphs
from kg_retrievers.datasets.graph_question import GraphQuestion
from kg_retrievers.datasets.jsonl import read_questions, write_questions
from kg_retrievers.datasets.metaqa import read_metaqa
from kg_retrievers.datasets.pathquestion import read_pathquestion
from kg_retrievers.datasets.question_sets import read_question_set
from kg_retrievers.datasets.scene_graphs import read_scene_graphs
from kg_retrievers.datasets.types import Question, check_questions
from kg_retrievers.datasets.webqsp import read_webqsp

__all__ = [
    "GraphQuestion",
    "Question",
    "check_questions",
    "read_explagraphs",
    "read_metaqa",
    "read_pathquestion",
    "read_question_set",
    "read_questions",
    "read_scene_graphs",
    "read_webqsp",
    "write_questions",
]
