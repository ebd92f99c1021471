"""Question sets: MetaQA, PathQuestion, JSON lines, WebQSP and CWQ, all read as `Question`."""

from kg_retrievers.datasets.jsonl import read_questions as read_questions
from kg_retrievers.datasets.jsonl import write_questions as write_questions
from kg_retrievers.datasets.metaqa import read_metaqa as read_metaqa
from kg_retrievers.datasets.pathquestion import read_pathquestion as read_pathquestion
from kg_retrievers.datasets.question_sets import read_question_set as read_question_set
from kg_retrievers.datasets.types import MOST_CHARACTERS as MOST_CHARACTERS
from kg_retrievers.datasets.types import GraphQuestion as GraphQuestion
from kg_retrievers.datasets.types import Question as Question
from kg_retrievers.datasets.types import check_length as check_length
from kg_retrievers.datasets.types import check_question as check_question
from kg_retrievers.datasets.types import check_questions as check_questions
from kg_retrievers.datasets.types import join_graphs as join_graphs
from kg_retrievers.datasets.webqsp import read_webqsp as read_webqsp
