"""SubgraphRAG's prompt: from scored facts to an answer, with the steps that lead to it.

The method is described in "Simple Is Effective: The Roles of Graphs and Large Language Models in Knowledge-Graph-Based
Retrieval-Augmented Generation" (M. Li, S. Miao, P. Li, ICLR 2025, arXiv:2410.20724), section 3.2, figures 2 and 6. It
shows the facts, then the question. The model explains, then gives each answer on a line that begins with "ans:", and
"ans: not available" if there is none (appendix E). The words and the worked examples are our own. Differs from the
paper: all is one message, facts are lines with arrows, and a second example shows facts that do not suffice.
`DIALOGUE_PROMPT` has the form of figure 6, with numbered triples in a frame that is said to be data.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from langchain_core.prompts import ChatPromptTemplate

from kg_retrievers.core.replies import marked_answers

#: The version of all prompts of the method, in `prompts.toml`. It changes with any change of their words.
VERSION = "2"

_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

#: Asks for an answer from scored facts. Placeholders: `question`, `evidence`.
ANSWER_PROMPT: ChatPromptTemplate = ChatPromptTemplate.from_template(_TEXTS["answer"])

#: The dialogue of figure 6: system, an example of 30 triples with its reply, the question. Placeholders: `question`,
#: `evidence`. The reply is read by `parse_answers`.
DIALOGUE_PROMPT: ChatPromptTemplate = ChatPromptTemplate.from_messages(
    [(message["role"], message["text"]) for message in _TEXTS["dialogue"]]
)


def parse_answers(reply: str) -> list[str]:
    r"""Read the answers from a model's reply to `ANSWER_PROMPT`.

    There are none if it ends with "ans: not available". Without "ans:", the whole reply is the answer: see
    `marked_answers`.

    Example:
        >>> parse_answers("Its moons are Titania [2] and Miranda [5].\nans: Titania\nans: Miranda")
        ['Titania', 'Miranda']
    """
    return marked_answers(reply, separator=None)
