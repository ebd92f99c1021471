"""LangGraph: the workflow of any retriever, and a router over several.

Tools stand in `toolkit`, an agent that uses them in `explore`, and middleware for other agents in `middleware`.
"""

from kg_retrievers.agents.language_model import load_chat_model as load_chat_model
from kg_retrievers.agents.router import build_router as build_router
from kg_retrievers.agents.router import question_shape as question_shape
from kg_retrievers.agents.state import Budget as Budget
from kg_retrievers.agents.workflow import Workflow as Workflow
from kg_retrievers.agents.workflow import build_workflow as build_workflow
