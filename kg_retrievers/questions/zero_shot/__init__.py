"""Question -> Pattern without examples and without a language model."""
