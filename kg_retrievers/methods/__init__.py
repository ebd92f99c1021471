"""The methods, a room each: the retriever, its prompts and what only it uses."""
