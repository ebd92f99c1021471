"""LangGraph: the workflow of any retriever, and a router over several; middleware for agents stands in `middleware`."""

from kg_retrievers.agents.language_model import load_chat_model
from kg_retrievers.agents.router import build_router, question_shape
from kg_retrievers.agents.state import AnswerState, Budget, WorkflowOutput
from kg_retrievers.agents.workflow import Workflow, build_workflow

__all__ = [
    "AnswerState",
    "Budget",
    "Workflow",
    "WorkflowOutput",
    "build_router",
    "build_workflow",
    "load_chat_model",
    "question_shape",
]
