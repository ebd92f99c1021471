"""Trains the sentence encoder of the package."""
