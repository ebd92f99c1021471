"""Question sets: MetaQA, PathQuestion and JSON lines, all read as `Question`."""

from kg_retrievers.questions.jsonl import read_questions, write_questions
from kg_retrievers.questions.metaqa import read_metaqa
from kg_retrievers.questions.pathquestion import read_pathquestion
from kg_retrievers.questions.types import Question, check_questions

__all__ = ["Question", "check_questions", "read_metaqa", "read_pathquestion", "read_questions", "write_questions"]
