"""Question -> Pattern with conditions, absent triples or an operation, by the form of the question."""
