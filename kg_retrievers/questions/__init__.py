"""Question -> Pattern: by a language model, by labelled examples, or zero-shot; and the cascade of these."""
