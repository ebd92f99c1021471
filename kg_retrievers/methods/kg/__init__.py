"""The sure answer, and the facts that most likely hold it otherwise, for a budget of tokens."""
