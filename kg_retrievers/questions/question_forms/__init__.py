"""Question -> Pattern with conditions, absent triples or an operation, by the form of the question."""

from kg_retrievers.questions.question_forms.generator import QuestionFormGenerator

__all__ = ["QuestionFormGenerator"]
