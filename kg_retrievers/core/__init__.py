"""Define the base of every retriever.

A retriever runs stages over a checkpoint-safe state, and one body serves sync and async.
"""
