"""Question -> Pattern: by a language model, by labelled examples, or by the entities that the question names."""
