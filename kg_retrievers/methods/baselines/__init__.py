"""Baselines that the papers compare their methods with: what is there without them, and what is found by little."""
