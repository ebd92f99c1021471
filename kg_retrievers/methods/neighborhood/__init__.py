"""The baseline: the facts within k hops of the question's entities."""
