"""The retrievers as services: opening and building by name, and the workflow for LangGraph's server and Studio."""
