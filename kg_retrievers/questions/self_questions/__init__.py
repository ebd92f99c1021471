"""Questions that a graph asks of itself: patterns drawn from it, put into words."""

from kg_retrievers.questions.self_questions.generate import generate_questions

__all__ = ["generate_questions"]
