"""LangGraph workflows over any retriever."""
