"""The words around a graph and a question if a language model reads the graph as a soft prompt too.

The form comes from "G-Retriever: Retrieval-Augmented Generation for Textual Graph Understanding and Question Answering"
(He et al., NeurIPS 2024, arXiv:2402.07630), figure 5: the tables of the graph, the question, "Answer:". A model is
trained on these words, so it keeps the `VERSION` of the words that it was trained on.
"""

from __future__ import annotations

#: The version of all words in this file. It changes with any change of them.
VERSION = "1"

#: Separates several answers in training, and so in replies, as in the published code.
ANSWER_SEPARATOR = "|"


def write_question(question: str, *, after_graph: bool) -> str:
    r"""Return the text that a language model reads after the graph.

    Args:
        question: The question. "Question: " is put before it unless the text holds "Question: " itself, as the
            questions of ExplaGraphs do after two arguments.
        after_graph: Whether the graph stands before it in words.

    Example:
        >>> write_question("Who directed Her?", after_graph=True)
        '\n\nQuestion: Who directed Her?\nAnswer:'
    """
    asked = question if "Question:" in question else f"Question: {question}"
    return f"\n\n{asked}\nAnswer:" if after_graph else f"{asked}\nAnswer:"


def parse_answers(reply: str) -> list[str]:
    """Return the answers in a reply, each once.

    Example:
        >>> parse_answers("Spike Jonze | Charlie Kaufman|Spike Jonze")
        ['Spike Jonze', 'Charlie Kaufman']
    """
    answers = map(str.strip, reply.split(ANSWER_SEPARATOR))
    return list(dict.fromkeys(filter(None, answers)))
