"""The retrievers as services: what opens and builds by name, and the workflow for LangGraph's server and Studio."""
