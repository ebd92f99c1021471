"""Pure functions over arrays, one algorithm a file. No LangChain, no LLM, no torch."""
