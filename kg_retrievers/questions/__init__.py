"""Question -> Pattern: by a language model, by labelled examples, zero-shot, or by a cascade of all three."""
