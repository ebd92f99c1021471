"""The default: the facts that most likely hold the answer, for a budget of tokens."""
