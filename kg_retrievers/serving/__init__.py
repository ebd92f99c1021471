"""The retrievers as services: the workflow that LangGraph's server and Studio load."""
