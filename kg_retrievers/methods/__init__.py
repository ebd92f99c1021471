"""The methods, one room each: the retriever, its prompts and the code that only this method uses."""
