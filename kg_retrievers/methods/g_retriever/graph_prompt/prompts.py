"""The words that stand around a graph and a question where a language model reads the graph as a soft prompt, too.

The form is that of "G-Retriever: Retrieval-Augmented Generation for Textual Graph Understanding and Question Answering"
(He et al., NeurIPS 2024, arXiv:2402.07630), figure 5: the tables of the graph, the question, "Answer:". A language
model is trained on these words, so a model keeps the `VERSION` of those it was trained on.
"""

from __future__ import annotations

#: The version of all words in this file. It changes with any change of them.
VERSION = "1"

#: What stands between several answers, in training and so in replies; as in the published code.
ANSWER_SEPARATOR = "|"


def ask(question: str | None, *, after_graph: bool) -> str:
    r"""Return what a language model reads after the graph.

    Args:
        question: The question; None to leave it out. One that says itself where it begins, "Question: ...", as those of
            ExplaGraphs do after two arguments, is not told so again.
        after_graph: Whether the graph is in words before it.

    Example:
        >>> ask("Who directed Her?", after_graph=True)
        '\n\nQuestion: Who directed Her?\nAnswer:'
    """
    if question is not None and "Question:" not in question:
        question = f"Question: {question}"
    asked = "Answer:" if question is None else f"{question}\nAnswer:"
    return f"\n\n{asked}" if after_graph else asked
