"""KAPING: the triples whose texts are nearest to the question."""
