"""LangGraph: the workflow of any retriever, a router over several, middleware for agents."""

from kg_retrievers.agents.language_model import load_chat_model

__all__ = ["load_chat_model"]
